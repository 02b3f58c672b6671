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
                NotYet(f"For the state {state!r} your function raised {outcome.type}: {outcome.message}{line}.")
            )
        elif outcome.kind != "value":
            results.append(
                NotYet(f"For the state {state!r} your function did not come back.", why="It only has to answer.")
            )
        elif outcome.value is not right:
            said = outcome.value if outcome.type == "bool" else f"a {outcome.type}"
            results.append(
                NotYet(
                    f"For a job that is {state} your function answered {said}.",
                    seen="Somebody who waits for a job that is over, or gives up on one that is not.",
                    why=f"{state} {'is' if right else 'is not'} a terminal state, so the answer is {right}.",
                )
            )
        else:
            results.append(None)
    return results
