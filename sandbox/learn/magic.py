"""The cell magic ``%%worker_file NAME``: the cell becomes a file that the kernel and the worker both import.

The names it defines are put into the notebook as well. A cell that fails shows the learner's own traceback, with the
lines of the cell, and none of ours.
"""

from __future__ import annotations

import types
from typing import Any

from sandbox.errors import BadWorkerFile
from sandbox.services import Lab


class WorkerFileFailed(Exception):
    """Carries the learner's error through IPython to the handler that shows it."""


def worker_file(line: str, cell: str) -> None:
    """Write the cell to worker file `line`, import it, and bring its names into the notebook."""
    shell = _shell()
    name = line.strip()
    if not name or len(name.split()) != 1:
        raise BadWorkerFile(f"%%worker_file takes one name, for example `%%worker_file imports`; it got {name!r}.")
    lab = Lab.current()
    # The magic's own line is the first of the cell: with it kept as an empty line, line numbers agree with the cell.
    try:
        module = lab.write_file(name, "\n" + cell)
    except BadWorkerFile:
        raise
    except Exception as error:
        raise WorkerFileFailed from error
    public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    shell.push({key: value for key, value in public.items() if not isinstance(value, types.ModuleType)})


def _show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> Any:
    """IPython's handler for WorkerFileFailed: the learner's error from the learner's file on."""
    cause = error.__cause__
    work = str(Lab.current().work)
    inner = cause.__traceback__
    while inner is not None and not inner.tb_frame.f_code.co_filename.startswith(work):
        inner = inner.tb_next
    # The error is the whole story: what it was raised from (the magic's own handling) is not the learner's.
    cause = cause.with_traceback(inner)
    if isinstance(cause, SyntaxError):
        lines = shell.SyntaxTB.structured_traceback(type(cause), cause, [])
    else:
        lines = shell.InteractiveTB.structured_traceback(type(cause), cause, inner, tb_offset=0)
    # showtraceback() would look at the exception that is being handled for a syntax error, which is not this one.
    shell._showtraceback(type(cause), cause, lines)
    return lines


def _shell() -> Any:
    from IPython import get_ipython

    return get_ipython()


def register() -> bool:
    """Make the magic known to the running IPython; False where there is none."""
    try:
        shell = _shell()
    except ImportError:
        return False
    if shell is None:
        return False
    shell.register_magic_function(worker_file, magic_kind="cell", magic_name="worker_file")
    shell.set_custom_exc((WorkerFileFailed,), _show)
    return True
