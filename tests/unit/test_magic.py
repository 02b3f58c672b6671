"""The cell magic: a cell becomes a worker file, and a broken cell shows its author their own lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

OPEN = "import sandbox.learn\nfrom sandbox.services import Lab\nlab = Lab.open('magic', quiet=True)"
ANSI = re.compile(r"\x1b\[[0-9;]*m")

CELLS = {
    "good": "%%worker_file good\nimport json\n\n\ndef double(x):\n    return 2 * x\n",
    "uses its names": "print(double(21), 'json' in globals())",
    "syntax": "%%worker_file broken\ndef f():\n    return 1\n\ndef g(:\n    return 2\n",
    "at import": "%%worker_file broken\nx = 1\n\ny = undefined_name\n",
    "in a function": "%%worker_file late\ndef half(x):\n    y = x\n    return y / 0\n",
    "calls it": "half(4)",
    "no name": "%%worker_file\nx = 1\n",
    "two names": "%%worker_file a b\nx = 1\n",
    "hides a module": "%%worker_file json\nx = 1\n",
    "no identifier": "%%worker_file my-file\nx = 1\n",
    "raises on purpose": "%%worker_file late\nraise KeyError('mine')\n",
    "still good": "from good import double\nprint(double(4))",
    "for the worker": "%%worker_file task\nLIMIT = 1\n\n\n"
    "def explode(job):\n    total = job.done\n    return 1 / total\n",
    "runs in the worker": "job = lab.run(explode)\nprint(lab.app.AsyncResult(job.id).traceback)",
    "closed": "lab.close()",
    "without a lab": "%%worker_file good\nx = 1\n",
}


@pytest.fixture(scope="module")
def ran() -> Iterator[dict[str, Any]]:
    """Every cell above run in one real kernel, errors allowed; the outputs by the cell's name."""
    notebook = new_notebook(cells=[new_code_cell(OPEN), *(new_code_cell(text) for text in CELLS.values())])
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    nbformat.validate(notebook)
    assert notebook.cells[0].outputs == []
    yield dict(zip(CELLS, (cell.outputs for cell in notebook.cells[1:]), strict=True))


def error(outputs: list[Any]) -> Any:
    errors = [output for output in outputs if output.output_type == "error"]
    assert len(errors) == 1
    return errors[0]


def trace(outputs: list[Any]) -> str:
    return ANSI.sub("", "\n".join(error(outputs).traceback))


def test_the_names_of_a_worker_file_are_in_the_notebook(ran: dict[str, Any]) -> None:
    """Functions of the cell can be called at once; the modules it imports stay in the file."""
    assert ran["good"] == []
    assert ran["uses its names"][0].text == "42 False\n"


@pytest.mark.parametrize(
    ("cell", "kind", "line"),
    [("syntax", "SyntaxError", 5), ("at import", "NameError", 4), ("raises on purpose", "KeyError", 2)],
)
def test_a_broken_cell_shows_its_own_error_and_line(ran: dict[str, Any], cell: str, kind: str, line: int) -> None:
    """The cell fails with the learner's own error, at the line counted as in the cell, the magic's line being the first."""
    assert error(ran[cell]).ename == kind
    assert re.search(rf"(?:line {line}\b|-+> {line}\b|:{line}\b)", trace(ran[cell]))


@pytest.mark.parametrize("cell", ["syntax", "at import", "raises on purpose"])
def test_a_broken_cell_shows_none_of_our_lines(ran: dict[str, Any], cell: str) -> None:
    """Neither the magic nor the import machinery stands in the learner's traceback, and nothing is chained to it."""
    text = trace(ran[cell])
    for ours in ("sandbox/", "importlib", "run_cell_magic", "WorkerFileFailed", "direct cause"):
        assert ours not in text


def test_an_error_inside_a_function_names_the_file_and_the_line(ran: dict[str, Any]) -> None:
    """Called from another cell, a function of a worker file shows its own line with its text."""
    text = trace(ran["calls it"])
    assert "ZeroDivisionError" in text and "late.py" in text and "return y / 0" in text


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("no name", "%%worker_file takes one name, for example"),
        ("two names", "%%worker_file takes one name, for example"),
        ("hides a module", "a module named 'json' exists already"),
        ("no identifier", "'my-file' is not a module name"),
        ("without a lab", 'Run this first: lab = Lab.open("03")'),
    ],
)
def test_a_magic_that_can_not_work_says_what_to_type(ran: dict[str, Any], cell: str, says: str) -> None:
    """A missing, double, shadowing or impossible name, or no open lab, is one clear sentence."""
    assert says in error(ran[cell]).evalue


def test_a_broken_cell_leaves_the_other_files_alone(ran: dict[str, Any]) -> None:
    """After several broken cells a good file can still be imported."""
    assert ran["still good"][0].text == "8\n"


def test_an_error_in_the_worker_has_the_learners_line(ran: dict[str, Any]) -> None:
    """The traceback that Celery keeps of a failed task names the worker file, the line as in the cell, and its text."""
    text = ran["runs in the worker"][0].text
    assert re.search(r'task\.py", line 7, in explode\n +return 1 / total\n', text)
    assert text.rstrip().endswith("ZeroDivisionError: division by zero")


def test_a_broken_cell_stops_a_run_from_top_to_bottom() -> None:
    """What runs notebooks (papermill, nbgrader, nbval) sees that the cell has failed, and does not run the next one."""
    cells = [new_code_cell(text) for text in (OPEN.replace("quiet", "worker=False, quiet"), CELLS["at import"], "1")]
    with pytest.raises(CellExecutionError, match="undefined_name"):
        NotebookClient(new_notebook(cells=cells), timeout=120, kernel_name="python3").execute()
    assert [cell.execution_count for cell in cells] == [1, 2, None]
