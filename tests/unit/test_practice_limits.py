"""The timeline of two limits: how a job ends, in words, as a text, and as it was left."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sandbox.learn.widgets.limits as module
from sandbox.errors import BadSetting
from sandbox.jobs import State
from sandbox.learn import progress
from sandbox.learn.widgets.limits import RANGES, Limits, ending, limits

NUMBERS = st.fixed_dictionaries({name: st.integers(low, high) for name, (low, high) in RANGES.items()})


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A progress file of the test's own, and a kernel that has made no widget yet."""
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    monkeypatch.setattr(module, "_made", {})
    yield path


def restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new kernel has no widgets; the progress file is still there."""
    monkeypatch.setattr(module, "_made", {})


@pytest.mark.parametrize(
    ("numbers", "state", "at", "says"),
    [
        (
            (6, 3, 40, 7.5),
            "timed_out",
            9,
            "the timeout wins: stopped at 9 min, 3 min after it started, with 40 % of the work done.",
        ),
        (
            (5, 10, 12, 20),
            "expired",
            12,
            "the deadline wins: stopped at 12 min, 7 min after it started, with 35 % of the work done.",
        ),
        (
            (15, 10, 12, 20),
            "expired",
            12,
            "the deadline wins: the attempt never starts. The deadline passed at 12 min, while the job waited in the queue "
            "until 15 min; the timeout never began to count.",
        ),
        (
            (12, 10, 12, 1),
            "expired",
            12,
            "the deadline wins: the attempt never starts. Its turn comes at 12 min, and that is the deadline; the timeout "
            "never began to count.",
        ),
        (
            (5, 10, 40, 8),
            "completed",
            13,
            "the work is done first: completed at 13 min, 8 min after it started, and 2 min before the timeout would have "
            "stopped it.",
        ),
        (
            (5, 10, 14, 8),
            "completed",
            13,
            "the work is done first: completed at 13 min, 8 min after it started, and 1 min before the deadline would have "
            "stopped it.",
        ),
        (
            (5, 10, 15, 20),
            "expired",
            15,
            "the deadline wins: stopped at 15 min, 10 min after it started, with 50 % of the work done. The timeout falls on "
            "the same moment; the deadline counts, as no retry helps after it.",
        ),
        (
            (5, 10, 60, 10),
            "timed_out",
            15,
            "the timeout wins: stopped at 15 min, 10 min after it started, with all of the work done and not an instant left "
            "to say so.",
        ),
        (
            (0, 30, 60, 30),
            "timed_out",
            30,
            "the timeout wins: stopped at 30 min, 30 min after it started, with all of the work done and not an instant left "
            "to say so.",
        ),
    ],
)
def test_the_sentence(numbers: tuple[float, ...], state: str, at: float, says: str) -> None:
    """Which limit wins, when, how long after the start, and how much of the work was done."""
    found = ending(**dict(zip(RANGES, numbers, strict=True)))
    assert (found.state, found.at, found.says) == (state, at, says)


@given(numbers=NUMBERS)
def test_the_ending_is_the_earliest_of_three(numbers: dict[str, int]) -> None:
    """Of the end of the work, the timeout after the start, and the deadline, the earliest ends the job."""
    wait, timeout, deadline, work = (numbers[name] for name in RANGES)
    found = ending(**numbers)
    if deadline <= wait:
        assert (found.state, found.started, found.limit, found.at) == (State.EXPIRED, False, "deadline", deadline)
        return
    assert found.started
    assert found.at == min(wait + work, wait + timeout, deadline)
    if wait + work < min(wait + timeout, deadline):
        assert (found.state, found.limit) == (State.COMPLETED, "none")
    elif wait + timeout < deadline:
        assert (found.state, found.limit) == (State.TIMED_OUT, "timeout")
    else:
        assert (found.state, found.limit) == (State.EXPIRED, "deadline")


@given(numbers=NUMBERS, more=st.integers(0, 30))
def test_a_longer_wait_moves_the_timeout_and_not_the_deadline(numbers: dict[str, int], more: int) -> None:
    """A job that waits longer and is still timed out runs exactly as long; one that expires, ends when it would have."""
    later = {**numbers, "wait": min(30, numbers["wait"] + more)}
    one, other = ending(**numbers), ending(**later)
    if one.state == other.state == State.TIMED_OUT:
        assert other.at - later["wait"] == one.at - numbers["wait"] == numbers["timeout"]
    if one.state == State.EXPIRED:
        assert other.state == State.EXPIRED and other.at == one.at


def test_the_text_is_the_sentence_and_a_timeline() -> None:
    """`print` shows the state, the sentence, and each lane with its number, two minutes a character."""
    assert str(limits(wait=6, timeout=4, deadline=20, work=16)).splitlines() == [
        "timed_out: the timeout wins: stopped at 10 min, 4 min after it started, with 25 % of the work done.",
        "",
        "in the queue  ...                              6 min; then an attempt may start",
        "timeout          --T                           4 min from the start",
        "deadline                D                      at 20 min",
        "work             ~~~~~~~~                      would take 16 min",
        "what happens     ##|                           timed_out",
        "minutes       0    10   20   30   40   50   60    since it was enqueued",
        "",
        "Move a handle with .move(deadline=20): wait 0 to 30, timeout 1 to 30, deadline 0 to 60, work 1 to 30, in minutes.",
    ]


def test_a_job_that_never_starts_is_a_mark_without_a_bar() -> None:
    """Where the deadline passes in the queue, the text shows no attempt."""
    lines = str(limits(wait=20, timeout=4, deadline=10, work=16)).splitlines()
    assert next(line for line in lines if line.startswith("what happens")).split() == [
        "what",
        "happens",
        "x",
        "expired",
    ]


def test_a_move_keeps_the_other_numbers() -> None:
    """What is not named stays where it was, and the sentence is told anew."""
    widget = limits(wait=5, timeout=10, deadline=12, work=20)
    assert widget.move(deadline=40) is widget
    assert widget.values == {"wait": 5, "timeout": 10, "deadline": 40, "work": 20}
    assert widget.state["says"] == ending(wait=5, timeout=10, deadline=40, work=20).says
    assert widget.state["ending"] == "timed_out" and widget.state["moved"]
    assert "with 50 % of the work done" in str(widget)


def test_numbers_left_out_are_those_of_the_lesson() -> None:
    """`limits()` has all four."""
    assert limits().values == {"wait": 5, "timeout": 10, "deadline": 12, "work": 20}
    assert limits(work=3).values == {"wait": 5, "timeout": 10, "deadline": 12, "work": 3}


@pytest.mark.parametrize("name", list(RANGES))
@pytest.mark.parametrize("value", [-1, 61, math.nan, math.inf, True, "5", [5], None])
def test_a_number_out_of_range_is_refused(name: str, value: Any) -> None:
    """The error names the handle and the range, and nothing has moved."""
    low, high = RANGES[name]
    says = rf"{name}=.* can not be: type a number of minutes from {low} to {high}"
    with pytest.raises(BadSetting, match=says):
        limits(**{name: value})
    widget = limits()
    if value is not None:  # for a move that is: stay
        with pytest.raises(BadSetting, match=says):
            widget.move(**{name: value})
    assert widget.values == limits().values == {"wait": 5, "timeout": 10, "deadline": 12, "work": 20}
    assert progress.entries() == []


def test_an_unknown_handle_is_refused() -> None:
    """The error lists those there are."""
    with pytest.raises(BadSetting, match=r"no handle 'patience'; there are wait, timeout, deadline, work"):
        limits(patience=3)


def test_the_ends_of_every_range_are_allowed() -> None:
    """Also a deadline at the moment of the enqueue: the job is accepted, and ends expired."""
    for name, ends in RANGES.items():
        for value in ends:
            assert limits().move(**{name: value}).values[name] == value
    widget = limits(wait=0, deadline=0)
    assert widget.state["ending"] == "expired" and not widget.state["started"]


def test_the_last_position_comes_back_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new kernel shows what was recorded; the notebook's own numbers are one call away."""
    limits(wait=6).move(deadline=30).move(work=4)
    restart(monkeypatch)
    widget = limits(wait=6)
    assert widget.values == {"wait": 6, "timeout": 10, "deadline": 30, "work": 4}
    assert widget.state["moved"]
    assert widget.again().values == {"wait": 6, "timeout": 10, "deadline": 12, "work": 20}
    assert not widget.state["moved"]
    restart(monkeypatch)
    assert not limits(wait=6).state["moved"]


