"""The measurement itself runs; what it measures is for ``make bench`` on a quiet machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_the_bench_measures_floor_and_lab_beside_each_other(tmp_path: Path) -> None:
    """One round writes every figure, says whether each bar held, and ends with the code that goes with it."""
    output = tmp_path / "new" / "open.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--rounds", "1", "--output", str(output)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    found = json.loads(output.read_text())
    assert len(found["floor_seconds"]) == len(found["open_seconds"]) == len(found["reset_seconds"]) == 1
    bars = {"open_in_floors": "open_bar", "reset_in_opens": "reset_bar", "opening_ratio": "opening_bar"}
    over = any(found[figure] > found[bar] for figure, bar in bars.items())
    over |= max(max(seconds) for seconds in found["check_seconds"].values()) > found["check_bar"]
    assert (done.returncode, "OVER" in done.stdout) == (int(over), over), done.stderr
    assert found["open_seconds"][0] > found["reset_seconds"][0] > 0
    assert found["widgets"] > 0
    assert {name[:4] for name in found["check_seconds"]} == {"00.1", "03.1", "03.2"}
    assert len(found["with_widgets_seconds"]) == len(found["without_widgets_seconds"]) == 1
