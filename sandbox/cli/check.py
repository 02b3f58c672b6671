"""``course check``: every lesson and solution run, judged and reported."""

from __future__ import annotations

import ast
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import click

from sandbox.cli.common import build_folder, counted, load_course, shown

if TYPE_CHECKING:
    from sandbox.learn.running import Progress, Result
    from sandbox.learn.trials import Found

# Lines shown of a failing cell and of its traceback; all of it is in the notebook that is kept.
LONGEST_SOURCE, LONGEST_ERROR = 40, 30


class Parameter(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """``name=value``; the value is a Python number, True, False, None, a list, or else text."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return value
        name, sign, text = str(value).partition("=")
        if not sign or not name.isidentifier():
            self.fail(f"{value!r}: write it as name=value, for example -p rows=200", param, ctx)
        try:
            return name, ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return name, text


@click.command()
@click.argument("which", nargs=-1, metavar="[NN]...")
@click.option("--only", type=click.Choice(["lessons", "solutions"]), help="Leave the others out.")
@click.option("-p", "parameters", type=Parameter(), multiple=True, help="A parameter for the notebooks that know it.")
@click.option("--jobs", type=click.IntRange(1, 64), help="How many notebooks at once.  [default: one a processor]")
@click.option(
    "--timeout", "timeout", type=click.FloatRange(min=0, min_open=True), default=300.0, show_default=True,
    help="Seconds for one notebook; then it is stopped, with its servers.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout, and nothing else there.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit report to this file.")
def check(
    which: tuple[str, ...],
    only: str | None,
    parameters: tuple[tuple[str, Any], ...],
    jobs: int | None,
    timeout: float,
    as_json: bool,
    junit: Path | None,
) -> int:
    """Run lessons and solutions from top to bottom, as CI does.

    Without NN all of them. A notebook fails where a cell raises; a solution fails too if no job ran in it, or if one
    was not over at its end. What was run is kept under build/check. With the solutions go the submissions of
    tests/submissions, each with the marks and the message that are written there; with the lessons their quizzes.

    \b
    course check
    course check 03 --only solutions
    course check 03 -p rows=500 -p seed=7
    course check --json > result.json
    """
    from sandbox.learn import running
    from sandbox.learn.trials import Trials

    course = load_course()
    build = build_folder(course.root) / "check"
    lessons = course.select(which)
    chosen = running.targets(lessons, only, build)
    if not chosen:
        raise click.UsageError("there is nothing to run: the lessons named have no exercises, so no solutions.")
    began = time.monotonic()
    # Whoever was handed the lessons and exercises alone has none, and is no author who forgot them.
    bank = only != "lessons" and (course.root / "tests/submissions").is_dir()
    trials = Trials(lessons, submissions=bank, quizzes=only != "solutions", folder=build)
    with trials, progress_display(quiet=as_json) as notice:
        results = running.run_all(
            chosen,
            jobs=jobs or os.cpu_count() or 1,
            timeout_seconds=timeout,
            parameters=dict(parameters),
            notice=notice,
        )
        found = trials.collect(timeout)
    seconds = time.monotonic() - began
    if junit:
        _write_junit(junit, results, found, seconds)
    if as_json:
        notebooks = [result.as_json() for result in results]
        data = {"notebooks": notebooks, "submissions": found.submissions, "quizzes": found.quizzes}
        click.echo(json.dumps(data, indent=1))
    else:
        _report(results, seconds, course.root)
        for what, tried, good in (
            ("submissions", found.submissions, "as expected"),
            ("quizzes", found.quizzes, "as written"),
        ):
            if tried:
                click.echo(f"{what}: {sum(one['passed'] for one in tried)} of {len(tried)} {good}")
    for result in results:
        if not result.passed:
            click.echo(describe_failure(result, course.root), err=True)
    for one in [*found.submissions, *found.quizzes]:
        if not one["passed"]:
            click.echo(f"\n{_problem_of(one)}", err=True)
    return 0 if found.passed and all(result.passed for result in results) else 1


def _name_of(tried: dict[str, Any]) -> str:
    if "item" in tried:
        return f"practice {tried['item']}"
    return f"submission {tried['exercise']} {tried['name']}".replace("  ", " ")


def _problem_of(tried: dict[str, Any]) -> str:
    return f"{_name_of(tried)}: {tried['error']}" if "error" in tried else "\n".join(tried["problems"])


class progress_display:
    """Says how far the notebooks are: bars on a terminal, a line when one begins and one when it ends elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bars: Any = None
        self._tasks: dict[Path, Any] = {}

    def __enter__(self) -> Callable[[Progress], None]:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bars

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bars = Bars(*columns, console=Console(stderr=True))
            self._bars.start()
        return self._notice

    def __exit__(self, *_: object) -> None:
        if self._bars:
            self._bars.stop()

    def _notice(self, progress: Progress) -> None:
        target, result = progress.target, progress.result
        new = target.path not in self._tasks
        if self._bars:
            text = f"{target.kind} {target.name}"
            if new:
                self._tasks[target.path] = self._bars.add_task(text, total=progress.cells or None)
            mark = "" if result is None else "  ok" if result.passed else "  FAILED"
            cell = progress.cells if result and result.passed else max(progress.cell - 1, 0)
            self._bars.update(self._tasks[target.path], completed=cell, description=text + mark)
        elif not self._quiet:
            if result is not None:
                verdict = "ok" if result.passed else "FAILED"
                click.echo(f"{target.kind} {target.name}: {verdict} after {result.seconds:.1f} s", err=True)
            elif new:
                click.echo(f"{target.kind} {target.name}: {counted(progress.cells, 'cell')}", err=True)
        self._tasks.setdefault(target.path, None)


def _jobs_text(jobs: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in jobs.items()) or "none"


def _report(results: Sequence[Result], seconds: float, root: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=None)
    for heading in ("notebook", "kind", "result", "seconds", "cells", "jobs"):
        table.add_column(heading, justify="right" if heading in ("seconds", "cells") else "left", no_wrap=True)
    for result in results:
        verdict = "[green]ok[/]" if result.passed else "[bold red]FAILED[/]"
        cells = (str(result.cells), _jobs_text(result.jobs))
        table.add_row(result.target.name, result.target.kind, verdict, f"{result.seconds:.1f}", *cells)
    # Without a terminal there is no width to fit into, and a cut name is worth nothing in a log.
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    bad = sum(not result.passed for result in results)
    verdict = (
        f"{bad} of {counted(len(results), 'notebook')} failed" if bad else f"{counted(len(results), 'notebook')} ok"
    )
    kept = shown(results[0].target.kept.parents[1], root)
    click.echo(f"{verdict} in {seconds:.1f} s; what was run is in {kept}.")


def describe_failure(result: Result, root: Path) -> str:
    lines = [
        "",
        f"{result.target.kind} {result.target.name} failed ({shown(result.target.path, root)}): {result.error}",
    ]
    if result.source is not None:
        source = result.source.splitlines()
        lines += ["", "in the cell", "", *(f"    {line}" for line in source[:LONGEST_SOURCE])]
        if len(source) > LONGEST_SOURCE:
            lines.append(f"    ... and {len(source) - LONGEST_SOURCE} more lines")
    if result.traceback:
        lines += ["", *(f"    {line}" for line in result.traceback.splitlines()[-LONGEST_ERROR:])]
    return "\n".join(lines)


def _write_junit(path: Path, results: Sequence[Result], found: Found, seconds: float) -> None:
    tried = [*found.submissions, *found.quizzes]
    bad = sum(not result.passed for result in results) + sum(not one["passed"] for one in tried)
    numbers = {"tests": str(len(results) + len(tried)), "failures": str(bad), "errors": "0", "time": f"{seconds:.3f}"}
    suites = ElementTree.Element("testsuites", numbers)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "course check", **numbers})
    for result in results:
        names = {
            "classname": f"course.{result.target.kind}",
            "name": result.target.name,
            "file": str(result.target.path),
        }
        case = ElementTree.SubElement(suite, "testcase", names | {"time": f"{result.seconds:.3f}"})
        if not result.passed:
            failure = ElementTree.SubElement(case, "failure", {"message": _xml(result.error or "")})
            failure.text = _xml("\n".join(filter(None, [result.source, result.traceback])))
        ElementTree.SubElement(case, "system-out").text = f"jobs: {_jobs_text(result.jobs)}"
    for one in tried:
        kind = "quiz" if "item" in one else "submission"
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": f"course.{kind}", "name": _xml(_name_of(one)), "time": "0"}
        )
        if not one["passed"]:
            failure = ElementTree.SubElement(case, "failure", {"message": _xml(_problem_of(one))})
            failure.text = _xml(one.get("message", ""))
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)


def _xml(text: str) -> str:
    """`text` without the control characters that XML has no way to write."""
    return "".join(c if c in "\n\t" or (ord(c) >= 32 and not 0xD800 <= ord(c) < 0xE000) else "?" for c in text)
