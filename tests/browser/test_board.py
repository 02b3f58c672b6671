"""The live board in a browser: it moves while a cell runs, with a hundred jobs, by keyboard, after a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from .course_lab import PATIENT
from .practice_page import PracticePage

pytestmark = pytest.mark.timeout(900)
expect.set_options(timeout=PATIENT * 1000)

OPEN = """
from sandbox.services import Lab
from sandbox.learn import board
import os, time
lab = Lab.open("03", quiet=True)
tasks = lab.write_file("tasks", '''
import os, time
def until(job, file):
    job.expect(3)
    job.item_done(0)
    while not os.path.exists(file):
        time.sleep(0.01)
    job.item_done(1)
    job.complete()
def deaf(job):
    job.expect(3)
    job.item_done(0)
    try:
        time.sleep(30)
    except Exception as error:
        job.item_failed(1, error)
    job.time_out("the limit came in item 1")
def quick(job):
    job.fail("no such customer: <b>7</b>")
''')
"""


def until(file: Path, before: str = "") -> str:
    """A cell that blocks until the file is there."""
    return f"{before}\nwhile not os.path.exists({str(file)!r}): time.sleep(0.01)"


def rows(board: Locator) -> Locator:
    return board.locator("tbody tr:not(.ae-none)")


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: tmp_path / name


def test_it_moves_while_a_later_cell_runs(practice_page: Any, files: Any) -> None:
    """Running and ended are both on the page, and a story opened, before that cell is over."""
    go, out = files("go"), files("out")
    page: PracticePage = practice_page(
        [OPEN, "board()", until(out, f"job = lab.submit(tasks.until, {{'file': {str(go)!r}}})")]
    )
    page.run(0)
    page.run(1)
    board = page.widget("board")
    expect(board).to_contain_text("No jobs yet.")
    page.run(2, wait=False)
    expect(rows(board)).to_have_count(1)
    expect(rows(board).first).to_contain_text("running")
    expect(rows(board).first).to_contain_text("1 of 3")
    expect(rows(board).first).to_contain_text("no limit")
    rows(board).first.get_by_role("button").click()
    expect(board.locator(".ae-question", has_text="Story of job")).to_be_visible()
    expect(board).to_contain_text("items: item 0 done")
    assert page.is_running(2)
    go.touch()
    expect(rows(board).first).to_contain_text("completed")
    expect(rows(board).first).to_contain_text("took")
    expect(board.get_by_role("status").last).to_contain_text("ended: completed")
    expect(board).to_contain_text("the row says completed")
    assert page.is_running(2)
    out.touch()
    page.wait_until_idle()


def test_a_running_job_counts_down_by_itself(practice_page: Any, files: Any) -> None:
    """The page goes from the soft limit to the hard one and past it without a word of the kernel about the row."""
    page: PracticePage = practice_page(
        [
            OPEN,
            "board()",
            "row = lab.jobs.add('load', soft_limit_seconds=2, hard_limit_seconds=4); lab.jobs.start(row.id, lease_seconds=60)",
        ]
    )
    page.run_all()
    time = rows(page.widget("board")).first.locator("td").nth(4)
    seen = []
    for words in ("until the soft limit", "until the hard limit", "past its limit by"):
        expect(time).to_contain_text(words)
        seen.append(time.inner_text())
    assert seen[0] in ("2 s until the soft limit", "1 s until the soft limit")


def test_a_hundred_jobs_are_patched_in_place(practice_page: Any, files: Any) -> None:
    """Rows keep their nodes, the focus, the selection and the place scrolled to, while all of them progress."""
    go = files("go")
    page: PracticePage = practice_page(
        [
            OPEN,
            "made = [lab.jobs.add('load', total=20) for _ in range(100)]\n"
            "for one in made: lab.jobs.start(one.id, lease_seconds=600)",
            "board()",
            f"""
while not os.path.exists({str(go)!r}): time.sleep(0.01)
for done in range(1, 21):
    for one in made:
        lab.jobs.progress(one.id, done)
for one in made:
    lab.jobs.finish(one.id, "failed" if one is made[3] else "completed")
