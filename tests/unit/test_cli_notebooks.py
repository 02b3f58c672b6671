"""``course clean``, ``exercises``, ``solutions`` and ``reset`` on a course of their own."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.cli import main
from sandbox.learn import catalog, notebooks, releasing

REPOSITORY = Path(__file__).parents[2]
TOML = """
title = "t"
[[lesson]]
number = "00"
slug = "intro"
title = "t"
question = "q"
minutes = 1
[[lesson]]
number = "03"
slug = "loop"
title = "t"
question = "q"
minutes = 1
[[lesson.exercise]]
id = "03.1"
title = "t"
graded = "auto"
points = 2
"""
SOLUTION = "def twice(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
TEST = "assert twice(1) == 2\n### BEGIN HIDDEN TESTS\nassert twice(21) == 42\n### END HIDDEN TESTS"
JOB = """\
from sandbox.services import Lab
lab = Lab.open('t', worker=False, quiet=True)
row = lab.jobs.add('nap', {})
lab.jobs.start(row.id, lease_seconds=60)
lab.jobs.finish(row.id, 'completed')
print('state', lab.jobs.get(row.id).state)"""


def grade(grade_id: str, **more: Any) -> dict[str, Any]:
    about = {
        "schema_version": 3,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
        "grade_id": grade_id,
    }
    return {"nbgrader": about | more}


def cell(source: str, metadata: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    made = {"cell_type": "code", "source": source, "metadata": metadata or {}, "outputs": [], "execution_count": None}
    return made | more


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": list(cells)})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course in a folder with a space and a Cyrillic letter, in git, clean, with its exercise made."""
    root = tmp_path / "a b ж"
    root.mkdir()
    (root / "course.toml").write_text(TOML)
    (root / ".gitignore").write_text("build/\n*.bak.ipynb\n")
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    (root / "lessons").mkdir()
    for name in ("00_intro", "03_loop"):
        (root / f"lessons/{name}.ipynb").write_text(notebook(cell("1")))
    solution = root / "solutions/03_loop/03_loop.ipynb"
    solution.parent.mkdir(parents=True)
    graded = grade("twice-test", grade=True, locked=True, points=2)
    solution.write_text(notebook(cell(SOLUTION, grade("twice", solution=True)), cell(TEST, graded), cell(JOB)))
    monkeypatch.setenv("COURSE_ROOT", str(root))
    assert main(["clean"]) == 0
    assert main(["exercises"]) == 0
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "x")
    return root


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True, text=True).stdout


def exercise(root: Path) -> Path:
    return root / "exercises/03_loop/03_loop.ipynb"


def backups(root: Path) -> list[Path]:
    return sorted(exercise(root).parent.glob("*.bak.ipynb"))


# -- clean ------------------------------------------------------------------------------------------------------------


