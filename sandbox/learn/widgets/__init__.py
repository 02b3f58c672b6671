"""Practice in a notebook: quizzes, cards, the limits' timeline, sliders, and the live board, each with a text twin."""

from __future__ import annotations

import importlib

from sandbox.learn import content
from sandbox.learn.widgets.base import Practice

# Kind of item -> module and class; a module is imported when a notebook first asks for one of its kind.
KINDS = {
    "choose": ("choose", "Choose"),
    "gap": ("gap", "Gap"),
    "parsons": ("parsons", "Parsons"),
    "predict": ("predict", "Predict"),
}

_made: dict[str, Practice] = {}  # one widget an item: a cell that is run again shows the same one


def practice(item_id: str) -> Practice:
    """The practice item of that id, as a widget; ``print`` shows it as text. Raises BadSetting for an unknown id."""
    item = content.item(item_id)
    made = _made.get(item_id)
    if made is None or made.comm is None:  # closed, as after Widget.close_all()
        module, name = KINDS[item.kind]
        made = _made[item_id] = getattr(importlib.import_module(f"{__name__}.{module}"), name)(item)
    return made
