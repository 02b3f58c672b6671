"""The sliders of a lesson in a real JupyterLab: by mouse, by keyboard, after a restart and a reload, light and dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .practice_page import PracticePage, until

pytestmark = pytest.mark.timeout(900)
CELLS = [
    "rows = 40\ntime_scale = 1.0\nseed = 3",
    'from sandbox.learn import sliders\nsliders("03", rows=(8, 200), time_scale=(0.5, 4.0, 0.5), seed=(0, 99))',
    "print(rows, time_scale, seed)",
]
Open = Callable[..., PracticePage]


def opened(practice_page: Open) -> tuple[PracticePage, Locator]:
    page = practice_page(CELLS)
    page.run_all()
    return page, page.widget("sliders")


def printed(page: PracticePage) -> str:
    """Run the last cell and return what it prints."""
    page.run(2)
    return (
        page.page.locator(".jp-NotebookPanel .jp-CodeCell").nth(2).locator(".jp-OutputArea-output").inner_text().strip()
    )


def test_a_slider_that_is_dragged_changes_what_a_later_cell_prints(practice_page: Open) -> None:
    """By mouse: the number beside the slider follows, the page says what to do, the next cell has the new number."""
    page, widget = opened(practice_page)
    rows = widget.get_by_role("slider", name="rows")
    box = rows.bounding_box()
    assert box is not None
    rows.click(position={"x": box["width"] - 1, "y": box["height"] / 2})
    expect(widget.get_by_role("status")).to_have_text("rows is 200 now; run the cells below again.")
    expect(widget.locator(".ae-number").first).to_have_text("200")
    assert printed(page) == "200 1.0 3"
    widget.get_by_role("button", name="Reset").click()
    expect(widget.get_by_role("status")).to_contain_text("rows is 40")
    assert printed(page) == "40 1.0 3"


def test_the_sliders_work_by_keyboard(practice_page: Open) -> None:
    """Tab, arrows, Home, End and Enter on Reset; the notebook's own keys keep still."""
    page, widget = opened(practice_page)
    page.select(0)
    scale = widget.get_by_role("slider", name="time_scale")
    widget.get_by_role("slider", name="rows").focus()
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Tab")
    expect(scale).to_be_focused()
    assert scale.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.page.keyboard.press("End")
    expect(widget.get_by_role("status")).to_have_text("time_scale is 4.0 now; run the cells below again.")
    page.page.keyboard.press("ArrowLeft")
    expect(widget.get_by_role("status")).to_have_text("time_scale is 3.5 now; run the cells below again.")
    expect(scale).to_have_attribute("aria-valuetext", "3.5")
    expect(scale).to_be_focused()
    assert printed(page) == "41 3.5 3"
    scale.focus()
    page.tab_to("Reset")
    page.page.keyboard.press("Enter")
    expect(widget.get_by_role("status")).to_contain_text("the lesson's own numbers")
    expect(scale).to_have_attribute("aria-valuetext", "1.0")
    assert printed(page) == "40 1.0 3"


def test_a_held_arrow_key_is_one_move(practice_page: Open) -> None:
    """Ten presses in a row are recorded once, as the number they end at."""
    page, widget = opened(practice_page)
    widget.get_by_role("slider", name="seed").focus()
    widget.get_by_role("slider", name="seed").evaluate(
        """slider => { for (let i = 0; i < 10; i++) {
            slider.stepUp();
            slider.dispatchEvent(new Event('input', {bubbles: true}));
            slider.dispatchEvent(new Event('change', {bubbles: true}));
        } }"""
    )
    expect(widget.get_by_role("status")).to_have_text("seed is 13 now; run the cells below again.")
    assert [entry.data["values"]["seed"] for entry in page.entries("sliders")] == [13]


