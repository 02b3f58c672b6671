"""Where else than in JupyterLab a lesson is opened: Notebook 7, and places that have no widgets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from .practice_page import PracticePage

pytestmark = pytest.mark.timeout(900)
CELLS = ["from sandbox.learn import practice", 'practice("03.q1")', "print(practice('03.q1'))"]
WRONG = (
    "✗ not yet The inner clause stands nearer, and SoftTimeLimitExceeded is an Exception: the outer one never sees it."
)
Open = Callable[..., PracticePage]


def test_a_widget_works_in_notebook_7(practice_page: Open) -> None:
    """Drawn, answered by mouse and by keyboard, accessible, and back after a restart and a reload."""
    page = practice_page(CELLS, front="notebook")
    page.run_all()
    widget = page.widget("choose")
    answers = widget.get_by_role("group", name="answers").get_by_role("button")
    answers.nth(1).click()
    expect(widget.get_by_role("status")).to_contain_text("✓ right")
    answers.nth(0).focus()
    for key in ("d", "d", "Enter"):
        page.page.keyboard.press(key)
    expect(widget.get_by_role("status")).to_have_text(WRONG)
    assert page.violations_in_both_themes(widget) == []
    page.screens("choose-notebook", widget)
    page.restart()
    page.run_all()
    expect(page.widget("choose").get_by_role("status")).to_have_text(WRONG)
    page.reload()
    expect(page.widget("choose").get_by_role("status")).to_have_text(WRONG)
    assert [entry.data["right"] for entry in page.entries("answer")] == [True, False]


def test_the_saved_notebook_has_the_widget_as_text(practice_page: Open) -> None:
    """Where a place draws no widgets, as VS Code without its extension, it shows the output's text: all of the picture."""
    page = practice_page(CELLS)
    page.run_all()
    page.widget("choose")
    _, shown, printed = page.save()["cells"]
    data = shown["outputs"][0]["data"]
    assert "application/vnd.jupyter.widget-view+json" in data
    text = "".join(data["text/plain"])
    assert text == "".join(printed["outputs"][0]["text"]).rstrip("\n")
    for line in ("What does this print?", 'print("time is up")', "  b) the row is bad", '.answer("a")'):
        assert line in text
