"""The panels of a notebook: what they say, in HTML and in text, recorded and not."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import BadSetting, NoLabOpen
from sandbox.jobs.memory import MemoryStore
from sandbox.learn import content, panel, points, progress
from sandbox.services.lab import Lab

EVIL = '<script>alert("x")</script> & co'
TOML = f"""
title = "t"
[[lesson]]
number = "00"
slug = "intro"
title = "Begin"
question = "q"
minutes = 10
[[lesson]]
number = "03"
slug = "loop"
title = '{EVIL}'
question = "q"
minutes = 35
[[lesson.exercise]]
id = "03.1"
title = "t"
graded = "auto"
points = 2
[[lesson]]
number = "04"
slug = "last"
title = "Last"
question = "q"
minutes = 5
"""
ITEM = (
    '[[item]]\nid = "03.{0}"\nkind = "predict"\nquestion = "q"\nwhy = "w"\noption = [{{text = "a"}}, {{text = "b"}}]\n'
)
TERM = '[[term]]\nname = "{0}"\ntext = "t"\nlesson = "{1}"\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "course"
    practice = root / content.FOLDER
    practice.mkdir(parents=True)
    (root / "course.toml").write_text(TOML)
    (practice / "03_loop.toml").write_text(ITEM.format("q1") + ITEM.format("q2"))
    (practice / "glossary.toml").write_text(TERM.format("wait & see", "00") + TERM.format("worker", "03"))
    monkeypatch.setenv("COURSE_ROOT", str(root))
    path = tmp_path / "progress <b>.jsonl"
    monkeypatch.setenv(progress.ENV, str(path))
    monkeypatch.setattr(progress, "_unkept", [])
    return path


@pytest.fixture
def off(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(progress.ENV, "off")


class Page(HTMLParser):
    """The parts of a piece of HTML; fails where tags do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page(shown: panel.Panel) -> Page:
    found = Page(shown._repr_html_())
    assert str(shown) == repr(shown) == shown.text
    return found


def use(monkeypatch: pytest.MonkeyPatch, *states: str) -> MemoryStore:
    """A lab whose jobs are in these states."""
    store = MemoryStore()
    for state in states:
        row = store.add("shop.nap", {})
        if state != "pending":
            assert store.start(row.id, lease_seconds=60)
        if state not in ("pending", "running"):
            assert store.finish(row.id, state)  # type: ignore[arg-type]

    class Opened:
        jobs = store

    monkeypatch.setattr(Lab, "current", classmethod(lambda cls: Opened()))
    return store


# -- here -------------------------------------------------------------------------------------------------------------


def test_here_says_where_the_lesson_is_and_notes_that_it_was_opened(file: Path) -> None:
    """All lessons come in the order of the course, this one is marked, and finished ones are told in words."""
    progress.record("finished", "00")
    shown = panel.here("03")
    assert [(e.kind, e.lesson) for e in progress.entries()][1:] == [("opened", "03")]
    lines = [line for line in shown.text.splitlines() if line.startswith("  ")]
    assert lines == ["  ✓ 00 Begin (finished)", f"  ▸ 03 {EVIL} (you are here, begun)", "  · 04 Last (not begun)"]
    assert shown.text.startswith(f"Lesson 03, {EVIL}: 2 of 3 in the course.")
    found = page(shown)
    assert [item.get("aria-current") for item in found.all("li")] == [None, "page", None]
    for words in ("00 Begin (finished)", "(you are here, begun)", "04 Last (not begun)"):
        assert words in found.text


def test_here_says_how_far_you_are(file: Path) -> None:
    """Practice, exercises, cards and minutes are numbers in a sentence, the same in HTML and in text."""
    now = datetime.now(UTC)
    for minute, (kind, item, data) in enumerate(
        [
            ("answer", "03.q1", {"right": True}),
            ("answer", "03.q2", {"right": False}),
            ("check", "03.1", {"status": "passed"}),
        ]
    ):
        progress.record(kind, "03", item, at=now - timedelta(minutes=4 - 2 * minute), **data)
    shown = panel.here(3)  # type: ignore[arg-type]
    said = "Practice: 1 of 2 right. Exercises: 1 of 1 passed. 1 card to review. 4 minutes so far; about 35 are planned."
    assert said in shown.text and said in page(shown).text


def test_links_to_other_lessons_are_relative(file: Path) -> None:
    """Lessons lie in one folder; this one is not linked to."""
    assert [link["href"] for link in page(panel.here("03")).all("a")] == ["00_intro.ipynb", "04_last.ipynb"]


def test_an_unknown_lesson_is_refused_with_those_there_are(file: Path) -> None:
    """Nothing is recorded for it."""
    for ask in (panel.here, panel.end_of_lesson):
        for number in ("07", "", "x"):
            with pytest.raises(BadSetting, match="the lessons are 00_intro, 03_loop, 04_last"):
                ask(number)
    assert not file.exists()


# -- nothing recorded -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("off")
def test_where_nothing_is_recorded_the_course_is_shown_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """papermill shows the lessons and no state of them, the same each time."""
    use(monkeypatch, "completed")
    first = panel.here("03").text, panel.my_progress().text, panel.end_of_lesson("03").text
    for text in first[:2]:
        assert panel.NOT_RECORDED in text and "03 " in text and "04 Last" in text
    for text in first:
        assert not re.search("not begun|begun|streak|course progress", text)
    assert "Nothing is recorded here, so there are no points." in first[2]
    assert first == (panel.here("03").text, panel.my_progress().text, panel.end_of_lesson("03").text)


