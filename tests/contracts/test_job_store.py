"""What every job store does: the one in memory and the one in PostgreSQL pass the same tests."""

from __future__ import annotations

import itertools
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.pq import TransactionStatus

from sandbox.errors import BadSetting, IllegalTransition, JobNotFound
from sandbox.jobs import TERMINAL, JobRow, JobStore, MemoryStore, PgStore, State, as_dict
from sandbox.services import Lab

CONTENDERS = 20
NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with Lab.open("contract", worker=False, quiet=True) as lab:
        yield lab.servers.dsn


@pytest.fixture(params=["memory", "postgres"])
def another(request: pytest.FixtureRequest) -> Iterator[Callable[[], JobStore]]:
    """Gives a store on the same, empty rows each time it is called."""
    if request.param == "memory":
        store = MemoryStore()
        yield lambda: store
        return
    url, opened = request.getfixturevalue("dsn"), []

    def open_one() -> JobStore:
        opened.append(PgStore(url))
        return opened[-1]

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("truncate jobs")
    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(another: Callable[[], JobStore]) -> JobStore:
    return another()


@pytest.fixture
def pg(dsn: str) -> Iterator[PgStore]:
    store = PgStore(dsn)
    yield store
    store.close()


def running(store: JobStore, **options: Any) -> JobRow:
    row = store.start(store.add("task", **options).id, lease_seconds=60)
    assert row is not None
    return row


