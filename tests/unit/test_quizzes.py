"""Every practice item is run: its key, and that every expected mistake is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.learn import content, quizzes
from sandbox.learn.content import Item, Mistake, Option
from sandbox.learn.quizzes import problems

PREDICT = Item(
    id="03.p",
    kind="predict",
    question="?",
    why="So.",
    options=(Option(text="a", says="No."), Option(text="b")),
)
CHOOSE = Item(
    id="03.c",
    kind="choose",
    question="?",
    why="So.",
    code="print(1)",
    options=(Option(text="1"), Option(text="2", says="No.")),
)
GAP = Item(
    id="03.g",
    kind="gap",
    question="?",
    why="So.",
    code="print(____)",
    answers=("1",),
    mistakes=(Mistake(answers=("2",), says="No."), Mistake(answers=("1 1",), says="A blank.")),
)
PARSONS = Item(
    id="03.l",
    kind="parsons",
    question="?",
    why="So.",
    lines=("x = 1", "y = 2", "x += y"),
    distractors=(Option(text="x = y", says="Forgets x."),),
    after="print(x, y)",
)


@pytest.mark.parametrize("item", [PREDICT, CHOOSE, GAP, PARSONS], ids=lambda item: item.kind)
def test_an_item_that_keeps_its_word_has_no_problems(item: Item) -> None:
    """One of each kind."""
    assert problems(item) == []


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (
            replace(PREDICT, options=(Option(text="a"), Option(text="b"))),
            "practice item 03.p: the options 'a', 'b' say nothing; only the right one may. Write says for the others.",
        ),
        (
            replace(PREDICT, options=(Option(text="a", says="No."), Option(text="b", says="No."))),
            "practice item 03.p: 'a' and 'b' are told the same; write to each what is wrong with it.",
        ),
        (
            replace(PREDICT, code="print(1)\nprint(x)"),
            "practice item 03.p: its code ends with NameError: name 'x' is not defined on line 2; mend it so that it runs "
            "to its end.",
        ),
        (
            replace(CHOOSE, code="print(3)"),
            "practice item 03.c: its code gives '3', and none of its options says so; write one that does.",
        ),
        (
            replace(CHOOSE, options=(Option(text="1"), Option(text="2"))),
            "practice item 03.c: the option '2' is wrong and says nothing; write what is said to whoever chooses it.",
        ),
        (
            replace(CHOOSE, options=(*CHOOSE.options, Option(text="3", says="No."))),
            "practice item 03.c: '2' and '3' are told the same; write to each what is wrong with it.",
        ),
        (
            replace(CHOOSE, code="print(1"),
            "practice item 03.c: its code ends with SyntaxError: '(' was never closed on line 1; mend it.",
        ),
        (
            replace(GAP, answers=("1 +",)),
            "practice item 03.g: filled with its answers, its code ends with SyntaxError: invalid syntax on line 1; mend it.",
        ),
        (
            replace(GAP, mistakes=(Mistake(answers=("2 - 1",), says="No."),)),
            "practice item 03.g: the mistake ['2 - 1'] does the same as its answers, so it is right; take it away, or let the "
            "code show the difference.",
        ),
        (
            replace(GAP, mistakes=(Mistake(answers=("2",), says="No."), Mistake(answers=("3",), says="No."))),
            "practice item 03.g: \"['2']\" and \"['3']\" are told the same; write to each what is wrong with it.",
        ),
        (
            replace(PARSONS, after="print(z)"),
            "practice item 03.l: its lines in their order: the program ends with NameError: name 'z' is not defined on line "
            "4; mend it, or let `after` catch and print the error.",
        ),
        (
            replace(PARSONS, distractors=(Option(text="x = 3", says="Typed in."),)),
            "practice item 03.l: the distractor 'x = 3' in the place of line 3, 'x += y', does the same, so it is right; take "
            "another, or let `before` and `after` show the difference.",
        ),
        (
            replace(PARSONS, distractors=(*PARSONS.distractors, Option(text="del y", says="Forgets x."))),
            "practice item 03.l: 'x = y' and 'del y' are told the same; write to each what is wrong with it.",
        ),
    ],
)
def test_what_is_wrong_with_an_item(item: Item, says: str) -> None:
    """One sentence: the item, what is wrong, and what to change."""
    assert problems(item) == [says]


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (replace(PREDICT, code="while 1: pass"), "its code does not end within 1 seconds; mend it so"),
        (replace(CHOOSE, code="while 1: pass"), "its code does not end within 1 seconds; mend it."),
        (replace(GAP, code="while ____: pass"), "filled with its answers, its code does not end within 1 seconds"),
        (replace(PARSONS, after="while 1: pass"), "the program does not end within 1 seconds"),
    ],
)
def test_code_that_does_not_end(item: Item, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped, and is a problem like another."""
    monkeypatch.setattr("sandbox.learn.fragments.SECONDS", 1)
    [found] = problems(item)
    assert says in found


def test_an_order_that_the_grader_gets_wrong_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that may be swapped have to count as right."""
    monkeypatch.setattr(
        "sandbox.learn.widgets.parsons.judge",
        lambda item, placed: quizzes.parsons.grade([quizzes.parsons.split(line) for line in item.lines], (), placed),
    )
    assert problems(PARSONS) == [
        "practice item 03.l: with lines 1 and 2 swapped it does the same and is called wrong; this is a fault of the grader."
    ]


def test_all_problems_of_a_course(tmp_path: Path) -> None:
    """Every file of the folder, in the order of the lessons."""
    folder = tmp_path / content.FOLDER
    folder.mkdir(parents=True)
    text = "[[item]]\nid = '{0}.q'\nkind = 'choose'\nquestion = '?'\nwhy = '.'\ncode = 'print({1})'\n"
    text += "option = [{{text = '1'}}, {{text = '2', says = 'No.'}}]\n"
    (folder / "03_x.toml").write_text(text.format("03", 3))
    (folder / "01_x.toml").write_text(text.format("01", 4))
    (folder / "02_x.toml").write_text(text.format("02", 1))
    assert [one.partition(" and ")[0] for one in quizzes.all_problems(tmp_path)] == [
        "practice item 01.q: its code gives '4',",
        "practice item 03.q: its code gives '3',",
    ]


@pytest.mark.parametrize("item", content.all_items(), ids=lambda item: item.id)
def test_every_item_of_the_course(item: Item) -> None:
    """Its code is run, its key computed, and every expected mistake is one."""
    assert problems(item) == []
