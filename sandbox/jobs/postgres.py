"""Job rows in PostgreSQL."""

from __future__ import annotations

import contextlib
import uuid
from datetime import datetime
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from sandbox.errors import JobNotFound
from sandbox.jobs.queries import queries, schema
from sandbox.jobs.states import State, sources
from sandbox.jobs.store import (
    JobRow,
    check_new,
    has_ended,
    job_key,
    require_count,
    require_lease,
    require_terminal,
    storable,
)


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
        check_new(task, args, max_attempts, soft_limit_seconds, hard_limit_seconds, deadline_at, total)
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
        found = self._rows("get", id=job_key(job_id))
        if not found:
            raise JobNotFound(f"there is no job {job_id}; store.all() shows those there are.")
        return found[0]

    def all(self) -> list[JobRow]:
        return self._rows("list")

    def newest(self, limit: int) -> list[JobRow]:
        require_count("limit", limit if limit is not None else "None")
        return self._rows("newest", limit=limit)

    def now(self) -> datetime:
        moment: datetime = self._fetch("now")[0]["now"]
        return moment

    def start(self, job_id: str, *, lease_seconds: float) -> JobRow | None:
        require_lease(lease_seconds)
        found = self._rows("start", id=job_key(job_id), lease_seconds=lease_seconds)
        return found[0] if found else None

    def finish(self, job_id: str, state: State, why: str | None = None) -> bool:
        state = require_terminal(state)
        allowed = [str(source) for source in sources(state)]
        while not self._rows("finish", id=job_key(job_id), state=str(state), why=storable(why), sources=allowed):
            if has_ended(self.get(job_id), state):
                return False
        return True

    def release(self, job_id: str, why: str) -> bool:
        return bool(self._rows("release", id=job_key(job_id), why=storable(why)))

    def progress(self, job_id: str, done: int, total: int | None = None) -> bool:
        require_count("done", done if done is not None else "None")
        require_count("total", total)
        return bool(self._rows("progress", id=job_key(job_id), done=done, total=total))

    def stuck(self, *, otherwise_seconds: float = 3600.0, grace_seconds: float = 0.0) -> list[JobRow]:
        return self._rows("stuck", otherwise_seconds=otherwise_seconds, grace_seconds=grace_seconds)

    def counts(self) -> dict[str, int]:
        return {record["state"]: record["jobs"] for record in self._fetch("counts")}


def _row(record: dict[str, Any]) -> JobRow:
    return JobRow(**{**record, "id": str(record["id"]), "state": State(record["state"])})
