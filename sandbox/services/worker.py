"""What a worker is started with, and which of it can not work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.errors import BadSetting, PoolIgnoresLimits

LIMITS_HOLD = "prefork"
# threads, solo and eventlet ran 3 s under a soft or a hard limit of 1 s and reported SUCCESS. gevent did so under the soft
# one; under the hard one it left a sleeping task at 1 s, its row running, and called a busy one FAILURE after it had completed.
POOLS = ("prefork", "threads", "solo", "gevent", "eventlet")


@dataclass(frozen=True, kw_only=True)
class Worker:
    """The worker that is running: what it was started with."""

    pid: int
    pool: str
    concurrency: int
    soft_time_limit: float | None
    time_limit: float | None
    log: Path

    @property
    def enforces_limits(self) -> bool:
        return self.pool == LIMITS_HOLD


def worker_options(
    *,
    concurrency: int = 1,
    pool: str = LIMITS_HOLD,
    soft_time_limit: float | None = None,
    time_limit: float | None = None,
    include: tuple[str, ...] | list[str] = (),
    limits_may_be_ignored: bool = False,
) -> dict[str, Any]:
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 1 <= concurrency <= 64:
        raise BadSetting(f"concurrency={concurrency!r}: write a whole number of processes from 1 to 64.")
    if pool not in POOLS:
        raise BadSetting(f"pool={pool!r}: the pools are {', '.join(POOLS)}.")
    if pool != LIMITS_HOLD and not limits_may_be_ignored:
        raise PoolIgnoresLimits(ignored(pool))
    return {
        "concurrency": concurrency,
        "pool": pool,
        "soft_time_limit": limit("soft_time_limit", soft_time_limit),
        "time_limit": limit("time_limit", time_limit),
        "include": list(include),
        "limits_may_be_ignored": limits_may_be_ignored,
    }


def ignored(pool: str) -> str:
    """What `pool` does with limits, as runs on Celery 5.7 show, and what to type."""
    does = "runs a task past its soft and hard limit without a warning"
    if pool == "gevent":
        does = "knows no soft limit, and a hard one only while the task waits for something that gevent has patched"
    return (
        f"the {pool} pool {does}; only prefork enforces both. Use "
        f'lab.worker(pool="prefork"), or lab.worker(pool="{pool}", limits_may_be_ignored=True) and no limits, to see it.'
    )


def limit(name: str, value: Any) -> float | None:
    """A limit in seconds, or None. A wrong type in a message kills the worker that reads it, and the next one too."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise BadSetting(f"{name}={value!r}: write a number of seconds above zero, for example {name}=2.")
    return value
