"""How long work may take: a timeout for one attempt, and a moment at which all is over. The earlier wins.

A timeout counts from the start of an attempt, so the wait in the queue costs it nothing, and a retry gets it anew. A
deadline is a moment: the wait counts, every retry counts, and no retry moves it. With neither, nothing ends by itself.

One rule for the boundary: **the moment itself is over**. At it `expired` is true and `remaining` is zero, and work that
would need it to the last instant does not fit: a timer that is set to this moment would fire at it.

Moments are kept and compared in UTC. Python subtracts two datetimes of one zone by their wall clocks, which is an hour
wrong across a change to or from summer time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sandbox.errors import BadDeadline

Limit = Literal["timeout", "deadline", "none"]

SHORTEST_SECONDS = 0.000001  # what a datetime can tell apart
LONGEST_SECONDS = 366 * 24 * 3600.0  # more is nobody's attempt: somebody wrote milliseconds


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """Both limits of a job, either of which may be missing.

    Raises BadDeadline for a timeout that is no number of seconds from a microsecond to 366 days (zero, negative, NaN,
    infinite, a bool, a text), and for a moment without a timezone. A deadline that has passed already is a good value: a
    job that comes too late is accepted, and ends expired.
    """

    timeout_seconds: float | None = None  # of one attempt, from the moment it starts; None: an attempt has no limit
    deadline_at: datetime | None = None  # kept in UTC; None: it is never too late

    def __post_init__(self) -> None:
        if self.timeout_seconds is not None:
            _require_timeout(self.timeout_seconds)
        if self.deadline_at is not None:
            moment = _instant(self.deadline_at, "Deadline(deadline_at={})", AWARE)
            object.__setattr__(self, "deadline_at", moment)

    def start(self, now: datetime | None = None) -> Attempt:
        """An attempt that starts now. One that starts at the deadline or later is `expired` before it has done a thing."""
        return Attempt(deadline=self, started_at=_now(now, "start"))

    def remaining(self, now: datetime | None = None) -> float:
        """Seconds until the deadline, whether an attempt runs or not: zero from the deadline on, never negative, and
        `math.inf` without a deadline. The timeout plays no part, as it counts only from a start.
        """
        return _left(_now(now, "remaining"), self.deadline_at)

    def expired(self, now: datetime | None = None) -> bool:
        """Whether it is too late to start: the deadline is now, or was. Never true without one."""
        return self.remaining(now) == 0

    def fits(self, seconds: float, now: datetime | None = None) -> bool:
        """Whether work of so many seconds, started now, would be done before either limit. See `Attempt.fits`."""
        moment = _now(now, "fits")
        return self.start(moment).fits(seconds, moment)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt under a Deadline: what `Deadline.start` returns."""

    deadline: Deadline
    started_at: datetime  # kept in UTC

    def __post_init__(self) -> None:
        moment = _instant(self.started_at, "Attempt(started_at={})", NOW)
        object.__setattr__(self, "started_at", moment)

    @property
    def limit(self) -> Limit:
        """Which of the two ends this attempt: "timeout", "deadline", or "none".

        When both fall on one moment it is the deadline: after a timeout a retry may help, after a deadline none can.
        """
        at, timeout = self.deadline.deadline_at, self._timeout_at
        if at is not None and (timeout is None or at <= timeout):
            return "deadline"
        return "none" if timeout is None else "timeout"

    @property
    def ends_at(self) -> datetime | None:
        """The moment at which it is stopped, in UTC; None without a limit. It lies before `started_at` for an attempt that
        started after the deadline.
        """
        return {"deadline": self.deadline.deadline_at, "timeout": self._timeout_at, "none": None}[self.limit]

    @property
    def _timeout_at(self) -> datetime | None:
        seconds = self.deadline.timeout_seconds
        return None if seconds is None else self.started_at + timedelta(seconds=seconds)

    def remaining(self, now: datetime | None = None) -> float:
        """Seconds until `ends_at`: zero from that moment on, never negative, and `math.inf` without a limit.

        A clock that was set back gives no more than there was at the start.
        """
        return _left(max(_now(now, "remaining"), self.started_at), self.ends_at)

    def expired(self, now: datetime | None = None) -> bool:
        """Whether the attempt's time is over: `ends_at` is now, or was. Never true without a limit."""
        return self.remaining(now) == 0

    def fits(self, seconds: float, now: datetime | None = None) -> bool:
        """Whether a step of so many seconds that begins now is done before `ends_at`.

        A step that would end at that very moment does not fit, and when time is over nothing does, not even zero seconds.
        Without a limit everything fits. Raises BadDeadline for a negative, infinite or missing number.
        """
        if _number(seconds) is None or not 0 <= seconds < math.inf:
            raise BadDeadline(
                f"fits({seconds!r}): write how many seconds the work takes, zero or more, as in fits(2.5)."
            )
        return seconds < self.remaining(now)


AWARE = 'Deadline(deadline_at=datetime(2026, 10, 25, 9, 0, tzinfo=ZoneInfo("Europe/Berlin")))'
NOW = "started_at=datetime.now(UTC)"


def _left(now: datetime, until: datetime | None) -> float:
    return math.inf if until is None else max(0.0, (until - now).total_seconds())


def _now(now: datetime | None, method: str) -> datetime:
    if now is None:
        return datetime.now(UTC)
    return _instant(now, f"{method}(now={{}})", f"{method}(now=datetime.now(UTC))")


def _instant(moment: Any, call: str, right: str) -> datetime:
    """`moment` in UTC. Raises BadDeadline that shows the wrong call, and the right one."""
    if not isinstance(moment, datetime):
        what = f"{moment!r} is {_kind(moment)}, and a moment is a datetime with a timezone"
    elif moment.utcoffset() is None:
        what = "a datetime without a timezone names no moment: nine o'clock is another one in every zone"
    elif not 2 <= moment.year <= 9990:  # so that neither a zone nor a timeout leads out of the calendar
        what = f"the year {moment.year} is out of reach; leave the deadline out if there is none"
    else:
        return moment.astimezone(UTC)
    raise BadDeadline(f"{what}.\n    wrong:  {call.format(_source(moment))}\n    right:  {right}")


def _source(moment: Any) -> str:
    return repr(moment).replace("datetime.datetime(", "datetime(")


def _require_timeout(seconds: Any) -> None:
    number = _number(seconds)
    if number is not None and SHORTEST_SECONDS <= number <= LONGEST_SECONDS:
        return
    hint = "write a number of seconds, as in timeout_seconds=30"
    if isinstance(seconds, timedelta):
        hint = f"write timeout_seconds={seconds.total_seconds()!r}, as it counts seconds"
    elif number is None or number != number:  # NaN
        hint = f"{seconds!r} is {_kind(seconds)}; {hint}" if number is None else hint
    elif number > LONGEST_SECONDS:
        hint += ", at most 366 days of them; for no timeout write timeout_seconds=None"
    elif number <= 0:
        hint += '; zero is not "no limit" here: for none write timeout_seconds=None'
    else:
        hint += "; the shortest is a microsecond"
    raise BadDeadline(f"timeout_seconds={seconds!r} can not work: {hint}.")


def _number(value: Any) -> float | None:
    """An int or float; None for anything else, and for a bool, which is an int to Python."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _kind(value: Any) -> str:
    name = type(value).__name__
    return {"str": "a text", "bool": "a bool", "NoneType": "nothing"}.get(name, f"of type {name}")
