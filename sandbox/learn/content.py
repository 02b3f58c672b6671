"""What a lesson has to practise, from ``lessons/practice/``: quizzes by lesson, and the glossary.

A key is never written down: it is what the code does when it is run (``sandbox/learn/fragments.py``), or, for a
prediction, what happened in the lesson's own run. What is written down is the message for every expected mistake.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
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


def items(lesson: str, root: Path | None = None) -> tuple[Item, ...]:
    """The practice of a lesson, in the order of the file. Raises BadNotebook that names what is wrong in it."""
    return _items((root or find_root()).resolve(), lesson)


def all_items(root: Path | None = None) -> tuple[Item, ...]:
    root = (root or find_root()).resolve()
    files = sorted((root / FOLDER).glob("[0-9][0-9]_*.toml"))
    return tuple(item for file in files for item in items(file.name[:2], root))


def item(item_id: str, root: Path | None = None) -> Item:
    """One item by its id. Raises BadSetting that lists those there are."""
    found = {one.id: one for one in items(item_id[:2], root)} if re.match(r"\d\d\.", item_id) else {}
    if item_id not in found:
        known = ", ".join(found) or ", ".join(one.id for one in all_items(root)) or "none yet"
        raise BadSetting(f"there is no practice item {item_id!r}; there are {known}.")
    return found[item_id]


def terms(root: Path | None = None) -> tuple[Term, ...]:
    """The glossary, in the order of the alphabet."""
    return _terms((root or find_root()).resolve())


@lru_cache
def _items(root: Path, lesson: str) -> tuple[Item, ...]:
    files = sorted((root / FOLDER).glob(f"{lesson}_*.toml"))
    found: list[Item] = []
    for path in files:
        data = _toml(path)
        _refuse(data, {"item"}, path, "the file")
        for place, table in enumerate(_tables(data, "item", path, "the file"), 1):
            found.append(_item(table, lesson, place, path))
    for one in found:
        if [other.id for other in found].count(one.id) > 1:
            raise BadNotebook(f"{files[0]}: the id {one.id!r} stands there twice; give one of the two another.")
    return tuple(found)


def _item(table: dict[str, Any], lesson: str, place: int, path: Path) -> Item:
    who = f"item {table.get('id', f'no. {place}')}"
    item_id, kind = _text(table, "id", path, who), _text(table, "kind", path, who)
    if not re.fullmatch(rf"{lesson}\.[a-z][a-z0-9_]*", item_id):
        raise BadNotebook(f"{path}: {who} needs an id like {lesson}.q1: the lesson, a dot, a name in small letters.")
    if kind not in _FIELDS:
        raise BadNotebook(f"{path}: {who} has the kind {kind!r}; the kinds are {', '.join(_FIELDS)}.")
    needed, allowed = _FIELDS[kind]
    _refuse(table, {"id", "kind", "question", "why"} | needed | allowed, path, who)
    for name in needed:
        if name not in table:
            raise BadNotebook(f"{path}: {who} is a {kind} and has no {name!r}.")
    fields: dict[str, Any] = {
        name: textwrap.dedent(_text(table, name, path, who)).strip("\n")
        for name in ("code", "before", "after")
        if name in table
    }
    for field_name, name in (("options", "option"), ("distractors", "distractor")):
        fields[field_name] = tuple(
            Option(text=_text(one, "text", path, who).strip("\n"), says=str(one.get("says", "")).strip())
            for one in _tables(table, name, path, who)
        )
        for one in _tables(table, name, path, who):
            _refuse(one, {"text", "says"}, path, f"an {name} of {who}")
    fields["answers"], fields["lines"] = (_texts(table, name, path, who) for name in ("answers", "lines"))
    fields["mistakes"] = tuple(
        Mistake(answers=_texts(one, "answers", path, who), says=_text(one, "says", path, who).strip())
        for one in _tables(table, "mistake", path, who)
    )
    made = Item(
        id=item_id,
        kind=kind,
        question=_text(table, "question", path, who).strip(),
        why=_text(table, "why", path, who).strip(),
        **fields,
    )
    _judge(made, path, who)
    return made


def _judge(one: Item, path: Path, who: str) -> None:
    """Refuse an item that can not be answered."""
    texts = [option.text for option in one.options]
    if one.kind in ("predict", "choose") and (len(texts) < 2 or len(set(texts)) < len(texts)):
        raise BadNotebook(f"{path}: {who} needs two options or more, each another.")
    if one.kind == "gap":
        gaps = one.code.count(GAP)
        for what, answers in [("answers", one.answers), *(("a mistake", m.answers) for m in one.mistakes)]:
            if not gaps or len(answers) != gaps:
                raise BadNotebook(f"{path}: {who} has {gaps} gaps ({GAP}) and {what} for {len(answers)} of them.")
    if one.kind == "parsons":
        if len(one.lines) < 3:
            raise BadNotebook(f"{path}: {who} needs three lines or more to put in order.")
        for line in [*one.lines, *(option.text for option in one.distractors)]:
            if "\n" in line or (len(line) - len(line.lstrip(" "))) % len(INDENT):
                raise BadNotebook(f"{path}: {who}: {line!r} is not one line, indented by steps of four spaces.")
        for option in one.distractors:
            if not option.says:
                raise BadNotebook(f"{path}: {who}: the distractor {option.text!r} says nothing to whoever takes it.")


@lru_cache
def _terms(root: Path) -> tuple[Term, ...]:
    path = root / FOLDER / GLOSSARY
    data = _toml(path)
    _refuse(data, {"term"}, path, "the glossary")
    found = []
    for place, table in enumerate(_tables(data, "term", path, "the glossary"), 1):
        who = f"term {table.get('name', f'no. {place}')}"
        _refuse(table, {"name", "text", "lesson", "see"}, path, who)
        name, text, lesson = (_text(table, key, path, who) for key in ("name", "text", "lesson"))
        found.append(Term(name=name, text=" ".join(text.split()), lesson=lesson, see=_texts(table, "see", path, who)))
    names = [term.name for term in found]
    for term in found:
        if names.count(term.name) > 1:
            raise BadNotebook(f"{path}: the term {term.name!r} stands there twice.")
        for other in term.see:
            if other not in names:
                raise BadNotebook(f"{path}: {term.name!r} points to {other!r}, which is no term.")
    return tuple(sorted(found, key=lambda term: term.name.lower()))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadNotebook(f"{path} is not valid TOML: {error}.") from None
    except OSError as error:
        raise BadNotebook(f"{path} can not be read: {error.strerror}.") from None


def _tables(table: dict[str, Any], name: str, path: Path, who: str) -> list[dict[str, Any]]:
    found = table.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadNotebook(f"{path}: write each {name} of {who} as a table: [[{name}]], or {{text = ..., says = ...}}.")
    return found


def _text(table: dict[str, Any], name: str, path: Path, who: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadNotebook(f"{path}: {who} needs {name!r}, a text in quotes that is not empty.")
    return value


def _texts(table: dict[str, Any], name: str, path: Path, who: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadNotebook(f"{path}: {name!r} of {who} is a list of texts in quotes.")
    return tuple(value)


def _refuse(table: dict[str, Any], known: set[str], path: Path, who: str) -> None:
    for name in table:
        if name not in known:
            raise BadNotebook(
                f"{path}: {who} has a field {name!r} that is not known; there are {', '.join(sorted(known))}."
            )
