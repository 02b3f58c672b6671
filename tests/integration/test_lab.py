"""``Lab``: jobs on a real worker, what is refused before it is sent, and what happens when a part dies."""

from __future__ import annotations

import os
import signal
import time
from enum import IntEnum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from billiard.exceptions import TimeLimitExceeded
from celery.worker.request import Request

from sandbox.errors import (
    BadSetting,
    NotSendable,
    PoolIgnoresLimits,
    StackFailed,
    WaitedInVain,
)
from sandbox.jobs import Ledger
from sandbox.services import Lab, worker_app

TASKS = """
import os, time

def quick(job, n=3):
    job.expect(n)
    for i in range(n):
        job.item_done(i)
    job.complete()
    return {"pid": os.getpid()}

def naive(job, n):
    job.expect(n)
    for i in range(n):
        try:
            time.sleep(0.02)
            job.item_done(i)
        except Exception as error:
            job.item_failed(i, error)
    job.complete()

def commits(job):
    job.db.execute("create table saved (n integer)")
    with job.transaction() as db:
        db.execute("insert into saved values (1)")
    try:
        with job.transaction() as db:
            db.execute("insert into saved values (2)")
            raise ValueError("rolled back")
    except ValueError as error:
        job.item_failed(0, error)
    job.fail("by hand")

def escape(job):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    job.expect(child.pid)
    time.sleep(600)

def again(job):
    return job.finish("completed")

class Inner:
    def method(job): pass

def outer():
    def nested(job): pass
    return nested

nameless = lambda job: None
"""


@pytest.fixture
def tasks(lab: Lab) -> Any:
    return lab.write_file("tasks", TASKS)


def kinds(job: Any, *left_out: str) -> list[str]:
    return [event.kind for event in job.events if event.kind not in left_out]


def started(lab: Lab, job: Any, eventually: Any) -> int:
    assert eventually(lambda: lab.ledger.read(job.id, "started"))
    return int(lab.ledger.read(job.id, "started")[0].pid)


# -- a job's way through the worker -----------------------------------------------------------------------------------


def test_a_job_goes_from_pending_over_running_to_completed(lab: Lab, tasks: Any) -> None:
    """Row, ledger and Celery agree, and each step was recorded by the process that took it."""
    job = lab.run(tasks.quick, {"n": 3}, total=3, max_attempts=2)
    row = job.row
    assert (str(row.state), row.done, row.total, row.attempt, row.args) == ("completed", 3, 3, 1, {"n": 3})
    assert row.started_at is not None and row.finished_at is not None
    assert row.created_at <= row.started_at <= row.finished_at
    assert job.celery_state == "SUCCESS"
    assert kinds(job) == ["queued", "accepted", "started", *["item done"] * 3, "finished", "returned"]
    assert [event.at for event in job.events] == sorted(event.at for event in job.events)
    pids = {event.kind: event.pid for event in job.events}
    assert pids["queued"] == os.getpid() and pids["accepted"] == lab._worker.pid  # type: ignore[union-attr]
    assert len({pids["queued"], pids["accepted"], pids["started"]}) == 3
    assert f"<job {job.id[:8]} quick: completed, 3 of 3 done>" == repr(job)
    assert lab.query("select state, done from jobs").rows == [("completed", 3)]


def test_sending_a_job_subscribes_to_nothing(lab: Lab, tasks: Any) -> None:
    """A subscription would have to be taken back when the result object goes, which may be after the server."""
    job = lab.submit(tasks.quick)
    assert not any("celery-task-meta" in channel for channel in lab.redis.pubsub_channels())
    assert job._result.get(timeout=60)["pid"] > 0


def test_commits_are_noted_and_rollbacks_are_not(lab: Lab, tasks: Any) -> None:
    """The ledger says what the database kept."""
    job = lab.run(tasks.commits)
    assert kinds(job).count("committed") == 1
    assert lab.query("select n from saved").column("n") == [1]
    assert (str(job.row.state), job.row.why) == ("failed", "by hand")


