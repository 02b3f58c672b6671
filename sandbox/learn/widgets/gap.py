"""Fill the gaps of a program. The completed program is run: what it does is judged, not what was typed.

The key is what the program does with the item's own answers. Another filling with the same outcome is right as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import fragments, progress
from sandbox.learn.content import GAP, LONGEST_FILLING, Item, Mistake
from sandbox.learn.fragments import Ran
from sandbox.learn.widgets.base import MARKS, RIGHT, WRONG, Practice, script, style

NOT_ATTEMPTED = "not attempted"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is said to a filling."""

    verdict: str  # right, not yet, not attempted
    message: str
    printed: str = ""  # by the completed program, where the message does not tell the cause
    expected: str = ""  # what it should have printed


def complete(item: Item, answers: Sequence[str]) -> str:
    """The program with its gaps filled."""
    parts = item.code.split(GAP)
    return parts[0] + "".join(answer.strip() + part for answer, part in zip(answers, parts[1:], strict=True))


def key(item: Item) -> Ran:
    """What the program does with the item's own answers. Raises BadNotebook when it does not end."""
    ran = fragments.run(complete(item, item.answers))
    if ran.kind == "no end":
        raise BadNotebook(f"practice item {item.id}: filled with its answers, its program does not end; mend its code.")
    return ran


def judge(item: Item, answers: Sequence[str]) -> Judged:
    """Run the program with these answers, one for each gap, and say what came of it."""
    empty = [place for place, answer in enumerate(answers, 1) if not answer.strip()]
    if empty:
        which = f"gaps {', '.join(map(str, empty))} are" if len(empty) > 1 else f"gap {empty[0]} is"
        return Judged(verdict=NOT_ATTEMPTED, message=f"{which} empty. Type one line of code into each.")
    wanted, ran = key(item), fragments.run(complete(item, answers))
    if ran.outcome == wanted.outcome:
        return Judged(verdict=RIGHT, message=item.why)
    mistake = _mistake(item, answers, ran)
    if mistake is not None:
        return Judged(verdict=WRONG, message=mistake.says)
    if ran.kind == "error":
        message = f"The program ends with `{ran.error}`{_where(complete(item, answers), ran)}."
    elif ran.kind == "no end":
        message = f"The program had not ended after {fragments.SECONDS} seconds, and was stopped."
    else:
        message = "The program runs to its end, and does something else than it should."
    return Judged(verdict=WRONG, message=message, printed=ran.printed or "(nothing)", expected=_expected(item, wanted))


def _where(code: str, ran: Ran) -> str:
    lines = code.splitlines()
    if ran.line is None or not 0 < ran.line <= len(lines):
        return ""
    return f" on line {ran.line} (`{lines[ran.line - 1].strip()}`)"


def _mistake(item: Item, answers: Sequence[str], ran: Ran) -> Mistake | None:
    """The expected mistake that these answers are, or that behaves as they do; None if that does not single one out."""
    typed = [answer.strip() for answer in answers]
    for mistake in item.mistakes:
        if [answer.strip() for answer in mistake.answers] == typed:
            return mistake
    # What can not be parsed does nothing, so it is like nothing. Of an error its words count, and not its class alone:
    # two names that do not exist are two mistakes.
    if ran.kind == "error" and ran.error.partition(":")[0] in ("SyntaxError", "IndentationError", "TabError"):
        return None
    alike: dict[int, list[Mistake]] = {}
    for mistake in item.mistakes:
        other = fragments.run(complete(item, mistake.answers))
        if (other.kind, other.printed, other.error) == (ran.kind, ran.printed, ran.error):
            shared = sum(a == b.strip() for a, b in zip(typed, mistake.answers, strict=True))
            alike.setdefault(shared, []).append(mistake)
    nearest = alike[max(alike)] if alike else []
    return nearest[0] if len(nearest) == 1 else None


