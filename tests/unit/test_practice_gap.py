"""Programs with gaps: what is right, what is said to a mistake, and what comes back after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import content, progress
from sandbox.learn.content import Item, Mistake
from sandbox.learn.widgets import gap
from sandbox.learn.widgets.gap import Gap, judge

ITEM = Item(
    id="03.test",
    kind="gap",
    question="Let the deadline out.",
    why="It comes once.",
    code="""class Late(Exception):
    pass

def save(row):
    if row == 1:
        raise Late("too late")

try:
    for row in range(3):
        try:
            save(row)
        except ____:
            ____
        except Exception:
            print("bad", row)
    print("done")
except Late:
    print("time is up")""",
    answers=("Late", "raise"),
    mistakes=(
        Mistake(answers=("Late", "pass"), says="Dropped."),
        Mistake(answers=("Late", "break"), says="Left the loop."),
        Mistake(answers=("OSError", "raise"), says="Does not fit."),
        Mistake(answers=("Lat", "raise"), says="No such name."),
    ),
)
ONE = Item(id="03.one", kind="gap", question="?", why="So.", code="x = ____\nprint(x + 1)", answers=("1",))


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    yield path


def hear(widget: Gap, *arguments: Any) -> None:
    """What arrives when the page acts."""
    widget._heard(widget, {"do": "answer", "with": list(arguments)}, [])


@pytest.mark.parametrize(
    "answers", [("Late", "raise"), (" Late ", "\traise\n"), ("Late as e", "raise e"), ("(Late, OSError)", "raise")]
)
def test_every_filling_with_the_same_outcome_is_right(answers: tuple[str, str]) -> None:
    """The item's own answers, with blanks around them, and others that do the same."""
    widget = Gap(ITEM)
    assert widget.answer(*answers) is widget
    assert (widget.state["verdict"], widget.state["message"]) == ("right", "It comes once.")
    assert widget.state["printed"] == widget.state["expected"] == ""
    [entry] = progress.entries()
    assert (entry.kind, entry.lesson, entry.item) == ("answer", "03", "03.test")
    assert entry.data == {"answer": list(answers), "right": True, "told": {}}


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (("Late", " pass"), "Dropped."),
        (("Late", "break"), "Left the loop."),
        (("OSError", "raise"), "Does not fit."),
        (("KeyError", "raise"), "Does not fit."),  # behaves as OSError does
        (("Lat", "raise"), "No such name."),
    ],
)
def test_an_expected_mistake_is_told_its_cause(answers: tuple[str, str], says: str) -> None:
    """By its text, or because it behaves like the one that is written down; nothing else is added."""
    found = judge(ITEM, answers)
    assert (found.verdict, found.message, found.printed, found.expected) == ("not yet", says, "", "")


def test_behaving_like_two_mistakes_is_neither() -> None:
    """A cause is not guessed: `continue` does what `pass` and `break` do... here, and shares a gap with both."""
    item = replace(ITEM, code=ITEM.code.replace("range(3)", "range(2)"))
    found = judge(item, ("Late", "continue"))
    assert found.message == "The program runs to its end, and does something else than it should."
    assert (found.printed, found.expected) == ("done", "time is up")
    assert judge(item, ("Late", "break")).message == "Left the loop."


def test_the_mistake_with_more_gaps_in_common_is_the_nearer_one() -> None:
    """Where two mistakes behave as the filling does, the one that shares a gap with it is meant."""
    item = replace(
        ITEM,
        mistakes=(
            Mistake(answers=("Late", "pass"), says="Dropped."),
            Mistake(answers=("BaseException", "0"), says="All."),
        ),
    )
    assert judge(item, ("Late", "...")).message == "Dropped."


def test_an_unknown_name_is_not_another_unknown_name() -> None:
    """Errors are the same only with the same words; otherwise the error itself is shown, with its line."""
    found = judge(ITEM, ("Later", "raise"))
    assert found.verdict == "not yet"
    assert found.message.startswith("The program ends with `NameError: name 'Later' is not defined")
    assert found.message.endswith("` on line 12 (`except Later:`).")
    assert (found.printed, found.expected) == ("(nothing)", "time is up")


