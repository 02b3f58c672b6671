"""What a notebook of the course uses: checks, hints, practice, boards, and the magic that makes a worker file of a cell."""

from __future__ import annotations

import importlib
from typing import Any

from sandbox.learn import magic

# Name -> module. Imported when it is first asked for: a notebook that only checks does not pay for matplotlib or widgets.
_HOME = {
    "Batch": "checks.batch",
    "Planted": "checks.rows",
    "board": "widgets.board",
    "cards": "widgets.cards",
    "check": "checking",
    "end_of_lesson": "panel",
    "grade": "checking",
    "here": "panel",
    "hint": "checking",
    "limits": "widgets.limits",
    "my_progress": "panel",
    "practice": "widgets",
    "sliders": "widgets.sliders",
    "solution": "checking",
    "timeline": "timelines",
}

magic.register()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOME[name]}")
    found = getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_HOME)


__all__ = sorted(_HOME)
