"""Predictions: locked in before the run, compared with what the run ended with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import BadNotebook, BadSetting
from sandbox.jobs import State
from sandbox.learn import content, progress
from sandbox.learn.content import Item, Option
from sandbox.learn.widgets.predict import Predict

ITEM = Item(
    id="03.test",
    kind="predict",
    question="What will the row say?",
    why="The signal comes once.",
    options=(
        Option(text="completed", says="The loop never got there."),
        Option(text="timed_out", says="Nobody wrote it."),
        Option(text="running"),
    ),
)


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    yield path


@pytest.fixture
def said() -> Predict:
    return Predict(ITEM)


def data() -> list[dict[str, Any]]:
    """What is recorded, without the text of the option, which stands beside its place."""
    found = [entry.data for entry in progress.entries()]
    texts = [option.text for option in ITEM.options]
    assert all(one["locked"] is None or one["text"] == texts[one["locked"]] for one in found)
    return [{name: value for name, value in one.items() if name != "text"} for one in found]


@pytest.mark.parametrize("option", [1, "b", " B ", "timed_out", " timed_out\n"])
def test_an_answer_is_its_place_its_letter_or_its_text(said: Predict, option: Any) -> None:
    """All ways to name one option lock the same one in, and it is recorded."""
    assert said.answer(option) is said
    assert said.state["locked"] == 1
    [entry] = progress.entries()
    assert (entry.kind, entry.lesson, entry.item, data()) == ("answer", "03", "03.test", [{"locked": 1}])


@pytest.mark.parametrize("option", [-1, 3, "d", "", "Timed_out", "cancelled", None, True, 1.0, [1]])
def test_an_option_that_is_not_there_is_refused(said: Predict, option: Any) -> None:
    """The error lists what can be typed, and nothing is locked."""
    with pytest.raises(BadSetting, match=r"type one of 'a' \(completed\), 'b' \(timed_out\), 'c' \(running\)"):
        said.answer(option)
    assert said.state["locked"] is None and data() == []


def test_a_locked_answer_can_not_be_changed(said: Predict) -> None:
    """Another one is refused, the same one again does nothing, until it is taken back."""
    said.answer("a")
    with pytest.raises(BadSetting, match=r"'completed' is locked in.*again\(\) takes the answer back"):
        said.answer("b")
    said.answer("completed")
    assert said.state["locked"] == 0 and data() == [{"locked": 0}]
    said.again().answer("b")
    assert said.state["locked"] == 1
    assert data() == [{"locked": 0}, {"locked": None}, {"locked": 1}]


def test_a_right_prediction(said: Predict, capsys: pytest.CaptureFixture[str]) -> None:
    """The outcome prints one line, returns nothing, shows the reason, and is recorded as right."""
    said.answer("running")
    assert said.outcome("running") is None
    assert capsys.readouterr().out == "03.test  ✓ You said running, and it is running.\n"
    assert said.state["verdict"] == "right" and said.state["ended"] == 2
    assert said.state["message"] == "The signal comes once."
    assert data()[-1] == {"locked": 2, "answer": 2, "right": True, "outcome": "running"}


def test_a_wrong_prediction(said: Predict, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said to the chosen option comes first, then the reason; it is recorded as not right."""
    said.answer("timed_out")
    said.outcome(State.RUNNING)
    assert capsys.readouterr().out == "03.test  ✗ You said timed_out; it is running.\n"
    assert said.state["verdict"] == "not yet"
    assert said.state["message"] == "Nobody wrote it. The signal comes once."
    assert data()[-1] == {"locked": 1, "answer": 1, "right": False, "outcome": "running"}


def test_without_a_prediction_a_run_all_goes_on(said: Predict, capsys: pytest.CaptureFixture[str]) -> None:
    """It tells what happened and that nothing was predicted, records nothing, and then it is too late to predict."""
    said.outcome("running")
    assert capsys.readouterr().out == "03.test  It is running. Nothing was predicted.\n"
    assert said.state["verdict"] == "" and said.state["message"] == "The signal comes once." and data() == []
    with pytest.raises(BadSetting, match=r"too late to predict: 'running' is known.*again\(\)"):
        said.answer("running")
    said.again().answer("a")
    assert said.state["locked"] == 0 and said.state["ended"] is None


def test_after_the_outcome_nothing_can_be_locked(said: Predict) -> None:
    """Not another answer, and not the same one."""
    said.answer("a").outcome("running")
    for option in ("a", "c"):
        with pytest.raises(BadSetting, match="too late"):
            said.answer(option)
    assert said.state["locked"] == 0


