"""Job rows in memory, with the behaviour of those in PostgreSQL."""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox.errors import JobNotFound
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
        check_new(task, args, max_attempts, soft_limit_seconds, hard_limit_seconds, deadline_at, total)
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
            return self._rows[str(job_key(job_id))]
        except KeyError:
            raise JobNotFound(f"there is no job {job_id}; store.all() shows those there are.") from None

    def all(self) -> list[JobRow]:
        return list(self._rows.values())

    def newest(self, limit: int) -> list[JobRow]:
        require_count("limit", limit if limit is not None else "None")
        rows = self.all()
        return rows[max(0, len(rows) - limit) :]

    def now(self) -> datetime:
        return self._now()

    def _set(self, job_id: str, allowed: set[State], **changes: Any) -> JobRow | None:
        with self._lock:
            row = self._rows.get(str(job_key(job_id)))
            if row is None or row.state not in allowed:
                return None
            changed = self._rows[row.id] = replace(row, **changes)
            return changed

    def start(self, job_id: str, *, lease_seconds: float) -> JobRow | None:
        require_lease(lease_seconds)
        with self._lock:
            row = self._rows.get(str(job_key(job_id)))
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
        state = require_terminal(state)
        ended = {"state": state, "why": storable(why), "finished_at": self._now(), "lease_until": None}
        while self._set(job_id, set(sources(state)), **ended) is None:
            if has_ended(self.get(job_id), state):
                return False
        return True

    def release(self, job_id: str, why: str) -> bool:
        with self._lock:
            row = self._rows.get(str(job_key(job_id)))
            if row is None or row.attempt >= row.max_attempts:
                return False
            changes = {"state": State.PENDING, "why": storable(why), "lease_until": None}
            return bool(self._set(row.id, {State.RUNNING}, **changes))

    def progress(self, job_id: str, done: int, total: int | None = None) -> bool:
        require_count("done", done if done is not None else "None")
        require_count("total", total)
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
