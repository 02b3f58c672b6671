"""Lines to order: the grade, the one thing that is named, several right orders, and the typed order."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import content, progress
from sandbox.learn.content import Item, Option
from sandbox.learn.widgets import parsons
from sandbox.learn.widgets.parsons import Line, Parsons, grade, judge, pool, split

SOLUTION: list[Line] = [("a", 0), ("b", 1), ("c", 1), ("d", 0)]
WRONG = (Option(text="x", says="No x."), Option(text="    y", says="No y."))
ITEM = Item(
    id="03.test",
    kind="parsons",
    question="Add them up.",
    why="Nothing is counted twice.",
    before="numbers = [3, 1, 2]",
    lines=("total = 0", "most = 0", "for n in numbers:", "    total += n", "    most = max(most, n)"),
    distractors=(Option(text="total = n", says="That forgets the others."),),
    after="print(total, most)",
)
LINES = [split(line) for line in ITEM.lines]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    yield path


def hear(widget: Parsons, action: str, *arguments: Any) -> None:
    """What arrives when the page acts."""
    widget._heard(widget, {"do": action, "with": list(arguments)}, [])


def typed(lines: list[Line], item: Item = ITEM) -> str:
    """The order that places these lines."""
    free = dict(enumerate(pool(item)))
    words = []
    for text, steps in lines:
        place = next(place for place, other in free.items() if other == text)
        del free[place]
        words.append(chr(ord("a") + place) + ">" * steps)
    return " ".join(words)


# --- the grade


@pytest.mark.parametrize(
    ("placed", "in_order", "wrong", "message"),
    [
        ([("a", 0), ("b", 1), ("c", 1), ("d", 0)], 4, "", ""),
        ([], 0, "missing", "Nothing is placed yet; 4 lines are missing."),
        ([("a", 0), ("c", 1), ("d", 0)], 3, "missing", "What you have placed is in order; one line is missing."),
        ([("c", 1)], 1, "missing", "What you have placed is in order; 3 lines are missing."),
        (
            [("b", 1), ("a", 0), ("c", 1), ("d", 0)],
            3,
            "order",
            "Line 1 of your answer, `b`, is out of place: it belongs further down.",
        ),
        (
            [("b", 1), ("c", 1), ("d", 0), ("a", 0)],
            3,
            "order",
            "Line 4 of your answer, `a`, is out of place: it belongs further up.",
        ),
        (
            [("d", 0), ("c", 1), ("b", 1), ("a", 0)],
            1,
            "order",
            "Line 1 of your answer, `d`, is out of place: it belongs further down.",
        ),
        ([("a", 0), ("b", 2), ("c", 1), ("d", 0)], 3, "indent", "Line 2 of your answer, `b`, is too far in."),
        ([("a", 0), ("b", 0), ("c", 0), ("d", 0)], 2, "indent", "Line 2 of your answer, `b`, is not far enough in."),
        ([("a", 0), ("b", 1), ("x", 1), ("c", 1), ("d", 0)], 3, "distractor", "`x` is taken. No x."),
        ([("y", 0), ("x", 1)], 0, "distractor", "`y` is taken. No y."),
        ([("d", 0), ("x", 0), ("a", 3)], 0, "distractor", "`x` is taken. No x."),
        ([("d", 3), ("a", 0)], 1, "order", "Line 1 of your answer, `d`, is out of place: it belongs further down."),
        (
            [("a", 0), ("a", 0), ("b", 1)],
            2,
            "order",
            "Line 1 of your answer, `a`, stands there more often than it is needed.",
        ),
    ],
)
def test_the_grade(placed: list[Line], in_order: int, wrong: str, message: str) -> None:
    """Partial credit, and the first wrong thing: a distractor, then the order, then the indentation, then what is missing."""
    found = grade(SOLUTION, WRONG, placed)
    assert (found.in_order, found.wrong, found.message) == (in_order, wrong, message)
    assert found.score == f"{in_order} of 4 lines in order"


def increasing(numbers: list[int]) -> int:
    """The length of the longest increasing subsequence, by the textbook."""
    tails: list[int] = []
    for number in numbers:
        place = bisect.bisect_left(tails, number)
        tails[place : place + 1] = [number]
    return len(tails)


@settings(deadline=None)
@given(st.permutations(range(9)), st.integers(0, 9))
def test_partial_credit_is_the_longest_increasing_subsequence(order: list[int], taken: int) -> None:
    """For lines that all differ, whole or in part."""
    solution = [(f"line {n}", n % 3) for n in range(9)]
    placed = [solution[n] for n in order[:taken]]
    assert grade(solution, (), placed).in_order == increasing(order[:taken])


@settings(deadline=None)
@given(st.permutations(range(6)), st.lists(st.integers(0, 2), min_size=6, max_size=6), st.integers(0, 3))
def test_a_distractor_costs_one_line_and_wrong_indentation_its_own(
    order: list[int], moved: list[int], more: int
) -> None:
    """Never below zero, and never more than what is indented right."""
    solution = [(f"line {n}", 1) for n in range(6)]
    placed = [(solution[n][0], 1 + off) for n, off in zip(order, moved, strict=True)]
    alone = grade(solution, (), placed).in_order
    assert alone == increasing([n for n, off in zip(order, moved, strict=True) if not off])
    extra = [(f"extra {n}", 0) for n in range(more)]
    wrong = [Option(text=text, says="No.") for text, _ in extra]
    assert grade(solution, wrong, [*placed, *extra]).in_order == max(0, alone - more)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1)), min_size=1, max_size=7), st.randoms())
def test_identical_lines_are_interchangeable(solution: list[Line], chance: Any) -> None:
    """The solution is right whatever twins it has, and another order of the same lines is told a sentence or is the same."""
    assert grade(solution, (), solution).wrong == ""
    assert grade(solution, (), solution).in_order == len(solution)
    other = list(solution)
    chance.shuffle(other)
    found = grade(solution, (), other)
    assert (found.wrong == "") == (other == solution) == (found.message == "")
    assert 1 <= found.in_order <= len(solution)


def test_of_identical_lines_the_one_with_this_indentation_is_meant() -> None:
    """An unfinished answer is not told that its line is too far in or out, because it has a twin that is."""
    solution = [("except Late:", 1), ("    raise", 2), ("except Late:", 0)]
    for line in (solution[0], solution[2]):
        found = grade(solution, (), [line])
        assert (found.wrong, found.in_order) == ("missing", 1)


@settings(deadline=None)
@given(st.permutations(range(7)))
def test_the_line_that_is_named_really_has_to_move_that_way(order: list[int]) -> None:
    """Some line that is told to go down stands above one that comes before it, and the other way round."""
    solution = [(f"line {n}", 0) for n in range(7)]
    found = grade(solution, (), [solution[n] for n in order])
    if found.wrong:
        blamed = order[found.place]
        others = order[found.place :] if "further down" in found.message else order[: found.place]
        assert any((other < blamed) == ("further down" in found.message) for other in others if other != blamed)


# --- several right orders


def test_another_order_with_the_same_outcome_is_right() -> None:
    """There may be several, also with another indentation."""
    other = [LINES[1], LINES[0], LINES[2], LINES[4], LINES[3]]
    found = judge(ITEM, other)
    assert (found.wrong, found.score) == ("", "5 of 5 lines in order")
    assert judge(ITEM, [LINES[1], LINES[0], LINES[2], (LINES[4][0], 3), (LINES[3][0], 3)]).wrong == ""


def test_all_lines_in_another_order_with_another_outcome_are_wrong() -> None:
    """An error, or another output."""
    found = judge(ITEM, [LINES[2], LINES[0], LINES[1], LINES[3], LINES[4]])
    assert found.message == "Line 1 of your answer, `for n in numbers:`, is out of place: it belongs further down."
    found = judge(ITEM, [*LINES[:4], (LINES[4][0], 0)])
    assert found.message == "Line 5 of your answer, `most = max(most, n)`, is not far enough in."


def test_a_line_that_may_stand_there_is_not_blamed() -> None:
    """Of two lines in the other order, only the one whose order matters is named, and the other is counted."""
    placed = [LINES[1], LINES[0], LINES[3], LINES[2], LINES[4]]
    assert grade(LINES, (), placed).message.startswith("Line 1 ")
    found = judge(ITEM, placed)
    assert found.message == "Line 3 of your answer, `total += n`, is out of place: it belongs further down."
    assert found.score == "4 of 5 lines in order"


def test_an_unfinished_answer_in_another_right_order_is_only_unfinished() -> None:
    """What is there is in a right order."""
    found = judge(ITEM, [LINES[1], LINES[0]])
    assert (found.wrong, found.score) == ("missing", "2 of 5 lines in order")


def test_a_line_that_may_stand_further_down_is_not_blamed() -> None:
    """It is compared as the learner has placed it, among the lines that follow."""
    lines = ("a = 1", "b = 2", "c = 3", "print(a)", "print(b, c)")
    item = replace(ITEM, before="", distractors=(), lines=lines, after="print()")
    a, b, c, first, second = map(split, lines)
    found = judge(item, [b, c, a, second, first])
    assert found.message == "Line 4 of your answer, `print(b, c)`, is out of place: it belongs further down."
    assert found.score == "4 of 5 lines in order"


def test_a_solution_that_does_not_end_is_the_authors_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key can not be computed, and the item is named."""
    monkeypatch.setattr("sandbox.learn.fragments.SECONDS", 1)
    item = replace(ITEM, lines=("while 1:", "    pass", "x = 1", "y = 2"))
    with pytest.raises(BadNotebook, match=r"practice item 03\.test: its lines, in their order, do not end; mend them"):
        parsons.key(item)


