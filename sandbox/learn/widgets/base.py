"""What every practice widget is made of.

A widget is one Python class and one ``.js`` file of the same name. The class owns the state, a dict that the page draws and
never changes; the page sends actions ("answer", "move"), each a method of the class that a notebook may call as well. That
is the text twin: ``print(widget)`` shows the state, and ``widget.answer("b")`` does what a click does, so that papermill,
VS Code and a screen reader get the same lesson.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from sandbox.errors import SandboxError

HERE = Path(__file__).parent
RIGHT, WRONG = "right", "not yet"  # the verdicts of a practice item
MARKS = {RIGHT: "✓", WRONG: "✗"}


@cache
def script(name: str) -> str:
    """The page's side of a widget: what all share, then its own. One text, so nothing is fetched from anywhere."""
    return "\n".join((HERE / file).read_text(encoding="utf-8") for file in ("common.js", f"{name}.js"))


@cache
def style(name: str | None = None) -> str:
    """What all widgets share, then what the widget of that name adds in a ``.css`` of its own."""
    files = ["practice.css", *([f"{name}.css"] if name else [])]
    return "\n".join((HERE / file).read_text(encoding="utf-8") for file in files)


class Practice(anywidget.AnyWidget):
    """A widget whose state is one dict. Subclasses name their `_esm`, their `actions`, and write `__str__`."""

    _css = style()
    actions: ClassVar[tuple[str, ...]] = ()  # methods that the page may call

    state = traitlets.Dict().tag(sync=True)

    def __init__(self, **state: Any) -> None:
        super().__init__()
        self.state = {"problem": "", **state}
        self.on_msg(self._heard)

    def change(self, **fields: Any) -> None:
        """Put new values into the state; the page draws them."""
        self.state = {**self.state, **{name: sendable(value) for name, value in fields.items()}}

    def _heard(self, _: Any, content: Any, buffers: Any = None) -> None:
        """An action from the page: ``{"do": "answer", "with": [0]}``."""
        if not isinstance(content, dict) or content.get("do") not in self.actions:
            return
        arguments, before = sendable(content.get("with", [])), self.state
        try:
            getattr(self, content["do"])(*(arguments if isinstance(arguments, list) else [arguments]))
        except SandboxError as error:
            self.change(problem=str(error))
        except Exception as error:
            # An error in a callback goes to a log that nobody reads.
            self.change(problem=f"This did not work, which is not your fault: {type(error).__name__}: {error}")
        if self.state == before:
            # An equal state is not sent, and the page would wait for its answer for ever.
            self.change(heard=self.state.get("heard", 0) + 1)

    def __repr__(self) -> str:
        return str(self)


def sendable(value: Any) -> Any:
    """The value without half surrogate pairs, which can neither be sent nor printed; the same one if it has none."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {sendable(name): sendable(one) for name, one in value.items()}
    return [sendable(one) for one in value] if isinstance(value, (list, tuple)) else value


def letter(place: int) -> str:
    """a, b, c ... for the places 0, 1, 2 ..."""
    return chr(ord("a") + place)
