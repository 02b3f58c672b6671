"""``course links`` on a course of its own: the lines that say where a lesson stands, and the glossary's links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from sandbox.cli import main
from sandbox.learn import catalog, content, notebooks
from sandbox.learn.signposts import next_line, place_line

LESSON = '\n[[lesson]]\nnumber = "{number}"\nslug = "{slug}"\ntitle = "{title}"\nquestion = "q"\nminutes = {minutes}\n'
EXERCISE = '\n[[lesson.exercise]]\nid = "03.1"\ntitle = "t"\ngraded = "auto"\npoints = 2\n'
TOML = 'title = "t"\n' + LESSON.format(number="00", slug="intro", title="The intro", minutes=1)
TOML += LESSON.format(number="03", slug="loop", title="The loop", minutes=35) + EXERCISE
GLOSSARY = '[[term]]\nname = "{}"\nlesson = "{}"\ntext = "{}"\n'


def cell(source: str, kind: str = "markdown") -> dict[str, Any]:
    extra: dict[str, Any] = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source} | extra


def write(path: Path, *cells: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": list(cells)}))


def sources(root: Path, name: str = "03_loop") -> list[str]:
    return [cell.source for cell in notebooks.read(root / f"lessons/{name}.ipynb").cells]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two lessons, clean and linked up, in a folder with a space and a Cyrillic letter."""
    root = tmp_path / "a b ж"
    terms = GLOSSARY.format("job", "00", "A piece of work.") + GLOSSARY.format("soft limit", "03", "A signal.")
    (root / "lessons/practice").mkdir(parents=True)
    (root / "lessons/practice/glossary.toml").write_text(terms)
    (root / "course.toml").write_text(TOML)
    job, soft = "[job](../docs/glossary.md#job)", "[soft limit](../docs/glossary.md#soft-limit)"
    write(root / "lessons/00_intro.ipynb", cell("# x\n\n**Why?**"), cell("1", "code"), cell(f"A {job}."))
    write(root / "lessons/03_loop.ipynb", cell("# x"), cell(f"A {job}, a {soft}."), cell("End."))
    write(root / "solutions/03_loop/03_loop.ipynb", cell("[j](../../docs/glossary.md#job)"))
    monkeypatch.setenv("COURSE_ROOT", str(root))
    content._terms.cache_clear()
    assert main(["clean"]) == 0
    assert main(["links"]) == 0
    return root


def test_a_lesson_says_where_it_stands(root: Path) -> None:
    """Title, place, neighbours, exercise and glossary come from course.toml, each on its line."""
    assert sources(root, "00_intro") == [
        "# 00 The intro\n\n*Lesson 1 of 2 · about 1 minute · next: [03 The loop](03_loop.ipynb) · "
        "[glossary](../docs/glossary.md)*\n\n**Why?**",
        "1",
        'A [job](../docs/glossary.md#job "A piece of work.").\n\nNext: [03 The loop](03_loop.ipynb).',
    ]
    exercise = "../exercises/03_loop/03_loop.ipynb"
    first, _, last = sources(root)
    assert first == (
        "# 03 The loop\n\n*Lesson 2 of 2 · about 35 minutes · before it: [00 The intro](00_intro.ipynb) · "
        f"[exercise]({exercise}) · [glossary](../docs/glossary.md)*"
    )
    assert last == f"End.\n\nNext: [the exercise]({exercise}). This is the last lesson."


def test_the_glossary_leads_back_to_lessons_and_exercises(root: Path) -> None:
    """Each term lists the notebooks that link to it: the exercise, not the solution."""
    text = (root / "docs/glossary.md").read_text()
    assert text.split("## ")[1:] == [
        "job\n\nA piece of work.\n\nUsed in: [00 The intro](../lessons/00_intro.ipynb), "
        "[03 The loop](../lessons/03_loop.ipynb), [exercise 03](../exercises/03_loop/03_loop.ipynb).\n\n",
        "soft limit\n\nA signal.\n\nUsed in: [03 The loop](../lessons/03_loop.ipynb).\n",
    ]


