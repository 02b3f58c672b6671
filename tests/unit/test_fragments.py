"""Running the code of a quiz: what it printed, how it ended, and that it always ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.learn import fragments
from sandbox.learn.fragments import LONGEST, Ran, run


@pytest.fixture(autouse=True)
def _afresh() -> None:
    run.cache_clear()


def test_what_it_prints_is_kept() -> None:
    """Blank lines around it are not; what is inside stays; errors on stderr alone do not count."""
    said = run("import sys\nprint()\nprint('a')\nprint()\nprint('  b  ')\nprint('x', file=sys.stderr)\nprint()")
    assert said == Ran(kind="value", printed="a\n\n  b")
    assert said.outcome == "a\n\n  b"
    assert run("").outcome == ""


@pytest.mark.parametrize(
    ("code", "error", "line"),
    [
        ("print('a')\nprint(x)", "NameError: name 'x' is not defined", 2),
        ("def f():\n    raise KeyError('k')\n\nf()", "KeyError: 'k'", 2),
        ("raise ValueError", "ValueError", 1),
        ("raise ValueError('one\\ntwo')", "ValueError: one", 1),
        ("raise ValueError('x\\nNoError: y')", "ValueError: x", 1),
        ("print('a'\n", "SyntaxError: '(' was never closed", 1),
        ("if True:\nx = 1", "IndentationError: expected an indented block after 'if' statement on line 1", 2),
        ("import json\njson.loads('{')", "JSONDecodeError: Expecting property name enclosed in double quotes", 2),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    int('x')", "ValueError: invalid literal", 4),
        ("raise ExceptionGroup('many', [ValueError('a')])", "ExceptionGroup: many (1 sub-exception)", 1),
        ("import sys\nsys.exit(3)", "the process ended with 3", None),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", "the process ended with -15", None),
    ],
)
def test_the_error_that_leaves_it_is_named_with_its_line(code: str, error: str, line: int | None) -> None:
    """Also one of a library, one in a handler, a group, one of several lines; a process that only ends has no line."""
    said = run(code)
    assert said.kind == "error"
    assert said.error.startswith(error)
    assert said.line == line


def test_the_outcome_is_what_was_printed_and_the_name_of_the_error() -> None:
    """What a learner is asked for."""
    assert run("print('a')\n1 / 0").outcome == "a\nZeroDivisionError"


def test_unicode_goes_through() -> None:
    """Letters of any script, in code, output and error; what is no text does not stop it."""
    assert run("print('жук ✓ 漢')").printed == "жук ✓ 漢"
    assert run("raise ValueError('жук')").error == "ValueError: жук"
    assert run("print('a\ud800')").kind in ("value", "error")
    assert "�" in run(r"import sys; sys.stdout.buffer.write(b'\xff\xfe')").printed


def test_a_loop_without_end_is_ended_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, traces: Any, eventually: Callable[..., Any]
) -> None:
    """It is said that it does not end; its children are gone, also one in a session of its own."""
    monkeypatch.setattr(fragments, "SECONDS", 2)
    mark = f"mark-of-{os.getpid()}-{tmp_path.name}"
    said = run(
        "import subprocess, sys\n"
        f"sleep = [sys.executable, '-c', 'import time; time.sleep(600)', {mark!r}]\n"
        "subprocess.Popen(sleep)\nsubprocess.Popen(sleep, start_new_session=True)\n"
        "print('started', flush=True)\nwhile True: pass"
    )
    assert (said.kind, said.printed, said.outcome) == ("no end", "started", "started\n(it does not end)")
    assert eventually(lambda: not traces.processes(mark), 10), traces.processes(mark)


def test_what_it_leaves_behind_is_ended_also_when_it_ends_itself(
    tmp_path: Path, traces: Any, eventually: Callable[..., Any]
) -> None:
    """A child in a session of its own does not outlive the program."""
    mark = f"mark-of-{os.getpid()}-{tmp_path.name}"
    sleep = f"[sys.executable, '-c', 'import time; time.sleep(600)', {mark!r}]"
    assert run(f"import subprocess, sys\nsubprocess.Popen({sleep}, start_new_session=True)").kind == "value"
    assert eventually(lambda: not traces.processes(mark), 10), traces.processes(mark)


def test_memory_is_bounded() -> None:
    """A program that takes too much gets a MemoryError, and the machine keeps its memory."""
    assert run(f"x = bytearray({fragments.MEMORY_BYTES * 2})").outcome == "MemoryError"


def test_output_is_bounded() -> None:
    """Of much output the beginning is kept; a flood ends the program, and fills no disk."""
    assert run("print('ж' * 100_000)").printed == "ж" * LONGEST
    flood = run("while True: print('x' * 10_000)")
    assert flood.kind == "error"
    assert len(flood.printed) == LONGEST


def test_it_does_not_read_or_write_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """input() finds nothing; files go into a folder that is removed; the sandbox can be imported; settings are not seen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SANDBOX_REDIS_URL", "redis://somewhere")
    assert run("input()").outcome == "EOFError"
    folder = run("import os; open('here', 'w').close(); print(os.getcwd())").printed
    assert not Path(folder).exists()
    assert list(tmp_path.iterdir()) == []
    assert run("import os, sandbox.jobs; print('SANDBOX_REDIS_URL' in os.environ)").printed == "False"


@pytest.mark.parametrize(
    "trick",
    [
        "os.remove('out'); os.mkfifo('out')",
        "os.remove('out'); os.symlink('/etc/hostname', 'out')",
        "shutil.rmtree(os.getcwd())",
        "os.mkfifo('left')",
        "open('left', 'w').write('[1]')",
    ],
)
def test_what_a_fragment_does_to_its_folder_holds_nobody_up(trick: str) -> None:
    """What it printed is what it printed, whatever it has put in the place of our files."""
    ran = fragments.run(f"import os, shutil\nprint('here', flush=True)\n{trick}\nos._exit(3)")
    assert (ran.kind, ran.printed, ran.error) == ("error", "here", "the process ended with 3")


def test_the_same_code_is_run_once(tmp_path: Path) -> None:
    """In one process: a fragment does not depend on chance."""
    code = f"open({str(tmp_path / 'runs')!r}, 'a').write('x')"
    run(code), run(code)
    assert (tmp_path / "runs").read_text() == "x"