def contest(another: Callable[[], JobStore], move: Callable[[JobStore, int], Any]) -> list[Any]:
    """Let twenty threads with a store each make one move at the same moment; returns their answers."""
    stores = [another() for _ in range(CONTENDERS)]
    gate, answers = threading.Barrier(CONTENDERS), [None] * CONTENDERS

    def contend(n: int) -> None:
        stores[n].counts()  # connected before the gate opens
        gate.wait()
        answers[n] = move(stores[n], n)

    threads = [threading.Thread(target=contend, args=(n,)) for n in range(CONTENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# -- winners ------------------------------------------------------------------------------------------------------


def test_one_of_twenty_starts_a_job(another: Callable[[], JobStore]) -> None:
    """The winner gets the running row, the others None, and one attempt is counted."""
    job = another().add("task", max_attempts=CONTENDERS)
    answers = contest(another, lambda store, _: store.start(job.id, lease_seconds=60))
    (winner,) = [row for row in answers if row is not None]
    assert (winner.state, winner.attempt) == (State.RUNNING, 1)
    assert another().get(job.id) == winner


def test_one_of_twenty_finishes_a_job(another: Callable[[], JobStore]) -> None:
    """The row carries the winner's state and reason, whichever states the others wanted."""
    job = running(another())
    wanted = list(itertools.islice(itertools.cycle(sorted(TERMINAL)), CONTENDERS))
    answers = contest(another, lambda store, n: store.finish(job.id, wanted[n], f"by {n}"))
    assert answers.count(True) == 1 and answers.count(False) == CONTENDERS - 1
    row = another().get(job.id)
    assert (row.state, row.why) == (wanted[answers.index(True)], f"by {answers.index(True)}")


def test_one_of_twenty_releases_a_job(another: Callable[[], JobStore]) -> None:
    """An attempt is given back once."""
    job = running(another(), max_attempts=3)
    answers = contest(another, lambda store, n: store.release(job.id, f"by {n}"))
    assert answers.count(True) == 1
    assert another().get(job.id).state == State.PENDING


# -- a job's life -------------------------------------------------------------------------------------------------


def test_a_new_job_is_pending_and_carries_what_it_was_given(store: JobStore) -> None:
    """Every field is there, and the stored row is the returned one."""
    deadline = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    args = {"rows": [1, 2.5, None, True, "Ж\\u0000", {"a": []}]}
    row = store.add(
        "import_orders",
        args,
        max_attempts=3,
        soft_limit_seconds=1.5,
        hard_limit_seconds=2,
        deadline_at=deadline,
        total=95,
    )
    assert (row.task, row.args, row.state, row.max_attempts) == ("import_orders", args, State.PENDING, 3)
    assert (row.soft_limit_seconds, row.hard_limit_seconds, row.deadline_at, row.total) == (1.5, 2.0, deadline, 95)
    assert (row.attempt, row.done, row.why, row.started_at, row.finished_at) == (0, 0, None, None, None)
    assert store.get(row.id) == row
    assert store.get(row.id.upper()) == row
    assert not row.terminal
    assert as_dict(row)["created_at"] == row.created_at.isoformat()


def test_the_path_from_pending_to_completed(store: JobStore) -> None:
    """Each step leaves its moment, the lease ends with the job, and counts follow."""
    job = store.add("task", total=3)
    assert store.counts() == {"pending": 1}
    started = store.start(job.id, lease_seconds=30)
    assert started is not None and started.started_at is not None and started.lease_until is not None
    assert started.lease_until - started.started_at >= timedelta(seconds=29)
    assert store.progress(job.id, 2) and store.progress(job.id, 3, 4)
    assert store.finish(job.id, State.COMPLETED)
    row = store.get(job.id)
    assert (row.state, row.done, row.total, row.lease_until, row.terminal) == (State.COMPLETED, 3, 4, None, True)
    assert row.finished_at is not None and row.created_at <= started.started_at <= row.finished_at
    assert store.counts() == {"completed": 1}


def test_all_is_oldest_first(store: JobStore) -> None:
    """The order is that of adding."""
    ids = [store.add(f"task {n}").id for n in range(5)]
    assert [row.id for row in store.all()] == ids


@pytest.mark.parametrize(
    ("limit", "expected"), [(0, []), (1, [4]), (3, [2, 3, 4]), (5, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])]
)
def test_the_newest_are_those_added_last_in_their_order(store: JobStore, limit: int, expected: list[int]) -> None:
    """Oldest of them first; with fewer than the limit it is all of them."""
    ids = [store.add(f"task {n}").id for n in range(5)]
    assert [row.id for row in store.newest(limit)] == [ids[n] for n in expected]


@pytest.mark.parametrize("limit", [None, -1, True, 1.5, "3", 2**31])
def test_a_limit_of_rows_that_is_no_count_is_refused(store: JobStore, limit: Any) -> None:
    """It is named, with what to write."""
    with pytest.raises(BadSetting, match=r"limit=.*whole number from zero"):
        store.newest(limit)


def test_the_stores_clock_is_the_one_of_its_rows(store: JobStore) -> None:
    """A row's moments lie between two looks at it, and it has a timezone."""
    before = store.now()
    row = store.add("task")
    assert before <= row.created_at <= store.now()
    assert before.utcoffset() is not None


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_terminal_state_never_changes(store: JobStore, state: State) -> None:
    """Whatever is tried afterwards is answered with no, and the row stays as it was."""
    job = running(store, max_attempts=5)
    assert store.finish(job.id, state, "first")
    row = store.get(job.id)
    assert [store.finish(job.id, other, "second") for other in sorted(TERMINAL)] == [False] * len(TERMINAL)
    assert store.start(job.id, lease_seconds=1) is None
    assert not store.release(job.id, "again") and not store.progress(job.id, 1)
    assert store.get(job.id) == row


@pytest.mark.parametrize("state", [State.COMPLETED, State.TIMED_OUT])
def test_a_move_that_a_jobs_life_does_not_have_is_named(store: JobStore, state: State) -> None:
    """A pending job can not complete or time out; the error names it and both states."""
    job = store.add("task")
    with pytest.raises(IllegalTransition) as caught:
        store.finish(job.id, state)
    assert job.id in str(caught.value) and f"is pending and can not become {state}" in str(caught.value)
    assert store.get(job.id) == job


@pytest.mark.parametrize("state", [State.PENDING, State.RUNNING])
def test_finishing_as_a_state_that_is_no_end_is_refused(store: JobStore, state: State) -> None:
    """The error lists the terminal states."""
    with pytest.raises(IllegalTransition, match="cancelled, completed, expired, failed, timed_out"):
        store.finish(running(store).id, state)


def test_finishing_as_something_that_is_no_state_is_refused(store: JobStore) -> None:
    """A typing error is told from a move that is not allowed."""
    with pytest.raises(BadSetting, match="'done' is not a job state"):
        store.finish(running(store).id, "done")  # type: ignore[arg-type]


def test_attempts_are_capped(store: JobStore) -> None:
    """After the last attempt the job is neither released nor started again."""
    job = store.add("task", max_attempts=2)
    assert store.start(job.id, lease_seconds=1)
    assert store.release(job.id, "once more")
    assert store.get(job.id).why == "once more"
    second = store.start(job.id, lease_seconds=1)
    assert second is not None and second.attempt == 2
    assert not store.release(job.id, "and once more")
    assert store.get(job.id).state == State.RUNNING


def test_progress_counts_only_while_running(store: JobStore) -> None:
    """Before and after it is answered with no, and changes nothing."""
    job = store.add("task", total=9)
    assert not store.progress(job.id, 5, 10)
    assert store.get(job.id) == job
    store.start(job.id, lease_seconds=1)
    assert store.progress(job.id, 5)
    store.finish(job.id, State.FAILED, "why")
    assert not store.progress(job.id, 6)
    assert (store.get(job.id).done, store.get(job.id).total) == (5, 9)


def test_stuck_jobs_are_those_past_their_own_limit(store: JobStore) -> None:
    """The hard limit judges, else the soft one, else the age given; a grace is added; ended jobs are never stuck."""
    hard = running(store, soft_limit_seconds=0.01, hard_limit_seconds=0.05)
    soft = running(store, soft_limit_seconds=0.05)
    patient = running(store, soft_limit_seconds=0.01, hard_limit_seconds=500)
    without = running(store)
    ended = running(store, hard_limit_seconds=0.05)
    store.finish(ended.id, State.TIMED_OUT)
    store.add("never started", hard_limit_seconds=0.01)
    time.sleep(0.1)
    assert [row.id for row in store.stuck()] == [hard.id, soft.id]
    assert [row.id for row in store.stuck(otherwise_seconds=0.05)] == [hard.id, soft.id, without.id]
    assert store.stuck(grace_seconds=500) == []
    assert patient.id not in {row.id for row in store.stuck(otherwise_seconds=0.05)}


@pytest.mark.parametrize("why", ["line\nline", "NUL \0 inside", "lone \ud800 surrogate", "Ж 🙂", "", "x" * 100_000])
def test_any_text_of_an_error_can_be_the_reason(store: JobStore, why: str) -> None:
    """A reason that can not be stored as it is must not keep a job from ending."""
    job = running(store)
    assert store.finish(job.id, State.FAILED, why)
    expected = why.replace("\0", "\\x00").replace("\ud800", "\\ud800")
    assert store.get(job.id).why == expected


# -- what is refused ----------------------------------------------------------------------------------------------


class Nowhere(tzinfo):
    def utcoffset(self, _: datetime | None) -> None:
        return None


@pytest.mark.parametrize("moment", [datetime(2031, 1, 1), datetime(2031, 1, 1, tzinfo=Nowhere()), "2031-01-01"])
def test_a_deadline_without_a_timezone_is_refused(store: JobStore, moment: Any) -> None:
    """It names no moment; the error shows how to write one, and no row is added."""
    with pytest.raises(BadSetting, match=r"tzinfo=UTC"):
        store.add("task", deadline_at=moment)
    assert store.all() == []


@pytest.mark.parametrize("name", ["soft_limit_seconds", "hard_limit_seconds"])
@pytest.mark.parametrize("value", [0, -1, -0.5, True, "5", float("nan"), float("inf"), 10**400, [], timedelta(1)])
def test_a_limit_that_is_no_number_of_seconds_is_refused(store: JobStore, name: str, value: Any) -> None:
    """The error names the limit and its value, and no row is added."""
    with pytest.raises(BadSetting, match=f"{name}="):
        store.add("task", **{name: value})
    assert store.all() == []


@pytest.mark.parametrize(("soft", "hard"), [(5, 5), (5, 2), (0.2, 0.1)])
def test_a_soft_limit_that_is_not_the_shorter_is_refused(store: JobStore, soft: float, hard: float) -> None:
    """Both numbers are named."""
    with pytest.raises(BadSetting, match=f"soft limit {soft} s, hard limit {hard} s"):
        store.add("task", soft_limit_seconds=soft, hard_limit_seconds=hard)


@pytest.mark.parametrize(
    "options",
    [
        *({"max_attempts": value} for value in (0, -1, True, 1.5, "2", None, 2**31)),
        *({"total": value} for value in (-1, True, 1.5, "2", 2**31)),
        *({"args": value} for value in ({"a": object()}, {"a": float("nan")}, {"a": "\0"}, {"\0": 1}, {"a": "\ud800"})),
    ],
)
def test_counts_and_arguments_that_can_not_be_stored_are_refused(store: JobStore, options: dict[str, Any]) -> None:
    """The error names what was wrong, and no row is added."""
    with pytest.raises(BadSetting, match=next(iter(options))):
        store.add("task", **options)
    assert store.all() == []


@pytest.mark.parametrize("task", ["", None, 5, "a\0b"])
def test_a_task_without_a_name_is_refused(store: JobStore, task: Any) -> None:
    """The error shows a right call."""
    with pytest.raises(BadSetting, match=r"add\('import_orders'\)"):
        store.add(task)


@pytest.mark.parametrize("value", [-1, True, 1.5, "2", None, 2**31])
def test_progress_that_is_no_count_is_refused(store: JobStore, value: Any) -> None:
    """The row keeps what it had."""
    job = running(store)
    with pytest.raises(BadSetting, match="done="):
        store.progress(job.id, value)
    assert store.get(job.id) == job


@pytest.mark.parametrize("value", [0, -1, True, "60", float("nan"), float("inf"), None])
def test_a_lease_that_is_no_number_of_seconds_is_refused(store: JobStore, value: Any) -> None:
    """The job stays pending."""
    job = store.add("task")
    with pytest.raises(BadSetting, match="lease_seconds="):
        store.start(job.id, lease_seconds=value)
    assert store.get(job.id) == job


def test_an_unknown_job_is_not_found(store: JobStore) -> None:
    """Reading and finishing it raise; the others answer that nothing was changed."""
    for ask in (store.get, lambda job: store.finish(job, State.FAILED)):
        with pytest.raises(JobNotFound, match=NOBODY):
            ask(NOBODY)
    assert store.start(NOBODY, lease_seconds=1) is None
    assert store.release(NOBODY, "why") is False
    assert store.progress(NOBODY, 1) is False


@pytest.mark.parametrize("job", ["", "nonsense", "1", "00000000"])
def test_what_is_no_job_id_is_not_found(store: JobStore, job: str) -> None:
    """Every operation says so in the same words."""
    asks: list[Callable[[], Any]] = [
        lambda: store.get(job),
        lambda: store.start(job, lease_seconds=1),
        lambda: store.finish(job, State.FAILED),
        lambda: store.release(job, "why"),
        lambda: store.progress(job, 1),
    ]
    for ask in asks:
        with pytest.raises(JobNotFound, match="is not a job id"):
            ask()


# -- both give the same answers -----------------------------------------------------------------------------------

JOBS = st.integers(0, 3)
OPERATIONS = st.one_of(
    st.tuples(st.just("add"), JOBS, st.integers(1, 3)),
    st.tuples(st.just("start"), JOBS, st.none()),
    st.tuples(st.just("finish"), JOBS, st.sampled_from(sorted(State))),
    st.tuples(st.just("release"), JOBS, st.none()),
    st.tuples(st.just("progress"), JOBS, st.integers(-1, 9)),
)


def answer(store: JobStore, ids: list[str], operation: tuple[str, int, Any]) -> Any:
    """The answer, or the kind of error, with ids and moments made comparable."""
    name, which, value = operation
    job = ids[which % len(ids)] if ids else NOBODY
    try:
        if name == "add":
            ids.append(store.add(f"task {which}", {"n": which}, max_attempts=value, total=value).id)
            return "added"
        if name == "start":
            row = store.start(job, lease_seconds=5)
            return row and comparable(row)
        if name == "finish":
            return store.finish(job, value, f"why {which}")
        if name == "release":
            return store.release(job, f"why {which}")
        return store.progress(job, value, which)
    except (BadSetting, IllegalTransition, JobNotFound) as error:
        return type(error).__name__


def comparable(row: JobRow) -> dict[str, Any]:
    """A row without its id, and with moments as whether they are there."""
    return {k: v is not None if k.endswith(("_at", "_until")) else v for k, v in as_dict(row).items() if k != "id"}


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=st.lists(OPERATIONS, min_size=1, max_size=25))
def test_both_stores_give_the_same_answers(pg: PgStore, operations: list[tuple[str, int, Any]]) -> None:
    """Any sequence of operations has the same answers and ends in the same rows; no terminal row ever changes."""
    pg.connection().execute("truncate jobs")
    memory, ids_here, ids_there = MemoryStore(), [], []
    ended: dict[str, JobRow] = {}
    for operation in operations:
        assert answer(memory, ids_here, operation) == answer(pg, ids_there, operation), operation
        for row in pg.all():
            assert ended.setdefault(row.id, row) == row if row.terminal else row.id not in ended
    assert [comparable(row) for row in memory.all()] == [comparable(pg.get(job)) for job in ids_there]
    assert memory.counts() == pg.counts()