def test_the_program_is_before_lines_and_after() -> None:
    """Joined by line breaks; what is not there leaves no blank line."""
    assert parsons.program(ITEM, LINES).splitlines() == [ITEM.before, *ITEM.lines, ITEM.after]
    assert parsons.program(replace(ITEM, before=""), LINES[:1]) == "total = 0\nprint(total, most)"


# --- the pool


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", "pass"]), min_size=3, max_size=9), st.integers(0, 3), st.integers(0, 99)
)
def test_the_pool_holds_every_line_and_never_in_order(lines: list[str], wrong: int, number: int) -> None:
    """The same for the same id; without indentation; the distractors among the lines."""
    if len(set(lines)) < 2:
        return
    wrongs = tuple(Option(text=f"    no {n}", says="No.") for n in range(wrong))
    item = replace(ITEM, id=f"03.x{number}", lines=tuple(f"    {line}" for line in lines), distractors=wrongs)
    found = pool(item)
    assert sorted(found) == sorted([*lines, *(f"no {n}" for n in range(wrong))])
    assert [text for text in found if not text.startswith("no ")] != lines
    assert pool(item) == found


def test_the_pool_is_the_same_on_every_machine() -> None:
    """A letter that is written in a chat means the same line to everybody."""
    assert pool(content.item("03.p1"))[:4] == [
        "bad.append(row)",
        "except Exception:",
        "except SoftTimeLimitExceeded:",
        "raise",
    ]


