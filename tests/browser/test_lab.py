"""Lessons in a real JupyterLab, started by `course lab` and read by a headless browser, as a person does it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import Page, sync_playwright

from sandbox.learn.processes import is_alive
from sandbox.services import programs
from sandbox.services.stack import PREFIX

REPOSITORY = Path(__file__).parents[2]
PARTS = ("course.toml", "lessons", "exercises", "nbgrader_config.py")
SCREENS = REPOSITORY / "build/screens"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
PATIENT = 180  # seconds for anything a machine may be slow at


def browser_path() -> str | None:
    """The system's browser; None for the one that playwright has installed."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next((path for path in found if path), None)


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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def watch(page: Page, complaints: list[str]) -> None:
    """Write down what a person would not see: errors on the console, and every request beyond this machine."""

    def asked(url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.hostname != "127.0.0.1":
            complaints.append(f"request to {url}")

    page.on("console", lambda said: said.type == "error" and complaints.append(f"console: {said.text} {said.location}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: asked(request.url))
    page.on("websocket", lambda opened: asked(opened.url))


@pytest.fixture
def open_course(tmp_path: Path) -> Iterator[Callable[[str], Course]]:
    """Start `course lab NN` on a copy of the course and open the address it prints; everything is ended after the test."""
    root = tmp_path / "my course ж"
    root.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (REPOSITORY / part).is_dir() else shutil.copy
        copy(REPOSITORY / part, root / part)
    temporary = programs.temporary_parent() / f"ae-web-{os.getpid()}-{time.monotonic_ns() % 10**6}"
    temporary.mkdir(mode=0o755)
    mark = f"mark-{uuid.uuid4().hex}"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SANDBOX_", "COURSE_", "PYTEST_", "JUPYTER"))}
    if "SANDBOX_CACHE_DIR" in os.environ:
        env["SANDBOX_CACHE_DIR"] = os.environ["SANDBOX_CACHE_DIR"]
    env |= {
        "COURSE_ROOT": str(root),
        "TMPDIR": str(temporary),
        "TEST_MARK": mark,
        "PYTHONUNBUFFERED": "1",
        # A learner who has never opened JupyterLab.
        "JUPYTER_CONFIG_DIR": str(tmp_path / "settings"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    started: list[subprocess.Popen[str]] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)

        def start(number: str) -> Course:
            port = free_port()
            command = [Path(sys.executable).with_name("course"), "lab", number, "--no-browser", "--port", str(port)]
            process = subprocess.Popen(command, cwd=root, env=env, stdout=subprocess.PIPE, text=True)
            started.append(process)
            assert process.stdout is not None
            address = next(line.strip() for line in process.stdout if line.startswith("http"))
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(PATIENT * 1000)
            course = Course(root=root, process=process, port=port, temporary=temporary, mark=mark, page=page)
            watch(page, course.complaints)
            page.goto(address)
            return course

        yield start
        browser.close()
    for process in started:
        family = []
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        for one in family:
            with contextlib.suppress(psutil.Error):
                one.kill()
        if process.stdout is not None:
            process.stdout.close()
    shutil.rmtree(temporary, ignore_errors=True)


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


def menu(page: Page, name: str, item: str) -> None:
    """Choose an item of the menu bar by its words."""
    page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{name}$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{item}$")).click()
    page.wait_for_timeout(300)


def wait_until_idle(page: Page) -> None:
    """Wait for a kernel that has nothing to do; JupyterLab also says idle where there is no kernel yet."""
    page.wait_for_function("""() => {
        const panel = document.querySelector('.jp-NotebookPanel');
        const name = panel?.querySelector('.jp-Toolbar-kernelName')?.textContent ?? 'No Kernel';
        const state = panel?.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status;
        return name !== 'No Kernel' && state === 'idle';
    }""")


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
    assert text_of(cells[-1]).strip() == "{'completed': 1, 'timed_out': 4}"
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
