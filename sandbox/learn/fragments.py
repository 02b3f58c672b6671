"""Runs a piece of code in a process of its own and says what it printed: the key of a quiz is never typed in."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

SECONDS = 10  # a fragment takes hundredths of a second; an endless loop in a filled gap must not hold the notebook
MEMORY_BYTES = 2 << 30
LONGEST = 4000  # characters of output that are kept
TOKEN = "ALWAYS_ENDS_FRAGMENT"  # in the environment of whatever a fragment starts, so that it is found
# Runs the file as the program, and writes down what error left it and at which line of the file. The error's own text,
# which may have many lines and say anything, is not searched for it.
DRIVER = """
def _drive(sys, file, left):
    import json, traceback

    def note(kind, error, trace):
        lines = [line for frame, line in traceback.walk_tb(trace) if frame.f_code.co_filename == file]
        if not lines and isinstance(error, SyntaxError) and error.filename == file:
            lines = [error.lineno]
        try:
            text = error.msg if isinstance(error, SyntaxError) else str(error)
        except Exception:
            text = ""
        with open(left, "w", encoding="utf-8", errors="replace") as noted:
            json.dump({"name": kind.__name__, "text": text, "line": lines[-1] if lines else None}, noted)

    sys.argv, sys.excepthook = [file], note
    with open(file, encoding="utf-8") as program:
        return compile(program.read(), file, "exec")

import sys as _sys
_code = _drive(_sys, *_sys.argv[1:])
__file__ = _sys.argv[0]
del _drive, _sys
exec(_code)
"""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a fragment ended. `kind` is "value" (it ran to its end), "error" or "no end"."""

    kind: str
    printed: str = ""  # what it printed, without the blank lines around it
    error: str = ""  # "NameError: name 'x' is not defined"
    line: int | None = None  # of the fragment, from 1, at which the error came out

    @property
    def outcome(self) -> str:
        """What a learner is asked for: what it prints, and the name of the error that leaves it, if one does."""
        left = {"error": self.error.partition(":")[0], "no end": "(it does not end)"}.get(self.kind, "")
        return "\n".join(filter(None, [self.printed, left]))


@lru_cache(maxsize=256)
def run(code: str) -> Ran:
    """Run `code` as a program. The same code is run once in a process: a fragment must not depend on chance or time."""
    with tempfile.TemporaryDirectory(prefix="always-ends-quiz-") as folder:
        file = Path(folder, "fragment.py")
        file.write_text(code + "\n", encoding="utf-8", errors="replace")
        out, left = Path(folder, "out"), Path(folder, "left")
        token = secrets.token_hex(8)
        env = {name: value for name, value in os.environ.items() if not name.startswith("SANDBOX_")}
        with open(out, "w+b") as printed:
            process = subprocess.Popen(
                [sys.executable, "-X", "utf8", "-W", "ignore", "-c", DRIVER, str(file), str(left)],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=env | {"PYTHONPATH": _path(), TOKEN: token},
                start_new_session=True,
                preexec_fn=_limits,
            )
            try:
                process.wait(SECONDS)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            finally:
                _end(process, token)
            # From the file that was opened: the fragment may have put anything in its place.
            printed.seek(0)
            text = printed.read(4 * LONGEST).decode("utf-8", "replace")[:LONGEST].strip("\n").rstrip()
        if not ended:
            return Ran(kind="no end", printed=text)
        if process.returncode == 0:
            return Ran(kind="value", printed=text)
        error, line = _error(left)
        return Ran(kind="error", printed=text, error=error or f"the process ended with {process.returncode}", line=line)


def _error(left: Path) -> tuple[str, int | None]:
    """The first line of the error that left the fragment, and its line; nothing for a process that just ended."""
    try:
        if not left.is_file() or left.is_symlink():
            return "", None
        found = json.loads(left.read_text(encoding="utf-8"))
        text = next(iter(str(found["text"]).splitlines()), "")[:300]
        return ": ".join(filter(None, [str(found["name"]), text])), found["line"]
    except (OSError, ValueError, KeyError, TypeError):
        return "", None


def _end(process: subprocess.Popen[bytes], token: str) -> None:
    """Kill the process, its group, and what it has started in sessions of their own."""
    import psutil

    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # Again until there is none: one of them may be starting another at this moment.
    for _ in range(100):
        found = [one for one in psutil.process_iter() if _has(one, token)]
        for one in found:
            with contextlib.suppress(psutil.Error):
                one.kill()
        if not found:
            return


def _has(process: psutil.Process, token: str) -> bool:
    import psutil

    try:
        return process.environ().get(TOKEN) == token and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False


def _path() -> str:
    """The sandbox can be imported also where it is not installed."""
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, 16 << 20))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