# -- PostgreSQL's connection --------------------------------------------------------------------------------------


def _killed_by_another(pg: PgStore) -> int:
    pid = pg.connection().info.backend_pid
    with psycopg.connect(pg.dsn, autocommit=True) as other:
        assert other.execute("select pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (True,)
    return pid


def test_a_killed_connection_is_replaced(pg: PgStore) -> None:
    """The next statement of every kind works, on another connection."""
    job = pg.add("task", max_attempts=2)
    moves: list[tuple[Callable[[], Any], Any]] = [
        (lambda: bool(pg.start(job.id, lease_seconds=1)), True),
        (lambda: pg.progress(job.id, 1), True),
        (lambda: pg.release(job.id, "again"), True),
        (lambda: bool(pg.start(job.id, lease_seconds=1)), True),
        (lambda: pg.finish(job.id, State.COMPLETED), True),
        (lambda: pg.get(job.id).state, State.COMPLETED),
        (lambda: pg.counts()["completed"] >= 1, True),
        (lambda: pg.add("another").state, State.PENDING),
    ]
    for move, expected in moves:
        dead = _killed_by_another(pg)
        assert move() == expected
        assert pg.connection().info.backend_pid != dead
    assert pg.get(job.id).attempt == 2


def test_a_connection_closed_by_somebody_is_replaced(pg: PgStore) -> None:
    """Also when it was closed on this side."""
    pg.connection().close()
    assert pg.add("task").state == State.PENDING
    pg.close()
    pg.close()
    assert pg.add("task").state == State.PENDING


def test_a_connection_left_in_a_statement_by_a_signal_is_replaced(pg: PgStore) -> None:
    """After a signal has interrupted a statement the terminal state can be written, and the statement is cancelled."""

    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    job = running(pg)
    connection = pg.connection()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Interrupted):
            connection.execute("select pg_sleep(600)")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert connection.info.transaction_status == TransactionStatus.ACTIVE
    pid = connection.info.backend_pid
    assert pg.finish(job.id, State.TIMED_OUT, "aborted")
    assert pg.get(job.id).state == State.TIMED_OUT
    until = time.monotonic() + 30
    alive = "select count(*) from pg_stat_activity where pid = %s and state = 'active'"
    while (left := pg.connection().execute(alive, [pid]).fetchone()["count"]) and time.monotonic() < until:  # type: ignore[index]
        time.sleep(0.02)
    assert left == 0


def test_a_transaction_left_open_does_not_swallow_a_change(pg: PgStore) -> None:
    """A half-finished transaction on the connection is given up, not joined."""
    job = running(pg)
    with suppress(psycopg.Error):
        pg.connection().execute("begin")
    assert pg.finish(job.id, State.COMPLETED)
    with psycopg.connect(pg.dsn) as other:
        assert other.execute("select state from jobs where id = %s", [job.id]).fetchone() == ("completed",)


def test_the_schema_is_created_once_and_again(pg: PgStore) -> None:
    """Creating it twice keeps the rows."""
    job = pg.add("task")
    pg.create_schema()
    assert pg.get(job.id) == job


def test_the_memory_stores_clock_is_passed_in() -> None:
    """Its moments are the clock's."""
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    store = MemoryStore(now=lambda: moment)
    assert running(store).started_at == moment


def test_ids_are_uuids(store: JobStore) -> None:
    """Each job has one of its own."""
    ids = {store.add("task").id for _ in range(10)}
    assert len({uuid.UUID(job) for job in ids}) == 10
