"""What a lesson has to practise, from ``lessons/practice/``: quizzes by lesson, and the glossary.

A key is never written down: it is what the code does when it is run (``sandbox/learn/fragments.py``), or, for a
prediction, what happened in the lesson's own run. What is written down is the message for every expected mistake.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn.catalog import find_root

FOLDER = Path("lessons/practice")
GLOSSARY = "glossary.toml"
GAP = "____"
INDENT = "    "
LONGEST_FILLING = 200  # characters in a gap: a line of code has room, a pasted program does not
MOST = 26  # options of a question, or lines of a Parsons item: each is named by a letter


@dataclass(frozen=True, kw_only=True)
class Option:
    """One answer to choose, and what is said to whoever chooses it."""

    text: str
    says: str = ""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """Answers that are expected and wrong, one for each gap, and what is said to them."""

    answers: tuple[str, ...]
    says: str


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing to practise. Which fields are filled depends on `kind`."""

    id: str  # "03.q1"
    kind: str  # predict, choose, gap, parsons
    question: str
    why: str  # said with the right answer
    code: str = ""  # choose: the program; gap: the program with ____ in it
    options: tuple[Option, ...] = ()  # predict, choose
    answers: tuple[str, ...] = ()  # gap: one way to fill the gaps
    mistakes: tuple[Mistake, ...] = ()  # gap
    lines: tuple[str, ...] = ()  # parsons: the lines in order, indented
    distractors: tuple[Option, ...] = ()  # parsons: lines that do not belong there
    before: str = ""  # parsons: code around the lines, which makes a program of them
    after: str = ""

    @property
    def lesson(self) -> str:
        return self.id[:2]


@dataclass(frozen=True, kw_only=True)
class Term:
    """One word of the field: a card, a hover text, an entry of docs/glossary.md."""

    name: str
    text: str  # one or two sentences
    lesson: str  # where it is introduced
    see: tuple[str, ...] = field(default=())  # other terms

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


# The fields of each kind beside id, kind, question and why; those in the second set may be left out.
_FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "predict": ({"option"}, {"code"}),
    "choose": ({"code", "option"}, set()),
    "gap": ({"code", "answers", "mistake"}, set()),
    "parsons": ({"lines", "distractor", "after"}, {"before"}),
}
_TABLES = {"option": "text", "distractor": "text", "mistake": "answers"}
# What an error tells the author to type. A table of an item has the item's name before its own.
_WRITE = {name: f"[[item.{name}]], with {what} and says" for name, what in _TABLES.items()} | {
    "item": "[[item]]",
    "term": "[[term]]",
    "id": 'id = "03.q1"',
    "lesson": 'lesson = "03"',
    "answers": 'answers = ["..."], a text for each gap',
    "lines": 'lines = ["...", "..."], a text for each line',
    "see": 'see = ["hard limit"]',
    "after": "after = '''...''', which prints what the lines have done",
}


def items(lesson: str, root: Path | None = None) -> tuple[Item, ...]:
    """The practice of a lesson, in the order of the file. Raises BadNotebook that names what is wrong in it."""
    return _items((root or find_root()).resolve(), lesson)


def all_items(root: Path | None = None) -> tuple[Item, ...]:
    root = (root or find_root()).resolve()
    lessons = dict.fromkeys(file.name[:2] for file in sorted((root / FOLDER).glob("[0-9][0-9]_*.toml")))
    return tuple(item for lesson in lessons for item in items(lesson, root))


def item(item_id: str, root: Path | None = None) -> Item:
    """One item by its id. Raises BadSetting that lists those there are."""
    item_id = item_id if isinstance(item_id, str) else repr(item_id)
    found = {one.id: one for one in items(item_id[:2], root)} if re.match(r"[0-9][0-9]\.", item_id) else {}
    if item_id not in found:
        known = ", ".join(found) or ", ".join(one.id for one in all_items(root)) or "none yet"
        raise BadSetting(f"there is no practice item {item_id!r}; there are {known}.")
    return found[item_id]


def terms(root: Path | None = None) -> tuple[Term, ...]:
    """The glossary, in the order of the alphabet. Raises BadNotebook that names what is wrong in it."""
    return _terms((root or find_root()).resolve())


