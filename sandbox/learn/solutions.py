"""The course's solutions: found in the solution notebooks, and shown beside the learner's own text when it is time."""

from __future__ import annotations

import ast
import difflib
import html
import re
from dataclasses import dataclass
from typing import Any

from sandbox.errors import BadNotebook
from sandbox.learn import hints, notebooks, progress
from sandbox.learn.catalog import Course, Exercise, Lesson
from sandbox.learn.verdict import Status

_BLOCK = re.compile(r"^[ \t]*### (BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)
SAME, YOURS, OURS = " ", "−", "+"  # the signs at a line


# -- in the notebook ---------------------------------------------------------------------------------------------------


def called(source: str, function: str, exercise: str) -> ast.Call | None:
    """The call ``function("03.1", name, ...)`` in a cell's source, or None."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == function and len(node.args) > 1:
            first = node.args[0]
            if isinstance(first, ast.Constant) and first.value == exercise:
                return node
    return None


def find(lesson: Lesson, exercise: str) -> tuple[str, str]:
    """The source of the cell that solves `exercise`, and the name it defines that is checked.

    It is the nearest solution cell above the cell that calls ``check("03.1", name)``. Raises BadNotebook.
    """
    above: Any = None
    for cell in notebooks.read(lesson.solution_path).cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            above = cell
        elif cell.cell_type == "code" and (call := called(cell.source, "check", exercise)):
            name = getattr(call.args[1], "id", "")
            if above is not None:
                return str(above.source), name
            break
    raise BadNotebook(
        f'{lesson.solution_path}: no cell calls check("{exercise}", ...) below a solution cell, so nobody knows which '
        f"cell solves {exercise}."
    )


def text_of(lesson: Lesson, exercise: str) -> str:
    """The course's solution as a person reads it: without nbgrader's marks and the magic. Raises BadNotebook."""
    source, _ = find(lesson, exercise)
    return plain(_BLOCK.sub("", source))


def graded_source(lesson: Lesson, exercise: str) -> str:
    """The source of the cell that gives the marks, its hidden cases included. Raises BadNotebook."""
    for cell in notebooks.read(lesson.solution_path).cells:
        marks = cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")
        if marks and called(cell.source, "grade", exercise):
            return str(cell.source)
    raise BadNotebook(f'{lesson.solution_path}: no graded cell calls grade("{exercise}", ...).')


def plain(text: str) -> str:
    """A cell's text without the line that makes a worker file of it."""
    return re.sub(r"\A%%worker_file[^\n]*\n", "", text).strip("\n")


# -- beside the learner's ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Two texts side by side. A notebook shows columns; ``print`` shows one after the other, and what differs."""

    title: str
    yours: str
    ours: str

    def lines(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """(sign, line) of yours and of ours; the sign says whether the other one has the line as well."""
        yours, ours = self.yours.splitlines(), self.ours.splitlines()
        left, right = [(YOURS, line) for line in yours], [(OURS, line) for line in ours]
        for block in difflib.SequenceMatcher(None, yours, ours, autojunk=False).get_matching_blocks():
            for place in range(block.size):
                left[block.a + place] = (SAME, yours[block.a + place])
                right[block.b + place] = (SAME, ours[block.b + place])
        return left, right

    def __str__(self) -> str:
        if not self.yours.strip():
            return "\n".join([self.title, "", "Ours:", *_indented(self.ours)])
        changes = difflib.unified_diff(
            self.yours.splitlines(), self.ours.splitlines(), "yours", "ours", lineterm="", n=2
        )
        differs = ["", "From yours to ours:", *_indented("\n".join(changes))]
        if self.yours == self.ours:
            differs = ["", "They are the same, letter by letter."]
        return "\n".join(
            [self.title, "", "Yours:", *_indented(self.yours), "", "Ours:", *_indented(self.ours), *differs]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        left, right = self.lines()
        columns = _column("Ours", right if self.yours.strip() else [(SAME, line) for _, line in right])
        legend = ""
        if self.yours.strip():
            columns = _column("Yours", left) + columns
            legend = (
                f"<p style='margin:0.4em 0'><code>{YOURS}</code> only in yours, <code>{OURS}</code> only in ours. "
                "Another way that passes the check is as right.</p>"
            )
        return (
            f"<div role='group' aria-label='{html.escape(self.title)}'><p style='margin:0.4em 0'><strong>{html.escape(self.title)}"
            f"</strong></p>{legend}<div style='display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start'>{columns}"
            "</div></div>"
        )


def _indented(text: str) -> list[str]:
    return [f"    {line}".rstrip() for line in text.splitlines()]


def _column(label: str, lines: list[tuple[str, str]]) -> str:
    def shown(sign: str, line: str) -> str:
        text = f"{sign} {html.escape(line)}"
        return text if sign == SAME else f"<strong>{text}</strong>"

    # With a tabindex, so that a long line can be scrolled to by keyboard.
    return (
        f"<div style='flex:1 1 26em;min-width:0;max-width:100%'><p style='margin:0 0 4px'><strong>{label}</strong></p>"
        f"<pre tabindex='0' role='group' aria-label='{label}' style='overflow:auto;margin:0;padding:8px;color:inherit;"
        f"background:transparent;border:1px solid #808080;text-align:left'>"
        + "\n".join(shown(*line) for line in lines)
        + "</pre></div>"
    )


@dataclass(frozen=True)
class NotYetShown:
    """Why a solution is not shown; a notebook shows the sentence."""

    sentence: str

    def __str__(self) -> str:
        return self.sentence

    __repr__ = __str__


def solution(number: str) -> Beside | NotYetShown:
    """The course's solution beside what you checked last: after a check that passed, or when all hints are open.

    Raises BadSetting for an exercise that does not exist.
    """
    lesson, exercise = Course.load().exercise(number)
    checks = hints.told("check", number)
    missing = still_to_do(exercise, {str(entry.data.get("status")) for entry in checks})
    if missing:
        return NotYetShown(missing)
    if not lesson.solution_path.is_file():
        return NotYetShown(
            f"The solutions are not in this copy of the course: {lesson.solution_path.name} is missing under solutions/. "
            "Ask whoever gave it to you."
        )
    ours = text_of(lesson, number)
    yours = next((plain(str(e.data.get("source", ""))) for e in reversed(checks) if e.data.get("source")), "")
    progress.record("solution", lesson.number, number)
    person = exercise.graded == "person"
    title = f"{number} {exercise.title}: {'one good answer' if person else 'our solution'}"
    return Beside(title=f"{title} beside yours" if yours else title, yours=yours, ours=ours)


def still_to_do(exercise: Exercise, statuses: set[str]) -> str:
    """What the learner has to do before the solution is shown; empty when they have done it."""
    if Status.PASSED in statuses:
        return ""
    if exercise.graded == "person":
        # More than one answer is right, so a try is enough; and a reader gives the points.
        if statuses - {Status.NOT_ATTEMPTED}:
            return ""
        return f'Write yours first, and check("{exercise.id}", text): then one good answer is shown beside it.'
    closed = len(exercise.hints) - hints.opened(exercise)
    if not closed and exercise.hints:
        return ""
    rest = f", or when all hints are open: {closed} of {len(exercise.hints)} are closed" if exercise.hints else ""
    return f'The solution of {exercise.id} is shown after check("{exercise.id}", ...) has passed{rest}.'
