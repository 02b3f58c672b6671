"""When cards come back: the schedule is a replay of the reviews, on a glossary of the test's own."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from sandbox.errors import BadSetting
from sandbox.learn import progress, reviews
from sandbox.learn.progress import Entry

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv(progress.ENV, str(path))
    monkeypatch.setattr(progress, "_unkept", [])
    return path


def glossary(root: Path, **lessons: list[str]) -> Path:
    """A course with these terms: glossary(root, l03=["worker"])."""
    folder = root / "lessons" / "practice"
    folder.mkdir(parents=True)
    terms = [(name, lesson[1:]) for lesson, names in lessons.items() for name in names]
    text = "".join(f'[[term]]\nname = "{name}"\ntext = "t"\nlesson = "{lesson}"\n' for name, lesson in terms)
    (folder / "glossary.toml").write_text(text)
    return root


@pytest.fixture
def root(tmp_path: Path, file: Path) -> Path:
    return glossary(tmp_path / "course", l00=["worker", "message"], l03=["deadline", "budget"], l09=["traffic"])


def names(now: datetime, root: Path) -> list[str]:
    return [term.name for term in reviews.due(now, root)]


def opened(*lessons: str) -> None:
    for lesson in lessons:
        progress.record("opened", lesson, at=NOON - DAY)


# -- new cards --------------------------------------------------------------------------------------------------------


def test_nothing_is_due_before_a_lesson_is_opened(root: Path) -> None:
    """A learner who has opened no lesson has no card."""
    assert names(NOON, root) == []


def test_new_cards_are_those_of_lessons_that_were_begun(root: Path) -> None:
    """Terms of a lesson that was opened or finished come, in the order of the lessons; those of others do not."""
    progress.record("finished", "03")
    assert names(NOON, root) == ["budget", "deadline"]
    opened("00")
    assert names(NOON, root) == ["message", "worker", "budget", "deadline"]


def test_a_card_alone_does_not_open_its_lesson(root: Path) -> None:
    """A review of one term, or an answer, brings no other term of its lesson."""
    reviews.review("traffic", "easy", NOON, root)
    progress.record("answer", "09", "09.q1", right=True)
    assert names(NOON, root) == []


def test_new_cards_are_bounded_by_the_day(tmp_path: Path, file: Path) -> None:
    """At most NEW_A_DAY terms are met for the first time on a day of the learner; the rest come on the next."""
    words = [f"word {n:02}" for n in range(reviews.NEW_A_DAY + 5)]
    root = glossary(tmp_path / "course", l03=words)
    opened("03")
    assert names(NOON, root) == words[: reviews.NEW_A_DAY]
    for word in words[:4]:
        reviews.review(word, "easy", NOON, root)
    assert names(NOON, root) == words[4 : reviews.NEW_A_DAY]
    for word in words[4 : reviews.NEW_A_DAY]:
        reviews.review(word, "easy", NOON, root)
    assert names(NOON, root) == []
    assert names(NOON + timedelta(hours=11), root) == []
    assert names(NOON + timedelta(hours=12), root) == words[reviews.NEW_A_DAY :]
    assert names(NOON.astimezone(timezone(timedelta(hours=14))), root) == []
    earlier_midnight = timezone(timedelta(hours=8))
    assert names((NOON + timedelta(hours=4)).astimezone(earlier_midnight), root) == words[reviews.NEW_A_DAY :]


# -- cards seen before ------------------------------------------------------------------------------------------------


def test_a_review_says_when_it_is_due_again_and_then_it_is(root: Path) -> None:
    """A card comes back at the moment that the review returned, and not a second before it."""
    opened("00")
    due = reviews.review("worker", "good", NOON, root)
    assert due > NOON and due.utcoffset() == timedelta()
    assert reviews.next_due("worker", root) == due
    assert "worker" not in names(due - timedelta(seconds=1), root)
    assert names(due, root)[0] == "worker"


def test_the_better_a_card_is_known_the_later_it_comes(root: Path) -> None:
    """Of the four ratings each brings the card back later than the one before it."""
    dues = []
    for rating, term in zip(reviews.RATINGS, ("worker", "message", "deadline", "budget"), strict=True):
        dues.append(reviews.review(term, rating, NOON, root))
    assert dues == sorted(dues) and len(set(dues)) == 4
    assert dues[-1] - NOON > DAY


def test_a_card_that_is_known_comes_less_and_less_often(root: Path) -> None:
    """Reviewed as good each time it is due, the time to the next review grows; forgotten, it is back the same day."""
    now, gaps = NOON, []
    for _ in range(6):
        due = reviews.review("worker", "good", now, root)
        gaps.append(due - now)
        now = due
    assert gaps == sorted(gaps) and gaps[-1] > 20 * DAY
    assert reviews.review("worker", "again", now, root) - now < DAY


def test_what_is_longest_overdue_comes_first(root: Path) -> None:
    """Cards seen before come before new ones, by the moment at which they were due."""
    opened("00", "03")
    reviews.review("worker", "easy", NOON, root)
    reviews.review("deadline", "again", NOON, root)
    assert names(NOON + 60 * DAY, root) == ["deadline", "worker", "message", "budget"]


def test_the_state_of_a_card(root: Path) -> None:
    """It says when the card is due, whether it is now, and how often it was reviewed."""
    assert reviews.state("worker", NOON, root) == {"due": None, "due_now": False, "reviews": 0}
    assert reviews.next_due("worker", root) is None
    reviews.review("worker", "again", NOON, root)
    due = reviews.review("worker", "hard", NOON, root)
    assert reviews.state("worker", NOON, root) == {"due": due, "due_now": False, "reviews": 2}
    assert reviews.state("worker", due, root)["due_now"] is True


# -- replay -----------------------------------------------------------------------------------------------------------


def test_the_schedule_is_the_same_each_time_and_does_not_depend_on_the_order_of_lines(root: Path, file: Path) -> None:
    """Two notebooks, or an import, may write reviews in any order; chance has no part in it."""
    for day, rating in enumerate(["good", "good", "hard", "again", "good", "easy"]):
        expected = reviews.review("worker", rating, NOON + 3 * day * DAY, root)
    lines = file.read_text().splitlines()
    for seed in range(5):
        random.Random(seed).shuffle(lines)
        file.write_text("".join(line + "\n" for line in [*lines, lines[0]]))
        assert reviews.next_due("worker", root) == expected


def test_a_review_that_makes_no_sense_is_passed_over(root: Path, file: Path) -> None:
    """A rating that does not exist, and a term that is no longer in the glossary, change nothing."""
    opened("00")
    due = reviews.review("worker", "good", NOON, root)
    odd = [
        Entry(kind="card", lesson="00", item="worker", data={"rating": rating}, at=NOON)
        for rating in ("perfect", None, 3, ["good"], {})
    ]
    gone = Entry(kind="card", lesson="00", item="gone", data={"rating": "again"}, at=NOON)
    progress.append(file, [*odd, gone, Entry(kind="card", lesson="00", item="worker", at=NOON)])
    assert reviews.next_due("worker", root) == due
    assert "gone" not in names(NOON + DAY, root)


@pytest.mark.parametrize("year", [1970, 2999])
def test_a_clock_that_was_wrong_stops_nothing(root: Path, year: int) -> None:
    """A review at the edge of what the file may hold has a next one."""
    for _ in range(5):
        due = reviews.review("worker", "easy", datetime(year, 1, 1, tzinfo=timezone(timedelta(hours=14))), root)
    assert due.year >= year
    reviews.due(NOON, root)


@pytest.mark.parametrize("place", ["off", "unwritable"])
def test_cards_go_on_where_nothing_is_recorded(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """With the file off, or one that can not be written, the kernel remembers reviews and opened lessons."""
    monkeypatch.setenv(progress.ENV, "off" if place == "off" else str(tmp_path))
    opened("00")
    assert names(NOON, root) == ["message", "worker"]
    due = reviews.review("worker", "easy", NOON, root)
    assert names(NOON, root) == ["message"]
    assert reviews.state("worker", NOON, root)["due"] == due


def test_an_earlier_review_that_is_noted_later_takes_its_place(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what only the kernel remembers is replayed in the order of time."""
    monkeypatch.setenv(progress.ENV, "off")
    first = [("worker", "easy", NOON), ("worker", "again", NOON + 9 * DAY)]
    for term, rating, at in first:
        expected = reviews.review(term, rating, at, root)
    for _, rating, at in reversed(first):
        due = reviews.review("message", rating, at, root)
    assert due == expected


