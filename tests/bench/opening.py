"""How long a lesson with its widgets takes to open in JupyterLab, beside the same notebook without them.

The lesson is run once and saved, so it opens as on a learner's second day: with all its outputs, and a kernel that has the
widgets. The other notebook is that file without the cells that show a widget. Both are opened in turn, in one browser, up to
the moment at which every cell and every widget is on the page and the kernel is idle.
"""

from __future__ import annotations

import copy
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import nbformat

from tests.browser.course_lab import REPOSITORY, wait_until_idle
from tests.browser.practice_page import PROMPT, PracticePage, serve

OPENING_BAR = 1.5  # median of opening a lesson with widgets, in openings of it without
VIEW = "application/vnd.jupyter.widget-view+json"
MOST_ROUNDS = 7  # each takes some seconds


def opening(rounds: int, lesson: str = "03") -> dict[str, Any]:
    """Seconds of opening the lesson with and without its widgets, how many those are, and the ratio of the medians."""
    (path,) = (REPOSITORY / "lessons").glob(f"{lesson}_*.ipynb")
    with tempfile.TemporaryDirectory(prefix="always-ends-bench-") as folder, serve(Path(folder)) as server:
        source = nbformat.read(path, as_version=4)
        full = server.open([], notebook=source, windowing="contentVisibility")
        full.run_all()
        saved = full.save()
        widgets = full.page.locator(".jp-NotebookPanel .ae").count()
        plain = server.open([], notebook=nbformat.from_dict(without_widgets(saved)), windowing="contentVisibility")
        plain.save()
        assert widgets, f"lesson {lesson} shows no widget"
        full.page.close(), plain.page.close()
        seconds_to_open(full, widgets), seconds_to_open(plain, 0)  # so that the browser has every file
        found: dict[str, list[float]] = {"with": [], "without": []}
        for n in range(min(rounds, MOST_ROUNDS)):
            for name in ("with", "without") if n % 2 else ("without", "with"):
                page, drawn = (full, widgets) if name == "with" else (plain, 0)
                found[name].append(seconds_to_open(page, drawn))
        server.close(full), server.close(plain)
    return {
        "widgets": widgets,
        "with_widgets_seconds": found["with"],
        "without_widgets_seconds": found["without"],
        "opening_ratio": median(found["with"]) / median(found["without"]),
        "opening_bar": OPENING_BAR,
    }


def without_widgets(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without the cells that show a widget; their places are not filled."""
    left: dict[str, Any] = copy.deepcopy(notebook)
    left["cells"] = [
        cell for cell in left["cells"] if not any(VIEW in output.get("data", {}) for output in cell.get("outputs", []))
    ]
    return left


def seconds_to_open(opened: PracticePage, widgets: int) -> float:
    """Seconds from the address to a page on which all cells and `widgets` widgets are drawn."""
    cells = len([cell for cell in json.loads(opened.file.read_text())["cells"] if cell["cell_type"] == "code"])
    page = opened.page.context.new_page()
    page.set_default_timeout(180_000)
    began = time.perf_counter()
    page.goto(opened.server.address(opened.front, opened.file))
    page.wait_for_function(
        """([prompts, cells, widgets]) => document.querySelectorAll(prompts).length >= cells
            && document.querySelectorAll('.jp-NotebookPanel .ae').length >= widgets""",
        arg=[PROMPT, cells, widgets],
    )
    wait_until_idle(page)
    seconds = time.perf_counter() - began
    page.close()
    return seconds