# -- my progress ------------------------------------------------------------------------------------------------------


def test_my_progress_says_all_of_it(file: Path) -> None:
    """Points with their rule, streak, reviews, each lesson, what is next, and the file with its three commands."""
    progress.record("opened", "00")
    progress.record("finished", "00")
    progress.record("hint", "03", "03.1", step=1)
    shown = panel.my_progress()
    found = page(shown)
    for text in (shown.text, found.text):
        for words in (
            "10 points.",
            "1 day in a row.",
            "1 card to review: wait & see.",
            "1 of 3 lessons finished.",
            f"go on with lesson 03, {EVIL}",
            points.FREE,
            points.MINUTES_RULE,
            str(file),
            "course progress export FILE",
            "course progress import FILE",
            "course progress wipe",
        ):
            assert words in text
        for rule in points.RULE:
            assert rule.what in text
    assert re.search(r"00 Begin +finished +none +none +0 +0 of about 10", shown.text)
    assert re.search(r"co +begun +0 of 2 +0 of 1 +1 +0 of about 35", shown.text)


def test_my_progress_of_nobody_begins_with_the_first_lesson(file: Path) -> None:
    """An empty file is no error."""
    text = panel.my_progress().text
    assert "0 points." in text and "No streak yet" in text and "Next: open lesson 00, Begin." in text


def test_a_file_of_ones_own_has_to_be_named_in_the_terminal_as_well(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where COURSE_PROGRESS names the file, that is said; the usual file needs no setting."""
    assert "set it in the terminal as well" in panel.my_progress().text
    monkeypatch.setattr(progress, "home", lambda: file)
    assert "set it in the terminal" not in panel.my_progress().text


# -- the end of a lesson ----------------------------------------------------------------------------------------------


def test_the_end_of_a_lesson_counts_its_jobs_and_gives_points_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time ten points, then none; the states, what is next, and the way there."""
    use(monkeypatch, "completed", "completed", "failed")
    first = panel.end_of_lesson("03")
    assert "Lesson 03 is finished: 3 jobs, all at an end (2 completed, 1 failed)." in first.text
    assert "10 points for finishing it; 10 from this lesson, 10 in all." in first.text
    assert [e.kind for e in progress.entries()] == ["finished"]
    assert "No new points, as you had finished it before; 10 from this lesson" in panel.end_of_lesson("03").text
    links = [link["href"] for link in page(first).all("a")]
    assert links == ["../exercises/03_loop/03_loop.ipynb", "04_last.ipynb"]
    assert all(str(link) in first.text for link in links)


def test_after_the_exercise_comes_the_next_lesson_and_after_the_last_none(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exercise that has passed is not asked for again."""
    use(monkeypatch, "completed")
    progress.record("check", "03", "03.1", status="passed")
    assert [link["href"] for link in page(panel.end_of_lesson("03")).all("a")] == ["04_last.ipynb"]
    last = panel.end_of_lesson("04")
    assert page(last).all("a") == [] and "This was the last lesson." in last.text


def test_a_job_that_is_open_fails_the_end_by_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names each open job with its task and state; the lesson is not finished."""
    store = use(monkeypatch, "completed", "pending", "running")
    with pytest.raises(AssertionError) as error:
        panel.end_of_lesson("03")
    assert str(error.value).startswith("2 of 3 jobs not at an end: ")
    for row in store.all():
        assert (f"{row.id[:8]} (shop.nap, {row.state})" in str(error.value)) is not row.terminal
    assert not file.exists()


def test_many_open_jobs_are_named_in_part(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred open jobs do not make an error of a hundred names."""
    use(monkeypatch, *["pending"] * 100)
    with pytest.raises(AssertionError, match="and 90 more"):
        panel.end_of_lesson("03")


def test_a_lesson_without_a_job_is_not_finished(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said that no job ran; without a lab, how to open one."""
    use(monkeypatch)
    with pytest.raises(AssertionError, match="no job ran"):
        panel.end_of_lesson("03")
    monkeypatch.undo()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_ROOT", str(file.parent / "course"))
        patch.setattr(Lab, "_open", None)
        with pytest.raises(NoLabOpen):
            panel.end_of_lesson("03")
    assert not file.exists()


# -- HTML -------------------------------------------------------------------------------------------------------------


def all_panels(monkeypatch: pytest.MonkeyPatch) -> list[panel.Panel]:
    use(monkeypatch, "completed")
    return [panel.here("03"), panel.my_progress(), panel.end_of_lesson("03"), panel.my_progress()]


def test_nothing_from_a_file_becomes_html(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lesson's title, a term and a path are text, whatever they hold."""
    for shown in all_panels(monkeypatch):
        found = page(shown)
        assert not found.all("script") and not found.all("b")


def test_a_panel_has_no_colour_and_every_table_its_headings(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours are the page's; cells have headings with a scope, tables a caption, a bar its numbers in words."""
    for shown in all_panels(monkeypatch):
        found = page(shown)
        styles = [attributes["style"] or "" for _, attributes in found.tags if "style" in attributes]
        assert not [style for style in styles if re.search("color|background|border|opacity", style)]
        headings: list[Any] = found.all("th")
        assert all(heading.get("scope") in ("col", "row") for heading in headings)
        assert len(found.all("caption")) == len(found.all("table"))
        for bar in found.all("progress"):
            assert bar.get("aria-label") and f"{bar['value']} of {bar['max']} lessons finished" in found.text
        regions = found.all("nav") + found.all("section")
        assert len(regions) == 1 and regions[0].get("aria-label")
