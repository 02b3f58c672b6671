"""The Celery application of a lab: what its worker runs, and what the kernel sends with.

The worker finds its settings in ``SANDBOX_WORKER`` (JSON), written by the lab that starts it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from celery import Celery, Task
from celery.signals import task_received, worker_ready
from celery.worker.request import Request

from sandbox.errors import NotSendable
from sandbox.jobs import Job, Ledger, PgStore, run_attempt
from sandbox.services import code

TASK = "sandbox.run_job"


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """How to reach one lab's servers and files."""

    redis_url: str = field(repr=False)  # may hold a password, as dsn may
    prefix: str  # put before every Redis key; empty on a private server
    dsn: str = field(repr=False)
    ledger: str
    work: str
    ready: str  # a file the worker writes when it takes messages


def make_app(settings: WorkerSettings) -> Celery:
    """A Celery app wired to the lab's servers; JSON only, and no chatter between workers."""
    results = f"sandbox.services.results.PolledBackend+{settings.redis_url.removeprefix('redis+')}"
    app = Celery("sandbox", broker=settings.redis_url, backend=results, set_as_current=False)
    transport = {"global_keyprefix": settings.prefix} if settings.prefix else {}
    # A private Redis is there or it has died; waiting twenty seconds for it would only hold the notebook.
    patience = {"max_retries": 5, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.2}
    app.conf.update(
        accept_content=["json"],
        result_accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        broker_transport_options=transport,
        result_backend_transport_options={**transport, "retry_policy": patience},
        broker_connection_retry_on_startup=True,
        task_track_started=True,
        worker_prefetch_multiplier=1,
        worker_send_task_events=False,
        worker_enable_remote_control=True,
        worker_hijack_root_logger=True,
        timezone="UTC",
    )
    return app


class LedgerRequest(Request):
    """Writes into the ledger what only the worker's parent process sees."""

    _noted = False

    def _killed(self, why: str) -> None:
        if self.name == TASK and not self._noted:
            self._noted = True
            ledger().append("killed", self.id, why=why)

    def on_timeout(self, soft: bool, timeout: float) -> None:
        if not soft:
            self._killed(f"hard limit of {timeout:g} s")
        super().on_timeout(soft, timeout)

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        error: Any = getattr(exc_info, "exception", None)
        error = getattr(error, "exc", None) or error
        # At the hard limit billiard calls this before on_timeout, and storing the failure lets whoever waits go on.
        if type(error).__name__ == "TimeLimitExceeded":
            self._killed(f"hard limit of {error.args[0]:g} s")
        elif type(error).__name__ == "WorkerLostError":
            self._killed(str(error))
        return super().on_failure(exc_info, send_failed_event=send_failed_event, return_ok=return_ok)


@cache
def settings() -> WorkerSettings:
    text = os.environ.get("SANDBOX_WORKER")
    if not text:
        raise RuntimeError("SANDBOX_WORKER is not set: a lab starts this worker; type `course up` for one by hand.")
    return WorkerSettings(**json.loads(text))


@cache
def ledger() -> Ledger:
    return Ledger(settings().ledger)


@cache
def _store(pid: int) -> PgStore:
    return PgStore(settings().dsn)


def run_job(self: Task, file: str, function: str, kwargs: dict[str, Any]) -> Any:
    """Run one attempt at the job whose id is this message's task id."""
    module = code.load(Path(file))
    body = getattr(module, function)

    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(settings().dsn, autocommit=True)

    # A connection belongs to the process that opened it: a forked child must not use its parent's.
    job = Job(_store(os.getpid()), ledger(), self.request.id, connect)
    lease = self.request.timelimit[0] or 60.0
    value = run_attempt(job, body, kwargs, lease_seconds=float(lease))
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        raise NotSendable(f"{function} returned a {type(value).__name__}; return JSON values or nothing.") from None
    return value


def _on_received(request: Any = None, **_: Any) -> None:
    if request is not None and request.name == TASK:
        ledger().append("accepted", request.id)


def _on_ready(**_: Any) -> None:
    Path(settings().ready).write_text(str(os.getpid()))


if os.environ.get("SANDBOX_WORKER"):
    app = make_app(settings())
    app.Task.Request = LedgerRequest
    app.task(bind=True, name=TASK)(run_job)
    app.set_default()
    task_received.connect(_on_received, weak=False)
    worker_ready.connect(_on_ready, weak=False)
