"""The bank of submissions: what is right passes, and each expected mistake gets its marks and a message of its own.

``tests/submissions/03.1.toml`` holds, for one exercise, `[[right]]` submissions (name, text) and `[[wrong]]` ones (name,
text, says, score, and status where it is not "not yet"). `says` stands in what the author is told: in the verdict of
``check``; for a mistake that only hidden cases show (status = "passed") in what ``grade`` prints. `score` is what the solution
notebook's own graded cell gives. ``course check`` tries them all, in a process of its own (``sandbox/learn/trials.py``).
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox.errors import BadNotebook, SandboxError
from sandbox.learn import solutions
from sandbox.learn.catalog import Course, Exercise, Lesson
from sandbox.learn.checking import CHECKERS, FORMS, check
from sandbox.learn.verdict import Status, Verdict
from sandbox.services import code

FOLDER = Path("tests/submissions")
FEWEST_WRONG = 6
LETTER = 4  # a shorter `says` would stand in any message


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One submission and what is expected of it. `score` is None where a person gives the marks."""

    exercise: str
    name: str
    text: str
    status: Status
    says: str = ""
    score: float | None = None


def wanted(lesson: Lesson) -> list[Exercise]:
    """The exercises that need a bank: all that something here checks or ought to."""
    return [exercise for exercise in lesson.exercises if exercise.graded == "auto" or exercise.id in FORMS]


def path_of(lesson: Lesson, exercise: Exercise) -> Path:
    return lesson.root / FOLDER / f"{exercise.id}.toml"


def stray(course: Course) -> list[str]:
    """A sentence for each file of the bank that belongs to no exercise."""
    known = {exercise.id for lesson in course for exercise in lesson.exercises}
    files = sorted((course.root / FOLDER).glob("*.toml"))
    return [
        f"{file}: there is no exercise {file.stem!r}; the exercises are {', '.join(sorted(known)) or 'none yet'}."
        for file in files
        if file.stem not in known
    ]


