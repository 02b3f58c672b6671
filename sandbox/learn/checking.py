"""``check`` answers in the notebook; ``grade`` gives nbgrader one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox.errors import BadSetting, NoLabOpen, NotSendable, SandboxError, WorkerFileGone
from sandbox.grade import start_spare
from sandbox.learn import progress
from sandbox.learn.catalog import Course, Exercise
from sandbox.learn.checks import ex00, ex03
from sandbox.learn.front import person_watches
from sandbox.learn.hints import hint, next_line
from sandbox.learn.solutions import solution
from sandbox.learn.verdict import NotAttempted, NotYet, Sign, Status, Verdict
from sandbox.services import code

Checker = Callable[..., list[Any]]

CHECKERS: dict[str, Checker] = {
    "00.1": ex00.ended,
    "03.1": ex03.loop,
    "03.2": ex03.stuck,
}
# Exercises that a person reads: whether the text has what it needs before it is handed in. No marks come of it.
FORMS: dict[str, Callable[[Any], None]] = {"03.3": ex03.message}

LONGEST_SOURCE = 20_000  # characters of what was checked that are kept; a worker file has a few hundred
EMPTY = "Replace `raise NotImplementedError()` with your code, run the cell, and check again."


def check(number: str, attempt: Any) -> Verdict:
    """Try `attempt` on the cases that are not hidden and say what happened.

    The verdict is passed, not yet, not attempted, or inconclusive, which means that something of ours broke. For a text
    that a person reads it says only whether something is missing from it. Raises BadSetting for an exercise that does
    not exist.
    """
    lesson, exercise = Course.load().exercise(number)
    if number not in CHECKERS and number not in FORMS:
        raise BadSetting(f"exercise {number} is read by a person; there is nothing to check by machine.")
    sign = Sign(number, exercise.title) if person_watches() else None
    try:
        found = _judged(exercise, attempt)
    except BaseException:
        if sign:
            sign.stopped()
        raise
    progress.record(
        "check", lesson.number, number, status=str(found.status), named=bool(found.hint), source=_source(attempt)
    )
    shown = sign.become(found) if sign else found
    if number in CHECKERS:
        start_spare()  # the next check answers at once
    return shown


def _judged(exercise: Exercise, attempt: Any) -> Verdict:
    try:
        if exercise.id in FORMS:
            FORMS[exercise.id](attempt)
            results: list[Any] = []
        else:
            results = CHECKERS[exercise.id](attempt)
    except (NotAttempted, NotYet) as found:
        results = [found]
    except (NoLabOpen, WorkerFileGone) as error:
        # Nothing was tried, so nothing is known to be wrong with the code.
        text = f"{error} Your code was not judged."
        return Verdict(exercise=exercise.id, status=Status.INCONCLUSIVE, title=exercise.title, happened=text)
    except NotSendable as error:
        # The learner can mend this, and the message says how.
        results = [NotYet(str(error), hints=False)]
    except (SandboxError, OSError) as error:
        text = f"{error} Your code was not judged. `course doctor` looks for the reason."
        return Verdict(exercise=exercise.id, status=Status.INCONCLUSIVE, title=exercise.title, happened=text)
    return _verdict(exercise, results)


def _source(attempt: Any) -> str:
    """The text that was checked: of the worker file, or the text itself."""
    if isinstance(attempt, str):
        return attempt[:LONGEST_SOURCE]
    try:
        return code.file_of(attempt).read_text(encoding="utf-8")[:LONGEST_SOURCE]
    except (NotSendable, OSError, UnicodeDecodeError):
        return ""


def _verdict(exercise: Exercise, results: list[Any]) -> Verdict:
    def said(status: Status, happened: str, **more: str) -> Verdict:
        return Verdict(exercise=exercise.id, status=status, title=exercise.title, happened=happened, **more)

    for result in results:
        if isinstance(result, NotAttempted):
            return said(Status.NOT_ATTEMPTED, str(result) or EMPTY)
    for result in results:
        if isinstance(result, NotYet):
            line = next_line(exercise) if result.hints else ""
            return said(Status.NOT_YET, result.happened, seen=result.seen, why=result.why, hint=line)
    if exercise.id in FORMS:
        return said(Status.PASSED, "The form is complete. Whether it is a good message, a person says who reads it.")
    tried = f"{len(results)} of {len(results)} cases are right" if len(results) > 1 else "It is right"
    return said(Status.PASSED, f"{tried}; the graded exercise tries more than these.")


def grade(number: str, attempt: Any, cases: list[Any], points: float | None = None) -> float:
    """Points for `attempt`: the share of `cases` that are right, between 0 and the exercise's points.

    Prints one line a case, to stdout: nbgrader takes anything on stderr for a failure. Learners read these lines, also
    those of hidden cases, so a line has the case's title and the kind of mistake, and no value of the case. An empty
    function gets 0. A failure of the grader itself is raised, so that it is seen, and is not a mark.
    """
    _, exercise = Course.load().exercise(number)
    if number not in CHECKERS:
        raise BadSetting(f"exercise {number} is read by a person; there is nothing to grade by machine.")
    checker = CHECKERS[number]
    most = float(exercise.points if points is None else points)
    try:
        results = checker(attempt, cases)
    except (NotSendable, NoLabOpen) as error:
        results = [NotYet(str(error), mistake=str(error)) for _ in cases]
    for place, (case, result) in enumerate(zip(cases, results, strict=True), 1):
        name = getattr(case, "title", None) or f"case {place}"
        if result is None:
            print(f"ok       {name}")
        elif isinstance(result, NotAttempted):
            print(f"empty    {name}")
        else:
            print(f"not yet  {name}" + (f": {result.mistake}" if result.mistake else ""))
    right = sum(result is None for result in results)
    score = round(most * right / len(cases), 2) if cases else 0.0
    return max(0.0, min(most, score))


__all__ = ["CHECKERS", "FORMS", "check", "grade", "hint", "solution"]