def test_code_that_can_not_be_parsed_is_no_mistake_but_its_own() -> None:
    """Two syntax errors with the same words have different causes."""
    item = replace(ITEM, mistakes=(Mistake(answers=("Late", "raise raise"), says="Twice."),))
    assert judge(item, ("Late", "raise raise")).message == "Twice."
    found = judge(item, ("Late", "pass pass"))
    assert found.message == "The program ends with `SyntaxError: invalid syntax` on line 13 (`pass pass`)."


def test_a_program_that_does_not_end_is_stopped_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the seconds a fragment has."""
    monkeypatch.setattr("sandbox.learn.fragments.SECONDS", 1)
    item = replace(ONE, code="while ____:\n    pass\nprint('over')", answers=("0",))
    found = judge(item, ("1 + 0",))
    assert found.message == "The program had not ended after 1 seconds, and was stopped."


def test_an_output_that_holds_an_answer_is_not_shown() -> None:
    """What it should print is shown unless it could be copied into the gap."""
    item = replace(ONE, code="print(____)", answers=("42",))
    found = judge(item, ("41",))
    assert (found.printed, found.expected) == ("41", "")
    assert judge(ONE, ("2",)).expected == "2" and "2" not in ONE.answers


@pytest.mark.parametrize(
    ("answers", "says"),
    [(("", "raise"), "gap 1 is empty"), (("Late", " "), "gap 2 is empty"), (("", "\n"), "gaps 1, 2 are empty")],
)
def test_an_empty_gap_is_not_attempted(answers: tuple[str, str], says: str) -> None:
    """It is not wrong, what was typed stays, and nothing is recorded."""
    widget = Gap(ITEM).answer(*answers)
    assert widget.state["verdict"] == "not attempted" and says in widget.state["message"]
    assert widget.state["filled"] == list(answers)
    assert f"– not attempted: {says}" in str(widget)
    assert progress.entries() == []


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ((), r'there are 2 gaps, and 0 answers: type practice\("03.test"\).answer\("...", "..."\)'),
        (("Late",), "there are 2 gaps, and 1 answers"),
        (("Late", "raise", "raise"), "there are 2 gaps, and 3 answers"),
        (("Late", None), r"gap 2 can not be filled with None: type text in quotes, practice\("),
        ((True, "raise"), "gap 1 can not be filled with True"),
        ((["Late"], "raise"), "gap 1 can not be filled with"),
        (("Late", "print()\nraise"), "gap 2 is for one line of code, and this has a line break: type one line"),
        (("Late", "print()\rraise"), "gap 2 is for one line of code"),
        (("Late", "print()\u2028raise"), "gap 2 is for one line of code"),
        (("Late", "x" * 201), "gap 2 is for 200 characters at most, and this has 201: type less"),
    ],
)
def test_a_filling_that_can_not_be(answers: tuple[Any, ...], says: str) -> None:
    """The error says what to type; nothing is run, changed or recorded. From the page it is shown instead."""
    widget = Gap(ITEM)
    with pytest.raises(BadSetting, match=says):
        widget.answer(*answers)
    assert widget.state["filled"] == ["", ""] and progress.entries() == []
    hear(widget, *answers)
    assert widget.state["problem"] and widget.state["verdict"] == ""


def test_one_gap_is_spoken_of_as_one() -> None:
    """In the error, and in how to answer."""
    with pytest.raises(BadSetting, match="there is one gap, and 2 answers"):
        Gap(ONE).answer("1", "2")
    assert str(Gap(ONE)).endswith('Fill the gap with practice("03.one").answer("...").')


@pytest.mark.parametrize("answer", ["'\x00'", "'\ud800'", "__import__('os')._exit(3)", "print('`')", "'" * 3])
def test_odd_text_is_run_like_any_other(answer: str) -> None:
    """A zero byte, half of a character pair, a process that goes away: it is wrong, and nothing breaks."""
    widget = Gap(ONE).answer(answer)
    assert widget.state["verdict"] == "not yet" and str(widget)
    assert progress.last("answer", "03.one").data["right"] is False  # type: ignore[union-attr]


def test_an_item_whose_answers_do_not_end_is_the_authors_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key can not be computed, and the item is named."""
    monkeypatch.setattr("sandbox.learn.fragments.SECONDS", 1)
    with pytest.raises(BadNotebook, match=r"practice item 03\.one: filled with its answers, its program does not end"):
        gap.key(replace(ONE, code="while ____:\n    pass", answers=("1",)))


