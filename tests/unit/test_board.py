"""The board's pure parts: what a row's time says, events in words, stories, differences, the text, the ledger's tail."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox.jobs import KINDS, Event, JobRow, Ledger, MemoryStore, State
from sandbox.jobs.ledger import Tail
from sandbox.learn.widgets import board_rows
from sandbox.learn.widgets.board_rows import (
    MOST_STEPS,
    NEWEST,
    STATES,
    Picture,
    Story,
    difference,
    progress_text,
    row_view,
    snapshot_text,
    time_text,
    words,
)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = START.timestamp()


def row(number: int = 0, **fields: Any) -> JobRow:
    fields.setdefault("created_at", START)
    return JobRow(id=f"{number:08x}-0000-4000-8000-000000000000", task="load", **fields)


def running(**fields: Any) -> JobRow:
    return row(state=State.RUNNING, attempt=1, started_at=START, **fields)


def event(kind: str, seq: int = 0, job: str | None = None, at: float = 0.0, **data: Any) -> Event:
    return Event(seq=seq, at=NOW + at, kind=kind, job=job or row().id, pid=1, data=data)


def told(events: list[Event]) -> list[str]:
    story = Story()
    for one in events:
        story.add(one, one.at - NOW)
    return [step["text"] for step in story.steps]


# --- rows


def test_every_state_has_a_mark_and_a_word_of_its_own() -> None:
    """Nothing is told by colour alone."""
    assert set(STATES) == set(State)
    assert len({mark for mark, _ in STATES.values()}) == len({word for _, word in STATES.values()}) == len(State)


@pytest.mark.parametrize(
    ("fields", "after", "text"),
    [
        ({"soft_limit_seconds": 4, "hard_limit_seconds": 6}, 0, "4 s until the soft limit"),
        ({"soft_limit_seconds": 4, "hard_limit_seconds": 6}, 3.2, "1 s until the soft limit"),
        ({"soft_limit_seconds": 4, "hard_limit_seconds": 6}, 4, "2 s until the hard limit"),
        ({"soft_limit_seconds": 4, "hard_limit_seconds": 6}, 6, "past its limit by 0 s"),
        ({"soft_limit_seconds": 4, "hard_limit_seconds": 6}, 9.9, "past its limit by 3 s"),
        ({"soft_limit_seconds": 4}, 7, "past its limit by 3 s"),
        ({"hard_limit_seconds": 600}, 1, "9 min 59 s until the hard limit"),
        ({}, 5.9, "running for 5 s, no limit"),
        ({}, -1, "running for 0 s, no limit"),
    ],
)
def test_a_running_job_says_how_long_until_its_next_limit(fields: dict[str, Any], after: float, text: str) -> None:
    """The soft limit first, then the hard one, then by how much it is past the last."""
    assert time_text(row_view(running(**fields)), NOW + after) == text


def test_the_workers_limits_hold_where_a_job_brought_none() -> None:
    """A limit in the message goes before that of the command line."""
    assert time_text(row_view(running(), 5, 8), NOW) == "5 s until the soft limit"
    assert time_text(row_view(running(soft_limit_seconds=2), 5, 8), NOW) == "2 s until the soft limit"


def test_a_job_that_waits_or_has_ended_says_how_long_it_took() -> None:
    """What has ended says the same for ever; what never ran says so."""
    end = START + timedelta(seconds=2.25)
    done = running(finished_at=end + timedelta(seconds=1))
    assert time_text(row_view(row()), NOW + 3.9) == "waiting for 3 s"
    assert time_text(row_view(row(attempt=1, started_at=START)), NOW + 3) == "3 s since it was added"
    for later in (0, 1000):
        cancelled = row(state=State.CANCELLED, finished_at=end)
        assert time_text(row_view(cancelled), NOW + later) == "never began, waited 2.2 s"
        ended = JobRow(**{**vars(done), "state": State.TIMED_OUT})
        assert time_text(row_view(ended), NOW + later) == "took 3.2 s"
    long = row(state=State.FAILED, started_at=START, finished_at=START + timedelta(seconds=125))
    assert time_text(row_view(long), NOW) == "took 2 min 5 s"


@pytest.mark.parametrize(
    ("done", "total", "text"), [(0, None, ""), (3, None, "3 done"), (3, 10, "3 of 10"), (0, 0, "0 of 0")]
)
def test_progress_is_done_of_total(done: int, total: int | None, text: str) -> None:
    """Without a total it is what is done, and without either nothing."""
    assert progress_text(row_view(running(done=done, total=total))) == text


def test_a_long_reason_is_cut() -> None:
    """A reason of many lines becomes one, and what is too long for a row ends in dots."""
    view = row_view(running(why="a\nb " + "x" * 5000))
    assert view["why"].startswith("a b xx") and view["why"].endswith(" …") and len(view["why"]) == 200


# --- events and stories


def test_a_name_is_cut_and_can_not_steer_a_terminal() -> None:
    """A task's name of any length stays a column; escapes and changes of direction are shown as what can not be shown."""
    view = row_view(replace(row(), task="x" * 100_000))
    assert len(view["task"]) < 1000
    assert row_view(replace(row(), task="\x1b[2Ja\u202eb"))["task"] == "\ufffd[2Ja\ufffdb"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_event_has_words_without_its_data_too(kind: str) -> None:
    """Whoever appends one by hand may leave its data out."""
    assert words(event(kind)) and words(event(kind)) != kind


