"""A timeline on which the two limits of a job can be moved, to see which of them ends it.

The page only draws. Which limit wins, and when, is what ``sandbox.deadline.Deadline`` says, asked with the numbers of the
handles: minutes since the job was enqueued.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox.deadline import Deadline
from sandbox.errors import BadSetting
from sandbox.jobs import State
from sandbox.learn import progress
from sandbox.learn.widgets.base import Practice, script, style

LESSON, ITEM = "01", "limits"
ENQUEUED = datetime(2026, 1, 1, tzinfo=UTC)  # any moment will do
AXIS = 60  # minutes: room for the longest wait with the longest timeout behind it
RANGES = {"wait": (0, 30), "timeout": (1, 30), "deadline": (0, AXIS), "work": (1, 30)}  # minutes
START = {"wait": 5.0, "timeout": 10.0, "deadline": 12.0, "work": 20.0}


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a job ends, as the Deadline has it. Moments are minutes since it was enqueued."""

    state: State  # completed, timed_out or expired
    limit: str  # what ended it: "timeout", "deadline", or "none" when the work was done first
    started: bool  # False: the deadline passed in the queue, and no attempt ever began
    at: float
    says: str


def ending(*, wait: float, timeout: float, deadline: float, work: float) -> Ending:
    """How a job ends that waits, works, and has both limits; all in minutes.

    The moment of a limit is over: work that needs its time to the last instant is stopped.
    """
    limits = Deadline(timeout_seconds=timeout * 60, deadline_at=ENQUEUED + timedelta(minutes=deadline))
    start = ENQUEUED + timedelta(minutes=wait)
    if limits.expired(start):
        says = (
            f"the deadline wins: the attempt never starts. The deadline passed at {_say(deadline)}, while the job "
            f"waited in the queue until {_say(wait)}"
        )
        if deadline == wait:
            says = (
                f"the deadline wins: the attempt never starts. Its turn comes at {_say(wait)}, and that is the deadline"
            )
        says += "; the timeout never began to count."
        return Ending(state=State.EXPIRED, limit="deadline", started=False, at=deadline, says=says)
    attempt = limits.start(start)
    assert attempt.ends_at is not None
    limit, ends = attempt.limit, _minutes(attempt.ends_at)
    if attempt.fits(work * 60, start):
        says = (
            f"the work is done first: completed at {_say(wait + work)}, {_say(work)} after it started, and "
            f"{_say(ends - wait - work)} before the {limit} would have stopped it."
        )
        return Ending(state=State.COMPLETED, limit="none", started=True, at=wait + work, says=says)
    ran = ends - wait
    share = f"{math.floor(100 * ran / work + 1e-9)} % of the work done"
    if ran > work - 1e-6:
        share = "all of the work done and not an instant left to say so"
    says = f"the {limit} wins: stopped at {_say(ends)}, {_say(ran)} after it started, with {share}."
    if deadline == wait + timeout:
        says += " The timeout falls on the same moment; the deadline counts, as no retry helps after it."
    state = State.TIMED_OUT if limit == "timeout" else State.EXPIRED
    return Ending(state=state, limit=limit, started=True, at=ends, says=says)


def _minutes(moment: datetime) -> float:
    return round((moment - ENQUEUED).total_seconds() / 60, 6)


def _say(minutes: float) -> str:
    return f"{round(minutes, 2):g} min"


_made: dict[tuple[float, ...], Limits] = {}  # one widget for the same numbers: a cell that is run again shows it again


def limits(**start: float) -> Limits:
    """The timeline, from these minutes: ``limits(wait=5, timeout=10, deadline=12, work=20)``.

    Numbers left out are the ones above. Where somebody has moved it from just these numbers, it is where they left it.
    Raises BadSetting for a number out of range.
    """
    base = _checked(start, START)
    key = tuple(base.values())
    made = _made.get(key)
    if made is None or made.comm is None:  # closed, as after Widget.close_all()
        made = _made[key] = Limits(base)
    return made


