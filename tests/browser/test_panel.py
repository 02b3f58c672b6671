"""What says where you are and what you have done, in a real JupyterLab."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .practice_page import PracticePage

pytestmark = pytest.mark.timeout(900)
CELLS = [
    "from sandbox.learn import end_of_lesson, here, my_progress\nhere('03')",
    "from sandbox.services import Lab\nlab = Lab.open('03', worker=False, quiet=True)",
    "row = lab.jobs.add('nap', {})\nlab.jobs.start(row.id, lease_seconds=60)\n_ = lab.jobs.finish(row.id, 'completed')",
    "end_of_lesson('03')",
    "my_progress()",
]


def test_a_lesson_that_ended_is_on_the_panel(practice_page: Callable[..., PracticePage]) -> None:
    """The lesson is marked at its top, its end gives the points, and the panel adds them up; readable in both themes."""
    page = practice_page(CELLS, windowing="none")
    page.run_all()
    here, end, panel = (page.widget("panel", place) for place in range(3))
    expect(here).to_contain_text("you are here")
    expect(here.get_by_role("link", name="00 Start here")).to_have_attribute("href", re.compile("00_start_here.ipynb"))
    expect(end).to_contain_text("1 job, all at an end (1 completed)")
    expect(panel).to_contain_text("10 points")
    expect(panel.get_by_role("row", name="03 The swallowed signal")).to_contain_text("finished")
    assert [entry.kind for entry in page.entries()] == ["opened", "finished"]
    assert [page.violations_in_both_themes(one) for one in (here, end, panel)] == [[], [], []]
    page.screens("panel", panel)
