"""What a check answers: one of four verdicts, and what happened in the learner's own run."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    PASSED = "passed"
    NOT_YET = "not yet"
    NOT_ATTEMPTED = "not attempted"
    INCONCLUSIVE = "inconclusive"  # our infrastructure failed; never the learner's fault


MARKS = {Status.PASSED: "✓", Status.NOT_YET: "✗", Status.NOT_ATTEMPTED: "○", Status.INCONCLUSIVE: "?"}
# Each is told by its mark and its word as well; contrast with white and with dark backgrounds is over 4.5 to 1 as the
# colour is only a bar at the side.
COLOURS = {
    Status.PASSED: "#2e7d32",
    Status.NOT_YET: "#c62828",
    Status.NOT_ATTEMPTED: "#5f6368",
    Status.INCONCLUSIVE: "#b26a00",
}


class NotYet(Exception):
    """Raised by a checker: the learner's code ran, and this is what went wrong.

    `happened` says what the code did, `seen` what a user of the system would see, `why` the reason. `mistake` names
    the kind of mistake without a value of the case that showed it: marks are explained by it, also for a hidden case.
    Without `hints` the verdict names no next hint: for an error in the code that no hint is about.
    """

    def __init__(self, happened: str, *, seen: str = "", why: str = "", mistake: str = "", hints: bool = True) -> None:
        super().__init__(happened)
        self.happened, self.seen, self.why, self.mistake, self.hints = happened, seen, why, mistake, hints


class NotAttempted(Exception):
    """Raised by a checker: the place for the learner's code is still empty. It may say what to do about it."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    exercise: str
    status: Status
    title: str
    happened: str = ""
    seen: str = ""
    why: str = ""
    hint: str = ""  # what to type for the next hint, and its title; empty where no hint is about the mistake

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    def parts(self) -> list[tuple[str, str]]:
        """The message as (label, sentence) pairs, the empty ones left out."""
        pairs = [("What happened", self.happened), ("What people see", self.seen), ("Why", self.why)]
        if self.status in (Status.PASSED, Status.NOT_ATTEMPTED):
            pairs = [("", self.happened)]
        pairs.append(("Next hint", self.hint))
        return [(label, text) for label, text in pairs if text]

    def __str__(self) -> str:
        head = f"{MARKS[self.status]} {self.exercise} {self.title}: {self.status}"
        return "\n".join([head, *(f"  {label}: {text}" if label else f"  {text}" for label, text in self.parts())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = f"{MARKS[self.status]} {html.escape(self.exercise)} {html.escape(self.title)}: {self.status}"
        body = "".join(
            f"<p style='margin:0.4em 0 0 0'>{f'<strong>{label}:</strong> ' if label else ''}{marked(text)}</p>"
            for label, text in self.parts()
        )
        return _box(COLOURS[self.status], f"<strong>{head}</strong>{body}")


@dataclass(frozen=True, kw_only=True, repr=False)
class OnPage(Verdict):
    """A verdict that its sign on the page has become: the cell that asked for it does not show it once more."""

    cell: int  # the execution count of that cell

    def _ipython_display_(self) -> None:
        from IPython import get_ipython
        from IPython.display import display

        if get_ipython().execution_count != self.cell:
            display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)


class Sign:
    """Says on the page that a check has begun, and becomes its verdict in the same place."""

    def __init__(self, exercise: str, title: str) -> None:
        from IPython import get_ipython
        from IPython.display import display

        self._name = f"{exercise} {title}"
        self._cell = int(get_ipython().execution_count)
        self._display = display(self._page("checking …"), raw=True, display_id=True)

    def _page(self, text: str) -> dict[str, str]:
        line = f"… {self._name}: {text}"
        return {"text/plain": line, "text/html": _box(COLOURS[Status.NOT_ATTEMPTED], html.escape(line))}

    def become(self, verdict: Verdict) -> OnPage:
        self._display.update({"text/plain": str(verdict), "text/html": verdict._repr_html_()}, raw=True)
        known: dict[str, Any] = {field.name: getattr(verdict, field.name) for field in fields(verdict)}
        return OnPage(**known, cell=self._cell)

    def stopped(self) -> None:
        """The check ended without a verdict: by a press of Stop, or by an error that the cell shows."""
        self._display.update(self._page("stopped before there was a verdict."), raw=True)


def _box(colour: str, inside: str) -> str:
    style = f"border-left: 4px solid {colour}; padding: 0.4em 0.8em; margin: 0.2em 0"
    return f'<div role="status" aria-live="polite" style="{style}">{inside}</div>'


def marked(text: str) -> str:
    """`text` as HTML, with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
