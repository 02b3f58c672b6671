"""The checks: what is right passes, and each wrong submission gets its own score and is told its own cause."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.errors import BadSetting, GraderFailed
from sandbox.learn import Batch, Planted, check, grade, hint
from sandbox.learn.checking import CHECKERS, _hints_shown
from sandbox.learn.verdict import NotYet, Status, Verdict
from sandbox.services import Lab, code

from submissions import (  # isort: skip
    ENDED_RIGHT,
    ENDED_WRONG,
    LOOP_RIGHT,
    LOOPS_WRONG,
    QUERIES_WRONG,
    QUERY_RIGHT,
    Wrong,
)

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


@pytest.mark.parametrize("wrong", LOOPS_WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_loop_gets_its_score_and_is_told_its_cause(wrong: Wrong, make: Make) -> None:
    """Each wrong loop in the bank gets exactly the points of the cases that it gets right, and its own message."""
    function = make(wrong.text, "import_orders")
    verdict = check("03.1", function)
    assert verdict.status == (Status.PASSED if wrong.says == "cases are right" else Status.NOT_YET)
    assert wrong.says in str(verdict)
    assert grade("03.1", function, CASES) == wrong.right / 2


def test_no_two_wrong_loops_are_told_the_same() -> None:
    """Each mistake that a visible case shows has a sentence of its own in the bank."""
    told = [wrong.says for wrong in LOOPS_WRONG if wrong.says != "cases are right"]
    assert len(set(told)) == len(told)


def test_a_message_names_the_learners_own_lines(make: Make) -> None:
    """The verdict on the naive loop names the line where the limit landed and the line that caught it, with their text."""
    verdict = check("03.1", make(LOOPS_WRONG[0].text, "import_orders"))
    assert "landed while row 3 was being saved, at line 8, `save_order(job, row)`" in verdict.happened
    assert "caught it at line 11, `job.item_failed(i, error)`" in verdict.happened
    assert verdict.seen and verdict.why


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


@pytest.mark.parametrize("wrong", QUERIES_WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_query_gets_its_score_and_is_told_its_cause(wrong: Wrong, make: Make, lab: Lab) -> None:
    """Each wrong or hostile query gets its exact points and its own message, and harms no table."""
    lab.jobs.add("the lesson's own")
    before = lab.jobs.counts()
    function = make(wrong.text, "stuck_jobs")
    verdict = check("03.2", function)
    assert verdict.status == (Status.PASSED if wrong.says == "cases are right" else Status.NOT_YET)
    assert wrong.says in str(verdict)
    assert grade("03.2", function, [STUCK, LIMITS]) == wrong.right * 2
    assert lab.jobs.counts() == before
    assert lab.query("select nspname from pg_namespace where nspname like 'check\\_%'").rows == []


def test_a_right_query_passes_and_gets_all_points(make: Make, lab: Lab) -> None:
    """The solution finds exactly the stuck rows."""
    function = make(QUERY_RIGHT, "stuck_jobs")
    assert check("03.2", function).passed
    assert grade("03.2", function, [STUCK, LIMITS]) == 4.0


@pytest.mark.parametrize("wrong", ENDED_WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_answer_to_has_it_ended_is_told_its_cause(wrong: Wrong, make: Make) -> None:
    """Each wrong answer in the first exercise gets its own message; points go by state."""
    function = make(wrong.text, "has_ended")
    verdict = check("00.1", function)
    assert verdict.status == Status.NOT_YET and wrong.says in str(verdict)
    states = [["completed"], ["running"], ["pending"], ["failed"]]
    assert grade("00.1", function, states) == wrong.right / 4


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
    from sandbox.grade import runner

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
        check("03.3", None)


def test_a_score_stays_between_zero_and_the_points(make: Make) -> None:
    """No cases give zero, and points can be given for one cell."""
    function = make(ENDED_RIGHT, "has_ended")
    assert grade("00.1", function, []) == 0.0
    assert grade("00.1", function, [["failed"]], points=3) == 3.0


def test_hints_come_one_at_a_time_and_the_last_stays() -> None:
    """Each call of hint gives the next hint, and says how many are left."""
    _hints_shown.clear()
    texts = [hint("00.1") for _ in range(4)]
    assert [text[:11] for text in texts] == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Hint 3 of 3"]
    assert "(2 more)" in texts[0] and "last one" in texts[2]
    assert "no hints" in hint("03.3")


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


def test_not_yet_carries_its_three_parts() -> None:
    """NotYet keeps what happened, what people see, and why."""
    error = NotYet("h", seen="s", why="w")
    assert (error.happened, error.seen, error.why) == ("h", "s", "w")
