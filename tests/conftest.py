"""Fixtures that several suites use: real servers on loopback, owners in processes of their own, and counting them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from sandbox.services import programs
from sandbox.services.lab import Lab
from sandbox.services.stack import PREFIX, Stack

REPOSITORY = Path(__file__).parents[1]
PASSWORD = "s3cret/ with:signs@%"
QUOTED = "s3cret%2F%20with%3Asigns%40%25"


# Started in the background by a shell, or by nohup, we ignore SIGINT, and so would every process that a test starts and
# then interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _no_real_servers() -> None:
    """Whoever runs the tests may have real servers set; the tests start their own."""
    for name in ("SANDBOX_REDIS_URL", "SANDBOX_DATABASE_URL"):
        os.environ.pop(name, None)


def eventually(question: Callable[[], Any], seconds: float = 30) -> Any:
    """Ask until the answer is true, and return the last answer; a slow machine only makes it slower."""
    until = time.monotonic() + seconds
    while not (answer := question()) and time.monotonic() < until:
        time.sleep(0.02)
    return answer


@pytest.fixture(name="eventually", scope="session")
def _eventually() -> Callable[..., Any]:
    return eventually


class Traces:
    """What a lab leaves on the machine, found by the lab's folder: processes, sockets, the folder itself."""

    @staticmethod
    def processes(*folders: str, besides: tuple[int, ...] = ()) -> list[str]:
        """Processes that mention one of `folders` in their command line, environment or working folder."""
        found = []
        for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else []:
            if not entry.name.isdigit() or int(entry.name) in (os.getpid(), *besides):
                continue
            with contextlib.suppress(OSError):
                if (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z":
                    continue
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                text += os.fsencode(os.readlink(entry / "cwd"))
                if any(os.fsencode(folder) in text for folder in folders):
                    found.append(f"{entry.name} {(entry / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
        return found

    @staticmethod
    def sockets(*folders: str) -> list[str]:
        lines = Path("/proc/net/unix").read_text().splitlines() if Path("/proc/net/unix").exists() else []
        return [line for line in lines if any(folder in line for folder in folders)]

    @classmethod
    def left(cls, *folders: str, besides: tuple[int, ...] = ()) -> list[str]:
        there = [folder for folder in folders if Path(folder).exists()]
        return [*cls.processes(*folders, besides=besides), *cls.sockets(*folders), *there]


@pytest.fixture(scope="session")
def traces() -> type[Traces]:
    return Traces


@pytest.fixture
def lab_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short temporary folder of this test's own, where every lab it opens has its folder."""
    parent = programs.temporary_parent() / f"ae-test-{os.getpid()}-{time.monotonic_ns() % 10**6}"
    parent.mkdir(mode=0o755)
    monkeypatch.setenv("TMPDIR", str(parent))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield parent
    monkeypatch.setattr("tempfile.tempdir", None)
    shutil.rmtree(parent, ignore_errors=True)


def folders_in(parent: Path) -> list[str]:
    return sorted(str(path) for path in parent.glob(f"{PREFIX}*"))


@pytest.fixture(name="folders_in", scope="session")
def _folders_in() -> Callable[[Path], list[str]]:
    return folders_in


def environment(**more: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SANDBOX_", "COVERAGE", "COV_", "PYTEST_"))}
    if "SANDBOX_CACHE_DIR" in os.environ:
        env["SANDBOX_CACHE_DIR"] = os.environ["SANDBOX_CACHE_DIR"]
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    return env | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | more


@pytest.fixture(scope="session")
def script() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program's text in a Python process of its own."""

    def run(text: str, *argv: str, seconds: float = 120, **options: Any) -> subprocess.CompletedProcess[str]:
        options.setdefault("env", environment())
        return subprocess.run(
            [sys.executable, "-c", text, *argv], capture_output=True, text=True, timeout=seconds, cwd="/", **options
        )

    return run


@pytest.fixture
def owner() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a program's text in a Python process of its own and leave it running; ended after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str, *argv: str, **options: Any) -> subprocess.Popen[str]:
        options.setdefault("env", environment())
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", text, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        process.wait()


@dataclass(frozen=True, kw_only=True)
class RealServers:
    """A Redis and a PostgreSQL that several labs use at once, both with a password, on loopback."""

    stack: Stack
    redis_url: str
    database_url: str
    poor_url: str  # of a user who may not create databases
    redis_port: int
    database_port: int

    def redis(self, **options: Any) -> redis.Redis:
        return redis.Redis(port=self.redis_port, password=PASSWORD, decode_responses=True, **options)

    def admin(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.stack.postgres_dsn, port=self.database_port, autocommit=True)

    def databases(self) -> list[str]:
        with self.admin() as connection:
            rows = connection.execute("select datname from pg_database where datname like 'always%'").fetchall()
            return sorted(name for (name,) in rows)

    def keys(self) -> list[str]:
        with self.redis() as client:
            return sorted(client.keys())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_real_servers() -> RealServers:
    stack = Stack()
    try:
        redis_port, database_port = free_port(), free_port()
        hba = stack.folder / "hba.conf"
        hba.write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        hba.chmod(0o644)
        one, other = stack.redis(), stack.postgres()
        one["argv"] += ["--port", str(redis_port), "--bind", "127.0.0.1"]
        other["argv"] += ["-p", str(database_port), "-c", "listen_addresses=127.0.0.1", "-c", f"hba_file={hba}"]
        stack.open([one, other])
        stack.wait_ready("redis", "postgres")
        with redis.Redis(unix_socket_path=str(stack.redis_socket)) as client:
            client.config_set("requirepass", PASSWORD)
        with psycopg.connect(stack.postgres_dsn, port=database_port, autocommit=True) as admin:
            quoted = psycopg.sql.Literal(PASSWORD)
            for role in ("maker login createdb", "poor login"):
                admin.execute(psycopg.sql.SQL(f"create role {role} password {{}}").format(quoted))
            admin.execute("create database template0 with is_template true allow_connections false")
            admin.execute("create database maintenance")
    except BaseException:
        stack.close()
        raise
    at = f"127.0.0.1:{database_port}/maintenance"
    return RealServers(
        stack=stack,
        redis_url=f"redis://:{QUOTED}@127.0.0.1:{redis_port}/0",
        database_url=f"postgresql://maker:{QUOTED}@{at}",
        poor_url=f"postgresql://poor:{QUOTED}@{at}",
        redis_port=redis_port,
        database_port=database_port,
    )


@pytest.fixture(scope="module")
def real_servers() -> Iterator[RealServers]:
    servers = start_real_servers()
    yield servers
    servers.stack.close()


@pytest.fixture(scope="module")
def module_lab() -> Iterator[Lab]:
    """One private lab with a worker, for the tests of a module; each of them resets it first."""
    lab = Lab.open("tests", quiet=True)
    yield lab
    lab.close()


@pytest.fixture
def lab(module_lab: Lab) -> Lab:
    if not module_lab.stack.is_up("worker"):
        module_lab.worker()
    module_lab.reset()
    return module_lab
