"""The checks: what is right passes, and each wrong submission gets its own score and is told its own cause."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.errors import BadSetting, GraderFailed
from sandbox.grade import runner
from sandbox.learn import Batch, Planted, check, checking, grade, hint, progress
from sandbox.learn.checking import CHECKERS
from sandbox.learn.checks.clauses import around, catching
from sandbox.learn.verdict import NotYet, OnPage, Status, Verdict
from sandbox.services import Lab, code

from submissions import ENDED_RIGHT, HOSTILE_QUERIES, LOOP_RIGHT, QUERY_RIGHT, Wrong, loop  # isort: skip

CASES = [
    Batch(title="no bad rows", rows=5),
    Batch(title="bad rows", rows=9, bad=(0, 4, 8)),
    Batch(title="saving", rows=6, limit="saving", at=2),
    Batch(title="saving the first", rows=7, limit="saving", at=0, seed=11),
    Batch(title="saving the last", rows=7, bad=(1, 3), limit="saving", at=6, seed=12),
    Batch(title="between", rows=7, limit="between", at=4, seed=13),
    Batch(title="recording", rows=7, bad=(2, 5), limit="recording", at=2, seed=14),
    Batch(title="completing", rows=7, limit="completing", seed=15),
    Batch(title="completed", rows=7, limit="completed", seed=16),
    Batch(title="only bad rows", rows=3, bad=(0, 1, 2), seed=17),
]
STUCK = [
    Planted(name="stuck", state="running", minutes=60, soft=10, hard=15, stuck=True),
    Planted(name="allowed", state="running", minutes=60, soft=100, hard=120),
    Planted(name="no limit", state="running", minutes=120, stuck=True),
    Planted(name="only soft", state="running", minutes=30, soft=20, stuck=True),
]
LIMITS = [
    Planted(name="past the soft limit only", state="running", minutes=12, soft=10, hard=15),
    Planted(name="completed", state="completed", minutes=600, soft=10, hard=15),
]
Make = Callable[[str, str], Any]
NAIVE = loop("""
for i, row in enumerate(rows):
    try:
        save_order(job, row)
        job.item_done(i)
    except Exception as error:
        job.item_failed(i, error)
job.complete()
""")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.open("checks", worker=False, quiet=True) as opened:
        yield opened


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a worker file of a text and returns the function of that name in it."""
    work = tmp_path / "work"
    work.mkdir()

    def build(text: str, name: str) -> Any:
        return getattr(code.load(code.write("submission", text, work)), name)

    yield build
    code.forget(work)
    sys.path[:] = [entry for entry in sys.path if entry != str(work)]


def test_a_message_names_the_learners_own_lines(make: Make) -> None:
    """The verdict on the naive loop names the line where the limit landed and the clause that caught it."""
    verdict = check("03.1", make(NAIVE, "import_orders"))
    assert "landed while row 3 (counted from 0) was being saved, at line 8, `save_order(job, row)`" in verdict.happened
    assert "caught it at line 10, `except Exception as error:`" in verdict.happened
    assert verdict.seen and verdict.why


def told(text: str, case: Batch, make: Make) -> NotYet:
    """What the checker of 03.1 says of `text` in one case."""
    (found,) = CHECKERS["03.1"](make(text, "import_orders"), [case])
    assert isinstance(found, NotYet)
    return found


SAVING = Batch(title="saving", rows=6, limit="saving", at=2)


def test_what_people_see_is_true_of_this_run(make: Make) -> None:
    """Where work went on after the limit: the row's state as it is, and the hard limit of a longer file if it ended."""
    ended = told(NAIVE, SAVING, make).seen
    assert "This file is short: your function came to its end, and the job's row says completed." in ended
    assert ended.endswith("and the job's row is left at running: a spinner that never stops.")
    left = told(NAIVE.replace("    job.complete()\n", ""), SAVING, make).seen
    assert left.endswith(
        "reported as bad and is not. The job's row says running, and goes on saying so: a spinner that never stops."
    )
    stopped = told(
        NAIVE.replace("item_failed(i, error)", "item_failed(i, error)\n            break"), SAVING, make
    ).seen
    assert stopped.endswith("reported as bad and is not. The job's row says completed.")


