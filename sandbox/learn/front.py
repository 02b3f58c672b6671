"""Who watches: a person in front of a notebook, or a program that runs it."""

from __future__ import annotations

import os
import sys
from functools import cache

# Jupyter Server names the notebook's session to its kernel; papermill, nbval and nbgrader start kernels without it.
SESSION = "JPY_SESSION_NAME"


def person_watches() -> bool:
    """Whether this kernel belongs to a notebook that somebody has open, in JupyterLab, Notebook 7 or VS Code."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return False
    return "__vsc_ipynb_file__" in shell.user_ns or (bool(os.environ.get(SESSION)) and not _is_inherited())


@cache
def _is_inherited() -> bool:
    """Whether the session is that of a notebook whose cell has started papermill, or another program, which started us."""
    import psutil

    try:
        return psutil.Process(os.getppid()).environ().get(SESSION) == os.environ[SESSION]
    except (psutil.Error, OSError):
        return False
