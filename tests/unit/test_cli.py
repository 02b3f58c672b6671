"""The command as a whole: help, and how errors reach a person."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import sandbox.errors
from sandbox import __version__
from sandbox.cli import main
from sandbox.cli.app import course
from sandbox.cli.doctor import doctor

REPOSITORY = Path(__file__).parents[2]
COMMANDS = sorted(course.commands)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help of every command says what it does and shows a line to type."""
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: course {name}")
    assert f"\n  course {name}" in shown


def test_help_lists_every_command_that_is_not_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    """`course --help` names all commands but the hidden one, without cutting a sentence off."""
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, command in course.commands.items():
        assert (f"\n  {name} " in shown) is not command.hidden
    assert "..." not in shown.split("Commands:")[1]


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """`course` alone shows the help and counts as a mistake in what was typed."""
    assert main([]) == 2
    shown = capsys.readouterr()
    assert "Usage: course" in shown.out + shown.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """--version prints the package's version."""
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


def test_help_imports_nothing_slow() -> None:
    """`course --help` stays quick because none of the slow libraries is imported for it."""
    program = (
        "import sys; from sandbox.cli import main; main(['--help']);"
        "slow = {'rich', 'psutil', 'nbformat', 'papermill', 'nbgrader', 'celery', 'psycopg', 'redis', 'IPython', 'jupyterlab'};"
        "sys.exit(', '.join(slow & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def callback(**_: Any) -> None:
        raise error

    monkeypatch.setattr(doctor, "callback", callback)


ERRORS = [
    error
    for error in vars(sandbox.errors).values()
    if isinstance(error, type) and issubclass(error, sandbox.errors.SandboxError)
]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_of_ours_is_one_line_and_code_1(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error raised on purpose reaches the person as one line on stderr, with no traceback."""
    raising(monkeypatch, kind("what is wrong: type this."))
    assert main(["doctor"]) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "course: what is wrong: type this.\n")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OSError(28, "No space left on device", "build/x"), 1, "course: build/x: No space left on device.\n"),
        (PermissionError(13, "Permission denied"), 1, "course: Permission denied.\n"),
        (KeyboardInterrupt(), 130, "course: stopped.\n"),
        (click.Abort(), 130, "course: stopped.\n"),
        (click.ClickException("no."), 1, "course: no.\n"),
    ],
)
def test_other_endings_have_their_line_and_code(
    error: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full disk, a refused file and Ctrl-C are one line each, not a traceback."""
    raising(monkeypatch, error)
    assert main(["doctor"]) == code
    assert capsys.readouterr().err.lstrip("\n") == line  # click ends the line that ^C stands on


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error nobody foresaw is not dressed up as an answer."""
    raising(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["doctor"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["chekc"], "No such command 'chekc'"),
        (["check", "--jsno"], "No such option"),
        (["lab", "--port", "http"], "'http' is not a valid integer"),
        (["lab", "--port", "70000"], "is not in the range"),
        (["reset"], "Missing argument 'NN'"),
        (["up", "now"], "unexpected extra argument"),
    ],
)
def test_a_mistake_in_what_was_typed_is_code_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A usage mistake says what was wrong and ends with exit code 2."""
    assert main(arguments) == 2
    assert sentence in capsys.readouterr().err


def test_without_the_classroom_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where only the toolkit is installed, `course` names the extra that it needs."""
    real = builtins.__import__

    def without_click(name: str, *rest: Any) -> Any:
        if name == "click":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_click)
    assert main(["doctor"]) == 1
    assert "pip install 'always-ends[course]'" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`course reference | head -1` ends without a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    program = "import sys; from sandbox.cli import main; sys.exit(main(['reference']))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_outside_a_course_the_command_says_where_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A COURSE_ROOT without a course.toml is one line that says so."""
    monkeypatch.setenv("COURSE_ROOT", str(tmp_path))
    assert main(["check"]) == 1
    assert capsys.readouterr().err.startswith(f"course: COURSE_ROOT is {tmp_path}")


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """main hands every signal back to whoever had it."""
    import signal

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before