def test_an_end_that_was_written_is_named_with_its_line_and_the_clause_around_it(make: Make) -> None:
    """A wrong state has the learner's reason in quotes, the line that wrote it, and the clause that had caught the limit."""
    text = LOOP_RIGHT.replace('job.time_out(f"aborted after {job.done} of {len(rows)} rows")', "job.fail('it's late')")
    happened = told(text.replace("'it's late'", '"it\'s late"'), SAVING, make).happened
    assert "Your code caught it at line 16, `except SoftTimeLimitExceeded:`. The job's row ended as failed" in happened
    assert """with the reason "it's late", written at line 17, `job.fail("it's late")`.""" in happened


def test_an_end_that_stood_there_before_the_limit_has_no_clause_that_caught_it(make: Make) -> None:
    """A clause that failed the job for a bad row is not said to have caught the limit that landed later."""
    text = LOOP_RIGHT.replace("job.item_failed(i, error)", "job.item_failed(i, error); job.fail('a bad row')")
    happened = told(text, Batch(title="a", bad=(1,), limit="saving", at=4), make).happened
    assert "caught it" not in happened
    assert "The job's row ended as failed, with the reason 'a bad row', written at line 14" in happened


@pytest.mark.parametrize("number", [0, 3])
def test_an_error_in_the_code_says_how_many_orders_are_in(number: int, make: Make) -> None:
    """An error that neither a limit nor a bad row has caused, at the start and after some rows; no hint is about it."""
    text = LOOP_RIGHT.replace(
        "            try:\n                save",
        f"            if i == {number}:\n                nothing\n            try:\n                save",
    )
    found = told(text, Batch(title="a", rows=5), make)
    assert "raised `NameError: name 'nothing' is not defined`, at line 9, `nothing`." in found.happened
    count = "3 of the 5 orders are in" if number else "None of the 5 orders is in"
    assert found.seen == f"{count}, and the job's row says running."
    assert found.why == "No soft limit and no bad row had a part in it: the error is in the code itself."
    assert not found.hints


def test_an_error_in_the_clause_for_bad_rows_is_not_said_to_be_without_one(make: Make) -> None:
    """A misspelled call in the clause that takes a bad row's error: the bad row is named, and where to look."""
    found = told(LOOP_RIGHT.replace("item_failed", "item_faild"), Batch(title="a", bad=(2,)), make)
    assert "The last row it had tried to save was row 2 (counted from 0), a bad one." in found.happened
    assert "'Job' object has no attribute 'item_faild'" in found.happened and not found.hints


def test_an_error_before_the_limit_could_land_is_named(make: Make) -> None:
    """A function that raises before the place of the limit is told of its own error."""
    found = told(loop("rows.nothing"), SAVING, make)
    assert "Before that your function raised `AttributeError: 'list' object has no attribute 'nothing'`, at line 6" in (
        found.happened
    )
    assert found.mistake == "it raised AttributeError before the limit landed" and not found.hints


TRY = """
def f():
    try:
        try:
            work()
        except {inner}:
            {body}
    except (ValueError, Exception) as late:
        return
"""


@pytest.mark.parametrize(
    ("inner", "body", "clause"),
    [
        ("Exception", "pass", "line 6, `except Exception:`"),
        ("Exception as error", "raise error", "line 8, `except (ValueError, Exception) as late:`"),
        ("SoftTimeLimitExceeded", "raise", "line 8, `except (ValueError, Exception) as late:`"),
        (
            "celery.exceptions.SoftTimeLimitExceeded",
            "pass",
            "line 6, `except celery.exceptions.SoftTimeLimitExceeded:`",
        ),
        ("ValueError", "pass", "line 8, `except (ValueError, Exception) as late:`"),
        ("Limits", "pass", ""),
        ("Exception", "raise KeyError", ""),
        ("Exception", "if x: raise", ""),
    ],
)
def test_the_clause_that_caught_the_limit_is_named_where_that_is_sure(inner: str, body: str, clause: str) -> None:
    """The innermost clause that takes it and keeps it; none where the text alone does not tell."""
    assert catching(TRY.format(inner=inner, body=body), {"line": 5}) == clause


