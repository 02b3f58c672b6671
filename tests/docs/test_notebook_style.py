"""Every notebook in the repository is in the form that git, ruff and a reader expect."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.learn import notebooks

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(
    path
    for folder in ("lessons", "exercises", "solutions")
    for path in (ROOT / folder).rglob("*.ipynb")
    if ".ipynb_checkpoints" not in path.parts and not path.name.endswith(".bak.ipynb")
)
LESSONS = [path for path in NOTEBOOKS if path.parent.name == "lessons"]
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_there_are_notebooks_to_look_at() -> None:
    """Two lessons with an exercise and a solution each are found, so that the tests below test something."""
    assert len(NOTEBOOKS) >= 6


@EACH
def test_a_notebook_is_clean(path: Path) -> None:
    """A notebook is as `course clean` leaves it: run that command if this fails."""
    text = path.read_text(encoding="utf-8")
    assert notebooks.clean_text(text, path, keep_outputs=notebooks.keeps_outputs(path, ROOT)) == text


@EACH
def test_a_notebook_holds_no_path_of_a_machine(path: Path) -> None:
    """Neither code nor a stored output names a folder of the machine it was made on."""
    assert re.findall(r"/(?:home|root|tmp|work|Users)/[A-Za-z]\S*", path.read_text(encoding="utf-8")) == []


@EACH
def test_only_solutions_store_outputs(path: Path) -> None:
    """Lessons and exercises have no outputs; a solution has some for nbval to compare, terminal states among them."""
    stored = json.dumps([cell.get("outputs") for cell in cells(path) if cell.get("outputs")])
    if path.is_relative_to(ROOT / "solutions"):
        assert "completed" in stored
    else:
        assert stored == "[]"


@EACH
def test_an_exercise_gives_nothing_away(path: Path) -> None:
    """An exercise holds no solution and no hidden test; its solution holds both."""
    text = path.read_text(encoding="utf-8")
    marks = ("BEGIN SOLUTION", "BEGIN HIDDEN TESTS")
    if path.is_relative_to(ROOT / "exercises"):
        assert not [mark for mark in marks if mark in text] and "YOUR CODE HERE" in text
    elif path.is_relative_to(ROOT / "solutions"):
        assert [mark for mark in marks if mark in text] == list(marks)


@EACH
def test_the_code_of_a_notebook_is_sound_as_one_script(path: Path, tmp_path: Path) -> None:
    """ruff, with every rule of the project, passes the cells joined in order, those of worker files included."""
    code = [source(cell) for cell in cells(path) if cell["cell_type"] == "code"]
    script = "\n\n".join(re.sub(r"\A%%worker_file (\w+)\n", r"# worker file \1\n", text) for text in code) + "\n"
    file = tmp_path / "notebook.py"
    file.write_text(script, encoding="utf-8")
    # Each cell stands alone on the page: a plain expression shows its value, imports come where they are first spoken
    # of, and a function is written anew to repair it.
    ignore = "B018,E402,I001,F811,F401,W391,E265,E266"
    ruff = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--config",
        str(ROOT / "pyproject.toml"),
        "--ignore",
        ignore,
    ]
    done = subprocess.run([*ruff, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@EACH
def test_the_links_of_a_notebook_lead_to_files(path: Path) -> None:
    """A relative link in a notebook names a file that exists."""
    text = "\n".join(source(cell) for cell in cells(path) if cell["cell_type"] == "markdown")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_its_rhythm(path: Path) -> None:
    """A lesson has one cell of parameters, a prediction, a real run, what to remember, and it asserts what it claims."""
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert [cell["metadata"].get("tags") for cell in code if cell["metadata"].get("tags")] == [["parameters"]]
    text = "\n".join(source(cell) for cell in cells(path))
    numbers = next(cell for cell in code if cell["metadata"].get("tags"))
    assert {"seed", "rows", "time_scale"} <= set(re.findall(r"^(\w+) = ", source(numbers), flags=re.MULTILINE))
    for part in (
        ".outcome(",
        "here(",
        "end_of_lesson(",
        "sliders(",
        "board(",
        "cards(",
        "Lab.open(",
        "timeline(",
        "## What to remember",
        "## Questions people ask",
    ):
        assert part in text
    assert sum("assert " in source(cell) for cell in code) >= 3
