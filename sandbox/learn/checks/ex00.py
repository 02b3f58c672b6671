"""Lesson 00: hand something in."""

from __future__ import annotations

from typing import Any

from sandbox.grade import Outcome, Reply, Submission, run_cases
from sandbox.jobs import TERMINAL, State
from sandbox.learn.checks.wording import said_at, said_error
from sandbox.learn.verdict import NotAttempted, NotYet

ENDED = [[str(state)] for state in (State.COMPLETED, State.RUNNING, State.PENDING, State.FAILED, State.CANCELLED)]
WAITS = "somebody who waits for a job that is over"
GIVES_UP = "somebody who gives up on a job that goes on"


def ended(function: Any, cases: list[list[str]] = ENDED) -> list[Any]:
    """`function` gets a state's text and says whether a job in that state has ended.

    What is told of one wrong answer names all of them.
    """
    orders = [{"args": case} for case in cases]
    outcomes = run_cases(Submission.of(function), orders, [lambda _: Reply()] * len(cases))
    judged = [(state, outcome) for [state], outcome in zip(cases, outcomes, strict=True)]
    wrong: dict[str, list[str]] = {}  # what the function did -> the states for which it did that
    for state, outcome in judged:
        if not _right(state, outcome):
            wrong.setdefault(_did(outcome), []).append(state)
    (first, *others) = [f"for {_listed(states)} {{}} {did}" for did, states in wrong.items()] or [""]
    happened = ", ".join([first.replace("{}", "your function", 1), *(other.replace("{}", "it", 1) for other in others)])
    return [
        NotAttempted()
        if outcome.type == "NotImplementedError"
        else None
        if _right(state, outcome)
        else _not_yet(f"{happened[:1].upper()}{happened[1:]}.", outcome, wrong)
        for state, outcome in judged
    ]


def _right(state: str, outcome: Outcome) -> bool:
    return outcome.kind == "value" and outcome.value is (State(state) in TERMINAL)


def _did(outcome: Outcome) -> str:
    if outcome.kind == "error":
        return f"raised {said_error(outcome)}, {said_at(outcome.where)}"
    if outcome.kind != "value":
        return "did not come back"
    if outcome.type == "NoneType":
        return "answered nothing (None)"
    return f"answered {outcome.value if outcome.type == 'bool' else f'a value of type {outcome.type}'}"


def _not_yet(happened: str, outcome: Outcome, wrong: dict[str, list[str]]) -> NotYet:
    if outcome.kind == "error":
        return NotYet(
            happened,
            seen="No answer at all, for whoever asks whether the job has ended.",
            why="The function gets the text in the column `state`, for example 'running', and nothing else.",
            mistake=f"the function raised {outcome.type}",
            hints=False,
        )
    if outcome.kind != "value":
        return NotYet(
            happened,
            seen="No answer at all, for whoever asks whether the job has ended.",
            why="It only has to answer.",
            mistake="the function did not come back",
            hints=False,
        )
    if outcome.type != "bool":
        return NotYet(
            happened,
            seen="Whoever writes `if has_ended(...)` goes by an answer that nobody gave.",
            why="The function has to return True or False, with the word `return`.",
            mistake="the answer is not True or False",
            hints=False,
        )
    missed, invented = wrong.get("answered False", []), wrong.get("answered True", [])
    seen = ", and ".join(who for who, states in ((WAITS, missed), (GIVES_UP, invented)) if states)
    why = [
        f"{_listed(states)} {'is' if len(states) == 1 else 'are'} {no}terminal, so the answer is {answer}"
        for states, no, answer in ((missed, "", True), (invented, "not ", False))
        if states
    ]
    return NotYet(
        happened,
        seen=f"{seen[0].upper()}{seen[1:]}.",
        why=f"{'; '.join(why)}.",
        mistake="a state that ends was taken for one that does not"
        if outcome.value is False
        else "a state that does not end was taken for one that does",
    )


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