def test_a_message_delivered_twice_runs_once(lab: Lab, tasks: Any) -> None:
    """The second delivery finds the job taken, runs nothing, and does not count as work in progress."""
    job = lab.run(tasks.quick)
    message = {"file": str(lab.work / "tasks.py"), "function": "quick", "kwargs": {}}
    lab.app.send_task("sandbox.run_job", kwargs=message, task_id=job.id).get(timeout=60)
    assert kinds(job).count("accepted") == 2 or job.celery_state == "SUCCESS"
    assert kinds(job).count("started") == 1 and job.row.attempt == 1
    assert "No task was running" in lab.reset()


def test_the_naive_loop_is_left_running_after_the_hard_limit(lab: Lab, tasks: Any) -> None:
    """The soft signal is delivered and caught in the loop, the loop goes on, the process is killed, the row stays."""
    job = lab.run(tasks.naive, {"n": 100_000}, soft_time_limit=0.4, time_limit=1.2)
    row = job.row
    assert (str(row.state), row.finished_at, row.total) == ("running", None, 100_000)
    assert (row.soft_limit_seconds, row.hard_limit_seconds) == (0.4, 1.2)
    assert job.celery_state == "FAILURE"
    order = kinds(job, "item done", "swallowed", "returned")
    assert order == ["queued", "accepted", "started", "soft signal", "caught", "item failed", "killed"]
    (signalled,) = [event for event in job.events if event.kind == "soft signal"]
    assert signalled.data["file"] == "tasks.py" and signalled.data["line"] > 0 and signalled.data["text"]
    (caught,) = [event for event in job.events if event.kind == "caught"]
    assert caught.data["text"] == "job.item_failed(i, error)"
    seqs = {event.kind: event.seq for event in job.events}
    assert any(e.kind == "item done" and seqs["caught"] < e.seq < seqs["killed"] for e in job.events)
    (killed,) = [event for event in job.events if event.kind == "killed"]
    assert killed.data == {"why": "hard limit of 1.2 s"} and killed.pid == lab._worker.pid  # type: ignore[union-attr]
    assert lab.run(tasks.quick).row.state == "completed"


@pytest.mark.parametrize("first", ["on_failure", "on_timeout"])
def test_a_kill_is_in_the_ledger_before_anybody_can_see_the_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: str
) -> None:
    """Once, and whichever of the two the installed Celery calls first at the hard limit."""
    ledger, seen = Ledger(tmp_path / "ledger.jsonl"), []
    monkeypatch.setattr(worker_app, "ledger", lambda: ledger)
    for name in ("on_failure", "on_timeout"):
        monkeypatch.setattr(Request, name, lambda *_, **__: seen.append(len(ledger.read())))
    request = worker_app.LedgerRequest.__new__(worker_app.LedgerRequest)
    monkeypatch.setattr(Request, "name", worker_app.TASK)
    monkeypatch.setattr(Request, "id", "a")
    calls = [
        lambda: request.on_failure(SimpleNamespace(exception=TimeLimitExceeded(1.5))),
        lambda: request.on_timeout(False, 1.5),
    ]
    for call in calls if first == "on_failure" else reversed(calls):
        call()
    assert seen == [1, 1]
    assert [(e.kind, e.job, e.data) for e in ledger.read()] == [("killed", "a", {"why": "hard limit of 1.5 s"})]


def test_a_stuck_row_is_found_by_the_query(lab: Lab, tasks: Any, eventually: Any) -> None:
    """Once its own limit is past."""
    job = lab.run(tasks.naive, {"n": 100_000}, time_limit=0.5)
    assert [row.id for row in eventually(lab.jobs.stuck)] == [job.id]


def test_killing_a_jobs_process_leaves_its_row_running(lab: Lab, tasks: Any, eventually: Any) -> None:
    """The worker's parent notices and goes on with the next job."""
    job = lab.submit(tasks.naive, {"n": 100_000})
    pid = started(lab, job, eventually)
    lab.kill(job)
    assert str(job.wait().state) == "running"
    assert kinds(job)[-1] == "killed" and "SIGKILL" in job.events[-1].data["why"]
    assert lab.run(tasks.quick)._result.result["pid"] != pid


