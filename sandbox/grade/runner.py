"""Runs a learner's function case by case in a child process, and keeps the books outside of it.

The child has its own process group, memory and time limits. It is told the input of a case, never the expected
result; everything the function does to its job arrives here as a call, and what is judged is what arrived.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import psutil

from sandbox.errors import GraderFailed, NotSendable
from sandbox.grade.wire import Wire
from sandbox.services import code

PATIENCE_SECONDS = 10  # for one case, whose work takes hundredths of a second
# Half as long after each case that did not end, so that ten of them are over before nbgrader's cell timeout of 60 s.
LEAST_PATIENCE = 0.2  # of PATIENCE_SECONDS
MEMORY_BYTES = 2 << 30  # address space; numpy and psycopg alone map several hundred MB
FILE_BYTES = 64 << 20  # a loop that prints for ten seconds would fill a disk
TOKEN = "SANDBOX_GRADE_TOKEN"


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A learner's worker files and the function to call."""

    files: dict[str, str]  # module name -> text
    module: str
    function: str

    @classmethod
    def of(cls, function: Any) -> Submission:
        """From a function of a worker file. Raises NotSendable, with what to do, for anything else."""
        file = code.file_of(function)
        files = {}
        for path in file.parent.glob("*.py"):
            try:
                files[path.stem] = path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, OSError) as error:
                raise NotSendable(
                    f"the worker file {path.name} can not be read as text ({error}): run its `%%worker_file` cell again."
                ) from None
        return cls(files=files, module=file.stem, function=function.__name__)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One thing the function did: `name` is a method of the job, "save" or "next"."""

    name: str
    args: list[Any]
    where: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the function gets for it: a value, an error, or the soft limit."""

    value: Any = None
    error: str | None = None
    signal: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one case ended. `kind` is "value", "error", "died" or "no end"."""

    kind: str
    type: str = ""
    message: str = ""
    soft: bool = False
    value: Any = None
    where: dict[str, Any] = field(default_factory=dict)
    printed: str = ""


Answer = Callable[[Call], Reply]


class _Child:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.token = secrets.token_hex(8)
        self.folder = tempfile.mkdtemp(prefix="always-ends-grade-")
        self.printed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        env = {k: v for k, v in os.environ.items() if not k.startswith("SANDBOX_")}
        env |= {TOKEN: self.token, "TMPDIR": self.folder, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}

        def limits() -> None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sandbox.grade.child", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self.printed,
                stderr=self.printed,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=env,
                cwd=self.folder,
                preexec_fn=limits,
            )
        self.wire = Wire(ours)

    def wait_ready(self) -> _Child:
        """Once it takes cases. Raises GraderFailed, with what it printed, and ends it."""
        self.wire.sock.settimeout(60)
        try:
            ready = self.wire.receive()
        except (TimeoutError, ValueError, OSError):
            ready = None
        if ready is None:
            said = self.output()
            self.end()
            raise GraderFailed(f"the process for your code did not start; this is not your fault. {said}")
        return self

    def output(self) -> str:
        self.printed.seek(0)
        text = self.printed.read()[-4000:].decode(errors="replace")
        self.printed.seek(0)
        self.printed.truncate()
        return text

    def end(self) -> None:
        """Kill the child and whatever came from it, also what moved to a session of its own."""
        until = time.monotonic() + 3
        # The child itself last: what its cases have orphaned is below it for as long as it lives (Linux).
        while (family := self._family()) and time.monotonic() < until:
            for process in family:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(0.002)
        self.wire.sock.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)  # it reads the end of the wire, buries what is left, and leaves
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.printed.close()
        mark = {TOKEN: self.token}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if mark.items() <= process.environ().items():
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _family(self) -> list[psutil.Process]:
        try:
            return [p for p in psutil.Process(self.process.pid).children(recursive=True) if _alive(p)]
        except psutil.Error:
            return []


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


# One that waits for the next run, and the process it belongs to: a fork must not use its parent's.
_spare: tuple[int, _Child] | None = None


def start_spare() -> None:
    """Start the child of the next run ahead of time, without waiting for it: what takes long is what it imports.

    Call it in a thread that lives as long as the process, because the child ends with the thread that started it. It
    ends with its process, however that ends.
    """
    global _spare
    if _spare is not None and _spare[0] == os.getpid():
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        # One that does not start will be missed, and reported, by the run that needs it.
        _spare = (os.getpid(), _Child())


def _new_child() -> _Child:
    global _spare
    waiting, _spare = _spare, None
    if waiting is not None and waiting[0] == os.getpid():
        with contextlib.suppress(GraderFailed):
            return waiting[1].wait_ready()
    return _Child().wait_ready()


@atexit.register
def _end_spare() -> None:
    if _spare is not None and _spare[0] == os.getpid():
        _spare[1].end()


_kept: list[_Child] | None = None  # within `one_child`: the one that the next run takes


@contextlib.contextmanager
def one_child() -> Iterator[None]:
    """Within it runs share one child, as long as it is sound: to start one takes longer than ten cases."""
    global _kept
    outer, _kept = _kept, []
    try:
        yield
    finally:
        ours, _kept = _kept, outer
        for child in ours:
            child.end()


def run_cases(
    submission: Submission,
    orders: list[dict[str, Any]],
    answers: list[Answer],
) -> list[Outcome]:
    """Run the function once for each order; ``answers[i]`` replies to what it does in case i.

    An order is ``{"job": id, "rows": [...]}`` or ``{"args": [...]}``. A case that does not end within
    ``PATIENCE_SECONDS`` is killed and is a "no end"; the others still run. Raises GraderFailed when no child starts.
    """
    outcomes: list[Outcome] = []
    child = _kept.pop() if _kept else None
    sound = False
    fields = {"files": submission.files, "module": submission.module, "function": submission.function}
    patience, least = float(PATIENCE_SECONDS), PATIENCE_SECONDS * LEAST_PATIENCE
    try:
        for order, answer in zip(orders, answers, strict=True):
            child = child or _new_child()
            outcome, alive = _one_case(child, order | fields, answer, patience)
            outcomes.append(outcome)
            if outcome.kind == "no end":
                patience = max(least, patience / 2)
            if not alive:
                child.end()
                child = None
        sound = True
    finally:
        if child is not None and sound and _kept is not None:
            _kept.append(child)
        elif child is not None:
            child.end()
    return outcomes


def _one_case(child: _Child, order: dict[str, Any], answer: Answer, patience: float) -> tuple[Outcome, bool]:
    """What became of one case, and whether the child can be used for another."""
    until = time.monotonic() + patience
    over: dict[str, Any] | None = None
    try:
        child.wire.sock.settimeout(patience)
        child.wire.send(order)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            child.wire.sock.settimeout(left)
            message = child.wire.receive()
            if message is None:
                return Outcome(kind="died", printed=child.output()), False
            if "ended" in message:
                break
            if over is None and "over" in message:
                over = _over(message["over"])
            elif over is None and "call" in message:
                reply = answer(_call(message))
                child.wire.send({k: v for k, v in vars(reply).items() if v})
    except TimeoutError:
        return Outcome(kind="no end", printed=child.output()), False
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, OSError):
        # Nonsense on the wire can only come from the code under test.
        return Outcome(kind="died", message="it wrote to the grader's own channel", printed=child.output()), False
    printed = child.output()
    if over is None:
        return Outcome(kind="died", printed=printed), True
    return Outcome(**over, printed=printed), True


def _call(message: dict[str, Any]) -> Call:
    name, args = message["call"], message["args"]
    if not isinstance(name, str) or not isinstance(args, list):
        raise ValueError("not a call")
    return Call(name=name, args=[_text(arg) if isinstance(arg, str) else arg for arg in args], where=_where(message))


def _over(over: Any) -> dict[str, Any]:
    """The fields of an outcome; raises ValueError for what `describe` in the child can not have written."""
    if not isinstance(over, dict) or over.get("kind") not in ("value", "error"):
        raise ValueError("not an outcome")
    value = over.get("value")
    if not isinstance(value, str | int | float | None):
        raise ValueError("not a plain value")
    return {
        "kind": over["kind"],
        "type": _text(str(over.get("type", ""))),
        "message": _text(str(over.get("message", ""))),
        "soft": over.get("soft") is True,
        "value": _text(value) if isinstance(value, str) else value,
        "where": _where(over),
    }


def _where(message: dict[str, Any]) -> dict[str, Any]:
    """A line of the learner's, or nothing."""
    where = message.get("where")
    if not isinstance(where, dict) or not isinstance(where.get("line"), int):
        return {}
    return {"line": where["line"], **{key: _text(str(where.get(key, ""))) for key in ("file", "text")}}


def _text(text: str) -> str:
    """Half a surrogate pair is a text that can neither be printed nor stored."""
    return text.encode("utf-8", "replace").decode()
