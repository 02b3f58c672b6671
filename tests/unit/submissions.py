"""The bank of submissions: each wrong one by its name, with its exact score and what its author is told."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "from celery.exceptions import SoftTimeLimitExceeded\nfrom sandbox.services.shop import save_order\n\n\n"


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """`says` stands in the verdict of `check`; `right` of the ten graded cases are right."""

    name: str
    text: str
    says: str
    right: int


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

# The ten cases: 0 no bad rows, 1 bad rows, 2-4 the limit while a row is saved, 5 between two rows, 6 while a failure is
# recorded, 7 after the last row, 8 after the job was completed, 9 only bad rows.
LOOPS_WRONG = [
    Wrong(
        name="a catch-all eats the signal",
        text=loop("""
for i, row in enumerate(rows):
    try:
        save_order(job, row)
        job.item_done(i)
    except Exception as error:
        job.item_failed(i, error)
job.complete()
"""),
        says="blamed row 3 for it, and went on with rows 4, 5, 6, 7",
        right=4,
    ),
    Wrong(
        name="re-raised, and the row left open",
        text=loop("""
for i, row in enumerate(rows):
    try:
        save_order(job, row)
        job.item_done(i)
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        job.item_failed(i, error)
job.complete()
"""),
        says="It left your function, and the job's row was left open",
        right=4,
    ),
    Wrong(
        name="written, and not re-raised",
        text=LOOP_RIGHT.removesuffix("        raise\n"),
        says="returned as if nothing had happened",
        right=3,
    ),
    Wrong(
        name="the handler stands inside the loop only",
        text=loop("""
for i, row in enumerate(rows):
    try:
        save_order(job, row)
        job.item_done(i)
    except SoftTimeLimitExceeded:
        job.time_out(f"aborted after {job.done} of {len(rows)} rows")
        raise
    except Exception as error:
        job.item_failed(i, error)
job.complete()
"""),
        says="cases are right",  # what is wrong with it is in the hidden cases alone
        right=7,
    ),
    Wrong(
        name="wrapped in another error",
        text=LOOP_RIGHT.replace("        raise\n", "        raise RuntimeError('import aborted')\n", 2).replace(
            "            raise RuntimeError('import aborted')\n", "            raise\n"
        ),
        says="What left your function was RuntimeError: import aborted",
        right=3,
    ),
    Wrong(
        name="a bad row ends the file",
        text=loop("""
try:
    for i, row in enumerate(rows):
        save_order(job, row)
        job.item_done(i)
    job.complete()
except SoftTimeLimitExceeded:
    job.time_out(f"aborted after {job.done} of {len(rows)} rows")
    raise
"""),
        says="The first bad row ended the whole file: ValueError",
        right=6,
    ),
    Wrong(
        name="never completed",
        text=LOOP_RIGHT.replace("        job.complete()\n", ""),
        says="Every row was dealt with, and the job's row was left open",
        right=5,
    ),
    Wrong(
        name="completed in finally",
        text=loop("""
try:
    for i, row in enumerate(rows):
        try:
            save_order(job, row)
            job.item_done(i)
        except SoftTimeLimitExceeded:
            raise
        except Exception as error:
            job.item_failed(i, error)
finally:
    job.complete()
