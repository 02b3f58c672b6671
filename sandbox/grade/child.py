"""The process a learner's code runs in: ``python -m sandbox.grade.child FD``.

It holds no answers and no records. Whatever the code does to its job is a question over the wire; the grader answers,
and keeps the books. For each case a fork of this process loads the learner's files anew and calls the function once;
what the case has started ends with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

# Imported before the fork, so that no case pays for them: what a learner's file is likely to import.
import celery.exceptions
from billiard.exceptions import SoftTimeLimitExceeded

import sandbox.jobs
from sandbox.grade.wire import Wire
from sandbox.jobs.attempt import is_soft_limit, place
from sandbox.services import shop
from sandbox.services.sidecar import LINUX, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, descendants, prctl

_PRELOADED = (celery.exceptions, sandbox.jobs)
BURIAL_SECONDS = 3  # for what a case has left behind; a kill takes effect within milliseconds


class Remote:
    """Asks the grader. A reply may be a value, an error to raise, or the soft limit's signal."""

    def __init__(self, wire: Wire, file: str) -> None:
        self._wire, self._file = wire, file

    def ask(self, call: str, *args: Any) -> Any:
        self._wire.send({"call": call, "args": args, "where": place(sys._getframe(1), self._file)})
        reply = self._wire.receive()
        if reply is None:
            os._exit(3)
        if reply.get("signal"):
            signal.raise_signal(signal.SIGUSR1)
        if "error" in reply:
            raise ValueError(reply["error"])
        return reply.get("value")


def known_as(shown: type) -> Callable[[type], type]:
    """Give a stand-in the name of what it stands in for: an error that names it names a thing the learner knows."""

    def rename(cls: Any) -> type:
        for each in vars(cls).values():
            if isinstance(each, FunctionType):
                each.__qualname__ = f"{shown.__name__}.{each.__name__}"
        cls.__name__, cls.__qualname__, cls.__module__ = shown.__name__, shown.__qualname__, shown.__module__
        return cls  # type: ignore[no-any-return]

    return rename


@known_as(sandbox.jobs.Job)
class RemoteJob:
    """The job as the learner's function sees it: the methods of ``sandbox.jobs.Job``, answered by the grader."""

    def __init__(self, remote: Remote, job_id: str) -> None:
        self.id = job_id
        self.done = 0
        self.total: int | None = None
        self._remote = remote

    @property
    def db(self) -> Any:
        raise RuntimeError("this check runs without a database: call save_order(job, row), which has one.")

    def transaction(self) -> Any:
        return self.db

    def expect(self, total: int) -> None:
        self.total = total
        self._remote.ask("expect", total)

    def item_done(self, index: int) -> None:
        index = _whole("job.item_done", index)
        self.done += 1
        self._remote.ask("item_done", index)

    def item_failed(self, index: int, error: BaseException) -> None:
        index = _whole("job.item_failed", index)
        self._remote.ask("item_failed", index, f"{type(error).__name__}: {error}", is_soft_limit(error))

    def finish(self, state: str, why: str | None = None) -> bool:
        state = sandbox.jobs.State.parse(state)
        if why is not None and not isinstance(why, str):
            raise TypeError(
                f"the reason of a job's end is a text, for people to read, not a value of type {type(why).__name__}."
            )
        return bool(self._remote.ask("finish", str(state), why))

    def complete(self, why: str | None = None) -> bool:
        return self.finish("completed", why)

    def fail(self, why: str) -> bool:
        return self.finish("failed", why)

    def time_out(self, why: str) -> bool:
        return self.finish("timed_out", why)


def _whole(what: str, index: Any) -> int:
    if not isinstance(index, int):
        raise TypeError(
            f"{what} takes the row's place in the file, counted from 0, not a value of type {type(index).__name__}."
        )
    return int(index)


