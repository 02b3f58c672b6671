"""``course doctor``: what this machine has and lacks, each line ok or what to do."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from sandbox.cli.common import counted
from sandbox.errors import SandboxError

PYTHONS = ((3, 11), (3, 12), (3, 13))
PORT = 8888
# A lab's copy of the data directory is 14 MB and its write-ahead log may grow to 512 MB (services/template.py).
NEED_MB = 600


class Unwell(Exception):
    """What was found, and what to do about it."""

    def __init__(self, found: str, todo: str) -> None:
        super().__init__(found)
        self.found, self.todo = found, todo


@dataclass(frozen=True, kw_only=True)
class Line:
    name: str
    ok: bool
    detail: str
    todo: str | None = None


@click.command()
@click.option("--quick", is_flag=True, help="Do not open a lab: no worker, no real limit.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def doctor(quick: bool, as_json: bool) -> int:
    """Look for what would stop the course on this machine.

    Each line says ok, or FAIL and what to do. Without --quick a real lab is opened and a real limit delivered.

    \b
    course doctor
    course doctor --quick --json
    """
    checks: dict[str, Callable[[], str]] = {
        "python": python,
        "packages": packages,
        "start-up": start_up,
        "course": course_file,
        "redis": redis,
        "postgres": postgres,
        "cache": cache,
        "sockets": sockets,
        "leftovers": leftovers,
        "disk": disk,
        "port": port,
        "clock": clock,
    }
    if not quick:
        checks["limits"] = limits
    lines = []
    for name, look in checks.items():
        line = examine(name, look)
        lines.append(line)
        if not as_json:
            mark = "ok  " if line.ok else "FAIL"
            click.echo(f"{mark} {name:<10} {line.detail}" + (f" -> {line.todo}" if line.todo else ""))
    well = all(line.ok for line in lines)
    if as_json:
        click.echo(json.dumps({"ok": well, "checks": [vars(line) for line in lines]}, indent=1))
    return 0 if well else 1


def examine(name: str, look: Callable[[], str]) -> Line:
    """One line of the report. A check that breaks is a finding, not the end of the report."""
    try:
        return Line(name=name, ok=True, detail=look())
    except Unwell as found:
        return Line(name=name, ok=False, detail=found.found, todo=found.todo)
    except SandboxError as error:
        what, _, rest = str(error).partition("\n")
        return Line(name=name, ok=False, detail=what, todo=rest.splitlines()[-1].strip() if rest else "see above")
    except Exception as error:
        todo = "this check itself broke; please report it"
        return Line(name=name, ok=False, detail=f"{type(error).__name__}: {error}", todo=todo)


def python() -> str:
    found = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info[:2] not in PYTHONS:
        raise Unwell(found, "the course needs 3.11, 3.12 or 3.13: type `make lab PYTHON=python3.12`")
    return found


def packages() -> str:
    """Every requirement of the distribution, as its own metadata states it, against what is installed."""
    from importlib import metadata

    todo = "type `make lab`, which installs the pinned versions"
    try:
        from packaging.requirements import Requirement

        wanted = [Requirement(text) for text in metadata.requires("always-ends") or []]
    except (ImportError, metadata.PackageNotFoundError) as error:
        raise Unwell(f"always-ends is not installed here ({error})", todo) from None
    wrong, versions = [], {}
    for requirement in wanted:
        if requirement.marker and not requirement.marker.evaluate({"extra": "course"}):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        versions[requirement.name] = version
        if not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} {version} is not {requirement.specifier}")
    if wrong:
        raise Unwell("; ".join(wrong), todo)
    named = ", ".join(f"{name} {versions[name]}" for name in ("celery", "jupyterlab", "nbgrader", "papermill", "nbval"))
    return f"{named} and {len(versions) - 5} more, all in range"


def start_up() -> str:
    if importlib.util.find_spec("rfc3987_syntax") is not None:
        raise Unwell(
            "rfc3987_syntax is installed: every Jupyter command takes about three seconds longer",
            f"type `{sys.executable} -m pip uninstall -y rfc3987-syntax`; nothing needs it",
        )
    return "nothing that slows Jupyter down"


def course_file() -> str:
    from sandbox.learn import catalog

    found = catalog.load()
    missing = [lesson.name for lesson in found if not lesson.lesson_path.is_file()]
    if missing:
        raise Unwell(f"no file for {', '.join(missing)}", "type `git checkout -- lessons`")
    return f"{len(found.lessons)} lessons in {found.root}"


def redis() -> str:
    if os.environ.get("SANDBOX_REDIS_URL"):
        return "the server that SANDBOX_REDIS_URL names"
    from sandbox.services.programs import find_redis

    program = find_redis()
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise Unwell(f"{program} does not run: {done.stderr.strip()}", "type `make lab`, or install redis-server")
    version = next((word[2:] for word in done.stdout.split() if word.startswith("v=")), done.stdout.strip())
    return f"{version} at {program}"


def postgres() -> str:
    if os.environ.get("SANDBOX_DATABASE_URL"):
        return "the server that SANDBOX_DATABASE_URL names"
    from sandbox.services.programs import find_postgres

    found = find_postgres()
    return f"{found.version} in {found.bin}"


def cache() -> str:
    from sandbox.services.programs import cache_folder
    from sandbox.services.template import prepared

    folder = cache_folder()
    if os.environ.get("SANDBOX_DATABASE_URL"):
        return str(folder)
    return f"{folder}, {'with' if prepared() else 'still without'} a prepared data directory"


def sockets() -> str:
    """A real socket at the length that a lab's have: a path too long fails only when it is bound."""
    import socket

    from sandbox.services.programs import temporary_parent

    parent = temporary_parent()
    made = tempfile.TemporaryDirectory(prefix="doctor-", dir=parent)
    with made as folder, socket.socket(socket.AF_UNIX) as one:
        try:
            one.bind(str(Path(folder) / "pg.s.PGSQL.5432"))
        except OSError as error:
            raise Unwell(f"no socket can be made in {parent}: {error}", "set TMPDIR to a short folder") from None
    return f"in {parent}"


