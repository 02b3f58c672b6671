"""Runs lessons and solutions, several at once, each in a process of its own, and judges them."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import notebooks
from sandbox.learn.catalog import Lesson
from sandbox.learn.processes import wait_until_gone
from sandbox.learn.progress import ENV, OFF
from sandbox.learn.run_one import TAG

KINDS = ("lesson", "solution")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# A lab whose kernel was killed is gone within half a second; a machine under load gets ten times that.
GONE_SECONDS = 8.0


@dataclass(frozen=True, kw_only=True)
class Target:
    """A notebook to run."""

    name: str
    kind: str  # "lesson" or "solution"
    path: Path
    kept: Path  # where the executed notebook goes

    @property
    def log(self) -> Path:
        return self.kept.with_suffix(".log")


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of one notebook."""

    target: Target
    passed: bool
    seconds: float
    cells: int  # code cells of the notebook
    jobs: dict[str, int]  # jobs by state, over all labs the notebook opened
    error: str | None = None
    source: str | None = None  # of the cell that failed
    traceback: str | None = None

    def as_json(self) -> dict[str, Any]:
        data = {
            "name": self.target.name,
            "kind": self.target.kind,
            "passed": self.passed,
            "seconds": round(self.seconds, 2),
            "cells": self.cells,
            "jobs": self.jobs,
        }
        return data if self.passed else data | {"error": self.error}


@dataclass(kw_only=True)
class Progress:
    """How far one notebook is; handed to whoever draws it."""

    target: Target
    cells: int = 0
    cell: int = 0
    result: Result | None = None


@dataclass(kw_only=True)
class _Run:
    progress: Progress
    process: subprocess.Popen[bytes]
    pipe: int
    began: float
    pending: bytes = b""
    source: str | None = None
    ours: bool = False
    done: dict[str, Any] | None = field(default=None)


def targets(lessons: Sequence[Lesson], only: str | None, build: Path) -> list[Target]:
    """The notebooks of `lessons`: the lesson, and the solution where there are exercises."""
    found = []
    for lesson in lessons:
        for kind, path in (("lesson", lesson.lesson_path), ("solution", lesson.solution_path)):
            if (kind == "lesson" or lesson.exercises) and only in (None, kind, f"{kind}s"):
                kept = build / f"{kind}s" / f"{lesson.name}.ipynb"
                found.append(Target(name=lesson.name, kind=kind, path=path, kept=kept))
    return found


def parameter_names(path: Path) -> list[str]:
    """The names that the notebook's cell tagged ``parameters`` gives a value to; none if there is no such cell."""
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "code" and "parameters" in notebooks.tags(cell):
            try:
                body = ast.parse(cell.source).body
            except SyntaxError:
                return []  # the run shows the error, with its line
            wanted = [t for node in body for t in getattr(node, "targets", [getattr(node, "target", None)])]
            return [t.id for t in wanted if isinstance(t, ast.Name)]
    return []


def share_parameters(chosen: Sequence[Target], parameters: dict[str, Any]) -> dict[Path, dict[str, Any]]:
    """Each notebook's part of `parameters`. papermill only warns of a name that no cell knows; this raises BadSetting."""
    known: dict[Path, list[str]] = {}
    for target in chosen if parameters else ():
        # One that can not be read is judged when its turn comes.
        with contextlib.suppress(BadNotebook):
            known[target.path] = parameter_names(target.path)
    everything = {name for names in known.values() for name in names}
    for name in parameters:
        if name not in everything:
            there = f"they know {', '.join(sorted(everything))}" if everything else "they have no parameters"
            raise BadSetting(f"no notebook that would run has a parameter {name!r}; {there}.")
    return {path: {n: v for n, v in parameters.items() if n in names} for path, names in known.items()}


def run_all(
    chosen: Sequence[Target],
    *,
    jobs: int,
    timeout_seconds: float,
    parameters: dict[str, Any] | None = None,
    notice: Callable[[Progress], None] = lambda _: None,
) -> list[Result]:
    """Run every notebook, at most `jobs` at a time; results in the order of `chosen`.

    `timeout_seconds` bounds one notebook. `notice` is called whenever one of them got further. Whatever ends this
    call, also an exception or a signal turned into one, ends every process it started.
    """
    shared = share_parameters(chosen, parameters or {})
    waiting = [Progress(target=target) for target in chosen]
    everyone = list(waiting)
    running: dict[int, _Run] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    progress = waiting.pop(0)
                    started = _start(progress, shared.get(progress.target.path, {}), notice)
                    if started is not None:
                        running[started.pipe] = started
                        selector.register(started.pipe, selectors.EVENT_READ)
                if not running:
                    continue
                for key, _ in selector.select(0.1):
                    run = running[key.fd]
                    if not _listen(run, notice):
                        selector.unregister(run.pipe)
                        _over(running.pop(run.pipe), None, notice)
                for run in list(running.values()):
                    if time.monotonic() - run.began > timeout_seconds:
                        selector.unregister(run.pipe)
                        _over(running.pop(run.pipe), timeout_seconds, notice)
        finally:
            for run in running.values():
                end(run.process)
                os.close(run.pipe)
    return [progress.result for progress in everyone if progress.result is not None]