def test_numbers_come_back_after_a_kernel_restart_until_the_cell_is_edited(practice_page: Open) -> None:
    """Moved numbers are put back and said so; once the parameters cell says another number, that one counts."""
    page, widget = opened(practice_page)
    widget.get_by_role("slider", name="rows").focus()
    page.page.keyboard.press("End")
    expect(widget.get_by_role("status")).to_have_text("rows is 200 now; run the cells below again.")
    page.restart()
    page.run_all()
    widget = page.widget("sliders")
    expect(widget.get_by_role("status")).to_have_text(
        "rows is 200, as you left it; Reset gives the lesson's own numbers (rows = 40, time_scale = 1.0, seed = 3)."
    )
    assert printed(page) == "200 1.0 3"

    page.restart()
    page.page.locator(".jp-NotebookPanel .jp-CodeCell").nth(0).locator(".cm-content").click()
    page.page.keyboard.press("Control+a")
    page.page.keyboard.type("rows, time_scale, seed = 50, 1.0, 3")
    page.run_all()
    widget = page.widget("sliders")
    expect(widget.locator(".ae-number").first).to_have_text("50")
    expect(widget.get_by_role("status")).to_have_text("")
    assert printed(page) == "50 1.0 3"


def test_a_cell_that_sets_a_number_moves_its_slider(practice_page: Open) -> None:
    """A slider never shows another number than the one that the notebook has."""
    page = practice_page([*CELLS, "rows = 60"])
    page.run_all()
    widget = page.widget("sliders")
    expect(widget.locator(".ae-number").first).to_have_text("60")
    expect(widget.get_by_role("status")).to_have_text("rows is 60 now: a cell has set it.")


def test_the_sliders_are_still_there_after_a_reload(practice_page: Open) -> None:
    """A page that is loaded again shows the moved number, and its sliders still move."""
    page, widget = opened(practice_page)
    widget.get_by_role("slider", name="rows").focus()
    page.page.keyboard.press("Home")
    expect(widget.get_by_role("status")).to_have_text("rows is 8 now; run the cells below again.")
    page.reload()
    widget = page.widget("sliders")
    expect(widget.locator(".ae-number").first).to_have_text("8")
    widget.get_by_role("slider", name="rows").focus()
    page.page.keyboard.press("ArrowRight")
    expect(widget.get_by_role("status")).to_have_text("rows is 9 now; run the cells below again.")
    assert printed(page) == "9 1.0 3"


def test_a_moved_slider_is_acknowledged_while_a_cell_runs(practice_page: Open) -> None:
    """The page says that it has been moved before the kernel is free."""
    page = practice_page([*CELLS, "import time\nwhile not open_file.exists(): time.sleep(0.05)"])
    page.run(0)
    page.run(1)
    gate = page.file.with_suffix(".gate")
    cell = page.page.locator(".jp-NotebookPanel .jp-CodeCell").nth(3)
    cell.locator(".cm-content").click()
    page.page.keyboard.press("Control+Home")
    page.page.keyboard.type(f"import pathlib; open_file = pathlib.Path({str(gate)!r})\n")
    page.run(3, wait=False)
    until(lambda: page.is_running(3), "a running cell")
    widget = page.widget("sliders")
    widget.get_by_role("slider", name="rows").focus()
    page.page.keyboard.press("End")
    expect(widget.locator(".ae-number").first).to_have_text("200")
    expect(widget.get_by_role("status")).to_contain_text("200")
    assert page.is_running(3)
    gate.touch()
    page.wait_until_idle()
    assert printed(page) == "200 1.0 3"


def test_axe_finds_nothing_wrong_with_the_sliders(practice_page: Open) -> None:
    """Light and dark, as shown first and after a move; screenshots of both for people to look at."""
    page, widget = opened(practice_page)
    assert page.violations_in_both_themes(widget) == []
    widget.get_by_role("slider", name="rows").focus()
    page.page.keyboard.press("End")
    expect(widget.get_by_role("status")).to_contain_text("rows is 200")
    assert page.violations_in_both_themes(widget) == []
    page.screens("practice-sliders", widget)
    page.resize(500)
    assert widget.evaluate("e => e.scrollWidth <= e.clientWidth")