class Limits(Practice):
    """One job on a timeline: its wait, its timeout, its deadline, and how long its work would take."""

    _esm = script("limits")
    _css = style("limits")
    actions = ("drag", "move", "again")

    def __init__(self, base: dict[str, float]) -> None:
        self.base = base
        super().__init__(axis=AXIS, ranges={name: list(ends) for name, ends in RANGES.items()}, moves=0)
        self._set(self._left() or base)

    def move(
        self,
        wait: float | None = None,
        timeout: float | None = None,
        deadline: float | None = None,
        work: float | None = None,
    ) -> Limits:
        """Move one handle or more, in minutes: ``move(deadline=20)``. Raises BadSetting for a number out of range."""
        self.drag(wait, timeout, deadline, work)
        if self._kept() != self.values:
            progress.record("sliders", LESSON, ITEM, values=self.values, base=self.base)
        return self

    def drag(
        self,
        wait: float | None = None,
        timeout: float | None = None,
        deadline: float | None = None,
        work: float | None = None,
    ) -> Limits:
        """As `move`, while the handle is still held: nothing is recorded."""
        given = {"wait": wait, "timeout": timeout, "deadline": deadline, "work": work}
        self._set(_checked({name: value for name, value in given.items() if value is not None}, self.values))
        return self

    def again(self) -> Limits:
        """Back to the lesson's own numbers."""
        return self.move(**self.base)

    @property
    def values(self) -> dict[str, float]:
        return dict(self.state["values"])

    def _set(self, values: dict[str, float]) -> None:
        end = ending(**values)
        self.change(
            values=values,
            moved=values != self.base,
            ending=end.state.value,
            limit=end.limit,
            started=end.started,
            at=end.at,
            says=end.says,
            moves=self.state["moves"] + 1,  # so that the page hears of every move, also of one that changed nothing
            problem="",
        )

    def _kept(self) -> Any:
        """The values last recorded from this base; another lesson's timeline may have moved since."""
        of_this = (
            entry.data.get("values")
            for entry in reversed(progress.entries())
            if entry.kind == "sliders" and entry.item == ITEM and entry.data.get("base") == self.base
        )
        return next(of_this, None)

    def _left(self) -> dict[str, float] | None:
        """Where somebody left it; None for nowhere, or where no handle can be."""
        kept = self._kept()
        try:
            return _checked(kept, self.base) if isinstance(kept, dict) else None
        except BadSetting:
            return None

    def __str__(self) -> str:
        values, end = self.state["values"], ending(**self.state["values"])
        starts = values["wait"]
        lines = [
            ("in the queue", _bar(0, starts, "."), f"{_say(starts)}; then an attempt may start"),
            (
                "timeout",
                _bar(starts, starts + values["timeout"], "-", "T"),
                f"{_say(values['timeout'])} from the start",
            ),
            ("deadline", _bar(values["deadline"], values["deadline"], "", "D"), f"at {_say(values['deadline'])}"),
            ("work", _bar(starts, starts + values["work"], "~"), f"would take {_say(values['work'])}"),
            (
                "what happens",
                _bar(starts, end.at, "#", "|") if end.started else _bar(end.at, end.at, "", "x"),
                end.state,
            ),
        ]
        wide = AXIS // COLUMN + 2
        ruler = "".join(f"{minute:<{10 // COLUMN}}" for minute in range(0, AXIS + 1, 10))
        return "\n".join(
            [
                f"{end.state}: {end.says}",
                "",
                *(f"{name:<13} {bar:<{wide}} {says}" for name, bar, says in lines),
                f"{'minutes':<13} {ruler:<{wide}} since it was enqueued",
                "",
                f"Move a handle with .move(deadline={_number(values['deadline'])}): "
                + ", ".join(f"{name} {low} to {high}" for name, (low, high) in RANGES.items())
                + ", in minutes.",
            ]
        )


COLUMN = 2  # minutes that one character of the text timeline stands for


def _bar(start: float, end: float, fill: str, mark: str = "") -> str:
    first, last = math.floor(start / COLUMN + 0.5), math.floor(end / COLUMN + 0.5)
    return " " * first + fill * (last - first) + mark


def _number(value: float) -> str:
    return f"{value:g}"


def _checked(given: dict[str, Any], rest: dict[str, float]) -> dict[str, float]:
    """All four numbers: those given, and the rest. Raises BadSetting that says which number can not be, and what can."""
    for name in given:
        if name not in RANGES:
            raise BadSetting(f"there is no handle {name!r}; there are {', '.join(RANGES)}: type move(deadline=20).")
    values = {**rest, **given}
    for name, (low, high) in RANGES.items():
        value = values[name]
        fine = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        if not fine:
            raise BadSetting(f"{name}={value!r} can not be: type a number of minutes from {low} to {high}.")
    return {name: float(values[name]) for name in RANGES}
