#!/usr/bin/env python3
"""Write constraints.txt: the newest versions that pyproject.toml allows, for every supported Python.

    make lock                                    python3.11, python3.12 and python3.13 from PATH
    python3 scripts/lock.py --python /path/to/python3.12 --python ...

Each interpreter resolves by itself (pip's dry run, in a venv of its own, nothing is installed), because a package may
serve some versions of Python only; where the results differ, the line carries an environment marker.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUPPORTED = ("3.11", "3.12", "3.13")
HEADER = """\
# Exact versions of everything that the course and its tests install, so that a clone of next year gets the packages
# which today's lessons were run with. Made by `make lock` (scripts/lock.py), never by hand.
# Resolved on Python {versions}.
# No addresses and no hashes: a mirror or a folder of wheels serves as well as the public index.
# What only another system than {system} needs is not listed; there, pip takes the newest that fits.
"""


class LockError(Exception):
    """What is wrong and what to type, in one sentence."""


def normalized(name: str) -> str:
    """The one spelling of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_of_report(report: Mapping[str, Any]) -> dict[str, str]:
    """Name to version from pip's installation report."""
    return {normalized(item["metadata"]["name"]): item["metadata"]["version"] for item in report["install"]}


def merge(pins: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The lines of constraints.txt from {Python version: {name: version}}.

    A package that some Pythons need in the same version gets one plain line (a constraint for what nobody installs does
    nothing); different versions get a marker each.
    """
    lines = []
    for name in sorted({name for found in pins.values() for name in found}):
        by_version: dict[str, list[str]] = {}
        for python, found in pins.items():
            if name in found:
                by_version.setdefault(found[name], []).append(python)
        if len(by_version) == 1:
            lines.append(f"{name}=={next(iter(by_version))}")
        else:
            for version, pythons in by_version.items():
                marker = " or ".join(f'python_version == "{python}"' for python in pythons)
                lines.append(f"{name}=={version} ; {marker}")
    return lines


def find_pythons(given: Iterable[str]) -> dict[str, str]:
    """Supported version to command, from the given commands, else from PATH. Raises LockError for one that is missing."""
    found: dict[str, str] = {}
    for command in given or [f"python{version}" for version in SUPPORTED]:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            version = subprocess.run(
                [command, "-I", "-c", code], check=False, capture_output=True, text=True
            ).stdout.strip()
        except OSError:
            continue
        if version in SUPPORTED:
            found[version] = command
    missing = [version for version in SUPPORTED if version not in found]
    if missing:
        raise LockError(
            f"No Python {' and no Python '.join(missing)} here, and versions locked without it may not install there: "
            "put it on PATH or type python3 scripts/lock.py --python PATH (repeat for each)"
        )
    return {version: found[version] for version in SUPPORTED}


def requirements_of(project: Mapping[str, Any]) -> list[str]:
    """Everything a pyproject.toml asks for: dependencies, all extras, and what builds it."""
    extras = project["project"]["optional-dependencies"]
    return [*project["project"]["dependencies"], *chain(*extras.values()), *project["build-system"]["requires"]]


def resolve(version: str, command: str, folder: Path) -> dict[str, str]:
    """What this interpreter would install for every extra and for building the project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    subprocess.run([command, "-m", "venv", folder / "venv"], check=True)
    report = folder / "report.json"
    pip: list[str | Path] = [
        folder / "venv" / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--quiet",
    ]
    # An old pip (3.11 brings 23) makes an old choice now and then; the lock is made by the newest.
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    # As the first release of that version: some packages refuse it (soupsieve 4 wants 3.11.5), and Debian 12 has 3.11.2.
    target: list[str | Path] = [
        "--python-version",
        f"{version}.0",
        "--only-binary",
        ":all:",
        "--target",
        folder / "nothing",
    ]
    options: list[str | Path] = ["--dry-run", "--report", report, *target]
    if subprocess.run([*pip, *options, *requirements_of(project)], check=False, cwd=ROOT).returncode != 0:
        raise LockError(f"pip could not resolve the packages for {command} (its reason stands above)")
    return pins_of_report(json.loads(report.read_text(encoding="utf-8")))


def main() -> int:
    """Return the exit code; 1 comes with one sentence on stderr."""
    parser = argparse.ArgumentParser(description="Write constraints.txt anew.")
    parser.add_argument("--python", action="append", default=[], help="an interpreter to resolve with; repeat it")
    arguments = parser.parse_args()
    try:
        pins = {}
        for version, command in find_pythons(arguments.python).items():
            print(f"Resolving for Python {version} ({command}) ...", flush=True)
            with tempfile.TemporaryDirectory(prefix="lock-") as folder:
                pins[version] = resolve(version, command, Path(folder))
        lines = merge(pins)
    except LockError as error:
        print(f"{error}.", file=sys.stderr)
        return 1
    header = HEADER.format(versions=", ".join(pins), system={"linux": "Linux", "darwin": "macOS"}.get(sys.platform))
    fresh = ROOT / "constraints.txt.new"
    fresh.write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    shutil.move(fresh, ROOT / "constraints.txt")
    print(f"constraints.txt: {len(lines)} lines.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
