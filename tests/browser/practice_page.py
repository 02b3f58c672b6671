"""A widget in a real JupyterLab or Notebook 7, so that a test of it is short.

    def test_it(practice_page):
        page = practice_page(['from sandbox.learn import practice; practice("03.q1")'])
        page.run_all()
        page.widget("choose").get_by_role("button").first.click()

One server a module; each test gets a notebook, a kernel and a progress file of its own. At the end of a test nothing may
stand on the browser's console as an error, and nothing may have been asked of another machine.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import nbformat
from nbformat import v4
from playwright.sync_api import Browser, Dialog, Locator, Page, sync_playwright

from sandbox.learn import progress

from .course_lab import (
    FLAGS,
    PATIENT,
    SCREENS,
    Workplace,
    browser_path,
    free_port,
    kill,
    menu,
    start_lab,
    wait_until_idle,
    watch,
    workplace,
)

Front = Literal["lab", "notebook"]
Theme = Literal["light", "dark"]
THEMES: dict[Theme, str] = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# Which cells JupyterLab keeps on the page: "none" keeps all, "full" only those in view; a learner has "contentVisibility".
Windowing = Literal["none", "full", "contentVisibility", "defer"]
FOLDER = "practice of tests"
# Runs before the first cell of every kernel: where its progress goes, and a sign that this kernel is a new one.
STARTUP = """
import os as _os
_name = _os.environ.get("JPY_SESSION_NAME", "")
if _name.endswith(".ipynb"):
    _base = _os.path.join(_os.environ["COURSE_ROOT"], {folder!r}, _os.path.basename(_name)[: -len(".ipynb")])
    _os.environ["COURSE_PROGRESS"] = _base + ".jsonl"
    with open(_base + ".pid", "w") as _file:
        _file.write(str(_os.getpid()))
