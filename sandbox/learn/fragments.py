"""Runs a piece of code in a process of its own and says what it printed: the key of a quiz is never typed in."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SECONDS = 10  # a fragment takes hundredths of a second; an endless loop in a filled gap must not hold the notebook
MEMORY_BYTES = 2 << 30
LONGEST = 4000  # characters of output that are kept


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
        out = Path(folder, "out")
        with open(out, "wb") as printed, open(Path(folder, "err"), "wb") as complained:
            process = subprocess.Popen(
                [sys.executable, "-X", "utf8", "-W", "ignore", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=complained,
                cwd=folder,
                env={**{k: v for k, v in os.environ.items() if not k.startswith("SANDBOX_")}, "PYTHONPATH": _path()},
                start_new_session=True,
                preexec_fn=_limits,
            )
            try:
                process.wait(SECONDS)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            finally:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        text = out.read_bytes()[:LONGEST].decode("utf-8", "replace").strip("\n").rstrip()
        if not ended:
            return Ran(kind="no end", printed=text)
        if process.returncode == 0:
            return Ran(kind="value", printed=text)
        error, line = _error(Path(folder, "err").read_text(encoding="utf-8", errors="replace"), str(file))
        return Ran(kind="error", printed=text, error=error or f"the process ended with {process.returncode}", line=line)


def _error(trace: str, file: str) -> tuple[str, int | None]:
    lines = [line for line in trace.strip().splitlines() if line.strip()]
    error = next((line for line in reversed(lines) if not line.startswith(" ")), "")
    line = None
    for text in lines:
        if text.strip().startswith(f'File "{file}", line '):
            line = int("".join(c for c in text.split(", line ")[1].split(",")[0] if c.isdigit()))
    name, colon, rest = error.partition(":")
    return name.rpartition(".")[2] + colon + rest[:300], line


def _path() -> str:
    """The sandbox can be imported also where it is not installed."""
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, 16 << 20))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
