"""The choose widget in a real JupyterLab: by mouse, by keyboard, after a restart and a reload, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from .practice_page import PracticePage

pytestmark = pytest.mark.timeout(900)
CELLS = ["from sandbox.learn import practice", 'practice("03.q1")', "print('the last cell')"]
RIGHT = "✓ right It comes once, so nobody tells the loop again."
WRONG = (
    "✗ not yet The inner clause stands nearer, and SoftTimeLimitExceeded is an Exception: the outer one never sees it."
)
Open = Callable[..., PracticePage]


def opened(practice_page: Open, **options: str) -> tuple[PracticePage, Locator]:
    page = practice_page(CELLS, **options)
    page.run_all()
    return page, page.widget("choose")


def options(widget: Locator) -> Locator:
    return widget.get_by_role("group", name="answers").get_by_role("button")


def pressed(widget: Locator) -> list[str | None]:
    return [one.get_attribute("aria-pressed") for one in options(widget).all()]


def recorded(page: PracticePage) -> list[tuple[str, int, bool]]:
    return [(one.item, one.data["answer"], one.data["right"]) for one in page.entries("answer")]


def test_an_answer_that_is_clicked_is_judged_and_recorded(practice_page: Open) -> None:
    """By mouse: first a wrong answer and what is said to it, then the right one; the page marks the one chosen."""
    page, widget = opened(practice_page)
    status = widget.get_by_role("status")
    expect(status).to_have_text("")
    options(widget).nth(0).click()
    expect(status).to_have_text(WRONG)
    assert pressed(widget) == ["true", "false", "false"]
    options(widget).nth(1).click()
    expect(status).to_have_text(RIGHT)
    assert pressed(widget) == ["false", "true", "false"]
    assert recorded(page) == [("03.q1", 0, False), ("03.q1", 1, True)]


def test_the_same_answer_twice_is_judged_twice(practice_page: Open) -> None:
    """The page does not wait for ever when the state after an answer is the state before it."""
    page, widget = opened(practice_page)
    for times in (1, 2):
        options(widget).nth(0).click()
        expect(widget.get_by_role("status")).to_have_text(WRONG)
        page.wait_until_idle()
        assert len(recorded(page)) == times


def test_it_works_by_keyboard_alone(practice_page: Open) -> None:
    """Tab goes through the program and the answers, with a visible focus; Enter and Space choose, and keep the focus."""
    page, widget = opened(practice_page)
    page.select(1)
    page.tab_to("the program")
    page.page.keyboard.press("Tab")
    expect(options(widget).nth(0)).to_be_focused()
    outline = (
        options(widget).nth(0).evaluate("e => [getComputedStyle(e).outlineStyle, getComputedStyle(e).outlineWidth]")
    )
    assert outline == ["solid", "3px"]
    page.page.keyboard.press("Enter")
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    expect(options(widget).nth(0)).to_be_focused()
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Space")
    expect(widget.get_by_role("status")).to_have_text(RIGHT)
    expect(options(widget).nth(1)).to_be_focused()
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Tab")
    assert page.focused() == "", "the focus can not leave the widget"
    assert recorded(page) == [("03.q1", 0, False), ("03.q1", 1, True)]


def test_the_notebooks_own_keys_do_not_act_in_it(practice_page: Open) -> None:
    """d d deletes no cell, arrows, j and k go to no other, and a, b and m make none."""
    page, widget = opened(practice_page)
    before = [cell["source"] for cell in page.save()["cells"]]
    page.select(1)
    options(widget).nth(0).focus()
    for key in ["d", "d", "ArrowDown", "ArrowUp", "j", "k", "a", "b", "m", "x", "0", "0", "Enter", "Escape"]:
        page.page.keyboard.press(key)
    expect(widget.get_by_role("status")).to_have_text(WRONG)  # Enter is a button's own key
    expect(options(widget).nth(0)).to_be_focused()
    assert page.page.locator(".jp-Dialog").count() == 0
    assert page.page.locator(".jp-Cell.jp-mod-active").inner_text().count("03.q1") > 0
    after = page.save()["cells"]
    assert [(cell["source"], cell["cell_type"]) for cell in after] == [(source, "code") for source in before]
    assert [cell["execution_count"] for cell in after] == [1, 2, 3]


def test_the_keys_that_run_a_cell_do_so_from_within_it(practice_page: Open) -> None:
    """Shift+Enter on an answer runs the widget's cell and goes to the next, as everywhere else; nothing is answered."""
    page, widget = opened(practice_page)
    page.select(1)
    options(widget).nth(0).focus()
    page.page.keyboard.press("Shift+Enter")
    page.page.keyboard.press("Shift+Enter")
    page.wait_until_idle()
    assert [cell["execution_count"] for cell in page.save()["cells"]][:3] == [1, 4, 5]
    assert recorded(page) == []