@pytest.mark.parametrize(
    ("text", "line", "clause"),
    [
        ("try:\n    pass\nexcept:\n    def f():\n        work()\n", 5, ""),
        ("try:\n    with suppress(Exception):\n        work()\nexcept Exception:\n    pass\n", 3, ""),
        (
            "from a import SoftTimeLimitExceeded as Late\ntry:\n    work()\nexcept Late:\n    pass\n",
            3,
            "line 4, `except Late:`",
        ),
        (
            "match x:\n    case 1:\n        try:\n            work()\n        except:\n            pass\n",
            4,
            "line 5, `except:`",
        ),
        ("try:\n    pass\nexcept Exception:\n    work()\n", 4, ""),
        ("not python", 1, ""),
        ("work()", 99, ""),
        ("work()", None, ""),
    ],
)
def test_a_line_outside_of_what_can_catch_has_no_clause(text: str, line: int | None, clause: str) -> None:
    """Another function, a suppress, a clause's own lines, a text that is no Python, and a line that is not there."""
    assert catching(text, {"line": line} if line else {}) == clause


def test_the_clause_around_a_line_is_the_innermost_or_none() -> None:
    """A clause within a clause, and a line in a helper that stands in none."""
    text = "try:\n    a()\nexcept A:\n    try:\n        b()\n    except B:\n        c()\n"
    assert [around(text, {"line": line}) for line in (2, 5, 7)] == ["", "line 3, `except A:`", "line 6, `except B:`"]
    assert around("", {"line": 1}) == around("x", {}) == ""


def test_a_right_loop_passes_and_gets_all_points(make: Make) -> None:
    """The solution passes the check and gets the exercise's five points."""
    function = make(LOOP_RIGHT, "import_orders")
    assert check("03.1", function).passed
    assert grade("03.1", function, CASES) == 5.0


def test_a_loop_that_counts_with_indices_is_as_right(make: Make) -> None:
    """Rows fetched by index instead of by iteration are judged alike."""
    text = LOOP_RIGHT.replace("for i, row in enumerate(rows):", "for i in range(len(rows)):").replace(
        "job, row)", "job, rows[i])"
    )
    assert grade("03.1", make(text, "import_orders"), CASES) == 5.0


@pytest.mark.parametrize("wrong", HOSTILE_QUERIES, ids=lambda wrong: wrong.name)
def test_a_hostile_query_is_told_its_cause_and_harms_no_table(wrong: Wrong, make: Make, lab: Lab) -> None:
    """Each hostile query gets no points and a message of its own, and every table stays as it is."""
    lab.jobs.add("the lesson's own")
    before = lab.jobs.counts()
    function = make(wrong.text, "stuck_jobs")
    verdict = check("03.2", function)
    assert verdict.status == Status.NOT_YET
    assert wrong.says in str(verdict)
    assert grade("03.2", function, [STUCK, LIMITS]) == 0.0
    assert lab.jobs.counts() == before
    assert lab.query("select nspname from pg_namespace where nspname like 'check\\_%'").rows == []


def test_a_right_query_passes_and_gets_all_points(make: Make, lab: Lab) -> None:
    """The solution finds exactly the stuck rows."""
    function = make(QUERY_RIGHT, "stuck_jobs")
    assert check("03.2", function).passed
    assert grade("03.2", function, [STUCK, LIMITS]) == 4.0


def test_the_right_answer_to_has_it_ended_passes(make: Make) -> None:
    """The solution of the first exercise passes."""
    assert check("00.1", make(ENDED_RIGHT, "has_ended")).passed


@pytest.mark.parametrize("exercise", sorted(CHECKERS))
def test_an_empty_function_is_not_attempted(exercise: str, make: Make, lab: Lab) -> None:
    """A function that still raises NotImplementedError is "not attempted", which is not the same as wrong, and scores 0."""
    function = make("def f(*args):\n    raise NotImplementedError()\n", "f")
    cases = {"00.1": [["completed"]], "03.1": CASES[:1], "03.2": [STUCK]}[exercise]
    assert check(exercise, function).status == Status.NOT_ATTEMPTED
    assert grade(exercise, function, cases) == 0.0


