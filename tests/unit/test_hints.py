"""Hints: every title before its step, one step at a time, remembered in the progress file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sandbox.errors import BadSetting
from sandbox.learn import catalog, check, hint, hints, progress
from sandbox.learn.catalog import Exercise
from sandbox.learn.hints import Ladder
from sandbox.learn.widgets.hints import Hints
from sandbox.services import code

TITLES = [
    "Which clause can't tell them apart?",
    "What kind of error is the limit?",
    "Which lines can the signal land on?",
    "How does the handler know how far it got?",
]


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel that has shown no hint yet, with a progress file of its own."""
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv(progress.ENV, str(path))
    monkeypatch.setattr(progress, "_unkept", [])
    restart()
    return path


def restart() -> None:
    """What a new kernel begins with."""
    hints._shown.clear()
    hints._made.clear()


@pytest.fixture
def exercise() -> Exercise:
    return catalog.load().exercise("03.1")[1]


def steps() -> list[int]:
    return [entry.data["step"] for entry in progress.entries() if entry.kind == "hint"]


def test_the_first_call_shows_the_titles_and_opens_nothing() -> None:
    """All titles can be read before the first step is opened, and no text; nothing is recorded."""
    text = str(hint("03.1"))
    assert all(title in text for title in TITLES)
    assert text.count("(closed)") == 4
    assert "SoftTimeLimitExceeded" not in text
    assert 'hint("03.1") opens hint 1.' in text
    assert steps() == []


def test_each_further_call_opens_the_next_and_the_last_stays() -> None:
    """Four more calls open four steps in order; a fifth shows them all and says where the solution is."""
    shown = [str(hint("03.1")) for _ in range(6)]
    assert [text.count("(closed)") for text in shown] == [4, 3, 2, 1, 0, 0]
    assert "A bad row and a spent budget" in shown[1] and "A bad row and a spent budget" in shown[5]
    assert 'solution("03.1") shows our solution beside yours' in shown[5]
    assert steps() == [1, 2, 3, 4]


def test_a_check_that_was_not_passed_has_named_the_first(tmp_path: Path) -> None:
    """After a failing check, whose verdict has the title, the first call opens the first step."""
    text = "def import_orders(job, rows):\n    pass\n"
    work = tmp_path / "work"
    work.mkdir()
    try:
        verdict = check("03.1", code.load(code.write("submission", text, work)).import_orders)
    finally:
        code.forget(work)
        sys.path.remove(str(work))
    assert TITLES[0] in str(verdict)
    assert str(hint("03.1")).count("(closed)") == 3


def test_a_new_kernel_goes_on_where_the_old_one_stopped() -> None:
    """What was opened is read from the progress file, and the next call opens the step after it."""
    for _ in range(3):
        hint("03.1")
    restart()
    assert str(hint("03.1")).count("(closed)") == 1


def test_without_a_file_they_count_in_this_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is recorded the steps are opened all the same."""
    monkeypatch.setenv(progress.ENV, "off")
    assert [str(hint("03.1")).count("(closed)") for _ in range(3)] == [4, 3, 2]


def test_a_step_is_not_jumped_to() -> None:
    """Step 3 before steps 1 and 2 is refused with what to type; the next one and an open one are shown."""
    with pytest.raises(BadSetting, match=r'hint 3 of 03\.1 comes after hint 1, .* type hint\("03\.1"\)'):
        hint("03.1", 3)
    assert str(hint("03.1", 1)).count("(closed)") == 3
    assert str(hint("03.1", 1)).count("(closed)") == 3
    assert steps() == [1]


@pytest.mark.parametrize("step", [0, 5, -1, "1", True, 1.0])
def test_a_step_that_does_not_exist_is_named_with_those_that_do(step: object) -> None:
    """A number that no step has, and what is no number."""
    with pytest.raises(BadSetting, match="its hints are 1 to 4"):
        hint("03.1", step)  # type: ignore[arg-type]


def test_an_exercise_for_a_reader_has_none_and_says_why() -> None:
    """An exercise without hints answers with a sentence, however often it is asked."""
    assert [str(hint("03.3")), str(hint("03.3"))] == [hints.NONE.format("03.3")] * 2


def test_what_the_file_holds_from_elsewhere_does_no_harm(exercise: Exercise) -> None:
    """A step of a longer list of hints, and one that is no number, are passed over or cut."""
    progress.record("hint", "03", "03.1", step="two")
    assert hints.opened(exercise) == 0
    progress.record("hint", "03", "03.1", step=99)
    assert hints.opened(exercise) == 4
    assert hints.next_line(exercise) == ""


def test_where_a_person_watches_it_is_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook gets one widget an exercise, whose text twin is the ladder; each call draws it anew."""
    assert isinstance(hint("03.1"), Ladder)
    monkeypatch.setattr(hints, "person_watches", lambda: True)
    widget = hint("03.1")
    assert isinstance(widget, Hints) and hint("03.1") is widget
    assert len(widget.state["texts"]) == 2
    assert str(widget) == str(Ladder(widget.exercise, 2))
    assert isinstance(hint("03.3"), Ladder)


def test_the_page_gets_a_text_only_when_its_step_is_opened(exercise: Exercise) -> None:
    """The state holds all titles, and the texts of the open steps alone."""
    widget = Hints(exercise)
    assert widget.state["titles"] == TITLES and widget.state["texts"] == []
    widget._heard(widget, {"do": "reveal", "with": [1]})
    assert widget.state["texts"] == [exercise.hints[0].text]
    widget._heard(widget, {"do": "reveal", "with": [4]})
    assert "comes after hint 2" in widget.state["problem"]
    assert widget.reveal(2).state["problem"] == ""
    assert steps() == [1, 2]


@pytest.mark.parametrize("message", ["reveal", {"do": "open", "with": []}, {"do": "refresh"}, {}])
def test_the_page_can_ask_for_nothing_else(exercise: Exercise, message: object) -> None:
    """Only the action that is listed is done."""
    widget = Hints(exercise)
    widget._heard(widget, message)
    assert widget.state["texts"] == [] and steps() == []


def test_every_exercise_for_the_machine_has_hints() -> None:
    """In the course itself each exercise that is graded by machine has at least two steps."""
    for lesson in catalog.load():
        for one in lesson.exercises:
            assert one.graded == "person" or len(one.hints) >= 2, one.id
