"""How long a verdict takes: every exercise that is checked by machine, on a right and a wrong submission of the bank."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from sandbox.learn import bank, check, solutions
from sandbox.learn.catalog import Course
from sandbox.learn.checking import CHECKERS
from sandbox.services import Lab, code

CHECK_BAR = 1.0  # seconds, for 95 of 100 checks of an exercise that needs no worker


def check_seconds(times: int) -> dict[str, list[float]]:
    """Seconds of `times` checks one after the other, sorted, by "03.1 right" and "03.1 wrong".

    Without a pause: a person gives the next check's process time to start, this does not.
    """
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, Lab.open("bench", worker=False, quiet=True):
        for lesson in Course.load():
            for exercise in (one for one in bank.wanted(lesson) if one.id in CHECKERS):
                name, entries = solutions.find(lesson, exercise.id)[1], bank.read(lesson, exercise)
                for kind, entry in (("right", entries[0]), ("wrong", next(one for one in entries if one.says))):
                    function = getattr(code.load(code.write("submission", entry.text, Path(folder))), name)
                    took = []
                    for _ in range(times):
                        began = time.perf_counter()
                        check(exercise.id, function)
                        took.append(time.perf_counter() - began)
                    found[f"{exercise.id} {kind}"] = sorted(took)
        code.forget(Path(folder))
        sys.path[:] = [entry for entry in sys.path if entry != folder]
    return found


def p95(seconds: list[float]) -> float:
    """The 95th of 100, of sorted values; the last of fewer than twenty."""
    return seconds[min(len(seconds) - 1, int(len(seconds) * 0.95))]
