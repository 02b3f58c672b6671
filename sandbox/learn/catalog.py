"""``course.toml`` as values: which lessons there are, in which order, with which exercises, and where their files lie."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.errors import BadNotebook, BadSetting

FILE = "course.toml"
GRADED = ("auto", "person")

_LESSON = {"number": str, "slug": str, "title": str, "question": str, "minutes": int}
_EXERCISE = {"id": str, "title": str, "graded": str, "points": int}
_HINT = {"title": str, "text": str}
_KINDS = {str: "text in quotes", int: "a whole number"}


@dataclass(frozen=True, kw_only=True)
class Hint:
    """One step of help. Its title is read before it is opened, so it names the question and not the answer."""

    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One graded task of a lesson."""

    id: str  # lesson and place in it, "03.1"
    title: str
    graded: str  # "auto" or "person"
    points: int
    hints: tuple[Hint, ...]  # one at a time, from a question to nearly the answer; may be none


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One lesson, and its files under the course's root."""

    number: str  # two digits, "03"
    slug: str
    title: str
    question: str
    minutes: int
    exercises: tuple[Exercise, ...]
    root: Path

    @property
    def name(self) -> str:
        """The stem of its files and what nbgrader calls the assignment: ``03_swallowed_signal``."""
        return f"{self.number}_{self.slug}"

    @property
    def lesson_path(self) -> Path:
        return self.root / "lessons" / f"{self.name}.ipynb"

    @property
    def solution_path(self) -> Path:
        return self.root / "solutions" / self.name / f"{self.name}.ipynb"

    @property
    def exercise_path(self) -> Path:
        return self.root / "exercises" / self.name / f"{self.name}.ipynb"


@dataclass(frozen=True, kw_only=True)
class Course:
    """The whole course, in order."""

    title: str
    lessons: tuple[Lesson, ...]
    root: Path

    @classmethod
    def load(cls, root: Path | None = None) -> Course:
        """Read ``course.toml``. Raises BadSetting when there is no course, BadNotebook when the file is malformed."""
        return load(root)

    def __iter__(self) -> Iterator[Lesson]:
        return iter(self.lessons)

    def find(self, which: str) -> Lesson:
        """The lesson called `which`: "03", "3" or "03_swallowed_signal". Raises BadSetting that lists the lessons."""
        wanted = which.strip()
        for lesson in self.lessons:
            same_number = wanted.isdecimal() and int(wanted) == int(lesson.number)
            if same_number or wanted in (lesson.name, lesson.slug):
                return lesson
        names = ", ".join(lesson.name for lesson in self.lessons)
        raise BadSetting(f"there is no lesson {which!r}; the lessons are {names}. Type a number, for example 03.")

    def select(self, which: tuple[str, ...] | list[str]) -> tuple[Lesson, ...]:
        """The lessons named, each once, in the order of the course; all of them when none is named."""
        if not which:
            return self.lessons
        chosen = {self.find(name).number for name in which}
        return tuple(lesson for lesson in self.lessons if lesson.number in chosen)

    def exercise(self, number: str) -> tuple[Lesson, Exercise]:
        """The exercise of that id, and its lesson. Raises BadSetting that lists the exercises."""
        known = {exercise.id: (lesson, exercise) for lesson in self.lessons for exercise in lesson.exercises}
        if not isinstance(number, str) or number not in known:
            raise BadSetting(f"there is no exercise {number!r}; the exercises are {', '.join(known)}.")
        return known[number]


def find_root(start: Path | None = None) -> Path:
    """The folder with ``course.toml``: ``COURSE_ROOT``, else the nearest at or above `start` (the working folder),
    else the one this package is installed from. Raises BadSetting.
    """
    named = os.environ.get("COURSE_ROOT")
    if named:
        root = Path(named).expanduser().resolve()
        if not (root / FILE).is_file():
            raise BadSetting(f"COURSE_ROOT is {named}, where there is no {FILE}: set it to the folder you cloned.")
        return root
    start = (start or Path.cwd()).resolve()
    installed = Path(__file__).resolve().parents[2]
    for folder in [start, *start.parents, installed]:
        if (folder / FILE).is_file():
            return folder
    raise BadSetting(
        f"no {FILE} in {start} or any folder above it: change to the folder you cloned, or set COURSE_ROOT to it."
    )