def test_words_say_the_place_the_item_and_the_reason() -> None:
    """What the event knows is in the sentence; a kind of a later version is told by its name."""
    place = {"file": "t.py", "line": 7}
    assert words(event("soft signal", text="save(row)", **place)) == "soft limit delivered at t.py line 7: save(row)"
    assert words(event("caught", index=3, **place)) == "the task caught the signal at t.py line 7, item 3 blamed"
    assert words(event("item failed", index=3, error="TypeError: x")) == "item 3 given up: TypeError: x"
    assert words(event("finished", state="failed", why="no")) == "the row says failed: no"
    assert words(event("killed", why="hard limit of 2 s")) == "process killed: hard limit of 2 s"
    assert words(event("teleported")) == "teleported"


def test_items_in_a_row_are_one_step() -> None:
    """So are their commits; another event between them begins a new step."""
    items = [
        event(kind, index=n) if kind == "item done" else event(kind)
        for n in range(3)
        for kind in ("committed", "item done")
    ]
    assert told([event("queued"), *items]) == ["message sent", "3 items done, 0 to 2, 3 commits"]
    assert told([*items[:4], event("soft signal"), items[5]]) == [
        "2 items done, 0 to 1, 2 commits",
        "soft limit delivered",
        "item 2 done",
    ]
    failed = [event("item failed", index=n, error=f"E: {n}") for n in range(4)]
    assert told(failed) == ["4 items given up, 0 to 3, the last: E: 3"]
    assert told([event("committed")]) == ["1 commit"]
    assert told([event("item done"), event("item done")]) == ["2 items done"]


def test_a_long_story_keeps_its_end() -> None:
    """Past the most steps the rest is one step, which names the last event."""
    many = [event(kind, index=n, at=n) for n in range(200) for kind in ("item done", "item failed")]
    steps = told([*many, event("finished", state="failed")])
    assert len(steps) == MOST_STEPS + 1
    assert steps[-1] == f"{401 - MOST_STEPS} more events, the last: the row says failed"


def test_what_a_dying_process_writes_is_left_out() -> None:
    """How far it gets before the second signal differs from run to run; the next attempt counts again."""
    picture = Picture()
    kinds = ["started", "killed", "swallowed", "returned", "accepted", "started", "returned"]
    picture.take([row()], 1, [event(kind, seq) for seq, kind in enumerate(kinds)])
    assert [step["kind"] for step in picture.steps(row().id)] == [
        "started",
        "killed",
        "accepted",
        "started",
        "returned",
    ]


# --- the picture and what is sent of it


def test_only_what_changed_is_sent() -> None:
    """A row that moved is one value, an event adds a step and the list, what is gone is None."""
    picture = Picture()
    rows = [row(0), running(), row(2)]
    rows[1] = JobRow(**{**vars(rows[1]), "id": row(1).id})
    picture.take(rows, 3, [event("queued", 0, rows[0].id)])
    before = picture.view()
    assert difference(before, picture.view()) == {}
    moved = JobRow(**{**vars(rows[1]), "done": 5})
    picture.take([rows[0], moved, rows[2]], 3, [])
    assert set(difference(before, picture.view())) == {f"row:{moved.id}"}
    before = picture.view()
    picture.take([rows[0], moved, rows[2]], 3, [event("accepted", 1, rows[0].id)])
    assert set(difference(before, picture.view())) == {"events", f"row:{rows[0].id}", f"step:{rows[0].id}:1"}
    before = picture.view()
    picture.take([], 0, [], cleared=True)
    sent = difference(before, picture.view())
    assert sent["ids"] == [] and sent["events"] == []
    assert all(sent[name] is None for name in before if ":" in name)


def test_values_do_not_change_with_the_time() -> None:
    """Rows carry moments of the database's clock, so a job that only gets older is not sent again."""
    view = row_view(running(soft_limit_seconds=4, hard_limit_seconds=6))
    assert (view["since"], view["soft"], view["hard"]) == (NOW, NOW + 4, NOW + 6)
    json.dumps(view)


