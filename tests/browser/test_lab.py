"""Lessons in a real JupyterLab, started by `course lab` and read by a headless browser, as a person does it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Page, sync_playwright

from sandbox.learn.processes import is_alive
from sandbox.services.stack import PREFIX

from .course_lab import FLAGS, PATIENT, SCREENS, browser_path, kill, menu, start_lab, wait_until_idle, watch, workplace

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True, kw_only=True)
class Course:
    """A running `course lab` on a copy of the course, and the page a browser has open."""

    root: Path
    process: subprocess.Popen[str]
    port: int
    temporary: Path
    mark: str
    page: Page
    complaints: list[str] = field(default_factory=list)  # errors on the console, and requests to elsewhere

    def notebook(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / path).read_text(encoding="utf-8"))
        return found


@pytest.fixture
def open_course(tmp_path: Path) -> Iterator[Callable[[str], Course]]:
    """Start `course lab NN` on a copy of the course and open the address it prints; everything is ended after the test."""
    started: list[subprocess.Popen[str]] = []
    with workplace(tmp_path) as place, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)

        def start(number: str) -> Course:
            process, port, address = start_lab(place, number)
            started.append(process)
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(PATIENT * 1000)
            course = Course(
                root=place.root, process=process, port=port, temporary=place.temporary, mark=place.mark, page=page
            )
            watch(page, course.complaints)
            page.goto(address)
            return course

        yield start
        browser.close()
        for process in started:
            kill(process)


def run_all(course: Course, path: str, eventually: Callable[..., Any]) -> list[dict[str, Any]]:
    """Run > Run All Cells; wait for the kernel to be idle and for all to have run; save; the code cells of the file."""
    page = course.page
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    wait_until_idle(page)
    menu(page, "Run", "Run All Cells")

    def cells() -> list[dict[str, Any]]:
        # JupyterLab draws only the cells in view, so the file is read, not the page.
        page.wait_for_timeout(500)
        menu(page, "File", "Save Notebook")
        found = course.notebook(path)["cells"]
        return [cell for cell in found if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]

    def over() -> bool:
        done = cells()
        return all(cell["execution_count"] for cell in done) or any(errors(cell) for cell in done)

    assert eventually(over, PATIENT)
    wait_until_idle(page)
    return cells()


def errors(cell: dict[str, Any]) -> list[dict[str, Any]]:
    return [output for output in cell["outputs"] if output["output_type"] == "error"]


def text_of(cell: dict[str, Any]) -> str:
    return "".join("".join(output.get("text", "")) for output in cell["outputs"])


def end(course: Course, traces: Any, eventually: Callable[..., Any]) -> None:
    """Ctrl-C to `course lab`; nothing that it started, and no folder of a lab, is left."""
    family = psutil.Process(course.process.pid).children(recursive=True)
    assert len(family) > 4  # JupyterLab, a kernel, its sidecar and the servers
    course.process.send_signal(signal.SIGINT)
    assert course.process.wait(PATIENT) == 0
    assert not [process for process in family if is_alive(process)]
    assert eventually(lambda: not traces.processes(course.mark), 30), traces.processes(course.mark)
    assert eventually(lambda: not list(course.temporary.glob(f"{PREFIX}*")), 30)


def show(page: Page, image: int, place: Path) -> dict[str, float]:
    """Scroll until drawing number `image` of the notebook is in view, take a screenshot, and return the image's box."""
    window = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer")
    window.evaluate("e => e.scrollTo(0, 0)")
    images = page.locator(".jp-NotebookPanel .jp-OutputArea-output img[src^='data:image/png']")
    for _ in range(400):
        if images.count() > image:
            break
        window.evaluate("e => e.scrollBy(0, 200)")
        page.wait_for_timeout(50)
    found = images.nth(image)
    found.scroll_into_view_if_needed()
    # In the middle, with the code above it and the words below.
    found.evaluate("e => e.scrollIntoView({block: 'center'})")
    page.wait_for_timeout(1500)
    place.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=place)
    box = found.bounding_box()
    assert box is not None
    return dict(box)


def test_lesson_03_runs_from_top_to_bottom_in_a_browser(
    open_course: Callable[[str], Course], traces: Any, eventually: Callable[..., Any]
) -> None:
    """Run All Cells ends without an error, shows the timeline, and asks nothing of anybody beyond this machine."""
    course = open_course("03")
    page = course.page
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    assert (
        page.locator(".lm-DockPanel-tabBar .lm-mod-current .lm-TabBar-tabLabel").inner_text()
        == "03_swallowed_signal.ipynb"
    )
    page.get_by_role("heading", name="03 The swallowed signal").wait_for()
    cells = run_all(course, "lessons/03_swallowed_signal.ipynb", eventually)
    assert [error for cell in cells for error in errors(cell)] == []
    assert "{'completed': 1, 'timed_out': 4}" in [text_of(cell).strip() for cell in cells]
    box = show(page, 0, SCREENS / "lesson-03.png")
    assert box["width"] > 300
    assert box["height"] > 100
    assert page.locator(".jp-toast-message, .Toastify__toast").count() == 0
    assert page.locator(".jp-Dialog").count() == 0
    assert course.complaints == []
    end(course, traces, eventually)


def test_lesson_00_runs_from_top_to_bottom_in_a_browser(
    open_course: Callable[[str], Course], traces: Any, eventually: Callable[..., Any]
) -> None:
    """The first lesson, as a learner sees it on the first day, runs without an error."""
    course = open_course("00")
    cells = run_all(course, "lessons/00_start_here.ipynb", eventually)
    assert [error for cell in cells for error in errors(cell)] == []
    course.page.screenshot(path=SCREENS / "lesson-00.png")
    assert course.complaints == []
    end(course, traces, eventually)