def test_a_function_whose_file_is_gone_was_not_judged(make: Make, tmp_path: Path) -> None:
    """After its lab was closed a right function is "inconclusive", and the message says what to run again."""
    function = make(LOOP_RIGHT, "import_orders")
    (tmp_path / "work" / "submission.py").unlink()
    verdict = check("03.1", function)
    assert verdict.status == Status.INCONCLUSIVE and "was not judged" in verdict.happened
    assert "submission.py, is gone" in verdict.happened and "%%worker_file" in verdict.happened


def test_a_worker_file_that_is_no_text_is_said_to_be_none(make: Make, tmp_path: Path) -> None:
    """A file in the work folder that is not UTF-8 is named, with what to do."""
    function = make(LOOP_RIGHT, "import_orders")
    (tmp_path / "work" / "other.py").write_bytes(b"\xff\xfe")
    verdict = check("03.1", function)
    assert verdict.status == Status.NOT_YET and "other.py can not be read as text" in verdict.happened


@pytest.mark.parametrize(
    "thing",
    [None, "import_orders", 7, lambda job, rows: None, len],
    ids=["None", "text", "a number", "a lambda", "a builtin"],
)
def test_what_is_no_function_of_a_worker_file_is_told_how_to_become_one(thing: Any) -> None:
    """Something that did not come from a %%worker_file cell gets "not yet" with what to do, and 0 points."""
    verdict = check("03.1", thing)
    assert verdict.status == Status.NOT_YET and "%%worker_file" in verdict.happened
    assert grade("03.1", thing, CASES[:2]) == 0.0