def test_clean_finds_and_repairs_what_a_run_left(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """clean --check names the notebook that was run and changes nothing; clean repairs exactly that one."""
    lesson = root / "lessons/00_intro.ipynb"
    before = lesson.read_text()
    dirty = notebook(cell("1", {"papermill": {}}, execution_count=4))
    lesson.write_text(dirty)
    capsys.readouterr()
    assert main(["clean", "--check"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "lessons/00_intro.ipynb is not clean\n"
    assert shown.err == "course: 1 notebook to write: type `course clean`.\n"
    assert lesson.read_text() == dirty
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "cleaned lessons/00_intro.ipynb\n"
    assert lesson.read_text() == before
    assert main(["clean", "--check"]) == 0


def test_clean_takes_files_and_folders(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a path only what it names is cleaned, folders with all that is in them."""
    for name in ("00_intro", "03_loop"):
        (root / f"lessons/{name}.ipynb").write_text(notebook(cell("1")))
    capsys.readouterr()
    assert main(["clean", str(root / "lessons/03_loop.ipynb")]) == 0
    assert capsys.readouterr().out == "cleaned lessons/03_loop.ipynb\n"
    assert main(["clean", str(root / "lessons")]) == 0
    assert capsys.readouterr().out == "cleaned lessons/00_intro.ipynb\n"


def test_clean_keeps_a_learners_code(root: Path) -> None:
    """Cleaning an exercise somebody worked in takes outputs away and not a character of code."""
    path = exercise(root)
    data = json.loads(path.read_text())
    data["cells"][0]["source"] = "mine = 'ü'  \n\n"
    data["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x"}]
    path.write_text(json.dumps(data))
    assert main(["clean"]) == 0
    first = notebooks.read(path).cells[0]
    assert (first.source, first.outputs) == ("mine = 'ü'  \n\n", [])


@pytest.mark.parametrize(
    ("text", "sentence"), [(None, "is missing"), ("{", "is not JSON"), ("{}", "is JSON, but not a notebook")]
)
def test_clean_names_a_file_that_is_no_notebook(
    root: Path, capsys: pytest.CaptureFixture[str], text: str | None, sentence: str
) -> None:
    """A path that is missing or no notebook is one line with its name."""
    path = root / "lessons/odd.ipynb"
    if text is not None:
        path.write_text(text)
    assert main(["clean", str(path)]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"course: {path} ")
    assert sentence in shown


# -- exercises --------------------------------------------------------------------------------------------------------


def test_an_exercise_has_neither_the_answer_nor_the_hidden_tests(root: Path) -> None:
    """What nbgrader makes of a solution lacks the answer and the hidden tests, and locks the tests."""
    made = notebooks.read(exercise(root))
    assert [c.id for c in made.cells] == ["twice", "twice-test", "cell-03"]
    assert made.cells[0].source == "def twice(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    assert made.cells[1].source == "assert twice(1) == 2"
    assert made.cells[1].metadata.editable is False


def test_making_exercises_leaves_git_and_the_tree_as_they_were(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Made again from the same solution an exercise is the same, and no gradebook or other file appears."""
    exercise(root).unlink()
    assert main(["exercises", "3"]) == 0
    assert git(root, "status", "--porcelain") == ""
    assert not list(root.rglob("*.db"))
    assert not list(root.rglob(".nbgrader.log"))
    capsys.readouterr()
    assert main(["exercises"]) == 0
    assert capsys.readouterr().out == "Nothing to do.\n"


def test_exercises_check_names_what_differs_and_writes_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """exercises --check is code 1 with the name when the solution has moved on, and changes no file."""
    solution, before = root / "solutions/03_loop/03_loop.ipynb", exercise(root).read_text()
    assert main(["exercises", "--check"]) == 0
    solution.write_text(solution.read_text().replace("twice(1) == 2", "twice(2) == 4"))
    capsys.readouterr()
    assert main(["exercises", "--check"]) == 1
    assert capsys.readouterr().out == "exercises/03_loop/03_loop.ipynb differs from what its solution makes\n"
    assert exercise(root).read_text() == before


def test_nbgraders_own_command_makes_the_same_file(root: Path) -> None:
    """`nbgrader generate_assignment` gives the same bytes, and keeps its gradebook under build/."""
    before, solution = exercise(root).read_bytes(), root / "solutions/03_loop/03_loop.ipynb"
    # As JupyterLab leaves it: without the hook the difference would reach the exercise.
    solution.write_text(solution.read_text().replace('"metadata": {}', '"metadata": {"papermill": {}}'))
    git(root, "-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qam", "y")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "03_loop", "--force"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert exercise(root).read_bytes() == before
    assert (root / "build/gradebook.db").is_file()
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("### END SOLUTION", "", "no end solution statement found"),
        ('"twice-test"', '"twice"', "Duplicate grade id: twice"),
        ('"cells"', '"sells"', "is not a notebook that can be read"),
    ],
)
def test_a_solution_that_nbgrader_can_not_read_is_named(
    root: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, sentence: str
) -> None:
    """A solution with a marker missing or a grade_id twice is one line, and the exercise stays as it was."""
    solution, released = root / "solutions/03_loop/03_loop.ipynb", exercise(root).read_text()
    solution.write_text(solution.read_text().replace(before, after))
    assert main(["exercises"]) == 1
    shown = capsys.readouterr().err
    assert sentence in shown
    assert str(solution) in shown
    assert "Traceback" not in shown
    assert exercise(root).read_text() == released


def test_a_missing_solution_and_a_broken_config_are_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing solution and an nbgrader_config.py that raises are one line each."""
    (root / "nbgrader_config.py").write_text("1 / 0")
    assert main(["exercises"]) == 1
    assert "nbgrader_config.py can not be read: ZeroDivisionError" in capsys.readouterr().err
    (root / "solutions/03_loop/03_loop.ipynb").unlink()
    assert main(["exercises"]) == 1
    assert "03_loop.ipynb is missing." in capsys.readouterr().err


# -- solutions --------------------------------------------------------------------------------------------------------


def test_solutions_are_stored_with_the_outputs_that_nbval_compares(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run stores what a compared cell printed; a second run has nothing to do; --check sees a change."""
    path = root / "solutions/03_loop/03_loop.ipynb"
    assert main(["solutions", "03", "--check"]) == 1
    assert notebooks.read(path).cells[2].outputs == []
    assert main(["solutions", "03"]) == 0
    (output,) = notebooks.read(path).cells[2].outputs
    assert output.text == "state completed\n"
    assert main(["clean", "--check"]) == 0
    capsys.readouterr()
    assert main(["solutions", "--check"]) == 0
    assert capsys.readouterr().out == "Nothing to do.\n"


def test_a_solution_that_fails_is_not_stored(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A solution that fails stays as it is in git, and its cell is shown."""
    path = root / "solutions/03_loop/03_loop.ipynb"
    path.write_text(path.read_text().replace("return 2 * x", "return 3 * x"))
    before = path.read_text()
    assert main(["solutions"]) == 1
    assert "assert twice(1) == 2" in capsys.readouterr().err
    assert path.read_text() == before


def test_outputs_are_not_put_into_a_notebook_that_has_changed_meanwhile(root: Path, tmp_path: Path) -> None:
    """Outputs of a run go only into the very cells that were run."""
    path = root / "solutions/03_loop/03_loop.ipynb"
    executed = tmp_path / "run.ipynb"
    executed.write_text(path.read_text().replace("2 * x", "4 * x"))
    with pytest.raises(notebooks.BadNotebook, match="has changed while it ran"):
        releasing.with_outputs(path, executed)


# -- reset ------------------------------------------------------------------------------------------------------------


def test_reset_restores_the_exercise_and_keeps_the_learners_version(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """reset --yes brings back what the last commit has; the learner's bytes are kept under a name it prints."""
    released, mine = exercise(root).read_bytes(), b"not even JSON: \xff"
    exercise(root).write_bytes(mine)
    capsys.readouterr()
    assert main(["reset", "03", "--yes"]) == 0
    assert exercise(root).read_bytes() == released
    (backup,) = backups(root)
    assert backup.read_bytes() == mine
    shown = capsys.readouterr().out
    assert f"exercises/03_loop/{backup.name}" in shown
    assert "becomes what it is in the last commit" in shown
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.parametrize(("answer", "code"), [("n\n", 130), ("", 130), ("y\n", 0)])
def test_reset_asks_first(root: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    """Without --yes nothing is touched until the answer is yes; no answer is a no."""
    data = json.loads(exercise(root).read_text())
    data["cells"][0]["source"] = "mine"
    mine = json.dumps(data)
    exercise(root).write_text(mine)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    assert main(["reset", "3"]) == code
    assert (exercise(root).read_text() == mine) is (code != 0)
    assert len(backups(root)) == (code == 0)


def test_two_resets_within_a_second_keep_both_versions(root: Path) -> None:
    """A backup never replaces another, however soon it follows."""
    for text in ("one", "two", "three"):
        exercise(root).write_text(text)
        assert main(["reset", "3", "--yes"]) == 0
    assert {path.read_text() for path in backups(root)} == {"one", "two", "three"}


def test_reset_with_nothing_to_do_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An exercise that was only run, not edited, is left alone and no backup is made."""
    capsys.readouterr()
    assert main(["reset", "3"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to do")
    data = json.loads(exercise(root).read_text())
    data["cells"][1]["execution_count"] = 5
    exercise(root).write_text(json.dumps(data))
    assert main(["reset", "3"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to do")
    assert backups(root) == []


def test_reset_brings_back_an_exercise_that_was_deleted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A deleted exercise, with its folder, is restored without a backup."""
    released = exercise(root).read_text()
    shutil.rmtree(exercise(root).parent)
    assert main(["reset", "3", "--yes"]) == 0
    assert exercise(root).read_text() == released
    assert "03_loop.ipynb is missing; it becomes" in capsys.readouterr().out


def test_reset_without_git_makes_the_exercise_anew(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Outside a checkout the exercise is made from its solution, and comes out the same."""
    released = exercise(root).read_text()
    shutil.rmtree(root / ".git")
    exercise(root).write_text("mine")
    assert main(["reset", "3", "--yes"]) == 0
    assert exercise(root).read_text() == released
    assert "solutions/03_loop/03_loop.ipynb, without the answers" in capsys.readouterr().out
    assert len(backups(root)) == 1


def test_reset_of_a_lesson_without_exercises_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lesson that has no exercises has nothing to reset, and an unknown one is answered with the list."""
    assert main(["reset", "0"]) == 1
    assert "lesson 00 has no exercises" in capsys.readouterr().err
    assert main(["reset", "9"]) == 1
    assert "the lessons are 00_intro, 03_loop" in capsys.readouterr().err
    assert catalog.find_root() == root


def test_a_folder_that_looks_like_a_pattern_is_no_obstacle(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nbgrader reads paths as patterns; the course's own command works in a folder with brackets all the same."""
    other = tmp_path / "[ab]*"
    shutil.copytree(root, other)
    monkeypatch.setenv("COURSE_ROOT", str(other))
    exercise(other).unlink()
    assert main(["exercises"]) == 0
    assert exercise(other).read_bytes() == exercise(root).read_bytes()


def test_stored_outputs_are_compared_as_nbval_compares_them(tmp_path: Path) -> None:
    """What the sanitising rules make equal does not count as a change of a solution; anything else does."""
    from sandbox.learn.releasing import sanitised

    assert sanitised("aborted after 11 of 30", tmp_path) == "aborted after 11 of 30"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "nbval_sanitize.cfg").write_text(
        r"[far]" "\n" r"regex: after \d+ of" "\nreplace: after N of\n"
    )
    assert sanitised("aborted after 11 of 30", tmp_path) == sanitised("aborted after 9 of 30", tmp_path)
    assert sanitised("aborted after 11 of 30", tmp_path) != sanitised("aborted after 11 of 31", tmp_path)
