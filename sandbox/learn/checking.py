"""``check`` answers in the notebook; ``grade`` gives nbgrader one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox.errors import BadSetting, NoLabOpen, NotSendable, SandboxError
from sandbox.learn.catalog import Course, Exercise
from sandbox.learn.checks import ex00, ex03
from sandbox.learn.verdict import NotAttempted, NotYet, Status, Verdict

Checker = Callable[..., list[Any]]

CHECKERS: dict[str, Checker] = {
    "00.1": ex00.ended,
    "03.1": ex03.loop,
    "03.2": ex03.stuck,
}

_hints_shown: dict[str, int] = {}


def _exercise(number: str) -> Exercise:
    known = {e.id: e for lesson in Course.load().lessons for e in lesson.exercises}
    if number not in known:
        raise BadSetting(f"there is no exercise {number!r}; the exercises are {', '.join(known)}.")
    return known[number]


def _checker(number: str) -> tuple[Exercise, Checker]:
    exercise = _exercise(number)
    if number not in CHECKERS:
        raise BadSetting(f"exercise {number} is read by a person; there is nothing to check by machine.")
    return exercise, CHECKERS[number]


def check(number: str, attempt: Any) -> Verdict:
    """Try `attempt` on the cases that are not hidden and say what happened.

    The verdict is passed, not yet, not attempted, or inconclusive, which means that something of ours broke. Raises
    BadSetting for an exercise that does not exist.
    """
    exercise, checker = _checker(number)
    try:
        results = checker(attempt)
    except NotAttempted:
        results = [NotAttempted()]
    except (NotSendable, NoLabOpen) as error:
        # The learner can mend these, and the message says how.
        results = [NotYet(str(error))]
    except (SandboxError, OSError) as error:
        text = f"{error} Your code was not judged. `course doctor` looks for the reason."
        return Verdict(exercise=number, status=Status.INCONCLUSIVE, title=exercise.title, happened=text)
    return _verdict(exercise, results)


def _verdict(exercise: Exercise, results: list[Any]) -> Verdict:
    for result in results:
        if isinstance(result, NotAttempted):
            return Verdict(
                exercise=exercise.id,
                status=Status.NOT_ATTEMPTED,
                title=exercise.title,
                happened="Replace `raise NotImplementedError()` with your code, run the cell, and check again.",
            )
    for result in results:
        if isinstance(result, NotYet):
            return Verdict(
                exercise=exercise.id,
                status=Status.NOT_YET,
                title=exercise.title,
                happened=result.happened,
                seen=result.seen,
                why=result.why,
            )
    text = f"{len(results)} of {len(results)} cases are right; the graded exercise tries more than these."
    return Verdict(exercise=exercise.id, status=Status.PASSED, title=exercise.title, happened=text)


def grade(number: str, attempt: Any, cases: list[Any], points: float | None = None) -> float:
    """Points for `attempt`: the share of `cases` that are right, between 0 and the exercise's points.

    Prints one line a case, to stdout: nbgrader takes anything on stderr for a failure. An empty function gets 0. A
    failure of the grader itself is raised, so that it is seen, and is not a mark.
    """
    exercise, checker = _checker(number)
    most = float(exercise.points if points is None else points)
    try:
        results = checker(attempt, cases)
    except (NotSendable, NoLabOpen) as error:
        results = [NotYet(str(error)) for _ in cases]
    for place, (case, result) in enumerate(zip(cases, results, strict=True), 1):
        name = getattr(case, "title", None) or f"case {place}"
        if result is None:
            print(f"ok       {name}")
        elif isinstance(result, NotAttempted):
            print(f"empty    {name}")
        else:
            print(f"not yet  {name}: {result.happened}")
    right = sum(result is None for result in results)
    score = round(most * right / len(cases), 2) if cases else 0.0
    return max(0.0, min(most, score))


def hint(number: str) -> str:
    """The next hint for an exercise: one at a time, in order; the last one stays."""
    exercise = _exercise(number)
    if not exercise.hints:
        return f"Exercise {number} has no hints: a person reads it, and there is more than one right answer."
    shown = min(_hints_shown.get(number, 0) + 1, len(exercise.hints))
    _hints_shown[number] = shown
    rest = len(exercise.hints) - shown
    more = f" ({rest} more)" if rest else " (that was the last one)"
    return f"Hint {shown} of {len(exercise.hints)}{more}: {exercise.hints[shown - 1]}"