def test_each_notebook_has_a_position_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two begin with other numbers, moving one moves and forgets nothing of the other."""
    limits(wait=6).move(deadline=30)
    limits(wait=7).move(deadline=40)
    assert limits(wait=8).values["deadline"] == 12
    restart(monkeypatch)
    assert limits(wait=6).values["deadline"] == 30
    assert limits(wait=7).values["deadline"] == 40


@pytest.mark.parametrize(
    "values", [None, [], {}, {"wait": 99}, {"wait": "5"}, {"patience": 3}, {"wait": True}, {"wait": None}]
)
def test_a_position_that_can_not_be_is_passed_over(values: Any) -> None:
    """A progress file of another version does not break the lesson."""
    base = {"wait": 5.0, "timeout": 10.0, "deadline": 12.0, "work": 20.0}
    progress.record("sliders", "01", "limits", values=values, base=base)
    assert limits().values == base


def test_a_cell_that_is_run_again_shows_the_same_widget() -> None:
    """Also when the numbers are written in another way; a closed one is made anew."""
    widget = limits(wait=5)
    assert limits(wait=5.0) is widget
    widget.close()
    assert limits(wait=5) is not widget


def test_only_what_was_let_go_is_recorded() -> None:
    """While a handle is held nothing is written; letting go writes once, and the same position is not written again."""
    widget = limits()
    for deadline in range(13, 30):
        widget.drag(deadline=deadline)
    assert progress.entries() == []
    widget.move(deadline=30)
    widget.move(deadline=30)
    [entry] = progress.entries()
    assert (entry.kind, entry.lesson, entry.item) == ("sliders", "01", "limits")
    assert entry.data["values"]["deadline"] == 30 and entry.data["base"]["deadline"] == 12


def test_the_page_is_answered_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every move of the page changes the state, also one to the same place and one that can not be."""
    widget = limits()
    hear(widget, "drag", 5, 10, 12, 20)
    first = widget.state
    hear(widget, "drag", 5, 10, 12, 20)
    assert widget.state != first and widget.values == first["values"]
    hear(widget, "move", 5, 10, 99, 20)
    assert "deadline=99 can not be" in widget.state["problem"]
    hear(widget, "move", 5, 10, 13, 20)
    assert widget.state["problem"] == "" and widget.values["deadline"] == 13
    hear(widget, "close")
    assert widget.comm is not None


def hear(widget: Limits, action: str, *arguments: Any) -> None:
    """What arrives when the page acts."""
    widget._heard(widget, {"do": action, "with": list(arguments)}, [])
