"""Whether every practice item keeps its word: its key can be computed, and every expected mistake really is one.

All code of an item is run, so this is for authors, `course check` and the tests, not for a lesson.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.learn import content, fragments
from sandbox.learn.content import Item
from sandbox.learn.fragments import Ran
from sandbox.learn.widgets import gap, parsons

UNREADABLE = ("SyntaxError", "IndentationError", "TabError")


def problems(item: Item) -> list[str]:
    """What is wrong with an item, a sentence each, with the item's id and what to change; empty for one that is right."""
    return [f"practice item {item.id}: {wrong}" for wrong in _CHECKS[item.kind](item)]


def all_problems(root: Path | None = None) -> list[str]:
    """The problems of every item of the course, in the order of the lessons. Raises BadNotebook for an unreadable file."""
    return [wrong for item in content.all_items(root) for wrong in problems(item)]


def _predict(item: Item) -> Iterator[str]:
    # Any option may be what happens in another run, so one at most can be silent.
    silent = [option.text for option in item.options if not option.says]
    if len(silent) > 1:
        yield f"the options {', '.join(map(repr, silent))} say nothing; only the right one may. Write says for the others."
    yield from _alike((option.text, option.says) for option in item.options)
    if item.code:
        ran = fragments.run(item.code)
        if ran.kind != "value":
            yield f"its code {_ended(ran)}; mend it so that it runs to its end."


def _choose(item: Item) -> Iterator[str]:
    ran = fragments.run(item.code)
    if ran.kind == "no end" or _unreadable(ran):
        yield f"its code {_ended(ran)}; mend it."
        return
    right = [option for option in item.options if option.text.strip() == ran.outcome]
    if not right:
        yield f"its code gives {ran.outcome!r}, and none of its options says so; write one that does."
    for option in item.options:
        if right and option not in right and not option.says:
            yield f"the option {option.text!r} is wrong and says nothing; write what is said to whoever chooses it."
    yield from _alike((option.text, option.says) for option in item.options)


def _gap(item: Item) -> Iterator[str]:
    wanted = fragments.run(gap.complete(item, item.answers))
    if wanted.kind == "no end" or _unreadable(wanted):
        yield f"filled with its answers, its code {_ended(wanted)}; mend it."
        return
    _run_at_once([gap.complete(item, mistake.answers) for mistake in item.mistakes])
    for mistake in item.mistakes:
        ran = fragments.run(gap.complete(item, mistake.answers))
        if ran.outcome == wanted.outcome:
            yield (
                f"the mistake {list(mistake.answers)} does the same as its answers, so it is right; "
                "take it away, or let the code show the difference."
            )
    yield from _alike((str(list(mistake.answers)), mistake.says) for mistake in item.mistakes)


def _parsons(item: Item) -> Iterator[str]:
    solution = [parsons.split(line) for line in item.lines]
    wanted = fragments.run(parsons.program(item, solution))
    if wanted.kind != "value":
        yield f"its lines in their order: the program {_ended(wanted)}; mend it, or let `after` catch and print the error."
        return
    swaps = [[*solution[:n], solution[n + 1], solution[n], *solution[n + 2 :]] for n in range(len(solution) - 1)]
    taken = [
        (option.text, n, [*solution[:n], (option.text.strip(), solution[n][1]), *solution[n + 1 :]])
        for option in item.distractors
        for n in range(len(solution))
    ]
    _run_at_once([parsons.program(item, lines) for lines in [*swaps, *(lines for _, _, lines in taken)]])
    for n, swapped in enumerate(swaps):
        same = fragments.run(parsons.program(item, swapped)).outcome == wanted.outcome
        if same != (not parsons.judge(item, swapped).wrong):
            says = "does the same and is" if same else "does something else and is not"
            yield f"with lines {n + 1} and {n + 2} swapped it {says} called wrong; this is a fault of the grader."
    for text, n, lines in taken:
        if fragments.run(parsons.program(item, lines)).outcome == wanted.outcome:
            yield (
                f"the distractor {text.strip()!r} in the place of line {n + 1}, {item.lines[n].strip()!r}, does the same, so "
                "it is right; take another, or let `before` and `after` show the difference."
            )
    yield from _alike((option.text, option.says) for option in item.distractors)


def _alike(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A message that is said to two mistakes can not name the cause of both."""
    seen: dict[str, str] = {}
    for text, says in said:
        if says and says in seen:
            yield f"{seen[says]!r} and {text!r} are told the same; write to each what is wrong with it."
        seen.setdefault(says, text)


def _ended(ran: Ran) -> str:
    if ran.kind == "no end":
        return f"does not end within {fragments.SECONDS} seconds"
    at = f" on line {ran.line}" if ran.line else ""
    return f"ends with {ran.error}{at}"


def _unreadable(ran: Ran) -> bool:
    return ran.kind == "error" and ran.error.partition(":")[0] in UNREADABLE


def _run_at_once(programs: list[str]) -> None:
    """Each is a process of its own; their outcomes are remembered by ``fragments.run``."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(fragments.run, dict.fromkeys(programs)))


_CHECKS: dict[str, Callable[[Item], Iterator[str]]] = {
    "choose": _choose,
    "gap": _gap,
    "parsons": _parsons,
    "predict": _predict,
}
