"""The glossary on a page, and the hover texts of the links to it.

An author writes ``[soft limit](../docs/glossary.md#soft-limit)``. ``course links`` gives the link its title, the term's
text, which every notebook shows on hover, and lists on the page which lessons link to a term.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.errors import BadNotebook
from sandbox.learn import content
from sandbox.learn.catalog import Course
from sandbox.learn.content import Term

if TYPE_CHECKING:
    from nbformat import NotebookNode

PAGE = Path("docs/glossary.md")

_TITLE = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\)"""
_LINK = re.compile(
    rf"\]\((?P<before>\s*)(?P<target>[^()<>\s#]*{PAGE.name})#(?P<anchor>[^()<>\s]*)(?:\s+(?:{_TITLE}))?\s*\)", re.DOTALL
)
_MENTION = re.compile(rf"{re.escape(PAGE.name)}#\S*")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<![`\\])(`+)(?!`)((?:(?!\n[ \t]*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
# What markdown, its tables, or JupyterLab's search for formulas would take for something else. A backslash before a
# sign of punctuation is that sign in all of them; but for & in mistune, which nbconvert uses.
_SPECIAL = re.compile(r'[\\"\[\]`|<>$*]')
_ENTITY = re.compile(r"&(?=#?\w+;)")


@dataclass(kw_only=True)
class Links:
    """What one notebook links to, and what is wrong with its links."""

    anchors: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def by_anchor(terms: Iterable[Term]) -> dict[str, Term]:
    """The terms by the anchors of their headings. Raises BadNotebook where two share one, or one has none."""
    found: dict[str, Term] = {}
    for term in terms:
        where = f"{content.FOLDER / content.GLOSSARY}: the term {term.name!r}"
        if not term.anchor:
            raise BadNotebook(f"{where} has no letter from a to z and no digit, so nothing can link to it.")
        if term.anchor in found:
            raise BadNotebook(f"{where} has the anchor #{term.anchor}, as {found[term.anchor].name!r} has: rename one.")
        found[term.anchor] = term
    return found


def hover(term: Term) -> str:
    """The term's text as the title of a link, in quotes, for any markdown. The marks of code are left out."""
    return '"' + _SPECIAL.sub(r"\\\g<0>", _ENTITY.sub("&amp;", term.text.replace("`", ""))) + '"'


def fill(notebook: NotebookNode, path: Path, root: Path, known: Mapping[str, Term]) -> Links:
    """Give every link to a term in `notebook` the title that the glossary has for it now. Cells change in place."""
    links = Links()
    target = Path(os.path.relpath(root / PAGE, path.parent)).as_posix()
    for place, cell in enumerate(notebook.cells, 1):
        if cell.cell_type == "markdown" and PAGE.name in cell.source:
            where = f"{_inside(path, root)}, {cell.get('id', f'cell-{place:02d}')}"
            cell.source = _fill_text(cell.source, target, known, links, where)
    return links


def _fill_text(source: str, target: str, known: Mapping[str, Term], links: Links, where: str) -> str:
    parts, end = [], 0
    seen = _without_code(source)
    for match in _LINK.finditer(seen):
        anchor = source[match.start("anchor") : match.end("anchor")]
        parts.append(source[end : match.start()])
        end = match.start()
        if anchor not in known:
            links.problems.append(f"{where}: {_unknown(anchor, known)}")
        elif match["target"] != target:
            links.problems.append(f"{where}: a link leads to {match['target']}; from there it is {target}#{anchor}.")
        else:
            links.anchors.add(anchor)
            parts.append(f"]({target}#{anchor} {hover(known[anchor])})")
            end = match.end()
    read = [match.span() for match in _LINK.finditer(seen)]
    for mention in _MENTION.finditer(seen):
        if not any(start <= mention.start() < stop for start, stop in read):
            links.problems.append(
                f"{where}: {mention[0]!r} is no link that can be read; write [the term]({target}#anchor), and no title: "
                "`course links` adds it."
            )
    return "".join(parts) + source[end:]


def unlinked(course: Course, terms: Iterable[Term], links: Mapping[Path, Links]) -> list[str]:
    """A sentence for each term that the lesson which introduces it does not link to."""
    lessons = {lesson.number: lesson for lesson in course}
    problems = []
    for term in terms:
        lesson = lessons.get(term.lesson)
        if lesson and term.anchor not in links[lesson.lesson_path].anchors:
            problems.append(
                f"{_inside(lesson.lesson_path, course.root)} introduces the term {term.name!r} and does not link to it: "
                f"write [{term.name}](../{PAGE.as_posix()}#{term.anchor}) there."
            )
    return problems


def page(course: Course, terms: Sequence[Term], links: Mapping[Path, Links]) -> str:
    """docs/glossary.md: every term with its text, its neighbours, and the lessons and exercises that link to it."""
    names = {term.name: term for term in terms}
    lines = [
        "# Glossary",
        "",
        "Every term of the course, once. Made by `course links` from `lessons/practice/glossary.toml`; a test compares. Do not edit.",
    ]
    for term in terms:
        lines += ["", *_heading(term), "", term.text]
        if term.see:
            lines += ["", "See also: " + ", ".join(f"[{name}](#{names[name].anchor})" for name in term.see) + "."]
        if used := _used_in(course, term, links):
            lines += ["", "Used in: " + ", ".join(used) + "."]
    return "\n".join([*lines, ""])


def _heading(term: Term) -> list[str]:
    """A heading whose anchor is the term's, in GitHub, VS Code and JupyterLab, which do not make the same of a name."""
    jupyterlab = term.name.replace(" ", "-")
    github = re.sub(r"[^\w\- ]", "", term.name.lower()).replace(" ", "-")
    named = jupyterlab == github == term.anchor
    return [f"## {term.name}"] if named else [f'<a id="{term.anchor}"></a>', "", f"## {term.name}"]


def _used_in(course: Course, term: Term, links: Mapping[Path, Links]) -> list[str]:
    found = []
    for lesson in course:
        for path, leads_to, text in (
            (lesson.lesson_path, lesson.lesson_path, f"{lesson.number} {lesson.title}"),
            (lesson.solution_path, lesson.exercise_path, f"exercise {lesson.number}"),
        ):
            if path in links and term.anchor in links[path].anchors:
                found.append(f"[{text}](../{_inside(leads_to, course.root)})")
    return found


def _unknown(anchor: str, known: Mapping[str, Term]) -> str:
    near = difflib.get_close_matches(anchor.lower(), known, 1, 0)
    nearest = f"; the nearest is #{near[0]} ({known[near[0]].name})" if near else "; it has none yet"
    return f"the glossary has no term with the anchor #{anchor}{nearest}."


def _without_code(source: str) -> str:
    """`source` with code blotted out, every other character in its place."""

    def blot(match: re.Match[str]) -> str:
        return "".join("\n" if sign == "\n" else "\0" for sign in match[0])

    return _CODE.sub(blot, _FENCE.sub(blot, source))


def _inside(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
