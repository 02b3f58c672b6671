"""A lab's beginning and end, and what happens when a part of it dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sandbox.errors import BadSetting, NoLabOpen, StackFailed
from sandbox.services import Lab

TASKS = """
import subprocess, sys, time

def quick(job, n=3):
    job.expect(n)
    for i in range(n):
        job.item_done(i)
    job.complete()

def naive(job, n):
    job.expect(n)
    for i in range(n):
        try:
            time.sleep(0.02)
            job.item_done(i)
        except Exception as error:
            job.item_failed(i, error)
    job.complete()

def escape(job):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    job.expect(child.pid)
    time.sleep(600)
"""


@pytest.fixture
def own_lab() -> Iterator[Lab]:
    """A lab that this test may break."""
    with Lab.open("own", quiet=True) as lab:
        lab.write_file("tasks", TASKS)
        yield lab


def started(lab: Lab, job: Any, eventually: Any) -> int:
    assert eventually(lambda: lab.ledger.read(job.id, "started"))
    return int(lab.ledger.read(job.id, "started")[0].pid)


def alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_a_worker_that_does_not_start_shows_its_log(own_lab: Lab) -> None:
    """The learner's own error is in the message, and the next worker starts."""
    (own_lab.work / "bad_include.py").write_text("raise RuntimeError('mine to repair')\n")
    with pytest.raises(StackFailed, match=r"(?s)worker is not running.*mine to repair"):
        own_lab.worker(include=["bad_include"])
    assert own_lab.worker().pid


def test_opening_again_closes_the_first(own_lab: Lab, traces: Any) -> None:
    """With its data; the current lab is the second, and the first says that it is closed."""
    first = str(own_lab.stack.folder)
    with Lab.open("second", worker=False, quiet=True) as second:
        assert own_lab.stack.closed and repr(own_lab) == "Lab own is closed."
        assert traces.left(first) == []
        assert Lab.current() is second and second.query("select 1").rows == [(1,)]
        assert "no worker" in repr(second)


def test_closing_leaves_nothing_and_twice_is_harmless(own_lab: Lab, traces: Any, eventually: Any) -> None:
    """Also the processes that a task started in a session of their own."""
    import tasks  # type: ignore[import-not-found]

    job = own_lab.submit(tasks.escape)
    assert eventually(lambda: job.row.total)
    child, folder = job.row.total, str(own_lab.stack.folder)
    assert child is not None and alive(child)
    own_lab.close()
    assert traces.left(folder) == [] and not alive(child)
    own_lab.close()
    with pytest.raises(NoLabOpen, match=r"Lab\.open"):
        Lab.current()


@pytest.mark.parametrize("whose", ["lab.db", "another"])
def test_a_lock_that_a_cell_has_left_does_not_hold_up_the_end(own_lab: Lab, traces: Any, whose: str) -> None:
    """A transaction that still holds the job table does not keep the lab open, and nothing of the lab is left."""
    holder = own_lab.db if whose == "lab.db" else psycopg.connect(own_lab.servers.dsn, autocommit=True)
    holder.execute("begin")
    holder.execute("lock table jobs in access exclusive mode")
    folder = str(own_lab.stack.folder)
    own_lab.close()
    assert traces.left(folder) == []
    holder.close()


@pytest.mark.parametrize("end", ["reset", "worker", "death"])
def test_what_a_task_has_spawned_goes_with_its_worker(own_lab: Lab, eventually: Any, end: str) -> None:
    """A process in a session of its own ends when the worker is stopped, or replaced after its death."""
    import tasks  # type: ignore[import-not-found]

    job = own_lab.submit(tasks.escape)
    assert eventually(lambda: job.row.total)
    child = job.row.total
    assert child is not None and alive(child)
    if end == "death":
        os.kill(own_lab.stack.pid("worker") or 0, signal.SIGKILL)
        assert eventually(lambda: not own_lab.stack.is_up("worker"))
    own_lab.reset() if end == "reset" else own_lab.worker()
    assert not alive(child)
    assert own_lab.run(tasks.quick).row.state == "completed"


def test_closed_labs_are_counted(own_lab: Lab) -> None:
    """The summary of this process adds up what every lab's jobs came to."""
    import tasks

    before = Lab.summary().get("completed", 0)
    own_lab.run(tasks.quick)
    assert Lab.summary()["completed"] == before + 1
    own_lab.close()
    assert Lab.summary()["completed"] == before + 1


@pytest.mark.parametrize("name", ["redis", "postgres"])
def test_a_server_that_dies_is_named_with_its_log_where_it_is_used(own_lab: Lab, name: str, eventually: Any) -> None:
    """Every use of it, and waiting for a job, says so; closing still works."""
    import tasks

    job = own_lab.submit(tasks.naive, {"n": 100_000})
    started(own_lab, job, eventually)
    assert own_lab.redis.ping() and own_lab.query("select 1").rows == [(1,)]
    with open(own_lab.stack.log(name), "a") as log:
        log.write("its last words\n")
    os.kill(own_lab.stack.pid(name) or 0, signal.SIGKILL)
    uses = [lambda: own_lab.redis, lambda: own_lab.submit(tasks.quick), lambda: job.wait(60)]
    if name == "postgres":
        uses = [lambda: own_lab.db, lambda: own_lab.jobs, lambda: own_lab.query("select 1"), *uses[1:]]
    assert eventually(lambda: not own_lab.stack.is_up(name))
    for use in uses:
        with pytest.raises(StackFailed, match=rf"(?s){name} is not running: killed by signal 9.*its last words"):
            use()
    own_lab.close()


def test_a_lab_without_a_worker(own_lab: Lab, tmp_path: Path) -> None:
    """A log that is not there is an error that lists those that are; a job waits for a worker in vain."""
    with Lab.open("idle", worker=False, quiet=True) as lab:
        with pytest.raises(BadSetting, match=r"no log 'worker'; there are postgres, redis, sidecar"):
            lab.log()
        module = lab.write_file("tasks", TASKS)
        job = lab.submit(module.quick)
        with pytest.raises(StackFailed, match=r"lab\.worker\(\)"):
            job.wait(5)
        lab.worker()
        assert str(job.wait().state) == "completed"


def test_a_broken_connection_is_replaced(own_lab: Lab) -> None:
    """After the server has ended the session the next use of lab.db after the error works."""
    pid = own_lab.db.info.backend_pid
    with psycopg.connect(own_lab.servers.dsn, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", [pid])
    with pytest.raises(psycopg.OperationalError):
        own_lab.db.execute("select 1")
    assert own_lab.query("select 1").rows == [(1,)]
