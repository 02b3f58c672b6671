"""Put lines in order, and indent them: a Parsons problem. Partial credit, and only the first thing that is wrong is named.

An answer is written "c a> b>>": the letter of a line, then a > for each step of its indentation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import fragments, progress
from sandbox.learn.content import INDENT, Item, Option
from sandbox.learn.fragments import Ran
from sandbox.learn.widgets.base import MARKS, RIGHT, WRONG, Practice, letter, script, style

NOT_ATTEMPTED = "not attempted"
DEEPEST = 8  # steps of indentation; beyond it is a slip of the finger
Line = tuple[str, int]  # the text without its indentation, and the steps of it


@dataclass(frozen=True, kw_only=True)
class Grade:
    """What an answer is worth, and the first thing that is wrong with it."""

    in_order: int  # the longest part that is in the right order and indented right, less the distractors
    total: int
    wrong: str = ""  # distractor, order, indent, missing, or "" for nothing
    place: int = -1  # of the wrong line in the answer, from 0
    wanted: int = -1  # order, indent: its place in the solution, from 0
    goes_after: int = -1  # order: the line of the solution after which the learner has put it; -1 for before all
    message: str = ""

    @property
    def score(self) -> str:
        return f"{self.in_order} of {self.total} lines in order"


def split(line: str) -> Line:
    text = line.lstrip(" ")
    return text, (len(line) - len(text)) // len(INDENT)


def grade(solution: Sequence[Line], distractors: Sequence[Option], placed: Sequence[Line]) -> Grade:
    """Compare an answer with one solution. Identical lines are interchangeable; an empty answer misses every line."""
    messages = {option.text.strip(): option.says for option in distractors}
    wrongly = [place for place, (text, _) in enumerate(placed) if text in messages]
    exact = len(_longest(placed, solution, lambda a, b: (a == b, 0)))
    worth = Grade(in_order=max(0, exact - len(wrongly)), total=len(solution))
    if wrongly:
        text = placed[wrongly[0]][0]
        return replace(worth, wrong="distractor", place=wrongly[0], message=f"`{text}` is taken. {messages[text]}")
    # Of two ways to pair identical lines the one with the right indentation, or a right answer would be out of order.
    kept = _longest(placed, solution, lambda a, b: (a[0] == b[0], a == b))
    pairs, used = dict(kept), {wanted for _, wanted in kept}
    for place, (text, _) in enumerate(placed):
        if place in pairs:
            continue
        free = [at for at, line in enumerate(solution) if line[0] == text and at not in used]
        who = f"Line {place + 1} of your answer, `{text}`,"
        if not free:
            return replace(
                worth, wrong="order", place=place, message=f"{who} stands there more often than it is needed."
            )
        above = max((wanted for at, wanted in kept if at < place), default=-1)
        says = f"{who} is out of place: it belongs further {'up' if above > free[0] else 'down'}."
        return replace(worth, wrong="order", place=place, wanted=free[0], goes_after=above, message=says)
    for place, wanted in kept:
        text, steps = placed[place]
        if steps != solution[wanted][1]:
            how = "too far in" if steps > solution[wanted][1] else "not far enough in"
            says = f"Line {place + 1} of your answer, `{text}`, is {how}."
            return replace(worth, wrong="indent", place=place, wanted=wanted, message=says)
    if missing := len(solution) - len(placed):
        lines = "one line is" if missing == 1 else f"{missing} lines are"
        so_far = "What you have placed is in order; " if placed else "Nothing is placed yet; "
        return replace(worth, wrong="missing", message=f"{so_far}{lines} missing.")
    return worth


def _longest(
    placed: Sequence[Line], solution: Sequence[Line], like: Callable[[Line, Line], tuple[bool, int]]
) -> list[tuple[int, int]]:
    """The longest common part of both in order, as pairs of places; of equals, the one with the better second number.

    With lines that all differ it is the longest increasing subsequence. Where two are as good, the one that leaves out the
    earlier line of the answer: that is the first one to look wrong to whoever reads from the top.
    """
    best = [[(0, 0)] * (len(solution) + 1) for _ in range(len(placed) + 1)]
    paired: dict[tuple[int, int], tuple[int, int]] = {}
    for at in reversed(range(len(placed))):
        for wanted in reversed(range(len(solution))):
            best[at][wanted] = max(best[at + 1][wanted], best[at][wanted + 1])
            same, better = like(placed[at], solution[wanted])
            if same:
                rest = best[at + 1][wanted + 1]
                paired[at, wanted] = (rest[0] + 1, rest[1] + better)
                best[at][wanted] = max(best[at][wanted], paired[at, wanted])
    found, wanted = [], 0
    for at in range(len(placed)):
        if best[at + 1][wanted] == best[at][wanted]:
            continue
        wanted = next(w for w in range(wanted, len(solution)) if paired.get((at, w)) == best[at][wanted])
        found.append((at, wanted))
        wanted += 1
    return found


def program(item: Item, lines: Iterable[Line]) -> str:
    """What is run: the lines between what stands before and after them."""
    return "\n".join(filter(None, [item.before, *(INDENT * steps + text for text, steps in lines), item.after]))


def key(item: Item) -> Ran:
    """What the solution does. Raises BadNotebook when it does not end."""
    ran = fragments.run(program(item, map(split, item.lines)))
    if ran.kind == "no end":
        raise BadNotebook(f"practice item {item.id}: its lines, in their order, do not end; mend them.")
    return ran


def judge(item: Item, placed: Sequence[Line]) -> Grade:
    """Grade an answer. There may be several right orders: what does the same as the solution is right as well."""
    solution = [split(line) for line in item.lines]
    found = grade(solution, item.distractors, placed)
    if found.wrong in ("", "distractor", "missing"):
        return found

    def same(lines: Sequence[Line]) -> bool:
        return fragments.run(program(item, lines)).outcome == key(item).outcome

    if len(placed) == len(solution) and same(placed):
        return Grade(in_order=found.total, total=found.total)
    # A line must not be blamed for standing elsewhere when it may. So the solution is run with this line where the learner
    # has it, and if it does the same, that is the solution the rest is compared with.
    while found.wrong in ("order", "indent") and found.wanted >= 0:
        other = solution[: found.wanted] + solution[found.wanted + 1 :]
        to = found.wanted
        if found.wrong == "order":
            to = found.goes_after + 1 - (found.wanted <= found.goes_after)
        other.insert(to, placed[found.place])
        if other == solution or not same(other):
            break
        solution = other
        found = grade(solution, item.distractors, placed)
    return found


def pool(item: Item) -> list[str]:
    """The lines to choose from, without indentation: always the same order for an item, and never the right one."""
    texts = [line.strip() for line in [*item.lines, *(option.text for option in item.distractors)]]
    right = texts[: len(item.lines)]
    for turn in count():
        mixed = sorted(
            range(len(texts)), key=lambda place: hashlib.sha256(f"{item.id} {turn} {place}".encode()).digest()
        )
        if [texts[place] for place in mixed if place < len(right)] != right:
            return [texts[place] for place in mixed]
    raise AssertionError


class Parsons(Practice):
    """Lines to choose from, and an answer to build of them: by mouse, by keys, or by typing its order."""

    _esm = script("parsons")
    _css = style("parsons")
    actions = ("answer", "arrange")

    def __init__(self, item: Item) -> None:
        self.item = item
        super().__init__(
            id=item.id,
            question=item.question,
            before=item.before,
            after=item.after,
            lines=pool(item),
            deepest=DEEPEST,
            answer=[],  # the place of each line in `lines`, and its indentation
            turn=0,  # counts the changes of the answer: the page tells by it what it has overtaken
            verdict="",
            message="",
            score="",
        )
        before = progress.last("answer", item.id)
        if before is not None:
            self._back(before.data)

    def answer(self, order: str, turn: int | None = None) -> Parsons:
        """Give an order, "c a> b>>", and have it graded. Raises BadSetting for one that can not be read."""
        self.arrange(order, turn)
        placed = [(self.state["lines"][place], steps) for place, steps in self.state["answer"]]
        if not placed:
            self.change(
                verdict=NOT_ATTEMPTED, message=f"no line is placed. Put lines into the answer, or type {self._call}."
            )
            return self
        found = judge(self.item, placed)
        verdict = WRONG if found.wrong else RIGHT
        message = found.message or self.item.why
        self.change(verdict=verdict, message=message, score=found.score)
        told = {"message": message, "score": found.score}
        given = [list(line) for line in placed]
        progress.record("answer", self.item.lesson, self.item.id, answer=given, right=verdict == RIGHT, told=told)
        return self

    def arrange(self, order: str, turn: int | None = None) -> Parsons:
        """Put the lines in an order without having it graded. Raises BadSetting as `answer` does."""
        number = isinstance(turn, int) and not isinstance(turn, bool)
        fields = {"turn": turn if number else self.state["turn"] + 1, "verdict": "", "message": "", "score": ""}
        try:
            fields["answer"] = self._read(order)
        except BadSetting:
            self.change(**fields)  # what was asked for has been heard, and what was said was about something else
            raise
        self.change(**fields, problem="")
        return self

    @property
    def _call(self) -> str:
        return f'practice("{self.item.id}").answer("b a> c>>")'

    def _read(self, order: Any) -> list[list[int]]:
        how = f"a letter for each line, then > for each step of its indentation: {self._call}"
        if not isinstance(order, str):
            raise BadSetting(f"{order!r} is no order: type {how}.")
        letters = [letter(place) for place in range(len(self.state["lines"]))]
        found: list[list[int]] = []
        rest = re.sub(r"[\s,]", "", order.lower())
        while rest:
            taken = re.match(r"([a-z])(>*)", rest)
            if taken is None:
                raise BadSetting(f"the order can not be read from {rest[:20]!r} on: type {how}.")
            name, steps = taken[1], len(taken[2])
            if name not in letters:
                raise BadSetting(f"there is no line {name!r}; there are {letters[0]} to {letters[-1]}: type {how}.")
            if letters.index(name) in [place for place, _ in found]:
                raise BadSetting(f"line {name!r} stands there twice: type each letter once.")
            if steps > DEEPEST:
                raise BadSetting(f"line {name!r} is indented by {steps} steps: type {DEEPEST} > at most.")
            found.append([letters.index(name), steps])
            rest = rest[taken.end() :]
        return found

    def _back(self, data: dict[str, Any]) -> None:
        """Show what was answered before this kernel: by the texts of the lines, as the item may have changed since. What does
        not fit any more is passed over."""
        free, answer = list(enumerate(self.state["lines"])), []
        given = data.get("answer")
        for line in given if isinstance(given, list) else []:
            match line:
                case [str(text), int(steps)] if 0 <= steps <= DEEPEST and not isinstance(steps, bool):
                    found = next((place for place, other in free if other == text), None)
                case _:
                    found = None
            if found is None:
                return
            free.remove((found, text))
            answer.append([found, steps])
        if not answer:
            return
        right = data.get("right") is True
        told = data.get("told")
        said = {n: told[n] for n in ("message", "score") if isinstance(told, dict) and isinstance(told.get(n), str)}
        said |= {"message": self.item.why} if right else {}
        self.change(answer=answer, verdict=RIGHT if right else WRONG, **said)

    def __str__(self) -> str:
        state = self.state
        lines = [f"{state['id']}  {state['question']}", "", *_indented(state["before"])]
        lines += [f"  {letter(place)}) {text}" for place, text in enumerate(state["lines"])]
        lines += _indented(state["after"])
        if state["answer"]:
            lines += ["", "Your answer:"]
            lines += [f"  {letter(place)}) {INDENT * steps}{state['lines'][place]}" for place, steps in state["answer"]]
        if state["verdict"]:
            told = ". ".join(filter(None, [state["score"], state["message"]]))
            return "\n".join([*lines, "", f"{MARKS.get(state['verdict'], '–')} {state['verdict']}: {told}"])
        how = "Not every line belongs there." if self.item.distractors else "Every line belongs there."
        how = f"{how} Type a letter for each line, in order, and > for each step of its indentation:"
        return "\n".join([*lines, "", how, self._call])


def _indented(text: str) -> list[str]:
    return [f"     {line}".rstrip() for line in text.splitlines()]
