#!/usr/bin/env python3
"""Find a Chromium for the browser tests, install one if there is none, and print its path.

    .venv/bin/python scripts/ensure_chromium.py

Looked for on PATH first, then where playwright keeps its own. Installed by apt-get where that needs no password, else
by playwright.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC_APPS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
SORRY = (
    "No Chromium for the browser tests, and none could be installed: type {apt}apt-get install -y chromium (Debian), "
    "or install Chromium or Google Chrome yourself, then type make test."
)

Run = Callable[[Sequence[str]], int]


def find() -> str | None:
    """The path of a browser, or None. Ubuntu's chromium-browser is a stub where snap is missing: so it must answer."""
    places = [shutil.which(name) for name in NAMES] + [app for app in MAC_APPS if os.path.exists(app)]
    for place in [*places, playwright_path()]:
        if place and answers(place):
            return place
    return None


def answers(browser: str) -> bool:
    """True if this browser can say its version."""
    try:
        said = subprocess.run([browser, "--version"], check=False, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0


def playwright_path() -> str | None:
    """Where playwright would keep its own Chromium, if it is there."""
    code = "from playwright.sync_api import sync_playwright as p\nwith p() as q: print(q.chromium.executable_path)"
    said = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True).stdout.strip()
    return said if said and Path(said).exists() else None


def run(command: Sequence[str]) -> int:
    """The exit code of a command whose output goes to stderr, so that stdout holds the path alone; 127 if there is none."""
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    try:
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
    except OSError:
        return 127


def ways_to_install(root: bool, has: Callable[[str], bool], quiet_sudo: Callable[[], bool]) -> list[list[list[str]]]:
    """The ways to try, best first; each is a list of commands that must all succeed."""
    ways = []
    if has("apt-get") and (root or (has("sudo") and quiet_sudo())):
        sudo = [] if root else ["sudo", "-n"]
        install = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "chromium"]
        ways.append([[*sudo, "apt-get", "update", "-qq"], install])
    ways.append([[sys.executable, "-m", "playwright", "install", "chromium"]])
    return ways


def sudo_needs_no_password() -> bool:
    """True if sudo works without asking."""
    return subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True).returncode == 0


def main(run: Run = run, find: Callable[[], str | None] = find) -> int:
    """Return the exit code; 1 comes with one sentence on stderr."""
    path = find()
    root = os.geteuid() == 0
    if path is None:
        for way in ways_to_install(root, lambda name: shutil.which(name) is not None, sudo_needs_no_password):
            if all(run(command) == 0 for command in way):
                path = find()
            if path:
                break
    if path is None:
        print(SORRY.format(apt="" if root else "sudo "), file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