"""),
        says="The job's row ended as completed",
        right=4,
    ),
    Wrong(
        name="progress not counted",
        text=LOOP_RIGHT.replace("            job.item_done(i)\n", "            pass\n"),
        says="job.item_done was called for []",
        right=2,
    ),
    Wrong(
        name="does not say how far it got",
        text=LOOP_RIGHT.replace('f"aborted after {job.done} of {len(rows)} rows"', '"time is up"'),
        says="because: time is up",
        right=4,
    ),
    Wrong(
        name="each row saved twice",
        text=LOOP_RIGHT.replace("                save_order(job, row)\n", "                save_order(job, row)\n" * 2),
        says="more than once",
        right=2,
    ),
    Wrong(
        name="bad rows are passed over in silence",
        text=LOOP_RIGHT.replace("            job.item_failed(i, error)\n", "            continue\n"),
        says="The bad rows were [2, 5]; your function recorded [] as failed.",
        right=6,
    ),
    Wrong(
        name="stops in silence at the limit",
        text=LOOP_RIGHT.replace("    raise\n", "    return\n"),
        says="Your function returned, and the job's row was left open",
        right=3,
    ),
    Wrong(
        name="leaves the process",
        text=LOOP_RIGHT.replace("    try:\n        for", "    import os\n\n    os._exit(0)\n    try:\n        for"),
        says="The process your function ran in ended",
        right=0,
    ),
    Wrong(
        name="counts rows, not places",
        text=LOOP_RIGHT.replace("job.item_done(i)", "job.item_done(row)"),
        says="recorded [0, 1, 2, 3, 4, 5, 6, 7] as failed, row 0 because of TypeError: job.item_done takes the row's place",
        right=2,
    ),
    Wrong(
        name="a reason that is no text",
        text=LOOP_RIGHT.replace(
            'job.time_out(f"aborted after {job.done} of {len(rows)} rows")', "job.time_out(job.done)"
        ),
        says="Your code then raised TypeError: the reason of a job's end is a text",
        right=3,
    ),
    Wrong(
        name="an end that does not exist",
        text=LOOP_RIGHT.replace("job.complete()", 'job.finish("done")'),
        says="Your function raised BadSetting: 'done' is not a job state; the states are pending, running, completed",
        right=5,
    ),
    Wrong(
        name="an error of its own",
        text=loop("return rows.nothing"),
        says="Your function raised AttributeError",
        right=0,
    ),
]


def query(sql: str) -> str:
    return f'def stuck_jobs():\n    return """{sql}"""\n'


QUERY_RIGHT = query(
    "select id from jobs where state = 'running' and started_at + make_interval(secs => "
    "coalesce(hard_limit_seconds, soft_limit_seconds, 3600)) < now()"
)

# `right` of two cases: those of the solution notebook are tried by nbgrader's test, these are STUCK and LIMITS below.
QUERIES_WRONG = [
    Wrong(
        name="by age alone",
        text=query("select id from jobs where state = 'running' and started_at < now() - interval '30 minutes'"),
        says="The query finds a row that is not stuck: running, started 60 min ago, soft limit 100 min and hard limit 120 min.",
        right=1,
    ),
    Wrong(
        name="every running row",
        text=query("select id from jobs where state = 'running'"),
        says="The query finds a row that is not stuck: running, started 60 min ago, soft limit 100 min",
        right=0,
    ),
    Wrong(
        name="whatever its state",
        text=query(
            "select id from jobs where started_at + make_interval(secs => "
            "coalesce(hard_limit_seconds, soft_limit_seconds, 3600)) < now()"
        ),
        says="The query finds a row that is not stuck: completed, started 600 min ago",
        right=1,
    ),
    Wrong(
        name="rows without a hard limit drop out",
        text=query(
            "select id from jobs where state = 'running' and started_at + make_interval(secs => hard_limit_seconds) < now()"
        ),
        says="cases are right",
        right=1,
    ),
    Wrong(
        name="the soft limit is taken for the end",
        text=query(
            "select id from jobs where state = 'running' and started_at + make_interval(secs => "
            "coalesce(soft_limit_seconds, hard_limit_seconds, 3600)) < now()"
        ),
        says="cases are right",
        right=1,
    ),
    Wrong(
        name="no id",
        text=query("select task from jobs where state = 'running'"),
        says="The query returns task, and no column named id.",
        right=0,
    ),
    Wrong(
        name="not SQL",
        text=query("find the stuck ones"),
        says="PostgreSQL did not take the query: syntax error",
        right=0,
    ),
    Wrong(
        name="two statements",
        text=query("select id from jobs; drop table jobs"),
        says="did not take the query",
        right=0,
    ),
    Wrong(name="a write", text=query("delete from jobs returning id"), says="read-only transaction", right=0),
    Wrong(name="a commit", text=query("commit"), says="The query returns no columns, and no column named id", right=0),
    Wrong(name="never ends", text=query("select pg_sleep(600), id from jobs"), says="ran for two seconds", right=0),
    Wrong(
        name="ends its connection",
        text=query("select pg_terminate_backend(pg_backend_pid()), id from jobs"),
        says="The query ended its own connection",
        right=0,
    ),
    Wrong(
        name="the lesson's own table",
        text=query("select id from public.jobs"),
        says="The query reads public.jobs, which is not the table it is asked about",
        right=0,
    ),
    Wrong(
        name="rows of its own",
        text=query("select gen_random_uuid() as id from jobs"),
        says="finds rows that are not in the table it is asked about",
        right=0,
    ),
    Wrong(
        name="by what a task is called",
        text=query("select id from jobs where task = 'stuck'"),
        says="The query misses a stuck row",
        right=1,
    ),
    Wrong(
        name="a file, or a program",
        text=query("copy jobs to program 'touch /tmp/never'"),
        says="The query returns no columns",
        right=0,
    ),
    Wrong(
        name="more rows than a memory holds",
        text=query("select a.id from jobs a, jobs b, jobs c, jobs d, jobs e, jobs f, jobs g, jobs h, jobs i, jobs k"),
        says="The query returns more than 1000 rows, of a table that has a handful.",
        right=0,
    ),
    Wrong(
        name="each row twice",
        text=query(
            "select a.id from jobs a, (values (1), (2)) as twice where state = 'running' and started_at + "
            "make_interval(secs => coalesce(hard_limit_seconds, soft_limit_seconds, 3600)) < now()"
        ),
        says="The query returns the same row more than once.",
        right=1,
    ),
    Wrong(name="nothing in it", text=query("  "), says="Your function returned an empty text", right=0),
    Wrong(name="no letter", text='def stuck_jobs():\n    return "\\udcff"\n', says="did not take the query", right=0),
    Wrong(
        name="a join",
        text=query("select a.id from jobs a, jobs b where a.state = 'running'"),
        says="not stuck",
        right=0,
    ),
    Wrong(
        name="no text",
        text="def stuck_jobs():\n    return 7\n",
        says="Your function returned a int, not the text",
        right=0,
    ),
    Wrong(name="an error", text="def stuck_jobs():\n    return 1 / 0\n", says="ZeroDivisionError", right=0),
]

ENDED_RIGHT = "def has_ended(state):\n    from sandbox.jobs import TERMINAL\n    return state in TERMINAL\n"
ENDED_WRONG = [
    Wrong(
        name="only success counts",
        text="def has_ended(state):\n    return state == 'completed'\n",
        says="For a job that is failed your function answered False.",
        right=3,
    ),
    Wrong(
        name="the wrong way round",
        text="def has_ended(state):\n    return state in ('pending', 'running')\n",
        says="For a job that is completed your function answered False.",
        right=0,
    ),
    Wrong(
        name="prints instead of returning",
        text="def has_ended(state):\n    print(state)\n",
        says="your function answered a NoneType",
        right=0,
    ),
    Wrong(
        name="an object that equals everything",
        text=(
            "class Yes:\n    def __eq__(self, other):\n        return True\n\n\n"
            "def has_ended(state):\n    return Yes()\n"
        ),
        says="your function answered a Yes",
        right=0,
    ),
    Wrong(
        name="an error",
        text="def has_ended(state):\n    return state.name\n",
        says="your function raised AttributeError: 'str' object has no attribute 'name' at line 2",
        right=0,
    ),
    Wrong(
        name="always yes",
        text="def has_ended(state):\n    return True\n",
        says="For a job that is running your function answered True.",
        right=2,
    ),
]
