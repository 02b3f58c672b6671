"""The process a learner's code runs in: whatever the code does, the grader gets an outcome and keeps a clean machine."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.grade import Call, Outcome, Reply, Submission, one_child, run_cases, runner, start_spare
from sandbox.learn.processes import is_alive

ANSWER = Reply()
WIRE = """
import gc
import json
import socket


def wire():
    # The grader's own channel, found as a cheat would find it.
    return next(found for found in gc.get_objects() if isinstance(found, socket.socket))
"""


def ask(text: str, *orders: dict[str, Any], answer: Callable[[Call], Reply] = lambda _: ANSWER) -> list[Outcome]:
    """Run function `f` of `text` once for each order (by default once, without arguments)."""
    cases = list(orders) or [{"args": []}]
    submission = Submission(files={"mine": text}, module="mine", function="f")
    return run_cases(submission, cases, [answer] * len(cases))


def marked(mark: str) -> list[psutil.Process]:
    """Processes with `mark` in their command line."""
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if mark in " ".join(process.info["cmdline"] or []) and is_alive(process)]


@pytest.fixture
def mark() -> Iterator[str]:
    """A word by which a process can be found; whatever still has it after the test is ended."""
    word = f"mark-{uuid.uuid4().hex}"
    yield word
    for process in marked(word):
        process.kill()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of this test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_value_and_an_error_come_back_as_plain_data() -> None:
    """A value comes back as it is, an error with its type, its text and the learner's line."""
    value, error = ask("def f(x):\n    return 10 / x\n", {"args": [4]}, {"args": [0]})
    assert (value.kind, value.value, value.type) == ("value", 2.5, "float")
    assert (error.kind, error.type, error.message) == ("error", "ZeroDivisionError", "division by zero")
    assert error.where == {"file": "mine.py", "line": 2, "text": "return 10 / x"}


@pytest.mark.parametrize(
    "text",
    [
        "class Int(int):\n    __eq__ = lambda self, other: True\n    __hash__ = None\n\n\ndef f():\n    return Int(7)\n",
        "class Str(str):\n    __eq__ = lambda self, other: True\n    __hash__ = None\n\n\ndef f():\n    return Str('a')\n",
        "class Any:\n    __eq__ = lambda self, other: True\n    __hash__ = None\n\n\ndef f():\n    return Any()\n",
        "def f():\n    return [1]\n",
    ],
    ids=["int", "str", "object", "list"],
)
def test_only_plain_values_come_back(text: str) -> None:
    """An object that claims to equal everything never reaches the comparison, nor does anything else that is not plain."""
    outcome = ask(text)[0]
    assert outcome.kind == "value"
    assert outcome.value is None
    assert outcome.type not in ("int", "str", "bool")


@pytest.mark.parametrize(
    "line",
    [
        "os._exit(0)",
        "os.kill(os.getpid(), 9)",
        "os.kill(os.getppid(), 9)",
        "os.closerange(3, 256)",
        "os.dup2(1, 0); [os.dup2(1, n) for n in range(3, 64)]",
    ],
)
def test_a_process_that_is_gone_costs_its_own_case_only(line: str) -> None:
    """Code that leaves, kills or cuts off its process gets "died"; the case after it is judged as ever."""
    text = f"import os\n\n\ndef f(bad):\n    if bad:\n        {line}\n    return bad\n"
    first, second = ask(text, {"args": [True]}, {"args": [False]})
    assert first.kind == "died"
    assert (second.kind, second.value) == ("value", False)


@pytest.mark.parametrize(
    "junk",
    [
        b"nonsense\n",
        b"[]\n",
        b"7\n",
        b"[" * 100_000 + b"\n",
        b"x" * (2 << 20),
        b"\xff\xfe\n",
        b'{"call": 1, "args": []}\n',
        b'{"call": "save"}\n',
        b'{"call": "save", "args": {}}\n',
        b'{"over": 1}\n',
        b'{"over": {"kind": "passed"}}\n',
        b'{"over": {"kind": "value", "value": [[]]}}\n',
        b"\n",
    ],
    ids=lambda junk: repr(junk[:30]),
)
def test_nonsense_on_the_graders_channel_costs_its_own_case_only(junk: bytes) -> None:
    """A forged message is "died"; the grader neither breaks nor believes it, and goes on with the next case."""
    text = WIRE + f"\n\ndef f(bad):\n    if bad:\n        wire().sendall({junk[:40]!r} * {max(1, len(junk) // 40)})\n"
    if len(junk) <= 40:
        text = WIRE + f"\n\ndef f(bad):\n    if bad:\n        wire().sendall({junk!r})\n"
    elif junk.startswith(b"["):
        text = WIRE + "\n\ndef f(bad):\n    if bad:\n        wire().sendall(b'[' * 100_000 + b'\\n')\n"
    first, second = ask(text, {"args": [True]}, {"args": [False]})
    assert first.kind == "died"
    assert second.kind == "value"


