"""Hints in steps: each has a title, which is read before the step is opened.

The first call of ``hint`` shows the titles; each further call opens the step whose title is next. A check that was not
passed names that title too, so after one the first call opens it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.errors import BadSetting
from sandbox.learn import progress
from sandbox.learn.catalog import Course, Exercise
from sandbox.learn.front import person_watches
from sandbox.learn.verdict import Status

if TYPE_CHECKING:
    from sandbox.learn.widgets.hints import Hints

NONE = "Exercise {} has no hints: a person reads it, and there is more than one right answer."
_shown: set[str] = set()  # the exercises whose titles were shown in this kernel
_made: dict[str, Hints] = {}


def told(kind: str, exercise: str) -> list[progress.Entry]:
    """What was recorded of this kind for the exercise: in the file, and by this kernel where nothing is written."""
    found = [*progress.entries(), *progress.unkept()]
    return [entry for entry in found if entry.kind == kind and entry.item == exercise]


def opened(exercise: Exercise) -> int:
    """How many steps are open."""
    steps = [entry.data.get("step") for entry in told("hint", exercise.id)]
    return min(max((step for step in steps if type(step) is int), default=0), len(exercise.hints))


def named(exercise: Exercise) -> bool:
    """Whether the learner has read the title of the step that is next."""
    failed = any(
        entry.data.get("status") == Status.NOT_YET and entry.data.get("named", True)
        for entry in told("check", exercise.id)
    )
    return exercise.id in _shown or failed or opened(exercise) > 0


def next_line(exercise: Exercise) -> str:
    """What to type for the next hint, and its title; empty when all are open."""
    done = opened(exercise)
    return f'`hint("{exercise.id}")` – {exercise.hints[done].title}' if done < len(exercise.hints) else ""


def open_step(exercise: Exercise, step: int | None = None) -> int:
    """Open `step`, or the next one; returns how many are open. Raises BadSetting for one whose turn it is not."""
    done, last = opened(exercise), len(exercise.hints)
    if step is None:
        step = min(done + 1, last)
    if isinstance(step, bool) or not isinstance(step, int) or not 1 <= step <= last:
        raise BadSetting(f"exercise {exercise.id} has no hint {step!r}: its hints are 1 to {last}.")
    if step > done + 1:
        raise BadSetting(
            f"hint {step} of {exercise.id} comes after hint {done + 1}, which is not open yet: "
            f'type hint("{exercise.id}").'
        )
    if step > done:
        progress.record("hint", exercise.id[:2], exercise.id, step=step)
        done = step
    return done


@dataclass(frozen=True)
class Ladder:
    """All hints of an exercise by their titles, those that are open with their text."""

    exercise: Exercise
    open: int

    def __str__(self) -> str:
        exercise, hints = self.exercise, self.exercise.hints
        if not hints:
            return NONE.format(exercise.id)
        lines = [f"Hints for {exercise.id} {exercise.title}: {self.open} of {len(hints)} open"]
        for place, hint in enumerate(hints, 1):
            lines.append(f"  {place}. {hint.title}" + ("" if place <= self.open else "  (closed)"))
            if place <= self.open:
                lines.append(f"     {hint.text}")
        return "\n".join([*lines, what_next(exercise, self.open)])

    __repr__ = __str__


def what_next(exercise: Exercise, done: int) -> str:
    if done < len(exercise.hints):
        return f'hint("{exercise.id}") opens hint {done + 1}.'
    return f'That was the last one: solution("{exercise.id}") shows our solution beside yours.'


def hint(number: str, step: int | None = None) -> Ladder | Hints:
    """The hints of an exercise. The first call shows their titles, each further one opens the next.

    A check that was not passed has named the next title already. ``hint("03.1", 2)`` opens that step if it is the
    next, or shows it again. Raises BadSetting for an exercise or a step that does not exist, or whose turn it is not.
    """
    _, exercise = Course.load().exercise(number)
    if exercise.hints and (step is not None or named(exercise)):
        open_step(exercise, step)
    _shown.add(number)
    if not (exercise.hints and person_watches()):
        return Ladder(exercise, opened(exercise))
    from sandbox.learn.widgets.hints import Hints

    made = _made.get(number)
    if made is None or made.comm is None:
        made = _made[number] = Hints(exercise)
    made.refresh()
    return made
