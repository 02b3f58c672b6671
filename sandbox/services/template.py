"""The prepared PostgreSQL data directory that every lab gets a copy of.

Copying what initdb makes (39 MB, 970 files) takes longer than making it. So it is made once and slimmed: 1 MB WAL
segments, no ``postgres`` and ``template0`` databases, everything rewritten by VACUUM FULL, the job table in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from sandbox.errors import StackFailed
from sandbox.jobs.queries import schema
from sandbox.services.programs import Postgres, cache_folder, find_postgres, reachable, service_user

DATABASE = "sandbox"
ROLE = "sandbox"
# Raise it when the way of making the directory changes, so that the old one is not used again.
EDITION = 4

_SLIM = """
update pg_database set datistemplate = false where datname = 'template0';
drop database template0;
drop database postgres;
vacuum full freeze analyze;
checkpoint;
"""

SETTINGS = {
    "listen_addresses": "''",
    "shared_buffers": "32MB",
    "max_connections": "60",
    # The sandbox may forget everything at a power cut; a killed server still recovers.
    "fsync": "off",
    # Segments in the data directory go away with it, whatever kills the server.
    "dynamic_shared_memory_type": "mmap",
    "max_wal_size": "512MB",
    "min_wal_size": "8MB",
    "wal_level": "replica",
    "track_io_timing": "on",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "log_min_messages": "warning",
}


def programs_folder(postgres: Postgres) -> Path:
    """The folder to run PostgreSQL's programs from.

    As root the installation may lie where the server's user can not go (a clone under /root). Then the programs are
    copied once into the cache; the permissions of the original folders are nobody's business.
    """
    if reachable(postgres.bin / "postgres", service_user()):
        return postgres.bin
    target = cache_folder() / f"postgresql-{postgres.version}"
    if not (target / "bin/postgres").is_file():
        with _one_at_a_time():
            if not (target / "bin/postgres").is_file():
                fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
                shutil.copytree(postgres.bin.parent, fresh / "pg", symlinks=True)
                for folder, _, _ in os.walk(fresh / "pg"):
                    os.chmod(folder, 0o755)
                shutil.rmtree(target, ignore_errors=True)
                (fresh / "pg").rename(target)
                fresh.rmdir()
    return target / "bin"


def template(say: Callable[[str], None] = lambda _: None) -> Path:
    """The prepared data directory, made now if it is not there yet. `say` gets a line when it has to be made."""
    postgres = find_postgres()
    target = _template_path(postgres)
    if not target.is_dir():
        with _one_at_a_time():
            if not target.is_dir():
                say(f"preparing a PostgreSQL {postgres.version} data directory (once, a few seconds)")
                _make(postgres, target)
    return target


def prepared() -> bool:
    """Whether the next lab finds its data directory ready to be copied."""
    return _template_path(find_postgres()).is_dir()


def _template_path(postgres: Postgres) -> Path:
    key = hashlib.sha256(repr((EDITION, schema(), SETTINGS, service_user().uid)).encode()).hexdigest()[:10]
    return cache_folder() / f"data-{postgres.version}-{key}"


class _one_at_a_time:
    """One process prepares; the others wait and find it done."""

    def __enter__(self) -> None:
        self._file = open(cache_folder() / ".lock", "w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _make(postgres: Postgres, target: Path) -> None:
    user = service_user()
    programs = programs_folder(postgres)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    data = fresh / "data"
    try:
        if user.switched:
            os.chown(fresh, user.uid, user.gid)
        env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}

        def run(*argv: str | Path, text: str | None = None) -> None:
            done = subprocess.run(
                [str(a) for a in argv],
                input=text,
                capture_output=True,
                text=True,
                timeout=180,
                cwd=fresh,
                env=env,
                user=user.uid if user.switched else None,
                group=user.gid if user.switched else None,
                extra_groups=[] if user.switched else None,
            )
            failed = done.returncode != 0 or "ERROR" in done.stderr or "FATAL" in done.stderr
            if failed:
                raise StackFailed(f"{Path(argv[0]).name} failed: {(done.stderr or done.stdout).strip()[-800:]}")

        run(
            *(programs / "initdb", "-D", data, "-U", ROLE, "--auth=trust", "--encoding=UTF8", "--locale=C"),
            *("--no-sync", "--no-instructions", "--wal-segsize=1"),
        )
        with open(data / "postgresql.conf", "a") as conf:
            conf.writelines(f"{name} = {value}\n" for name, value in SETTINGS.items())
        # A single-user server needs no socket, no port and no waiting; it reads one statement a line with -j off.
        # The smallest WAL keeps the fewest segments behind.
        small = ("-c", "exit_on_error=true", "-c", "min_wal_size=2MB", "-c", "max_wal_size=2MB")
        single = (programs / "postgres", "--single", "-D", data, "-F", *small)
        run(*single, "postgres", text=f"create database {DATABASE};\n")
        run(*single, "-j", DATABASE, text=f"{schema()}\n\n")
        for database, statements in ((DATABASE, _SLIM), ("template1", "vacuum full freeze;\ncheckpoint;")):
            lines = [line for line in statements.strip().splitlines() if line]
            run(*single, database, text="\n".join(lines) + "\n")
        data.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def clear_cache() -> list[Path]:
    """Remove every prepared file; returns what was removed. The next lab prepares anew."""
    removed = []
    for path in sorted(cache_folder().glob("*")):
        if path.name.startswith(("data-", "postgresql-", ".new-")) and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed
