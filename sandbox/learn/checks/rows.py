"""Judges a query over the job table: which of a set of prepared rows does it find?"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import ExecStatus

from sandbox.grade import Reply, Submission, run_cases
from sandbox.jobs.queries import schema
from sandbox.learn.checks.wording import said_at, said_error
from sandbox.learn.verdict import NotAttempted, NotYet
from sandbox.services import Lab

NOTHING = "Nothing is found, so nobody is told, and the spinner goes on."
MOST_ROWS = 1000  # a query may find each of a handful of rows many times, and not fill the memory with them
# A transaction holds a lock on every table it has read, whatever way the query names it.
READ = """
    select n.nspname, c.relname, n.nspname = current_schema() as own
      from pg_locks l
      join pg_class c on c.oid = l.relation
      join pg_namespace n on n.oid = c.relnamespace
     where l.pid = pg_backend_pid() and l.locktype = 'relation' and c.relkind in ('r', 'p', 'v', 'm')
       and n.nspname not in ('pg_catalog', 'information_schema')
     order by 1, 2
"""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """One prepared row: in `state` since `minutes`, with limits in minutes. `stuck` is the right answer."""

    name: str
    state: str
    minutes: float
    hard: float | None = None
    soft: float | None = None
    stuck: bool = False

    @property
    def kind(self) -> str:
        """What sort of row it is, without a number."""
        if self.state != "running":
            return f"a job that is {self.state}"
        limit = "with a hard limit" if self.hard else "with only a soft limit" if self.soft else "without a limit"
        return f"a running job {limit}"

    def about(self) -> str:
        limits = [f"{kind} limit {value:g} min" for kind, value in (("soft", self.soft), ("hard", self.hard)) if value]
        return f"{self.state}, started {self.minutes:g} min ago, {' and '.join(limits) or 'no limit of its own'}"


def query_of(function: Any) -> str:
    """Call the learner's function, which returns the SQL text, in a process of its own."""
    outcome = run_cases(Submission.of(function), [{"args": []}], [lambda _: Reply()])[0]
    if outcome.type == "NotImplementedError":
        raise NotAttempted
    if outcome.kind != "value":
        raise NotYet(
            f"Your function raised {said_error(outcome)}, {said_at(outcome.where)}, and returned no query."
            if outcome.kind == "error"
            else "Your function did not return a query: its process ended.",
            why="It returns the text of one select.",
            seen=NOTHING,
            mistake="the function did not return a query",
            hints=False,
        )
    if not isinstance(outcome.value, str) or not outcome.value.strip():
        what = "an empty text" if outcome.type == "str" else f"a value of type {outcome.type}, not the text of a query"
        raise NotYet(
            f"Your function returned {what}.",
            why="It returns the text of one select.",
            seen=NOTHING,
            mistake="the function did not return the text of a query",
            hints=False,
        )
    return outcome.value


@contextmanager
def planted(rows: list[Planted]) -> Iterator[tuple[psycopg.Connection[Any], dict[str, Planted]]]:
    """A job table of the check's own, holding `rows`; nothing of it stays, and the lesson's own rows are not in it."""
    ids = {str(uuid.uuid4()): row for row in rows}
    scratch = f"check_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(Lab.current().servers.dsn, autocommit=True) as conn:
        conn.execute(f"create schema {scratch}")  # type: ignore[call-overload]
        try:
            conn.execute(f"set search_path to {scratch}")  # type: ignore[call-overload]
            conn.execute(schema())  # type: ignore[call-overload]
            for job_id, row in ids.items():
                ended = row.state not in ("pending", "running")
                conn.execute(
                    "insert into jobs (id, task, state, attempt, soft_limit_seconds, hard_limit_seconds, created_at,"
                    " started_at, finished_at) select %s, %s, %s, 1, %s, %s, at, at, case when %s then at end"
                    " from (select now() - make_interval(secs => %s) as at) as moment",
                    # One task for all: what tells the rows apart has to be their times and limits.
                    (
                        job_id,
                        "import_orders",
                        row.state,
                        _seconds(row.soft),
                        _seconds(row.hard),
                        ended,
                        row.minutes * 60,
                    ),
                )
            yield conn, ids
        finally:
            with psycopg.connect(Lab.current().servers.dsn, autocommit=True) as cleaner:
                cleaner.execute(f"drop schema {scratch} cascade")  # type: ignore[call-overload]


def _seconds(minutes: float | None) -> float | None:
    return None if minutes is None else minutes * 60


def _answer(conn: psycopg.Connection[Any], sql: str) -> tuple[list[str], list[tuple[Any, ...]], dict[str, bool]]:
    """The columns and rows that `sql` returns, and each table it has read: whether it is of the prepared schema."""
    found: list[tuple[Any, ...]] = []
    # Rolled back whatever it was.
    with conn.transaction(force_rollback=True):
        # Prepared, so that it is one statement; without columns (commit, copy, do) it is not even run.
        prepared = conn.pgconn.prepare(b"", sql.encode())
        if prepared.status != ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(prepared)
        about = conn.pgconn.describe_prepared(b"")
        columns = [(about.fname(place) or b"").decode() for place in range(about.nfields)]
        # A stream stops where its reader stops.
        for row in conn.cursor().stream(sql) if columns else ():  # type: ignore[call-overload]
            found.append(row)
            if len(found) > MOST_ROWS:
                raise NotYet(
                    f"The query returns more than {MOST_ROWS} rows, of a table that has a handful.",
                    why="A join without a condition multiplies rows.",
                    seen="The same customers are told again and again.",
                    mistake="the query returns far more rows than there are",
                    hints=False,
                )
        return columns, found, {f"{schema}.{name}": own for schema, name, own in conn.execute(READ)}