# --- the widget and its text twin


def test_the_typed_order_is_graded_and_recorded() -> None:
    """Letters, and > for each step; commas, blanks and capitals as one likes."""
    widget, order = Parsons(ITEM), typed(LINES)
    for written in (order, order.replace(" ", ", "), order.replace(" ", "").upper(), f"  {order.replace('>', ' > ')},"):
        assert widget.answer(written) is widget
        assert (widget.state["verdict"], widget.state["score"]) == ("right", "5 of 5 lines in order")
        assert widget.state["message"] == "Nothing is counted twice."
    entry = progress.entries()[0]
    assert (entry.kind, entry.lesson, entry.item, entry.data["right"]) == ("answer", "03", "03.test", True)
    assert entry.data["answer"] == [list(line) for line in LINES]
    widget.answer(typed(LINES[:3]))
    assert widget.state["verdict"] == "not yet" and progress.entries()[-1].data["right"] is False


@pytest.mark.parametrize("order", ["", "  ", ",", " , \n"])
def test_no_line_placed_is_not_attempted(order: str) -> None:
    """It is not wrong, and nothing is recorded."""
    widget = Parsons(ITEM).answer(order)
    assert widget.state["verdict"] == "not attempted"
    assert "– not attempted: no line is placed." in str(widget)
    assert progress.entries() == []


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ("a z", r"there is no line 'z'; there are a to f: type a letter for each line"),
        ("a b a", "line 'a' stands there twice: type each letter once"),
        ("> a", r"the order can not be read from '>a' on: type a letter .*practice\(\"03.test\"\).answer"),
        ("a 1", "the order can not be read from '1' on"),
        ("a; b", "the order can not be read from ';b' on"),
        ("é", "the order can not be read from 'é' on"),
        ("a" + ">" * 9, "line 'a' is indented by 9 steps: type 8 > at most"),
        ("a" + ">" * 10**6, "line 'a' is indented by 1000000 steps"),
        (None, "None is no order: type a letter for each line"),
        (["a", "b"], "is no order: type"),
        (3, "3 is no order"),
        (b"a", "is no order"),
    ],
)
def test_an_order_that_can_not_be_read(order: Any, says: str) -> None:
    """The error says what to type; what was placed stays. From the page it is shown instead."""
    widget = Parsons(ITEM).arrange("b")
    with pytest.raises(BadSetting, match=says):
        widget.answer(order)
    assert widget.state["answer"] == [[1, 0]] and progress.entries() == []
    hear(widget, "answer", order, 7)
    assert widget.state["problem"] and widget.state["answer"] == [[1, 0]] and widget.state["turn"] == 7


