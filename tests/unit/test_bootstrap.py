"""`scripts/bootstrap.py`: every sentence it can end with, and every state of .venv it can meet.

The runs are real subprocesses in a small copy of the project (in a path with a space and Cyrillic letters) whose build
backend lies in its own folder, so that a real venv and a real pip work without a network. What no test can bring about
honestly (another Python version, a full disk) is injected by a sitecustomize module into the bootstrap process alone.
"""

from __future__ import annotations

import ast
import ctypes
import errno
import importlib.util
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "bootstrap.py"
GENEROUS_SECONDS = 120  # ends a hanging test; nothing is expected to come near it

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "always-ends"
version = "0.1.0"
"""

# A whole PEP 660 backend: it says that it was asked, waits or fails where a test wants it, and needs nothing.
BACKEND = """\
import os, sys, time, zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    if os.path.exists("hold"):
        open("held", "w").close()
        while os.path.exists("hold"):
            time.sleep(0.02)
    if os.path.exists("fail"):
        sys.exit(open("fail").read())
    name = "always_ends-0.1.0"
    files = {
        "METADATA": "Metadata-Version: 2.1\\nName: always-ends\\nVersion: 0.1.0\\nProvides-Extra: course\\n"
        "Provides-Extra: dev\\n" + (open("needs").read() if os.path.exists("needs") else ""),
        "WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "RECORD": "",
    }
    wheel = name + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w") as archive:
        for file, text in files.items():
            archive.writestr(name + ".dist-info/" + file, text)
    return wheel
