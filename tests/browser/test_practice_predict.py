"""A prediction in a browser: locked in by mouse and by keys, compared with a run, kept over a restart and a reload."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from .practice_page import PracticePage

pytestmark = pytest.mark.timeout(900)

CELLS = ["from sandbox.learn import practice", 'said = practice("03.naive")\nsaid', 'said.outcome("running")']
RIGHT = "✓ You said running, and it is running."
WRONG = "✗ You said failed; it is running."
Open = Callable[..., PracticePage]


def says(widget: Locator, text: str) -> None:
    expect(widget.get_by_role("status")).to_contain_text(text)


def prints(page: PracticePage, text: str) -> None:
    expect(page.page.locator(".jp-OutputArea-output pre", has_text=text)).to_be_visible()


def begin(page: PracticePage) -> Locator:
    page.run(0)
    page.run(1)
    return page.widget("predict")


def test_by_mouse(practice_page: Open) -> None:
    """Choose, lock in, run the next cell: it says what was said and what it is, and why; then predict again."""
    page = practice_page(CELLS)
    widget = begin(page)
    lock = widget.get_by_role("button", name="Lock in")
    lock.click()
    says(widget, "Choose an outcome first.")
    assert page.entries("answer") == []
    widget.get_by_text("completed", exact=True).click()
    widget.get_by_text("failed", exact=True).click()
    lock.click()
    says(widget, "Your answer is locked in. Run the next cell.")
    expect(widget.get_by_role("radio", name="failed")).to_be_checked()
    for radio in widget.get_by_role("radio").all():
        expect(radio).to_be_disabled()
    page.run(2)
    says(widget, f"{WRONG} It is Celery's own result that says FAILURE.")
    expect(widget.locator("label", has_text="failed")).to_contain_text("← you said this")
    expect(widget.locator("label", has_text="running")).to_contain_text("← this is what happened")
    prints(page, f"03.naive  {WRONG}")
    widget.get_by_role("button", name="Predict again").click()
    expect(widget.get_by_role("radio", name="completed")).to_be_focused()
    expect(widget.get_by_role("button", name="Predict again")).to_be_hidden()
    widget.get_by_text("running", exact=True).click()
    lock.click()
    says(widget, "Your answer is locked in.")
    page.run(2)
    says(widget, f"{RIGHT} The soft limit comes once")
    assert [entry.data.get("right") for entry in page.entries("answer")] == [None, False, None, None, True]


def test_by_keyboard(practice_page: Open) -> None:
    """Tab to the choice, arrows, Tab, Enter; then Shift+Enter runs the cells from there, and the answer has arrived."""
    page = practice_page(CELLS)
    widget = begin(page)
    page.select(1)
    widget.get_by_role("radio").first.wait_for()
    first = widget.get_by_role("radio", name="completed")
    for _ in range(30):
        page.page.keyboard.press("Tab")
        if first.evaluate("e => e === document.activeElement"):
            break
    expect(first).to_be_focused()
    page.page.keyboard.press("Space")
    for _ in range(3):
        page.page.keyboard.press("ArrowDown")
    expect(widget.get_by_role("radio", name="running")).to_be_checked()
    page.page.keyboard.press("Tab")
    expect(widget.get_by_role("button", name="Lock in")).to_be_focused()
    page.page.keyboard.press("Enter")
    says(widget, "Your answer is locked in.")
    page.page.keyboard.press("Shift+Enter")
    page.page.keyboard.press("Shift+Enter")
    prints(page, f"03.naive  {RIGHT}")
    says(page.widget("predict"), RIGHT)


def test_shift_enter_right_after_the_click(practice_page: Open) -> None:
    """The click and the keys that follow it arrive in this order, also while a cell still runs."""
    gate = "import pathlib, time\nwhile not pathlib.Path('gate').exists():\n    time.sleep(0.05)"
    page = practice_page([*CELLS, gate])
    widget = begin(page)
    page.run(3, wait=False)
    widget.get_by_text("running", exact=True).click()
    widget.get_by_role("button", name="Lock in").click()
    page.page.keyboard.press("Shift+Enter")
    page.page.keyboard.press("Shift+Enter")
    Path(page.file.parent, "gate").touch()
    prints(page, f"03.naive  {RIGHT}")
    says(page.widget("predict"), RIGHT)
    assert [entry.data.get("right") for entry in page.entries("answer")] == [None, True]


def test_a_kernel_that_is_gone(practice_page: Open) -> None:
    """After a restart the widget of the old kernel says that its cell has to be run again, and then it works."""
    page = practice_page(CELLS)
    widget = begin(page)
    page.restart()
    widget.get_by_text("failed", exact=True).click()
    widget.get_by_role("button", name="Lock in").click()
    says(widget, "run this cell again")
    widget = begin(page)
    widget.get_by_text("failed", exact=True).click()
    widget.get_by_role("button", name="Lock in").click()
    says(widget, "Your answer is locked in.")


def test_run_all_without_an_answer(practice_page: Open) -> None:
    """Run All is never held up: it tells what happened, and then it is too late to predict."""
    page = practice_page(CELLS)
    page.run_all()
    widget = page.widget("predict")
    says(widget, "It is running. Nothing was predicted. The soft limit comes once")
    prints(page, "03.naive  It is running. Nothing was predicted.")
    expect(widget.get_by_role("button", name="Too late to predict")).to_have_attribute("aria-disabled", "true")
    expect(widget.get_by_role("radio", name="failed")).to_be_disabled()
    assert page.entries("answer") == []
    widget.get_by_role("button", name="Predict again").click()
    expect(widget.get_by_role("radio", name="failed")).to_be_enabled()


def test_after_a_restart_and_a_reload(practice_page: Open) -> None:
    """The locked answer comes back with a new kernel, the outcome with the run; a new page shows both."""
    page = practice_page(CELLS)
    widget = begin(page)
    widget.get_by_text("failed", exact=True).click()
    widget.get_by_role("button", name="Lock in").click()
    says(widget, "Your answer is locked in.")
    page.restart()
    widget = begin(page)
    says(widget, "Your answer is locked in.")
    expect(widget.get_by_role("radio", name="failed")).to_be_checked()
    page.run(2)
    says(widget, WRONG)
    page.reload()
    widget = page.widget("predict")
    says(widget, WRONG)
    expect(widget.get_by_role("radio", name="failed")).to_be_checked()
    widget.get_by_role("button", name="Predict again").click()
    expect(widget.get_by_role("radio", name="failed")).to_be_enabled()


def test_for_everyone(practice_page: Open) -> None:
    """axe-core finds nothing in light and dark, before, locked, and after; screenshots are made."""
    page = practice_page(CELLS)
    widget = begin(page)
    assert page.violations_in_both_themes(widget) == []
    page.screens("practice-predict-open", widget)
    widget.get_by_text("failed", exact=True).click()
    widget.get_by_role("button", name="Lock in").click()
    says(widget, "Your answer is locked in.")
    assert page.violations_in_both_themes(widget) == []
    page.screens("practice-predict-locked", widget)
    page.run(2)
    says(widget, WRONG)
    assert page.violations_in_both_themes(widget) == []
    page.screens("practice-predict-told", widget)
