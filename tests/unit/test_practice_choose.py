"""The choose widget without a page: its text twin, its key, and what it keeps."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import content, fragments, progress
from sandbox.learn.content import Item, Option
from sandbox.learn.widgets import practice
from sandbox.learn.widgets.choose import Choose, key

ITEM = Item(
    id="03.test",
    kind="choose",
    question="What does this print?",
    why="Three is three.",
    code="print(1 + 2)\nprint('end')",
    options=(Option(text="4\nend", says="Count again."), Option(text="3\nend"), Option(text="b", says="No letter.")),
)


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(progress.ENV, str(tmp_path / "progress.jsonl"))
    return tmp_path / "progress.jsonl"


@pytest.mark.parametrize("answer", ["b", " B ", "3\nend", 1])
def test_an_option_is_named_by_letter_text_or_place(answer: int | str) -> None:
    """Each of them is the same answer, and is recorded as its place."""
    assert Choose(ITEM).answer(answer).state["verdict"] == "right"
    (entry,) = progress.entries()
    assert (entry.kind, entry.lesson, entry.item) == ("answer", "03", "03.test")
    assert (entry.data["answer"], entry.data["right"]) == (1, True)


@pytest.mark.parametrize("answer", ["d", "", "5", -1, 3, True, None, 1.0, ["a"]])
def test_an_option_that_is_not_there_is_refused(answer: Any) -> None:
    """The error names the letters there are; nothing is judged or recorded."""
    widget = Choose(ITEM)
    with pytest.raises(BadSetting, match=r"there is no option .*: type one of 'a', 'b', 'c'"):
        widget.answer(answer)
    assert widget.state["chosen"] is None
    assert progress.entries() == []


def test_the_text_shows_question_program_options_and_verdict() -> None:
    """`print` shows what the page shows, and how to answer; a wrong answer gets its own message, the right one the why."""
    widget = Choose(ITEM)
    assert str(widget) == repr(widget)
    assert str(widget).splitlines() == [
        *("03.test  What does this print?", "", "    print(1 + 2)", "    print('end')", ""),
        *("  a) 4", "     end", "  b) 3", "     end", "  c) b", ""),
        'Answer with practice("03.test").answer("a").',
    ]
    assert str(widget.answer("a")).endswith("\n\n✗ a) not yet: Count again.")
    assert str(widget.answer(1)).endswith("\n\n✓ b) right: Three is three.")


def test_the_answer_comes_back_from_the_progress_file() -> None:
    """A new kernel shows the last answer, with its verdict and message, and records nothing by it."""
    Choose(ITEM).answer("b")
    Choose(ITEM).answer("a")
    again = Choose(ITEM)
    assert (again.state["chosen"], again.state["verdict"], again.state["message"]) == (0, "not yet", "Count again.")
    assert len(progress.entries()) == 2


@pytest.mark.parametrize("answer", [7, -1, "a", None, [0], {"x": 1}])
def test_an_answer_of_another_version_of_the_item_is_passed_over(kept: Path, answer: Any) -> None:
    """An entry that fits no option leaves the question open."""
    progress.record("answer", "03", "03.test", answer=answer, right=True)
    assert Choose(ITEM).state["verdict"] == ""
    assert json.loads(kept.read_text())["data"]["answer"] == answer


def test_a_program_that_prints_none_of_the_options_is_the_authors_mistake() -> None:
    """BadNotebook names the item and what the program gave."""
    wrong = dataclasses.replace(ITEM, code="print(undefined)")
    with pytest.raises(BadNotebook, match=r"practice item 03\.test: its code gives 'NameError', which is none of its"):
        Choose(wrong).answer("a")
    with pytest.raises(BadNotebook, match="is not defined"):
        key(wrong)


def test_an_action_of_the_page_is_judged_like_a_call() -> None:
    """A click is an answer; a bad one becomes words on the page; only allowed methods are called; none goes unanswered."""
    widget = Choose(ITEM)
    widget._heard(widget, {"do": "answer", "with": [1]})
    assert widget.state["verdict"] == "right"
    sent: list[Any] = []
    widget.observe(lambda change: sent.append(change["new"]), "state")
    widget._heard(widget, {"do": "answer", "with": [1]})
    assert len(sent) == 1
    for _ in range(2):
        widget._heard(widget, {"do": "answer", "with": ["z"]})
        assert widget.state["problem"].startswith("there is no option 'z'")
    assert len(sent) == 3
    widget._heard(widget, {"do": "answer", "with": []})
    assert "This did not work, which is not your fault: TypeError" in widget.state["problem"]
    for bad in ("answer", None, {}, {"do": "close"}, {"do": "_show", "with": [0]}, {"do": ["answer"]}):
        widget._heard(widget, bad)
    assert len(sent) == 4


def test_an_answer_is_found_again_among_options_in_another_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An author who moves the options moves nobody's answer, and one whose option is gone is not shown."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "p.jsonl"))
    item = content.item("03.q1")
    chosen = Choose(item).answer("c").state["options"][2]
    moved = Choose(replace(item, options=item.options[::-1]))
    assert moved.state["options"][moved.state["chosen"]] == chosen
    assert Choose(replace(item, options=item.options[:2])).state["chosen"] is None


def test_an_item_has_one_widget() -> None:
    """A cell that is run again shows the same widget; an unknown item is refused with those there are."""
    assert practice("03.q1") is practice("03.q1")
    with pytest.raises(BadSetting, match=r"no practice item '03\.nothing'; there are .*03\.q1"):
        practice("03.nothing")
    with pytest.raises(BadSetting, match="no practice item"):
        practice("nothing")


def test_every_choose_item_of_the_course_has_its_key_among_its_options() -> None:
    """The code of each is run; each wrong option has something to say."""
    found = [item for item in content.all_items() if item.kind == "choose"]
    assert found
    for item in found:
        right = key(item)
        assert fragments.run(item.code).outcome == item.options[right].text.strip()
        assert [option.text for place, option in enumerate(item.options) if place != right and not option.says] == []
