"""``course doctor``: each line ok, or what to do."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.cli import doctor, lab, main
from sandbox.errors import MissingProgram
from sandbox.services import programs
from sandbox.services.stack import PREFIX


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course without lessons missing, and a port that is free, whatever runs on this machine."""
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons/00_a.ipynb").write_text("{}")
    lesson = 'number = "00"\nslug = "a"\ntitle = "t"\nquestion = "q"\nminutes = 1\n'
    (tmp_path / "course.toml").write_text(f'title = "t"\n[[lesson]]\n{lesson}')
    monkeypatch.setenv("COURSE_ROOT", str(tmp_path))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setattr(doctor, "PORT", probe.getsockname()[1])
    return tmp_path


def test_a_machine_that_is_well_gets_ok_on_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    """On this machine every line says ok, a real limit is delivered, and the exit code is 0."""
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:5] for line in lines] == ["ok   "] * 13
    assert lines[-1] == "ok   limits     prefork worker; a soft limit of 0.5 s was delivered"


def test_json_holds_the_same_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives name, ok, detail and todo of each check; --quick leaves the real limit out."""
    assert main(["doctor", "--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert all(list(check) == ["name", "ok", "detail", "todo"] for check in found["checks"])
    assert "limits" not in [check["name"] for check in found["checks"]]


def test_one_line_that_fails_says_what_to_do_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check that fails is a FAIL line with what to do; the rest is looked at all the same, and the code is 1."""
    monkeypatch.setattr(doctor, "PYTHONS", ((2, 7),))
    assert main(["doctor", "--quick"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAIL python ")
    assert "-> the course needs 3.11, 3.12 or 3.13: type `make lab PYTHON=python3.12`" in lines[0]
    assert len(lines) == 12


def test_a_check_that_breaks_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """An error inside a check does not end the report."""
    line = doctor.examine("x", lambda: str(1 // 0))
    assert (line.ok, line.detail) == (False, "ZeroDivisionError: integer division or modulo by zero")


def failing(look: Callable[[], str]) -> tuple[str, str]:
    line = doctor.examine("x", look)
    assert not line.ok
    assert line.todo
    return line.detail, line.todo


def test_packages_missing_and_out_of_range_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is missing or too new is named with the range it should be in."""
    from importlib import metadata

    real = metadata.version

    def version(name: str) -> str:
        if name == "nbval":
            raise metadata.PackageNotFoundError(name)
        return "5.9.0" if name == "celery" else real(name)

    monkeypatch.setattr(metadata, "version", version)
    detail, todo = failing(doctor.packages)
    assert "celery 5.9.0 is not <5.8,>=5.5" in detail
    assert "nbval is missing" in detail
    assert "make lab" in todo


def test_a_distribution_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the distribution's metadata the line says that the course is not installed."""
    from importlib import metadata

    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert "always-ends is not installed here" in failing(doctor.packages)[0]


def test_what_slows_jupyter_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """rfc3987_syntax, where it can be imported, is named with the command that removes it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    detail, todo = failing(doctor.start_up)
    assert "rfc3987_syntax is installed" in detail
    assert "pip uninstall -y rfc3987-syntax" in todo


def test_a_lesson_without_its_file_is_named(root: Path) -> None:
    """A lesson in course.toml whose notebook is gone is named with how to get it back."""
    (root / "lessons/00_a.ipynb").unlink()
    assert failing(doctor.course_file) == ("no file for 00_a", "type `git checkout -- lessons`")


def test_a_broken_course_file_is_named(root: Path) -> None:
    """A course.toml that can not be read is a FAIL line with its own sentence."""
    (root / "course.toml").write_text("[")
    assert "is not valid TOML" in failing(doctor.course_file)[0]


def test_missing_servers_are_named_with_the_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Redis or PostgreSQL is nowhere, the line says where was looked and what to install."""

    def nowhere() -> Any:
        raise MissingProgram("No PostgreSQL: looked on PATH. Type `sudo apt-get install postgresql`.")

    monkeypatch.setattr(programs, "find_redis", nowhere)
    monkeypatch.setattr(programs, "find_postgres", nowhere)
    assert "apt-get install" in failing(doctor.redis)[0]
    assert "apt-get install" in failing(doctor.postgres)[0]


def test_a_redis_that_does_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redis-server for another machine, or a broken one, is named with its path."""
    broken = tmp_path / "redis-server"
    broken.write_text("#!/bin/sh\necho 'wrong libc' >&2\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setattr(programs, "find_redis", lambda: broken)
    assert failing(doctor.redis)[0] == f"{broken} does not run: wrong libc"


def test_real_servers_are_said_to_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variables set, the embedded servers are not looked for."""
    monkeypatch.setenv("SANDBOX_REDIS_URL", "redis://x")
    monkeypatch.setenv("SANDBOX_DATABASE_URL", "postgresql://x")
    assert doctor.redis() == "the server that SANDBOX_REDIS_URL names"
    assert doctor.postgres() == "the server that SANDBOX_DATABASE_URL names"


def test_a_cache_that_can_not_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder that can not be made is a FAIL line that names SANDBOX_CACHE_DIR."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SANDBOX_CACHE_DIR", str(tmp_path / "file/cache"))
    assert "Set SANDBOX_CACHE_DIR to a folder of yours" in failing(doctor.cache)[0]


def test_a_temporary_folder_too_deep_for_sockets_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in which no socket can be bound is found by binding one."""
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    monkeypatch.setattr(programs, "temporary_parent", lambda: deep)
    detail, todo = failing(doctor.sockets)
    assert detail.startswith(f"no socket can be made in {deep}")
    assert todo == "set TMPDIR to a short folder"
    assert list(deep.iterdir()) == []


def test_folders_of_dead_labs_are_removed_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed lab left is removed; what can not be removed is named with the command."""
    from sandbox.services import stack

    monkeypatch.setattr(programs, "temporary_parent", lambda: tmp_path)
    dead = Path(tempfile.mkdtemp(prefix=PREFIX, dir=tmp_path))
    long_ago = time.time() - 3600
    os.utime(dead, (long_ago, long_ago))
    assert doctor.leftovers() == "1 folder of dead labs, removed"
    assert doctor.leftovers() == "none"
    monkeypatch.setattr(stack, "sweep", list)
    monkeypatch.setattr(stack, "stale", lambda: [dead])
    assert failing(doctor.leftovers)[1] == f"type `rm -rf {dead}`"


def test_a_full_disk_is_named_with_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little room says how much there is, where, and how much a lesson may need."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: usage(1, 1, 5 * 2**20))
    detail, todo = failing(doctor.disk)
    assert detail.startswith("5 MB free in ")
    assert "make room there" in todo


def test_a_busy_port_is_named_with_one_that_is_free() -> None:
    """A port that something else holds is a FAIL line with a command line that works."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        # It listens and never answers, as any other program may.
        doctor.PORT = server.getsockname()[1]
        detail, todo = failing(doctor.port)
    assert detail == f"port {doctor.PORT} is taken"
    assert todo.startswith("type `make lab PORT=")
    assert lab.is_free(int(todo.rstrip("`").split("=")[1]))


def test_a_port_held_by_jupyter_is_no_failure(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    """A lab that is running must not make the doctor say that the machine is unwell."""
    (tmp_path / "api").write_text('{"version": "2.0"}')
    command = [sys.executable, "-m", "http.server", str(doctor.PORT), "--bind", "127.0.0.1"]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert eventually(lambda: not lab.is_free(doctor.PORT))
        assert f"{doctor.PORT} is taken by a Jupyter server" in doctor.port()
    finally:
        server.kill()
        server.wait()


def test_a_clock_that_is_years_off_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that believes it is 2001 is told to set its clock."""

    class Past(doctor.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(2001, 1, 1, tzinfo=tz)

    monkeypatch.setattr(doctor, "datetime", Past)
    assert failing(doctor.clock) == ("it is 2001-01-01 00:00 by this machine's clock", "set the clock")


def test_time_zones_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without time zones is told to install them."""
    import zoneinfo

    def missing(name: str) -> Any:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
    detail, todo = failing(doctor.clock)
    assert detail == "no time zones are installed"
    assert "pip install tzdata" in todo


def test_a_limit_that_is_not_delivered_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the task returns before any signal reached it, the line says that no limit was delivered."""
    monkeypatch.setattr(doctor, "_NAP", "def nap(job):\n    return None\n")
    assert "was not delivered" in failing(doctor.limits)[0]