def test_a_forged_outcome_has_clean_fields() -> None:
    """Whatever an outcome claims about itself, its fields have the types that the judges read."""
    forged = {"kind": "error", "type": ["x"], "message": {"a": 1}, "soft": "yes", "where": {"line": "1"}, "more": 1}
    text = WIRE + f"\n\ndef f():\n    wire().sendall(json.dumps({{'over': {forged!r}}}).encode() + b'\\n')\n"
    outcome = ask(text)[0]
    assert (outcome.kind, outcome.type, outcome.message, outcome.soft) == ("error", "['x']", "{'a': 1}", False)
    assert outcome.where == {}


def test_half_a_letter_does_not_break_the_page() -> None:
    """Text that can not be encoded comes back with a stand-in, in a value and in an error."""
    value, error = ask(
        "def f(bad):\n    if bad:\n        raise ValueError('\\udcff!')\n    return '\\udcff!'\n",
        {"args": [False]},
        {"args": [True]},
    )
    assert value.value == "?!"
    assert error.message == "?!"


def test_a_case_that_does_not_end_is_killed_and_the_next_gets_half_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that catches everything is killed; patience halves with each, down to a fifth, so that all of them fit."""
    given: list[float] = []
    one_case = runner._one_case

    def noted(child: Any, order: Any, answer: Any, patience: float) -> Any:
        given.append(patience)
        return one_case(child, order, answer, patience)

    monkeypatch.setattr(runner, "_one_case", noted)
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 2)
    text = """
import signal


def f(endless):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while endless:
        try:
            while True:
                pass
        except BaseException:
            pass
    return 7
"""
    outcomes = ask(text, *({"args": [endless]} for endless in (True, True, True, True, True, False)))
    assert [outcome.kind for outcome in outcomes] == ["no end"] * 5 + ["value"]
    assert given == pytest.approx([2, 1, 0.5, 0.4, 0.4, 0.4])
    assert runner.PATIENCE_SECONDS == 2


def test_ten_endless_cases_are_over_before_nbgrader_loses_patience() -> None:
    """The time for ten cases of which none ends fits into the cell timeout that nbgrader_config.py sets."""
    patience, whole = float(runner.PATIENCE_SECONDS), 0.0
    for _ in range(10):
        whole += patience
        patience = max(patience / 2, runner.PATIENCE_SECONDS * runner.LEAST_PATIENCE)
    config = (Path(__file__).parents[2] / "nbgrader_config.py").read_text(encoding="utf-8")
    assert "c.Execute.timeout = 60" in config
    assert whole < 60 * 2 / 3


HIDING = """
import subprocess
import sys

SLEEP = [sys.executable, "-c", "import time; time.sleep(999)", {mark!r}]


def f(how):
    if how == "plain":
        subprocess.Popen(SLEEP)
    elif how == "session":
        subprocess.Popen(SLEEP, start_new_session=True)
    elif how == "all":
        # Its own session, no environment, and its parent gone: nothing of ours is left on it.
        start = f"import subprocess; subprocess.Popen({{SLEEP!r}}, start_new_session=True, env={{{{}}}})"
        subprocess.run([sys.executable, "-c", start], env={{}}, check=True)
    elif how == "many":
        for _ in range(40):
            subprocess.Popen(SLEEP, start_new_session=True)
    return how
