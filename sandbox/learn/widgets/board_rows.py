"""What the board shows, as plain values and as text: rows, what their time says, events in words, a job's story.

Moments are seconds of the database's clock. Whoever shows them is told how late it is there, and counts on from that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from sandbox.jobs import TERMINAL, Event, JobRow, State
from sandbox.learn.timelines import LANE_OF

SHOWN = 100  # jobs; with more, those added last
NEWEST = 20  # events
MOST_STEPS = 60  # of one story; what follows is told in one last step
LONGEST_TEXT = 200  # characters of a reason or a message

# Each state has a mark of its own shape, so that nothing is told by colour alone.
STATES = {
    State.PENDING: ("○", "pending"),
    State.RUNNING: ("►", "running"),
    State.COMPLETED: ("✓", "completed"),
    State.FAILED: ("✗", "failed"),
    State.TIMED_OUT: ("◷", "timed out"),
    State.CANCELLED: ("■", "cancelled"),
    State.EXPIRED: ("◇", "expired"),
}
LANES = {**LANE_OF, "queued": "worker", "returned": "worker", "committed": "items"}
View = dict[str, Any]


def row_view(row: JobRow, soft: float | None = None, hard: float | None = None, steps: int = 0) -> View:
    """One row as the page gets it. `soft` and `hard` are the worker's own limits, for a job that brought none."""
    mark, word = STATES[row.state]
    soft, hard = row.soft_limit_seconds or soft, row.hard_limit_seconds or hard
    begun = row.created_at if row.state == State.PENDING else row.started_at
    since = (begun or row.created_at).timestamp()
    running = row.state == State.RUNNING
    return {
        "short": row.id[:8],
        "task": _clipped(row.task),
        "state": str(row.state),
        "mark": mark,
        "word": word,
        "over": row.state in TERMINAL,
        "done": row.done,
        "total": row.total,
        "attempt": f"{row.attempt} of {row.max_attempts}",
        "ran": row.started_at is not None,
        "since": round(since, 3),
        "soft": round(since + soft, 3) if running and soft else None,
        "hard": round(since + hard, 3) if running and hard else None,
        "ended": round(row.finished_at.timestamp(), 3) if row.finished_at else None,
        "why": _clipped(row.why or ""),
        "steps": steps,
    }


def progress_text(view: View) -> str:
    if view["total"] is not None:
        return f"{view['done']} of {view['total']}"
    return f"{view['done']} done" if view["done"] else ""


