"""Lines to order in a real JupyterLab: dragged, by keyboard, typed, after a restart and a reload, light and dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from sandbox.learn import content
from sandbox.learn.widgets import parsons

from .practice_page import PracticePage, until

pytestmark = pytest.mark.timeout(900)
CELLS = ['from sandbox.learn import practice\npractice("03.p1")', "print('next')"]
Open = Callable[..., PracticePage]


def opened(practice_page: Open) -> tuple[PracticePage, Locator]:
    page = practice_page(CELLS)
    page.run_all()
    return page, page.widget("parsons")


def solution() -> list[tuple[str, int]]:
    """The letter and the indentation of each line, in order."""
    item = content.item("03.p1")
    free = dict(enumerate(parsons.pool(item)))
    found = []
    for text, steps in map(parsons.split, item.lines):
        place = next(place for place, other in free.items() if other == text)
        del free[place]
        found.append((chr(ord("a") + place), steps))
    return found


def order() -> str:
    return ", ".join(letter + ">" * steps for letter, steps in solution())


def line(widget: Locator, letter: str) -> Locator:
    return widget.locator(".ae-line").filter(has=widget.page.locator(".ae-letter", has_text=f"{letter})"))


def answer(widget: Locator) -> list[tuple[str, int]]:
    """The letters in the answer, and how far in each is drawn, in steps."""
    return [
        (letter[0], round(indent / 4))
        for letter, indent in widget.locator(".ae-built .ae-line").evaluate_all(
            "all => all.map(e => [e.querySelector('.ae-letter').textContent, parseFloat(e.style.marginLeft) || 0])"
        )
    ]


def drag(page: PracticePage, widget: Locator, letter: str, below: str | None, steps: int) -> None:
    """Drag a line with the mouse to below another one of the answer, or to its top, `steps` in."""
    mouse = page.page.mouse
    built = widget.locator(".ae-built").bounding_box()
    box = line(widget, letter).bounding_box()
    upper = line(widget, below).bounding_box() if below else None
    assert built and box
    x, y = box["x"] + 12, box["y"] + box["height"] / 2
    four = widget.locator(".ae-built").evaluate(
        """box => {
            const ruler = document.createElement('span');
            ruler.textContent = '0000';
            box.append(ruler);
            const found = ruler.getBoundingClientRect().width;
            ruler.remove();
            return found;
        }"""
    )
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 10, y + 3)
    to_y = upper["y"] + upper["height"] - 2 if upper else built["y"] + 4
    mouse.move(built["x"] + 6 + 12 + steps * four, to_y, steps=4)
    mouse.up()


def test_the_lines_are_put_in_order_by_mouse(practice_page: Open) -> None:
    """Each line is dragged to its place and its indentation; then it is right, and recorded."""
    page, widget = opened(practice_page)
    page.page.set_viewport_size({"width": 1400, "height": 1400})
    widget.evaluate("e => e.scrollIntoView({block: 'center'})")
    below = None
    for place, (letter, steps) in enumerate(solution()):
        drag(page, widget, letter, below, steps)
        assert answer(widget) == solution()[: place + 1]
        below = letter
    widget.get_by_role("button", name="Check", exact=True).click()
    expect(widget.get_by_role("status")).to_contain_text("✓ right 10 of 10 lines in order. The clause near the row")
    assert [entry.data["right"] for entry in page.entries("answer")] == [True]


def test_a_line_is_dragged_within_the_answer_and_out_of_it(practice_page: Open) -> None:
    """Up, sideways, and back to the others; playwright's own drag_to takes a line too."""
    page, widget = opened(practice_page)
    page.page.set_viewport_size({"width": 1400, "height": 1400})
    widget.evaluate("e => e.scrollIntoView({block: 'center'})")
    for letter in "abc":
        line(widget, letter).drag_to(widget.locator(".ae-built"), target_position={"x": 20, "y": 40})
        assert letter in [one for one, _ in answer(widget)]
    top = answer(widget)[-1][0]
    drag(page, widget, top, None, 2)
    assert answer(widget)[0] == (top, 2)
    drag(page, widget, top, None, 0)
    assert answer(widget)[0] == (top, 0)
    line(widget, top).drag_to(widget.locator(".ae-lines").first, target_position={"x": 30, "y": 30})
    assert top not in [one for one, _ in answer(widget)] and len(answer(widget)) == 2
    line(widget, top).click()
    assert answer(widget)[-1][0] == top
    line(widget, top).click()
    assert top not in [one for one, _ in answer(widget)]