def _start(progress: Progress, parameters: dict[str, Any], notice: Callable[[Progress], None]) -> _Run | None:
    """Start one notebook, or judge at once one that can not be read."""
    target = progress.target
    target.kept.parent.mkdir(parents=True, exist_ok=True)
    target.kept.unlink(missing_ok=True)
    try:
        notebook = notebooks.read(target.path)
    except BadNotebook as error:
        progress.result = Result(target=target, passed=False, seconds=0.0, cells=0, jobs={}, error=str(error))
        notice(progress)
        return None
    progress.cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    reading, writing = os.pipe()
    order = {"path": str(target.path), "output": str(target.kept), "parameters": parameters}
    environment = os.environ | {"PYTHONPATH": _python_path(), ENV: OFF}  # a check is nobody's progress
    try:
        with open(target.log, "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "sandbox.learn.run_one", str(writing)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(writing,),
                env=environment,
                # Ctrl-C in a terminal goes to its whole process group; a kernel must not half-hear it.
                start_new_session=True,
            )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    assert process.stdin is not None
    run = _Run(progress=progress, process=process, pipe=reading, began=time.monotonic())
    with contextlib.suppress(BrokenPipeError):  # it died at once: the end of its pipe says so
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
    notice(progress)
    return run


def _python_path() -> str:
    # The same package in the child, also when it is not installed but found through the working folder.
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])


def _listen(run: _Run, notice: Callable[[Progress], None]) -> bool:
    """Take in what the notebook's process reports; false when it has nothing more to say."""
    data = os.read(run.pipe, 1 << 16)
    *lines, run.pending = (run.pending + data).split(b"\n")
    for line in lines:
        report = json.loads(line)
        if "done" in report:
            run.done = report["done"]
            return False
        run.ours, run.source = report["ours"], report["source"]
        if not run.ours:
            run.progress.cell = report["cell"]
            notice(run.progress)
    return bool(data)


def _over(run: _Run, timeout_seconds: float | None, notice: Callable[[Progress], None]) -> None:
    target = run.progress.target
    end(run.process)
    os.close(run.pipe)
    where = None if run.ours else run.source
    done = run.done
    if timeout_seconds is not None:
        done = {"error": f"took more than {timeout_seconds:g} s and was stopped, with everything it had started"}
        done |= {"source": where}
    elif done is None:
        tail = "\n".join(target.log.read_text(errors="replace").splitlines()[-8:])
        done = {"error": f"the process that ran it ended with code {run.process.returncode}. Its log ends:\n{tail}"}
    elif done.get("error") == "the kernel died":
        done |= {"source": where}
    error, found = done.get("error"), done.get("jobs", {})
    if error is None and target.kind == "solution":
        error = judge_jobs(found)
    _tidy(target.kept, passed=error is None)
    run.progress.result = Result(
        target=target,
        passed=error is None,
        seconds=time.monotonic() - run.began,
        cells=run.progress.cells,
        jobs=found,
        error=error,
        source=done.get("source"),
        traceback=_ANSI.sub("", done.get("traceback") or "") or None,
    )
    notice(run.progress)


def judge_jobs(found: dict[str, int]) -> str | None:
    """What is wrong with a solution whose jobs ended in these states, or None. Cells that pass are not enough."""
    from sandbox.jobs.states import TERMINAL

    if not sum(found.values()):
        return (
            "every cell passed, but no job ran: a solution must run its job on a worker, for example with lab.run(...)"
        )
    left = {state: count for state, count in found.items() if state not in TERMINAL}
    if left:
        some = ", ".join(f"{count} {state}" for state, count in sorted(left.items()))
        return f"every cell passed, but not every job came to an end: {some} when the notebook was over"
    return None


def _tidy(kept: Path, *, passed: bool) -> None:
    """The notebook that is kept is the author's: without the cell that counted the jobs.

    papermill marks an exception that the author has tagged as expected like any other; where all is well, its marks go.
    """
    unwanted = {TAG, *(["papermill-error-cell-tag"] if passed else [])}
    try:
        data = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    data["cells"] = [cell for cell in data["cells"] if not unwanted.intersection(notebooks.tags(cell))]
    notebooks.replace(kept, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a notebook's process, its kernel, and wait until the kernel's own servers are gone."""
    import psutil

    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        if process.poll() is None:
            family = psutil.Process(process.pid).children(recursive=True)
    # At the end of its stdin it kills its kernel, which may be in an endless loop, and ends.
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(3)
    if process.poll() is None:
        process.kill()
        process.wait()
    for straggler in wait_until_gone(family, GONE_SECONDS):
        with contextlib.suppress(psutil.Error):
            straggler.kill()
