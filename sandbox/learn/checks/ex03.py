"""Lesson 03: the swallowed signal."""

from __future__ import annotations

from typing import Any

from sandbox.learn.checks.batch import run_batches
from sandbox.learn.checks.books import Batch
from sandbox.learn.checks.letter import message
from sandbox.learn.checks.rows import Planted, judge_query, query_of

LOOP = [
    Batch(title="a file without bad rows"),
    Batch(title="two bad rows", bad=(2, 5), seed=2),
    Batch(title="the limit lands while a row is being saved", limit="saving", at=3, seed=3),
    # Whoever learns alone has no other judge: each kind of place is tried here, and graded with other files.
    Batch(title="the limit lands between two rows", limit="between", at=5, seed=4),
    Batch(title="the limit lands while a failure is recorded", bad=(2,), limit="recording", at=2, seed=5),
    Batch(title="the limit lands after the last row", limit="completing", seed=6),
    Batch(title="the limit lands after the job was completed", limit="completed", seed=7),
]

STUCK = [
    Planted(name="stuck", state="running", minutes=60, soft=10, hard=15, stuck=True),
    Planted(name="old, but allowed to be", state="running", minutes=60, soft=100, hard=120),
    Planted(name="young", state="running", minutes=5, soft=10, hard=15),
    Planted(name="long finished", state="completed", minutes=600, soft=10, hard=15),
    Planted(name="no hard limit, past the soft one", state="running", minutes=50, soft=25, stuck=True),
    Planted(name="no hard limit, within the soft one", state="running", minutes=50, soft=75),
    Planted(name="no limit at all, for three hours", state="running", minutes=180, stuck=True),
    Planted(name="past the soft limit, within the hard one", state="running", minutes=11, soft=10, hard=20),
]


def loop(function: Any, cases: list[Batch] = LOOP) -> list[Any]:
    return run_batches(function, cases)


def stuck(function: Any, cases: list[list[Planted]] | None = None) -> list[Any]:
    from sandbox.learn.verdict import NotAttempted, NotYet

    results: list[Any] = []
    try:
        sql = query_of(function)
    except (NotYet, NotAttempted) as found:
        return [found for _ in cases or [STUCK]]
    for rows in cases or [STUCK]:
        try:
            judge_query(sql, rows)
            results.append(None)
        except NotYet as found:
            results.append(found)
    return results


__all__ = ["LOOP", "STUCK", "loop", "message", "stuck"]
