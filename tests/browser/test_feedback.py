"""Check, hints and solution in a real JupyterLab: by mouse, by keyboard, after a restart, light and dark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from .course_lab import SCREENS
from .practice_page import PracticePage

pytestmark = pytest.mark.timeout(900)
ROOT = Path(__file__).parents[2]
Open = Callable[..., PracticePage]
OPEN = """from sandbox.learn import check, hint, solution
from sandbox.services import Lab
lab = Lab.open("t", worker=False, quiet=True)"""
SLOW = """%%worker_file ended
def has_ended(state):
    import pathlib, time
    while not pathlib.Path({gate!r}).exists():
        time.sleep(0.05)
    return state == "completed"
"""
FAST = "%%worker_file ended\ndef has_ended(state):\n    return state == 'completed'\n"
NEXT = "What does the function get?"


def output(page: PracticePage, cell: int) -> Locator:
    return page.page.locator(".jp-Cell").nth(cell).locator(".jp-OutputArea-output")


def pictures(page: PracticePage, name: str, cell: int) -> None:
    """The cell's output in both themes, to be looked at."""
    for theme in ("light", "dark"):
        page.theme(theme)
        SCREENS.mkdir(parents=True, exist_ok=True)
        page.page.locator(".jp-Cell").nth(cell).screenshot(path=SCREENS / f"{name}-{theme}.png")
    page.theme("light")


def test_the_sign_stands_there_while_the_check_runs_and_the_verdict_takes_its_place(
    practice_page: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One output: first "checking", while the learner's code still runs, then the verdict, and no second one."""
    gate = tmp_path_factory.mktemp("gate") / "open"
    page = practice_page([OPEN, SLOW.format(gate=str(gate)), 'check("00.1", has_ended)'])
    page.run(0)
    page.run(1)
    page.run(2, wait=False)
    status = output(page, 2).get_by_role("status")
    expect(status).to_contain_text("00.1 Hand something in: checking …")
    gate.touch()
    page.wait_until_idle()
    expect(status).to_contain_text("For failed and cancelled your function answered False.")
    expect(status).to_contain_text(f'Next hint: hint("00.1") – {NEXT}')
    assert output(page, 2).count() == 1
    assert page.entries("check")[0].data["status"] == "not yet"
    assert page.violations_in_both_themes(output(page, 2)) == []
    pictures(page, "verdict", 2)


def test_several_checks_in_one_cell_show_one_verdict_each(practice_page: Open) -> None:
    """Two checks in a cell, of which the second is its value: two verdicts."""
    page = practice_page([OPEN, FAST, 'check("00.1", has_ended)\ncheck("00.1", has_ended)'])
    page.run_all()
    expect(output(page, 2)).to_have_count(2)
    expect(output(page, 2).get_by_role("status")).to_have_count(2)


def hints_page(practice_page: Open) -> tuple[PracticePage, Locator]:
    page = practice_page(["from sandbox.learn import hint", 'hint("03.1")', "print('the last cell')"])
    page.run_all()
    return page, page.widget("hints")


def test_hints_are_opened_by_mouse_and_are_there_after_a_restart(practice_page: Open) -> None:
    """The button names the step that it opens; what is open stays open in a new kernel and on a page that is loaded anew."""
    page, widget = hints_page(practice_page)
    expect(widget.get_by_text("(closed)").locator("visible=true")).to_have_count(4)
    widget.get_by_role("button", name="Open hint 1: Which clause can't tell them apart?").click()
    expect(widget.get_by_text("A bad row and a spent budget")).to_be_visible()
    widget.get_by_role("button", name="Open hint 2: What kind of error is the limit?").click()
    expect(widget.get_by_role("status")).to_have_text("2 of 4 hints are open.")
    assert [entry.data["step"] for entry in page.entries("hint")] == [1, 2]
    assert page.violations_in_both_themes(widget) == []
    page.screens("hints", widget)
    page.restart()
    page.run(0)
    page.run(1)
    # Calling it once more is asking for the next step.
    expect(page.widget("hints").get_by_role("status")).to_have_text("3 of 4 hints are open.")
    page.save()
    page.reload()
    expect(page.widget("hints").get_by_text("The signal can land on any line")).to_be_visible()


def test_hints_are_opened_by_keyboard_and_the_button_keeps_the_focus(practice_page: Open) -> None:
    """Tab, then Enter four times: the focus stays on the button, which in the end says that all are open."""
    page, widget = hints_page(practice_page)
    page.select(1)
    page.tab_to("Open hint 1")
    button = widget.get_by_role("button")
    for step in range(1, 5):
        expect(button).to_contain_text(f"Open hint {step}")
        page.page.keyboard.press("Enter")
        expect(widget.get_by_role("listitem").nth(step - 1).locator("p")).to_be_visible()
        expect(button).to_be_focused()
    expect(button).to_have_text("All hints are open")
    expect(widget.get_by_role("status")).to_contain_text('solution("03.1") shows our solution beside yours')
    page.page.keyboard.press("Enter")
    page.wait_until_idle()
    assert [entry.data["step"] for entry in page.entries("hint")] == [1, 2, 3, 4]


def test_the_solution_stands_beside_the_learners_text(practice_page: Open) -> None:
    """Two columns on a wide page, one above the other on a narrow one; lines that differ have a sign."""
    mine = "%%worker_file ended\ndef has_ended(state):\n    return state not in ('pending', 'running')\n"
    # The folder that the browser works in has no solutions.
    whole = f"import os\nos.environ['COURSE_ROOT'] = {str(ROOT)!r}\n{OPEN}"
    page = practice_page([whole, mine, 'check("00.1", has_ended)', 'solution("00.1")'])
    page.resize(1500)
    page.run_all()
    yours = output(page, 3).get_by_role("group", name="Yours", exact=True)
    ours = output(page, 3).get_by_role("group", name="Ours", exact=True)
    expect(yours).to_contain_text("−     return state not in ('pending', 'running')")
    expect(ours).to_contain_text("+     return state in TERMINAL")
    box, other = yours.bounding_box(), ours.bounding_box()
    assert box and other and box["y"] == other["y"] and box["x"] < other["x"], json.dumps([box, other])
    assert page.violations_in_both_themes(output(page, 3)) == []
    pictures(page, "solution", 3)
    page.resize(700)
    expect(ours).to_be_visible()
    box, other = yours.bounding_box(), ours.bounding_box()
    assert box and other and box["y"] < other["y"] and box["x"] == other["x"]
    assert [entry.item for entry in page.entries("solution")] == ["00.1"]
