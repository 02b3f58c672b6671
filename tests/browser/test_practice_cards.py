"""Flashcards in a real JupyterLab: by mouse, by keyboard, after a restart and a reload, light and dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .practice_page import PracticePage, until

pytestmark = pytest.mark.timeout(900)
GLOSSARY = """
[[term]]
name = "hard limit"
lesson = "03"
text = "After so many seconds the process is killed."

[[term]]
name = "ledger"
lesson = "03"
text = "The sandbox's own record of what happened to a job."

[[term]]
name = "soft limit"
lesson = "03"
text = "After so many seconds an exception appears at whatever line is running."
"""
CELLS = ["from sandbox.learn import cards", 'cards("03")']
Open = Callable[..., PracticePage]


def opened(practice_page: Open, cells: list[str] = CELLS) -> tuple[PracticePage, Locator]:
    """A notebook with the deck of lesson 03, from a glossary of three terms."""
    page = practice_page(cells)
    (page.server.place.root / "lessons/practice/glossary.toml").write_text(GLOSSARY)
    page.run_all()
    return page, page.widget("cards")


def front(widget: Locator) -> Locator:
    return widget.locator(".ae-front")


def test_a_card_is_turned_and_rated_by_mouse(practice_page: Open) -> None:
    """Show reveals the back, each rating says when the card comes back, and a click on one puts the next card up."""
    page, widget = opened(practice_page)
    expect(front(widget)).to_have_text("hard limit")
    expect(widget.locator(".ae-back")).to_be_hidden()
    expect(widget.get_by_role("button", name="good")).to_be_hidden()
    widget.get_by_role("button", name="Show").click()
    expect(widget.locator(".ae-back")).to_contain_text("After so many seconds the process is killed.")
    assert [button.inner_text() for button in widget.locator(".ae-rates button").all()] == [
        "1 again: in 1 minute",
        "2 hard: in 6 minutes",
        "3 good: in 10 minutes",
        "4 easy: in 8 days",
    ]
    link = widget.get_by_role("link", name="hard limit in the glossary")
    expect(link).to_have_attribute("href", "../docs/glossary.md#hard-limit")
    widget.get_by_role("button", name="easy").click()
    expect(front(widget)).to_have_text("ledger")
    expect(widget.locator(".ae-back")).to_be_hidden()
    expect(widget.get_by_role("status")).to_have_text("hard limit: easy. It comes back in 8 days.")
    assert [(entry.item, entry.data["rating"]) for entry in page.entries("card")] == [("hard limit", "easy")]


def test_a_deck_is_done_by_keyboard(practice_page: Open) -> None:
    """Enter, Space and the digits are enough, the focus is never lost, and at the end it says when to come back."""
    page, widget = opened(practice_page)
    page.select(1)
    widget.get_by_role("button", name="Show").focus()
    for key, rating, term in (("Enter", "3", "hard limit"), ("Space", "4", "ledger"), ("Enter", "4", "soft limit")):
        expect(front(widget)).to_have_text(term)
        page.page.keyboard.press(rating)  # not before the back is seen
        page.page.keyboard.press(key)
        back = widget.locator(".ae-back")
        expect(back).to_be_focused()
        assert back.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
        page.page.keyboard.press(rating)
        expect(back).to_be_hidden()
    expect(widget.get_by_role("status")).to_have_text(
        "soft limit: easy. It comes back in 8 days. Nothing is due; next: in 10 minutes, 1 card."
    )
    expect(widget.get_by_role("button", name="Look again")).to_be_focused()
    page.page.keyboard.press("Enter")
    expect(widget.get_by_role("status")).to_have_text("Nothing is due; next: in 10 minutes, 1 card.")
    assert [entry.data["rating"] for entry in page.entries("card")] == ["good", "easy", "easy"]


def test_tab_reaches_the_ratings(practice_page: Open) -> None:
    """Without the digits: Tab goes from the back over the link to the ratings, and Enter rates."""
    page, widget = opened(practice_page)
    widget.get_by_role("button", name="Show").focus()
    page.page.keyboard.press("Space")
    page.tab_to("3 good")
    page.page.keyboard.press("Enter")
    expect(front(widget)).to_have_text("ledger")
    expect(widget.get_by_role("button", name="Show")).to_be_focused()


def test_the_deck_goes_on_after_a_restart_and_a_reload(practice_page: Open) -> None:
    """A rated card does not come again before its time, neither in a new kernel nor on a page loaded again."""
    page, widget = opened(practice_page)
    widget.get_by_role("button", name="Show").click()
    widget.get_by_role("button", name="good").click()
    expect(front(widget)).to_have_text("ledger")
    page.restart()
    page.run_all()
    widget = page.widget("cards")
    expect(front(widget)).to_have_text("ledger")
    expect(widget.locator(".ae-card > .ae-quiet")).to_have_text("Cards of lesson 03: 2 left")
    widget.get_by_role("button", name="Show").click()
    page.wait_until_idle()
    page.reload()
    widget = page.widget("cards")
    expect(front(widget)).to_have_text("ledger")
    expect(widget.locator(".ae-back")).to_be_visible()
    widget.get_by_role("button", name="easy").click()
    expect(front(widget)).to_have_text("soft limit")


def test_a_card_is_turned_while_a_cell_runs(practice_page: Open) -> None:
    """A busy kernel keeps nobody from looking at the back; a rating is acknowledged at once."""
    page, _ = opened(practice_page, [*CELLS, "None"])
    gate = page.file.with_suffix(".gate")
    page.page.locator(".jp-NotebookPanel .jp-CodeCell").nth(2).locator(".cm-content").click()
    page.page.keyboard.press("Control+a")
    page.page.keyboard.type(f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)")
    page.run(2, wait=False)
    until(lambda: page.is_running(2), "a running cell")
    widget = page.widget("cards")
    widget.get_by_role("button", name="Show").click()
    expect(widget.locator(".ae-back")).to_be_visible()
    widget.get_by_role("button", name="good").click()
    expect(widget.get_by_role("status")).to_contain_text("good")
    assert page.is_running(2)
    gate.touch()
    expect(front(widget)).to_have_text("ledger")


def test_axe_finds_nothing_wrong_with_the_cards(practice_page: Open) -> None:
    """Light and dark: the front, the back, and the end of the deck; screenshots for people to look at."""
    page, widget = opened(practice_page)
    assert page.violations_in_both_themes(widget) == []
    page.screens("practice-cards-front", widget)
    widget.get_by_role("button", name="Show").click()
    assert page.violations_in_both_themes(widget) == []
    page.screens("practice-cards-back", widget)
    page.resize(500)
    assert widget.evaluate("e => e.scrollWidth <= e.clientWidth")
    page.resize(1400)
    for term in ("ledger", "soft limit", ""):
        widget.get_by_role("button", name="easy").click()
        expect(front(widget)).to_have_text(term)
        if term:
            widget.get_by_role("button", name="Show").click()
    expect(widget.get_by_role("button", name="Look again")).to_be_visible()
    assert page.violations_in_both_themes(widget) == []
    page.screens("practice-cards-over", widget)
