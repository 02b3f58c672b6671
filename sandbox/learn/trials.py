"""The process in which ``course check`` tries the submissions and the quizzes, beside the notebooks.

Run as ``python -m sandbox.learn.trials`` with the order as one line of JSON on stdin. Results are lines of JSON in a file,
because what is tried may print anything. When stdin closes, whoever started this is gone, and so is this.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.errors import SandboxError
from sandbox.learn import content, progress, running
from sandbox.learn.catalog import Course, Lesson


@dataclass(frozen=True, kw_only=True)
class Found:
    """What was tried: a dict a submission and a dict a quiz, as ``course check --json`` prints them."""

    submissions: list[dict[str, Any]]
    quizzes: list[dict[str, Any]]

    @property
    def passed(self) -> bool:
        return all(one["passed"] for one in [*self.submissions, *self.quizzes])


class Trials:
    """The process, from its start to the end of the ``with``; whatever ends that, ends it."""

    def __init__(self, lessons: Sequence[Lesson], *, submissions: bool, quizzes: bool, folder: Path) -> None:
        self._file, self._log = folder / "tried.jsonl", folder / "tried.log"
        folder.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(b"")
        self._began = time.monotonic()
        order = {"lessons": [lesson.number for lesson in lessons], "submissions": submissions, "quizzes": quizzes}
        environment = {
            "PYTHONPATH": running._python_path(),
            "COURSE_ROOT": str(lessons[0].root),
            progress.ENV: progress.OFF,
        }
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sandbox.learn.trials"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order | {"file": str(self._file)}).encode() + b"\n")
        self._process.stdin.flush()

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: object) -> None:
        running.end(self._process)

    def collect(self, timeout_seconds: float) -> Found:
        """Wait for the rest, `timeout_seconds` since the start at most; what is missing then is a failure."""
        error = ""
        try:
            self._process.wait(max(0.0, self._began + timeout_seconds - time.monotonic()))
            if self._process.returncode:
                tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-8:])
                error = f"the process that tried them ended with code {self._process.returncode}. Its log ends:\n{tail}"
        except subprocess.TimeoutExpired:
            error = f"trying them took more than {timeout_seconds:g} s and was stopped"
            running.end(self._process)
        submissions: list[dict[str, Any]] = []
        quizzes: list[dict[str, Any]] = []
        # One that was stopped may have left half a line.
        for line in self._file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                one = json.loads(line)
                (quizzes if "item" in one else submissions).append(one)
        if error:
            submissions.append(_failed("", "(the rest)", error))
        return Found(submissions=submissions, quizzes=quizzes)


def _failed(exercise: str, name: str, error: str) -> dict[str, Any]:
    from sandbox.learn.bank import Tried

    return Tried(exercise=exercise, name=name, error=error).as_json()


def quiz_results(lesson: Lesson) -> Iterator[dict[str, Any]]:
    """One dict a practice item of the lesson: its id, whether it is sound, and what is wrong with it."""
    from sandbox.learn import quizzes

    try:
        items = content.items(lesson.number, lesson.root)
    except SandboxError as error:
        yield {"item": lesson.number, "passed": False, "problems": [str(error)]}
        return
    for item in items:
        try:
            problems = list(quizzes.problems(item))
        except Exception as error:
            problems = [f"practice item {item.id} could not be tried: {type(error).__name__}: {error}"]
        yield {"item": item.id, "passed": not problems, "problems": problems}


def _results(order: dict[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    from sandbox.learn import bank

    course = Course.load()
    lessons = list(course.select(order["lessons"]))
    if order["submissions"]:
        yield from (_failed("", "(the bank)", sentence) for sentence in bank.stray(course))
        yield from (tried.as_json() for tried in bank.try_all(lessons, folder))
    if order["quizzes"]:
        for lesson in lessons:
            yield from quiz_results(lesson)


def main() -> None:
    order = json.loads(sys.stdin.buffer.readline())
    folder = Path(tempfile.mkdtemp(prefix="always-ends-bank-"))

    def watch() -> None:
        while os.read(0, 1 << 12):
            pass
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        with open(order["file"], "w", encoding="utf-8") as file:
            for result in _results(order, folder):
                file.write(json.dumps(result, ensure_ascii=False) + "\n")
                file.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
