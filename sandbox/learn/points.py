"""What a learner's entries amount to: points, streak, minutes, and how each lesson stands.

Pure arithmetic. The moment and the timezone are passed in; a timezone of None is the machine's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from sandbox.learn.catalog import Course, Lesson
from sandbox.learn.content import Item, Term
from sandbox.learn.progress import Entry

BREAK = timedelta(minutes=5)
Key = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One way to earn points. Whatever has the same `key` earns them once."""

    points: int
    what: str
    key: Callable[[Entry, tzinfo | None], Key | None]  # None: the entry earns nothing by this rule


RULE: tuple[Rule, ...] = (
    Rule(
        points=10,
        what="a lesson that ran to its end, the first time",
        key=lambda entry, zone: (entry.lesson,) if entry.kind == "finished" else None,
    ),
    Rule(
        points=20,
        what="an exercise whose check passes, the first time",
        key=lambda entry, zone: (entry.item,) if _passed(entry) else None,
    ),
    Rule(
        points=5,
        what="a practice item answered right, the first time",
        key=lambda entry, zone: (entry.item,) if _right(entry) else None,
    ),
    Rule(
        points=1,
        what="a flashcard reviewed, once a day for each card",
        key=lambda entry, zone: (entry.item, entry.at.astimezone(zone).date()) if entry.kind == "card" else None,
    ),
)
FREE = "Wrong answers, hints, and looking at a solution cost nothing."
MINUTES_RULE = (
    f"Minutes are the time between one thing you did in a lesson and the next; more than {BREAK.seconds // 60} minutes "
    "without any count as a break, and not at all. Flashcards are not counted."
)


def _passed(entry: Entry) -> bool:
    return entry.kind == "check" and entry.data.get("status") == "passed"


def _right(entry: Entry) -> bool:
    return entry.kind == "answer" and entry.data.get("right") is True


def earned(entries: Iterable[Entry], zone: tzinfo | None = None) -> list[tuple[Rule, int]]:
    """Each rule, and how many times it was earned."""
    found = list(entries)
    keys = [{key for entry in found if (key := rule.key(entry, zone)) is not None} for rule in RULE]
    return [(rule, len(those)) for rule, those in zip(RULE, keys, strict=True)]


def xp(entries: Iterable[Entry], zone: tzinfo | None = None) -> int:
    """All points. A day, for the cards, is a day in `zone`."""
    return sum(rule.points * times for rule, times in earned(entries, zone))


def streak(entries: Iterable[Entry], now: datetime, zone: tzinfo | None = None) -> int:
    """Days in a row, in `zone`, with at least one entry, up to today or yesterday; 0 if neither has one."""
    days = {entry.at.astimezone(zone).date() for entry in entries}
    day = now.astimezone(zone).date()
    if day not in days:
        day -= timedelta(days=1)
    length = 0
    while day in days:
        length, day = length + 1, day - timedelta(days=1)
    return length


def minutes(entries: Iterable[Entry], lesson: str) -> float:
    """Minutes spent in a lesson: the gaps between its entries, those over BREAK left out; 0 for one entry or none.

    A card is left out as well: its lesson says where the term is introduced, not where the learner was.
    """
    moments = sorted(entry.at for entry in entries if entry.lesson == lesson and entry.kind != "card")
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    return sum((gap for gap in gaps if gap <= BREAK), timedelta()) / timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a learner stands in one lesson."""

    lesson: Lesson
    begun: bool
    finished: bool
    right: int  # practice items that were right at least once ...
    items: int  # ... of all there are
    passed: int  # exercises whose check has passed ...
    exercises: int  # ... of those that are checked by machine
    hints: int  # opened, each step once
    minutes: float

    @property
    def words(self) -> str:
        return "finished" if self.finished else "begun" if self.begun else "not begun"


def standing(lesson: Lesson, items: Sequence[Item], entries: Iterable[Entry]) -> Standing:
    """How a learner stands in `lesson`; entries about items and exercises that are no longer there do not count."""
    mine = [entry for entry in entries if entry.lesson == lesson.number and entry.kind != "card"]
    practice, graded = {item.id for item in items}, {e.id for e in lesson.exercises if e.graded == "auto"}
    return Standing(
        lesson=lesson,
        begun=bool(mine),
        finished=any(entry.kind == "finished" for entry in mine),
        right=len({entry.item for entry in mine if _right(entry)} & practice),
        items=len(practice),
        passed=len({entry.item for entry in mine if _passed(entry)} & graded),
        exercises=len(graded),
        # The step is what the file says, which need not be a number.
        hints=len({(entry.item, repr(entry.data.get("step"))) for entry in mine if entry.kind == "hint"}),
        minutes=minutes(mine, lesson.number),
    )


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Everything the panels and `course progress` show."""

    entries: int
    earned: list[tuple[Rule, int]]
    xp: int
    streak: int
    due: list[Term]
    standings: list[Standing]

    @property
    def next(self) -> tuple[str, Lesson | None]:
        """What to do next, as a sentence without its end, and the lesson it is about."""
        for one in self.standings:
            if not one.finished:
                doing = "go on with lesson" if one.begun else "open lesson"
                return f"{doing} {one.lesson.number}, {one.lesson.title}", one.lesson
            if left := one.exercises - one.passed:
                return f"{count(left, 'exercise')} of lesson {one.lesson.number} to pass", one.lesson
        for one in self.standings:
            if left := one.items - one.right:
                return f"{count(left, 'practice item')} of lesson {one.lesson.number} to get right", one.lesson
        if self.due:
            return f"{count(len(self.due), 'card')} to review", None
        return "nothing is left: every lesson is finished, and all of its tasks", None


def overview(
    course: Course,
    items: Callable[[Lesson], Sequence[Item]],
    entries: Sequence[Entry],
    due: list[Term],
    now: datetime,
    zone: tzinfo | None = None,
) -> Overview:
    return Overview(
        entries=len(entries),
        earned=earned(entries, zone),
        xp=xp(entries, zone),
        streak=streak(entries, now, zone),
        due=due,
        standings=[standing(lesson, items(lesson), entries) for lesson in course],
    )


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
