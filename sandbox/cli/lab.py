"""``course lab``: JupyterLab on the course, from here until Ctrl-C."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

import click

from sandbox.cli.common import build_folder, load_course, shown
from sandbox.errors import BadNotebook, BadSetting, MissingProgram, StackFailed

HOST = "127.0.0.1"
# JupyterLab answers within 2-4 s; a cold disk on a small machine has been seen to need half a minute.
START_SECONDS = 90
STOP_SECONDS = 15
# In each, `labconfig` holds defaults; what a person sets in JupyterLab's own settings is stronger.
SETTINGS = Path(__file__).parent / "jupyter"
LEARNER = SETTINGS / "learner"


@click.command(short_help="Open the course in JupyterLab.")
@click.argument("which", required=False, metavar="[NN]")
@click.option("--port", type=click.IntRange(1, 65535), default=8888, show_default=True, help="Port on 127.0.0.1.")
@click.option(
    "--no-browser", is_flag=True, envvar="COURSE_NO_BROWSER", help="Only print the address (or COURSE_NO_BROWSER=1)."
)
@click.option("--grading", is_flag=True, help="Leave nbgrader's menu and panels on: Formgrader, assignments, courses.")
def lab(which: str | None, port: int, no_browser: bool, grading: bool) -> int:
    """Open the course in JupyterLab, at lesson NN or at the first one.

    It runs until Ctrl-C; kernels and their servers end with it. Nothing listens beyond this machine.

    \b
    course lab
    course lab 03 --port 8890 --no-browser
    course lab --grading
    """
    course = load_course()
    lesson = course.find(which) if which else course.lessons[0]
    if not lesson.lesson_path.is_file():
        name = shown(lesson.lesson_path, course.root)
        raise BadNotebook(f"{name} is missing: type `git checkout -- {name}` to get it back.")
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingProgram("JupyterLab is not installed: type `make lab`, or `pip install 'always-ends[course]'`.")
    require_free(port)
    _prepare_servers()
    began = time.monotonic()
    click.echo("starting JupyterLab ...")
    token = secrets.token_hex(24)
    log = build_folder(course.root) / "lab.log"
    page = f"/lab/tree/{quote(lesson.lesson_path.relative_to(course.root).as_posix())}"
    jupyter = start(course.root, port, token, page, log, grading=grading)
    try:
        _wait_until_it_answers(jupyter, port, token, log)
        address = f"http://{HOST}:{port}{page}?token={token}"
        click.echo(f"JupyterLab is ready after {time.monotonic() - began:.1f} s. Its address:\n\n{address}\n")
        click.echo(f"Ctrl-C stops it. Its log is {shown(log, course.root)}.")
        if not no_browser:
            _open_browser(address)
        code = jupyter.wait()
    except KeyboardInterrupt:
        click.echo("\nstopping JupyterLab and its kernels ...")
        stop(jupyter)
        click.echo("stopped.")
        return 0
    finally:
        stop(jupyter)
    if code != 0:
        raise StackFailed(_ended(code, log))
    click.echo("JupyterLab has ended: by its own menu, or because somebody stopped it.")
    return 0


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As JupyterLab does: a port whose last connections are only waiting to be forgotten is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def require_free(port: int) -> None:
    """Raise BadSetting, with a port that is free, if `port` can not be listened on."""
    if is_free(port):
        return
    allowed = port >= 1024 or os.geteuid() == 0
    why = "is taken" if allowed else "is reserved for the system"
    other = next((p for p in range(max(port + 1, 1024), 65536) if p % 2 == 0 and is_free(p)), None)
    other = other or next(p for p in range(8888, 1024, -1) if is_free(p))
    raise BadSetting(f"port {port} {why}: type `make lab PORT={other}`.")


def _prepare_servers() -> None:
    if os.environ.get("SANDBOX_DATABASE_URL"):
        return
    from sandbox.services.template import template

    template(click.echo)


def start(root: Path, port: int, token: str, page: str, log: Path, *, grading: bool = False) -> subprocess.Popen[bytes]:
    """Start JupyterLab; its output goes to `log`. Only with `grading` it has what nbgrader adds for instructors."""
    from sandbox.services.sidecar import PR_SET_PDEATHSIG, prctl

    options = {
        "ServerApp.ip": HOST,
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": root,
        "ServerApp.open_browser": False,  # we do, once it answers
        "ServerApp.allow_root": os.name == "posix" and os.geteuid() == 0,  # a container is often root
        "ServerApp.allow_remote_access": False,
        "LabApp.default_url": page,
        # Not as a login, which would start from another PATH and not find `course`.
        "ServerApp.terminado_settings": {"shell_command": [os.environ.get("SHELL") or "sh"]},
        # The tabs that were open are the course's own, not those of whatever else this user has in JupyterLab.
        "LabApp.workspaces_dir": root / "build" / "workspaces",
        # Nothing calls beyond this machine: no news, no look for a newer version, no catalogue of extensions.
        "LabApp.news_url": None,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.extension_manager": "readonly",
    }
    here = str(Path(sys.executable).parent)
    environment = os.environ | {
        # Not an argument, which everybody on the machine can read.
        "JUPYTER_TOKEN": token,
        # nbgrader calls alembic by its bare name.
        "PATH": os.pathsep.join([here, *filter(None, [os.environ.get("PATH")])]),
        "COURSE_ROOT": str(root),
        # "Would you like to get notified about official Jupyter news?" lies over the notebook, and no option takes it
        # away. A link to the glossary opens it as a page to read, not as its source.
        "JUPYTER_CONFIG_PATH": os.pathsep.join(
            [
                *([] if grading else [str(LEARNER)]),
                str(SETTINGS),
                *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")]),
            ]
        ),
    }
    with open(log, "wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=root,
            env=environment,
            # Ctrl-C is ours: JupyterLab would ask, in its log, whether it is meant.
            start_new_session=True,
            # Where this command is killed outright, JupyterLab is not left behind on the port (Linux).
            preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
        )


def _wait_until_it_answers(jupyter: subprocess.Popen[bytes], port: int, token: str, log: Path) -> None:
    request = urllib.request.Request(f"http://{HOST}:{port}/api/status", headers={"Authorization": f"token {token}"})
    # A proxy named in the environment has no way to this machine's own address.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if jupyter.poll() is not None:
            raise StackFailed(_ended(jupyter.returncode, log))
        try:
            with opener.open(request, timeout=5):
                return
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                raise StackFailed(
                    "JupyterLab does not take our token: a password or token in your own Jupyter settings replaces it. "
                    "Type `jupyter --paths`, look into the config folders it prints, and take that setting out."
                ) from None
        except OSError:
            pass
        time.sleep(0.05)
    raise StackFailed(f"JupyterLab did not answer within {START_SECONDS} s.{_tail(log)}")


def _ended(code: int, log: Path) -> str:
    how = f"by signal {-code}" if code < 0 else f"with code {code}"
    return f"JupyterLab ended {how}; type `course doctor` to look for the reason.{_tail(log)}"


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-12:]
    return "\nThe end of its log, " + str(log) + ":\n" + ("\n".join(lines) or "(empty)")


def _open_browser(address: str) -> None:
    import webbrowser

    # A machine without a browser has the address on its terminal.
    with contextlib.suppress(Exception):
        webbrowser.open(address)


def stop(jupyter: subprocess.Popen[bytes]) -> None:
    """End JupyterLab and its kernels; when it does not listen, or at a second Ctrl-C, by force."""
    import psutil

    from sandbox.learn.processes import wait_until_gone

    if jupyter.poll() is not None:
        return
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(jupyter.pid).children(recursive=True)
    jupyter.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        jupyter.wait(STOP_SECONDS)
    if jupyter.poll() is None:
        with contextlib.suppress(psutil.Error):
            for kernel in psutil.Process(jupyter.pid).children():
                kernel.kill()
        jupyter.kill()
        jupyter.wait()
    # The kernels are gone; their sidecars take a moment to remove what they looked after.
    with contextlib.suppress(KeyboardInterrupt):
        wait_until_gone(family, 8)
