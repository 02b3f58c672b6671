"""Links to terms: what shows on hover, what is refused, and the page that leads back."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt
from mistune import create_markdown

from sandbox.errors import BadNotebook
from sandbox.learn import glossary
from sandbox.learn.content import Term
from sandbox.learn.glossary import Links, by_anchor, fill, hover

ROOT = Path("/course")
LESSON = ROOT / "lessons/03_loop.ipynb"
SOLUTION = ROOT / "solutions/03_loop/03_loop.ipynb"
SOFT = Term(name="soft limit", text="After so many seconds Celery sends a signal.", lesson="03", see=("hard limit",))
HARD = Term(name="hard limit", text="The process is killed.", lesson="03")
KNOWN = by_anchor([SOFT, HARD])
LINK = "[soft limit](../docs/glossary.md#soft-limit)"
FILLED = f'[soft limit](../docs/glossary.md#soft-limit "{SOFT.text}")'


def filled(source: str, path: Path = LESSON, known: dict[str, Term] = KNOWN) -> tuple[str, Links]:
    """`source`, as a cell of a notebook, after `fill`."""
    cell = nbformat.v4.new_markdown_cell(source, id="words")
    book = nbformat.v4.new_notebook(cells=[cell])
    links = fill(book, path, ROOT, known)
    return cell.source, links


def test_a_link_gets_the_terms_text_as_its_title() -> None:
    """The title is the glossary's text; the rest of the cell stays as it is, and a second run changes nothing."""
    before = f"Where *the* {LINK} lands.\n\n- and {LINK}, again  \n"
    after, links = filled(before)
    assert after == before.replace(LINK, FILLED)
    assert (links.anchors, links.problems) == ({"soft-limit"}, [])
    assert filled(after)[0] == after


@pytest.mark.parametrize("old", ['"old"', "'old'", "(old)", '"a \\"b\\" c"', '"over\ntwo lines"', '""'])
def test_a_stale_title_is_replaced(old: str) -> None:
    """A title in any form that markdown has is replaced by the term's text."""
    after, links = filled(f"a [soft\nlimit](../docs/glossary.md#soft-limit {old}) b")
    assert after == "a [soft\nlimit](../docs/glossary.md#soft-limit " + f'"{SOFT.text}") b'
    assert links.problems == []


def test_a_solution_links_from_its_own_folder() -> None:
    """The path of a link is that from its notebook; one from elsewhere is refused with the right one."""
    after, links = filled("[x](../../docs/glossary.md#soft-limit)", SOLUTION)
    assert after == f'[x](../../docs/glossary.md#soft-limit "{SOFT.text}")'
    assert links.problems == []
    before = LINK
    after, links = filled(before, SOLUTION)
    assert after == before
    assert links.problems == [
        "solutions/03_loop/03_loop.ipynb, words: a link leads to ../docs/glossary.md; from there it is "
        "../../docs/glossary.md#soft-limit."
    ]


@pytest.mark.parametrize("anchor", ["soft-limt", "Soft-limit", "softlimit", "soft_limit"])
def test_an_unknown_anchor_is_named_with_the_nearest_term(anchor: str) -> None:
    """Notebook, cell, anchor and the nearest term stand in the message, and the cell stays as it is."""
    before = f"[x](../docs/glossary.md#{anchor}) and {LINK}"
    after, links = filled(before)
    assert after == before.replace(LINK, FILLED)
    assert links.problems == [
        f"lessons/03_loop.ipynb, words: the glossary has no term with the anchor #{anchor}; "
        "the nearest is #soft-limit (soft limit)."
    ]


def test_an_anchor_is_unknown_in_a_glossary_without_terms() -> None:
    """Without any term the message says so."""
    assert "; it has none yet." in filled(LINK, known={})[1].problems[0]


@pytest.mark.parametrize(
    "code", [f"`{LINK}`", f"``a ` {LINK}``", f"```\n{LINK}\n```", f"~~~~ md\n{LINK}\n~~~\n~~~~\n", f"```\n{LINK}"]
)
def test_code_is_left_alone(code: str) -> None:
    """A link that is shown as code is no link."""
    after, links = filled(f"{code}")
    assert after == code
    assert links == Links()