def test_an_arrangement_is_not_graded() -> None:
    """A moved line takes the verdict back, as it was about another answer."""
    widget = Parsons(ITEM).answer(typed(LINES))
    widget.arrange("a b>")
    assert widget.state["answer"] == [[0, 0], [1, 1]]
    assert widget.state["verdict"] == widget.state["score"] == widget.state["message"] == ""
    assert len(progress.entries()) == 1


def test_the_page_is_told_which_of_its_moves_is_answered() -> None:
    """The count of the page comes back with the answer; a notebook's own call counts on; nonsense counts as one."""
    widget = Parsons(ITEM)
    hear(widget, "arrange", "a", 5)
    assert widget.state["turn"] == 5
    hear(widget, "answer", "a b", 7)
    assert widget.state["turn"] == 7
    assert widget.answer("a").state["turn"] == 8
    hear(widget, "arrange", "a", "many")
    assert widget.state["turn"] == 9
    for order in ("a", "a", "z", "z", "", ""):
        before = widget.state
        hear(widget, "answer", order, 9)
        assert widget.state != before


def test_the_last_answer_comes_back_after_a_restart() -> None:
    """With its verdict and what was said, without running it; a right one with the reason of today."""
    for order in (typed(LINES), typed([*LINES[:4], (LINES[4][0], 0)])):
        before = Parsons(ITEM).answer(order)
        again = Parsons(ITEM)
        assert str(again) == str(before)
        assert again.state["answer"] == before.state["answer"]
    right = Parsons(ITEM).answer(typed(LINES))
    changed = replace(ITEM, id="03.test", distractors=(), why="New.")
    assert right.state["verdict"] == Parsons(changed).state["verdict"] == "right"
    assert Parsons(changed).state["message"] == "New."
    assert [text for text, _ in shown(Parsons(changed))] == [text for text, _ in LINES]


def shown(widget: Parsons) -> list[tuple[str, int]]:
    return [(widget.state["lines"][place], steps) for place, steps in widget.state["answer"]]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "a b",
        [],
        [["gone", 0]],
        [["total = 0"]],
        [["total = 0", -1]],
        [["total = 0", 9]],
        [["total = 0", "1"]],
        [["total = 0", True]],
        [[3, 0]],
        [3],
        [["total = 0", 0], ["total = 0", 0]],
        {"total = 0": 0},
    ],
)
def test_an_entry_that_does_not_fit_is_passed_over(answer: Any) -> None:
    """The item has changed since, or the file is of another version."""
    progress.record("answer", "03", "03.test", answer=answer, right=True, told=[])
    widget = Parsons(ITEM)
    assert (widget.state["answer"], widget.state["verdict"]) == ([], "")


def test_the_text_shows_letters_and_the_answer() -> None:
    """The lines by letter between what stands around them, then the answer with its indentation, then the verdict."""
    widget = Parsons(ITEM)
    letters = [f"  {chr(97 + place)}) {text}" for place, text in enumerate(pool(ITEM))]
    assert str(widget).splitlines() == [
        "03.test  Add them up.",
        "",
        "     numbers = [3, 1, 2]",
        *letters,
        "     print(total, most)",
        "",
        "Not every line belongs there. Type a letter for each line, in order, and > for each step of its indentation:",
        'practice("03.test").answer("b a> c>>")',
    ]
    widget.answer(typed([LINES[2], LINES[3]]))
    answered = str(widget).splitlines()
    assert answered[answered.index("Your answer:") + 2].endswith(")     total += n")
    assert answered[-1] == "✗ not yet: 2 of 5 lines in order. What you have placed is in order; 3 lines are missing."
    assert "Every line belongs there." in str(Parsons(replace(ITEM, id="03.other", distractors=())))


def test_the_item_of_lesson_03(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one in the course can be answered, by its text twin, with either of its identical lines first."""
    from sandbox.learn import widgets

    monkeypatch.setattr(widgets, "_made", {})
    widget = widgets.practice("03.p1")
    assert isinstance(widget, Parsons)
    item = content.item("03.p1")
    order = typed([split(line) for line in item.lines], item)
    assert widget.answer(order).state["verdict"] == "right"
    twins = order.replace("c", "?").replace("g", "c").replace("?", "g")
    assert twins != order and widget.answer(twins).state["verdict"] == "right"
