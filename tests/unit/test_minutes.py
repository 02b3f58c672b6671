"""How long a lesson takes: the rule, and the one line of course.toml that it writes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sandbox.cli import main
from sandbox.errors import BadNotebook
from sandbox.learn import catalog, minutes, notebooks

ROOT = Path(__file__).parents[2]
TOML = """\
# The order here is the order of the course.
title = "t"

[[lesson]]
minutes = 10  # short
number = "00"
slug = "intro"
title = "t"
question = "minutes = 3?"

[[lesson.exercise]]
id = "00.1"
title = "t"
graded = "auto"
points = 2

[[lesson.exercise.hint]]
title = "t"
text = "minutes = 4"

[[lesson]]
number = "03"
slug = "loop"
title = "t"
question = "q"
minutes = 35
"""
README = "| lesson | question | minutes |\n|---|---|---|\n| [00 t](lessons/00_intro.ipynb) | q 1 | 10 |\n"


def cell(kind: str, source: str) -> dict[str, Any]:
    extra: dict[str, Any] = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{len(source)}", "metadata": {}, "source": source} | extra


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two lessons, one of them empty, in a folder with a space and a Cyrillic letter."""
    root = tmp_path / "a b ж"
    (root / "lessons/practice").mkdir(parents=True)
    (root / "course.toml").write_text(TOML)
    (root / "README.md").write_text(README)
    write(root, "00_intro")
    write(root, "03_loop")
    monkeypatch.setenv("COURSE_ROOT", str(root))
    return root


def write(root: Path, name: str, *cells: dict[str, Any]) -> None:
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": notebooks.KERNELSPEC}, "cells": list(cells)}
    (root / f"lessons/{name}.ipynb").write_text(json.dumps(book))


def estimate(root: Path, number: str = "00", run_seconds: float = 0.0) -> minutes.Estimate:
    return minutes.estimate(catalog.load(root).find(number), run_seconds=run_seconds)


@pytest.mark.parametrize("lesson", catalog.load(ROOT).lessons, ids=lambda lesson: lesson.name)
def test_the_minutes_in_the_catalogue_are_those_of_the_rule(lesson: catalog.Lesson) -> None:
    """course.toml is at most five minutes from the rule: type `course minutes --write` if this fails."""
    assert abs(lesson.minutes - minutes.estimate(lesson).minutes) <= minutes.STEP


def test_words_are_those_that_are_read(root: Path) -> None:
    """Targets and hover texts of links, addresses, tags and rules of tables are no words."""
    title = '"A title with \\"quotes\\" (and brackets) in it"'
    link = f"[soft limit](../docs/glossary.md#soft-limit {title})"
    text = f"# Two words\n\n| a | b |\n|---|---|\n\nSee {link}, don't <br> https://a.b/c d"
    write(root, "00_intro", cell("markdown", text))
    assert estimate(root).words == len(["Two", "words", "a", "b", "See", "soft", "limit", "don't", "d"])


def test_lines_of_code_count_wherever_they_stand(root: Path) -> None:
    """Code cells and fenced code are lines, blank ones not; a raw cell is neither lines nor words."""
    fenced = "word\n\n```python\na = 1\n\nb = 2\n```\n\nword"
    write(root, "00_intro", cell("code", "x = 1\n\n# why\n"), cell("markdown", fenced), cell("raw", "no word"))
    found = estimate(root)
    assert (found.code_lines, found.words) == (4, 2)


def test_practice_and_cards_have_their_seconds(root: Path) -> None:
    """Items count by their kind, and a lesson's cards are the terms that it introduces."""
    options = 'option = [{text = "a"}, {text = "b"}]'
    item = f'[[item]]\nid = "00.q"\nkind = "predict"\nquestion = "q"\nwhy = "w"\n{options}\n'
    (root / "lessons/practice/00_intro.toml").write_text(item)
    term = '[[term]]\nname = "{}"\ntext = "t"\nlesson = "{}"\n'
    text = "".join(term.format(*one) for one in [("job", "00"), ("row", "00"), ("reaper", "03")])
    (root / "lessons/practice/glossary.toml").write_text(text)
    assert estimate(root).parts == {"prose": 0, "code": 0, "practice": 45, "cards": 30, "run": 0}


@pytest.mark.parametrize(("words", "expected"), [(0, 5), (200, 5), (1499, 5), (1500, 10), (3000, 15), (3600, 20)])
def test_the_minutes_are_rounded_to_five_and_never_none(root: Path, words: int, expected: int) -> None:
    """200 words are a minute; half of five goes up; an empty lesson takes five."""
    write(root, "00_intro", cell("markdown", "word " * words))
    assert estimate(root).minutes == expected


def test_the_run_of_a_lesson_is_added(root: Path) -> None:
    """Seconds that were measured are part of the sum."""
    assert estimate(root, run_seconds=450).minutes == 10


def test_a_lesson_that_is_missing_is_named(root: Path) -> None:
    """Without the lesson's file there is no estimate but an error with its name."""
    (root / "lessons/00_intro.ipynb").unlink()
    with pytest.raises(BadNotebook, match=r"00_intro\.ipynb is missing"):
        estimate(root)


def test_one_line_of_the_catalogue_changes(root: Path) -> None:
    """Comments, order and look-alikes stay; the number of that lesson alone is another."""
    lesson = catalog.load(root).find("00")
    assert minutes.in_course_file(TOML, lesson, 15) == TOML.replace("minutes = 10  # short", "minutes = 15  # short")
    last = catalog.load(root).find("03")
    assert minutes.in_course_file(TOML, last, 5) == TOML.replace("minutes = 35", "minutes = 5")


def test_a_catalogue_in_another_form_is_not_guessed_at(root: Path) -> None:
    """Where the line is not found for certain, the file stays and the error says what to write."""
    text = TOML.replace("minutes = 10  # short", "'minutes' = 10")
    assert tomllib.loads(text)["lesson"][0]["minutes"] == 10
    with pytest.raises(BadNotebook, match=r"of lesson 00 was not found: write 15 there"):
        minutes.in_course_file(text, catalog.load(root).find("00"), 15)


def test_the_command_prints_the_parts_and_writes_only_when_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --write nothing changes; with it course.toml and the README do."""
    write(root, "00_intro", cell("markdown", "word " * 3000))
    assert main(["minutes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["lesson", "prose", "code", "practice", "cards", "run", "rule", "course.toml"]
    assert lines[1].split() == ["00_intro", "15.0", "0.0", "0.0", "0.0", "0.0", "15", "10"]
    assert (root / "course.toml").read_text() == TOML
    assert main(["minutes", "0", "--write"]) == 0
    assert (root / "course.toml").read_text() == TOML.replace("minutes = 10", "minutes = 15")
    assert (root / "README.md").read_text() == README.replace("| 10 |", "| 15 |")
    out = capsys.readouterr().out
    assert "wrote course.toml\nwrote README.md\n" in out
    assert "course links" in out


def test_a_run_is_measured(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--run runs the lesson; one that fails has no measure, and its cell is shown."""
    write(root, "00_intro", cell("code", "1 / 0"))
    assert main(["minutes", "00", "--run"]) == 1
    said = capsys.readouterr()
    assert "a lesson that fails has no measure" in said.err
    assert "ZeroDivisionError" in said.err


def test_a_lesson_that_is_not_there_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A number of no lesson is one sentence that lists those there are."""
    assert main(["minutes", "07"]) == 1
    assert "there is no lesson '07'; the lessons are 00_intro, 03_loop" in capsys.readouterr().err
