"""Who watches, and that a program that runs a notebook leaves no trace in a learner's progress."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbformat import v4

from sandbox.learn import front, progress

ASK = "from sandbox.learn.front import person_watches\nprint(person_watches())"
TERMINAL = "from IPython.core.interactiveshell import InteractiveShell\nInteractiveShell.instance()\n" + ASK


def kernel_says(code: str, env: dict[str, str]) -> str:
    """What a kernel prints, started as Jupyter Server starts one."""
    manager, client = start_new_kernel(env=env, kernel_name="python3")
    said: list[str] = []
    try:
        reply = client.execute_interactive(
            code,
            timeout=120,
            output_hook=lambda message: said.append(str(message["content"].get("text", ""))),
        )
        assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return "".join(said).strip()


def without_session() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != front.SESSION}


def test_nobody_watches_a_plain_program() -> None:
    """Here under pytest, for one."""
    assert not front.person_watches()


@pytest.mark.parametrize(
    ("code", "session", "watched"),
    [
        (ASK, "/home/me/lesson.ipynb", True),
        ("__vsc_ipynb_file__ = '/home/me/lesson.ipynb'\n" + ASK, None, True),
        (ASK, None, False),
        (ASK, "", False),
    ],
    ids=["jupyter", "vscode", "neither", "empty"],
)
def test_a_person_watches_the_kernel_of_an_open_notebook(code: str, session: str | None, watched: bool) -> None:
    """Jupyter Server names the session to it, VS Code the file; a kernel with neither was started by a program."""
    env = without_session() | ({} if session is None else {front.SESSION: session})
    assert kernel_says(code, env) == str(watched)


def test_nobody_watches_ipython_in_a_terminal(script: Callable[..., Any]) -> None:
    """Also in a terminal of a notebook's cell, which inherits the name of the session."""
    done = script(TERMINAL, env=without_session() | {front.SESSION: "/home/me/lesson.ipynb"})
    assert done.stdout.strip() == "False", done.stderr


def notebook(folder: Path) -> Path:
    cells = ["from sandbox.learn import practice", 'print(practice("03.q1").answer("b"))']
    made = v4.new_notebook(cells=[v4.new_code_cell(text) for text in cells])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, folder / "lesson.ipynb")
    return folder / "lesson.ipynb"


@pytest.mark.parametrize(
    "command",
    [
        [*("-m", "papermill", "lesson.ipynb", "done.ipynb", "--no-progress-bar")],
        [*("-m", "pytest", "--nbval-lax", "lesson.ipynb", "-q", "-p", "no:cacheprovider")],
    ],
    ids=["papermill", "nbval"],
)
@pytest.mark.parametrize("started_from", ["terminal", "notebook"])
def test_a_program_that_runs_a_notebook_leaves_no_trace(tmp_path: Path, command: list[str], started_from: str) -> None:
    """The answer is judged, and no progress file is made: in a terminal, and when a cell of a notebook starts it."""
    notebook(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    env = {name: value for name, value in without_session().items() if name != progress.ENV}
    env |= {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "COURSE_ROOT": str(Path(__file__).parents[2])}
    env |= {"JUPYTER_PLATFORM_DIRS": "0"} | ({front.SESSION: "/x.ipynb"} if started_from == "notebook" else {})
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "papermill" in command:
        assert "✓ b) right" in (tmp_path / "done.ipynb").read_text(encoding="utf-8")
    assert list(tmp_path.rglob("progress.jsonl")) == []