"""


def load() -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("bootstrap", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(module, ModuleType)
    return module


bootstrap = load()


class Project:
    """A small project with the real bootstrap.py."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def new(cls, root: Path) -> Project:
        (root / "scripts").mkdir(parents=True)
        shutil.copy(SCRIPT, root / "scripts")
        (root / "pyproject.toml").write_text(PYPROJECT)
        (root / "constraints.txt").write_text("")
        (root / "backend.py").write_text(BACKEND)
        return cls(root)

    @property
    def stamp(self) -> dict[str, Any]:
        loaded = json.loads((self.root / ".venv" / "always-ends.json").read_text())
        assert isinstance(loaded, dict)
        return loaded

    def set_stamp(self, **changes: object) -> None:
        (self.root / ".venv" / "always-ends.json").write_text(json.dumps({**self.stamp, **changes}))

    def log(self) -> str:
        return (self.root / ".venv-setup.log").read_text()

    def environment(self, inject: str = "", **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "PYTHON")) and not name.lower().endswith("_proxy")
        }
        kept |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PYTHONUNBUFFERED": "1"}
        if inject:
            folder = self.root.parent / "inject"
            folder.mkdir(exist_ok=True)
            (folder / "sitecustomize.py").write_text(inject)
            kept["PYTHONPATH"] = str(folder)
        return kept | more

    def start(self, *arguments: str, inject: str = "", **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "scripts/bootstrap.py", *arguments],
            cwd=self.root,
            env=self.environment(inject, **environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def run(self, *arguments: str, inject: str = "", **environment: str) -> tuple[int, str, str]:
        """(exit code, stdout, stderr) of one bootstrap."""
        process = self.start(*arguments, inject=inject, **environment)
        out, err = process.communicate(timeout=GENEROUS_SECONDS)
        assert "Traceback" not in out + err
        return process.returncode, out, err

    def refuses(self, *arguments: str, inject: str = "", **environment: str) -> str:
        """The one sentence with which the bootstrap ends with exit code 1."""
        code, _, err = self.run(*arguments, inject=inject, **environment)
        assert code == 1, err
        assert err.count("\n") == 1 and err.endswith(".\n"), err
        return err.strip()

    def wait_for(self, name: str, process: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + GENEROUS_SECONDS
        while not (self.root / name).exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """A finished set-up and what it printed; tests copy it."""
    project = Project.new(tmp_path_factory.mktemp("made") / "мой курс")
    code, out, err = project.run()
    assert code == 0, err + project.log()
    return project, out


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project without .venv."""
    return Project.new(tmp_path / "мой курс")


@pytest.fixture
def ready(made: tuple[Project, str], tmp_path: Path) -> Project:
    """A project whose set-up is finished (a copy, with the stamp of its own place)."""
    root = tmp_path / "мой курс"
    shutil.copytree(made[0].root, root, symlinks=True)
    copied = Project(root)
    copied.set_stamp(path=str(root))
    return copied


def version_injection(version: tuple[int, ...]) -> str:
    return f"import sys; sys.version_info = {(*version, 'final', 0)!r}"


# ---- the way that works ----------------------------------------------------------------------------------------------


def test_first_run_makes_a_venv_and_says_what_it_does(made: tuple[Project, str]) -> None:
    """The first run makes .venv, installs the project into it, names the log, and tells how long it took."""
    project, out = made
    # Between them stand lines of progress, on a machine that takes its time.
    first, second, *_, last = (line for line in out.splitlines() if line.startswith("Set-up: "))
    assert first.startswith(f"Set-up: making .venv with Python {sys.version_info[0]}.{sys.version_info[1]}.")
    assert second.startswith("Set-up: installing the pinned packages") and ".venv-setup.log" in second
    assert last.startswith("Set-up: done in ") and "s, .venv holds Python 3." in last
    assert "Successfully installed always-ends" in project.log()
    assert project.stamp["state"] == "complete"


def test_repeating_does_nothing(ready: Project) -> None:
    """A second run starts neither pip nor venv, and says that there was nothing to do."""
    before = (ready.root / ".venv-setup.log").stat().st_mtime_ns
    code, out, err = ready.run()
    assert (code, err) == (0, "")
    assert out.startswith("Set-up: nothing to do") and out.count("\n") == 1
    assert (ready.root / ".venv-setup.log").stat().st_mtime_ns == before


def test_dev_satisfies_course_and_not_the_other_way_round(ready: Project) -> None:
    """`make test` after `make lab` adds the test tools; `make lab` after that has nothing to do."""
    code, out, _ = ready.run("--dev")
    assert code == 0 and "more packages are wanted" in out
    assert ready.stamp["extras"] == ["course", "dev"]
    assert "nothing to do" in ready.run()[1]


def test_changed_constraints_update_and_keep_the_extras(ready: Project) -> None:
    """A changed constraints.txt updates .venv in place, for all extras that were there; a lint rule does not."""
    ready.set_stamp(extras=["course", "dev"])
    (ready.root / "pyproject.toml").write_text(PYPROJECT + "[tool.ruff]\nline-length = 100\n")
    assert "nothing to do" in ready.run()[1]
    (ready.root / "constraints.txt").write_text("six==1.0\n")
    code, out, _ = ready.run()
    assert code == 0 and "because pyproject.toml or constraints.txt changed" in out and "anew" not in out
    assert ready.stamp["extras"] == ["course", "dev"]


def test_what_breaks_a_venv_in_the_users_environment_is_left_out(ready: Project) -> None:
    """A PYTHONPATH with a broken pip and a `user = true` of the user's own do not disturb the install."""
    (ready.root.parent / "inject" / "pip").mkdir(parents=True)
    (ready.root.parent / "inject" / "pip" / "__init__.py").write_text("raise SystemExit('wrong pip')")
    ready.set_stamp(inputs=None)
    code, _, err = ready.run(inject="pass", PIP_USER="1")
    assert code == 0, err + ready.log()


# ---- a .venv that is broken ------------------------------------------------------------------------------------------


def test_moved_project_gets_a_new_venv(made: tuple[Project, str], tmp_path: Path) -> None:
    """A clone that was moved is noticed (its scripts name the old place) and .venv is made anew, with a word about it."""
    shutil.copytree(made[0].root, tmp_path / "elsewhere", symlinks=True)
    code, out, _ = Project(tmp_path / "elsewhere").run()
    assert code == 0 and "making .venv anew, because the project was moved here from " in out


def test_venv_whose_python_is_gone_is_made_anew(ready: Project) -> None:
    """A .venv whose interpreter was removed is made anew, and the run says why."""
    python = ready.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    code, out, _ = ready.run()
    assert code == 0 and "making .venv anew, because its Python is gone or does not run" in out
    assert "nothing to do" in ready.run()[1]


def test_half_made_venv_is_made_anew(ready: Project) -> None:
    """A .venv that somebody's interrupted `python -m venv` left without pip is made anew."""
    (ready.root / ".venv" / "always-ends.json").unlink()
    for folder in (ready.root / ".venv" / "lib").glob("python*/site-packages/pip"):
        shutil.rmtree(folder)
    code, out, _ = ready.run()
    assert code == 0 and "making .venv anew, because it has no pip" in out


def test_folder_of_yours_is_not_deleted(project: Project) -> None:
    """A .venv that is no virtual environment is left alone, and the sentence says what to type."""
    (project.root / ".venv").mkdir()
    (project.root / ".venv" / "letters.txt").write_text("mine")
    assert "type mv .venv venv-old, then make lab." in project.refuses()
    assert (project.root / ".venv" / "letters.txt").read_text() == "mine"


def test_ctrl_c_is_repaired_by_the_next_run(ready: Project) -> None:
    """Ctrl-C while pip works ends pip too, says in one sentence how to go on, and the next run starts .venv over."""
    ready.set_stamp(inputs=None)
    (ready.root / "hold").touch()
    process = ready.start()
    ready.wait_for("held", process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=GENEROUS_SECONDS)
    assert process.returncode == 130
    assert err == "Interrupted; what was downloaded is kept: type make lab to go on.\n"
    (ready.root / "hold").unlink()
    code, out, _ = ready.run()
    assert code == 0 and "because the last set-up was interrupted" in out


def test_second_set_up_waits_for_a_pip_that_outlived_a_kill(ready: Project) -> None:
    """After a SIGKILL of the bootstrap alone, the next one waits for the orphaned pip, then repairs what it left."""
    ready.set_stamp(inputs=None)
    (ready.root / "hold").touch()
    killed = ready.start()
    ready.wait_for("held", killed)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    second = ready.start()
    assert second.stdout
    assert second.stdout.readline() == "Set-up: another set-up is running in this folder; waiting for it to end.\n"
    (ready.root / "hold").unlink()
    out, err = second.communicate(timeout=GENEROUS_SECONDS)
    killed.communicate()
    assert second.returncode == 0, err
    assert "because the last set-up was interrupted" in out


# ---- the sentences, end to end ---------------------------------------------------------------------------------------


def test_old_python_names_one_that_works(project: Project) -> None:
    """A Python that is too old names a supported one on PATH, passing over a name that starts nothing."""
    shims = project.root.parent / "shims"
    shims.mkdir()
    for name, code in (("python3.13", 127), ("python3.12", 0), ("python3.11", 0)):
        (shims / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (shims / name).chmod(0o755)
    said = project.refuses(inject=version_injection((3, 9, 2)), PATH=str(shims))
    assert said == (
        "Python 3.9 is too old (it needs 3.11, 3.12 or 3.13), but python3.12 is here: type make lab PYTHON=python3.12."
    )


def test_new_python_without_another_one(project: Project) -> None:
    """A Python newer than the tested ones, with no other on PATH, says which to install and what to type then."""
    said = project.refuses("--dev", inject=version_injection((3, 14, 0)), PATH="/nowhere")
    assert said.startswith("Python 3.14 is newer than this course has been tested with (it needs 3.11, 3.12 or 3.13)")
    assert said.endswith("then type, for example, make test PYTHON=python3.12.")


def test_old_python_uses_a_venv_that_works(ready: Project) -> None:
    """After `make lab PYTHON=python3.12`, plain `make lab` works although python3 itself is too old."""
    code, out, err = ready.run(inject=version_injection((3, 9, 2)))
    assert (code, err) == (0, "") and "nothing to do" in out


def test_missing_ensurepip(project: Project) -> None:
    """A Python without ensurepip (Debian without python3-venv) says which package to install."""
    said = project.refuses(inject="import sys; sys.modules['ensurepip'] = None")
    assert "cannot make a virtual environment because its ensurepip is missing: " in said
    assert said.endswith(("and then make lab.", "and then type make lab.", "and then make lab PYTHON=python3.13."))
    assert not (project.root / ".venv").exists()


def test_no_network(ready: Project) -> None:
    """Without a network the sentence says so; an earlier .venv keeps working once the change is taken back."""
    with socket.socket() as closed:  # bound and not listening: connections are refused, and nobody else gets the port
        closed.bind(("127.0.0.1", 0))
        (ready.root / "needs").write_text("Requires-Dist: nowhere-to-be-found\n")
        ready.set_stamp(inputs="other")
        index = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        said = ready.refuses(PIP_NO_INDEX="0", PIP_INDEX_URL=index, PIP_RETRIES="1")
    assert said.startswith("No network: pip could not reach the package index")
    assert "type make lab again" in said and said.endswith("the full log is in .venv-setup.log.")
    assert ready.stamp["inputs"] == "other" and ready.stamp["state"] == "complete"


def test_too_little_room_is_seen_beforehand(project: Project) -> None:
    """A disk with too little room is refused before anything is written, with the numbers."""
    inject = (
        "import shutil, collections; shutil.disk_usage = lambda p: collections.namedtuple('U', 'free')(2**20 * 700)"
    )
    said = project.refuses(inject=inject)
    assert said == (
        f"The disk of {project.root} has 700 MB free and the set-up needs 1500 MB: free 800 MB more, "
        "then type make lab."
    )
    assert not (project.root / ".venv").exists()


def test_disk_that_fills_up_during_pip(ready: Project) -> None:
    """A disk that fills up while pip works is named as the reason."""
    ready.set_stamp(inputs=None)
    (ready.root / "fail").write_text("OSError: [Errno 28] No space left on device")
    said = ready.refuses()
    assert said.startswith("The disk became full") and "1500 MB" in said and "type make lab" in said


def test_disk_that_fills_up_before_the_venv(project: Project) -> None:
    """A disk that is full when .venv itself is made gives the same sentence."""
    inject = (
        "import os\ndef mkdir(path, *more):\n"
        f"    raise OSError({errno.ENOSPC}, 'No space left on device', path)\nos.mkdir = mkdir"
    )
    assert project.refuses(inject=inject).startswith("The disk became full")


def without_write_override() -> None:
    """In the child: give up root's right to write everywhere (CAP_DAC_OVERRIDE leaves the bounding set)."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def test_folder_without_write_permission(project: Project) -> None:
    """A folder in which you may not write is named, with the command that makes it yours."""
    if os.geteuid() == 0 and not sys.platform.startswith("linux"):
        pytest.skip("root may write anywhere, and only Linux can take that away from a child")
    project.root.chmod(0o555)
    try:
        process = subprocess.run(
            [sys.executable, "scripts/bootstrap.py"],
            cwd=project.root,
            env=project.environment(),
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=without_write_override if os.geteuid() == 0 else None,
        )
    finally:
        project.root.chmod(0o755)
    assert process.returncode == 1
    assert process.stderr == (
        f"No permission to write {project.root}/.venv-setup.log: type sudo chown -R \"$(id -un)\" '{project.root}' "
        "(or clone the course into a folder of your own), then make lab.\n"
    )


def test_any_other_failure_of_pip(ready: Project) -> None:
    """Any other failure gives pip's own reason and where the whole log is."""
    ready.set_stamp(inputs=None)
    (ready.root / "needs").write_text("Requires-Dist: nowhere-to-be-found\n")
    said = ready.refuses("--dev")
    assert said == (
        "pip could not install the packages: No matching distribution found for nowhere-to-be-found; "
        "the full log is in .venv-setup.log, and to try again, type make test."
    )
    assert "nowhere-to-be-found" in ready.log()


def test_a_fault_of_its_own_is_a_sentence_too(project: Project) -> None:
    """Even an unforeseen exception ends in one sentence; the traceback is in the log."""
    (project.root / "pyproject.toml").write_text("not toml")
    assert project.refuses().startswith("The set-up has a fault of its own (TOMLDecodeError")
    assert "Traceback" in project.log()


# ---- the sentences, as pure functions --------------------------------------------------------------------------------


def test_missing_ensurepip_differs_by_system_and_user() -> None:
    """Debian names its package, with sudo only where you are not root; macOS and others have their own way."""
    say = bootstrap.explain_no_venv
    start = "Python 3.11 at /usr/bin/python3 cannot make a virtual environment because its ensurepip is missing: "
    executable, version = "/usr/bin/python3", (3, 11, 2)
    assert say(executable, version, "Linux", True, True, "make lab") == start + (
        "type apt-get update && apt-get install -y python3.11-venv and then make lab"
    )
    assert say(executable, version, "Linux", True, False, "make test") == start + (
        "type sudo apt-get update && sudo apt-get install -y python3.11-venv and then make test"
    )
    assert "brew install" in say(executable, version, "Darwin", False, False, "make lab")
    assert say(executable, version, "Linux", False, True, "make lab").endswith("and then type make lab")


RETRYING = "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError(...)': /x/"


@pytest.mark.parametrize(
    ("lines", "returncode", "start"),
    [
        (
            [RETRYING, "ERROR: Could not find a version that satisfies x (from versions: none)"],
            1,
            "No network: ",
        ),
        (
            [
                RETRYING.replace("total=4", "total=0"),
                "ERROR: Cannot install setuptools>=77 because these package versions have conflicting dependencies.",
            ],
            1,
            "No network: ",
        ),
        (["      ERROR: No matching distribution found for setuptools>=77", "      " + RETRYING], 1, "No network: "),
        (
            [
                "ERROR: Could not install packages due to an OSError: HTTPSConnectionPool(host='x', port=443): Read timed out."
            ],
            2,
            "No network: ",
        ),
        (
            [
                (
                    "WARNING: Retrying after connection broken by 'SSLError(SSLCertVerificationError(1, '[SSL: "
                    "CERTIFICATE_VERIFY_FAILED] self-signed certificate in certificate chain'))': /x/"
                ),
                "ERROR: No matching distribution found for x",
            ],
            1,
            "The package index answered with a certificate that pip does not trust",
        ),
        (["Error: [Errno 28] No space left on device: '/x/.venv/lib'"], 1, "The disk became full"),
        (
            ["ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/x/.venv/lib/a'"],
            1,
            "No permission to write /x/.venv/lib/a: ",
        ),
        (
            [
                RETRYING,
                "ERROR: Cannot install a because these package versions have conflicting dependencies.",
                "ERROR: ResolutionImpossible: for help visit somewhere",
            ],
            1,
            (
                "pip could not install the packages: Cannot install a because these package versions have conflicting "
                "dependencies; the full log"
            ),
        ),
        (
            ["Collecting x"],
            -9,
            "pip could not install the packages: it was killed by signal 9 (often: too little memory)",
        ),
        ([], 2, "pip could not install the packages: it ended with code 2 and said nothing"),
    ],
)
def test_pip_output_becomes_one_sentence(lines: list[str], returncode: int, start: str) -> None:
    """What pip printed decides the sentence; a warning about a retry that worked does not."""
    said = bootstrap.explain_pip(lines, returncode, "/x", "make lab")
    assert said.startswith(start)
    assert "make lab" in said and "\n" not in said


def test_permission_inside_the_venv_names_the_path() -> None:
    """A file in .venv that belongs to root (after one `sudo make lab`) is named in the sentence."""
    error = PermissionError(errno.EACCES, "Permission denied", "/x/.venv/bin/python")
    assert bootstrap.explain_os_error(error, "/x", "make lab").startswith(
        "No permission to write /x/.venv/bin/python: "
    )


def found(**changes: object) -> dict[str, object]:
    stamp = {"state": "complete", "path": "/x", "version": "3.11", "inputs": "i", "extras": ["course"]}
    return {"exists": True, "version": (3, 11, 7), "has_pip": lambda: True, "stamp": stamp} | changes


WANTED = {"version": (3, 11), "this_python": False, "path": "/x", "inputs": "i", "extras": ["course"]}


def test_plan_keeps_a_venv_of_another_python_unless_you_name_one() -> None:
    """A default python3 of another version keeps a good .venv; PYTHON=python3.12 replaces it."""
    other = WANTED | {"version": (3, 12)}
    assert bootstrap.plan(found(), other) == ("ready", "")
    asked = bootstrap.plan(found(), other | {"this_python": True})
    assert asked == ("create", "it has Python 3.11 and you asked for 3.12")


def test_plan_notices_a_python_that_was_upgraded() -> None:
    """A .venv whose interpreter became another minor version (a system upgrade) is made anew; a patch release is not."""
    assert bootstrap.plan(found(version=(3, 13, 0)), WANTED)[0] == "create"
    assert bootstrap.plan(found(version=(3, 14, 0)), WANTED) == ("create", "its Python 3.14 is not supported")
    assert bootstrap.plan(found(version=(3, 11, 9)), WANTED) == ("ready", "")


def test_plan_uses_a_venv_made_by_hand() -> None:
    """A .venv that you made yourself is installed into, not deleted."""
    assert bootstrap.plan(found(stamp={}), WANTED) == ("install", "it was not made by this set-up")


# ---- progress --------------------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, live: bool) -> None:
        super().__init__()
        self.live = live

    def isatty(self) -> bool:
        return self.live


def shown(live: bool, moments: Iterator[float]) -> str:
    screen = Screen(live)
    progress = bootstrap.Progress(screen, lambda: next(moments))
    for name in ("a", "b", "c"):
        progress.show(name)
    progress.clear()
    return screen.getvalue()


def test_progress_on_a_terminal_is_one_line() -> None:
    """On a terminal one line is rewritten and cleared at the end."""
    text = shown(True, iter([0.0, 0.0, 1.0, 2.0, 3.0]))
    assert "\n" not in text and text.endswith("\r\033[K")
    assert text.split("\r\033[K")[1:] == ["    1 s  a", "    2 s  b", "    3 s  c", ""]


def test_progress_in_a_log_is_a_line_every_few_seconds() -> None:
    """Elsewhere there is a new line every five seconds, not one for every package."""
    assert shown(False, iter([0.0, 0.0, 1.0, 5.0, 6.0])) == "    5 s  b\n"


def test_progress_names_the_package_and_counts() -> None:
    """While pip collects, the package is named; while it installs, the packages in .venv are counted."""
    installed: list[str] = ["pip"]
    watch = bootstrap.PipWatch(lambda: installed)
    assert watch.text() == "asking the package index (0 packages so far)"
    watch.line("Collecting celery[redis]<5.8,>=5.5 (from always-ends==0.1.0)")
    assert watch.text() == "collecting celery (1 packages so far)"
    watch.line("  Downloading celery-5.7.0-py3-none-any.whl (445 kB)")
    assert watch.text() == "downloading celery (445 kB) (1 packages so far)"
    watch.line("Installing collected packages: celery, kombu, vine")
    installed += ["celery", "kombu"]
    assert watch.text() == "installing: 2 of 3 packages"


# ---- the script itself -----------------------------------------------------------------------------------------------


def test_syntax_is_readable_for_old_pythons() -> None:
    """The file parses on Python 2.7 and 3.6 (no f-string, annotation, keyword-only argument), so that they can refuse."""
    source = SCRIPT.read_text(encoding="utf-8")
    assert source.isascii()
    new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal, ast.AsyncFunctionDef, ast.Match, ast.YieldFrom)
    for node in ast.walk(ast.parse(source)):
        where = f"line {getattr(node, 'lineno', '?')}"
        assert not isinstance(node, new), where
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.args, *node.args.posonlyargs]
            assert node.returns is None and not any(argument.annotation for argument in arguments), where
            assert not node.args.kwonlyargs and not node.args.posonlyargs, where
        if isinstance(node, ast.Call):
            assert len([one for one in node.args if isinstance(one, ast.Starred)]) <= 1, where
        if isinstance(node, ast.List | ast.Tuple) and isinstance(node.ctx, ast.Load):
            assert not any(isinstance(one, ast.Starred) for one in node.elts), where
        if isinstance(node, ast.Dict):
            assert None not in node.keys, where
        if isinstance(node, ast.Raise):
            assert node.cause is None, where


def test_supported_versions_are_those_of_pyproject() -> None:
    """The versions that the script accepts are those of requires-python."""
    assert bootstrap.SUPPORTED == ((3, 11), (3, 12), (3, 13))
    assert 'requires-python = ">=3.11,<3.14"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