def test_an_infinite_loop_is_killed_and_costs_only_its_own_case(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that never ends is killed; the next case still runs in a new process."""

    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 1)
    text = LOOP_RIGHT.replace("    try:\n        for", "    while len(rows) == 9:\n        pass\n    try:\n        for")
    assert grade("03.1", make(text, "import_orders"), CASES[:3]) == pytest.approx(3.33)


def test_what_a_function_starts_does_not_outlive_the_check(make: Make) -> None:
    """A process that moved to a session of its own is gone when check returns."""
    text = LOOP_RIGHT.replace(
        "    try:\n        for",
        "    import subprocess\n\n    subprocess.Popen(['sleep', '4242'], start_new_session=True)\n    try:\n        for",
    )
    assert check("03.1", make(text, "import_orders")).passed
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "4242"]]


def test_memory_has_a_bound(make: Make) -> None:
    """A function that asks for 50 GB gets MemoryError, and the machine keeps its memory."""
    verdict = check(
        "03.1",
        make(
            LOOP_RIGHT.replace("    try:\n        for", "    bytearray(50 << 30)\n    try:\n        for"),
            "import_orders",
        ),
    )
    assert "MemoryError" in verdict.happened


def test_junk_on_the_graders_channel_is_a_died_case_not_a_crash(make: Make) -> None:
    """Code that writes into every open file descriptor spoils its own cases only."""
    junk = """    import os

    for fd in range(3, 64):
        try:
            os.write(fd, b'{"over": 1}\\n[]\\nnonsense\\n')
        except OSError:
            pass
"""
    verdict = check(
        "03.1", make(LOOP_RIGHT.replace("    try:\n        for", junk + "    try:\n        for"), "import_orders")
    )
    assert verdict.status == Status.NOT_YET


def test_what_the_function_prints_does_not_reach_the_graders_stderr(
    make: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    """Output of the code under test stays in its process: nbgrader takes anything on stderr for a failure."""
    text = "import sys, warnings\nwarnings.warn('x')\nprint('noise', file=sys.stderr)\n" + LOOP_RIGHT
    function = make(text, "import_orders")
    capfd.readouterr()
    assert grade("03.1", function, CASES[:1]) == 5.0
    assert capfd.readouterr().err == ""


def test_a_grader_that_breaks_is_inconclusive_and_no_mark(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """When our own child does not start, check says "inconclusive" and grade raises instead of marking."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    if runner._spare is not None:  # one that a check before this has started
        runner._spare[1].end()
    monkeypatch.setattr(runner, "_spare", None)
    function = make(LOOP_RIGHT, "import_orders")
    verdict = check("03.1", function)
    assert verdict.status == Status.INCONCLUSIVE and "not your fault" in verdict.happened
    with pytest.raises(GraderFailed):
        grade("03.1", function, CASES[:1])


def test_an_exercise_that_does_not_exist_is_named_with_those_that_do() -> None:
    """check, grade and hint refuse an unknown exercise and list the known ones; one for a person says so."""
    for call in (lambda: check("99.9", None), lambda: grade("99.9", None, []), lambda: hint("99.9")):
        with pytest.raises(BadSetting, match=r"03\.1"):
            call()
    with pytest.raises(BadSetting, match="read by a person"):
        grade("03.3", None, [])


def test_a_score_stays_between_zero_and_the_points(make: Make) -> None:
    """No cases give zero, and points can be given for one cell."""
    function = make(ENDED_RIGHT, "has_ended")
    assert grade("00.1", function, []) == 0.0
    assert grade("00.1", function, [["failed"]], points=3) == 3.0


def test_a_verdict_reads_the_same_in_text_and_in_html() -> None:
    """The HTML of a verdict has every sentence of its text, escaped, and is announced to screen readers."""
    verdict = Verdict(exercise="03.1", status=Status.NOT_YET, title="T", happened="a `b` < b", seen="s", why="w")
    page = verdict._repr_html_()
    assert str(verdict).splitlines() == [
        "✗ 03.1 T: not yet",
        "  What happened: a `b` < b",
        "  What people see: s",
        "  Why: w",
    ]
    assert "a <code>b</code> &lt; b" in page and "<strong>Why:</strong> w" in page and 'aria-live="polite"' in page


def test_not_yet_carries_its_parts() -> None:
    """NotYet keeps what happened, what people see, why, the kind of mistake, and whether a hint is about it."""
    error = NotYet("h", seen="s", why="w", mistake="m", hints=False)
    assert (error.happened, error.seen, error.why, error.mistake, error.hints) == ("h", "s", "w", "m", False)


def test_a_verdict_that_is_not_yet_names_the_next_hint(make: Make) -> None:
    """Not yet says what to type for the next hint and what its title is; passed does not."""
    verdict = check("03.1", make(NAIVE, "import_orders"))
    assert verdict.hint == '`hint("03.1")` – Which clause can\'t tell them apart?'
    assert str(verdict).endswith(f"  Next hint: {verdict.hint}")
    assert check("03.1", make(LOOP_RIGHT, "import_orders")).hint == ""


@pytest.mark.parametrize(
    ("exercise", "text"),
    [
        ("00.1", "def f(state):\n    return nothing\n"),
        ("00.1", "def f(state):\n    print(state)\n"),
        ("03.1", "def f(job, rows):\n    return rows.nothing\n"),
        ("03.2", "def f():\n    return 7\n"),
        ("03.2", "def f():\n    return 'select id from public.jobs'\n"),
    ],
)
def test_an_error_in_the_code_itself_names_no_hint(exercise: str, text: str, make: Make, lab: Lab) -> None:
    """No hint is about a name that does not exist, a value of the wrong type or another table: none is named."""
    verdict = check(exercise, make(text, "f"))
    assert verdict.status == Status.NOT_YET and verdict.hint == "" and "Next hint" not in str(verdict)


@pytest.mark.parametrize(
    ("place", "moved"),
    [
        ({"limit": "saving", "at": 2}, {"limit": "saving", "at": 5}),
        ({"limit": "between", "at": 4}, {"limit": "between", "at": 1}),
        ({"limit": "recording", "at": 2, "bad": (2, 5)}, {"limit": "recording", "at": 3, "bad": (1, 3)}),
        ({"limit": "completing"}, {"limit": "completing"}),
        ({"bad": (0, 4)}, {"bad": (0, 6)}),
        ({}, {}),
    ],
    ids=lambda case: case.get("limit", "quiet"),
)
def test_marks_are_explained_without_a_value_of_the_case(
    place: dict[str, Any], moved: dict[str, Any], make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """What grade prints is the same for two cases of one kind with other numbers: feedback shows it for hidden ones."""
    wrong = [NAIVE, LOOP_RIGHT.replace("        raise\n", "        return\n"), LOOP_RIGHT.replace("job.done", "7")]
    wrong += [LOOP_RIGHT.replace("job.item_done(i)", "job.item_done(row)"), loop("save_order(job, rows[0])")]
    for text in wrong:
        said = []
        for rows, more in ((8, place), (9, moved)):
            grade("03.1", make(text, "import_orders"), [Batch(title="a case", rows=rows, **more)])
            said.append(capsys.readouterr().out)
        assert said[0] == said[1]
        assert not any(letter.isdigit() for letter in said[0])


def test_marks_for_a_query_and_a_state_hold_no_value_either(
    make: Make, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row that was missed, one found wrongly, and a wrong answer are named by their kind."""
    none = make("def stuck_jobs():\n    return 'select id from jobs where false'\n", "stuck_jobs")
    grade("03.2", none, [STUCK, STUCK[3:]])
    every = make("def stuck_jobs():\n    return 'select id from jobs'\n", "stuck_jobs")
    grade("03.2", every, [LIMITS, LIMITS[1:]])
    grade("00.1", make("def has_ended(state):\n    return False\n", "has_ended"), [["timed_out"]])
    assert capsys.readouterr().out.splitlines() == [
        "not yet  case 1: the query misses a running job with a hard limit that is stuck",
        "not yet  case 2: the query misses a running job with only a soft limit that is stuck",
        "not yet  case 1: the query finds a running job with a hard limit that is not stuck",
        "not yet  case 2: the query finds a job that is completed that is not stuck",
        "not yet  case 1: a state that ends was taken for one that does not",
    ]


@pytest.mark.parametrize(
    ("sql", "unread"),
    [("select id from public.jobs", True), ("select j.id from jobs j join public.jobs p on p.id = j.id", False)],
)
def test_rows_that_were_looked_at_are_not_said_not_to_be(sql: str, unread: bool, make: Make, lab: Lab) -> None:
    """A query that reads the check's table beside another one is not told that it never looked at it."""
    verdict = check("03.2", make(f"def stuck_jobs():\n    return {sql!r}\n", "stuck_jobs"))
    assert "The query reads `public.jobs`" in verdict.happened
    assert ("never looked at" in verdict.seen) is unread


def test_a_job_that_comes_back_again_is_named_with_how_often(make: Make, lab: Lab) -> None:
    """Three times the same job: which one, how often, and what does not multiply rows."""
    sql = QUERY_RIGHT.split('"""')[1]
    text = f'def stuck_jobs():\n    return """{sql} union all {sql} union all {sql}"""\n'
    verdict = check("03.2", make(text, "stuck_jobs"))
    assert "3 jobs more than once: running, started 60 min ago" in verdict.happened
    assert verdict.happened.endswith(", 3 times.") and verdict.seen == "The same customer is told 3 times."
    assert "`union all`" in verdict.why


def test_all_states_that_were_answered_wrong_are_named(make: Make) -> None:
    """Both kinds of wrong answers stand in one message, and both of what people see."""
    verdict = check("00.1", make("def has_ended(state):\n    return state in ('pending', 'failed')\n", "has_ended"))
    assert verdict.happened == "For completed and cancelled your function answered False, for pending it answered True."
    assert "waits for a job that is over" in verdict.seen and "gives up on a job that goes on" in verdict.seen
    assert verdict.why == (
        "completed and cancelled are terminal, so the answer is True; pending is not terminal, so the answer is False."
    )


def test_several_rows_that_are_not_stuck_are_all_named(make: Make, lab: Lab) -> None:
    """A query that finds two healthy rows is told of both."""
    function = make("def stuck_jobs():\n    return \"select id from jobs where state = 'running'\"\n", "stuck_jobs")
    assert (
        "finds the rows of 4 jobs that are not stuck: running, started 60 min ago" in check("03.2", function).happened
    )


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A progress file of this test's own."""
    monkeypatch.setenv(progress.ENV, str(tmp_path / "progress.jsonl"))
    return tmp_path / "progress.jsonl"


def test_a_check_is_recorded_with_the_text_that_was_checked(make: Make, kept: Path) -> None:
    """The progress file holds the status and the worker file's text, also of what is no function."""
    check("03.1", make(NAIVE, "import_orders"))
    check("03.1", None)
    first, second = progress.entries()
    assert (first.kind, first.lesson, first.item) == ("check", "03", "03.1")
    assert first.data == {"status": "not yet", "named": True, "source": NAIVE}
    assert second.data == {"status": "not yet", "named": False, "source": ""}


def test_what_is_recorded_of_a_text_has_a_bound(kept: Path) -> None:
    """A text of a megabyte does not go into the progress file as a whole."""
    check("03.3", "word " * 200_000)
    assert len(progress.entries()[0].data["source"]) == checking.LONGEST_SOURCE


def test_a_check_that_no_exercise_has_leaves_no_record(kept: Path) -> None:
    """An exercise that does not exist is an error, and nothing is written."""
    with pytest.raises(BadSetting):
        check("99.9", None)
    assert not kept.exists()


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_message_is_not_attempted(text: str) -> None:
    """An empty text for a reader is not attempted, and the verdict says where it goes."""
    verdict = check("03.3", text)
    assert verdict.status == Status.NOT_ATTEMPTED and "three quotation marks" in verdict.happened


@pytest.mark.parametrize("thing", [None, 7, ["text"]])
def test_a_message_that_is_no_text_is_told_how_to_be_one(thing: Any) -> None:
    """Anything but a text gets what to type."""
    assert 'message = """..."""' in check("03.3", thing).why


class Shell:
    """A kernel's shell as far as a sign needs it, and a front end that keeps what is shown by display id."""

    execution_count = 4


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, Any]]]:
    """Makes a person watch; the list is what reaches the page: (new or update, display id, data)."""
    import IPython.core.display_functions as front

    shown: list[tuple[str, str, dict[str, Any]]] = []

    def publish(data: dict[str, Any], metadata: Any = None, transient: Any = None, **more: Any) -> None:
        shown.append(("update" if more.get("update") else "new", (transient or {}).get("display_id", ""), data))

    monkeypatch.setattr(checking, "person_watches", lambda: True)
    monkeypatch.setattr("IPython.get_ipython", Shell)
    monkeypatch.setattr(front, "publish_display_data", publish)
    monkeypatch.setattr("IPython.core.interactiveshell.InteractiveShell.initialized", lambda: True)
    return shown