del _os, _name
"""
# Notebook 7.6 throws it while it loads, also for a notebook without any widget.
ITS_OWN = {"notebook": ["error: Cannot read properties of undefined (reading 'schema')"], "lab": []}
# The body of JupyterLab's page is of no height and hides what flows over, so that axe takes all in it for invisible and looks
# at no colour.
AXE = """async e => {
    document.body.style.minHeight = '100vh';
    try {
        const {violations, incomplete, passes} = await axe.run(e);
        const looked = [...violations, ...incomplete, ...passes].some(one => one.id === 'color-contrast');
        return {bad: violations, looked};
    } finally {
        document.body.style.minHeight = '';
    }
}"""
MARK = "prompts => prompts.forEach(prompt => { prompt.textContent = '[to be run]:'; })"
PROMPT = ".jp-NotebookPanel .jp-CodeCell .jp-InputPrompt"


class PracticePage:
    """A notebook that is open in a browser. `page` is playwright's, for whatever is not here."""

    def __init__(self, server: Server, page: Page, front: Front, file: Path, windowing: Windowing) -> None:
        self.server = server
        self.page = page
        self.front = front
        self.file = file  # the notebook
        self.progress = file.with_suffix(".jsonl")
        self._heard: list[str] = []
        watch(page, self._heard)
        page.on("dialog", self._leave)
        self._open()

    @property
    def complaints(self) -> list[str]:
        """Errors on the console, and requests beyond this machine; must be empty at the end."""
        return [one for one in self._heard if one not in ITS_OWN[self.front]]

    # --- the notebook

    def run_all(self, *, errors: bool = False) -> None:
        """Run all cells and wait until the last has run. An error in a cell fails the test, unless `errors`."""
        self._wait_until_ready()
        self.page.locator(PROMPT).evaluate_all(MARK)
        menu(self.page, "Run", "Run All Cells")
        self._wait_until_run(range(self._cells()))
        assert errors or not self.errors(), self.errors()

    def run(self, cell: int, *, wait: bool = True, errors: bool = False) -> None:
        """Run one code cell, by its number from 0, with Control-Enter."""
        self._wait_until_ready()
        self.select(cell)
        self.page.locator(PROMPT).nth(cell).evaluate("prompt => { prompt.textContent = '[to be run]:'; }")
        self.page.keyboard.press("Control+Enter")
        if wait:
            self._wait_until_run([cell])
            assert errors or not self.errors(), self.errors()

    def select(self, cell: int) -> None:
        """Put the notebook into command mode at this code cell: its keys act from here."""
        prompt = self.page.locator(PROMPT).nth(cell)
        prompt.scroll_into_view_if_needed()
        prompt.click()

    def is_running(self, cell: int) -> bool:
        """Whether the kernel has been asked to run this cell and has not ended it."""
        return "*" in (self.page.locator(PROMPT).nth(cell).text_content() or "")

    def errors(self) -> list[str]:
        """The tracebacks that are on the page."""
        return self.page.locator(
            ".jp-NotebookPanel [data-mime-type='application/vnd.jupyter.error'], "
            ".jp-NotebookPanel [data-mime-type='application/vnd.jupyter.stderr']"
        ).all_inner_texts()

    def wait_until_idle(self) -> None:
        wait_until_idle(self.page)

    def restart(self) -> None:
        """Restart the kernel, by the menu, and wait for the new one; what is on the page stays."""
        before = self._kernel()
        menu(self.page, "Kernel", "Restart Kernel…")
        self.page.locator(".jp-Dialog .jp-Dialog-button.jp-mod-accept").click()
        until(lambda: self._kernel() not in ("", before), "a new kernel")
        self._wait_until_ready()

    def save(self) -> dict[str, Any]:
        """Save the notebook, by the menu; what the file holds then."""
        before = self.file.stat().st_mtime_ns
        menu(self.page, "File", "Save Notebook")
        until(lambda: self.file.stat().st_mtime_ns != before and _whole(self.file), "the saved notebook")
        found: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        return found

    def reload(self) -> None:
        """Save, and load the page again: outputs come from the file, the state of widgets from the kernel."""
        self.save()
        self.page.reload()
        self._wait_until_ready()

    def entries(self, kind: str | None = None) -> list[progress.Entry]:
        """What has been recorded, in order; of one kind, or of all."""
        return [one for one in progress.entries(self.progress) if kind in (None, one.kind)]

    # --- the widget

    def widget(self, kind: str, place: int = 0) -> Locator:
        """The widget `.ae-<kind>`, drawn and in view; the `place`-th of that kind from 0."""
        found = self.page.locator(f".jp-NotebookPanel .ae-{kind}").nth(place)
        found.wait_for(state="visible")
        found.evaluate("e => e.scrollIntoView({block: 'center'})")
        return found

    def focused(self) -> str:
        """The name or the words of the element in a widget that has the focus; nothing when it is elsewhere."""
        script = """() => {
            const e = document.activeElement;
            if (!e.closest('.ae')) return '';
            return e.getAttribute('aria-label') || e.innerText || e.value || e.tagName;
        }"""
        return str(self.page.evaluate(script))

    def tab_to(self, words: str, *, key: str = "Tab", most: int = 60) -> None:
        """Press Tab (or `key`) until the focus is in a widget, on an element whose words or name contain `words`."""
        seen = []
        for _ in range(most):
            seen.append(self.focused())
            if words in seen[-1]:
                return
            self.page.keyboard.press(key)
        raise AssertionError(f"{key} never came to {words!r}, but to {seen}")

    def theme(self, theme: Theme) -> None:
        """Switch by the menu Settings > Theme."""
        menu(self.page, "Settings", "Theme", THEMES[theme])
        self.page.wait_for_selector(f"body[data-jp-theme-light='{str(theme == 'light').lower()}']", state="attached")
        self.page.wait_for_timeout(300)  # its style sheet follows

    def resize(self, width: int, height: int = 1000) -> None:
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_timeout(300)

    def screens(self, name: str, widget: Locator) -> list[Path]:
        """Screenshots of the page with the widget in its middle, as build/screens/NAME-light.png and NAME-dark.png."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        made = []
        for theme in THEMES:
            self.theme(theme)
            widget.evaluate("e => e.scrollIntoView({block: 'center'})")
            made.append(SCREENS / f"{name}-{theme}.png")
            self.page.screenshot(path=made[-1])
        self.theme("light")
        return made

    def violations(self, widget: Locator) -> list[str]:
        """What axe-core finds wrong with this widget, in the theme that the page has: rule, element, and reason.

        Where it is not sure (one letter, a text over a drawing) it is silent; that it has looked at colours is asserted.
        """
        self.page.evaluate(_axe())
        widget.evaluate("e => e.scrollIntoView({block: 'center'})")
        found = widget.evaluate(AXE)
        assert found["looked"], "axe has looked at the contrast of no text"
        return [
            f"{one['id']}: {node['html']} {node['failureSummary']}" for one in found["bad"] for node in one["nodes"]
        ]

    def violations_in_both_themes(self, widget: Locator) -> list[str]:
        found = []
        for theme in THEMES:
            self.theme(theme)
            found += [f"{theme}: {one}" for one in self.violations(widget)]
        self.theme("light")
        return found

    # --- its own

    def _open(self) -> None:
        self.page.goto(self.server.address(self.front, self.file))
        self._wait_until_ready()

    def _leave(self, dialog: Dialog) -> None:
        """The browser asks whether to leave a page with unsaved changes."""
        with contextlib.suppress(Exception):
            dialog.accept()

    def _wait_until_ready(self) -> None:
        self.page.wait_for_selector(PROMPT, state="attached")
        wait_until_idle(self.page)

    def _cells(self) -> int:
        return self.page.locator(PROMPT).count()

    def _wait_until_run(self, cells: Sequence[int]) -> None:
        self.page.wait_for_function(
            """([selector, cells]) => {
                const prompts = [...document.querySelectorAll(selector)];
                const broken = document.querySelector('.jp-NotebookPanel [data-mime-type$="jupyter.error"]');
                return cells.every(cell => /^\\[\\d+\\]:$/.test(prompts[cell].textContent)) || broken;
            }""",
            arg=[PROMPT, list(cells)],
        )
        wait_until_idle(self.page)

    def _kernel(self) -> str:
        with contextlib.suppress(OSError):
            return self.file.with_suffix(".pid").read_text()
        return ""


@dataclass(kw_only=True)
class Server:
    """A JupyterLab on a copy of the course, and, when asked for, a Notebook 7 on the same copy."""

    place: Workplace
    browser: Browser
    fronts: dict[Front, tuple[int, str]] = field(default_factory=dict)  # port and token
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.place.root / FOLDER

    def open(
        self,
        cells: Sequence[str],
        *,
        front: Front = "lab",
        windowing: Windowing = "none",
        notebook: Any = None,
    ) -> PracticePage:
        """A new notebook of these code cells (or a made one, outputs and all), open in a browser window of its own."""
        self._start(front)
        self._settings("notebook-extension", "tracker", {"windowingMode": windowing})
        self._settings("apputils-extension", "themes", {"theme": THEMES["light"]})
        file = self.folder / f"n{len(list(self.folder.glob('*.ipynb')))}.ipynb"
        if notebook is None:
            notebook = v4.new_notebook(cells=[v4.new_code_cell(text) for text in cells])
            notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, file)
        context = self.browser.new_context(viewport={"width": 1400, "height": 1000})
        page = context.new_page()
        page.set_default_timeout(PATIENT * 1000)
        return PracticePage(self, page, front, file, windowing)

    def address(self, front: Front, file: Path) -> str:
        port, token = self.fronts[front]
        path = quote(file.relative_to(self.place.root).as_posix())
        where = f"lab/workspaces/{file.stem}/tree" if front == "lab" else "notebooks"
        return f"http://127.0.0.1:{port}/{where}/{path}?token={token}"

    def close(self, page: PracticePage) -> None:
        """Close the window and end the kernels."""
        page.page.context.close()
        for kernel in self._ask(page.front, "GET", "kernels"):
            self._ask(page.front, "DELETE", f"kernels/{kernel['id']}")

    def _ask(self, front: Front, method: str, path: str) -> Any:
        port, token = self.fronts[front]
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/{path}", method=method, headers={"Authorization": f"token {token}"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENT) as answer:
            return json.loads(answer.read() or b"null")

    def _start(self, front: Front) -> None:
        if front in self.fronts:
            return
        if front == "lab":
            process, port, address = start_lab(self.place, "00")
            token = address.partition("token=")[2]
        else:
            process, port, token = start_notebook(self.place)
        self.processes.append(process)
        self.fronts[front] = (port, token)
        until(lambda: self._answers(front), f"an answer of {front}")

    def _answers(self, front: Front) -> bool:
        with contextlib.suppress(OSError):
            return bool(self._ask(front, "GET", "status"))
        return False

    def _settings(self, extension: str, plugin: str, values: dict[str, Any]) -> None:
        file = self.place.settings / f"lab/user-settings/@jupyterlab/{extension}/{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))


def start_notebook(place: Workplace) -> tuple[subprocess.Popen[str], int, str]:
    """Start `jupyter notebook` as a learner who prefers it does; the process, its port and its token."""
    port, token = free_port(), place.mark
    options = {"ip": "127.0.0.1", "port": port, "port_retries": 0, "open_browser": False, "allow_root": True}
    with open(place.temporary / "notebook.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "notebook", *(f"--ServerApp.{name}={value}" for name, value in options.items())],
            cwd=place.root,
            env={**place.env, "JUPYTER_TOKEN": token},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    return process, port, token


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """A server on a copy of the course in `folder`, and a browser; nothing of either is left afterwards."""
    with workplace(folder) as place, sync_playwright() as playwright:
        startup = place.ipython / "profile_default/startup/00-practice.py"
        startup.parent.mkdir(parents=True)
        startup.write_text(STARTUP.format(folder=FOLDER))
        browser = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
        server = Server(place=place, browser=browser)
        server.folder.mkdir()
        try:
            yield server
        finally:
            browser.close()
            for process in server.processes:
                kill(process)


def until(question: Callable[[], Any], what: str) -> None:
    """Ask until the answer is true."""
    end = time.monotonic() + PATIENT
    while not question():
        assert time.monotonic() < end, f"{what} did not come within {PATIENT} s"
        time.sleep(0.05)


def _whole(file: Path) -> bool:
    """Whether the file is JSON: the server may be in the middle of writing it."""
    with contextlib.suppress(ValueError):
        return bool(json.loads(file.read_text(encoding="utf-8")))
    return False


@cache
def _axe() -> str:
    spec = find_spec("axe_playwright_python")
    assert spec is not None and spec.origin, "the package axe-playwright-python is missing"
    return Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8")
