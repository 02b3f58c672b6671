"""Lesson 00: hand something in."""

from __future__ import annotations

from typing import Any

from sandbox.grade import Reply, Submission, run_cases
from sandbox.jobs import TERMINAL, State
from sandbox.learn.verdict import NotAttempted, NotYet

ENDED = [[str(state)] for state in (State.COMPLETED, State.RUNNING, State.PENDING, State.FAILED)]


def ended(function: Any, cases: list[list[str]] = ENDED) -> list[Any]:
    """`function` gets a state's text and says whether a job in that state has ended."""
    orders = [{"args": case} for case in cases]
    outcomes = run_cases(Submission.of(function), orders, [lambda _: Reply()] * len(cases))
    results: list[Any] = []
    for [state], outcome in zip(cases, outcomes, strict=True):
        right = State(state) in TERMINAL
        if outcome.type == "NotImplementedError":
            results.append(NotAttempted())
        elif outcome.kind == "error":
            line = f" at line {outcome.where['line']}" if outcome.where.get("line") else ""
            results.append(
                NotYet(
                    f"For the state {state!r} your function raised {outcome.type}: {outcome.message}{line}.",
                    seen="No answer at all, for whoever asks whether the job has ended.",
                    why="The function gets the text in the column `state`, for example 'running', and nothing else.",
                    mistake=f"the function raised {outcome.type}",
                )
            )
        elif outcome.kind != "value":
            results.append(
                NotYet(
                    f"For the state {state!r} your function did not come back.",
                    why="It only has to answer.",
                    mistake="the function did not come back",
                )
            )
        elif outcome.value is not right:
            said = outcome.value if outcome.type == "bool" else f"a value of type {outcome.type}"
            if outcome.type == "NoneType":
                said = "nothing (None)"
            results.append(
                NotYet(
                    f"For a job that is {state} your function answered {said}.",
                    seen="Whoever writes `if has_ended(...)` goes by an answer that nobody gave."
                    if outcome.type != "bool"
                    else "Somebody who waits for a job that is over."
                    if right
                    else "Somebody who gives up on a job that goes on.",
                    why=f"{state} {'is' if right else 'is not'} a terminal state, so the answer is {right}."
                    if outcome.type == "bool"
                    else "The function has to return True or False, with the word `return`.",
                    mistake="a state that ends was taken for one that does not"
                    if outcome.value is False
                    else "a state that does not end was taken for one that does"
                    if outcome.value is True
                    else "the answer is not True or False",
                )
            )
        else:
            results.append(None)
    return results
