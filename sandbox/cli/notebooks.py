"""Commands on notebook files: ``clean``, ``exercises``, ``solutions``, ``reset``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sandbox.cli.common import build_folder, counted, load_course, shown
from sandbox.errors import BadNotebook, BadSetting

if TYPE_CHECKING:
    from sandbox.learn.catalog import Course, Lesson


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option(
    "--check", "only_check", is_flag=True, help="Change nothing; name the notebooks that are not clean, and exit 1."
)
def clean(paths: tuple[Path, ...], only_check: bool) -> int:
    """Bring notebooks into the form they have in git.

    Outputs, counts and the traces of tools go (in solutions, the outputs that nbval compares stay); cells get stable
    ids. The text of the cells is never changed. Without PATH: every notebook of the course.

    \b
    course clean
    course clean lessons/03_swallowed_signal.ipynb
    course clean --check
    """
    from sandbox.learn import catalog, notebooks

    root = catalog.find_root()
    changed = {}
    for path in notebooks.expand(paths) if paths else notebooks.find_all(root):
        text = notebooks.read_text(path)
        better = notebooks.clean_text(text, path, keep_outputs=notebooks.keeps_outputs(path, root))
        if better != text:
            changed[path] = better
    return _settle(changed, root, only_check, "is not clean", "cleaned", "course clean")


@click.command()
@click.argument("which", nargs=-1, metavar="[NN]...")
@click.option(
    "--check", "only_check", is_flag=True, help="Change nothing; name what differs from its solution, and exit 1."
)
def exercises(which: tuple[str, ...], only_check: bool) -> int:
    """Make exercises/ from solutions/ with nbgrader.

    What a learner has written in an exercise is replaced; `course reset` is the command that keeps a copy of it.

    \b
    course exercises
    course exercises 03 --check
    """
    from sandbox.learn import releasing

    course = load_course()
    made = releasing.release_all(course.select(which))
    changed = {lesson.exercise_path: text for lesson, text in made.items() if _differs(lesson.exercise_path, text)}
    return _settle(changed, course.root, only_check, "differs from what its solution makes", "made", "course exercises")


@click.command()
@click.argument("which", nargs=-1, metavar="[NN]...")
@click.option("--check", "only_check", is_flag=True, help="Change nothing; name what a run would change, and exit 1.")
@click.option("--jobs", type=click.IntRange(1, 64), help="How many notebooks at once.  [default: one a processor]")
@click.option(
    "--timeout", "timeout", type=click.FloatRange(min=0, min_open=True), default=300.0, show_default=True,
    help="Seconds for one notebook; then it is stopped, with its servers.",
)  # fmt: skip
def solutions(which: tuple[str, ...], only_check: bool, jobs: int | None, timeout: float) -> int:
    """Run the solutions and store the outputs that nbval compares.

    \b
    course solutions 03
    course solutions --check
    """
    from sandbox.cli.check import describe_failure, progress_display
    from sandbox.learn import releasing

    course = load_course()
    with progress_display() as notice:
        solved, results = releasing.solve_all(
            course.select(which),
            build_folder(course.root) / "solved",
            jobs=jobs or os.cpu_count() or 1,
            timeout_seconds=timeout,
            notice=notice,
        )
    # An output that nbval would not tell from the stored one is left as it is.
    changed = {
        lesson.solution_path: text
        for lesson, text in solved.items()
        if _differs(lesson.solution_path, text, lambda stored: releasing.sanitised(stored, course.root))
    }
    code = _settle(changed, course.root, only_check, "has other outputs now", "stored", "course solutions")
    for result in results:
        if not result.passed:
            click.echo(describe_failure(result, course.root), err=True)
    return code if all(result.passed for result in results) else 1


@click.command()
@click.argument("which", metavar="NN")
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(which: str, yes: bool) -> int:
    """Bring the exercise of lesson NN back to how it was handed out.

    Your own version is kept beside it, under a name that says when. Nothing else is touched.

    \b
    course reset 03
    course reset 03 --yes
    """
    from sandbox.learn import notebooks

    course = load_course()
    lesson = course.find(which)
    if not lesson.exercises:
        raise BadSetting(f"lesson {lesson.number} has no exercises, so there is nothing to reset.")
    path, name = lesson.exercise_path, shown(lesson.exercise_path, course.root)
    released, origin = _released(lesson, course)
    backup = None
    if path.exists():
        if path.read_bytes() == released.encode() or _same_apart_from_outputs(path, released):
            click.echo(f"Nothing to do: {name} is as it was handed out.")
            return 0
        backup = _backup_path(path)
        click.echo(f"{name} becomes what it is in {origin}.")
        click.echo(f"Your version of it is kept as {shown(backup, course.root)}. Nothing else is touched.")
    else:
        click.echo(f"{name} is missing; it becomes what it is in {origin}. Nothing else is touched.")
    if not yes:
        click.confirm("Go on?", abort=True)
    if backup is not None:
        # A link to the same bytes, whatever they are; the name then gets new ones, so no moment is without a copy.
        try:
            os.link(path, backup)
        except OSError:
            backup.write_bytes(path.read_bytes())
    notebooks.replace(path, released)
    click.echo("Done. If it is open in JupyterLab, choose File, Reload Notebook from Disk.")
    return 0


def _released(lesson: Lesson, course: Course) -> tuple[str, str]:
    """The exercise as it was handed out, and where that was found: the last commit, else made anew."""
    from sandbox.learn import notebooks, releasing

    inside = lesson.exercise_path.relative_to(course.root).as_posix()
    committed = notebooks.git(course.root, "show", f"HEAD:./{inside}")
    if committed is not None:
        return committed, "the last commit"
    return releasing.release_all([lesson])[lesson], f"{shown(lesson.solution_path, course.root)}, without the answers"


def _same_apart_from_outputs(path: Path, released: str) -> bool:
    from sandbox.learn import notebooks

    try:
        mine = notebooks.clean_text(notebooks.read_text(path), path, keep_outputs=False)
        return mine == notebooks.clean_text(released, path, keep_outputs=False)
    except BadNotebook:
        return False


def _backup_path(path: Path) -> Path:
    from sandbox.learn.notebooks import BACKUP

    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")  # the learner's own clock: a name to recognise, not a moment
    wanted, number = path.with_name(f"{path.stem}.{stamp}{BACKUP}"), 2
    while wanted.exists():
        wanted, number = path.with_name(f"{path.stem}.{stamp}-{number}{BACKUP}"), number + 1
    return wanted


def _differs(path: Path, text: str, seen_as: Callable[[str], str] = str) -> bool:
    return not path.is_file() or seen_as(path.read_bytes().decode(errors="replace")) != seen_as(text)


def _settle(changed: Mapping[Path, str], root: Path, only_check: bool, problem: str, done: str, command: str) -> int:
    """Write the new texts, or with --check name them. Says which, and returns the exit code."""
    from sandbox.learn import notebooks

    for path, text in changed.items():
        if only_check:
            click.echo(f"{shown(path, root)} {problem}")
        else:
            notebooks.replace(path, text)
            click.echo(f"{done} {shown(path, root)}")
    if only_check and changed:
        click.echo(f"course: {counted(len(changed), 'notebook')} to write: type `{command}`.", err=True)
        return 1
    if not changed:
        click.echo("Nothing to do.")
    return 0
