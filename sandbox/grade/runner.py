"""Runs a learner's function case by case in a child process, and keeps the books outside of it.

The child has its own process group, memory and time limits. It is told the input of a case, never the expected
result; everything the function does to its job arrives here as a call, and what is judged is what arrived.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from sandbox.errors import GraderFailed, NotSendable
from sandbox.grade.wire import Wire

PATIENCE_SECONDS = 10  # for one case, whose work takes hundredths of a second
MEMORY_BYTES = 2 << 30  # address space; numpy and psycopg alone map several hundred MB
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
        name = getattr(function, "__name__", None)
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        file = Path(getattr(module, "__file__", None) or "")
        work = file.parent.name == "work"
        if not callable(function) or name is None or not work or not file.is_file() or not hasattr(module, name):
            raise NotSendable(
                f"{name or function!r} does not come from a worker file. Begin its cell with `%%worker_file NAME`, run the "
                "cell, and hand over the function's name without brackets."
            )
        files = {path.stem: path.read_text(encoding="utf-8") for path in file.parent.glob("*.py")}
        return cls(files=files, module=file.stem, function=name)


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
        self.printed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        env = {k: v for k, v in os.environ.items() if not k.startswith("SANDBOX_")}
        env |= {TOKEN: self.token, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}

        def limits() -> None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with contextlib.suppress(ValueError, OSError):
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
                cwd=tempfile.gettempdir(),
                preexec_fn=limits,
            )
        self.wire = Wire(ours)
        ours.settimeout(60)
        try:
            ready = self.wire.receive()
        except (TimeoutError, ValueError, OSError):
            ready = None
        if ready is None:
            said = self.output()
            self.end()
            raise GraderFailed(f"the process for your code did not start; this is not your fault. {said}")

    def output(self) -> str:
        self.printed.seek(0)
        text = self.printed.read()[-4000:].decode(errors="replace")
        self.printed.seek(0)
        self.printed.truncate()
        return text

    def end(self) -> None:
        """Kill the child and whatever came from it, also what moved to a session of its own."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.wire.sock.close()
        self.printed.close()
        mark = {TOKEN: self.token}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if mark.items() <= process.environ().items():
                    process.kill()


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
    child: _Child | None = None
    try:
        for order, answer in zip(orders, answers, strict=True):
            if child is None:
                child = _Child()
            fields = {"files": submission.files, "module": submission.module, "function": submission.function}
            child.wire.send(order | fields)
            outcome, alive = _one_case(child, answer, PATIENCE_SECONDS)
            outcomes.append(outcome)
            if not alive:
                child.end()
                child = None
    finally:
        if child is not None:
            child.end()
    return outcomes


def _one_case(child: _Child, answer: Answer, patience: float) -> tuple[Outcome, bool]:
    until = time.monotonic() + patience
    over: dict[str, Any] | None = None
    try:
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
            if over is None and isinstance(message.get("over"), dict):
                over = message["over"]
            elif over is None and "call" in message:
                reply = answer(_call(message))
                child.wire.send({k: v for k, v in vars(reply).items() if v})
    except TimeoutError:
        return Outcome(kind="no end", printed=child.output()), False
    except (ValueError, KeyError, TypeError, OSError):
        # Nonsense on the wire can only come from the code under test.
        return Outcome(kind="died", message="it wrote to the grader's own channel", printed=child.output()), False
    printed = child.output()
    if over is None:
        return Outcome(kind="died", printed=printed), True
    known = {k: over[k] for k in ("kind", "type", "message", "soft", "value", "where") if k in over}
    return Outcome(**known, printed=printed), True


def _call(message: dict[str, Any]) -> Call:
    args, where = message["args"], message.get("where")
    if not isinstance(args, list) or not isinstance(message["call"], str):
        raise ValueError("not a call")
    return Call(name=message["call"], args=args, where=where if isinstance(where, dict) else {})