def leftovers() -> str:
    from sandbox.services.stack import stale, sweep

    removed = sweep()
    left = stale()
    if left:
        raise Unwell(f"{counted(len(left), 'folder')} of dead labs", "type `rm -rf " + " ".join(map(str, left)) + "`")
    return f"{counted(len(removed), 'folder')} of dead labs, removed" if removed else "none"


def disk() -> str:
    from sandbox.learn import catalog
    from sandbox.services.programs import cache_folder, temporary_parent

    free = {}
    for folder in (temporary_parent(), cache_folder(), catalog.find_root()):
        free[folder] = shutil.disk_usage(folder).free // 2**20
    for folder, megabytes in free.items():
        if megabytes < NEED_MB:
            found = f"{megabytes} MB free in {folder}; a lesson may need {NEED_MB} MB"
            raise Unwell(found, "make room there, or set TMPDIR to another disk")
    return ", ".join(f"{megabytes / 1024:.1f} GB free in {folder}" for folder, megabytes in free.items())


def port() -> str:
    from sandbox.cli.lab import is_free, require_free

    if is_free(PORT):
        return f"{PORT} is free"
    if _jupyter_answers():
        return f"{PORT} is taken by a Jupyter server; if it is not the course's, choose another port"
    try:
        require_free(PORT)
    except SandboxError as error:
        found, _, todo = str(error).partition(": ")
        raise Unwell(found, todo.rstrip(".")) from None
    return f"{PORT} is free"


def _jupyter_answers() -> bool:
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{PORT}/api", timeout=2) as answer:
            return "version" in json.loads(answer.read(4096))
    except (OSError, ValueError):
        return False


def clock() -> str:
    """Deadlines are moments: a clock that is years off, or time zones that do not load, end every job at once."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    now = datetime.now(UTC)
    built = datetime.fromtimestamp(Path(__file__).stat().st_mtime, UTC)
    if now < built.replace(year=built.year - 1):
        raise Unwell(f"it is {now:%Y-%m-%d %H:%M} by this machine's clock", "set the clock")
    try:
        berlin = now.astimezone(ZoneInfo("Europe/Berlin"))
    except ZoneInfoNotFoundError:
        raise Unwell("no time zones are installed", f"type `{sys.executable} -m pip install tzdata`") from None
    return f"{now:%Y-%m-%d %H:%M:%S} UTC, {berlin:%H:%M} in Berlin"


_NAP = """
import time

def nap(job):
    time.sleep(20)
"""


def limits() -> str:
    """A lab, a worker, and a soft limit that is really delivered."""
    from sandbox.services import Lab

    todo = "type `course up` and read its log; a limit that is not delivered teaches nothing"
    with Lab.open("doctor", quiet=True) as lab:
        worker = lab.worker()
        drift = abs((lab.query("select now()").rows[0][0] - datetime.now(UTC)).total_seconds())
        if drift > 5:
            raise Unwell(f"the database's clock is {drift:.0f} s from this machine's", "set both clocks")
        if not worker.enforces_limits:
            raise Unwell(f"the worker's pool is {worker.pool}, which does not enforce time limits", todo)
        nap = lab.write_file("doctor_nap", _NAP).nap
        job = lab.submit(nap, soft_time_limit=0.5)
        job.wait(15)
        if not lab.ledger.read(job.id, "soft signal"):
            raise Unwell("a soft limit of 0.5 s was not delivered within 15 s", todo)
    return f"{worker.pool} worker; a soft limit of 0.5 s was delivered"