def test_the_lines_are_put_in_order_by_keyboard(practice_page: Open) -> None:
    """Enter takes a line, arrows move and indent it, the focus stays on it, and each move is announced."""
    page, widget = opened(practice_page)
    page.select(0)
    keys, status = page.page.keyboard, widget.get_by_role("status")
    right = solution()
    for place, (letter, steps) in enumerate(right):
        line(widget, letter).focus()
        keys.press("Enter" if place % 2 else "Space")
        expect(line(widget, letter)).to_be_focused()
        before = right[place - 1][1] if place else 0
        for _ in range(abs(steps - before)):
            keys.press("ArrowRight" if steps > before else "ArrowLeft")
        expect(line(widget, letter)).to_be_focused()
        indented = f", indented by {steps}" if steps else ""
        expect(status).to_have_text(f"line {letter} moved to place {place + 1} of {place + 1}{indented}")
    first, second = right[0][0], right[1][0]
    line(widget, second).focus()
    assert line(widget, second).evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    keys.press("ArrowUp")
    expect(status).to_have_text(f"line {second} moved to place 1 of 10, indented by 1")
    expect(line(widget, second)).to_be_focused()
    keys.press("ArrowUp")
    expect(status).to_contain_text("it goes no further that way")
    page.tab_to("Check")
    keys.press("Enter")
    expect(status).to_contain_text(
        f"✗ not yet 9 of 10 lines in order. Line 1 of your answer, {dict(texts(widget))[second]}, is out of place"
    )
    line(widget, first).focus()
    keys.press("ArrowUp")
    assert answer(widget) == right
    line(widget, first).focus()
    keys.press("Enter")
    expect(status).to_have_text(f"line {first} put back")
    expect(line(widget, first)).to_be_focused()
    keys.press("ArrowUp")
    expect(status).to_contain_text("is not in the answer yet: Enter takes it")
    keys.press("Enter")
    for _ in range(9):
        keys.press("ArrowUp")
    while answer(widget)[0][1]:
        keys.press("ArrowLeft")
    page.tab_to("Check")
    keys.press("Enter")
    expect(status).to_contain_text("✓ right")


def texts(widget: Locator) -> list[tuple[str, str]]:
    return [
        (letter[0], text)
        for letter, text in widget.locator(".ae-line").evaluate_all(
            "all => all.map(e => [...e.querySelectorAll('.ae-letter, .ae-text')].map(one => one.textContent))"
        )
    ]


def test_the_order_is_typed(practice_page: Open) -> None:
    """Enter checks it and shows it as lines; an order that can not be read says what to type."""
    page, widget = opened(practice_page)
    box, status = widget.get_by_role("textbox", name="Or type the order"), widget.get_by_role("status")
    box.fill("a, z")
    box.press("Enter")
    expect(status).to_contain_text("there is no line 'z'; there are a to l")
    box.fill(order())
    box.press("Enter")
    expect(status).to_contain_text("✓ right")
    expect(box).to_be_focused()
    assert answer(widget) == solution()
    widget.get_by_role("button", name="Put all back").click()
    assert answer(widget) == []
    widget.get_by_role("button", name="Check", exact=True).click()
    expect(status).to_contain_text("Not attempted: no line is placed.")
    widget.get_by_role("button", name="Check typed order").click()
    expect(status).to_contain_text("✓ right")
    assert len(page.entries("answer")) == 2


