"""The ``course`` command. ``main`` is what the console script calls."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from sandbox.errors import SandboxError


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 well, 1 something failed, 2 a mistake in what was typed.

    An error raised on purpose is one sentence on stderr, never a traceback.
    """
    try:
        import click
    except ImportError:
        print("course: this command needs the classroom: type `pip install 'always-ends[course]'`.", file=sys.stderr)
        return 1
    from sandbox.cli.app import course

    # A `kill`, or a terminal that closes, ends what a command started the way Ctrl-C does.
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        code = course.main(args=arguments, prog_name="course", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return _say(error.format_message())
    except SandboxError as error:
        return _say(str(error))
    except (click.Abort, KeyboardInterrupt):
        print("course: stopped.", file=sys.stderr)
        return 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}.")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(message: str) -> int:
    print(f"course: {message}", file=sys.stderr)
    return 1


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