def test_the_page_is_answered_every_time() -> None:
    """The same answer again, right, wrong or refused, changes the state, so that the page knows it was heard."""
    widget = Gap(ONE)
    for answer in ("1", "1", "7", "7", "", "", "a\nb", "a\nb"):
        before = widget.state
        hear(widget, answer)
        assert widget.state != before


def test_a_right_answer_after_a_refused_one() -> None:
    """The problem is gone."""
    widget = Gap(ONE)
    hear(widget, "a\nb")
    assert widget.state["problem"]
    hear(widget, "1")
    assert widget.state["problem"] == "" and widget.state["verdict"] == "right"


@pytest.mark.parametrize("answers", [("Late", "raise"), ("Late", "pass"), ("Later", "raise")])
def test_the_last_answer_comes_back_after_a_restart(answers: tuple[str, str]) -> None:
    """What was typed, the verdict, and what was said, without running it again."""
    before = Gap(ITEM).answer(*answers)
    again = Gap(ITEM)
    for name in ("filled", "verdict", "message", "printed", "expected"):
        assert again.state[name] == before.state[name], name
    assert str(again) == str(before)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"answer": None},
        {"answer": "Late"},
        {"answer": ["Late"], "right": True},
        {"answer": ["a", "b", "c"], "right": True},
        {"answer": ["a\nb", "c"]},
        {"answer": [1, 2]},
        {"answer": 3, "right": True},
    ],
)
def test_an_entry_that_does_not_fit_is_passed_over(data: dict[str, Any]) -> None:
    """The item has changed since, or the file is of another version."""
    progress.record("answer", "03", "03.test", **data)
    assert Gap(ITEM).state["filled"] == ["", ""] and Gap(ITEM).state["verdict"] == ""


@pytest.mark.parametrize("told", [None, 3, [], {"message": 3, "printed": None}])
def test_an_entry_whose_words_are_none_shows_the_verdict(told: Any) -> None:
    """What was typed and the verdict come back."""
    progress.record("answer", "03", "03.test", answer=["a", "b"], right=False, told=told)
    assert Gap(ITEM).state["verdict"] == "not yet" and Gap(ITEM).state["message"] == ""


def test_the_text_shows_the_program_and_what_happened() -> None:
    """First with gaps, and how to answer; then filled, with what it printed and what it should."""
    widget = Gap(ONE)
    assert str(widget).splitlines() == [
        "03.one  ?",
        "",
        "    x = ____",
        "    print(x + 1)",
        "",
        'Fill the gap with practice("03.one").answer("...").',
    ]
    assert str(widget.answer("2")).splitlines() == [
        "03.one  ?",
        "",
        "    x = 2",
        "    print(x + 1)",
        "",
        "✗ not yet: The program runs to its end, and does something else than it should.",
        "It printed:",
        "    3",
        "It should print:",
        "    2",
    ]
    assert str(widget.answer("1")).splitlines()[-1] == "✓ right: So."


def test_the_item_of_lesson_03(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one in the course can be answered, by its text twin."""
    from sandbox.learn import widgets

    monkeypatch.setattr(widgets, "_made", {})
    widget = widgets.practice("03.g1")
    assert isinstance(widget, Gap)
    assert widget.answer("SoftTimeLimitExceeded", "raise").state["verdict"] == "right"
    assert widget.answer("Exception", "raise").state["message"] == content.item("03.g1").mistakes[0].says