"""


def test_what_a_case_has_started_is_gone_before_the_next_begins(mark: str) -> None:
    """A child, one in a session of its own, one without environment and parent, and forty at once: none is left."""
    alive: list[int] = []

    def looked(call: Call) -> Reply:
        alive.append(len(marked(mark)))
        return ANSWER

    # Who hides without environment and parent is found by a subreaper, which Linux alone has.
    hows = ("plain", "session", "all" if sys.platform == "linux" else "plain", "many", "none")
    text = HIDING.format(mark=mark).replace("def f(how):", "def g(how):") + (
        "\n\ndef f(job, rows):\n    job.expect(0)\n    g(rows[0])\n    job.expect(0)\n"
    )
    outcomes = ask(text, *({"job": "j", "rows": [how]} for how in hows), answer=_only("expect", looked))
    assert [outcome.kind for outcome in outcomes] == ["value"] * 5
    # Two looks a case: at its begin nothing of the one before is alive; at its end what it started may be.
    assert alive[0::2] == [0, 0, 0, 0, 0]
    assert alive[7] == 40
    assert marked(mark) == []


def _only(name: str, answer: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
    return lambda call: answer(call) if call.name == name else ANSWER


def test_what_an_endless_case_has_started_is_gone_with_it(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that is killed takes what it started with it."""
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 2)
    text = HIDING.format(mark=mark).replace("    return how", "    while True:\n        pass")
    assert [outcome.kind for outcome in ask(text, {"args": ["session"]})] == ["no end"]
    assert marked(mark) == []


def test_no_folder_is_left(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cases write goes into a folder that is removed, also after a case that was killed."""
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 1)
    text = """
import os
import tempfile
from pathlib import Path


def f(endless):
    tempfile.mkdtemp()
    Path("here.txt").write_text("x")
    while endless:
        pass
    return os.getcwd()
"""
    endless, ended = ask(text, {"args": [True]}, {"args": [False]})
    assert endless.kind == "no end"
    assert Path(str(ended.value)).is_relative_to(temporary)
    assert list(temporary.iterdir()) == []


def test_a_flood_of_output_does_not_fill_the_disk() -> None:
    """Printing without an end is an error of the learner's own after some megabytes."""
    text = "def f():\n    text = 'x' * (1 << 20)\n    for _ in range(200):\n        print(text)\n"
    outcome = ask(text)[0]
    assert (outcome.kind, outcome.type) == ("error", "OSError")
    assert "File too large" in outcome.message


def test_memory_that_is_touched_has_a_bound() -> None:
    """Asking for more memory than is allowed is a MemoryError in the learner's own line."""
    outcome = ask("def f():\n    return len([bytearray(1 << 28) for _ in range(200)])\n")[0]
    assert (outcome.type, outcome.where["line"]) == ("MemoryError", 2)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a child of its parent's death")
def test_a_grader_that_is_killed_leaves_nothing(
    owner: Callable[..., Any], eventually: Callable[..., Any], mark: str, tmp_path: Path
) -> None:
    """kill -9 of the process that grades, in the middle of an endless case: its child, the case and their folder go."""
    text = HIDING.format(mark=mark).replace("    return how", "    while True:\n        pass")
    program = """
import sys
from sandbox.grade import *
submission = Submission(files={"mine": sys.stdin.readline().replace("@", chr(10))}, module="mine", function="f")
run_cases(submission, [{"args": ["session"]}], [lambda _: Reply()])
"""
    process = owner(program, env=os.environ | {"TMPDIR": str(tmp_path)})
    process.stdin.write(text.replace("\n", "@") + "\n")
    process.stdin.flush()
    assert eventually(lambda: marked(mark))
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 3
    process.kill()
    process.wait()
    assert eventually(lambda: not [one for one in family if is_alive(one)])
    assert eventually(lambda: not list(tmp_path.iterdir()))
    assert marked(mark) == []


@pytest.mark.parametrize(
    "loop",
    [
        "for row in rows:",
        "for row in rows[:]:",
        "for row in rows.copy():",
        "for row in [*rows]:",
        "for row in (rows[i] for i in range(len(rows))):",
        "for row in (rows[i - len(rows)] for i in range(len(rows))):",
        "for _, row in zip(range(99), rows):",
    ],
)
def test_each_row_is_fetched_under_the_graders_eyes(loop: str) -> None:
    """However a loop goes over the rows, fetching each is a place where the limit can land, in the file's order."""
    fetched: list[Any] = []

    def answer(call: Call) -> Reply:
        fetched.append(call.args[0])
        return ANSWER

    outcome = ask(
        f"def f(job, rows):\n    {loop}\n        pass\n", {"job": "j", "rows": [1, 2, 3]}, answer=_only("next", answer)
    )[0]
    assert outcome.kind == "value"
    assert fetched == [0, 1, 2]


def test_a_wrong_argument_is_an_error_where_it_was_made() -> None:
    """A place that is no number and a reason that is no text are the learner's own TypeError, with the line."""
    for line in (
        "job.item_done(rows[0])",
        "job.item_done('0')",
        "job.item_failed(None, 'x')",
        "job.fail(7)",
        "job.time_out([])",
    ):
        outcome = ask(f"def f(job, rows):\n    {line}\n", {"job": "j", "rows": [{}]})[0]
        assert (outcome.type, outcome.where["line"]) == ("TypeError", 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rows.nothing", "'list' object has no attribute 'nothing'"),
        ("job.finished", "'Job' object has no attribute 'finished'"),
        ("job.finish()", "Job.finish() missing 1 required positional argument: 'state'"),
        ("rows.copy(1)", "list.copy() takes 1 positional argument but 2 were given"),
        ("raise KeyError(type(rows), type(job))", "(<class 'list'>, <class 'sandbox.jobs.attempt.Job'>)"),
    ],
)
def test_an_error_names_no_stand_in(line: str, said: str) -> None:
    """What stands in for the list of rows and for the job has the name of what a learner knows."""
    assert ask(f"def f(job, rows):\n    {line}\n", {"job": "j", "rows": []})[0].message == said