def test_a_message_is_bounded_whatever_the_number_of_events() -> None:
    """Ten thousand events are a list of the newest, and one step of their job."""
    picture = Picture()
    picture.take([row()], 1, [])
    before = picture.view()
    picture.take([row()], 1, [event("item done", n, index=n, at=n / 1000) for n in range(10_000)])
    sent = difference(before, picture.view())
    assert len(sent["events"]) == NEWEST and sent["events"][-1]["text"] == "item 9999 done"
    assert len(json.dumps(sent)) < 4000


# --- the text


def test_the_text_is_a_table_in_order_of_creation() -> None:
    """Rows, events with seconds since the first, and the story of the selected job; two looks give the same."""
    picture = Picture()
    timed_out = row(2, state=State.TIMED_OUT, why="too slow", attempt=1, done=2, total=5)
    timed_out = JobRow(**{**vars(timed_out), "started_at": START, "finished_at": START + timedelta(seconds=3)})
    picture.take(
        [row(1), timed_out],
        2,
        [event("queued", 0, timed_out.id), event("finished", 1, timed_out.id, at=3, state="timed_out", why="too slow")],
    )
    text = snapshot_text(picture, "03", NOW + 7, timed_out.id)
    assert text == snapshot_text(picture, "03", NOW + 7, timed_out.id)
    assert text.splitlines() == [
        "Jobs of lab 03, oldest first",
        "  job       task  state        done    attempt  time             why it ended",
        "  00000001  load  ○ pending            0 of 1   waiting for 7 s",
        "  00000002  load  ◷ timed out  2 of 5  1 of 1   took 3.0 s       too slow",
        "Newest events, seconds since the first",
        "     0.00  00000002  message sent",
        "     3.00  00000002  the row says timed_out: too slow",
        "Story of job 00000002",
        "   1.    0.00  worker   message sent",
        "   2.    3.00  row      the row says timed_out: too slow",
    ]


def test_the_text_of_an_empty_lab_says_so() -> None:
    """There is no table without rows."""
    assert snapshot_text(Picture(), "03", NOW) == "Lab 03: no jobs yet."


def test_more_jobs_than_are_shown_are_counted() -> None:
    """The rows are those added last, still oldest first."""
    store, picture = MemoryStore(lambda: START), Picture()
    for _ in range(board_rows.SHOWN + 23):
        store.add("load")
    picture.take(store.newest(board_rows.SHOWN), len(store.all()), [])
    lines = snapshot_text(picture, "03", NOW).splitlines()
    assert len(lines) == board_rows.SHOWN + 3 and lines[-1] == "  and 23 more, added earlier"
    assert [line.split()[0] for line in lines[2:-1]] == [one.id[:8] for one in store.all()[23:]]


# --- the ledger's tail


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


def test_a_tail_reads_each_event_once(ledger: Ledger) -> None:
    """Numbered as a reader of the whole ledger numbers them; a ledger that is not there yet is empty."""
    tail = Tail(ledger.path)
    assert tail.news() == (False, [])
    seen = []
    for n in range(5):
        for _ in range(n):
            ledger.append("item done", "a", index=n)
        cleared, events = tail.news()
        assert not cleared and len(events) == n
        seen += events
    assert seen == ledger.read()


def test_a_tail_leaves_half_a_line_for_later(ledger: Ledger) -> None:
    """It is read when its end is there; one that never gets its end costs that line only."""
    tail = Tail(ledger.path)
    ledger.append("queued", "a")
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + whole[:30])
    assert [one.seq for one in tail.news()[1]] == [0]
    assert tail.news() == (False, [])
    with open(ledger.path, "ab") as file:
        file.write(whole[30:])
    assert [one.seq for one in tail.news()[1]] == [1]
    with open(ledger.path, "ab") as file:
        file.write(whole[:30])
    assert tail.news() == (False, [])
    ledger.append("finished", "a")
    assert [(one.seq, one.kind) for one in tail.news()[1]] == [(2, "finished")]


@pytest.mark.parametrize("grown", [0, 1, 3, 10])
def test_a_tail_notices_a_cleared_ledger(ledger: Ledger, grown: int) -> None:
    """Also one that has grown past the tail's place since; what it says then is all there is."""
    tail = Tail(ledger.path)
    for _ in range(3):
        ledger.append("queued", "before")
    tail.news()
    ledger.clear()
    for _ in range(grown):
        ledger.append("queued", "after")
    cleared, events = tail.news()
    assert cleared and events == ledger.read() and {one.job for one in events} <= {"after"}
    assert tail.news() == (False, [])


def test_a_tail_notices_a_ledger_that_was_removed(ledger: Ledger) -> None:
    """It says so once, and reads the next one from its beginning."""
    tail = Tail(ledger.path)
    ledger.append("queued", "a")
    tail.news()
    ledger.path.unlink()
    assert tail.news() == (True, [])
    assert tail.news() == (False, [])
    ledger.append("queued", "b")
    assert [one.job for one in tail.news()[1]] == ["b"]
