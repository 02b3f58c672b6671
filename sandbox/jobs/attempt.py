"""One attempt at a job: the handle a task body works with, and the frame around the body.

The frame takes the job by compare-and-set, listens for the soft limit's signal so that the ledger can say at which
line it was delivered, and notices when the signal's exception never came out. It does not end the job: what the task
body leaves open stays open, and the lessons show what follows from that.
"""

from __future__ import annotations

import contextlib
import linecache
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
from billiard.exceptions import SoftTimeLimitExceeded

from sandbox.jobs.ledger import Ledger
from sandbox.jobs.states import State
from sandbox.jobs.store import JobStore

SOFT_SIGNAL = getattr(signal, "SIGUSR1", None)  # what billiard sends at the soft limit; Windows has none


def is_soft_limit(error: BaseException | None) -> bool:
    """Whether `error` is the soft limit, or was raised from it or while handling it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, SoftTimeLimitExceeded):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def place(frame: FrameType | None, inside: str | None = None) -> dict[str, Any]:
    """File name, line number and text of `frame`, or of its nearest caller that stands in the file `inside`."""
    here = frame
    while inside is not None and here is not None and here.f_code.co_filename != inside:
        here = here.f_back
    here = here or frame
    if here is None:
        return {}
    name, line = here.f_code.co_filename, here.f_lineno
    return {"file": Path(name).name, "line": line, "text": linecache.getline(name, line).strip()}


class Job:
    """What a task body gets as its first argument.

    Parameters: the `store` and `ledger` the job is recorded in, its `id`, and `connect`, which opens the connection
    the body works with when it first asks for ``job.db``.
    """

    def __init__(
        self,
        store: JobStore,
        ledger: Ledger,
        job_id: str,
        connect: Callable[[], psycopg.Connection[Any]] | None = None,
    ) -> None:
        self.id = job_id
        self.total: int | None = None
        self.done = 0
        self._store = store
        self._ledger = ledger
        self._connect = connect
        self._db: psycopg.Connection[Any] | None = None

    @property
    def db(self) -> psycopg.Connection[Any]:
        """The body's own connection, in autocommit. Not the one the job row is written with."""
        if self._db is None or self._db.closed:
            if self._connect is None:
                raise RuntimeError("this job runs without a database; only a job sent to a worker has job.db.")
            self._db = self._connect()
        return self._db

    @contextlib.contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction on ``job.db``; the ledger notes it once it is committed, and nothing if it rolls back."""
        with self.db.transaction():
            yield self.db
        self._ledger.append("committed", self.id)

    def expect(self, total: int) -> None:
        """Say how many items there are, so that the row shows done of total."""
        self.total = total
        self._store.progress(self.id, self.done, total)

    def item_done(self, index: int) -> None:
        """Count one finished item; `index` is its place in the batch, from 0."""
        self.done += 1
        self._store.progress(self.id, self.done)
        self._ledger.append("item done", self.id, index=index)

    def item_failed(self, index: int, error: BaseException) -> None:
        """Record that item `index` was given up because of `error`, and at which line it was caught."""
        where = place(sys._getframe(1))
        if is_soft_limit(error):
            self._ledger.append("caught", self.id, index=index, **where)
        self._ledger.append("item failed", self.id, index=index, error=f"{type(error).__name__}: {error}", **where)

    def finish(self, state: State | str, why: str | None = None) -> bool:
        """Write a terminal state, once. True if this call made the change, False if the job had ended already."""
        state = State.parse(state)
        won = self._store.finish(self.id, state, why)
        if won:
            self._ledger.append("finished", self.id, state=str(state), why=why)
        return won

    def complete(self, why: str | None = None) -> bool:
        return self.finish(State.COMPLETED, why)

    def fail(self, why: str) -> bool:
        return self.finish(State.FAILED, why)

    def time_out(self, why: str) -> bool:
        return self.finish(State.TIMED_OUT, why)

    def close(self) -> None:
        """Close the body's connection, whatever state it is in."""
        if self._db is not None:
            self._db.close()
            self._db = None


class _Listener:
    """Notes where the soft limit's signal was delivered, then lets the handler that was there raise."""

    def __init__(self, ledger: Ledger, job_id: str, file: str | None) -> None:
        self.delivered = 0
        self._ledger, self._job_id, self._file = ledger, job_id, file
        self._before: Any = None

    def __enter__(self) -> _Listener:
        # Only a main thread can have a signal handler; a pool of threads has no soft limit to listen for either.
        self._on = threading.current_thread() is threading.main_thread()
        if SOFT_SIGNAL is not None and self._on:
            self._before = signal.signal(SOFT_SIGNAL, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        if SOFT_SIGNAL is not None and self._on:
            signal.signal(SOFT_SIGNAL, self._before)

    def _heard(self, signum: int, frame: FrameType | None) -> None:
        self.delivered += 1
        self._ledger.append("soft signal", self._job_id, **place(frame, self._file))
        if callable(self._before):
            self._before(signum, frame)
        raise SoftTimeLimitExceeded()


def run_attempt(job: Job, body: Callable[..., Any], args: dict[str, Any], *, lease_seconds: float = 60.0) -> Any:
    """Take the job, run ``body(job, **args)``, and return what it returns.

    Returns None without running anything if the job was not pending: another delivery of the same message, or a job
    that has ended, is not an error. Whatever the body raises is raised.
    """
    row = job._store.start(job.id, lease_seconds=lease_seconds)
    if row is None:
        job.close()
        return None
    job.total = row.total
    job._ledger.append("started", job.id, attempt=row.attempt)
    code = getattr(body, "__code__", None)
    outcome: BaseException | None = None
    listener = _Listener(job._ledger, job.id, code.co_filename if code else None)
    try:
        with listener:
            return body(job, **args)
    except BaseException as error:
        outcome = error
        raise
    finally:
        if listener.delivered and not isinstance(outcome, SoftTimeLimitExceeded):
            job._ledger.append("swallowed", job.id)
        how = type(outcome).__name__ if outcome else "a value"
        job._ledger.append("returned", job.id, outcome=how, message=str(outcome or "")[:500])
        job.close()
