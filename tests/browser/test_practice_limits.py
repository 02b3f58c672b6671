"""The timeline of two limits in a browser: dragged, moved by keys, kept over a restart and a reload."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from .practice_page import PracticePage

pytestmark = pytest.mark.timeout(900)

CELLS = ["from sandbox.learn import limits", "limits(wait=5, timeout=10, deadline=12, work=20)"]
DEADLINE_WINS = "expired: the deadline wins: stopped at 12 min, 7 min after it started, with 35 % of the work done."
TIMEOUT_WINS = "timed_out: the timeout wins: stopped at 15 min, 10 min after it started, with 50 % of the work done."
MINUTE = 10  # of the picture's own units
Open = Callable[..., PracticePage]


def handle(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=name)


def place(of: Locator) -> tuple[float, float]:
    box = of.locator("circle").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def minute_in_pixels(widget: Locator) -> float:
    return MINUTE * float(widget.locator("svg").evaluate("e => e.getScreenCTM().a"))


def drag(page: PracticePage, widget: Locator, name: str, minutes: float, *, drop: bool = True) -> None:
    """Take a handle with the mouse, move it in small steps, and let it go."""
    x, y = place(handle(widget, name))
    mouse = page.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + minutes * minute_in_pixels(widget), y + 3, steps=25)
    if drop:
        mouse.up()


def says(widget: Locator, text: str) -> None:
    expect(widget.get_by_role("status")).to_contain_text(text)


def test_by_mouse(practice_page: Open) -> None:
    """Dragging the deadline away lets the timeout win; a longer wait moves timeout and work along, and not the deadline."""
    page = practice_page(CELLS)
    page.run_all()
    widget = page.widget("limits")
    says(widget, DEADLINE_WINS)
    drag(page, widget, "deadline", 28, drop=False)
    says(widget, TIMEOUT_WINS)  # while it is still held
    assert page.entries("sliders") == []
    page.page.mouse.up()
    expect(handle(widget, "deadline")).to_have_attribute("aria-valuenow", "40")
    before = {name: place(handle(widget, name))[0] for name in ("timeout", "deadline", "work")}
    drag(page, widget, "wait", 4)
    says(widget, "timed_out: the timeout wins: stopped at 19 min, 10 min after it started")
    moved = {name: (place(handle(widget, name))[0] - x) / minute_in_pixels(widget) for name, x in before.items()}
    assert {name: round(minutes) for name, minutes in moved.items()} == {"timeout": 4, "deadline": 0, "work": 4}
    drag(page, widget, "work", -15)
    says(widget, "completed: the work is done first: completed at 14 min, 5 min after it started")
    drag(page, widget, "deadline", -35)
    says(widget, "expired: the deadline wins: the attempt never starts.")
    drag(page, widget, "wait", -200)  # out of the picture
    expect(handle(widget, "wait")).to_have_attribute("aria-valuenow", "0")
    says(widget, "stopped at 5 min, 5 min after it started, with all of the work done")
    page.wait_until_idle()
    assert [entry.data["values"] for entry in page.entries("sliders")] == [
        {"wait": 5, "timeout": 10, "deadline": 40, "work": 20},
        {"wait": 9, "timeout": 10, "deadline": 40, "work": 20},
        {"wait": 9, "timeout": 10, "deadline": 40, "work": 5},
        {"wait": 9, "timeout": 10, "deadline": 5, "work": 5},
        {"wait": 0, "timeout": 10, "deadline": 5, "work": 5},
    ]
    widget.get_by_role("button", name="Back to the lesson's numbers").click()
    says(widget, DEADLINE_WINS)


def test_by_keyboard(practice_page: Open) -> None:
    """Arrows move by one, Page keys by ten, Home and End to the ends; each handle says its name and its minutes."""
    page = practice_page(CELLS)
    page.run_all()
    widget = page.widget("limits")
    says(widget, DEADLINE_WINS)
    page.select(1)
    page.tab_to("deadline")
    deadline = handle(widget, "deadline")
    expect(deadline).to_be_focused()
    for key, minute in [
        ("ArrowRight", 13),
        ("ArrowUp", 14),
        ("ArrowLeft", 13),
        ("ArrowDown", 12),
        ("PageUp", 22),
        ("PageDown", 12),
        ("Home", 0),
        ("ArrowLeft", 0),
        ("End", 60),
        ("PageUp", 60),
    ]:
        page.page.keyboard.press(key)
        expect(deadline).to_have_attribute("aria-valuenow", str(minute))
        expect(deadline).to_have_attribute("aria-valuetext", f"at minute {minute}")
        expect(deadline).to_be_focused()
    says(widget, TIMEOUT_WINS)
    page.tab_to("timeout", key="Shift+Tab")
    page.page.keyboard.press("End")
    says(widget, "completed: the work is done first: completed at 25 min")
    timeout = handle(widget, "timeout")
    expect(timeout).to_have_attribute("aria-valuetext", "30 minutes from the start, until minute 35")
    assert [timeout.get_attribute(f"aria-value{end}") for end in ("min", "max")] == ["1", "30"]
    page.tab_to("Back to the lesson's numbers")
    assert page.entries("sliders")[-1].data["values"] == {"wait": 5, "timeout": 30, "deadline": 60, "work": 20}
    page.page.keyboard.press("Enter")
    says(widget, DEADLINE_WINS)
    assert not page.page.locator(".jp-Cell").count() > len(CELLS)  # no key reached the notebook


def test_a_busy_kernel_is_asked_for_the_newest_position(practice_page: Open) -> None:
    """The handle follows at once while a cell runs; when it has ended, one question that was on its way and the last."""
    gate = "import pathlib, time\nwhile not pathlib.Path('gate').exists():\n    time.sleep(0.05)"
    page = practice_page([*CELLS, gate, "print('moves', limits().state['moves'])"])
    page.run(0)
    page.run(1)
    widget = page.widget("limits")
    says(widget, DEADLINE_WINS)
    page.run(2, wait=False)
    drag(page, page.widget("limits"), "deadline", 28)
    expect(handle(widget, "deadline")).to_have_attribute("aria-valuenow", "40")
    says(widget, "The kernel is busy. It answers when it is free")
    assert page.is_running(2)
    Path(page.file.parent, "gate").touch()
    says(widget, TIMEOUT_WINS)
    page.wait_until_idle()
    page.run(3)
    # Where it began, the first step of the drag, and where it was let go.
    expect(page.page.locator(".jp-OutputArea-output", has_text=re.compile(r"^moves 3\s*$"))).to_be_visible()
    assert [entry.data["values"]["deadline"] for entry in page.entries("sliders")] == [40]


def test_after_a_restart_and_a_reload(practice_page: Open) -> None:
    """Where it was left is where a new kernel and a new page show it, and both can go on from there."""
    page = practice_page(CELLS)
    page.run_all()
    drag(page, page.widget("limits"), "deadline", 28)
    says(page.widget("limits"), TIMEOUT_WINS)
    page.restart()
    drag(page, page.widget("limits"), "deadline", 5)
    says(page.widget("limits"), "run this cell again")  # it has no kernel any more
    page.run_all()
    says(page.widget("limits"), TIMEOUT_WINS)
    page.reload()
    widget = page.widget("limits")
    says(widget, TIMEOUT_WINS)
    drag(page, widget, "work", -18)
    says(widget, "completed: the work is done first: completed at 7 min")


def test_the_text_twin_moves_the_picture(practice_page: Open) -> None:
    """`move` in a cell moves the handles of the one above, and prints what it says."""
    page = practice_page([*CELLS, "print(limits(wait=5, timeout=10, deadline=12, work=20).move(deadline=40))"])
    page.run_all()
    widget = page.widget("limits")
    says(widget, TIMEOUT_WINS)
    expect(handle(widget, "deadline")).to_have_attribute("aria-valuenow", "40")
    expect(page.page.locator(".jp-OutputArea-output pre", has_text=TIMEOUT_WINS)).to_be_visible()


def test_for_everyone(practice_page: Open) -> None:
    """axe-core finds nothing in light and dark, in each of the three endings, wide and narrow; screenshots are made."""
    page = practice_page(CELLS)
    page.run_all()
    widget = page.widget("limits")
    for name, moves in {"expired": {}, "timed-out": {"deadline": 28}, "completed": {"work": -15}}.items():
        for which, minutes in moves.items():
            drag(page, widget, which, minutes)
        says(widget, f"{name.replace('-', '_')}: ")
        assert page.violations_in_both_themes(widget) == []
        page.screens(f"practice-limits-{name}", widget)
    page.resize(700)
    assert page.violations(widget) == []
    page.screens("practice-limits-narrow", widget)
