"""Points, streak, minutes and how a lesson stands, from entries at moments that the test chooses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sandbox.learn import points
from sandbox.learn.catalog import Course, Exercise, Lesson
from sandbox.learn.content import Item, Term
from sandbox.learn.progress import KINDS, Entry

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def entry(kind: str, item: str = "", *, lesson: str = "03", at: datetime = NOON, **data: Any) -> Entry:
    return Entry(kind=kind, lesson=lesson, item=item, at=at, data=data)


def after(**span: float) -> datetime:
    return NOON + timedelta(**span)


# -- points -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "worth"),
    [
        (entry("finished"), 10),
        (entry("check", "03.1", status="passed"), 20),
        (entry("answer", "03.q1", right=True), 5),
        (entry("card", "worker", rating="again"), 1),
        (entry("opened"), 0),
        (entry("check", "03.1", status="not yet"), 0),
        (entry("check", "03.1"), 0),
        (entry("answer", "03.q1", right=False), 0),
        (entry("answer", "03.q1", right="yes"), 0),
        (entry("hint", "03.1", step=1), 0),
        (entry("solution", "03.1"), 0),
        (entry("sliders", "03.limits", values={}), 0),
    ],
    ids=lambda one: f"{one.kind} {one.data}" if isinstance(one, Entry) else None,
)
def test_an_entry_is_worth_what_the_rule_says(one: Entry, worth: int) -> None:
    """Running, passing, answering right and reviewing earn points; looking, hints and mistakes neither earn nor cost."""
    assert points.xp([one], UTC) == worth


def test_every_kind_of_entry_has_its_worth_tested() -> None:
    """A new kind has to be given a place in the table above."""
    marks = test_an_entry_is_worth_what_the_rule_says.pytestmark  # type: ignore[attr-defined]
    assert {case[0].kind for case in marks[0].args[1]} == set(KINDS)


@pytest.mark.parametrize(
    ("kind", "item", "data", "worth"),
    [
        ("finished", "", {}, 10),
        ("check", "03.1", {"status": "passed"}, 20),
        ("answer", "03.q1", {"right": True}, 5),
        ("card", "worker", {"rating": "good"}, 1),
    ],
)
def test_the_same_thing_counts_once(kind: str, item: str, data: dict[str, Any], worth: int) -> None:
    """A second run, pass, right answer, or review on the same day adds nothing; of another item it does."""
    again = [entry(kind, item, at=after(minutes=m), **data) for m in range(3)]
    assert points.xp(again, UTC) == worth
    other = entry(kind, item and f"{item}x", lesson="04", **data)
    assert points.xp([*again, other], UTC) == 2 * worth


def test_a_card_counts_again_on_the_next_day_of_the_learner() -> None:
    """A day is a day in the timezone that is passed in."""
    evening, night = NOON.replace(hour=21), NOON.replace(hour=23)
    reviews = [entry("card", "worker", at=at, rating="good") for at in (evening, night)]
    assert points.xp(reviews, UTC) == 1
    assert points.xp(reviews, timezone(timedelta(hours=2))) == 2


def test_wrong_answers_and_hints_take_nothing_away() -> None:
    """What is right in the end earns the same, however many mistakes and hints came before."""
    way = [entry("answer", "03.q1", right=False), entry("hint", "03.1", step=1), entry("solution", "03.1")]
    assert points.xp([*way, entry("answer", "03.q1", right=True)], UTC) == 5


def test_the_rule_that_is_shown_is_the_rule_that_counts() -> None:
    """The sum over the table is the number of points, and every rule says what it is for."""
    found = [entry("finished"), entry("answer", "a", right=True), entry("answer", "b", right=True)]
    table = points.earned(found, UTC)
    assert [(rule.points, times) for rule, times in table] == [(10, 1), (20, 0), (5, 2), (1, 0)]
    assert sum(rule.points * times for rule, times in table) == points.xp(found, UTC) == 20
    assert points.xp([], UTC) == 0


# -- streak -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days_ago", "length"),
    [([], 0), ([0], 1), ([1], 1), ([2], 0), ([0, 1, 2], 3), ([1, 2], 2), ([0, 2], 1), ([-1], 0), ([0, -1], 1)],
)
def test_a_streak_ends_today_or_yesterday(days_ago: list[int], length: int) -> None:
    """Days in a row count back from today, or from yesterday while today has nothing yet; days to come do not count."""
    assert points.streak([entry("opened", at=after(days=-d)) for d in days_ago], NOON, UTC) == length


def test_several_entries_of_a_day_are_one_day() -> None:
    """A day counts once."""
    assert points.streak([entry("opened", at=after(minutes=m)) for m in range(5)], NOON, UTC) == 1


def test_a_streak_counts_the_learners_days() -> None:
    """Two evenings that are two days in one place can be one day in another."""
    found = [entry("opened", at=datetime(2026, 3, 3, 23, tzinfo=UTC)), entry("opened", at=NOON)]
    assert points.streak(found, NOON, UTC) == 2
    assert points.streak(found, NOON, timezone(timedelta(hours=3))) == 1


def test_a_streak_survives_the_change_to_summer_time() -> None:
    """A day of 23 hours is a day."""
    berlin = ZoneInfo("Europe/Berlin")
    days = [datetime(2026, 3, day, 0, 30, tzinfo=berlin) for day in (28, 29, 30)]
    assert points.streak([entry("opened", at=day) for day in days], days[-1], berlin) == 3


# -- minutes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moments", "spent"),
    [([], 0), ([3], 0), ([0, 3], 3), ([0, 5], 5), ([0, 5.1], 0), ([0, 4, 60, 62], 6), ([62, 0, 60, 4], 6)],
)
def test_minutes_are_the_gaps_without_the_breaks(moments: list[float], spent: float) -> None:
    """Up to five minutes between two entries count whole, more count as a break, and not at all; order is no matter."""
    assert points.minutes([entry("opened", at=after(minutes=m)) for m in moments], "03") == spent


def test_minutes_are_of_one_lesson_and_without_cards() -> None:
    """Entries of another lesson, and cards, whose lesson is where the term is introduced, do not count."""
    found = [entry("opened"), entry("opened", lesson="00", at=after(minutes=1)), entry("card", at=after(minutes=2))]
    assert points.minutes(found, "03") == 0


# -- how a lesson stands ----------------------------------------------------------------------------------------------


def lesson(number: str, *graded: str) -> Lesson:
    exercises = tuple(
        Exercise(id=f"{number}.{n}", title="t", graded=g, points=1, hints=()) for n, g in enumerate(graded, 1)
    )
    return Lesson(
        number=number, slug="s", title=f"T{number}", question="q", minutes=9, exercises=exercises, root=Path()
    )


def items(of: Lesson) -> list[Item]:
    return [Item(id=f"{of.number}.q{n}", kind="choose", question="q", why="w") for n in (1, 2)]


def stand(*entries: Entry) -> points.Standing:
    one = lesson("03", "auto", "auto", "person")
    return points.standing(one, items(one), entries)


def test_a_lesson_that_nobody_touched() -> None:
    """It is not begun, and nothing of what there is has been done; what a person marks is not counted."""
    one = stand(entry("opened", lesson="00"), entry("card", "worker", rating="good"))
    assert (one.words, one.right, one.items, one.passed, one.exercises, one.hints) == ("not begun", 0, 2, 0, 2, 0)


def test_a_lesson_counts_each_item_once_and_only_what_is_there() -> None:
    """Answers and passes of items that are gone do not count, nor do repeated ones."""
    one = stand(
        entry("answer", "03.q1", right=True),
        entry("answer", "03.q1", right=True),
        entry("answer", "03.q1", right=False),
        entry("answer", "03.gone", right=True),
        entry("check", "03.1", status="passed"),
        entry("check", "03.9", status="passed"),
        entry("check", "03.3", status="passed"),
    )
    assert (one.words, one.right, one.passed) == ("begun", 1, 1)


def test_a_hint_counts_by_its_step() -> None:
    """A step that is opened again is one hint; a step that is no number stops nothing."""
    steps: list[Any] = [1, 1, 2, [1], None]
    assert stand(*(entry("hint", "03.1", step=step) for step in steps)).hints == 4


def test_finished_stays_finished() -> None:
    """A lesson that is opened again after its end is finished still."""
    one = stand(entry("finished"), entry("opened", at=after(minutes=1)))
    assert one.words == "finished" and one.minutes == 1


TERM = Term(name="worker", text="t", lesson="03")


def done(which: Lesson) -> list[Entry]:
    auto = [e for e in which.exercises if e.graded == "auto"]
    return [entry("finished", lesson=which.number)] + [
        entry("check", e.id, lesson=which.number, status="passed") for e in auto
    ]


def test_what_is_next_is_the_first_thing_that_is_left() -> None:
    """In the order of the course: the lesson, its exercises; then practice, then cards."""
    first, second = lesson("00", "auto"), lesson("03", "person")
    course = Course(title="t", lessons=(first, second), root=Path())

    def asked(entries: list[Entry], due: list[Term] = []) -> str:  # noqa: B006
        return points.overview(course, items, entries, due, NOON, UTC).next[0]

    assert asked([]) == "open lesson 00, T00"
    assert asked([entry("opened", lesson="00")]) == "go on with lesson 00, T00"
    assert asked([entry("finished", lesson="00")]) == "1 exercise of lesson 00 to pass"
    assert asked(done(first)) == "open lesson 03, T03"
    lessons = [*done(first), *done(second)]
    assert asked(lessons) == "2 practice items of lesson 00 to get right"
    all_right = [entry("answer", f"{n}.q{q}", lesson=n, right=True) for n in ("00", "03") for q in (1, 2)]
    assert asked([*lessons, *all_right], [TERM]) == "1 card to review"
    assert asked([*lessons, *all_right]).startswith("nothing is left")
