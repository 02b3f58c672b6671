"""The Deadline value: a timeout from an attempt's start, and a moment; the earlier wins."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.deadline import LONGEST_SECONDS, SHORTEST_SECONDS, Attempt, Deadline
from sandbox.errors import BadDeadline, BadSetting

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)

timeouts = st.floats(min_value=SHORTEST_SECONDS, max_value=LONGEST_SECONDS) | st.integers(1, 10**7)
moments = st.datetimes(
    min_value=datetime(1990, 1, 1),
    max_value=datetime(2090, 1, 1),
    timezones=st.sampled_from([UTC, BERLIN, ZoneInfo("America/St_Johns"), timezone(timedelta(hours=-12))]),
)
deadlines = st.builds(Deadline, timeout_seconds=st.none() | timeouts, deadline_at=st.none() | moments)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_the_timeout_counts_from_the_start_and_not_from_the_making() -> None:
    """A wait before the start costs the timeout nothing."""
    deadline = Deadline(timeout_seconds=10)
    attempt = deadline.start(after(3600))
    assert attempt.ends_at == after(3610)
    assert attempt.limit == "timeout"
    assert attempt.remaining(after(3604)) == 6


def test_the_deadline_counts_from_nothing() -> None:
    """A later start leaves less until the deadline, and a retry does not move it."""
    deadline = Deadline(deadline_at=after(60))
    assert deadline.start(NOON).remaining(NOON) == 60
    retry = deadline.start(after(45))
    assert retry.remaining(after(45)) == 15
    assert retry.limit == "deadline"


@given(deadline=deadlines, start=moments)
def test_the_earlier_wins(deadline: Deadline, start: datetime) -> None:
    """An attempt ends at the earlier of the two moments, and `limit` names the one it is."""
    attempt = deadline.start(start)
    ends: dict[str, datetime] = {}
    if deadline.timeout_seconds is not None:
        ends["timeout"] = start.astimezone(UTC) + timedelta(seconds=deadline.timeout_seconds)
    if deadline.deadline_at is not None:
        ends["deadline"] = deadline.deadline_at
    if not ends:
        assert (attempt.limit, attempt.ends_at) == ("none", None)
        return
    assert attempt.ends_at == min(ends.values())
    assert ends[attempt.limit] == attempt.ends_at


@given(deadline=deadlines, start=moments, looks=st.lists(moments, min_size=2))
def test_time_only_runs_out(deadline: Deadline, start: datetime, looks: list[datetime]) -> None:
    """What remains never grows, is never below zero, and is zero exactly when it has expired; nothing expired revives."""
    attempt = deadline.start(start)
    looks.sort(key=lambda moment: moment.astimezone(UTC))
    for one in (deadline, attempt):
        left = [one.remaining(moment) for moment in looks]
        assert left == sorted(left, reverse=True)
        assert all(seconds >= 0 for seconds in left)
        assert [seconds == 0 for seconds in left] == [one.expired(moment) for moment in looks]
    assert all(
        attempt.remaining(moment) <= deadline.remaining(moment)
        for moment in looks
        if moment.astimezone(UTC) >= attempt.started_at
    )


@given(deadline=deadlines, start=moments, seconds=st.floats(0, 1e9), more=st.floats(0, 1e9))
def test_what_fits_is_below_what_remains(deadline: Deadline, start: datetime, seconds: float, more: float) -> None:
    """Work fits when it is shorter than what remains, so shorter work fits as well, and after the end nothing does."""
    attempt = deadline.start(start)
    assert deadline.fits(seconds, start) == (seconds < attempt.remaining(start))
    if deadline.fits(seconds + more, start):
        assert deadline.fits(seconds, start)
    if attempt.ends_at is not None:
        assert not attempt.fits(0, attempt.ends_at)


@given(deadline=deadlines, start=moments, earlier=moments)
def test_a_clock_set_back_gives_no_time(deadline: Deadline, start: datetime, earlier: datetime) -> None:
    """Before its start an attempt has what it has at its start, not more."""
    attempt = deadline.start(start)
    assert attempt.remaining(earlier) <= attempt.remaining(start)


def test_on_one_moment_the_deadline_counts() -> None:
    """When both fall on one moment it is the deadline: no retry helps after it."""
    deadline = Deadline(timeout_seconds=60, deadline_at=after(60))
    assert deadline.start(NOON).limit == "deadline"
    assert deadline.start(after(-0.000001)).limit == "timeout"
    assert deadline.start(after(0.000001)).limit == "deadline"


def test_without_limits_nothing_ends() -> None:
    """With neither limit an attempt has no end, all the time there is, and room for any work."""
    nothing = Deadline()
    attempt = nothing.start(NOON)
    assert (attempt.limit, attempt.ends_at, attempt.remaining(after(1e9))) == ("none", None, math.inf)
    assert not attempt.expired(after(1e9)) and not nothing.expired(after(1e9))
    assert nothing.remaining(NOON) == math.inf
    assert nothing.fits(1e9, NOON)


def test_a_timeout_alone_never_makes_it_too_late_to_start() -> None:
    """Before a start only the deadline counts."""
    deadline = Deadline(timeout_seconds=1)
    assert deadline.remaining(after(1e9)) == math.inf
    assert not deadline.expired(after(1e9))


def test_the_moment_itself_is_over() -> None:
    """At the deadline `expired` is true, nothing remains, and nothing fits; a microsecond before, it is not."""
    deadline = Deadline(deadline_at=after(10))
    assert not deadline.expired(after(9.999999)) and deadline.remaining(after(9.999999)) == 0.000001
    assert deadline.expired(after(10)) and deadline.remaining(after(10)) == 0
    assert deadline.fits(9.999999, NOON) and not deadline.fits(10, NOON)
    assert deadline.fits(0, after(9.999999)) and not deadline.fits(0, after(10))


def test_a_deadline_in_the_past_is_a_good_value() -> None:
    """It can be made and started; the attempt is over before it has done a thing."""
    deadline = Deadline(timeout_seconds=60, deadline_at=after(-5))
    attempt = deadline.start(NOON)
    assert deadline.expired(NOON) and attempt.expired(NOON)
    assert attempt.ends_at == after(-5)
    assert attempt.limit == "deadline"
    assert attempt.remaining(NOON) == deadline.remaining(NOON) == 0


@pytest.mark.parametrize(
    ("evening", "morning", "hours"),
    [
        # 24 October to 25 October: the night has an hour more; 28 to 29 March: one less.
        (datetime(2026, 10, 24, 21, 0, tzinfo=BERLIN), datetime(2026, 10, 25, 9, 0, tzinfo=BERLIN), 13),
        (datetime(2026, 3, 28, 21, 0, tzinfo=BERLIN), datetime(2026, 3, 29, 9, 0, tzinfo=BERLIN), 11),
        (datetime(2026, 6, 1, 21, 0, tzinfo=BERLIN), datetime(2026, 6, 2, 9, 0, tzinfo=BERLIN), 12),
    ],
)
def test_a_night_with_a_change_of_the_clock_is_as_long_as_it_is(
    evening: datetime, morning: datetime, hours: int
) -> None:
    """From nine in the evening to nine in the morning in Berlin are 13, 11 or 12 hours, not 12 each time."""
    deadline = Deadline(timeout_seconds=100 * 3600, deadline_at=morning)
    attempt = deadline.start(evening)
    assert deadline.remaining(evening) == attempt.remaining(evening) == hours * 3600
    assert deadline.fits(hours * 3600 - 1, evening) and not deadline.fits(hours * 3600, evening)
    assert attempt.remaining(morning - timedelta(hours=1)) == 3600


def test_a_timeout_across_a_change_of_the_clock_counts_seconds() -> None:
    """Two hours from 01:30 in Berlin end at 02:30 in October, for the second time, and at 04:30 in March."""
    for start, end in (
        (datetime(2026, 10, 25, 1, 30, tzinfo=BERLIN), datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)),
        (datetime(2026, 3, 29, 1, 30, tzinfo=BERLIN), datetime(2026, 3, 29, 4, 30, tzinfo=BERLIN)),
    ):
        attempt = Deadline(timeout_seconds=2 * 3600).start(start)
        assert attempt.ends_at == end.astimezone(UTC)
        assert attempt.remaining(start) == 2 * 3600


def test_the_hour_that_exists_twice_is_two_moments() -> None:
    """02:30 before and after the change are different deadlines, though Python calls the two datetimes equal."""
    first = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)
    second = first.replace(fold=1)
    assert first == second
    assert Deadline(deadline_at=first) != Deadline(deadline_at=second)
    assert Deadline(deadline_at=second).remaining(first) == 3600
    assert not Deadline(deadline_at=second).expired(first)


def test_the_same_limits_are_the_same_value() -> None:
    """Equal by moment, whatever zone it was written in; usable as a key; not changeable; by keyword only."""
    one = Deadline(timeout_seconds=5, deadline_at=datetime(2026, 6, 1, 9, 0, tzinfo=BERLIN))
    other = Deadline(timeout_seconds=5.0, deadline_at=datetime(2026, 6, 1, 7, 0, tzinfo=UTC))
    assert one == other and hash(one) == hash(other)
    assert one.deadline_at is not None and one.deadline_at.tzinfo is UTC
    with pytest.raises(AttributeError):
        one.timeout_seconds = 6  # type: ignore[misc]
    with pytest.raises(AttributeError):
        one.start(NOON).started_at = NOON  # type: ignore[misc]
    with pytest.raises(TypeError):
        Deadline(5)  # type: ignore[call-arg]


def test_without_a_clock_it_is_now() -> None:
    """What is not given as `now` is read from the clock, in UTC."""
    before = datetime.now(UTC)
    attempt = Deadline(timeout_seconds=3600, deadline_at=before + timedelta(days=1)).start()
    assert before <= attempt.started_at <= datetime.now(UTC)
    assert 0 < attempt.remaining() <= 3600
    assert 0 < attempt.deadline.remaining() <= 24 * 3600
    assert not attempt.expired() and not attempt.deadline.expired()
    assert attempt.fits(1) and attempt.deadline.fits(1)
    assert Deadline(deadline_at=before).expired()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0, "zero is not"),
        (-1, "timeout_seconds=None"),
        (math.nan, "timeout_seconds=nan"),
        (math.inf, "timeout_seconds=None"),
        (-math.inf, "timeout_seconds=None"),
        (10**400, "at most 366 days"),
        (LONGEST_SECONDS + 1, "at most 366 days"),
        (1e-9, "the shortest is a microsecond"),
        (True, "a bool"),
        ("30", "a text"),
        (Decimal(30), "of type Decimal"),
        ([30], "of type list"),
        (timedelta(minutes=2), "write timeout_seconds=120.0"),
    ],
)
def test_a_timeout_that_is_no_number_of_seconds_is_refused(value: Any, says: str) -> None:
    """The error shows the value and says what to write."""
    with pytest.raises(BadDeadline, match=r"timeout_seconds=") as caught:
        Deadline(timeout_seconds=value)
    assert says in str(caught.value)
    assert isinstance(caught.value, BadSetting)


@pytest.mark.parametrize("value", [SHORTEST_SECONDS, 0.5, 30, LONGEST_SECONDS])
def test_a_timeout_within_reason_is_taken(value: float) -> None:
    """From a microsecond to 366 days, whole or not, and an attempt has that long."""
    assert Deadline(timeout_seconds=value).start(NOON).remaining(NOON) == value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (datetime(2026, 10, 25, 9, 0), "without a timezone"),
        (date(2026, 10, 25), "of type date"),
        ("2026-10-25T09:00:00Z", "a text"),
        (1_790_000_000, "of type int"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))), "out of reach"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=5))), "out of reach"),
    ],
)
def test_a_deadline_that_is_no_moment_is_refused(value: Any, says: str) -> None:
    """The error shows the call as it was written, and one that works."""
    with pytest.raises(BadDeadline) as caught:
        Deadline(deadline_at=value)
    _, wrong, right = str(caught.value).splitlines()
    assert says in str(caught.value)
    assert wrong.strip().startswith("wrong:  Deadline(deadline_at=")
    written = right.partition("right:")[2].strip()
    found = eval(written, {"Deadline": Deadline, "datetime": datetime, "ZoneInfo": ZoneInfo})
    assert found.deadline_at == datetime(2026, 10, 25, 8, 0, tzinfo=UTC)


def test_a_naive_now_is_refused_by_every_method() -> None:
    """A clock without a timezone is an error that shows the right call, wherever it is handed in."""
    naive = datetime(2026, 6, 1, 12, 0)
    deadline = Deadline(timeout_seconds=5)
    attempt = deadline.start(NOON)
    for call in (
        lambda: deadline.start(naive),
        lambda: deadline.remaining(naive),
        lambda: deadline.expired(naive),
        lambda: deadline.fits(1, naive),
        lambda: Attempt(deadline=deadline, started_at=naive),
        lambda: attempt.fits(1, naive),
    ):
        with pytest.raises(BadDeadline, match=r"datetime.now\(UTC\)"):
            call()
    for late in (attempt.remaining, attempt.expired):
        with pytest.raises(BadDeadline, match=r"wrong: .*2026, 6, 1, 12, 0"):
            late(naive)


@pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf, True, "5", None])
def test_fits_wants_a_number_of_seconds(seconds: Any) -> None:
    """How long the work takes is a number, zero or more."""
    with pytest.raises(BadDeadline, match=r"fits\(2.5\)"):
        Deadline().fits(seconds, NOON)


def test_equal_steps_use_it_up() -> None:
    """Steps of one second are begun as long as they fit, and never one that would be cut."""
    attempt = Deadline(timeout_seconds=5).start(NOON)
    begun = [second for second in range(10) if attempt.fits(1, after(second))]
    assert begun == [0, 1, 2, 3]
    left = [attempt.remaining(after(second)) for second in range(7)]
    assert left == [5, 4, 3, 2, 1, 0, 0]