@lru_cache
def _items(root: Path, lesson: str) -> tuple[Item, ...]:
    for path in sorted((root / FOLDER).glob("*.toml")):
        if path.name != GLOSSARY and not re.fullmatch(r"[0-9]{2}_[a-z0-9_]+\.toml", path.name):
            raise BadNotebook(f"{path}: nothing reads a file of this name; call it after its lesson, NN_slug.toml.")
    found: dict[str, Item] = {}
    for path in sorted((root / FOLDER).glob(f"{lesson}_*.toml")):
        data = _toml(path)
        _refuse(data, {"item"}, path, "the file")
        for place, table in enumerate(_tables(data, "item", path, "the file"), 1):
            one = _item(table, lesson, place, path)
            if one.id in found:
                raise BadNotebook(f"{path}: the id {one.id!r} stands twice in lesson {lesson}; change one of the two.")
            found[one.id] = one
    return tuple(found.values())


def _item(table: dict[str, Any], lesson: str, place: int, path: Path) -> Item:
    who = " ".join(f"item {table.get('id') or f'no. {place}'}".split())
    item_id, kind = _text(table, "id", path, who), _text(table, "kind", path, who)
    if not re.fullmatch(rf"{lesson}\.[a-z][a-z0-9_]*", item_id):
        raise BadNotebook(f"{path}: {who} needs an id like {lesson}.q1: the lesson, a dot, a name in small letters.")
    if kind not in _FIELDS:
        raise BadNotebook(f"{path}: {who} has the kind {kind!r}; the kinds are {', '.join(_FIELDS)}.")
    needed, allowed = _FIELDS[kind]
    _refuse(table, {"id", "kind", "question", "why"} | needed | allowed, path, who)
    for name in sorted(needed - table.keys()):
        raise BadNotebook(f"{path}: {who} is a {kind} and has no {name!r}; write {_write(name)}.")
    texts = {name: _text(table, name, path, who).strip("\n") for name in ("before", "after") if name in table}
    made = Item(
        id=item_id,
        kind=kind,
        question=_text(table, "question", path, who).strip(),
        why=_text(table, "why", path, who).strip(),
        options=_options(table, "option", path, who),
        distractors=_options(table, "distractor", path, who),
        answers=_texts(table, "answers", path, who),
        lines=tuple(line.rstrip(" ") for line in _texts(table, "lines", path, who)),
        mistakes=_mistakes(table, path, who),
        code=textwrap.dedent(_text(table, "code", path, who)).strip("\n") if "code" in table else "",
        **texts,
    )
    for wrong in {"gap": _gap, "parsons": _parsons}.get(kind, _choice)(made):
        raise BadNotebook(f"{path}: {who} {wrong}")
    return made


def _options(table: dict[str, Any], name: str, path: Path, who: str) -> tuple[Option, ...]:
    found = []
    for place, one in enumerate(_tables(table, name, path, who), 1):
        whose = f"{name} {place} of {who}"
        _refuse(one, {"text", "says"}, path, whose)
        says = _text(one, "says", path, whose).strip() if "says" in one else ""
        found.append(Option(text=_text(one, "text", path, whose).strip("\n"), says=says))
    return tuple(found)


def _mistakes(table: dict[str, Any], path: Path, who: str) -> tuple[Mistake, ...]:
    found = []
    for place, one in enumerate(_tables(table, "mistake", path, who), 1):
        whose = f"mistake {place} of {who}"
        _refuse(one, {"answers", "says"}, path, whose)
        found.append(Mistake(answers=_texts(one, "answers", path, whose), says=_text(one, "says", path, whose).strip()))
    return tuple(found)


def _choice(one: Item) -> Iterator[str]:
    """What is wrong, as the rest of a sentence that begins with the item."""
    texts = [option.text.strip() for option in one.options]
    if len(texts) < 2 or len(set(texts)) < len(texts):
        yield f"needs two options or more, each another; write {_WRITE['option']}, for each."
    if len(texts) > MOST:
        yield f"has {len(texts)} options, and {MOST} letters to name them; take some away."


def _gap(one: Item) -> Iterator[str]:
    gaps = one.code.count(GAP)
    if not gaps or re.search(GAP + "_", one.code):
        yield f"needs a gap in its code, or more, each written {GAP}: four underscores, and no fifth beside them."
    if not one.mistakes:
        yield f"expects no mistake; write {_WRITE['mistake']}."
    seen = []
    for what, answers in [("answers", one.answers), *(("a mistake", m.answers) for m in one.mistakes)]:
        if len(answers) != gaps:
            yield f"has {gaps} gaps ({GAP}) and {what} for {len(answers)} of them; write a text for each gap."
        for text in answers:
            if not text.strip() or len(text.splitlines()) > 1 or len(text) > LONGEST_FILLING:
                yield f"fills a gap with {text[:40]!r}; write one line, not empty, of {LONGEST_FILLING} characters at most."
        seen.append([text.strip() for text in answers])
        if seen[-1] in seen[:-1]:
            yield f"has {seen[-1]} twice among its answers and mistakes; take one of them away."


