"""The process that owns the stack of ``course up``: ``python -m sandbox.cli.keeper STATE_FILE``.

A lab ends with the process that opened it, so the stack needs an owner that outlives the terminal. It writes the state
file when all is ready, and removes it when it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from sandbox.services import Lab


class _Ended(Exception):
    pass


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise _Ended


def main() -> None:
    path = Path(sys.argv[1])
    signal.signal(signal.SIGTERM, _end)
    # The terminal it was started from may close.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    import psutil

    from sandbox.learn import notebooks
    from sandbox.services import Lab

    lab = Lab.open("up")
    try:
        state = {
            "pid": os.getpid(),
            "created": psutil.Process().create_time(),
            "folder": str(lab.stack.folder),
            "worker_log": str(lab.stack.log("worker")),
            "dsn": lab.servers.dsn,
            "described": repr(lab),
            **_addresses(lab),
        }
        notebooks.replace(path, json.dumps(state))
        path.chmod(0o600)  # a real server's address may hold a password
        while True:
            time.sleep(1)
            if not _is_mine(path):
                raise _Ended  # the folder was deleted, or the file is another's: nobody could end us any more
            for name in ("redis", "postgres", "worker"):
                # Gone for good, for example with the temporary folder: a stack that does not work is not up.
                if lab.stack.pid(name) is not None and not lab.stack.is_up(name):
                    print(lab.stack.describe_failure(name), flush=True)
                    raise _Ended
    except _Ended:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    finally:
        if _is_mine(path):
            with contextlib.suppress(OSError):
                path.unlink()
        lab.close()


def _is_mine(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["pid"] == os.getpid())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _addresses(lab: Lab) -> dict[str, str | None]:
    """What a person sets or types to reach this stack; None for a server that is not ours."""
    redis_url = os.environ.get("SANDBOX_REDIS_URL") or f"unix://{quote(str(lab.stack.redis_socket))}?db=0"
    database_url = os.environ.get("SANDBOX_DATABASE_URL")
    if not database_url:
        parts = dict(part.split("=", 1) for part in lab.stack.postgres_dsn.split())
        user, database = quote(parts["user"]), quote(parts["dbname"])
        database_url = f"postgresql://{user}@/{database}?{urlencode({'host': parts['host']})}"
    socket = None if os.environ.get("SANDBOX_REDIS_URL") else str(lab.stack.redis_socket)
    return {"redis_url": redis_url, "database_url": database_url, "redis_socket": socket, "prefix": lab.servers.prefix}


if __name__ == "__main__":
    try:
        main()
    except _Ended:
        sys.exit(0)
    except Exception as error:
        print(error if type(error).__module__ == "sandbox.errors" else repr(error), flush=True)
        sys.exit(1)
