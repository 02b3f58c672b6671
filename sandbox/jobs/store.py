"""Where job rows live: in PostgreSQL, and in memory with the same behaviour.

Every change of state is one compare-and-set: it names the states it may come from and answers who won. ``None`` or
``False`` means somebody else was first; it is an answer, not an error.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import threading
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from sandbox.errors import BadSetting, IllegalTransition, JobNotFound
from sandbox.jobs.queries import queries, schema
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


def _checked(
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
        text = json.dumps(args, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError) as error:
        raise BadSetting(f"args={args!r} is not JSON ({error}): use text, numbers, lists and dicts.") from None
    if re.search(r"(?<!\\)(\\\\)*\\u0000", text):
        raise BadSetting(f"args={args!r} holds a NUL character, which PostgreSQL can not store: remove it.")
    if _number(max_attempts, int) is None or not 1 <= max_attempts <= LARGEST_COUNT:
        raise BadSetting(f"max_attempts={max_attempts!r}: a job needs at least one attempt, in a whole number.")
    for name, value in (("soft_limit_seconds", soft), ("hard_limit_seconds", hard)):
        if value is not None and (_number(value, float) is None or not 0 < value <= LONGEST_SECONDS):
            raise BadSetting(f"{name}={value!r}: a limit is a number of seconds above zero; leave it out for no limit.")
    _require_count("total", total)
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


def _number(value: Any, kind: type[int | float]) -> Any:
    """`value` if it is a number of that kind (a whole one is also a float, true and false are neither), else None."""
    allowed = (int, float) if kind is float else (int,)
    return value if isinstance(value, allowed) and not isinstance(value, bool) else None


def _require_count(name: str, value: Any) -> None:
    if value is not None and (_number(value, int) is None or not 0 <= value <= LARGEST_COUNT):
        raise BadSetting(f"{name}={value!r}: write how many items, a whole number from zero.")


def _require_lease(lease_seconds: Any) -> None:
    if _number(lease_seconds, float) is None or not 0 < lease_seconds <= LONGEST_SECONDS:
        raise BadSetting(f"lease_seconds={lease_seconds!r}: write a number of seconds above zero.")


def _storable(why: str | None) -> str | None:
    """`why` as PostgreSQL can store it: the text of an error may hold anything, and must not keep a job from ending."""
    return None if why is None else str(why).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _require_terminal(state: State) -> State:
    state = State.parse(state)
    if state not in TERMINAL:
        raise IllegalTransition(f"a job can not be finished as {state}: choose one of {', '.join(sorted(TERMINAL))}.")
    return state


class PgStore:
    """Job rows in PostgreSQL, on a connection of its own.

    The connection is separate from the one a task works with, because a signal that interrupts a query leaves that
    connection unable to write the terminal state. If the signal interrupts one of the store's own statements, the
    store notices the half-used connection and opens another.

    Not for use by several threads at once.
    """

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._conn: psycopg.Connection[dict[str, Any]] | None = None

    def connection(self) -> psycopg.Connection[dict[str, Any]]:
        """A connection in autocommit that is ready for a statement."""
        conn = self._conn
        if conn is not None and not conn.closed and conn.info.transaction_status == TransactionStatus.ACTIVE:
            # A signal came between a statement and its answer; the server may still be at it.
            with contextlib.suppress(psycopg.Error):
                conn.cancel_safe(timeout=1)
        if conn is not None and (conn.closed or conn.info.transaction_status != TransactionStatus.IDLE):
            conn.close()
            conn = None
        if conn is None:
            conn = self._conn = psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row)
        return conn

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    def create_schema(self) -> None:
        """Create the job table where it is missing."""
        self.connection().execute(schema())  # type: ignore[call-overload]

    def _fetch(self, query: str, **params: Any) -> list[dict[str, Any]]:
        statement: Any = queries()[query].sql
        try:
            return self.connection().execute(statement, params).fetchall()
        except (errors.AdminShutdown, errors.IdleSessionTimeout):
            # The server had ended our session before it read the statement, so nothing of it has happened. A
            # connection that breaks without these words leaves that open, and is the caller's to judge.
            return self.connection().execute(statement, params).fetchall()

    def _rows(self, query: str, **params: Any) -> list[JobRow]:
        return [_row(record) for record in self._fetch(query, **params)]

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
        _checked(task, args, max_attempts, soft_limit_seconds, hard_limit_seconds, deadline_at, total)
        return self._rows(
            "add",
            id=uuid.uuid4(),
            task=task,
            args=Jsonb(args or {}),
            max_attempts=max_attempts,
            soft_limit_seconds=soft_limit_seconds,
            hard_limit_seconds=hard_limit_seconds,
            deadline_at=deadline_at,
            total=total,
        )[0]

    def get(self, job_id: str) -> JobRow:
        found = self._rows("get", id=_uuid(job_id))
        if not found:
            raise JobNotFound(f"there is no job {job_id}; store.all() shows those there are.")
        return found[0]

    def all(self) -> list[JobRow]:
        return self._rows("list")

    def start(self, job_id: str, *, lease_seconds: float) -> JobRow | None:
        _require_lease(lease_seconds)
        found = self._rows("start", id=_uuid(job_id), lease_seconds=lease_seconds)
        return found[0] if found else None

    def finish(self, job_id: str, state: State, why: str | None = None) -> bool:
        state = _require_terminal(state)
        allowed = [str(source) for source in sources(state)]
        while not self._rows("finish", id=_uuid(job_id), state=str(state), why=_storable(why), sources=allowed):
            if _has_ended(self.get(job_id), state):
                return False
        return True

    def release(self, job_id: str, why: str) -> bool:
        return bool(self._rows("release", id=_uuid(job_id), why=_storable(why)))

    def progress(self, job_id: str, done: int, total: int | None = None) -> bool:
        _require_count("done", done if done is not None else "None")
        _require_count("total", total)
        return bool(self._rows("progress", id=_uuid(job_id), done=done, total=total))

    def stuck(self, *, otherwise_seconds: float = 3600.0, grace_seconds: float = 0.0) -> list[JobRow]:
        return self._rows("stuck", otherwise_seconds=otherwise_seconds, grace_seconds=grace_seconds)

    def counts(self) -> dict[str, int]:
        return {record["state"]: record["jobs"] for record in self._fetch("counts")}


class MemoryStore:
    """Job rows in a dict, for tests and for checks that need no server. `now` returns an aware datetime."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._rows: dict[str, JobRow] = {}
        self._lock = threading.RLock()

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
        _checked(task, args, max_attempts, soft_limit_seconds, hard_limit_seconds, deadline_at, total)
        row = JobRow(
            id=str(uuid.uuid4()),
            task=task,
            args=copy.deepcopy(args or {}),
            max_attempts=max_attempts,
            soft_limit_seconds=soft_limit_seconds,
            hard_limit_seconds=hard_limit_seconds,
            deadline_at=deadline_at,
            total=total,
            created_at=self._now(),
        )
        with self._lock:
            self._rows[row.id] = row
        return row

    def get(self, job_id: str) -> JobRow:
        try:
            return self._rows[str(_uuid(job_id))]
        except KeyError:
            raise JobNotFound(f"there is no job {job_id}; store.all() shows those there are.") from None

    def all(self) -> list[JobRow]:
        return list(self._rows.values())

    def _set(self, job_id: str, allowed: set[State], **changes: Any) -> JobRow | None:
        with self._lock:
            row = self._rows.get(str(_uuid(job_id)))
            if row is None or row.state not in allowed:
                return None
            changed = self._rows[row.id] = replace(row, **changes)
            return changed

    def start(self, job_id: str, *, lease_seconds: float) -> JobRow | None:
        _require_lease(lease_seconds)
        with self._lock:
            row = self._rows.get(str(_uuid(job_id)))
            if row is None or row.attempt >= row.max_attempts:
                return None
            now = self._now()
            return self._set(
                row.id,
                {State.PENDING},
                state=State.RUNNING,
                attempt=row.attempt + 1,
                started_at=now,
                lease_until=now + timedelta(seconds=lease_seconds),
            )

    def finish(self, job_id: str, state: State, why: str | None = None) -> bool:
        state = _require_terminal(state)
        ended = {"state": state, "why": _storable(why), "finished_at": self._now(), "lease_until": None}
        while self._set(job_id, set(sources(state)), **ended) is None:
            if _has_ended(self.get(job_id), state):
                return False
        return True

    def release(self, job_id: str, why: str) -> bool:
        with self._lock:
            row = self._rows.get(str(_uuid(job_id)))
            if row is None or row.attempt >= row.max_attempts:
                return False
            changes = {"state": State.PENDING, "why": _storable(why), "lease_until": None}
            return bool(self._set(row.id, {State.RUNNING}, **changes))

    def progress(self, job_id: str, done: int, total: int | None = None) -> bool:
        _require_count("done", done if done is not None else "None")
        _require_count("total", total)
        changes: dict[str, Any] = {"done": done} if total is None else {"done": done, "total": total}
        return bool(self._set(job_id, {State.RUNNING}, **changes))

    def stuck(self, *, otherwise_seconds: float = 3600.0, grace_seconds: float = 0.0) -> list[JobRow]:
        def late(row: JobRow) -> bool:
            limit = row.hard_limit_seconds or row.soft_limit_seconds or otherwise_seconds
            if row.state != State.RUNNING or row.started_at is None:
                return False
            return row.started_at + timedelta(seconds=limit + grace_seconds) < self._now()

        found = [row for row in self._rows.values() if late(row)]
        return sorted(found, key=lambda row: (row.started_at, row.id))

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in self._rows.values():
            found[str(row.state)] = found.get(str(row.state), 0) + 1
        return dict(sorted(found.items()))


def _has_ended(row: JobRow, state: State) -> bool:
    """Whether somebody else ended the job. If not it has moved on meanwhile, and the change is to be tried again.

    A lost race is an answer; a move that the state machine does not have is a mistake in the caller's code.
    """
    if not row.terminal and row.state not in sources(state):
        raise IllegalTransition(f"job {row.id} is {row.state} and can not become {state} from there.")
    return row.terminal


def _uuid(job_id: str) -> uuid.UUID:
    try:
        return uuid.UUID(str(job_id))
    except ValueError:
        raise JobNotFound(f"{job_id!r} is not a job id; store.all() shows the jobs there are.") from None


def _row(record: dict[str, Any]) -> JobRow:
    return JobRow(**{**record, "id": str(record["id"]), "state": State(record["state"])})


def as_dict(row: JobRow) -> dict[str, Any]:
    """The row as JSON-ready values: moments as ISO 8601 text."""
    return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in asdict(row).items()}