def test_a_second_run_has_nothing_to_do_and_notebooks_stay_clean(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the command writes is what it reads, and what `course clean` leaves; cell ids stay."""
    capsys.readouterr()
    assert main(["links"]) == 0
    assert main(["links", "--check"]) == 0
    assert capsys.readouterr().out == "Nothing to do.\n" * 2
    assert main(["clean", "--check"]) == 0


def test_a_lesson_added_changes_its_neighbours(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lesson in between changes the lines of both sides; --check names the files and writes none."""
    middle = LESSON.format(number="02", slug="mid", title="A *star*", minutes=20)
    (root / "course.toml").write_text(
        TOML.replace('\n[[lesson]]\nnumber = "03"', f'{middle}\n[[lesson]]\nnumber = "03"')
    )
    write(root / "lessons/02_mid.ipynb", cell("# x\n*Lesson about it*\nold\n\nRest.\n\nNext: old\nline\n\nAfter."))
    before = sources(root)
    capsys.readouterr()
    assert main(["links", "--check"]) == 1
    said = capsys.readouterr()
    names = [f"lessons/{name}.ipynb is not what its sources make" for name in ("00_intro", "02_mid", "03_loop")]
    assert said.out.splitlines() == names
    assert said.err == "course: 3 files to write: type `course links`.\n"
    assert sources(root) == before
    assert main(["links"]) == 0
    assert sources(root, "02_mid") == [
        "# 02 A \\*star\\*\n*Lesson 2 of 3 · about 20 minutes · before it: [00 The intro](00_intro.ipynb) · "
        "next: [03 The loop](03_loop.ipynb) · [glossary](../docs/glossary.md)*\n\nRest.\n\n"
        "Next: [03 The loop](03_loop.ipynb).\n\nAfter."
    ]
    assert "before it: [02 A \\*star\\*](02_mid.ipynb)" in sources(root)[0]
    assert sources(root, "00_intro")[2].endswith("Next: [02 A \\*star\\*](02_mid.ipynb).")


def test_a_changed_text_reaches_every_link(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another text in the glossary makes lessons, solutions and the page stale, and says that exercises follow."""
    path = root / "lessons/practice/glossary.toml"
    path.write_text(path.read_text().replace("A piece of work.", "Work for which somebody waits."))
    content._terms.cache_clear()
    capsys.readouterr()
    assert main(["links", "--check"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 5  # two lessons, a solution, the page, what to do next
    assert main(["links"]) == 0
    assert "type `course exercises` afterwards" in capsys.readouterr().out
    for name in ("lessons/00_intro.ipynb", "solutions/03_loop/03_loop.ipynb", "docs/glossary.md"):
        text = (root / name).read_text()
        assert "Work for which somebody waits." in text
        assert "A piece of work." not in text


def test_only_the_cells_that_change_are_touched(root: Path) -> None:
    """Code, outputs and other cells of a notebook that is written stay as they were."""
    path = root / "lessons/00_intro.ipynb"
    book = notebooks.read(path)
    book.cells[1].outputs = [nbformat.v4.new_output("stream", text="mine")]
    book.cells[2].source = book.cells[2].source.replace("A piece of work.", "stale")
    path.write_text(notebooks.write_text(book))
    assert main(["links"]) == 0
    after = notebooks.read(path)
    assert after.cells[1] == book.cells[1]
    assert "stale" not in after.cells[2].source
    assert [c.id for c in after.cells] == [c.id for c in book.cells]


def test_what_an_author_has_to_put_right_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown anchor, and a term that its own lesson does not link to, are code 1 with and without --check."""
    path = root / "lessons/03_loop.ipynb"
    path.write_text(path.read_text().replace("#soft-limit", "#soft-limt"))
    capsys.readouterr()
    for arguments in (["links", "--check"], ["links"]):
        assert main(arguments) == 1
        said = capsys.readouterr().err
        assert "lessons/03_loop.ipynb, cell-02: the glossary has no term with the anchor #soft-limt; " in said
        assert "lessons/03_loop.ipynb introduces the term 'soft limit' and does not link to it" in said
        assert "course: 2 links to put right by hand." in said


def test_a_term_of_a_lesson_that_is_not_written_yet_is_no_fault(root: Path) -> None:
    """A term may stand in the glossary before its lesson does."""
    path = root / "lessons/practice/glossary.toml"
    path.write_text(path.read_text() + GLOSSARY.format("burst", "06", "Many at once."))
    content._terms.cache_clear()
    assert main(["links"]) == 0


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        ([], "its first cell has to be markdown that begins with `# 03 The loop`"),
        ([cell("1", "code")], "its first cell has to be markdown that begins with `# 03 The loop`"),
        ([cell("Hello")], "its first cell has to be markdown that begins with `# 03 The loop`"),
        (None, "is missing"),
    ],
)
def test_a_lesson_without_a_place_for_the_lines_is_named(
    root: Path, capsys: pytest.CaptureFixture[str], cells: list[dict[str, Any]] | None, sentence: str
) -> None:
    """A lesson that is missing, or does not begin with a title, is one sentence, and nothing is written."""
    path = root / "lessons/03_loop.ipynb"
    path.unlink()
    if cells is not None:
        write(path, *cells)
    before = sources(root, "00_intro")
    assert main(["links"]) == 1
    said = capsys.readouterr().err
    assert "03_loop.ipynb" in said
    assert sentence in said
    assert sources(root, "00_intro") == before


def test_a_course_without_a_glossary_is_told_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A glossary that can not be read is one sentence with its name."""
    (root / "lessons/practice/glossary.toml").unlink()
    content._terms.cache_clear()
    assert main(["links"]) == 1
    assert "glossary.toml can not be read" in capsys.readouterr().err


def test_a_course_of_one_lesson_has_neither_before_nor_after(tmp_path: Path) -> None:
    """A single lesson without exercises names no neighbour."""
    (tmp_path / "course.toml").write_text('title = "t"\n' + LESSON.format(number="00", slug="a", title="A", minutes=5))
    course = catalog.load(tmp_path)
    (lesson,) = course.lessons
    assert place_line(course, lesson) == "*Lesson 1 of 1 · about 5 minutes · [glossary](../docs/glossary.md)*"
    assert next_line(course, lesson) == "Next: your own code. This is the last lesson."
