"""``course links`` and ``course minutes``: what a lesson says about its place, its words and its length, kept true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from sandbox.cli.common import build_folder, counted, load_course, shown
from sandbox.errors import StackFailed

if TYPE_CHECKING:
    from sandbox.learn.catalog import Course, Lesson


@click.command()
@click.option("--check", "only_check", is_flag=True, help="Change nothing; name what a run would change, and exit 1.")
def links(only_check: bool) -> int:
    """Bring the links of lessons and glossary up to date.

    From course.toml: a lesson's title, the line under it that says where it stands, and the line "Next:" at its end. From
    the glossary: the text that each link to a term shows on hover, and docs/glossary.md with the links back.

    \b
    course links
    course links --check
    """
    from sandbox.learn import notebooks, signposts

    course = load_course()
    changed, problems = signposts.render(course)
    for path, text in changed.items():
        if only_check:
            click.echo(f"{shown(path, course.root)} is not what its sources make")
        else:
            notebooks.replace(path, text)
            click.echo(f"wrote {shown(path, course.root)}")
    for problem in problems:
        click.echo(problem, err=True)
    if any(path.is_relative_to(course.root / "solutions") for path in changed):
        click.echo("A solution changed: type `course exercises` afterwards.")
    if only_check and changed:
        click.echo(f"course: {counted(len(changed), 'file')} to write: type `course links`.", err=True)
    if problems:
        click.echo(f"course: {counted(len(problems), 'link')} to put right by hand.", err=True)
    elif not changed:
        click.echo("Nothing to do.")
    return 1 if problems or (only_check and changed) else 0


@click.command()
@click.argument("which", nargs=-1, metavar="[NN]...")
@click.option("--run", "measure", is_flag=True, help="Run the lessons too, and count the seconds of that.")
@click.option("--write", is_flag=True, help="Write the minutes into course.toml, the README and the lessons.")
def minutes(which: tuple[str, ...], measure: bool, write: bool) -> int:
    """Compute the minutes of each lesson, part by part.

    Prose at 200 words a minute, 6 seconds a line of code, 45 to 120 seconds for something to practise, 15 a card; in steps
    of 5 minutes. The run of a lesson is seconds; with --run it is measured.

    \b
    course minutes
    course minutes 03 --run --write
    """
    from sandbox.learn import minutes as rule

    course = load_course()
    chosen = course.select(which)
    seconds = _measured(chosen, course) if measure else {}
    estimates = {lesson: rule.estimate(lesson, run_seconds=seconds.get(lesson.name, 0.0)) for lesson in chosen}
    wide = max(len(lesson.name) for lesson in chosen)
    parts = list(next(iter(estimates.values())).parts)
    click.echo(" ".join([f"{'lesson':<{wide}}", *(f"{part:>8}" for part in parts), "   rule  course.toml"]))
    for lesson, made in estimates.items():
        row = [f"{value / 60:>8.1f}" for value in made.parts.values()]
        click.echo(" ".join([f"{lesson.name:<{wide}}", *row, f"{made.minutes:>7}", f"{lesson.minutes:>12}"]))
    if not write:
        return 0
    return _write_minutes(course, {lesson: made.minutes for lesson, made in estimates.items()})


def _measured(chosen: tuple[Lesson, ...], course: Course) -> dict[str, float]:
    """Seconds that each lesson runs under papermill, one after the other."""
    from sandbox.cli.check import describe_failure, progress_display
    from sandbox.learn import running

    with progress_display() as notice:
        targets = running.targets(chosen, "lesson", build_folder(course.root) / "check")
        results = running.run_all(targets, jobs=1, timeout_seconds=300, notice=notice)
    for result in results:
        if not result.passed:
            raise StackFailed(f"a lesson that fails has no measure.\n{describe_failure(result, course.root)}")
    return {result.target.name: result.seconds for result in results}


def _write_minutes(course: Course, wanted: Mapping[Lesson, int]) -> int:
    from sandbox.learn import catalog, notebooks
    from sandbox.learn import minutes as rule

    texts = {
        path: path.read_text(encoding="utf-8")
        for name in (catalog.FILE, "README.md")
        if (path := course.root / name).is_file()
    }
    for path, before in texts.items():
        edit = rule.in_course_file if path.name == catalog.FILE else rule.in_readme
        text = before
        for lesson, number in wanted.items():
            text = edit(text, lesson, number)
        if text != before:
            notebooks.replace(path, text)
            click.echo(f"wrote {shown(path, course.root)}")
    click.echo("Type `course links`: the lessons say it in their first lines.")
    return 0