def _expected(item: Item, wanted: Ran) -> str:
    """What the program should print; "" if that gives an answer away.

    What it should do is part of the question: without it somebody could only guess what "right" means. But an output
    that contains one of the answers can be copied into the gap without a thought.
    """
    given_away = any(answer.strip() in wanted.outcome for answer in item.answers)
    return "" if given_away else wanted.outcome or "(nothing)"


class Gap(Practice):
    """One program with gaps, and as many tries as you like."""

    _esm = script("gap")
    _css = style("gap")
    actions = ("answer",)

    def __init__(self, item: Item) -> None:
        self.item = item
        parts = item.code.split(GAP)
        super().__init__(
            id=item.id,
            question=item.question,
            parts=parts,  # of the program, between its gaps
            filled=[""] * (len(parts) - 1),
            verdict="",
            message="",
            printed="",
            expected="",
        )
        before = progress.last("answer", item.id)
        if before is not None:
            self._back(before.data)

    def answer(self, *answers: str) -> Gap:
        """Fill the gaps, in their order, and run the program.

        Raises BadSetting for another number of answers than gaps, and for one that is no text, has a line break, or is
        longer than LONGEST_FILLING.
        """
        self._refuse(answers)
        judged = judge(self.item, answers)
        self.change(filled=list(answers), problem="", **vars(judged))
        if judged.verdict != NOT_ATTEMPTED:
            given, right = list(answers), judged.verdict == RIGHT
            told = {} if right else {"message": judged.message, "printed": judged.printed, "expected": judged.expected}
            progress.record("answer", self.item.lesson, self.item.id, answer=given, right=right, told=told)
        return self

    def _refuse(self, answers: Sequence[Any]) -> None:
        gaps = len(self.state["filled"])
        if len(answers) != gaps:
            there = f"there are {gaps} gaps" if gaps > 1 else "there is one gap"
            raise BadSetting(f"{there}, and {len(answers)} answers: type {self._call}.")
        for place, answer in enumerate(answers, 1):
            if not isinstance(answer, str):
                raise BadSetting(f"gap {place} can not be filled with {answer!r}: type text in quotes, {self._call}.")
            if len(answer.strip().splitlines()) > 1:
                raise BadSetting(f"gap {place} is for one line of code, and this has a line break: type one line.")
            if len(answer) > LONGEST_FILLING:
                raise BadSetting(
                    f"gap {place} is for {LONGEST_FILLING} characters at most, and this has {len(answer)}: type less."
                )

    @property
    def _call(self) -> str:
        dots = ", ".join(['"..."'] * len(self.state["filled"]))
        return f'practice("{self.item.id}").answer({dots})'

    def _back(self, data: dict[str, Any]) -> None:
        """Show what was answered before this kernel. An entry that does not fit the item, which may have changed since, is
        passed over."""
        answers, right = data.get("answer"), data.get("right") is True
        if not isinstance(answers, list):
            return
        try:
            self._refuse(answers)
        except BadSetting:
            return
        told = data.get("told")
        known = told if isinstance(told, dict) else {}
        said = {n: known[n] for n in ("message", "printed", "expected") if isinstance(known.get(n), str)}
        said |= {"message": self.item.why} if right else {}
        self.change(filled=answers, verdict=RIGHT if right else WRONG, **said)

    def __str__(self) -> str:
        state = self.state
        shown = [answer.strip() or GAP for answer in state["filled"]]
        lines = [state["id"] + "  " + state["question"], "", *_indented(complete(self.item, shown)), ""]
        if not state["verdict"]:
            many = "the gaps, in their order," if len(shown) > 1 else "the gap"
            return "\n".join([*lines, f"Fill {many} with {self._call}."])
        mark = MARKS.get(state["verdict"], "–")
        lines += [f"{mark} {state['verdict']}: {state['message']}"]
        for title, text in (("It printed:", state["printed"]), ("It should print:", state["expected"])):
            lines += [title, *_indented(text)] if text else []
        return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"    {line}".rstrip() for line in text.splitlines()]
