"""A program with gaps in a real JupyterLab: by mouse, by keyboard, after a restart and a reload, light and dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .practice_page import PracticePage

pytestmark = pytest.mark.timeout(900)
CELLS = ['from sandbox.learn import practice\npractice("03.g1")', "print('next')"]
Open = Callable[..., PracticePage]


def opened(practice_page: Open) -> tuple[PracticePage, Locator]:
    page = practice_page(CELLS)
    page.run_all()
    return page, page.widget("gap")


def fill(widget: Locator, *answers: str) -> None:
    for place, answer in enumerate(answers, 1):
        widget.get_by_role("textbox", name=f"gap {place} of 2").fill(answer)


def test_the_gaps_are_filled_by_mouse(practice_page: Open) -> None:
    """A mistake is told its cause, a right filling the reason; what was typed stays, and both are recorded."""
    page, widget = opened(practice_page)
    status = widget.get_by_role("status")
    fill(widget, "SoftTimeLimitExceeded", "pass")
    widget.get_by_role("button", name="Check").click()
    expect(status).to_contain_text("✗ not yet You have named the deadline, and then dropped it")
    expect(widget.get_by_role("textbox", name="gap 2 of 2")).to_have_value("pass")
    fill(widget, "SoftTimeLimitExceeded", "raise")
    widget.get_by_role("button", name="Check").click()
    expect(status).to_contain_text("✓ right The first clause that fits takes the error.")
    assert [entry.data["right"] for entry in page.entries("answer")] == [False, True]


def test_the_gaps_are_filled_by_keyboard(practice_page: Open) -> None:
    """Tab between the gaps, Enter in one checks, the focus stays, and the notebook does not run a cell."""
    page, widget = opened(practice_page)
    page.select(0)
    widget.get_by_role("textbox", name="gap 1 of 2").focus()
    page.page.keyboard.type("SoftTimeLimitExceeded")
    page.page.keyboard.press("Tab")
    second = widget.get_by_role("textbox", name="gap 2 of 2")
    expect(second).to_be_focused()
    assert second.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.page.keyboard.press("Enter")
    expect(widget.get_by_role("status")).to_have_text("Not attempted: gap 2 is empty. Type one line of code into each.")
    page.page.keyboard.type("raise")
    page.page.keyboard.press("Enter")
    expect(widget.get_by_role("status")).to_contain_text("✓ right")
    expect(second).to_be_focused()
    page.tab_to("Check")
    page.page.keyboard.press("Enter")
    expect(widget.get_by_role("status")).to_contain_text("✓ right")
    assert len(page.entries("answer")) == 2


def test_a_filling_that_is_not_expected_shows_what_happened(practice_page: Open) -> None:
    """The error and its line, what it printed, and what it should print; a gap is as wide as its text."""
    _, widget = opened(practice_page)
    first = widget.get_by_role("textbox", name="gap 1 of 2")
    narrow = first.bounding_box()
    fill(widget, "(SoftTimeLimitExceeded, KeyboardInterrupt)", "<b>bold</b>")
    wide = first.bounding_box()
    assert narrow and wide and wide["width"] > 2 * narrow["width"]
    assert first.evaluate("e => e.scrollWidth <= e.clientWidth")
    widget.get_by_role("button", name="Check").click()
    status = widget.get_by_role("status")
    expect(status).to_contain_text("The program ends with SyntaxError")
    expect(status).to_contain_text("<b>bold</b>")
    assert status.locator("b").count() == 0
    expect(status).to_contain_text("It should print:bad row 1\ntime is up")


def test_a_pasted_program_is_refused(practice_page: Open) -> None:
    """Lines are not silently joined into one."""
    _, widget = opened(practice_page)
    first = widget.get_by_role("textbox", name="gap 1 of 2")
    first.evaluate(
        """input => {
            const data = new DataTransfer();
            data.setData("text/plain", "a\\nb");
            input.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
        }"""
    )
    expect(widget.get_by_role("status")).to_contain_text("A gap is for one line of code")
    expect(first).to_have_value("")


def test_a_check_is_acknowledged_and_answered_again_and_again(practice_page: Open) -> None:
    """The page says at once that the program runs; the same answer twice is answered twice."""
    _, widget = opened(practice_page)
    fill(widget, "Exception", "raise")
    status = widget.get_by_role("status")
    for _ in range(2):
        said = widget.get_by_role("button", name="Check").evaluate(
            "b => { b.click(); return b.closest('.ae').querySelector('[role=status]').textContent; }"
        )
        assert said == "running the program …"
        expect(status).to_contain_text("Your clause takes bad row 1 as well")


def test_what_was_typed_comes_back_after_a_restart_and_a_reload(practice_page: Open) -> None:
    """From the progress file after a kernel restart, from the kernel after a reload; both still answer."""
    page, widget = opened(practice_page)
    fill(widget, "SoftTimeLimitExceeded", "break")
    widget.get_by_role("button", name="Check").click()
    expect(widget.get_by_role("status")).to_contain_text("✗ not yet")
    page.restart()
    page.run_all()
    widget = page.widget("gap")
    expect(widget.get_by_role("textbox", name="gap 2 of 2")).to_have_value("break")
    expect(widget.get_by_role("status")).to_contain_text("✗ not yet `break`".replace("`", ""))
    page.reload()
    widget = page.widget("gap")
    expect(widget.get_by_role("textbox", name="gap 1 of 2")).to_have_value("SoftTimeLimitExceeded")
    fill(widget, "SoftTimeLimitExceeded", "raise")
    widget.get_by_role("button", name="Check").click()
    expect(widget.get_by_role("status")).to_contain_text("✓ right")


def test_axe_finds_nothing_wrong_with_the_gaps(practice_page: Open) -> None:
    """Light and dark, empty and with a long message; screenshots of both for people to look at."""
    page, widget = opened(practice_page)
    assert page.violations_in_both_themes(widget) == []
    fill(widget, "SoftTimeLimitExceeded", "print(1)")
    widget.get_by_role("button", name="Check").click()
    expect(widget.get_by_role("status")).to_contain_text("It should print:")
    assert page.violations_in_both_themes(widget) == []
    page.screens("gap", widget)
    page.resize(500)
    assert widget.evaluate("e => e.scrollWidth <= e.clientWidth")
