"""The course as a whole: words that lead to the glossary and back, a place for each lesson, and its last parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.learn import content, glossary, notebooks
from sandbox.learn.catalog import Course, Lesson
from sandbox.learn.signposts import next_line, place_line, render

ROOT = Path(__file__).parents[2]
COURSE = Course.load(ROOT)
EACH = pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.name)


def prose(lesson: Lesson) -> str:
    cells = notebooks.read(lesson.lesson_path).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def section(lesson: Lesson, title: str) -> str:
    """The text under a heading of a lesson, up to the next heading or the line "Next:"; empty if there is none."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |^Next:|\Z)", prose(lesson), re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


def test_the_glossary_is_what_the_command_makes() -> None:
    """docs/glossary.md is what `course links` would write now."""
    changed, _ = render(COURSE)
    assert ROOT / glossary.PAGE not in changed


def test_the_hover_texts_are_those_of_the_glossary() -> None:
    """No notebook is different after `course links`: run that command if this fails."""
    changed, _ = render(COURSE)
    assert [str(path.relative_to(ROOT)) for path in changed if path.suffix == ".ipynb"] == []


def test_every_link_is_to_a_term_and_every_term_is_linked_where_it_is_introduced() -> None:
    """No link to the glossary leads nowhere, and each term is met in the lesson that it names."""
    assert render(COURSE)[1] == []


def test_every_term_belongs_to_a_lesson_number() -> None:
    """A term names the lesson that introduces it by two digits, also one that is not written yet."""
    assert [term.name for term in content.terms(ROOT) if not re.fullmatch(r"\d\d", term.lesson)] == []


def test_every_term_leads_back_to_its_lesson() -> None:
    """The entry of a term on the page has a link to the lesson that introduces it."""
    text = (ROOT / glossary.PAGE).read_text(encoding="utf-8")
    entries = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    paths = {lesson.number: f"(../lessons/{lesson.name}.ipynb)" for lesson in COURSE}
    assert set(entries) == {term.name for term in content.terms(ROOT)}
    for term in content.terms(ROOT):
        assert paths.get(term.lesson, "") in entries[term.name], term.name


@EACH
def test_a_lesson_says_where_it_stands(lesson: Lesson) -> None:
    """The line under the title, and the line at the end, are those that course.toml makes."""
    lines = prose(lesson).splitlines()
    assert lines[0] == f"# {lesson.number} {lesson.title}"
    assert [line for line in lines if line.startswith("*Lesson ")] == [place_line(COURSE, lesson)]
    assert [line for line in lines if line.startswith("Next:")] == [next_line(COURSE, lesson)]


@EACH
def test_what_to_remember_is_at_most_ten_lines(lesson: Lesson) -> None:
    """The summary of a lesson is a list of one to ten, each on one line."""
    lines = [line for line in section(lesson, "What to remember").splitlines() if line.strip()]
    assert 1 <= len(lines) <= 10
    assert [line for line in lines if not re.match(r"\d+\. \S", line)] == []


@EACH
def test_a_lesson_answers_three_to_five_questions(lesson: Lesson) -> None:
    """The questions that people ask are paragraphs that begin in bold and go on with an answer."""
    asked = re.findall(r"^\*\*([^*\n]+)\*\* \S", section(lesson, "Questions people ask"), re.MULTILINE)
    assert 3 <= len(asked) <= 5


@EACH
def test_a_lesson_has_homework_on_the_learners_own_code(lesson: Lesson) -> None:
    """Every lesson but the first ends in something to do at home."""
    assert bool(section(lesson, "Homework")) is (lesson.number != "00")


@EACH
def test_all_practice_of_a_lesson_is_in_it(lesson: Lesson) -> None:
    """Each item of the lesson's file is asked once in its notebook, and the notebook asks for no other."""
    code = "\n".join(cell.source for cell in notebooks.read(lesson.lesson_path).cells if cell.cell_type == "code")
    asked = re.findall(r"""\bpractice\(\s*["']([^"']+)["']""", code)
    assert sorted(asked) == sorted(item.id for item in content.items(lesson.number, ROOT))