def read(lesson: Lesson, exercise: Exercise) -> list[Entry]:
    """The submissions of an exercise, the right ones first. Raises BadNotebook that names what is wrong."""
    path = path_of(lesson, exercise)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadNotebook(
            f"{path} is missing: write at least one [[right]] with name and text, and {FEWEST_WRONG} [[wrong]] with name, "
            "text, says and score."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadNotebook(f"{path} is not valid TOML: {error}.") from None
    except OSError as error:
        raise BadNotebook(f"{path} can not be read: {error.strerror}.") from None
    found = [_entry(table, kind, place, exercise, path) for kind, place, table in _tables(data, path)]
    _judge_bank(found, path)
    return found


def _tables(data: dict[str, Any], path: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for name in data:
        if name not in ("right", "wrong"):
            raise BadNotebook(f"{path}: {name!r} is not known; there are [[right]] and [[wrong]].")
    for kind in ("right", "wrong"):
        tables = data.get(kind, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise BadNotebook(f"{path}: write each submission as [[{kind}]], with two brackets.")
        yield from ((kind, place, table) for place, table in enumerate(tables, 1))


def _entry(table: dict[str, Any], kind: str, place: int, exercise: Exercise, path: Path) -> Entry:
    who = f"{kind} submission {table.get('name', f'no. {place}')!r}"
    marked = kind == "wrong" and exercise.id not in FORMS
    fields: dict[str, type | tuple[type, ...]] = {"name": str, "text": str}
    if kind == "wrong":
        fields["says"] = str
    if marked:
        fields["score"] = (int, float)
    for name in table:
        if name not in fields and not (name == "status" and kind == "wrong"):
            raise BadNotebook(f"{path}: {who} has a field {name!r}; there are {', '.join(fields)}.")
    for name, type_ in fields.items():
        value = table.get(name)
        if not isinstance(value, type_) or isinstance(value, bool):
            what = "a number" if name == "score" else "text in quotes"
            raise BadNotebook(f"{path}: {who} has no {name!r} that is {what}; write {name} = {what}.")
    if kind == "wrong" and len(table["says"].strip()) < LETTER:
        raise BadNotebook(f"{path}: {who} says {table['says']!r}; write a part of what its author is told.")
    try:
        status = Status(table.get("status", Status.NOT_YET if kind == "wrong" else Status.PASSED))
    except ValueError:
        raise BadNotebook(
            f"{path}: {who} has status = {table['status']!r}; write one of {', '.join(map(repr, map(str, Status)))}."
        ) from None
    score = float(table["score"]) if marked else None if exercise.id in FORMS else float(exercise.points)
    return Entry(
        exercise=exercise.id,
        name=table["name"],
        text=table["text"],
        status=status,
        says=table.get("says", ""),
        score=score,
    )


def _judge_bank(found: list[Entry], path: Path) -> None:
    wrong = [entry for entry in found if entry.says]
    if len(wrong) == len(found):
        raise BadNotebook(f"{path} has no [[right]] submission: write one with a name and a text.")
    if len(wrong) < FEWEST_WRONG:
        raise BadNotebook(
            f"{path} has {len(wrong)} wrong submissions: write {FEWEST_WRONG - len(wrong)} more as [[wrong]], each a mistake "
            "that somebody could make and with a message of its own."
        )
    names = [entry.name for entry in found]
    for name in names:
        if names.count(name) > 1:
            raise BadNotebook(f"{path}: the name {name!r} stands there twice; give one of the two another.")
    for entry in wrong:
        for other in wrong:
            if other is not entry and entry.says in other.says:
                raise BadNotebook(
                    f"{path}: {entry.name!r} and {other.name!r} are told the same: {entry.says!r}. Each mistake needs a "
                    "message of its own."
                )


# -- trying them -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What became of one submission. `error` is empty where all was as expected."""

    exercise: str
    name: str
    score: float | None = None
    expected: float | None = None
    message: str = ""  # what its author is told
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        names = ("exercise", "name", "score", "expected", "message")
        data: dict[str, Any] = {name: getattr(self, name) for name in names}
        data = {"exercise": self.exercise, "name": self.name, "passed": not self.error, **data}
        return data | {"error": self.error} if self.error else data


def try_all(lessons: Sequence[Lesson], work: Path) -> Iterator[Tried]:
    """Every submission of these lessons, one after the other; a bank that is none is one that failed.

    `work` is an empty folder for the worker files.
    """
    from sandbox.grade import one_child
    from sandbox.services import Lab

    with contextlib.ExitStack() as stack:
        stack.enter_context(one_child())
        stack.callback(_forget, work)
        lab: Lab | None = None
        for lesson in lessons:
            for exercise in wanted(lesson):
                try:
                    entries = read(lesson, exercise)
                    if exercise.id not in CHECKERS and exercise.id not in FORMS:
                        raise BadNotebook(
                            f"exercise {exercise.id} is graded by machine and has no checker: write one under "
                            "sandbox/learn/checks and name it in CHECKERS of sandbox/learn/checking.py."
                        )
                    name, graded = solutions.find(lesson, exercise.id)[1], ""
                    if exercise.id in CHECKERS:
                        graded = solutions.graded_source(lesson, exercise.id)
                    if lab is None and exercise.id in CHECKERS:
                        # Without a worker: a checker that needs one opens what it needs.
                        lab = stack.enter_context(Lab.open("bank", worker=False, quiet=True))
                except SandboxError as error:
                    yield Tried(exercise=exercise.id, name="(the bank)", error=str(error))
                    continue
                told: dict[str, str] = {}  # message -> the mistake that it was the answer to
                for entry in entries:
                    tried = _try(entry, name, graded, work)
                    if entry.says and not tried.error and tried.message in told:
                        same = f"its author is told exactly what {told[tried.message]!r} is told"
                        tried = replace(tried, error=same)
                    if entry.says:
                        told.setdefault(tried.message, entry.name)
                    yield tried


def _forget(work: Path) -> None:
    code.forget(work)
    sys.path[:] = [entry for entry in sys.path if entry != str(work)]


def _try(entry: Entry, function: str, graded: str, work: Path) -> Tried:
    printed, score = "", None
    try:
        if graded:
            attempt = getattr(code.load(code.write("submission", entry.text, work)), function)
            verdict = check(entry.exercise, attempt)
            score, printed = run_graded(graded, {function: attempt})
        else:
            verdict = check(entry.exercise, entry.text)
        error = _deviation(entry, verdict, score, printed)
    except Exception as broken:
        return Tried(
            exercise=entry.exercise,
            name=entry.name,
            expected=entry.score,
            error=f"it could not be tried: {type(broken).__name__}: {broken}",
        )
    told = str(verdict) if entry.status != Status.PASSED or not printed else f"{verdict}\n{printed}".rstrip()
    return Tried(exercise=entry.exercise, name=entry.name, score=score, expected=entry.score, message=told, error=error)


def _deviation(entry: Entry, verdict: Verdict, score: float | None, printed: str) -> str:
    wrong = []
    if verdict.status != entry.status:
        wrong.append(f"check says {str(verdict.status)!r} and not {str(entry.status)!r}")
    told = printed if entry.says and entry.status == Status.PASSED else str(verdict)
    if entry.says not in told:
        wrong.append(f"its author is not told {entry.says!r}, but:\n{told.strip()}\n")
    if score != entry.score:
        wrong.append(f"the graded cell gives {score} and not {entry.score}")
    return "; ".join(wrong).rstrip()


def run_graded(source: str, names: dict[str, Any]) -> tuple[float, str]:
    """What the last line of the graded cell `source` gives, and what was printed."""
    tree = ast.parse(source)
    last = tree.body.pop()
    if not isinstance(last, ast.Expr):
        raise BadNotebook("the last line of the graded cell is not grade(...).")
    space = dict(names)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "<graded cell>", "exec"), space)
        score = eval(compile(ast.Expression(last.value), "<graded cell>", "eval"), space)
    return float(score), printed.getvalue()