def test_the_childs_environment_holds_nothing_of_the_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses and passwords of real servers do not reach the process that a learner's code runs in."""
    monkeypatch.setenv("SANDBOX_DATABASE_URL", "postgresql://secret")
    text = "import os\n\n\ndef f():\n    return ' '.join(sorted(k for k in os.environ if k.startswith('SANDBOX_')))\n"
    assert ask(text)[0].value == runner.TOKEN


def test_runs_share_a_child_where_they_are_told_to(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one_child two submissions are run by one process, each with its own files; nothing of it is left after."""
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 2)
    started: list[int] = []
    start = runner._Child.__init__

    def noted(child: Any) -> None:
        start(child)
        started.append(child.process.pid)

    monkeypatch.setattr(runner._Child, "__init__", noted)
    with one_child():
        assert [ask(f"def f():\n    return {value}\n")[0].value for value in (1, 2)] == [1, 2]
        assert len(started) == 1
        # One that had to be killed is not used again.
        assert ask("def f():\n    while True:\n        pass\n")[0].kind == "no end"
        assert ask("def f():\n    return 3\n")[0].value == 3
        assert len(started) == 2
        with pytest.raises(ZeroDivisionError):
            ask("def f(job, rows):\n    job.expect(1)\n", {"job": "j", "rows": []}, answer=lambda call: 1 / 0)  # type: ignore[arg-type,return-value]
        assert ask("def f():\n    return 4\n")[0].value == 4
        assert len(started) == 3
    assert not any(psutil.pid_exists(pid) for pid in started)
    assert list(temporary.iterdir()) == []
    ask("def f():\n    return 5\n")
    assert len(started) == 4


def test_a_spare_is_used_once_and_in_its_own_process(temporary: Path) -> None:
    """The next run takes the child that was started ahead of time; a dead one is replaced; a fork starts its own."""
    start_spare()
    start_spare()
    spare = runner._spare
    assert spare is not None and len(list(temporary.iterdir())) == 1
    text = "import os\n\n\ndef f():\n    return os.getppid()\n"
    assert ask(text)[0].value == spare[1].process.pid and runner._spare is None
    start_spare()
    dead = runner._spare
    assert dead is not None
    dead[1].process.kill()
    dead[1].process.wait()
    assert ask(text)[0].value != dead[1].process.pid
    start_spare()
    foreign = runner._spare
    assert foreign is not None
    runner._spare = (foreign[0] + 1, foreign[1])
    assert ask(text)[0].value != foreign[1].process.pid
    foreign[1].end()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("end", ["by itself", "killed at once", "killed later"])
def test_a_spare_ends_with_its_process(owner: Callable[..., Any], eventually: Any, tmp_path: Path, end: str) -> None:
    """However the process ends that has started one, the child and its folder go."""
    program = """
import sys
from sandbox.grade import runner, start_spare
start_spare()
child = runner._spare[1]
if sys.argv[1:] == ["killed later"]:
    child.wait_ready()
print(child.process.pid, flush=True)
sys.stdin.readline()
"""
    process = owner(program, end, env=os.environ | {"TMPDIR": str(tmp_path)})
    child = int(process.stdout.readline())
    assert list(tmp_path.iterdir())
    if end == "by itself":
        process.stdin.write("\n")
        process.stdin.flush()
    else:
        process.kill()
    process.wait()
    assert eventually(lambda: not is_alive(psutil.Process(child)) if psutil.pid_exists(child) else True)
    assert eventually(lambda: not list(tmp_path.iterdir()))