""",
        ]
    )
    for cell in range(3):
        page.run(cell)
    board = page.widget("board")
    expect(rows(board)).to_have_count(100)
    button = rows(board).nth(60).get_by_role("button")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    board.evaluate("e => { e.querySelectorAll('tbody tr').forEach((row, n) => { row.mine = n; }); }")
    box = board.locator(".ae-table")
    before = box.evaluate("e => e.scrollTop")
    assert before > 0
    page.run(3, wait=False)
    go.touch()
    # Running a cell takes the focus; a person who reads the board gives it back.
    button.focus()
    expect(board.get_by_role("status").last).to_contain_text("jobs ended: ")
    expect(board.get_by_text("20 of 20")).to_have_count(100)
    expect(board.locator(".ae-state.ae-completed")).to_have_count(99)
    assert board.evaluate("e => [...e.querySelectorAll('tbody tr')].every((row, n) => row.mine === n)")
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert box.evaluate("e => e.scrollTop") == before
    page.wait_until_idle()
    assert page.violations_in_both_themes(board) == []
    page.screens("board-hundred", board)


def test_it_is_read_and_used_by_keyboard(practice_page: Any, files: Any) -> None:
    """Tab reaches pause and every job; Enter opens a story, Space closes it; a paused board waits."""
    page: PracticePage = practice_page(
        [
            OPEN,
            "board()",
            "jobs = [lab.run(tasks.quick), lab.run(tasks.deaf, soft_time_limit=1)]",
            "lab.jobs.add('late')",
        ]
    )
    for cell in range(3):
        page.run(cell)
    board = page.widget("board")
    expect(rows(board)).to_have_count(2)
    expect(board).to_contain_text("no such customer: <b>7</b>")
    board.get_by_role("button").first.focus()
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Enter")
    second = rows(board).nth(1)
    expect(second.get_by_role("button")).to_have_attribute("aria-pressed", "true")
    expect(board.get_by_role("img")).to_be_visible()
    expect(board).to_contain_text("soft limit delivered at tasks.py line 14: time.sleep(30)")
    expect(board.get_by_role("status").first).to_contain_text("shown below the table")
    assert page.violations_in_both_themes(board) == []
    page.screens("board", board)
    second.get_by_role("button").focus()
    page.page.keyboard.press("Space")
    expect(board.get_by_role("img")).to_have_count(0)
    page.tab_to("Pause updates", key="Shift+Tab")
    page.page.keyboard.press("Enter")
    expect(board).to_contain_text("Paused")
    assert page.focused() == "Resume updates"
    page.run(3)
    page.wait_until_idle()
    assert rows(board).count() == 2
    board.get_by_role("button", name="Resume updates").press("Enter")
    expect(rows(board)).to_have_count(3)
    for scope in ("col", "row"):
        assert board.locator(f"th[scope={scope}]").count() > 2
    assert board.locator("caption").inner_text() == "Jobs of lab 03, oldest first"


def test_it_comes_back_after_a_restart_and_a_reload(practice_page: Any, files: Any) -> None:
    """A page that is loaded again has every row and the story; an old board says it hears nothing, a new one is empty."""
    page: PracticePage = practice_page(
        [OPEN, "shown = board()\nshown", "job = lab.run(tasks.quick); shown.select(job); None"]
    )
    page.run_all()
    board = page.widget("board")
    expect(board).to_contain_text("Story of job")
    page.reload()
    board = page.widget("board")
    expect(rows(board)).to_have_count(1)
    expect(board).to_contain_text("Story of job")
    page.run(2)
    expect(rows(board)).to_have_count(2)
    page.restart()
    expect(board).to_contain_text("No news from the kernel for")
    page.run(0)
    page.run(1)
    board = page.widget("board")
    expect(board).to_contain_text("No jobs yet.")
    page.run(2)
    expect(rows(board)).to_have_count(1)


def test_it_says_when_it_has_stopped(practice_page: Any, files: Any) -> None:
    """A closed lab and a newer board each have their sentence, and there is nothing left to pause."""
    page: PracticePage = practice_page(
        [OPEN, "board()", "lab.jobs.start(lab.jobs.add('load').id, lease_seconds=9)", "board()", "lab.close()"]
    )
    for cell in range(4):
        page.run(cell)
    expect(page.widget("board")).to_contain_text("■ Stopped. A newer board of this lab was opened")
    newer = page.widget("board", 1)
    expect(newer).to_contain_text("running for")
    page.run(4)
    expect(newer).to_contain_text("■ Stopped. The lab was closed")
    expect(newer.get_by_role("button", name="Pause updates")).to_be_disabled()


def test_it_works_in_notebook_7(practice_page: Any, files: Any) -> None:
    """The same page's side, in the other front end."""
    page: PracticePage = practice_page([OPEN, "board()", "lab.run(tasks.quick)"], front="notebook")
    page.run_all()
    expect(rows(page.widget("board"))).to_have_count(1)
    expect(page.widget("board")).to_contain_text("✗ failed")
