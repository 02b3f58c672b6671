"""``python -m tests.bench``: how long opening a lab takes beside the least it could take, and resetting it;
how long a lesson takes to open in a browser beside the same one without its widgets; and how long a verdict takes.

The floor is the same three programs with the same command lines, started bare and in parallel, on a data directory
that is already there. Floor and lab are measured in turn, so that a busy minute hits both. Exit code 1 when a median
is over its bar. The figures are written to ``build/bench/open.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from sandbox.services import Lab, programs
from sandbox.services.shared import private_servers
from sandbox.services.stack import Stack
from sandbox.services.template import template
from tests.bench.checking import CHECK_BAR, check_seconds, p95
from tests.bench.opening import OPENING_BAR, opening

OPEN_BAR = 1.3  # median of opening a lab, in floors
RESET_BAR = 0.1  # median of resetting an idle lab, in openings


class Bare:
    """The three programs of a lab without sidecar and ledger, their specification taken from the lab itself."""

    def __init__(self) -> None:
        self.stack = Stack()  # for its folder; its sidecar gets nothing to do, and starts and ends outside the timing
        servers = private_servers(self.stack)
        lab = Lab("floor", self.stack, servers)
        options = {"pool": "prefork", "concurrency": 1, "soft_time_limit": None, "time_limit": None, "include": []}
        self.specs = [*servers.programs, lab._worker_program(options)]
        for spec in self.specs:
            self._prepare(spec)
        self.processes: list[subprocess.Popen[bytes]] = []

    @staticmethod
    def _prepare(spec: dict[str, Any]) -> None:
        user = spec.get("user")
        for folder in spec.get("folders", []):
            os.mkdir(folder, 0o700)
        if "copy" in spec:
            shutil.copytree(*spec["copy"])
            os.chmod(spec["copy"][1], 0o700)
        if user:
            for top in [*spec.get("folders", []), *spec.get("copy", [])[1:]]:
                for folder, _, files in os.walk(top):
                    for path in [folder, *(os.path.join(folder, name) for name in files)]:
                        os.chown(path, *user)

    def start(self) -> float:
        """Start all, wait until all are ready, return the seconds."""
        began = time.perf_counter()
        for spec in self.specs:
            user = spec.get("user")
            with open(spec["log"], "ab") as log:
                process = subprocess.Popen(
                    spec["argv"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=spec.get("cwd"),
                    env=spec.get("env"),
                    start_new_session=True,
                    user=user[0] if user else None,
                    group=user[1] if user else None,
                    extra_groups=[] if user else None,
                )
            self.processes.append(process)
        while not all(map(self._is_ready, self.specs)):
            if any(process.poll() is not None for process in self.processes) or time.perf_counter() - began > 120:
                raise SystemExit(f"a bare program did not start; see {self.stack.folder}")
            time.sleep(0.002)
        return time.perf_counter() - began

    @staticmethod
    def _is_ready(spec: dict[str, Any]) -> bool:
        want = spec["ready"]
        with contextlib.suppress(OSError):
            if "connect" in want:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.connect(want["path"])
                return True
            return want.get("text", "") in Path(want["path"]).read_text()
        return False

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGQUIT if "postgres" in str(process.args) else signal.SIGKILL)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.stack.close()


def floor_seconds() -> float:
    bare = Bare()
    try:
        return bare.start()
    finally:
        bare.stop()


def lab_seconds() -> tuple[float, float, dict[str, float]]:
    """Seconds of opening a lab, of resetting it with an idle worker, and how long each program took."""
    began = time.perf_counter()
    with Lab.open("bench", quiet=True) as lab:
        opened = time.perf_counter() - began
        lab.run(lab.write_file("bench", "def f(job): job.complete()").f)
        began = time.perf_counter()
        said = lab.reset()
        reset = time.perf_counter() - began
        assert "was left as it is" in said
        return opened, reset, dict(lab.stack.seconds)


def _table(rows: list[tuple[str, list[float]]]) -> str:
    lines = [f"{'':22}{'median':>9}{'least':>9}{'most':>9}   seconds"]
    lines += [f"{name:22}{median(v):9.3f}{min(v):9.3f}{max(v):9.3f}" for name, v in rows]
    return "\n".join(lines)


def measure(rounds: int) -> dict[str, Any]:
    template()  # made once and for all, outside the timing
    floor_seconds(), lab_seconds()  # so that no file is read from disk for the first time in a measured round
    floors, opens, resets, parts = [], [], [], []
    for n in range(rounds):
        # The first of a pair finds the machine a little differently from the second: take turns.
        if n % 2:
            opened, reset, seconds = lab_seconds()
            floors.append(floor_seconds())
        else:
            floors.append(floor_seconds())
            opened, reset, seconds = lab_seconds()
        opens.append(opened)
        resets.append(reset)
        parts.append(seconds)
    print(_table([("bare, in parallel", floors), ("Lab.open", opens), ("lab.reset, idle", resets)]))
    return {
        "rounds": rounds,
        "floor_seconds": floors,
        "open_seconds": opens,
        "reset_seconds": resets,
        "programs_seconds": {name: median(part[name] for part in parts) for name in parts[0]},
        "open_in_floors": median(opens) / median(floors),
        "reset_in_opens": median(resets) / median(opens),
        "open_bar": OPEN_BAR,
        "reset_bar": RESET_BAR,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "postgres": programs.find_postgres().version,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="pairs to measure (default 10)")
    parser.add_argument("--output", type=Path, default=Path("build/bench/open.json"))
    given = parser.parse_args()
    for name in ("SANDBOX_REDIS_URL", "SANDBOX_DATABASE_URL"):
        os.environ.pop(name, None)
    found = measure(given.rounds)
    found |= opening(given.rounds)
    pages = [("lesson, widgets", "with_widgets_seconds"), ("lesson, no widgets", "without_widgets_seconds")]
    print(_table([(name, found[figures]) for name, figures in pages]))
    verdicts = check_seconds(3 * given.rounds)
    found["check_seconds"], found["check_bar"] = verdicts, CHECK_BAR
    print(_table([(f"check {name}", seconds) for name, seconds in verdicts.items()]))
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(found, indent=1) + "\n")
    checks = [
        ("Lab.open / bare", found["open_in_floors"], OPEN_BAR),
        ("lab.reset / Lab.open", found["reset_in_opens"], RESET_BAR),
        ("lesson with / without", found["opening_ratio"], OPENING_BAR),
        ("slowest check, p95 in s", max(p95(seconds) for seconds in verdicts.values()), CHECK_BAR),
    ]
    for name, value, bar in checks:
        print(f"{name:24}{value:9.3f}   bar {bar}: {'ok' if value <= bar else 'OVER'}")
    print(f"written to {given.output}")
    return int(any(value > bar for _, value, bar in checks))


if __name__ == "__main__":
    sys.exit(main())
