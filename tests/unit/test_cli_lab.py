"""``course lab``: what it says before it starts, and that it takes everything with it when it ends."""

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
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.cli import lab, main
from sandbox.learn.processes import is_alive

REPOSITORY = Path(__file__).parents[2]
PANELS = ("assignment-list", "course-list", "create-assignment", "formgrader", "menu")  # of nbgrader, for instructors


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one lesson in a folder with a space and a Cyrillic letter."""
    root = tmp_path / "a b ж"
    (root / "lessons").mkdir(parents=True)
    lesson = {"number": "00", "slug": "start_here", "title": "t", "question": "q"}
    lines = ['title = "t"', "[[lesson]]", "minutes = 1", *(f'{name} = "{value}"' for name, value in lesson.items())]
    (root / "course.toml").write_text("\n".join(lines))
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    (root / "lessons/00_start_here.ipynb").write_text(json.dumps(notebook))
    monkeypatch.setenv("COURSE_ROOT", str(root))
    monkeypatch.setenv("COURSE_NO_BROWSER", "1")
    return root


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_busy_port_is_one_sentence_with_one_that_is_free(
    root: Path, taken: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A port in use is named, with a command line whose port is free, and nothing is started."""
    assert main(["lab", "--port", str(taken)]) == 1
    shown = capsys.readouterr()
    match = re.fullmatch(rf"course: port {taken} is taken: type `make lab PORT=(\d+)`\.\n", shown.err)
    assert match
    assert lab.is_free(int(match[1]))
    assert shown.out == ""
    assert not (root / "build/lab.log").exists()


def test_the_highest_port_has_another_to_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no higher port is free, a lower one is offered."""
    monkeypatch.setattr(lab, "is_free", lambda port: port == 8886)
    with pytest.raises(lab.BadSetting, match="port 65535 is taken: type `make lab PORT=8886`"):
        lab.require_free(65535)


def test_a_port_for_the_system_alone_is_not_called_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary user who asks for port 80 is told why not."""
    monkeypatch.setattr(lab, "is_free", lambda port: port > 2000)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(lab.BadSetting, match="port 80 is reserved for the system: type `make lab PORT=2002`"):
        lab.require_free(80)


