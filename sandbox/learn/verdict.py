"""What a check answers: one of four verdicts, and what happened in the learner's own run."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from enum import StrEnum


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

    `happened` says what the code did, `seen` what a user of the system would see, `why` the reason.
    """

    def __init__(self, happened: str, *, seen: str = "", why: str = "") -> None:
        super().__init__(happened)
        self.happened, self.seen, self.why = happened, seen, why


class NotAttempted(Exception):
    """Raised by a checker: the place for the learner's code is still empty."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    exercise: str
    status: Status
    title: str
    happened: str = ""
    seen: str = ""
    why: str = ""

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    def parts(self) -> list[tuple[str, str]]:
        """The message as (label, sentence) pairs, the empty ones left out."""
        pairs = [("What happened", self.happened), ("What people see", self.seen), ("Why", self.why)]
        if self.status in (Status.PASSED, Status.NOT_ATTEMPTED):
            pairs = [("", self.happened)]
        return [(label, text) for label, text in pairs if text]

    def __str__(self) -> str:
        head = f"{MARKS[self.status]} {self.exercise} {self.title}: {self.status}"
        return "\n".join([head, *(f"  {label}: {text}" if label else f"  {text}" for label, text in self.parts())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        style = f"border-left: 4px solid {COLOURS[self.status]}; padding: 0.4em 0.8em; margin: 0.2em 0"
        head = f"<strong>{MARKS[self.status]} {html.escape(self.exercise)} {html.escape(self.title)}: {self.status}</strong>"
        body = "".join(
            f"<p style='margin:0.4em 0 0 0'>{f'<strong>{label}:</strong> ' if label else ''}{_marked(text)}</p>"
            for label, text in self.parts()
        )
        return f'<div role="status" aria-live="polite" style="{style}">{head}{body}</div>'


def _marked(text: str) -> str:
    """`text` as HTML, with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
