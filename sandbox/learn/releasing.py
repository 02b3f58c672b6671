"""Exercises made from solutions by nbgrader, and solutions stored with the outputs that nbval compares."""

from __future__ import annotations

import configparser
import io
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.errors import BadNotebook
from sandbox.learn import notebooks, running
from sandbox.learn.catalog import Lesson

if TYPE_CHECKING:
    from traitlets.config import Config

CONFIG = "nbgrader_config.py"


def release(lesson: Lesson, into: Path) -> str:
    """What nbgrader makes of the solution of `lesson`, as the text of the exercise's file. Raises BadNotebook.

    A pure function of the solution: no gradebook is written. `into` is an empty folder for nbgrader to work in.
    """
    source = notebooks.clean_text(notebooks.read_text(lesson.solution_path), lesson.solution_path, keep_outputs=False)
    folder = into / "solutions" / lesson.name
    folder.mkdir(parents=True)
    # Only the notebook: nbgrader would copy what else lies there, also a backup or a cache.
    (folder / lesson.solution_path.name).write_text(source, encoding="utf-8")
    # Imported here: nbgrader takes over a second.
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    config = _config(lesson.root)
    config.CourseDirectory.root = str(into)
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "exercises"
    config.CourseDirectory.db_url = "sqlite://"
    config.GenerateAssignment.no_database = True
    config.GenerateAssignment.pop("post_convert_hook", None)
    config.SaveCells.enabled = False
    said = io.StringIO()
    log = logging.Logger("course.nbgrader")  # not the process's own: nbgrader explains itself at length
    log.addHandler(logging.StreamHandler(said))
    courses = CourseDirectory(config=config, log=log, assignment_id=lesson.name)
    made = into / "exercises" / lesson.name / lesson.exercise_path.name
    try:
        GenerateAssignment(coursedir=courses, config=config, log=log).start()
        if not made.is_file():
            raise OSError("it wrote no file")
    except Exception as error:
        # What went wrong first stands in its log; the exception often says only that something did.
        first = re.search(r"^[\w.]*Error: (.+)$", said.getvalue(), re.MULTILINE)
        why = first[1] if first else " ".join(str(error).split())
        raise BadNotebook(f"nbgrader made no exercise of {lesson.solution_path}: {why}") from None
    return notebooks.clean_text(notebooks.read_text(made), lesson.exercise_path, keep_outputs=False)


def release_all(lessons: Sequence[Lesson]) -> dict[Lesson, str]:
    """``release`` for each lesson that has exercises; nothing is written into the course."""
    made = {}
    for lesson in lessons:
        if lesson.exercises:
            folder = Path(tempfile.mkdtemp(prefix="course-release-"))
            try:
                # nbgrader reads paths as patterns, and resolves none of them.
                made[lesson] = release(lesson, folder.resolve())
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return made


def solve_all(
    lessons: Sequence[Lesson],
    build: Path,
    *,
    jobs: int,
    timeout_seconds: float,
    notice: Callable[[running.Progress], None],
) -> tuple[dict[Lesson, str], list[running.Result]]:
    """Run each solution; its text with the outputs of this run, for those that passed. Nothing is written."""
    chosen = running.targets([lesson for lesson in lessons if lesson.exercises], "solution", build)
    results = running.run_all(chosen, jobs=jobs, timeout_seconds=timeout_seconds, notice=notice)
    by_path = {result.target.path: result for result in results}
    solved = {}
    for lesson in lessons:
        result = by_path.get(lesson.solution_path)
        if result is not None and result.passed:
            solved[lesson] = with_outputs(lesson.solution_path, result.target.kept)
    return solved, results


def with_outputs(source: Path, executed: Path) -> str:
    """The text of `source` with the outputs that `executed`, a run of it, has."""
    stored, ran = notebooks.read(source), notebooks.read(executed)
    cells = [cell for cell in ran.cells if not {"injected-parameters"}.intersection(notebooks.tags(cell))]
    if [cell.source for cell in stored.cells] != [cell.source for cell in cells]:
        raise BadNotebook(f"{source} has changed while it ran: type the command again.")
    for cell, done in zip(stored.cells, cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = done.outputs, done.execution_count
    return notebooks.write_text(notebooks.clean(stored, keep_outputs=True, name=source))


def sanitised(text: str, root: Path) -> str:
    """`text` as nbval compares it: with the rules of tests/nbval_sanitize.cfg applied, where there are any."""
    rules = configparser.ConfigParser(interpolation=None)
    rules.read(root / "tests" / "nbval_sanitize.cfg", encoding="utf-8")
    for name in rules.sections():
        text = re.sub(rules[name]["regex"], rules[name]["replace"], text)
    return text


def tidy_release(**about: object) -> None:
    """nbgrader's hook after ``nbgrader generate_assignment``: the exercise as ``course exercises`` writes it.

    nbgrader's own command also enters the exercise into the gradebook, which grading needs; both make the same file.
    """
    for path in notebooks.expand([Path("exercises") / str(about["assignment"])]):
        notebooks.replace(path, notebooks.clean_text(notebooks.read_text(path), path, keep_outputs=False))


def _config(root: Path) -> Config:
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    try:
        found: Config = (
            PyFileConfigLoader(CONFIG, path=str(root)).load_config() if (root / CONFIG).is_file() else Config()
        )
    except Exception as error:
        raise BadNotebook(f"{root / CONFIG} can not be read: {type(error).__name__}: {error}") from None
    return found