def test_a_missing_lesson_says_how_to_get_it_back(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the lesson's file nothing is started, and the command that restores it is named."""
    (root / "lessons/00_start_here.ipynb").unlink()
    assert main(["lab"]) == 1
    assert "type `git checkout -- lessons/00_start_here.ipynb`" in capsys.readouterr().err


def test_without_jupyterlab_the_installation_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where JupyterLab is not installed the answer is what to type, not an import error."""
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    assert main(["lab", "--port", str(free_port())]) == 1
    assert "JupyterLab is not installed: type `make lab`" in capsys.readouterr().err


def test_a_start_that_fails_shows_the_end_of_the_log(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """When JupyterLab ends at once, its last lines and what to do are shown."""

    def start(root: Path, port: int, token: str, page: str, log: Path, *, grading: bool) -> subprocess.Popen[bytes]:
        log.write_text("one\nthe reason\n")
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])

    monkeypatch.setattr(lab, "start", start)
    assert main(["lab", "--port", str(free_port())]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("course: JupyterLab ended with code 3; type `course doctor`")
    assert "the reason" in shown
    assert str(root / "build/lab.log") in shown


def test_settings_of_ones_own_that_replace_the_token_are_named(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A token in the user's Jupyter settings would leave the learner before a login page; so it is an error."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "jupyter_server_config.json").write_text(json.dumps({"IdentityProvider": {"token": "mine"}}))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(config))
    assert main(["lab", "--port", str(free_port())]) == 1
    assert "JupyterLab does not take our token" in capsys.readouterr().err


def ask(port: int, token: str, path: str, data: bytes | None = None, method: str | None = None) -> str:
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers=headers, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return str(answer.read().decode())


def command_line(process: psutil.Process) -> str:
    """Empty for a process that has ended since it was listed: JupyterLab starts some that live for a moment."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_lab_from_start_to_end(root: Path, how: signal.Signals, eventually: Callable[..., Any]) -> None:
    """The address stands on a line of its own and answers; a signal ends JupyterLab and its kernels, with code 0."""
    port = free_port()
    command = [sys.executable, "-m", "sandbox.cli", "lab", "0", "--port", str(port)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = next(line for line in process.stdout if line.startswith("http")).strip()
        match = re.fullmatch(rf"http://127\.0\.0\.1:{port}/lab/tree/lessons/00_start_here\.ipynb\?token=(\w+)", address)
        assert match
        token = match[1]
        page = ask(port, token, "/lab/tree/lessons/00_start_here.ipynb")
        assert '"news": {"disabled": true}' in page
        assert json.loads(ask(port, token, "/lab/api/update"))["notification"] is None
        # The tabs that are open are kept with the course, not in the user's own JupyterLab.
        ask(port, token, "/lab/api/workspaces/ours", b'{"data": {}, "metadata": {"id": "ours"}}', method="PUT")
        assert list((root / "build/workspaces").glob("ours*"))
        kernel = json.loads(ask(port, token, "/api/kernels", b'{"name": "python3"}'))["id"]
        assert token not in " ".join(psutil.Process(process.pid).children()[0].cmdline())
        family = psutil.Process(process.pid).children(recursive=True)
        assert any(kernel in command_line(p) for p in family)
        process.send_signal(how)
        rest = process.stdout.read()
    finally:
        process.kill()
    assert process.wait() == 0
    assert "Ctrl-C stops it." in rest
    assert rest.endswith("stopped.\n")
    assert not any(is_alive(p) for p in family)
    assert lab.is_free(port)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the parent's death is a signal on Linux only")
def test_a_lab_that_is_killed_outright_does_not_hold_the_port(root: Path, eventually: Callable[..., Any]) -> None:
    """kill -9 of `course lab` ends JupyterLab too."""
    port = free_port()
    command = [sys.executable, "-m", "sandbox.cli", "lab", "--port", str(port)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any(line.startswith("http") for line in process.stdout)
    process.kill()
    process.wait()
    assert eventually(lambda: lab.is_free(port))


def test_the_programs_of_this_python_are_on_jupyters_path(root: Path, tmp_path: Path) -> None:
    """nbgrader, inside JupyterLab, finds alembic beside the Python that runs it, whatever PATH was."""
    started = lab.start(root, free_port(), "t", "/lab", tmp_path / "lab.log")
    try:
        path = psutil.Process(started.pid).environ()["PATH"]
        assert shutil.which("alembic", path=path) is not None
    finally:
        lab.stop(started)


@pytest.mark.parametrize("grading", [False, True], ids=["learner", "grading"])
def test_what_the_courses_jupyterlab_has_set(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grading: bool
) -> None:
    """Markdown opens as a page to read, nbgrader's panels are there with --grading only, and one's own settings stay."""
    own = tmp_path / "own/@jupyterlab/docmanager-extension/plugin.jupyterlab-settings"
    own.parent.mkdir(parents=True)
    own.write_text('{"defaultViewers": {"csv": "Editor"}}')
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path / "own"))
    port, log = free_port(), tmp_path / "lab.log"
    started = lab.start(root, port, "t", "/lab", log, grading=grading)
    try:
        lab._wait_until_it_answers(started, port, "t", log)
        settings = json.loads(ask(port, "t", "/lab/api/settings/@jupyterlab/docmanager-extension:plugin"))
        page = ask(port, "t", "/lab")
    finally:
        lab.stop(started)
    assert settings["schema"]["properties"]["defaultViewers"]["default"] == {"markdown": "Markdown Preview"}
    assert settings["settings"] == {"defaultViewers": {"csv": "Editor"}}
    off = json.loads(re.search(r'"disabledExtensions": (\[.*?\])', page)[1])  # type: ignore[index]
    assert "@jupyterlab/apputils-extension:announcements" in off
    panels = {f"@jupyter/nbgrader:{name}" for name in PANELS}
    assert panels & set(off) == (set() if grading else panels)
    assert "@jupyter/nbgrader:validate-assignment" not in off
    assert own.read_text() == '{"defaultViewers": {"csv": "Editor"}}'


def test_the_panels_that_learners_do_not_see_are_all_that_nbgrader_has_for_others() -> None:
    """A plugin that a newer nbgrader brings is noticed here, so that somebody decides whose it is."""
    folder = Path(sys.prefix) / "share/jupyter/labextensions/@jupyter/nbgrader/static"
    code = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.js"))
    assert set(re.findall(r'id: ?"@jupyter/nbgrader:([a-z-]+)"', code)) | {"formgrader"} == {
        *PANELS,
        "validate-assignment",
    }