def test_a_sign_stands_there_before_the_check_and_becomes_its_verdict(
    make: Make, page: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a person watches, "checking" is on the page before the code runs, and the verdict takes its place."""
    before: list[int] = []
    checker = CHECKERS["00.1"]
    monkeypatch.setitem(CHECKERS, "00.1", lambda attempt: (before.append(len(page)), checker(attempt))[1])
    verdict = check("00.1", make(ENDED_RIGHT, "has_ended"))
    assert before == [1]
    (_, first, sign), (how, second, answer) = page
    assert (how, first) == ("update", second) and first
    assert "checking …" in sign["text/plain"] and 'role="status"' in sign["text/html"]
    assert answer["text/plain"] == str(verdict) and verdict.passed


def test_the_cell_that_asked_does_not_show_the_verdict_twice(make: Make, page: list[Any]) -> None:
    """The value of the same cell shows nothing more; a later cell that asks for it shows it again."""
    verdict = check("00.1", make(ENDED_RIGHT, "has_ended"))
    assert isinstance(verdict, OnPage)
    del page[:]
    verdict._ipython_display_()
    assert page == []
    Shell.execution_count += 1
    verdict._ipython_display_()
    assert [data["text/plain"] for _, _, data in page] == [str(verdict)]


def test_a_check_that_is_stopped_takes_its_sign_down(page: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A press of Stop leaves no "checking" on the page, and no record."""

    def stopped(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(CHECKERS, "00.1", stopped)
    with pytest.raises(KeyboardInterrupt):
        check("00.1", None)
    assert "stopped before there was a verdict" in page[-1][2]["text/plain"]


def test_where_nobody_watches_there_is_no_sign(make: Make) -> None:
    """Under papermill, nbval and nbgrader check returns its verdict and shows nothing else."""
    assert type(check("00.1", make(ENDED_RIGHT, "has_ended"))) is Verdict