def judge_query(sql: str, rows: list[Planted]) -> None:
    """Raise NotYet unless `sql` finds exactly the planted rows that are stuck."""
    with planted(rows) as (conn, ids):
        conn.execute("set statement_timeout = '2s'")
        conn.execute("set default_transaction_read_only = on")
        try:
            columns, found, read = _answer(conn, sql)
        except psycopg.errors.QueryCanceled:
            raise NotYet(
                "The query ran for two seconds on a handful of rows and was stopped.",
                why="Look for pg_sleep.",
                seen=NOTHING,
                mistake="the query was stopped after two seconds",
                hints=False,
            ) from None
        except psycopg.OperationalError as error:
            raise NotYet(
                f"The query ended its own connection: `{str(error).strip()}`",
                why="It only has to read.",
                seen=NOTHING,
                mistake="the query ended its own connection",
                hints=False,
            ) from None
        except (psycopg.Error, ValueError) as error:
            # Without the line that points at a place in the one above it: all this is shown in a font of any width.
            said = [line for line in str(error).strip().splitlines() if line.strip() != "^"]
            raise NotYet(
                f"PostgreSQL did not take the query: `{' '.join(said[:3])}`",
                why="Try it in a cell of its own with lab.query(...) first; one select, no semicolon needed.",
                seen=NOTHING,
                mistake="PostgreSQL did not take the query",
                hints=False,
            ) from None
    if elsewhere := [name for name, own in read.items() if not own]:
        names = " and ".join(f"`{name}`" for name in elsewhere)
        unread = "" if any(read.values()) else " The check's own rows were never looked at."
        raise NotYet(
            f"The query reads {names}, which is not the check's own table `jobs`.",
            why="Leave out the schema name: write `from jobs`. A check has a table `jobs` of its own.",
            seen=f"The query works only where the table lies in that schema.{unread}",
            mistake="the query reads another table",
            hints=False,
        )
    if "id" not in columns:
        raise NotYet(
            f"The query returns {', '.join(f'`{name}`' for name in columns) or 'no columns'}, and no column named `id`.",
            why="Whoever finishes the jobs' rows needs to know which: `select id, ... from jobs`.",
            seen="A list of rows, and nobody can say whose jobs they are." if columns else NOTHING,
            mistake="the query returns no column named id",
            hints=False,
        )
    answers = [str(row[columns.index("id")]) for row in found]
    if set(answers) - set(ids):
        raise NotYet(
            "The query finds rows that are not in the table `jobs`.",
            why="Write `from jobs`, without rows of your own.",
            seen="Somebody is told of a job that nobody has.",
            mistake="the query finds rows that are not in the table",
            hints=False,
        )
    missed = [row for job_id, row in ids.items() if row.stuck and job_id not in answers]
    if missed:
        raise NotYet(
            f"The query misses {_named(missed, 'the row of a stuck job', 'the rows of {} stuck jobs')}.",
            seen="Nobody is told, and the spinner goes on.",
            why="Its own limit has passed, so no attempt can still be alive."
            if missed[0].hard or missed[0].soft
            else "It has no limit, and has been running for longer than an hour.",
            mistake=f"the query misses {missed[0].kind} that is stuck",
        )
    healthy = [row for job_id, row in ids.items() if not row.stuck and job_id in answers]
    if healthy:
        first = healthy[0]
        raise NotYet(
            f"The query finds {_named(healthy, 'the row of a job that is not stuck', 'the rows of {} jobs that are not stuck')}.",
            seen="A healthy job gets finished under the hands of the process that works on it."
            if first.state == "running"
            else "A job that is reported although nothing is wrong with it.",
            why=_why_healthy(first),
            mistake=f"the query finds {first.kind} that is not stuck",
        )
    again = {job_id: times for job_id in ids if (times := answers.count(job_id)) > 1}
    if again:
        whose = "; ".join(f"{ids[job_id].about()}, {_times(times)}" for job_id, times in again.items())
        raise NotYet(
            f"The query returns {'one job' if len(again) == 1 else f'{len(again)} jobs'} more than once: {whose}.",
            why="`union all` and joins multiply rows; one select, with `or` or coalesce(), is enough.",
            seen=f"The same customer is told {_times(max(again.values()))}.",
            mistake="the query returns a job's row more than once",
            hints=False,
        )


def _named(rows: list[Planted], one: str, many: str) -> str:
    """`the row of a stuck job: running, started ...`, or `the rows of 2 stuck jobs: ...; ...`."""
    what = one if len(rows) == 1 else many.format(len(rows))
    return f"{what}: {'; '.join(row.about() for row in rows)}"


def _times(number: int) -> str:
    return "twice" if number == 2 else f"{number} times"


def _why_healthy(row: Planted) -> str:
    if row.state == "pending":
        return "It waits to be started."
    if row.state != "running":
        return "It has ended already."
    if row.hard or row.soft:
        return "It is within its own limit."
    return "It has no limit, and has not been running for an hour yet."