@pytest.mark.parametrize("happened", ["cancelled", "", None, 2, "RUNNING", State.EXPIRED])
def test_an_outcome_that_is_no_option_is_the_lessons_fault(said: Predict, happened: Any) -> None:
    """The lesson lies: BadNotebook names the item, the outcome and the options, and the prediction stands."""
    said.answer("a")
    with pytest.raises(
        BadNotebook, match=r"practice item 03.test.*none of its options \(completed, timed_out, running\)"
    ):
        said.outcome(happened)
    assert said.state["ended"] is None and said.state["locked"] == 0 and len(data()) == 1


def test_an_outcome_may_differ_from_run_to_run(said: Predict, capsys: pytest.CaptureFixture[str]) -> None:
    """A repaired job is compared anew with the same prediction, and the same comparison is recorded once."""
    said.answer("timed_out")
    for happened in ("running", "running", "timed_out"):
        said.outcome(happened)
    assert said.state["verdict"] == "right"
    assert [entry.get("right") for entry in data()] == [None, False, True]
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_locked_answer_comes_back_after_a_restart(said: Predict) -> None:
    """A new kernel shows the locked answer; what happened is not known there until it runs."""
    said.answer("b")
    new = Predict(ITEM)
    assert new.state["locked"] == 1 and new.state["ended"] is None
    new.outcome("running")
    assert new.state["verdict"] == "not yet"
    newer = Predict(ITEM)
    assert newer.state["locked"] == 1 and newer.state["ended"] is None and newer.state["message"] == ""
    newer.outcome("running")
    assert len(data()) == 2


def test_an_answer_that_was_taken_back_stays_away(said: Predict) -> None:
    """After `again` and a restart nothing is locked."""
    said.answer("b").again()
    assert Predict(ITEM).state["locked"] is None


def test_an_answer_is_found_again_among_options_in_another_order(said: Predict) -> None:
    """An author who moves the options moves nobody's answer."""
    said.answer("timed_out")
    moved = Predict(replace(ITEM, options=ITEM.options[::-1]))
    assert moved.state["options"][moved.state["locked"]] == "timed_out"


@pytest.mark.parametrize("text", [3, "b", True, None, ["running"], "no longer an option"])
def test_a_record_that_can_not_be_is_passed_over(text: Any) -> None:
    """Also when the item had more options when it was answered."""
    progress.record("answer", "03", "03.test", locked=1, text=text)
    assert Predict(ITEM).state["locked"] is None


def test_nothing_recorded_is_nothing_lost(said: Predict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is recorded, as under papermill, it works all the same."""
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    said.answer("c").outcome("running")
    assert said.state["verdict"] == "right" and progress.entries() == []


def test_the_text_twin(said: Predict) -> None:
    """`print` shows the question and the options, then the locked one, then what happened."""
    assert str(said).splitlines() == [
        "03.test  What will the row say?",
        "",
        "  a) completed",
        "  b) timed_out",
        "  c) running",
        "",
        'Lock an answer in with practice("03.test").answer("a"), before you run the next cell.',
    ]
    said.answer("b")
    assert "  b) timed_out   <- you said" in str(said)
    assert "Locked in: timed_out. Run the next cell." in str(said)
    said.outcome("running")
    assert str(said).splitlines()[-3:] == [
        "  c) running   <- it is",
        "",
        "✗ You said timed_out; it is running. Nobody wrote it. The signal comes once.",
    ]
    said.again().answer("c").outcome("running")
    assert "  c) running   <- you said, it is" in str(said)


def test_the_page_hears_why_not(said: Predict) -> None:
    """A click that comes too late is answered with the reason; the page may lock and start over, and tell no outcome."""
    said.outcome("running")
    hear(said, "answer", 0)
    assert "too late" in said.state["problem"]
    hear(said, "again")
    assert said.state["problem"] == ""
    hear(said, "answer", 0)
    assert said.state["locked"] == 0
    hear(said, "outcome", "completed")
    assert said.state["ended"] is None


def test_the_item_of_lesson_03_says_something_to_every_wrong_answer() -> None:
    """Each option but the one that happens has its own message."""
    item = content.item("03.naive")
    assert [option.text for option in item.options] == ["completed", "timed_out", "failed", "running"]
    says = [option.says for option in item.options if option.text != "running"]
    assert all(says) and len(set(says)) == 3


def hear(widget: Predict, action: str, *arguments: Any) -> None:
    """What arrives when the page acts."""
    widget._heard(widget, {"do": action, "with": list(arguments)}, [])