def test_it_comes_back_after_a_kernel_restart(practice_page: Open) -> None:
    """The old widget says that its kernel is gone; run again, the cell shows the answer of the progress file."""
    page, widget = opened(practice_page)
    options(widget).nth(0).click()
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    page.restart()
    options(widget).nth(1).click()
    expect(widget.get_by_role("status")).to_have_text("The kernel is a new one: run this cell again.")
    page.run_all()
    widget = page.widget("choose")
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    assert pressed(widget) == ["true", "false", "false"]
    options(widget).nth(1).click()
    expect(widget.get_by_role("status")).to_have_text(RIGHT)
    assert recorded(page) == [("03.q1", 0, False), ("03.q1", 1, True)]


def test_it_comes_back_after_a_page_reload(practice_page: Open) -> None:
    """Loaded again, the page shows the answer, and takes another."""
    page, widget = opened(practice_page)
    options(widget).nth(0).click()
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    page.reload()
    widget = page.widget("choose")
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    options(widget).nth(1).click()
    expect(widget.get_by_role("status")).to_have_text(RIGHT)


def test_an_answer_shows_before_the_kernel_can_judge_it(practice_page: Open, tmp_path: Path) -> None:
    """While a cell runs, a click is marked at once and the page says that it waits; the verdict comes after the cell."""
    gate = tmp_path / "gate"
    page = practice_page([*CELLS[:2], f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.05)"])
    page.run(0)
    page.run(1)
    widget = page.widget("choose")
    page.run(2, wait=False)
    said = widget.evaluate("""e => {
        e.querySelectorAll('.ae-option')[1].click();
        return e.querySelector('[role=status]').textContent;
    }""")
    assert said == "running the program …"
    assert pressed(widget) == ["false", "true", "false"]
    expect(widget.get_by_role("status")).to_have_text(
        "running the program … No answer yet: the kernel is busy with a cell, or is gone.", timeout=60_000
    )
    assert page.is_running(2)
    gate.touch()
    expect(widget.get_by_role("status")).to_have_text(RIGHT)


@pytest.mark.parametrize("windowing", ["full", "contentVisibility"])
def test_it_survives_being_scrolled_out_of_sight(practice_page: Open, windowing: str) -> None:
    """JupyterLab may take cells that are out of view off the page; back in view, the widget is as it was."""
    page = practice_page([*CELLS[:2], *["pass\n" * 40] * 8], windowing=windowing)
    for cell in (0, 1):
        page.run(cell)
    widget = page.widget("choose")
    options(widget).nth(0).click()
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    panel = page.page.locator(".jp-NotebookPanel .jp-WindowedPanel-outer")
    panel.evaluate("e => e.scrollTo(0, e.scrollHeight)")
    page.page.locator(".jp-NotebookPanel .jp-CodeCell .jp-InputPrompt").last.click()  # the active cell is always kept
    expect(widget).not_to_be_in_viewport()
    panel.evaluate("e => e.scrollTo(0, 0)")
    widget = page.widget("choose")
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    options(widget).nth(1).click()
    expect(widget.get_by_role("status")).to_have_text(RIGHT)


def test_axe_finds_nothing_in_any_state_light_and_dark(practice_page: Open) -> None:
    """axe-core, on the widget alone: unanswered, not yet, and right; and screenshots, wide and narrow."""
    page, widget = opened(practice_page)
    assert page.violations_in_both_themes(widget) == []
    options(widget).nth(0).click()
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    assert page.violations_in_both_themes(widget) == []
    page.screens("choose-not-yet", widget)
    options(widget).nth(1).click()
    expect(widget.get_by_role("status")).to_have_text(RIGHT)
    assert page.violations_in_both_themes(widget) == []
    page.screens("choose-right", widget)
    page.resize(700)
    page.screens("choose-narrow", widget)
    assert widget.evaluate("e => e.scrollWidth <= e.clientWidth"), "it does not fit into a narrow page"
