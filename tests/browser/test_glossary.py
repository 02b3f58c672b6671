"""From a word of a lesson to the glossary and back, in a real JupyterLab, as `course lab` starts it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from sandbox.learn import content, notebooks
from sandbox.learn.catalog import Course
from sandbox.learn.signposts import render

from .course_lab import FLAGS, PATIENT, REPOSITORY, SCREENS, browser_path, kill, start_lab, watch, workplace

pytestmark = pytest.mark.timeout(600)
LESSON = "lessons/00_start_here.ipynb"
# Everything that some markdown, somewhere, takes for something else.
ODD = r'He said "no" (twice), [not] {once}, for $5 or $6, <b> | & &amp; \ *a* _b_ \* ü → ж'


@dataclass(frozen=True, kw_only=True)
class Opened:
    """Lesson 00 in a browser, its copy of the course, and what the browser complained of."""

    page: Page
    root: Path
    complaints: list[str]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """A course whose lesson 00 links to a term near its top, linked up and opened."""
    with workplace(tmp_path) as place, sync_playwright() as playwright:
        shutil.copytree(REPOSITORY / "docs", place.root / "docs")
        shutil.copytree(REPOSITORY / "solutions", place.root / "solutions")
        with open(place.root / content.FOLDER / content.GLOSSARY, "a", encoding="utf-8") as file:
            file.write(f"\n[[term]]\nname = 'ODD term (1)'\nlesson = '99'\ntext = '''{ODD}'''\n")
        book = notebooks.read(place.root / LESSON)
        book.cells[0].source += "\n\nMeet [the reaper, at last](../docs/glossary.md#reaper)."
        book.cells[0].source += "\n\n| a | b |\n|---|---|\n| **[odd](../docs/glossary.md#odd-term-1)** | $x$ |"
        (place.root / LESSON).write_text(notebooks.write_text(book), encoding="utf-8")
        for path, text in render(Course.load(place.root))[0].items():
            path.write_text(text, encoding="utf-8")
        process, _port, address = start_lab(place, "00")
        try:
            browser = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(PATIENT * 1000)
            complaints: list[str] = []
            watch(page, complaints)
            page.goto(address)
            yield Opened(page=page, root=place.root, complaints=complaints)
            browser.close()
        finally:
            kill(process)


def test_a_word_leads_to_its_entry_in_the_glossary_and_back(opened: Opened) -> None:
    """A link shows its term on hover, a click opens the rendered glossary at that term, and a link there leads back."""
    page = opened.page
    word = page.get_by_role("link", name="the reaper, at last")
    word.wait_for()
    (reaper,) = [term for term in content.terms(opened.root) if term.name == "reaper"]
    word.hover()
    assert word.get_attribute("title") == reaper.text
    word.click()
    viewer = page.locator(".jp-MarkdownViewer")
    heading = viewer.get_by_role("heading", name="reaper")
    heading.wait_for()
    # At that term: its heading is at the top of what can be seen.
    page.wait_for_function(
        """() => {
            const page = document.querySelector('.jp-MarkdownViewer');
            const heading = [...page.querySelectorAll('h2')].find(h => h.textContent.startsWith('reaper'));
            const top = heading.getBoundingClientRect().top - page.getBoundingClientRect().top;
            return page.querySelector('.jp-RenderedMarkdown').scrollTop > 0 && top > -5 && top < 100;
        }"""
    )
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / "glossary.png")
    assert page.locator(".jp-FileEditor").count() == 0
    viewer.locator("xpath=.//a[.='00 Start here'][preceding::h2[1][starts-with(normalize-space(.), 'reaper')]]").click()
    page.get_by_role("heading", name="00 Start here").wait_for(state="visible")
    tab = page.locator(".lm-DockPanel-tabBar .lm-mod-current .lm-TabBar-tabLabel")
    assert tab.inner_text() == "00_start_here.ipynb"
    assert opened.complaints == []


def test_signs_of_every_kind_show_on_hover_as_they_were_written(opened: Opened) -> None:
    """A text full of signs is the title of its link, in a table too; a name with capitals and brackets is reached."""
    word = opened.page.get_by_role("link", name="odd", exact=True)
    word.wait_for()
    assert word.get_attribute("title") == ODD
    word.click()
    opened.page.wait_for_function(
        """() => {
            const page = document.querySelector('.jp-MarkdownViewer');
            const heading = [...page?.querySelectorAll('h2') ?? []].find(h => h.textContent.startsWith('ODD term (1)'));
            if (!heading) return false;
            const box = heading.getBoundingClientRect();
            return box.top > 0 && box.bottom < window.innerHeight && page.querySelector('.jp-RenderedMarkdown').scrollTop > 0;
        }"""
    )
    assert opened.complaints == []


def test_a_see_also_link_stays_on_the_glossary(opened: Opened) -> None:
    """A link from one term to another moves the page to it and opens nothing else."""
    page = opened.page
    page.get_by_role("link", name="the reaper, at last").click()
    viewer = page.locator(".jp-MarkdownViewer")
    viewer.get_by_role("heading", name="reaper").wait_for()
    viewer.locator("a[href='#stuck-row']").first.click()
    page.wait_for_function(
        """() => {
            const heading = [...document.querySelectorAll('.jp-MarkdownViewer h2')]
                .find(h => h.textContent.startsWith('stuck row'));
            const box = heading.getBoundingClientRect();
            return box.top > 0 && box.bottom < window.innerHeight;
        }"""
    )
    assert page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab").count() == 2
    assert opened.complaints == []


def test_a_learner_sees_nothing_of_nbgrader_but_what_is_theirs(opened: Opened) -> None:
    """Neither the menu of nbgrader nor its panels for instructors are there."""
    page = opened.page
    page.get_by_role("link", name="the reaper, at last").wait_for()
    assert page.locator(".lm-MenuBar-itemLabel", has_text="Nbgrader").count() == 0
    assert page.locator(".jp-SideBar [title*='Assignment'], .jp-SideBar [data-id*='nbgrader']").count() == 0
    page.screenshot(path=SCREENS / "learner.png")