def load(root: Path | None = None) -> Course:
    """Read ``course.toml``. Raises BadSetting when there is no course, BadNotebook when the file is malformed."""
    root = root or find_root()
    path = root / FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadSetting(f"there is no {FILE} in {root}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadNotebook(f"{path} is not valid TOML: {error}.") from None
    except OSError as error:
        raise BadNotebook(f"{path} can not be read: {error.strerror}.") from None
    _refuse_unknown(data, {"title", "lesson"}, path, "the course")
    title = _field(data, "title", str, path, "the course")
    tables = data.get("lesson", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadNotebook(f"{path}: write each lesson as [[lesson]], with two brackets.")
    if not tables:
        raise BadNotebook(f"{path} lists no lesson: add one that begins with [[lesson]].")
    lessons = tuple(_lesson(table, place, path) for place, table in enumerate(tables, 1))
    for what, names in (
        ("lesson number", [lesson.number for lesson in lessons]),
        ("slug", [lesson.slug for lesson in lessons]),
        ("exercise id", [exercise.id for lesson in lessons for exercise in lesson.exercises]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise BadNotebook(f"{path}: the {what} {name!r} stands there twice; give one of the two another.")
    return Course(title=title, lessons=lessons, root=root)


def _lesson(table: dict[str, Any], place: int, path: Path) -> Lesson:
    who = f"lesson {table.get('number', f'no. {place}')}"
    _refuse_unknown(table, {*_LESSON, "exercise"}, path, who)
    fields: dict[str, Any] = {name: _field(table, name, kind, path, who) for name, kind in _LESSON.items()}
    if not re.fullmatch(r"\d\d", fields["number"]):
        raise BadNotebook(f'{path}: {who} needs a number of two digits, for example number = "03".')
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", fields["slug"]):
        raise BadNotebook(f"{path}: {who} has the slug {fields['slug']!r}; use small letters, digits and single _.")
    if fields["minutes"] < 1:
        raise BadNotebook(f"{path}: {who} takes {fields['minutes']} minutes; write a number above zero.")
    tables = table.get("exercise", [])
    if not isinstance(tables, list) or not all(isinstance(item, dict) for item in tables):
        raise BadNotebook(f"{path}: write each exercise of {who} as [[lesson.exercise]], with two brackets.")
    exercises = tuple(_exercise(item, fields["number"], place, path) for place, item in enumerate(tables, 1))
    return Lesson(**fields, exercises=exercises, root=path.parent)


def _exercise(table: dict[str, Any], number: str, place: int, path: Path) -> Exercise:
    who = f"exercise {table.get('id', f'no. {place} of lesson {number}')}"
    if "hints" in table:
        raise BadNotebook(
            f'{path}: {who} has a field "hints"; write each hint as [[lesson.exercise.hint]] with a title and a text.'
        )
    _refuse_unknown(table, {*_EXERCISE, "hint"}, path, who)
    fields: dict[str, Any] = {name: _field(table, name, kind, path, who) for name, kind in _EXERCISE.items()}
    if not re.fullmatch(rf"{number}\.[1-9]\d*", fields["id"]):
        raise BadNotebook(f"{path}: {who} stands in lesson {number}, so write its id as {number}.{place}.")
    if fields["graded"] not in GRADED:
        raise BadNotebook(f'{path}: {who} has graded = {fields["graded"]!r}; write "auto" or "person".')
    if fields["points"] < 1:
        raise BadNotebook(f"{path}: {who} has {fields['points']} points; write a number above zero.")
    return Exercise(**fields, hints=_hints(table, path, who))


def _hints(table: dict[str, Any], path: Path, who: str) -> tuple[Hint, ...]:
    tables = table.get("hint", [])
    if not isinstance(tables, list) or not all(isinstance(hint, dict) for hint in tables):
        raise BadNotebook(f"{path}: write each hint of {who} as [[lesson.exercise.hint]], with a title and a text.")
    found = []
    for place, hint in enumerate(tables, 1):
        whose = f"hint {place} of {who}"
        _refuse_unknown(hint, set(_HINT), path, whose)
        found.append(Hint(**{name: _field(hint, name, kind, path, whose) for name, kind in _HINT.items()}))
    for one in found:
        if [other.title for other in found].count(one.title) > 1:
            raise BadNotebook(f"{path}: {who} has two hints with the title {one.title!r}; give one of them another.")
    return tuple(found)


def _field(table: dict[str, Any], name: str, kind: type, path: Path, who: str) -> Any:
    if name not in table:
        raise BadNotebook(f"{path}: {who} has no {name!r}; write {name} = {_KINDS[kind]}.")
    value = table[name]
    # A bool is an int to isinstance.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadNotebook(f"{path}: {name!r} of {who} is {value!r}; write {_KINDS[kind]}.")
    if isinstance(value, str) and not value.strip():
        raise BadNotebook(f"{path}: {name!r} of {who} is empty; write {_KINDS[kind]}.")
    return value


def _refuse_unknown(table: dict[str, Any], known: set[str], path: Path, who: str) -> None:
    # A misspelt field would otherwise be a lesson without exercises, or an exercise without hints.
    for name in table:
        if name not in known:
            raise BadNotebook(
                f"{path}: {who} has a field {name!r} that is not known; there are {', '.join(sorted(known))}."
            )
