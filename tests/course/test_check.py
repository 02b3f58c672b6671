"""``course check`` on small courses of its own: what passes, what fails, and that nothing is left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest

from sandbox.cli import main
from sandbox.learn import running
from sandbox.learn.processes import is_alive
from sandbox.services.stack import PREFIX

Cells = list[str | tuple[str, str]]  # a source, or a source and a tag

REPOSITORY = Path(__file__).parents[2]
LAB = "from sandbox.services import Lab\nlab = Lab.open('t', worker=False, quiet=True)"
JOB = "row = lab.jobs.add('nap', {})"
FINISH = "lab.jobs.start(row.id, lease_seconds=60)\nlab.jobs.finish(row.id, 'completed')"


def write_notebook(path: Path, cells: Cells) -> None:
    made = []
    for place, cell in enumerate(cells):
        source, tags = (cell, []) if isinstance(cell, str) else (cell[0], [cell[1]])
        common = {"id": f"c{place}", "source": source, "metadata": {"tags": tags}}
        made.append({"cell_type": "code", "outputs": [], "execution_count": None, **common})
    metadata = {"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": made}))


def write_course(root: Path, lessons: dict[str, tuple[Cells | None, Cells | None]]) -> None:
    """A course with a lesson for each name; its lesson notebook, then its solution, None where there is none."""
    lines = ['title = "t"']
    for number, (name, (lesson, solution)) in enumerate(lessons.items()):
        lines += [
            "[[lesson]]",
            f'number = "{number:02}"',
            f'slug = "{name}"',
            'title = "t"',
            'question = "q"',
            "minutes = 1",
        ]
        if solution is not None:
            exercise = (f'id = "{number:02}.1"', 'title = "t"', 'graded = "person"', "points = 1")
            lines += ["[[lesson.exercise]]", *exercise]
            write_notebook(root / f"solutions/{number:02}_{name}/{number:02}_{name}.ipynb", solution)
        if lesson is not None:
            write_notebook(root / f"lessons/{number:02}_{name}.ipynb", lesson)
    (root / "course.toml").write_text("\n".join(lines))


LESSONS: dict[str, tuple[Cells | None, Cells | None]] = {
    "good": (
        [
            ("rows: int = 5\nseed = 1", "parameters"),
            "import os; open('cwd.txt', 'w').write(os.getcwd() + ' ' + repr(rows))",
            "os.write(1, b'noise on the inherited stdout\\n')",
        ],
        [LAB, JOB, FINISH, "lab.close()", LAB, JOB, FINISH],
    ),
    "raises": (["good = 1", "# this cell fails\nint('seven')", "raise SystemExit('never reached')"], None),
    "expected": ([("1 / 0", "raises-exception"), "reached = 1"], None),
    "idle": (["1"], ["assert True"]),
    "unfinished": (["1"], [LAB, JOB, "another = lab.jobs.add('nap', {})", FINISH]),
    "dies": (["1", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "2"], None),
    "missing": (None, None),
    "broken": (["1"], None),
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One run over a course with a notebook of every kind, in a folder with a space, a brace and a Cyrillic letter."""
    root = tmp_path_factory.mktemp("a{b} ж")
    write_course(root, LESSONS)
    (root / "lessons/07_broken.ipynb").write_text("<<<<<<< HEAD\n{}")
    command = [sys.executable, "-m", "sandbox.cli", "check", "--json", "--junit", "out/junit.xml", "-p", "rows=9"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    notebooks = json.loads(done.stdout)["notebooks"]
    found = {(entry["name"][3:], entry["kind"]): entry for entry in notebooks}
    return types.SimpleNamespace(root=root, code=done.returncode, stderr=done.stderr, raw=done.stdout, found=found)


def test_the_json_has_the_promised_fields_and_nothing_else_is_on_stdout(checked: Any) -> None:
    """Each notebook has name, kind, passed, seconds, cells and jobs, and an error only where it did not pass."""
    assert list(json.loads(checked.raw)) == ["notebooks", "submissions", "quizzes"]
    for entry in checked.found.values():
        keys = ["name", "kind", "passed", "seconds", "cells", "jobs"]
        assert list(entry) == (keys if entry["passed"] else [*keys, "error"])
    assert checked.found["good", "lesson"]["cells"] == 3


def test_a_lesson_passes_when_every_cell_runs(checked: Any) -> None:
    """A lesson without jobs passes, whatever its kernel prints on the stdout it inherited."""
    assert checked.found["good", "lesson"]["passed"]
    assert checked.found["good", "lesson"]["jobs"] == {}


def test_a_notebook_runs_in_its_own_folder_with_the_parameters_given(checked: Any) -> None:
    """The working folder is the notebook's, and -p replaces the value on its parameters cell."""
    folder, rows = (checked.root / "lessons/cwd.txt").read_text().rsplit(" ", 1)
    assert Path(folder) == checked.root / "lessons"
    assert rows == "9"


def test_the_jobs_of_every_lab_are_counted(checked: Any) -> None:
    """A solution passes when its jobs are over; those of a lab that was closed count too."""
    assert checked.found["good", "solution"]["passed"]
    assert checked.found["good", "solution"]["jobs"] == {"completed": 2}


def test_the_failing_cell_is_shown_with_its_error(checked: Any) -> None:
    """A cell that raises fails the lesson; its source and its error are printed, without colours."""
    entry = checked.found["raises", "lesson"]
    assert not entry["passed"]
    assert entry["error"] == "ValueError: invalid literal for int() with base 10: 'seven'"
    assert "in the cell\n\n    # this cell fails\n    int('seven')\n" in checked.stderr
    assert "\x1b" not in checked.stderr
    assert "never reached" not in checked.stderr
    assert checked.code == 1


def test_an_exception_that_is_tagged_as_expected_is_none(checked: Any) -> None:
    """A cell tagged raises-exception may raise, the rest runs, and no mark of an error is left in what is kept."""
    assert checked.found["expected", "lesson"]["passed"]
    kept = json.loads((checked.root / "build/check/lessons/02_expected.ipynb").read_text())
    assert ["".join(cell["source"]) for cell in kept["cells"]] == ["1 / 0", "reached = 1"]


def test_a_solution_in_which_no_job_ran_fails(checked: Any) -> None:
    """Cells that pass are not enough: a solution without a job fails with a sentence."""
    entry = checked.found["idle", "solution"]
    assert not entry["passed"]
    assert "every cell passed, but no job ran" in entry["error"]
    assert checked.found["idle", "lesson"]["passed"]


def test_a_solution_that_leaves_a_job_open_fails(checked: Any) -> None:
    """A solution with a job that is not over fails, and the sentence counts the states."""
    entry = checked.found["unfinished", "solution"]
    assert not entry["passed"]
    assert "not every job came to an end: 1 pending" in entry["error"]
    assert entry["jobs"] == {"completed": 1, "pending": 1}


def test_a_kernel_that_dies_is_named_with_its_cell(checked: Any) -> None:
    """When the kernel dies the lesson fails, and the cell it died in is shown."""
    assert checked.found["dies", "lesson"]["error"] == "the kernel died"
    assert "os.kill(os.getpid(), signal.SIGKILL)" in checked.stderr


def test_missing_and_broken_notebooks_fail_without_stopping_the_others(checked: Any) -> None:
    """A notebook that is missing or can not be read is a failed one that says so."""
    missing, broken = checked.found["missing", "lesson"], checked.found["broken", "lesson"]
    assert missing["error"] == f"{checked.root / 'lessons/06_missing.ipynb'} is missing."
    assert "the marks of a merge conflict are in it" in broken["error"]
    assert (missing["cells"], missing["passed"], broken["passed"]) == (0, False, False)


def test_what_was_run_is_kept_without_our_cell(checked: Any) -> None:
    """The notebooks under build/check have the outputs of the run, and only the author's cells."""
    kept = json.loads((checked.root / "build/check/solutions/00_good.ipynb").read_text())
    assert len(kept["cells"]) == 7
    assert not any("course-check" in json.dumps(cell) for cell in kept["cells"])
    lesson = json.loads((checked.root / "build/check/lessons/01_raises.ipynb").read_text())
    assert any(output["output_type"] == "error" for cell in lesson["cells"] for output in cell.get("outputs", []))


def test_the_notebooks_themselves_are_not_written(checked: Any) -> None:
    """A check changes no file of the course."""
    lesson = json.loads((checked.root / "lessons/00_good.ipynb").read_text())
    assert [cell["outputs"] for cell in lesson["cells"]] == [[], [], []]


def test_junit_counts_what_failed(checked: Any) -> None:
    """The JUnit report has a case for each notebook and a failure for each that did not pass."""
    suite = ElementTree.parse(checked.root / "out/junit.xml").getroot()[0]
    bad = [entry for entry in checked.found.values() if not entry["passed"]]
    assert int(suite.get("tests", 0)) == len(suite.findall("testcase")) == len(checked.found)
    assert int(suite.get("failures", 0)) == len(suite.findall("testcase/failure")) == len(bad)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COURSE_ROOT", str(tmp_path))
    return tmp_path


def test_the_table_shows_every_notebook_and_the_code_is_zero(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When all is well there is a line for each notebook with its jobs, and exit code 0."""
    write_course(course, {"fine": (["1"], [LAB, JOB, FINISH])})
    assert main(["check"]) == 0
    shown = capsys.readouterr()
    assert "2 notebooks ok" in shown.out
    assert "1 completed" in shown.out
    assert "solution 00_fine: ok after" in shown.err


def test_only_leaves_the_other_kind_out(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--only lessons runs no solution."""
    write_course(course, {"fine": (["1"], ["1"])})
    assert main(["check", "--only", "lessons", "--json"]) == 0
    assert [n["kind"] for n in json.loads(capsys.readouterr().out)["notebooks"]] == ["lesson"]


def test_a_parameter_that_no_notebook_knows_is_an_error(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown -p stops before anything runs, and the names that are known are listed."""
    write_course(course, {"one": ([("rows = 5\nseed: int = 2", "parameters"), "1"], None), "two": (["1"], None)})
    assert main(["check", "-p", "rosw=9"]) == 1
    assert capsys.readouterr().err == (
        "course: no notebook that would run has a parameter 'rosw'; they know rows, seed.\n"
    )
    assert main(["check", "01", "-p", "rows=9"]) == 1
    assert "they have no parameters" in capsys.readouterr().err
    assert not (course / "build/check/lessons/00_one.ipynb").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "-p", "rows"], "write it as name=value"),
        (["check", "-p", "1=2"], "write it as name=value"),
        (["check", "--jobs", "0"], "is not in the range"),
        (["check", "--timeout", "0"], "is not in the range"),
        (["check", "--only", "exercises"], "is not one of"),
        (["check", "00", "--only", "solutions"], "there is nothing to run"),
    ],
)
def test_a_mistake_in_what_was_typed_is_code_2(
    course: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """A usage mistake is answered with what is wrong, and exit code 2."""
    write_course(course, {"one": (["1"], None)})
    assert main(arguments) == 2
    assert sentence in capsys.readouterr().err


def test_an_unknown_lesson_is_one_line(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lesson that does not exist is one line that lists those that do."""
    write_course(course, {"one": (["1"], None)})
    assert main(["check", "44"]) == 1
    assert capsys.readouterr().err == (
        "course: there is no lesson '44'; the lessons are 00_one. Type a number, for example 03.\n"
    )


def test_a_kernel_that_is_not_installed_is_said(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A notebook that asks for a kernel this machine does not have fails with the kernel's name."""
    write_course(course, {"one": (["1"], None)})
    path = course / "lessons/00_one.ipynb"
    path.write_text(path.read_text().replace("python3", "cobol"))
    assert main(["check"]) == 1
    assert "No such kernel named cobol" in capsys.readouterr().err


STUBBORN = """\
import json, os, pathlib
pathlib.Path("began.json").write_text(json.dumps([os.getpid(), str(lab.stack.folder)]))
while True:
    try:
        while True: pass
    except BaseException: pass
"""

# A process that is stopped does nothing at all, not even notice that its parent has gone.
STOPPED = """\
import json, os, pathlib, signal
pathlib.Path("began.json").write_text(json.dumps([os.getpid(), str(lab.stack.folder)]))
os.kill(os.getpid(), signal.SIGSTOP)
"""


def began(root: Path) -> tuple[int, Path]:
    """The pid of the kernel that runs such a cell, and its lab's folder; waits for both."""
    path = root / "lessons/began.json"
    while True:
        try:
            pid, folder = json.loads(path.read_text())
            return pid, Path(folder)
        except (OSError, ValueError):
            time.sleep(0.02)


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and is_alive(psutil.Process(pid))


def of_lab(folder: Path) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if any(str(folder) in part for part in p.info["cmdline"] or [])]


def test_a_notebook_that_takes_too_long_is_stopped_with_everything_it_started(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a timeout the kernel, though it eats every interrupt, and its servers are gone; the cell is shown."""
    write_course(course, {"stubborn": ([LAB.replace("worker=False", "worker=True"), STUBBORN], None)})
    marker = course / "lessons/began.json"
    # A clock that jumps over the limit once the cell runs, so that no slow machine changes the outcome.
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + (10_000 if marker.exists() else 0))
    monkeypatch.setattr(running, "time", clock)
    lesson = running.Target(
        name="s", kind="lesson", path=course / "lessons/00_stubborn.ipynb", kept=course / "build/s.ipynb"
    )
    (result,) = running.run_all([lesson], jobs=1, timeout_seconds=9_000)
    assert result.error == "took more than 9000 s and was stopped, with everything it had started"
    assert result.source == STUBBORN
    kernel, folder = began(course)
    assert not alive(kernel)
    assert of_lab(folder) == []
    assert not folder.exists()
    assert folder.name.startswith(PREFIX)
    kept = json.loads((course / "build/s.ipynb").read_text())
    assert len(kept["cells"]) == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_a_check_is_ended_nothing_is_left(
    course: Path, how: signal.Signals, eventually: Callable[..., Any]
) -> None:
    """Ctrl-C, kill and kill -9 of `course check` leave no kernel, no server and no folder behind."""
    write_course(course, {"stopped": ([LAB, STOPPED], None), "other": (["import time\ntime.sleep(600)"], None)})
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(
        [sys.executable, "-m", "sandbox.cli", "check", "--jobs", "2"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    kernel, folder = began(course)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(how)
    _, said = process.communicate()
    if how != signal.SIGKILL:
        assert process.returncode == 130
        assert "course: stopped." in said
        assert "Traceback" not in said
    assert eventually(lambda: not alive(kernel) and not folder.exists() and not of_lab(folder))
    assert eventually(lambda: not any(is_alive(p) for p in family))
