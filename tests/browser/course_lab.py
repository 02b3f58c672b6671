"""What every browser test needs: the browser, a running `course lab`, and the menus of the page."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from playwright.sync_api import Page

from sandbox.services import programs

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


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """A copy of the course, and the environment of a learner who has never opened JupyterLab."""

    root: Path
    settings: Path  # JUPYTER_CONFIG_DIR
    ipython: Path  # IPYTHONDIR
    temporary: Path  # TMPDIR, short, because sockets lie in it
    mark: str  # in the environment of every process that comes of it
    env: dict[str, str]


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Workplace]:
    """Copy the course into `folder`; the temporary folder beside it is removed at the end."""
    root = folder / "my course ж"
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
        "JUPYTER_CONFIG_DIR": str(folder / "settings"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    try:
        yield Workplace(
            root=root,
            settings=folder / "settings",
            ipython=folder / "ipython",
            temporary=temporary,
            mark=mark,
            env=env,
        )
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def start_lab(place: Workplace, number: str) -> tuple[subprocess.Popen[str], int, str]:
    """Start `course lab NN`; the process, its port, and the address that it prints."""
    port = free_port()
    command = [Path(sys.executable).with_name("course"), "lab", number, "--no-browser", "--port", str(port)]
    process = subprocess.Popen(command, cwd=place.root, env=place.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = next((line.strip() for line in process.stdout if line.startswith("http")), None)
    assert address, "course lab ended before it printed an address"
    return process, port, address


def kill(process: subprocess.Popen[str]) -> None:
    """End the process and what it has started, at once."""
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


def menu(page: Page, name: str, *items: str) -> None:
    """Choose an item of the menu bar by its words; more than one for an item of a submenu."""
    page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{name}$")).click()
    for item in items:
        page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{item}$")).last.click()
    page.wait_for_timeout(300)


def wait_until_idle(page: Page) -> None:
    """Wait for a kernel that has nothing to do; JupyterLab also says idle where there is no kernel yet."""
    page.wait_for_function("""() => {
        const panel = document.querySelector('.jp-NotebookPanel');
        const name = panel?.querySelector('.jp-Toolbar-kernelName')?.textContent ?? 'No Kernel';
        const state = panel?.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status;
        return name !== 'No Kernel' && state === 'idle';
    }""")
