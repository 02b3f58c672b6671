"""What the set-up files promise each other: pyproject.toml, constraints.txt, environment.yml, Makefile, scripts/."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13")
PIN = re.compile(r"^[a-z0-9-]+==[A-Za-z0-9.+!]+( ; python_version == \"3\.\d+\"( or python_version == \"3\.\d+\")*)?$")


def load(name: str) -> Any:
    """A script of scripts/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pin_lines() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pinned(python: str) -> dict[str, str]:
    """Name to version, as pip on this Python reads constraints.txt."""
    found: dict[str, str] = {}
    for requirement in map(Requirement, pin_lines()):
        if requirement.marker is None or requirement.marker.evaluate({"python_version": python}):
            assert canonicalize_name(requirement.name) not in found, requirement
            found[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return found


# ---- constraints.txt -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("python", PYTHONS)
def test_every_direct_dependency_is_pinned(python: str) -> None:
    """Each dependency of pyproject.toml has one exact version for each Python, and that version is one it allows."""
    pins = pinned(python)
    asked = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    for requirement in map(Requirement, asked):
        version = pins.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in constraints.txt: make lock"
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement} is pinned to {version}: make lock"
        )


def test_constraints_hold_versions_and_nothing_else() -> None:
    """No address, no hash, no path, no option: any mirror or folder of wheels can serve constraints.txt."""
    for line in pin_lines():
        assert PIN.match(line), line
    assert pin_lines() == sorted(pin_lines(), key=lambda line: line.split("==")[0])


def test_constraints_say_why_they_exist_and_how_they_are_made() -> None:
    """The header says what the file is for, that `make lock` makes it, and for which Pythons."""
    header = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    text = "\n".join(header)
    assert "so that" in text and "`make lock`" in text
    assert ", ".join(PYTHONS) in text


def test_the_start_up_tax_stays_out() -> None:
    """rfc3987-syntax, which costs every Jupyter command seconds, is neither pinned nor installed."""
    assert not [line for line in pin_lines() if "rfc3987" in line]
    remedy = "rfc3987_syntax is a leftover of an older install: make clean, then make test"
    assert importlib.util.find_spec("rfc3987_syntax") is None, remedy


def test_merge_marks_only_what_differs() -> None:
    """The lock has one plain line for a version that all share or one Python alone needs, else a line for each version."""
    merge = load("lock").merge
    assert merge({"3.11": {"b": "1", "a": "1"}, "3.12": {"b": "2", "c": "3"}, "3.13": {"b": "2", "a": "1"}}) == [
        "a==1",
        'b==1 ; python_version == "3.11"',
        'b==2 ; python_version == "3.12" or python_version == "3.13"',
        "c==3",
    ]


def test_lock_refuses_to_forget_a_python() -> None:
    """A lock without one of the supported Pythons is refused with the sentence that says how to name it."""
    lock = load("lock")
    with pytest.raises(lock.LockError, match=r"^No Python 3\.11 and no Python 3\.12 .*--python PATH"):
        lock.find_pythons(["/nowhere/python3.11", "/nowhere/python3.12"])


def test_lock_names_are_normalized() -> None:
    """Names in the lock have one spelling, whatever pip's report says."""
    report = {
        "install": [{"metadata": {"name": "Jinja2", "version": "3.1"}}, {"metadata": {"name": "a_b.C", "version": "1"}}]
    }
    assert load("lock").pins_of_report(report) == {"jinja2": "3.1", "a-b-c": "1"}


# ---- environment.yml -------------------------------------------------------------------------------------------------


def environment() -> tuple[dict[str, Any], list[str]]:
    """environment.yml with conda's dependencies only, and the lines of its pip section."""
    loaded = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    sections = [entry["pip"] for entry in loaded["dependencies"] if isinstance(entry, dict)]
    assert len(sections) == 1
    loaded["dependencies"] = [entry for entry in loaded["dependencies"] if isinstance(entry, str)]
    return loaded, sections[0]


def test_conda_takes_the_same_python() -> None:
    """The range of python in environment.yml is requires-python."""
    loaded, _ = environment()
    (python,) = [entry for entry in loaded["dependencies"] if re.match(r"python\b", entry)]
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PROJECT["requires-python"])


def test_conda_brings_the_servers_and_pip_brings_the_package() -> None:
    """conda-forge gives python, pip, redis-server and postgresql 15 or newer; pip gives the package, pinned, alone."""
    loaded, pip = environment()
    assert loaded["name"] == PROJECT["name"]
    assert loaded["channels"] == ["conda-forge", "nodefaults"]
    assert {entry.split()[0] for entry in loaded["dependencies"]} == {"python", "pip", "redis-server", "postgresql"}
    assert "postgresql >=15" in loaded["dependencies"]
    assert pip == ["-c constraints.txt", "-e .[course]"]
    assert "course" in PROJECT["optional-dependencies"]


# ---- Makefile, .ci/run -----------------------------------------------------------------------------------------------