def test_a_job_that_does_not_run_can_not_be_killed(lab: Lab, tasks: Any) -> None:
    """The error says what it is instead."""
    with pytest.raises(BadSetting, match="is completed, not running"):
        lab.kill(lab.run(tasks.quick))


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_waiting_gives_up_and_the_job_goes_on(lab: Lab, tasks: Any, eventually: Any) -> None:
    """A client's patience is no limit; the error says where the job stands."""
    job = lab.submit(tasks.naive, {"n": 60})
    started(lab, job, eventually)
    with pytest.raises(WaitedInVain) as caught:
        job.wait(0.1)
    assert "it goes on without you" in str(caught.value) and "running" in str(caught.value)
    assert str(job.wait().state) == "completed" and job.row.done == 60
    with pytest.raises(WaitedInVain):
        lab.run(tasks.naive, {"n": 100_000}, seconds=0.1)


def test_waiting_for_a_dead_worker_ends(lab: Lab, tasks: Any, eventually: Any) -> None:
    """It says that nobody works on the job and how to get another worker; the new one works."""
    job = lab.submit(tasks.naive, {"n": 100_000})
    started(lab, job, eventually)
    os.kill(lab._worker.pid, signal.SIGKILL)  # type: ignore[union-attr]
    with pytest.raises(StackFailed, match=r"the worker has died.*row says running.*lab\.worker\(\)"):
        job.wait(60)
    lab.worker()
    assert lab.run(tasks.quick).row.state == "completed"


# -- the worker's options ---------------------------------------------------------------------------------------------


def test_a_worker_is_started_anew_with_its_options(lab: Lab, tasks: Any, traces: Any) -> None:
    """Processes and limits are the new ones; the old worker and its children are gone."""
    before = lab._worker
    worker = lab.worker(concurrency=2, soft_time_limit=0.3, time_limit=0.9)
    assert before is not None and worker.pid != before.pid and worker.enforces_limits
    assert not any(line.startswith(f"{before.pid} ") for line in traces.processes(str(lab.stack.folder)))
    assert "2 processes" in repr(lab)
    job = lab.run(tasks.naive, {"n": 100_000})
    assert {"soft signal", "killed"} <= set(kinds(job))
    assert job.events[0].job == job.id and job.row.hard_limit_seconds is None
    lab.worker()


def test_celery_tasks_of_a_worker_file_are_included(lab: Lab) -> None:
    """A file with tasks of its own is named when the worker starts."""
    text = "from celery import shared_task\n@shared_task(name='own.add')\ndef add(a, b): return a + b\n"
    lab.write_file("own_tasks", text)
    lab.worker(include=["own_tasks"])
    assert lab.app.send_task("own.add", args=[2, 3]).get(timeout=60) == 5
    lab.worker()


def test_a_reset_that_restarts_the_worker_keeps_all_of_its_options(lab: Lab, tasks: Any, eventually: Any) -> None:
    """Files that were included, the number of processes and the limits are there again."""
    lab.write_file(
        "own_tasks", "from celery import shared_task\n@shared_task(name='own.add')\ndef add(a, b): return a + b\n"
    )
    before = lab.worker(include=["own_tasks"], concurrency=2, time_limit=50)
    started(lab, lab.submit(tasks.naive, {"n": 100_000}), eventually)
    assert "1 running task was killed" in lab.reset()
    after = lab._worker
    assert after is not None and after.pid != before.pid and (after.concurrency, after.time_limit) == (2, 50)
    assert lab.app.send_task("own.add", args=[2, 3]).get(timeout=60) == 5
    lab.worker()


