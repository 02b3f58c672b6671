"""The timeline: one job's story as text and as a plot, from a ledger made by hand."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

from sandbox.jobs import KINDS, JobRow, MemoryLedger, State
from sandbox.learn.timelines import LANE_OF, MARKS, Timeline


def ledger() -> MemoryLedger:
    ticks = itertools.count(100.0, 0.5)
    return MemoryLedger(clock=lambda: next(ticks))


def row(state: State, **fields: object) -> JobRow:
    values: dict[str, object] = {"id": "j", "task": "import_orders", "created_at": datetime.now(UTC), "total": 4}
    return JobRow(state=state, **(values | fields))  # type: ignore[arg-type]


def naive() -> Timeline:
    events = ledger()
    for kind in ("queued", "accepted", "started"):
        events.append(kind, "j")
    for index in (0, 1):
        events.append("item done", "j", index=index)
        events.append("committed", "j")
    events.append("soft signal", "j", file="imports.py", line=9, text="save_order(job, row)")
    events.append("caught", "j", index=2, file="imports.py", line=12)
    events.append("item failed", "j", index=2, error="SoftTimeLimitExceeded: ()", file="imports.py", line=12)
    events.append("item done", "j", index=3)
    events.append("killed", "j", why="hard limit of 2 s")
    events.append("swallowed", "j")
    events.append("returned", "j", outcome="SystemExit")
    return Timeline(events.read(), row(State.RUNNING, done=3))


def repaired() -> Timeline:
    events = ledger()
    for kind in ("queued", "accepted", "started"):
        events.append(kind, "j")
    events.append("finished", "j", state="timed_out", why="aborted after 0 of 4 rows")
    events.append("returned", "j", outcome="SoftTimeLimitExceeded")
    return Timeline(events.read(), row(State.TIMED_OUT, why="aborted after 0 of 4 rows", finished_at=datetime.now(UTC)))


def test_the_text_folds_items_and_names_lines_and_holds_no_times() -> None:
    """The text twin has a line an event, runs of items folded, and nothing that differs between machines."""
    assert str(naive()).splitlines() == [
        "job import_orders",
        "  queued",
        "  accepted",
        "  started",
        "  item done     0 to 1",
        "  soft signal   delivered at imports.py line 9: save_order(job, row)",
        "  caught        at imports.py line 12, item 2 blamed",
        "  item failed   2: SoftTimeLimitExceeded: ()",
        "  item done     3",
        "  killed        hard limit of 2 s",
        "  the row says running",
    ]


def test_an_ending_is_in_the_text_with_its_reason() -> None:
    """A finished job's text says the state and why, from the ledger and from the row."""
    lines = str(repaired()).splitlines()
    assert "  finished      timed_out: aborted after 0 of 4 rows" in lines
    assert lines[-1] == "  the row says timed_out: aborted after 0 of 4 rows"


def test_the_plot_has_a_unit_a_sentence_and_a_legend() -> None:
    """The figure names its axis with the unit, says in a sentence what to see, and explains every mark."""
    axes = naive().figure().axes[0]
    assert axes.get_xlabel() == "seconds since the message was sent"
    assert axes.get_title(loc="left") == "3 of 4 items done, the process killed, and the row left saying running"
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert {"soft limit delivered", "signal caught by the task", "process killed"} <= labels
    assert "still running →" in [text.get_text() for text in axes.texts]
    assert axes.get_xlim()[0] <= 0


def test_what_a_process_writes_while_it_is_killed_is_not_told() -> None:
    """Neither text nor plot has an event from after a kill, because it is chance; an ending in the row is kept."""
    assert "signal never left the task" not in {text.get_text() for text in naive().figure().axes[0].get_legend().texts}
    events = [*naive().events]
    reaped = MemoryLedger(clock=lambda: 999.0)
    reaped.append("item done", "j", index=4)
    reaped.append("finished", "j", state="timed_out", why="found stuck")
    story = Timeline([*events, *reaped.read()], row(State.TIMED_OUT, why="found stuck", finished_at=datetime.now(UTC)))
    assert str(story).splitlines()[-3:] == [
        "  killed        hard limit of 2 s",
        "  finished      timed_out: found stuck",
        "  the row says timed_out: found stuck",
    ]


def test_each_kind_that_is_drawn_has_its_own_mark_in_the_picture() -> None:
    """In the figure itself no two kinds have the same outline, so it can be read in grey."""
    drawn = [c for c in naive().figure().axes[0].collections if type(c).__name__ == "PathCollection"]
    outlines = {(path.vertices.tobytes(), c.get_label()) for c in drawn for path in c.get_paths()}
    assert len({outline for outline, _ in outlines}) == len(drawn) == 7


def test_an_open_row_has_no_end_in_the_plot_and_a_finished_one_has() -> None:
    """The bar of a row ends at the event that finished it, and runs out of the picture when nothing did."""

    def bar_end(timeline: Timeline) -> tuple[float, float]:
        axes = timeline.figure().axes[0]
        bars = [c for c in axes.collections if type(c).__name__ == "LineCollection" and c.get_linewidth()[0] == 6]
        return float(bars[0].get_segments()[0][-1][0]), float(axes.get_xlim()[1])

    end, right = bar_end(naive())
    assert end >= right
    end, right = bar_end(repaired())
    assert end == 1.5 and end < right


def test_each_kind_of_event_has_a_shape_of_its_own() -> None:
    """Nothing in the plot is told by colour alone, and each kind that is drawn is one that the ledger knows."""
    shapes = [shape for shape, _, _ in MARKS.values()]
    assert len(set(shapes)) == len(shapes)
    assert set(MARKS) == set(LANE_OF) and set(MARKS) <= set(KINDS)


def test_a_notebook_gets_a_picture_and_the_text() -> None:
    """The notebook shows a PNG; whoever can not see it, or works without pictures, gets the text."""
    bundle = naive()._repr_mimebundle_()
    assert bundle["image/png"].startswith("iVBOR") and bundle["text/plain"] == str(naive())


def test_a_job_without_events_is_drawn_too() -> None:
    """A job of which the ledger knows nothing gives an empty plot and its row's state, not an error."""
    empty = Timeline([], row(State.PENDING))
    assert str(empty).endswith("the row says pending")
    assert empty._repr_mimebundle_()["image/png"]