def test_a_link_between_two_pieces_of_code_is_a_link() -> None:
    """Code on both sides of a link, and code as its text, do not hide it."""
    before = "`a` [`b`](../docs/glossary.md#soft-limit) `c`"
    assert filled(before)[1].anchors == {"soft-limit"}


def test_the_page_as_a_whole_may_be_linked_to() -> None:
    """A link without an anchor is no link to a term and stays as it is."""
    before = "[glossary](../docs/glossary.md)"
    assert filled(before) == (before, Links())


@pytest.mark.parametrize(
    "before",
    [
        '[x](../docs/glossary.md#soft-limit "he said "no"")',
        "[x]: ../docs/glossary.md#soft-limit",
        '<a href="../docs/glossary.md#soft-limit">x</a>',
        "[x](../docs/glossary.md#soft-limit",
    ],
)
def test_a_link_in_a_form_that_can_not_be_filled_is_named(before: str) -> None:
    """What points to a term and is no plain link is refused with how to write it."""
    after, links = filled(before)
    assert after == before
    assert len(links.problems) == 1
    assert "write [the term](../docs/glossary.md#anchor), and no title" in links.problems[0]


TEXTS = [
    'He said "no" twice, "no".',
    "With (round), [square], {curly} and <angle> brackets.",
    "a | b & c &amp; d \\ e \\* f *g* _h_ timed_out",
    "Costs $5 or $6, 'quoted', `code`, 50 %, ü → ж.",
    "it ends in a backslash \\",
    "](../docs/glossary.md#x) <a href='x'>",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("table", [False, True], ids=["prose", "table"])
def test_a_title_reads_as_it_was_written(text: str, table: bool) -> None:
    """Two markdown readers, that of VS Code's family and nbconvert's, show the term's text and nothing else."""
    known = by_anchor([Term(name="soft limit", text=text, lesson="03")])
    after, links = filled(f"| a | b |\n|---|---|\n| {LINK} | c |" if table else f"a **{LINK}** b", known=known)
    assert links.problems == []
    assert filled(after, known=known)[0] == after
    html = MarkdownIt("commonmark").enable("table").render(after)
    other = str(create_markdown(plugins=["table"])(after))
    for page in (html, other):
        assert shown_titles(page) == [text.replace("`", "")]


def shown_titles(html: str) -> list[str | None]:
    """The titles of all links on a page, as a browser reads them."""
    from html.parser import HTMLParser

    found: list[str | None] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "a":
                found.append(dict(attrs).get("title"))

    Reader().feed(html)
    return found


def test_marks_of_code_are_not_shown_on_hover() -> None:
    """A title shows plain text, so the glossary's backticks are left out of it."""
    assert hover(Term(name="x", text="The `jobs` table.", lesson="00")) == '"The jobs table."'


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["hard limit", "Hard-limit"], "'Hard-limit' has the anchor #hard-limit, as 'hard limit' has: rename one"),
        (["жж"], "'жж' has no letter from a to z and no digit"),
    ],
)
def test_terms_that_can_not_be_told_apart_by_a_link_are_refused(names: list[str], sentence: str) -> None:
    """Two terms with one anchor, and one without any, are an error that names them."""
    with pytest.raises(BadNotebook, match=sentence):
        by_anchor([Term(name=name, text="t", lesson="00") for name in names])


@pytest.mark.parametrize(("name", "named"), [("soft limit", False), ("SIGKILL", True), ("p95 (a percentile)", True)])
def test_a_heading_has_the_terms_anchor_whatever_shows_it(name: str, named: bool) -> None:
    """JupyterLab keeps capitals and signs in an anchor and GitHub does not; where that matters the anchor is written."""
    term = Term(name=name, text="t", lesson="00")
    lines = glossary._heading(term)
    assert lines[-1] == f"## {name}"
    assert (f'<a id="{term.anchor}"></a>' in lines) is named