@pytest.mark.parametrize("pool", ["threads", "solo", "gevent", "eventlet"])
def test_a_pool_that_ignores_limits_is_refused(lab: Lab, pool: str) -> None:
    """By the worker and by opening, with what to type; the worker that runs is left alone."""
    pid = lab._worker.pid  # type: ignore[union-attr]
    for start in (lab.worker, partial(Lab.open, "x")):
        with pytest.raises(PoolIgnoresLimits, match=f"{pool}.*limits_may_be_ignored=True"):
            start(pool=pool)  # type: ignore[operator]
    assert lab.stack.is_up("worker") and lab.stack.pid("worker") == pid and Lab.current() is lab


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_refused_pool_would_have_run_past_both_limits(lab: Lab, tasks: Any, pool: str) -> None:
    """Sent past our refusal, a job with limits shorter than its work completes there, and nothing is said of a limit."""
    lab.worker(pool=pool, limits_may_be_ignored=True)
    row = lab.jobs.add("naive")
    message = {"file": tasks.__file__, "function": "naive", "kwargs": {"n": 20}}
    sent = lab.app.send_task("sandbox.run_job", kwargs=message, task_id=row.id, soft_time_limit=0.1, time_limit=0.2)
    sent.get(timeout=60)
    assert (sent.state, str(lab.jobs.get(row.id).state)) == ("SUCCESS", "completed")
    assert not {"soft signal", "killed"} & {event.kind for event in lab.ledger.read(row.id)}
    lab.worker()


def test_limits_on_a_pool_that_ignores_them_are_refused(lab: Lab, tasks: Any) -> None:
    """The pool itself may be had for a look; a job with a limit is not sent to it."""
    worker = lab.worker(pool="threads", limits_may_be_ignored=True)
    assert not worker.enforces_limits
    with pytest.raises(PoolIgnoresLimits):
        lab.submit(tasks.quick, time_limit=5)
    assert lab.run(tasks.quick).row.state == "completed"
    lab.worker()


BAD_LIMITS: list[Any] = [0, -1, 0.0, True, False, "5", "abc", float("inf"), float("nan"), [5], {}, 1j]


@pytest.mark.parametrize("value", BAD_LIMITS, ids=repr)
@pytest.mark.parametrize("name", ["soft_time_limit", "time_limit"])
def test_a_limit_that_is_no_number_of_seconds_is_refused_before_it_is_sent(
    lab: Lab, tasks: Any, name: str, value: Any
) -> None:
    """A wrong type in a message kills the worker that reads it: no row, no message, no new worker."""
    pid = lab.stack.pid("worker")
    for use in (partial(lab.submit, tasks.quick), lab.worker):
        with pytest.raises(BadSetting, match=f"{name}="):
            use(**{name: value})  # type: ignore[operator]
    assert lab.jobs.all() == [] and lab.ledger.read() == [] and lab.stack.pid("worker") == pid


def test_a_soft_limit_that_is_not_the_shorter_is_refused_before_it_is_sent(lab: Lab, tasks: Any) -> None:
    """The error names both."""
    with pytest.raises(BadSetting, match="soft limit 5 s, hard limit 2 s"):
        lab.submit(tasks.quick, soft_time_limit=5, time_limit=2)
    assert lab.jobs.all() == [] and lab.ledger.read() == []


@pytest.mark.parametrize(
    "options",
    [{"concurrency": 0}, {"concurrency": 65}, {"concurrency": True}, {"concurrency": 1.5}, {"pool": "forkpre"}],
)
def test_worker_options_that_can_not_work_are_refused(lab: Lab, options: dict[str, Any]) -> None:
    """The worker that runs is left alone."""
    pid = lab.stack.pid("worker")
    with pytest.raises(BadSetting, match=next(iter(options))):
        lab.worker(**options)
    assert lab.stack.is_up("worker") and lab.stack.pid("worker") == pid


# -- what can not be sent ---------------------------------------------------------------------------------------------


class Colour(IntEnum):
    RED = 1


def circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


NOT_JSON: list[tuple[str, Any]] = [
    ("object", object()),
    ("set", {1}),
    ("bytes", b"x"),
    ("date", Path("/")),
    ("NaN", float("nan")),
    ("infinity", [float("-inf")]),
    ("tuple", (1, 2)),
    ("inner tuple", {"a": [(1,)]}),
    ("int key", {1: "a"}),
    ("None key", {"a": {None: 1}}),
    ("NUL", "a\0b"),
    ("inner NUL", [{"k": "\0"}]),
    ("NUL key", {"\0": 1}),
    ("surrogate", "\ud800"),
    ("circle", circle()),
]