# -- what a person may get wrong --------------------------------------------------------------------------------------


def test_an_unknown_term_is_refused_with_those_there_are(root: Path, file: Path) -> None:
    """Each call that takes a term names the terms, and nothing is recorded."""
    for ask in (
        lambda: reviews.review("wroker", "good", NOON, root),
        lambda: reviews.state("wroker", NOON, root),
        lambda: reviews.next_due("wroker", root),
    ):
        with pytest.raises(BadSetting, match=r"no term 'wroker' in the glossary; there are budget, .*, worker"):
            ask()
    assert not file.exists()


@pytest.mark.parametrize("rating", ["", "Good", "5", None, 3, ["good"]])
def test_an_unknown_rating_is_refused_with_those_there_are(root: Path, file: Path, rating: object) -> None:
    """The ratings are named, and nothing is recorded."""
    with pytest.raises(BadSetting, match="type one of 'again', 'hard', 'good', 'easy'"):
        reviews.review("worker", rating, NOON, root)  # type: ignore[arg-type]
    assert not file.exists()


def test_a_moment_without_a_timezone_is_refused(root: Path, file: Path) -> None:
    """It is said how to write one that has it."""
    naive = NOON.replace(tzinfo=None)
    for ask in (
        lambda: reviews.due(naive, root),
        lambda: reviews.review("worker", "good", naive, root),
        lambda: reviews.state("worker", naive, root),
    ):
        with pytest.raises(BadSetting, match="no timezone"):
            ask()
    assert not file.exists()


@pytest.mark.parametrize("before", [[], ["good"], ["good", "again"]], ids=["new", "seen once", "forgotten"])
def test_what_lies_ahead_of_a_card_is_what_then_comes(root: Path, before: list[str]) -> None:
    """For each rating the moment that is promised is the one at which the card is due after it was rated so."""
    for rating in before:
        reviews.review("worker", rating, NOON, root)
    later = NOON + DAY
    promised = reviews.ahead("worker", later, root)
    assert list(promised) == list(reviews.RATINGS) and len(set(promised.values())) > 1
    # Asking changes nothing, so the last one can be tried.
    assert reviews.ahead("worker", later, root) == promised
    assert reviews.review("worker", "hard", later, root) == promised["hard"]
    with pytest.raises(BadSetting, match="no term"):
        reviews.ahead("nonsense", later, root)
