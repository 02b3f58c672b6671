"""Right answers, and queries that mean harm. The mistakes that learners make are in tests/submissions."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "from celery.exceptions import SoftTimeLimitExceeded\nfrom sandbox.services.shop import save_order\n\n\n"


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """`says` stands in the verdict of `check`; no case is right."""

    name: str
    text: str
    says: str


def loop(body: str) -> str:
    return HEAD + "def import_orders(job, rows):\n" + "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))


LOOP_RIGHT = loop("""
try:
    for i, row in enumerate(rows):
        try:
            save_order(job, row)
            job.item_done(i)
        except SoftTimeLimitExceeded:
            raise
        except Exception as error:
            job.item_failed(i, error)
    job.complete()
except SoftTimeLimitExceeded:
    job.time_out(f"aborted after {job.done} of {len(rows)} rows")
    raise
""")


def query(sql: str) -> str:
    return f'def stuck_jobs():\n    return """{sql}"""\n'


QUERY_RIGHT = query(
    "select id from jobs where state = 'running' and started_at + make_interval(secs => "
    "coalesce(hard_limit_seconds, soft_limit_seconds, 3600)) < now()"
)

HOSTILE_QUERIES = [
    Wrong(
        name="two statements",
        text=query("select id from jobs; drop table jobs"),
        says="did not take the query",
    ),
    Wrong(name="a write", text=query("delete from jobs returning id"), says="read-only transaction"),
    Wrong(name="a commit", text=query("commit"), says="The query returns no columns, and no column named `id`"),
    Wrong(name="never ends", text=query("select pg_sleep(600), id from jobs"), says="ran for two seconds"),
    Wrong(
        name="ends its connection",
        text=query("select pg_terminate_backend(pg_backend_pid()), id from jobs"),
        says="The query ended its own connection",
    ),
    Wrong(
        name="the lesson's own table",
        text=query("select id from public.jobs"),
        says="The query reads `public.jobs`, which is not the check's own table `jobs`.",
    ),
    Wrong(
        name="rows of its own",
        text=query("select gen_random_uuid() as id from jobs"),
        says="finds rows that are not in the table `jobs`",
    ),
    Wrong(
        name="a file, or a program",
        text=query("copy jobs to program 'touch /tmp/never'"),
        says="The query returns no columns",
    ),
    Wrong(
        name="more rows than a memory holds",
        text=query("select a.id from jobs a, jobs b, jobs c, jobs d, jobs e, jobs f, jobs g, jobs h, jobs i, jobs k"),
        says="The query returns more than 1000 rows, of a table that has a handful.",
    ),
    Wrong(name="no letter", text='def stuck_jobs():\n    return "\\udcff"\n', says="did not take the query"),
    Wrong(
        name="a join",
        text=query("select a.id from jobs a, jobs b where a.state = 'running'"),
        says="not stuck",
    ),
]

ENDED_RIGHT = "def has_ended(state):\n    from sandbox.jobs import TERMINAL\n    return state in TERMINAL\n"