@pytest.mark.parametrize("value", [value for _, value in NOT_JSON], ids=[name for name, _ in NOT_JSON])
def test_an_argument_that_would_not_arrive_as_it_is_is_refused(lab: Lab, tasks: Any, value: Any) -> None:
    """The error names the argument; no row is added and no message sent."""
    with pytest.raises(NotSendable, match="argument 'n'"):
        lab.submit(tasks.quick, {"n": value})
    assert lab.jobs.all() == [] and lab.ledger.read() == []


@pytest.mark.parametrize("kwargs", [[1], "n", {1: 2}, {("a",): 1}, {None: 1}])
def test_arguments_that_are_no_names_are_refused(lab: Lab, tasks: Any, kwargs: Any) -> None:
    """The error shows a right call."""
    with pytest.raises(NotSendable, match="for example kwargs="):
        lab.submit(tasks.quick, kwargs)
    assert lab.jobs.all() == []


def test_arguments_of_every_json_kind_arrive_as_they_were(lab: Lab) -> None:
    """Letters of any script, deep nesting, big and small numbers, and text about a NUL."""
    value = {"a": [1, -2.5, 10**30, True, None, "Ж 🙂 \\u0000 \u2028 \n"], "": {}, "deep": [[[[[{}]]]]]}
    module = lab.write_file("echo", "def f(job, value): return value")
    job = lab.run(module.f, {"value": value})
    assert job._result.result == value and job.row.args == {"value": value}


def test_only_functions_of_worker_files_are_sent(lab: Lab, tasks: Any) -> None:
    """Lambdas, nested functions, methods, partials, builtins and the test's own are refused, with what to do."""

    def here(job: Any) -> None: ...

    refused = [here, lambda job: None, tasks.nameless, tasks.outer(), tasks.Inner.method, partial(tasks.quick), print]
    for function in [*refused, "quick", None, time.sleep]:
        with pytest.raises(NotSendable, match="%%worker_file NAME"):
            lab.submit(function)  # type: ignore[arg-type]
    assert lab.jobs.all() == [] and lab.ledger.read() == []


# -- reset ------------------------------------------------------------------------------------------------------------


def test_resetting_an_idle_lab_keeps_its_worker(lab: Lab, tasks: Any) -> None:
    """Rows, tables, keys and events are gone; files and worker stay."""
    lab.run(tasks.commits)
    lab.redis.set("mine", 1)
    pid = lab.stack.pid("worker")
    assert lab.reset() == "Reset. No task was running; the worker was left as it is."
    assert lab.stack.pid("worker") == pid
    assert lab.jobs.all() == [] and lab.ledger.read() == [] and lab.redis.get("mine") is None
    assert lab.query("select tablename from pg_tables where schemaname = 'public'").column("tablename") == ["jobs"]
    assert lab.run(tasks.quick).row.state == "completed"


def test_resetting_a_busy_lab_kills_the_task_and_says_so(lab: Lab, tasks: Any, eventually: Any) -> None:
    """Worker and task end, another worker starts with the same options, and nothing of the old task comes back."""
    lab.worker(concurrency=2)
    jobs = [lab.submit(tasks.naive, {"n": 100_000}) for _ in range(5)]
    pids = [started(lab, job, eventually) for job in jobs[:2]]
    old = lab.stack.pid("worker")
    said = lab.reset()
    assert "killed" in said and "a new worker started" in said and all(job.id[:8] in said for job in jobs[:2])
    assert lab.stack.pid("worker") != old and lab._worker.concurrency == 2  # type: ignore[union-attr]
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert lab.run(tasks.quick).row.state == "completed"
    assert len(lab.jobs.all()) == 1 and {event.job for event in lab.ledger.read()} == {lab.jobs.all()[0].id}
    assert lab.reset() == "Reset. No task was running; the worker was left as it is."
    lab.worker()


def test_a_task_that_died_with_an_earlier_worker_is_not_running(lab: Lab, tasks: Any, eventually: Any) -> None:
    """After a new worker was started by hand, reset leaves it as it is."""
    started(lab, lab.submit(tasks.naive, {"n": 100_000}), eventually)
    worker = lab.worker()
    assert lab.reset() == "Reset. No task was running; the worker was left as it is."
    assert lab.stack.pid("worker") == worker.pid
