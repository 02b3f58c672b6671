"""``course progress``: what you have done so far, and the file it is kept in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sandbox.cli.common import counted, load_course
from sandbox.errors import BadSetting

if TYPE_CHECKING:
    from sandbox.learn.points import Overview
    from sandbox.learn.progress import Contents

FILE = click.Path(path_type=Path)


@click.group(invoke_without_command=True, short_help="Show what you have done so far.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON on stdout, and nothing else there.")
@click.pass_context
def progress(ctx: click.Context, as_json: bool) -> int:
    """Show points, streak, what is due, and each lesson.

    It is kept in one file on this machine. COURSE_PROGRESS names another file, or is "off".

    \b
    course progress
    course progress --json
    course progress export FILE      write a copy; --force replaces one
    course progress import FILE      add what a copy holds and your file does not
    course progress wipe             remove the file for good; --yes does not ask
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"--json is for `course progress` alone, not for {ctx.invoked_subcommand}.")
        return 0
    from sandbox.learn import panel
    from sandbox.learn import progress as store

    course = load_course()
    path = store.chosen()
    if path is None:
        click.echo(json.dumps({"file": None}) if as_json else _off())
        return 0
    contents = _read(path) if path.exists() else None
    seen = panel.look(path, course=course)
    if as_json:
        click.echo(json.dumps(_as_json(seen, path), indent=1, ensure_ascii=False))
    else:
        _report(seen, path, contents)
    return 0


@progress.command("export")
@click.argument("file", type=FILE, metavar="FILE")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def export_(file: Path, force: bool) -> int:
    """Write a copy of what you have done to FILE.

    \b
    course progress export ~/progress-copy.jsonl
    """
    from sandbox.learn import notebooks

    path = _path()
    contents = _read(path) if path.exists() else None
    if contents is None or not contents.entries:
        raise BadSetting(f"there is nothing to export yet: {path} holds no entry.")
    if file.is_dir():
        raise BadSetting(f"{file} is a folder: give a file's name, for example {file / 'progress.jsonl'}.")
    if not file.parent.is_dir():
        raise BadSetting(f"there is no folder {file.parent}: make it, or give another place.")
    if file.exists():
        if not file.is_file():
            raise BadSetting(f"{file} is not a regular file: give another name.")
        if file.samefile(path):
            raise BadSetting(f"{file} is the file itself: give another name for the copy.")
        if not force:
            raise BadSetting(f"{file} is there already: give another name, or --force to replace it.")
    try:
        # Not over a link, but where it leads.
        notebooks.replace(file.resolve(), "".join(contents.lines[entry.entry] + "\n" for entry in contents.entries))
    except (OSError, RuntimeError) as error:  # until Python 3.12 a loop of links is a RuntimeError
        raise BadSetting(f"{file} can not be written: {getattr(error, 'strerror', None) or error}.") from None
    click.echo(f"Wrote {_entries(len(contents.entries))} to {file}.{_passed_over(contents)}")
    return 0


@progress.command("import")
@click.argument("file", type=FILE, metavar="FILE")
def import_(file: Path) -> int:
    """Add what FILE holds and your own file does not. Nothing that is there is changed.

    \b
    course progress import ~/progress-copy.jsonl
    """
    from sandbox.learn import progress as store

    path = _path()
    given = _read(file)
    if not given.entries:
        raise BadSetting(f"{file} holds no entry: give a file that `course progress export` has written.")
    try:
        new = store.merge(given, path)
    except OSError as error:
        raise BadSetting(f"{path} can not be written: {error.strerror}.") from None
    there = len(given.entries) - new
    click.echo(f"{_entries(new)} new, {there} there already.{_passed_over(given)}")
    return 0


@progress.command("wipe")
@click.option("--yes", is_flag=True, help="Do not ask.")
def wipe(yes: bool) -> int:
    """Remove the file with what you have done, for good. No copy is kept.

    \b
    course progress wipe
    course progress wipe --yes
    """
    from sandbox.learn import points
    from sandbox.learn import progress as store

    path = _path()
    if not path.exists():
        click.echo(f"Nothing to do: there is no {path}.")
        return 0
    contents = _read(path)
    what = f"{_entries(len(contents.entries))}, {counted(points.xp(contents.entries), 'point')}"
    if contents.entries:
        first, last = (contents.entries[place].at.astimezone().date() for place in (0, -1))
        what += f", from {first} to {last}"
    click.echo(f"{path} goes, and no copy is kept: {what}.{_passed_over(contents)}")
    click.echo("To keep a copy, stop here and type `course progress export FILE`.")
    if not yes:
        click.confirm("Remove it?", abort=True)
    try:
        store.wipe(path)
    except OSError as error:
        raise BadSetting(f"{path} can not be removed: {error.strerror}.") from None
    click.echo("Removed.")
    return 0


def _off() -> str:
    from sandbox.learn import progress as store

    return f"Nothing is recorded: {store.ENV} is {store.OFF}. Unset it, or set it to a file."


def _path() -> Path:
    from sandbox.learn import progress as store

    path = store.chosen()
    if path is None:
        raise BadSetting(_off())
    return path


def _read(path: Path) -> Contents:
    from sandbox.learn import progress as store

    try:
        return store.read(path)
    except OSError as error:
        raise BadSetting(f"{path} can not be read: {error.strerror}.") from None


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"


def _passed_over(contents: Contents | None) -> str:
    if contents is None or not contents.passed_over:
        return ""
    return f" {counted(contents.passed_over, 'line')} of it {_are(contents.passed_over)} no entry and passed over."


def _are(number: int) -> str:
    return "was" if number == 1 else "were"


def _as_json(seen: Overview, path: Path) -> dict[str, Any]:
    return {
        "file": str(path),
        "entries": seen.entries,
        "points": seen.xp,
        "rule": [{"points": rule.points, "what": rule.what, "times": times} for rule, times in seen.earned],
        "streak_days": seen.streak,
        "due": [term.name for term in seen.due],
        "next": seen.next[0],
        "lessons": [
            {
                "number": one.lesson.number,
                "title": one.lesson.title,
                "state": one.words,
                "practice_right": one.right,
                "practice_items": one.items,
                "exercises_passed": one.passed,
                "exercises": one.exercises,
                "hints_opened": one.hints,
                "minutes": round(one.minutes, 1),
            }
            for one in seen.standings
        ],
    }


def _report(seen: Overview, path: Path, contents: Contents | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from sandbox.learn import panel, points

    table = Table(title=None)
    for heading in panel.COLUMNS:
        table.add_column(heading.lower(), no_wrap=True)
    for one in seen.standings:
        table.add_row(escape(f"{one.lesson.number} {one.lesson.title}"), *map(escape, panel.cells(one)))
    rules = Table(title=None)
    for heading in panel.RULE_COLUMNS:
        rules.add_column(heading.lower(), no_wrap=True)
    for rule, times in seen.earned:
        rules.add_row(rule.what, counted(rule.points, "point"), str(times))
    # Without a terminal there is no width to fit into.
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    streak = f"{counted(seen.streak, 'day')} in a row" if seen.streak else "no streak yet"
    click.echo(f"{counted(seen.xp, 'point')}, {streak}. {panel.due_text(seen)}")
    click.echo(f"Next: {seen.next[0]}.")
    console.print(rules)
    click.echo(f"{points.FREE} {points.MINUTES_RULE}")
    click.echo(f"Kept in {path}{'' if contents else ', which is not there yet'}.{_passed_over(contents)}")