@known_as(list)
class Rows(list[Any]):
    """The rows of a file. Fetching the next one is a place at which the soft limit can land, too."""

    remote: Remote

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            self.remote.ask("next", index)
            yield super().__getitem__(index)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self[index] for index in range(*key.indices(len(self)))]
        if isinstance(key, int):
            self.remote.ask("next", key if key >= 0 else key + len(self))
        return super().__getitem__(key)

    def copy(self) -> list[Any]:
        return list(self)


def describe(error: BaseException | None, file: str) -> dict[str, Any]:
    """What came out of the function: a value (None), or an error and the learner's own line it passed."""
    if error is None:
        return {"kind": "value"}
    where: dict[str, Any] = {}
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == file:
            where = {"file": Path(file).name, "line": frame.lineno, "text": (frame.line or "").strip()}
    if isinstance(error, SyntaxError) and error.filename == file:
        where = {"file": Path(file).name, "line": error.lineno or 0, "text": (error.text or "").strip()}
    try:
        text = str(error)[:500]
    except BaseException:
        text = "(its message could not be read)"
    soft = isinstance(error, SoftTimeLimitExceeded)
    return {"kind": "error", "type": type(error).__name__, "message": text, "soft": soft, "where": where}


def heard(signum: int, frame: FrameType | None) -> None:
    raise SoftTimeLimitExceeded()


def run_case(wire: Wire, order: dict[str, Any]) -> None:
    """Load the learner's files in a folder of their own and call the function once."""
    error: BaseException | None = None
    value: Any = None
    with tempfile.TemporaryDirectory(prefix="case-") as folder:  # in the grader's own folder, which it removes
        os.chdir(folder)
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        for name, text in order["files"].items():
            Path(folder, f"{name}.py").write_text(text, encoding="utf-8")
        file = str(Path(folder, f"{order['module']}.py"))
        remote = Remote(wire, file)
        # The stand-in for the shop goes in before the learner's file imports it.
        shop.save_order = lambda job, row: remote.ask("save", _whole("save_order", row["line"]))
        signal.signal(signal.SIGUSR1, heard)
        try:
            function: Callable[..., Any] = getattr(importlib.import_module(order["module"]), order["function"])
            if "rows" in order:
                rows = Rows(order["rows"])
                rows.remote = remote
                value = function(RemoteJob(remote, order["job"]), rows)
            else:
                value = function(*order["args"])
        except BaseException as caught:
            error = caught
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        outcome = describe(error, file)
        if error is None:
            # Plain values only: the grader compares them, so an object that claims to equal anything is of no use.
            outcome["value"] = value if type(value) in (str, int, float, bool, type(None)) else None
            outcome["type"] = type(value).__name__
        wire.send({"over": outcome})


def bury() -> None:
    """Kill whatever a case has left behind, also what moved to a session of its own, and reap it."""
    give_up = time.monotonic() + BURIAL_SECONDS
    while LINUX and (left := descendants()) and time.monotonic() < give_up:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def orphaned(signum: int, frame: FrameType | None) -> None:
    """The grader is gone, and nobody else will end what runs here or remove what it wrote."""
    bury()
    leave(4)


def leave(code: int) -> None:
    """Remove the folder, unless whoever asked has done so, and end; the interpreter's own farewell takes longer than a case."""
    os.chdir("/")
    # From the environment: tempfile takes a lock, which a signal handler would wait for in vain.
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os._exit(code)


def main() -> None:
    # What a case orphans becomes a child of this process, and is found (Linux; elsewhere by its environment).
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, orphaned)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    gc.freeze()  # what was imported stays shared with the cases
    sock = socket.socket(fileno=int(sys.argv[1]))
    wire = Wire(sock)
    with contextlib.suppress(OSError):  # whoever started this may be gone before it is ready
        serve(wire)
    sys.stdout.flush()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leave(0)


def serve(wire: Wire) -> None:
    """Run a case in a fork for each order, until nobody asks any more."""
    wire.send({"ready": os.getpid()})
    while (order := wire.receive()) is not None:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with contextlib.suppress(BaseException):
                run_case(wire, order)
                code = 0
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        bury()
        wire.send({"ended": status})


if __name__ == "__main__":
    main()