def _parsons(one: Item) -> Iterator[str]:
    taken = [option.text for option in one.distractors]
    if len({line.strip() for line in one.lines}) < 3:
        yield "needs three lines or more to put in order, three of them different."
    if len(one.lines) + len(taken) > MOST:
        yield f"has {len(one.lines) + len(taken)} lines and distractors, and {MOST} letters to name them; take some away."
    for line in [*one.lines, *taken]:
        if len(line.splitlines()) != 1 or not line.strip():
            yield f"has the line {line!r}; write one line of code, without a line break in it."
        if "\t" in line or (len(line) - len(line.lstrip(" "))) % len(INDENT):
            yield f"has the line {line!r}; indent it by steps of four spaces, without tabs."
    for place, option in enumerate(one.distractors):
        if not option.says:
            yield f"says nothing to whoever takes the distractor {option.text!r}; write its says."
        if option.text.strip() in [line.strip() for line in [*one.lines, *taken[:place]]]:
            yield f"has the distractor {option.text!r} as a line or a distractor already; write another one."


@lru_cache
def _terms(root: Path) -> tuple[Term, ...]:
    path = root / FOLDER / GLOSSARY
    data = _toml(path)
    _refuse(data, {"term"}, path, "the glossary")
    found: list[Term] = []
    for place, table in enumerate(_tables(data, "term", path, "the glossary"), 1):
        who = f"term {table.get('name') or f'no. {place}'}"
        _refuse(table, {"name", "text", "lesson", "see"}, path, who)
        name, text, lesson = (_text(table, key, path, who) for key in ("name", "text", "lesson"))
        if not re.fullmatch(r"[0-9][0-9]", lesson):
            raise BadNotebook(f"{path}: {who} has the lesson {lesson!r}; write its two digits, {_WRITE['lesson']}.")
        name = " ".join(name.split())
        found.append(Term(name=name, text=" ".join(text.split()), lesson=lesson, see=_texts(table, "see", path, who)))
    names, anchors = [term.name for term in found], [term.anchor for term in found]
    for term in found:
        if not term.anchor or anchors.count(term.anchor) > 1:
            raise BadNotebook(
                f"{path}: the term {term.name!r} needs a name that differs from others by letters or digits."
            )
        for other in term.see:
            if other not in names or other == term.name:
                raise BadNotebook(f"{path}: {term.name!r} points to {other!r}, which is no other term; mend its see.")
    return tuple(sorted(found, key=lambda term: term.name.lower()))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors put a mark in front
    except UnicodeDecodeError:
        raise BadNotebook(f"{path} is not valid TOML: it is not UTF-8; save it as UTF-8.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadNotebook(f"{path} is not valid TOML: {error}.") from None
    except OSError as error:
        raise BadNotebook(f"{path} can not be read: {error.strerror or error}.") from None


def _write(name: str) -> str:
    return _WRITE.get(name, f'{name} = "..."')


def _tables(table: dict[str, Any], name: str, path: Path, who: str) -> list[dict[str, Any]]:
    found = table.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadNotebook(f"{path}: write each {name} of {who} as a table: {_write(name)}.")
    return found


def _text(table: dict[str, Any], name: str, path: Path, who: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadNotebook(f"{path}: {who} needs {name!r}, a text in quotes that is not empty: {_write(name)}.")
    return value


def _texts(table: dict[str, Any], name: str, path: Path, who: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadNotebook(f"{path}: {name!r} of {who} is a list of texts in quotes: {_write(name)}.")
    return tuple(value)


def _refuse(table: dict[str, Any], known: set[str], path: Path, who: str) -> None:
    for name in sorted(table.keys() - known):
        mend = f"; write {_write(name)}" if known == {"item"} and name in _TABLES else ""  # its "item." was forgotten
        there = ", ".join(sorted(known))
        raise BadNotebook(f"{path}: {who} has a field {name!r} that is not known; there are {there}{mend}.")