def make(*arguments: str, python: str | None = None) -> list[str]:
    """The commands that make would run."""
    kept = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MFLAGS", "PYTHON", "PORT"}}
    environment = kept if python is None else kept | {"PYTHON": python}
    ran = subprocess.run(
        ["make", "-n", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return [line.strip() for line in ran.stdout.splitlines() if not line.startswith("make")]


def test_make_lab_sets_up_and_opens() -> None:
    """`make lab` is two commands; PORT is handed to `course lab`."""
    assert make("lab") == ["python3 scripts/bootstrap.py", 'PATH="$PWD/.venv/bin:$PATH" .venv/bin/course lab']
    assert make("lab", "PORT=8890")[1].endswith(".venv/bin/course lab --port 8890")


def test_make_takes_another_python() -> None:
    """A PYTHON that you name, on the command line or in the environment, also replaces a .venv of another version."""
    expected = "python3.12 scripts/bootstrap.py --this-python --dev"
    assert make("test", "PYTHON=python3.12")[0] == expected
    assert make("test", python="python3.12")[0] == expected


def test_make_test_runs_every_check_in_order() -> None:
    """`make test` runs set-up, browser, ruff twice, mypy, import contracts, tests, and the stored outputs, in this order."""
    commands = [command.removeprefix('PATH="$PWD/.venv/bin:$PATH" ') for command in make("test")]
    assert commands == [
        "python3 scripts/bootstrap.py --dev",
        ".venv/bin/python scripts/ensure_chromium.py",
        ".venv/bin/ruff check .",
        ".venv/bin/ruff format --check .",
        ".venv/bin/mypy sandbox",
        ".venv/bin/lint-imports",
        ".venv/bin/python -m pytest tests -n 2 --dist loadfile",
        (
            ".venv/bin/python -m pytest --nbval solutions --nbval-sanitize-with tests/nbval_sanitize.cfg "
            "--nbval-cell-timeout 120 -p no:cacheprovider"
        ),
    ]


def test_ci_runs_make_test() -> None:
    """.ci/run is an executable bash script that ends in `make test`."""
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash" and "set -euo pipefail" in lines and lines[-1] == "exec make test"


def test_no_machine_is_named() -> None:
    """The set-up files name no package index and no path of one machine."""
    files = ["Makefile", "constraints.txt", "environment.yml", ".ci/run", ".pre-commit-config.yaml"]
    for file in files:
        assert not re.search(
            r"https?://|/root/|/home/|index-url|find-links", (ROOT / file).read_text(encoding="utf-8")
        ), file


# ---- scripts/ensure_chromium.py --------------------------------------------------------------------------------------

chromium = load("ensure_chromium")


class Machine:
    """Records commands; a browser appears once a command that contains `works` ran."""

    def __init__(self, works: str = "nothing", there: bool = False) -> None:
        self.works, self.browser, self.ran = works, "/usr/bin/chromium" if there else None, list[str]()

    def run(self, command: Sequence[str]) -> int:
        self.ran.append(" ".join(command))
        if self.works in self.ran[-1]:
            self.browser = "/usr/bin/chromium"
            return 0
        return 100

    def find(self) -> str | None:
        return self.browser


def test_chromium_that_is_there_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A browser that is there is printed and nothing is installed."""
    machine = Machine(there=True)
    assert chromium.main(machine.run, machine.find) == 0
    assert machine.ran == [] and capsys.readouterr().out == "/usr/bin/chromium\n"


def test_chromium_falls_back_to_playwright(capsys: pytest.CaptureFixture[str]) -> None:
    """Where apt-get cannot, playwright's own Chromium is installed."""
    machine = Machine(works="playwright install chromium")
    assert chromium.main(machine.run, machine.find) == 0
    assert machine.ran[-1].endswith("-m playwright install chromium")
    assert capsys.readouterr().out == "/usr/bin/chromium\n"


def test_no_chromium_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing works, one sentence says what to type, and the exit code is 1."""
    machine = Machine()
    assert chromium.main(machine.run, machine.find) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert "apt-get install -y chromium" in said.err and said.err.endswith("then type make test.\n")


def test_apt_get_is_used_where_it_needs_no_password() -> None:
    """apt-get is tried as root or with a silent sudo, after an update; an ordinary user is never asked for a password."""
    playwright = [[sys.executable, "-m", "playwright", "install", "chromium"]]

    def ways(root: bool, tools: set[str], quiet: bool) -> list[list[str]]:
        found = chromium.ways_to_install(root, lambda name: name in tools, lambda: quiet)
        assert found[-1] == playwright
        return [[" ".join(command) for command in way] for way in found[:-1]]

    update, install = "apt-get update -qq", "env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium"
    assert ways(True, {"apt-get"}, False) == [[update, install]]
    assert ways(False, {"apt-get", "sudo"}, True) == [["sudo -n " + update, "sudo -n " + install]]
    assert ways(False, {"apt-get", "sudo"}, False) == []
    assert ways(True, set(), False) == []


def test_a_browser_must_answer(tmp_path: Path) -> None:
    """A file that is called chromium and does not start is no browser."""
    stub = tmp_path / "chromium-browser"
    stub.write_text("#!/bin/sh\necho requires the chromium snap to be installed >&2\nexit 1\n")
    stub.chmod(0o755)
    assert not chromium.answers(str(stub))
    assert not chromium.answers(str(tmp_path / "missing"))
    stub.write_text("#!/bin/sh\necho Chromium 1.0\n")
    assert chromium.answers(str(stub))
