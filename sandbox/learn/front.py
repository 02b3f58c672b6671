"""Who watches: a person in front of a notebook, or a program that runs it."""

from __future__ import annotations

import os
import sys

# Jupyter Server names the notebook's session to its kernel; papermill, nbval and nbgrader start kernels without it.
SESSION = "JPY_SESSION_NAME"


def person_watches() -> bool:
    """Whether this kernel belongs to a notebook that somebody has open, in JupyterLab, Notebook 7 or VS Code."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return False
    return bool(os.environ.get(SESSION)) or "__vsc_ipynb_file__" in shell.user_ns