def seconds_text(seconds: float) -> str:
    """Whole seconds, from two minutes on with minutes."""
    whole = int(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def time_text(view: View, now: float) -> str:
    """What a row's time says at the moment `now`. board.js says the same, once a second."""
    since = view["since"]
    if view["ended"] is not None:
        took = max(0.0, view["ended"] - since)
        told = f"{took:.1f} s" if took < 120 else seconds_text(took)
        return f"took {told}" if view["ran"] else f"never began, waited {told}"
    if view["state"] == State.PENDING:
        waited = seconds_text(max(0.0, now - since))
        return f"{waited} since it was added" if view["ran"] else f"waiting for {waited}"
    limits = [(name, view[name]) for name in ("soft", "hard") if view[name] is not None]
    for name, moment in limits:
        if moment > now:
            return f"{seconds_text(math.ceil(moment - now))} until the {name} limit"
    if limits:
        return f"past its limit by {seconds_text(now - limits[-1][1])}"
    return f"running for {seconds_text(max(0.0, now - since))}, no limit"


def words(event: Event) -> str:
    """What happened, as a sentence's middle; a kind of a later version is told by its name."""
    data = event.data
    item = f"item {data['index']}" if "index" in data else "an item"
    where = f" at {data['file']} line {data['line']}" if "file" in data and "line" in data else ""
    why = data.get("why")
    told = {
        "queued": "message sent",
        "accepted": "taken by a worker process",
        "started": f"attempt {data.get('attempt', '')} begun, the row says running".replace("  ", " "),
        "soft signal": f"soft limit delivered{where}" + (f": {data['text']}" if data.get("text") else ""),
        "caught": f"the task caught the signal{where}" + (f", {item} blamed" if "index" in data else ""),
        "swallowed": "the signal's exception never left the task",
        "item done": f"{item} done",
        "item failed": f"{item} given up" + (f": {data['error']}" if "error" in data else ""),
        "committed": "a write committed",
        "finished": f"the row says {data.get('state', 'it ended')}" + (f": {why}" if why else ""),
        "returned": f"the attempt is over, with {data.get('outcome', 'no answer')}",
        "killed": "process killed" + (f": {why}" if why else ""),
    }
    return _clipped(told.get(event.kind, event.kind))


class Story:
    """What happened to one job, runs of items folded into one step each; it grows by the event."""

    def __init__(self) -> None:
        self.steps: list[View] = []  # each is replaced when it changes, never changed
        self._folded: list[Event] = []  # first and last event of the last step's run
        self._count = self._commits = 0

    def add(self, event: Event, at: float) -> None:
        """`at` is the event's moment, in seconds since the first event of the ledger."""
        last = self.steps[-1] if self.steps else None
        if last is not None and len(self.steps) >= MOST_STEPS:
            self._count = self._count + 1 if last["more"] else 1
            text = f"{self._count} more events, the last: {words(event)}" if self._count > 1 else words(event)
            if last["more"]:
                self.steps.pop()
            start = last["at"] if last["more"] else at
            self.steps.append(_step(event, start, at, text, more=True))
            return
        if last is not None and last["kind"] in ("item done", "committed") and event.kind == "committed":
            # Stands beside every item that is done.
            self._commits += 1
            self.steps[-1] = {**last, "until": at, "text": self._told()}
            return
        same = last is not None and last["kind"] == event.kind and event.kind in ("item done", "item failed")
        if last is not None and last["kind"] == "committed" and event.kind == "item done":
            self.steps.pop()
            self._folded, self._count = [event, event], 1
            self.steps.append(_step(event, last["at"], at, self._told()))
        elif last is not None and same:
            self._folded[1] = event
            self._count += 1
            self.steps[-1] = {**last, "until": at, "text": self._told()}
        else:
            self._folded, self._count, self._commits = [event, event], 1, int(event.kind == "committed")
            self.steps.append(_step(event, at, at, self._told()))

    def _told(self) -> str:
        first, last = self._folded
        commits = f", {self._commits} commit{'s' * (self._commits != 1)}" if self._commits else ""
        if first.kind == "committed":
            return commits.removeprefix(", ")
        if self._count == 1:
            return words(first) + commits
        done = "done" if first.kind == "item done" else "given up"
        ends = (
            f", {first.data['index']} to {last.data['index']}" if "index" in first.data and "index" in last.data else ""
        )
        error = f", the last: {last.data['error']}" if "error" in last.data else ""
        return _clipped(f"{self._count} items {done}{ends}{error}") + commits


def _step(event: Event, at: float, until: float, text: str, *, more: bool = False) -> View:
    lane = LANES.get(event.kind, "worker")
    return {"kind": event.kind, "lane": lane, "at": at, "until": until, "text": text, "more": more}


class Picture:
    """Everything the board shows. `take` brings it up to date, `view` gives it as what the page gets, by name."""

    def __init__(self) -> None:
        self.rows: dict[str, JobRow] = {}
        self.stories: dict[str, Story] = {}
        self.newest: deque[View] = deque(maxlen=NEWEST)
        self.limits: tuple[float | None, float | None] = (None, None)  # the worker's own, seconds
        self.more = 0
        self._first: float | None = None
        self._killed: set[str] = set()  # jobs whose process was killed, and that no other has begun

    def take(self, rows: Sequence[JobRow], total: int, events: Iterable[Event], *, cleared: bool = False) -> None:
        """New rows (all that are shown) out of `total`, and the events since the last time."""
        if cleared:
            self.stories.clear()
            self.newest.clear()
            self._first = None
            self._killed.clear()
        self.rows = {row.id: row for row in rows}
        self.more = max(0, total - len(rows))
        for event in events:
            if self._by_chance(event):
                continue
            self._first = event.at if self._first is None else self._first
            at = round(event.at - self._first, 3)
            short = (event.job or "")[:8]
            self.newest.append({"seq": event.seq, "job": short, "at": at, "text": words(event)})
            if event.job is not None:
                self.stories.setdefault(event.job, Story()).add(event, at)

    def _by_chance(self, event: Event) -> bool:
        """Whether a process that is being killed wrote it: how far it gets between two signals differs from run to run."""
        job = event.job or ""
        if event.kind == "killed":
            self._killed.add(job)
        elif event.kind in ("queued", "accepted", "started"):
            self._killed.discard(job)
        return job in self._killed and event.kind not in ("killed", "finished")

    def row(self, job_id: str) -> View:
        return row_view(self.rows[job_id], *self.limits, steps=len(self.steps(job_id)))

    def steps(self, job_id: str) -> list[View]:
        story = self.stories.get(job_id)
        return story.steps if story else []

    def view(self) -> View:
        found: View = {"ids": list(self.rows), "more": self.more, "events": list(self.newest)}
        for job_id in self.rows:
            found[f"row:{job_id}"] = self.row(job_id)
            for place, step in enumerate(self.steps(job_id)):
                found[f"step:{job_id}:{place}"] = step
        return found


def difference(before: View, after: View) -> View:
    """What to send to a page that has `before`: what is new or changed, and None for what is gone."""
    changed = {name: value for name, value in after.items() if name not in before or before[name] != value}
    return changed | {name: None for name in before if name not in after}


def snapshot_text(picture: Picture, lab: str, now: float, selected: str | None = None) -> str:
    """The board as text: a table, the newest events, and the story of the selected job."""
    if not picture.rows:
        lines = [f"Lab {lab}: no jobs yet."]
    else:
        head = ("job", "task", "state", "done", "attempt", "time", "why it ended")
        views = [picture.row(job_id) for job_id in picture.rows]
        cells = [head, *(_cells(view, now) for view in views)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
        lines = [f"Jobs of lab {lab}, oldest first"]
        for row in cells:
            lines.append("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        if picture.more:
            lines.append(f"  and {picture.more} more, added earlier")
    if picture.newest:
        lines += ["Newest events, seconds since the first"]
        lines += [f"  {one['at']:7.2f}  {one['job'] or '-':<8}  {one['text']}" for one in picture.newest]
    if selected is not None and selected in picture.rows:
        steps = picture.steps(selected)
        lines.append(f"Story of job {selected[:8]}" + ("" if steps else ": no events yet"))
        lines += [
            f"  {n:>2}. {s['at'] - steps[0]['at']:7.2f}  {s['lane']:<7}  {s['text']}" for n, s in enumerate(steps, 1)
        ]
    return "\n".join(lines)


def _cells(view: View, now: float) -> tuple[str, ...]:
    state = f"{view['mark']} {view['word']}"
    line = (view["short"], view["task"], state, progress_text(view), view["attempt"], time_text(view, now), view["why"])
    return tuple(" ".join(text.split()) for text in line)


def _clipped(text: str) -> str:
    # On one line, and without what a terminal or a page would act on: escapes, changes of direction.
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 2] + " …"
