"""The process that owns a lab's servers and ends them all when the lab's owner ends, however it ends.

Run as a script with ``python -I -S sidecar.py FOLDER`` (standard library only, so that it is up in a few hundredths
of a second). It reads JSON lines on stdin and answers with JSON lines on stdout:

    {"do": "open", "folder": ..., "owner": pid, "programs": [...], "cleanup": [...]}   first, once
    {"do": "start", "program": {...}}     {"do": "stop", "name": ...}     {"do": "close"}

It ends on "close", when stdin closes, when its parent is no longer `owner` (a forked child of the owner may hold
stdin open), or on SIGTERM. Ending means: every descendant gone, the folder removed. A program is

    {"name", "argv", "env"?, "mark"?, "cwd"?, "log", "user"?, "copy"?: [from, to], "folders"?,
     "ready": {"path", "text"? or "connect"?}, "stop"?: signal name}

where `mark` is added to the environment, and `cleanup`, run when everything else has ended, is {"args", "env"}.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any

LINUX = sys.platform.startswith("linux")
# Whatever the owner ignores or is interrupted by is no business of the servers.
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CLEANUP_SECONDS = 20


def tell(**event: Any) -> None:
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(event).encode() + b"\n")


def prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def descendants(of: int | None = None) -> list[int]:
    """Every process below `of`, this one by default: with the subreaper set, also those that tried to get away."""
    parents: dict[int, list[int]] = {}
    if LINUX:
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    with open(f"/proc/{entry}/stat", "rb") as file:
                        after_name = file.read().rpartition(b")")[2].split()
                    if after_name[0] != b"Z":
                        parents.setdefault(int(after_name[1]), []).append(int(entry))
    else:
        listing = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True).stdout
        for line in listing.splitlines():
            pid, parent = map(int, line.split())
            parents.setdefault(parent, []).append(pid)
    found, queue = [], [of or os.getpid()]
    while queue:
        for pid in parents.get(queue.pop(), []):
            found.append(pid)
            queue.append(pid)
    return found


def kill(pid: int, number: int, group: bool = False) -> None:
    with contextlib.suppress(OSError):
        (os.killpg if group else os.kill)(pid, number)


class Program:
    """One program under this process: started, watched until ready, stopped."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec, self.name = spec, spec["name"]
        self.ready, self.began = False, time.monotonic()
        stop = getattr(signal, spec.get("stop", "SIGKILL"))
        user = spec.get("user")
        if "copy" in spec:
            source, target = spec["copy"]
            shutil.copytree(source, target)
            if user:
                for folder, _, files in os.walk(target):
                    for path in [folder, *(os.path.join(folder, f) for f in files)]:
                        os.chown(path, *user, follow_symlinks=False)
            os.chmod(target, 0o700)
        for folder in spec.get("folders", []):
            os.mkdir(folder, 0o700)
            if user:
                os.chown(folder, *user)
        with contextlib.suppress(OSError):
            os.unlink(spec["ready"]["path"])
        me = os.getpid()

        def in_child() -> None:
            # After the change of user, which would clear it. If we are gone already, do not start at all.
            prctl(PR_SET_PDEATHSIG, stop)
            # What we ignore is ours to ignore; an ignored signal would be inherited.
            for number in IGNORED:
                signal.signal(number, signal.SIG_DFL)
            if os.getppid() != me:
                os._exit(1)

        with open(spec["log"], "ab") as log:
            self.process = subprocess.Popen(
                spec["argv"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=spec.get("cwd"),
                env={**(spec.get("env") or os.environ), **spec.get("mark", {})},
                start_new_session=True,
                preexec_fn=in_child,
                user=user[0] if user else None,
                group=user[1] if user else None,
                extra_groups=[] if user else None,
            )
        tell(event="started", name=self.name, pid=self.process.pid)

    def is_ready(self) -> bool:
        want = self.spec["ready"]
        try:
            if want.get("connect"):
                # The file is there from bind(); who comes before listen() is turned away.
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.connect(want["path"])
                return True
            if "text" not in want:
                return os.path.exists(want["path"])
            with open(want["path"]) as file:
                return want["text"] in file.read()
        except OSError:
            return False

    def stop(self) -> None:
        """End the program and its process group. PostgreSQL gets a second to remove its shared memory first."""
        gentle = self.spec.get("stop", "SIGKILL")
        if gentle != "SIGKILL":
            kill(self.process.pid, getattr(signal, gentle))
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
        kill(self.process.pid, signal.SIGKILL, group=True)
        kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Sidecar:
    def __init__(self, opening: dict[str, Any]) -> None:
        self.folder, self.owner = opening["folder"], opening["owner"]
        self.cleanup = opening.get("cleanup")
        self.programs: dict[str, Program] = {}
        self.ending = False
        self.pending = b""
        # A signal, the death of a child above all, wakes the waiting below at once.
        self.awake, wake = os.pipe()
        os.set_blocking(self.awake, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "ending", True))
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        # Held for as long as we live: a folder whose lock is free has lost its sidecar.
        self.lock = open(os.path.join(self.folder, "lock"), "w")  # noqa: SIM115
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        for spec in opening["programs"]:
            self.start(spec)

    def start(self, spec: dict[str, Any]) -> None:
        try:
            self.programs[spec["name"]] = Program(spec)
        except Exception as error:
            tell(event="failed", name=spec["name"], code=None, why=f"{type(error).__name__}: {error}")

    def obey(self, order: dict[str, Any]) -> None:
        if order["do"] == "start":
            self.start(order["program"])
        elif order["do"] == "stop":
            program = self.programs.pop(order["name"], None)
            if program:
                program.stop()
            self.kill_strays()
            tell(event="stopped", name=order["name"])
        elif order["do"] == "close":
            self.ending = True

    def kill_strays(self) -> None:
        """Kill what a program that has ended left behind: whatever is below us and below none of the others."""
        give_up = time.monotonic() + 3
        while time.monotonic() < give_up:
            ours = [program.process.pid for program in self.programs.values()]
            keep = {pid for one in ours for pid in (one, *descendants(one))}
            strays = [pid for pid in descendants() if pid not in keep]
            for pid in strays:
                kill(pid, signal.SIGKILL)
            self.look()
            if not strays:
                break
            time.sleep(0.01)

    def look(self) -> None:
        """Report who became ready and who died; bury what was orphaned to us."""
        for name, program in list(self.programs.items()):
            code = program.process.poll()
            if code is not None:
                del self.programs[name]
                kill(program.process.pid, signal.SIGKILL, group=True)
                tell(event="exited" if program.ready else "failed", name=name, code=code)
            elif not program.ready and program.is_ready():
                program.ready = True
                tell(event="ready", name=name, seconds=round(time.monotonic() - program.began, 3))
        known = {program.process.pid for program in self.programs.values()}
        with contextlib.suppress(ChildProcessError):
            while True:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None or found.si_pid in known:
                    break
                os.waitpid(found.si_pid, 0)

    def serve(self) -> None:
        while not self.ending and os.getppid() == self.owner:
            waiting = any(not program.ready for program in self.programs.values())
            readable, _, _ = select.select([0, self.awake], [], [], 0.005 if waiting else 0.2)
            if self.awake in readable:
                os.read(self.awake, 1 << 12)
            if 0 in readable:
                data = os.read(0, 1 << 16)
                if not data:
                    break
                *lines, self.pending = (self.pending + data).split(b"\n")
                for line in lines:
                    self.obey(json.loads(line))
            self.look()

    def end(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # The gentle ones first: they need a moment, and the others have none to lose.
        for program in self.programs.values():
            if program.spec.get("stop", "SIGKILL") == "SIGKILL":
                kill(program.process.pid, signal.SIGKILL, group=True)
            else:
                kill(program.process.pid, getattr(signal, program.spec["stop"]))
        patience = time.monotonic() + 2
        gentle = [p for p in self.programs.values() if p.spec.get("stop", "SIGKILL") != "SIGKILL"]
        while gentle and time.monotonic() < patience:
            gentle = [p for p in gentle if p.process.poll() is None]
            time.sleep(0.005)
        give_up = time.monotonic() + 3
        while True:
            left = descendants()
            for pid in left:
                kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if not left or time.monotonic() > give_up:
                break
            time.sleep(0.01)
        if self.cleanup:
            with contextlib.suppress(Exception):
                subprocess.run(**self.cleanup, check=False, timeout=CLEANUP_SECONDS, stdin=subprocess.DEVNULL, stdout=2)
        shutil.rmtree(self.folder, ignore_errors=True)
        tell(event="closed")


def main() -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    first = b""
    while not first.endswith(b"\n"):
        data = os.read(0, 1 << 16)
        if not data:
            shutil.rmtree(sys.argv[1], ignore_errors=True)
            return
        first += data
    line, _, rest = first.partition(b"\n")
    opening = json.loads(line)
    if opening["do"] != "open":
        shutil.rmtree(sys.argv[1], ignore_errors=True)
        return
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    sidecar = Sidecar(opening)
    sidecar.pending = rest
    try:
        sidecar.serve()
    finally:
        sidecar.end()


if __name__ == "__main__":
    main()
