"""Where a lesson stands: its title, the line under it, and the line at its end, written from ``course.toml``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sandbox.errors import BadNotebook
from sandbox.learn import content, glossary, notebooks
from sandbox.learn.catalog import Course, Lesson

PLACE, NEXT = "*Lesson ", "Next:"  # a line that begins so is generated


def render(course: Course) -> tuple[dict[Path, str], list[str]]:
    """The files that differ from what their sources make, with the text they should have; and what an author has to
    put right. Raises BadNotebook for a lesson that is missing or has no place for the lines.
    """
    terms = content.terms(course.root)
    known = glossary.by_anchor(terms)
    changed, problems, found = {}, [], {}
    for lesson in course:
        for path in [lesson.lesson_path, *([lesson.solution_path] if lesson.exercises else [])]:
            book = notebooks.read(path)
            before = [cell.source for cell in book.cells]
            if path == lesson.lesson_path:
                _write_signposts(book, course, lesson)
            found[path] = glossary.fill(book, path, course.root, known)
            problems += found[path].problems
            if before != [cell.source for cell in book.cells]:
                changed[path] = notebooks.write_text(book)
    page, text = course.root / glossary.PAGE, glossary.page(course, terms, found)
    if not page.is_file() or page.read_bytes() != text.encode():
        changed[page] = text
    return changed, problems + glossary.unlinked(course, terms, found)


def place_line(course: Course, lesson: Lesson) -> str:
    """The line under a lesson's title: where it stands in the course."""
    at = course.lessons.index(lesson)
    parts = [f"Lesson {at + 1} of {len(course.lessons)}", f"about {lesson.minutes} minute{'s' * (lesson.minutes != 1)}"]
    if at > 0:
        parts.append(f"before it: {_link(course.lessons[at - 1])}")
    if at + 1 < len(course.lessons):
        parts.append(f"next: {_link(course.lessons[at + 1])}")
    if lesson.exercises:
        parts.append(f"[exercise]({_exercise(lesson)})")
    return f"*{' · '.join([*parts, '[glossary](../docs/glossary.md)'])}*"


def next_line(course: Course, lesson: Lesson) -> str:
    """The line at a lesson's end: the exercise, then the next lesson."""
    after = course.lessons[course.lessons.index(lesson) + 1 :]
    steps = [f"[the exercise]({_exercise(lesson)})"] if lesson.exercises else []
    steps += [_link(after[0])] if after else []
    end = "" if after else " This is the last lesson."
    return f"{NEXT} {', then '.join(steps) or 'your own code'}.{end}"


def _link(lesson: Lesson) -> str:
    return f"[{_heading(lesson)}]({lesson.name}.ipynb)"


def _exercise(lesson: Lesson) -> str:
    return f"../{lesson.exercise_path.relative_to(lesson.root).as_posix()}"


def _heading(lesson: Lesson) -> str:
    return re.sub(r"[\[\]*_`\\]", r"\\\g<0>", f"{lesson.number} {lesson.title}")


def _write_signposts(book: Any, course: Course, lesson: Lesson) -> None:
    """Put title, place line and next line into the cells of a lesson. Raises BadNotebook where there is no place."""
    name = lesson.lesson_path.relative_to(course.root)
    prose = [cell for cell in book.cells if cell.cell_type == "markdown"]
    if not book.cells or book.cells[0].cell_type != "markdown" or not book.cells[0].source.startswith("# "):
        raise BadNotebook(f"{name}: its first cell has to be markdown that begins with `# {_heading(lesson)}`.")
    first, last = book.cells[0], next((cell for cell in reversed(prose) if _paragraphs(cell.source, NEXT)), prose[-1])
    rest, place = first.source.partition("\n")[2], place_line(course, lesson)
    if found := _paragraphs(rest, PLACE):
        first.source = f"# {_heading(lesson)}\n{_replace(rest, found[0], place)}"
    else:
        first.source = f"# {_heading(lesson)}\n\n{place}\n\n{rest.strip()}".rstrip()
    if found := _paragraphs(last.source, NEXT):
        last.source = _replace(last.source, found[-1], next_line(course, lesson))
    else:
        last.source = f"{last.source.rstrip()}\n\n{next_line(course, lesson)}"


def _paragraphs(source: str, mark: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"^{re.escape(mark)}.*(?:\n(?![ \t]*$).+)*", source, re.MULTILINE))


def _replace(source: str, old: re.Match[str], new: str) -> str:
    return source[: old.start()] + new + source[old.end() :]