def test_a_check_is_acknowledged_and_answered_again_and_again(practice_page: Open) -> None:
    """The page says at once that it is checking; the same answer twice is answered twice."""
    _, widget = opened(practice_page)
    line(widget, "a").click()
    for _ in range(2):
        said = widget.get_by_role("button", name="Check", exact=True).evaluate(
            "b => { b.click(); return b.closest('.ae').querySelector('[role=status]').textContent; }"
        )
        assert said == "checking …"
        expect(widget.get_by_role("status")).to_contain_text("✗ not yet")


def test_lines_move_while_a_cell_runs(practice_page: Open) -> None:
    """The page does not wait for the kernel; when it is free, it has heard every move, and answers the check."""
    page = practice_page(
        [CELLS[0], "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.05)"]
    )
    page.run(0)
    page.run(1, wait=False)
    until(lambda: page.is_running(1), "a running cell")
    widget = page.widget("parsons")
    line(widget, "a").click()
    line(widget, "b").click()
    line(widget, "b").focus()
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("ArrowUp")
    assert answer(widget) == [("b", 1), ("a", 0)]
    widget.get_by_role("button", name="Check", exact=True).click()
    expect(widget.get_by_role("status")).to_have_text("checking …")
    line(widget, "b").click()
    line(widget, "c").click()
    assert answer(widget) == [("a", 0), ("c", 0)]
    assert page.is_running(1)
    (page.file.parent / "go").touch()
    until(lambda: page.entries("answer"), "the graded answer")
    page.wait_until_idle()
    assert answer(widget) == [("a", 0), ("c", 0)]
    expect(widget.get_by_role("status")).to_have_text("line c moved to place 2 of 2")
    page.reload()
    assert answer(page.widget("parsons")) == [("a", 0), ("c", 0)]


def test_the_answer_comes_back_after_a_restart_and_a_reload(practice_page: Open) -> None:
    """A reload keeps also what was not checked yet; a restart what was checked last."""
    page, widget = opened(practice_page)
    box = widget.get_by_role("textbox", name="Or type the order")
    box.fill(order().rpartition(", ")[0])
    box.press("Enter")
    expect(widget.get_by_role("status")).to_contain_text("✗ not yet 9 of 10 lines in order")
    page.restart()
    page.run_all()
    widget = page.widget("parsons")
    assert answer(widget) == solution()[:-1]
    expect(widget.get_by_role("status")).to_contain_text("✗ not yet 9 of 10 lines in order")
    last, steps = solution()[-1]
    line(widget, last).click()
    page.wait_until_idle()
    page.reload()
    widget = page.widget("parsons")
    assert [letter for letter, _ in answer(widget)] == [letter for letter, _ in solution()]
    line(widget, last).focus()
    while answer(widget)[-1][1] < steps:
        page.page.keyboard.press("ArrowRight")
    widget.get_by_role("button", name="Check", exact=True).click()
    expect(widget.get_by_role("status")).to_contain_text("✓ right")


def test_axe_finds_nothing_wrong_with_the_lines(practice_page: Open) -> None:
    """Light and dark, before and after a check; screenshots of both for people to look at."""
    page, widget = opened(practice_page)
    assert page.violations_in_both_themes(widget) == []
    box = widget.get_by_role("textbox", name="Or type the order")
    box.fill(order().replace(",", " ").rpartition(" ")[0] + "  " + "e")
    box.press("Enter")
    expect(widget.get_by_role("status")).to_contain_text("✗ not yet")
    assert page.violations_in_both_themes(widget) == []
    page.page.set_viewport_size({"width": 1400, "height": 1400})
    page.screens("parsons", widget)
    page.resize(500)
    assert widget.evaluate("e => e.scrollWidth <= e.clientWidth")
