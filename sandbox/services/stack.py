"""A lab's servers as its owner sees them: a folder, a sidecar, and what the sidecar says."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psycopg.conninfo import make_conninfo

from sandbox.errors import StackFailed
from sandbox.services import programs, sidecar
from sandbox.services.template import DATABASE, ROLE, programs_folder, template

PREFIX = "always-ends-"


class Stack:
    """Starts programs through a sidecar and knows which of them are up.

    Everything lives in one short folder, which the sidecar removes at the end. `cleanup` (``args`` and ``env``), set
    before ``open``, is a program that the sidecar runs when everything else has ended.
    """

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        sweep()
        self.id = secrets.token_hex(4)
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=programs.temporary_parent()))
        if programs.service_user().switched:
            self.folder.chmod(0o711)  # ours; the server's user passes through it to its own folders
        self.owner = os.getpid()
        # In the environment of every program and of what they start; how they are known when the sidecar is gone.
        self._mark = f"SANDBOX_STACK={self.id}".encode()
        self._say = say
        self.cleanup: dict[str, Any] | None = None
        self._changed = threading.Condition()
        self._state: dict[str, str] = {}
        self._pids: dict[str, int] = {}
        self._why: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.closed = False
        self._opened = False
        # First of all: whatever kills us from here on, the sidecar removes the folder. It starts while we prepare.
        with open(self.log("sidecar"), "wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", sidecar.__file__, str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    # -- the programs ---------------------------------------------------------------------------------------------

    @property
    def redis_socket(self) -> Path:
        return self.folder / "redis.sock"

    @property
    def postgres_dsn(self) -> str:
        return make_conninfo(host=str(self.folder / "pg"), dbname=DATABASE, user=ROLE)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def redis(self) -> dict[str, Any]:
        argv = [programs.find_redis(), "--port", "0", "--unixsocket", self.redis_socket, "--unixsocketperm", "700"]
        argv += ["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", self.folder]
        return self._program("redis", argv, ready={"path": str(self.redis_socket), "connect": True})

    def postgres(self) -> dict[str, Any]:
        found = programs.find_postgres()
        data, sockets = self.folder / "data", self.folder / "pg"
        argv = [programs_folder(found) / "postgres", "-D", data, "-k", sockets, "-c", "unix_socket_permissions=0700"]
        user = programs.service_user()
        spec = self._program("postgres", argv, ready={"path": str(data / "postmaster.pid"), "text": "ready"})
        return spec | {
            "copy": [str(template(self._say)), str(data)],
            "folders": [str(sockets)],
            "user": [user.uid, user.gid] if user.switched else None,
            # SIGQUIT is PostgreSQL's "immediate shutdown": a tenth of a second, and no shared memory left behind.
            "stop": "SIGQUIT",
            "env": {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
            "cwd": "/",
        }

    def _program(self, name: str, argv: list[Any], *, ready: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "argv": [str(a) for a in argv],
            "log": str(self.log(name)),
            "ready": ready,
            "mark": {"SANDBOX_STACK": self.id},
        }

    # -- the sidecar ----------------------------------------------------------------------------------------------

    def open(self, specs: list[dict[str, Any]]) -> None:
        """Start every program in `specs` at once. Does not wait."""
        for spec in specs:
            self._state[spec["name"]] = "starting"
        opening = {"do": "open", "folder": str(self.folder), "owner": self.owner, "programs": specs}
        self._opened = True
        self._order(opening | {"cleanup": self.cleanup})
        threading.Thread(target=self._listen, name="sandbox-sidecar", daemon=True).start()

    def start(self, spec: dict[str, Any]) -> None:
        """Start one more program. Does not wait."""
        with self._changed:
            self._state[spec["name"]] = "starting"
        self._order({"do": "start", "program": spec})

    def stop(self, name: str) -> None:
        """Stop one program, by force, and wait until it and its process group are gone."""
        if self._state.get(name) in (None, "stopped"):
            return
        self._order({"do": "stop", "name": name})
        self._wait(lambda: self._state.get(name) == "stopped", 15, f"stopping {name}")

    def wait_ready(self, *names: str, seconds: float = 60) -> None:
        """Wait until all are up; raises StackFailed, with the tail of the log, when one is not."""

        def over() -> bool:
            states = [self._state.get(name) for name in names]
            return all(state == "ready" for state in states) or any(s in ("failed", "exited") for s in states)

        self._wait(over, seconds, f"starting {', '.join(names)}")
        for name in names:
            if self._state.get(name) in ("failed", "exited"):
                raise StackFailed(self.describe_failure(name))

    def describe_failure(self, name: str) -> str:
        why = self._why.get(name, "it ended")
        tail = "\n".join(self.tail(name, 12))
        return f"{name} is not running: {why}.\nThe end of its log:\n{tail or '(empty)'}"

    def tail(self, name: str, lines: int) -> list[str]:
        try:
            return self.log(name).read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    def is_up(self, name: str) -> bool:
        return self._state.get(name) == "ready"

    def require_up(self, *names: str, within: float = 0) -> None:
        """Raise StackFailed, with the tail of its log, if one of these was started here and has died.

        `within` is how many seconds a death that has just happened may take to become known.
        """

        def dead() -> list[str]:
            return [name for name in names if self._state.get(name) in ("failed", "exited")]

        with self._changed:
            self._changed.wait_for(dead, within)
        for name in dead():
            raise StackFailed(self.describe_failure(name))

    def pid(self, name: str) -> int | None:
        return self._pids.get(name)

    def close(self) -> None:
        """End everything and wait until it is gone. A forked child that inherited this object does nothing."""
        if self.closed or os.getpid() != self.owner:
            return
        self.closed = True
        with contextlib.suppress(StackFailed):
            self._order({"do": "close"})
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10 + (sidecar.CLEANUP_SECONDS if self.cleanup else 0))
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout if not self._opened else None):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        if self.folder.exists():
            self._bury()

    def _order(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        if os.getpid() != self.owner:
            raise StackFailed("this lab belongs to another process; open one of your own with Lab.open().")
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise StackFailed("the lab's servers are gone; open it again with Lab.open().") from None

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as told:
            for line in told:
                with contextlib.suppress(ValueError, KeyError):
                    self._heard(json.loads(line))
        # A forked child has no such thread, and an owner that closes does it itself.
        if not self.closed:
            self._bury()
        with self._changed:
            for name, state in self._state.items():
                if state in ("starting", "ready"):
                    self._state[name] = "exited"
                    self._why[name] = "the process that looks after it was killed"
            self._changed.notify_all()

    def _heard(self, event: dict[str, Any]) -> None:
        with self._changed:
            name, kind = event.get("name"), event["event"]
            if kind == "closed" or name is None:
                return
            if kind == "started":
                self._pids[name] = event["pid"]
            else:
                self._state[name] = kind
            if kind == "ready":
                self.seconds[name] = event["seconds"]
            elif kind in ("failed", "exited"):
                code = event.get("code") or 0
                self._why[name] = event.get("why") or (f"killed by signal {-code}" if code < 0 else f"exit code {code}")
            self._changed.notify_all()

    def _wait(self, over: Callable[[], bool], seconds: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(over, seconds):
                raise StackFailed(f"{what} took more than {seconds:g} s; `course doctor` looks for the reason.")

    def _bury(self) -> None:
        """The sidecar was killed: do its last work, as far as an owner can."""
        until = time.monotonic() + 3
        while pids := self._survivors():
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        if self.cleanup:
            with contextlib.suppress(Exception), open(os.devnull, "w") as nowhere:
                subprocess.run(
                    **self.cleanup,
                    check=False,
                    timeout=sidecar.CLEANUP_SECONDS,
                    stdin=nowhere,
                    stdout=nowhere,
                    stderr=nowhere,
                )
        shutil.rmtree(self.folder, ignore_errors=True)

    def _survivors(self) -> list[int]:
        """Processes of this lab that live without a sidecar: of its groups, or started by them with its environment."""
        found = []
        with contextlib.suppress(OSError):
            for entry in os.listdir("/proc"):
                if entry.isdigit() and int(entry) != os.getpid():
                    with contextlib.suppress(OSError, ValueError, IndexError):
                        fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
                        mine = int(fields[2]) in self._pids.values()
                        environ = b"" if mine else Path(f"/proc/{entry}/environ").read_bytes()
                        if fields[0] != b"Z" and (mine or self._mark in environ):
                            found.append(int(entry))
            return found
        for pid in self._pids.values():  # no /proc: as far as their process groups reach
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        return []


def stale() -> list[Path]:
    """Folders of labs whose sidecar is gone without having removed them."""
    found = []
    # As mkdtemp names them; whatever else begins like this, a grader's folder for one, is not ours to remove.
    for folder in programs.temporary_parent().glob(f"{PREFIX}{'?' * 8}"):
        with contextlib.suppress(OSError):
            # One that is younger may be about to get its sidecar.
            if folder.stat().st_uid != os.getuid() or time.time() - folder.stat().st_mtime < 60:
                continue
            # Without a lock file its owner died before it had a sidecar.
            if (folder / "lock").exists():
                with open(folder / "lock") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append(folder)
    return found


def sweep() -> list[Path]:
    """Remove stale folders; returns them."""
    found = stale()
    for folder in found:
        shutil.rmtree(folder, ignore_errors=True)
    return found
