"""What a store of job rows does: the row, the contract, and what is refused before it is tried.

``postgres.py`` and ``memory.py`` keep it, with the same behaviour.

Every change of state is one compare-and-set: it names the states it may come from and answers who won. ``None`` or
``False`` means somebody else was first; it is an answer, not an error.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Protocol

from sandbox.errors import BadSetting, IllegalTransition, JobNotFound
from sandbox.jobs.states import TERMINAL, State, sources

LARGEST_COUNT = 2**31 - 1  # what an integer column holds
LONGEST_SECONDS = 10**9  # thirty years; a moment further away than year 9999 can not be written down


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """One job, as its row says."""

    id: str
    task: str
    args: dict[str, Any] = field(default_factory=dict)
    state: State = State.PENDING
    why: str | None = None
    attempt: int = 0
    max_attempts: int = 1
    soft_limit_seconds: float | None = None
    hard_limit_seconds: float | None = None
    lease_until: datetime | None = None
    deadline_at: datetime | None = None
    done: int = 0
    total: int | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL


class JobStore(Protocol):
    """The contract that ``tests/contracts/test_job_store.py`` holds both stores to."""

    def add(
        self,
        task: str,
        args: dict[str, Any] | None = None,
        *,
        max_attempts: int = 1,
        soft_limit_seconds: float | None = None,
        hard_limit_seconds: float | None = None,
        deadline_at: datetime | None = None,
        total: int | None = None,
    ) -> JobRow:
        """Insert a pending job and return it. Raises BadSetting for a limit or count that can not work."""

    def get(self, job_id: str) -> JobRow:
        """Return the row; raises JobNotFound."""

    def all(self) -> list[JobRow]:
        """Every job, oldest first."""

    def newest(self, limit: int) -> list[JobRow]:
        """The `limit` jobs that were added last, oldest first; fewer if there are fewer. Raises BadSetting."""

    def now(self) -> datetime:
        """The clock that the rows' moments come from, which need not agree with ours."""

    def start(self, job_id: str, *, lease_seconds: float) -> JobRow | None:
        """Pending to running, counting the attempt; None if it was not pending or has no attempt left."""

    def finish(self, job_id: str, state: State, why: str | None = None) -> bool:
        """To a terminal state; True for the one caller who made the change. Raises IllegalTransition for a state
        that is not terminal, JobNotFound for an unknown id."""

    def release(self, job_id: str, why: str) -> bool:
        """Running back to pending because another attempt will follow; False if none is left or it is not running."""

    def progress(self, job_id: str, done: int, total: int | None = None) -> bool:
        """Record how far the attempt got; False, and nothing changed, if the job is not running."""

    def stuck(self, *, otherwise_seconds: float = 3600.0, grace_seconds: float = 0.0) -> list[JobRow]:
        """Jobs running for longer than their own limit allows (`otherwise_seconds` for those without one)."""

    def counts(self) -> dict[str, int]:
        """How many jobs stand in each state; states without jobs are left out."""


def check_new(
    task: str,
    args: dict[str, Any] | None,
    max_attempts: int,
    soft: float | None,
    hard: float | None,
    deadline_at: datetime | None,
    total: int | None,
) -> None:
    if not isinstance(task, str) or not task or "\0" in task:
        raise BadSetting("a job needs the name of its task, for example add('import_orders').")
    try:
        stored_json(args)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadSetting(f"args={args!r} can not be stored ({error}): use text, numbers, lists and dicts.") from None
    if _number(max_attempts, int) is None or not 1 <= max_attempts <= LARGEST_COUNT:
        raise BadSetting(f"max_attempts={max_attempts!r}: a job needs at least one attempt, in a whole number.")
    for name, value in (("soft_limit_seconds", soft), ("hard_limit_seconds", hard)):
        if value is not None and (_number(value, float) is None or not 0 < value <= LONGEST_SECONDS):
            raise BadSetting(f"{name}={value!r}: a limit is a number of seconds above zero; leave it out for no limit.")
    require_count("total", total)
    if soft is not None and hard is not None and soft >= hard:
        raise BadSetting(
            f"soft limit {soft} s, hard limit {hard} s: the soft one must be the shorter, or the task is killed before "
            "it hears anything. For example soft_limit_seconds=10, hard_limit_seconds=15."
        )
    if deadline_at is not None and (not isinstance(deadline_at, datetime) or deadline_at.utcoffset() is None):
        raise BadSetting(
            f"deadline_at={deadline_at!r} has no timezone, so it names no moment. "
            "Write datetime(..., tzinfo=UTC) or datetime(..., tzinfo=ZoneInfo('Europe/Berlin'))."
        )


def stored_json(value: Any) -> str:
    """`value` as the JSON text that PostgreSQL can store. Raises TypeError, ValueError or RecursionError."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    # After an even number of backslashes it is the character; after an odd number it is a text about it.
    if re.search(r"(?<!\\)(\\\\)*\\u0000", text):
        raise ValueError("it holds a NUL character, which PostgreSQL can not store")
    return text


def _number(value: Any, kind: type[int | float]) -> Any:
    """`value` if it is a number of that kind (a whole one is also a float, true and false are neither), else None."""
    allowed = (int, float) if kind is float else (int,)
    return value if isinstance(value, allowed) and not isinstance(value, bool) else None


def require_count(name: str, value: Any) -> None:
    if value is not None and (_number(value, int) is None or not 0 <= value <= LARGEST_COUNT):
        raise BadSetting(f"{name}={value!r}: write how many items, a whole number from zero.")


def require_lease(lease_seconds: Any) -> None:
    if _number(lease_seconds, float) is None or not 0 < lease_seconds <= LONGEST_SECONDS:
        raise BadSetting(f"lease_seconds={lease_seconds!r}: write a number of seconds above zero.")


def storable(why: str | None) -> str | None:
    """`why` as PostgreSQL can store it: the text of an error may hold anything, and must not keep a job from ending."""
    return None if why is None else str(why).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def require_terminal(state: State) -> State:
    state = State.parse(state)
    if state not in TERMINAL:
        raise IllegalTransition(f"a job can not be finished as {state}: choose one of {', '.join(sorted(TERMINAL))}.")
    return state


def has_ended(row: JobRow, state: State) -> bool:
    """Whether somebody else ended the job. If not it has moved on meanwhile, and the change is to be tried again.

    A lost race is an answer; a move that the state machine does not have is a mistake in the caller's code.
    """
    if not row.terminal and row.state not in sources(state):
        raise IllegalTransition(f"job {row.id} is {row.state} and can not become {state} from there.")
    return row.terminal


def job_key(job_id: str) -> uuid.UUID:
    try:
        return uuid.UUID(str(job_id))
    except ValueError:
        raise JobNotFound(f"{job_id!r} is not a job id; store.all() shows the jobs there are.") from None


def as_dict(row: JobRow) -> dict[str, Any]:
    """The row as JSON-ready values: moments as ISO 8601 text."""
    return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in asdict(row).items()}
