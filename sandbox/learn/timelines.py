"""Draws one job's story from the ledger: what happened, in which order, and what the row said meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.jobs import Event, JobRow
from sandbox.services import SubmittedJob

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Each kind has a shape of its own, so that nothing is told by colour alone. Colours: Okabe and Ito's set.
MARKS = {
    "accepted": ("o", "#56B4E9", "taken by the worker"),
    "started": (">", "#0072B2", "row says running"),
    "item done": ("|", "#009E73", "item done"),
    "item failed": ("x", "#D55E00", "item failed"),
    "soft signal": ("v", "#E69F00", "soft limit delivered"),
    "caught": ("s", "#CC79A7", "signal caught by the task"),
    "swallowed": ("P", "#CC79A7", "signal never left the task"),
    "finished": ("*", "#009E73", "row in a terminal state"),
    "killed": ("X", "#D55E00", "process killed"),
}
LANES = ("worker", "items", "signal", "handler", "row")
LANE_OF = {
    "accepted": "worker",
    "killed": "worker",
    "item done": "items",
    "item failed": "items",
    "soft signal": "signal",
    "caught": "handler",
    "swallowed": "handler",
    "started": "row",
    "finished": "row",
}


class Timeline:
    """A timeline of one job. A notebook shows the plot; ``print`` shows the text twin."""

    def __init__(self, events: list[Event], row: JobRow) -> None:
        self.events, self.row = _told(events), row

    def __str__(self) -> str:
        """One line an event, items of a run folded into one, no times: the same on every machine."""
        lines: list[str] = [f"job {self.row.task}"]
        done: list[int] = []

        def fold() -> None:
            if done:
                lines.append(f"  item done     {done[0]}" + (f" to {done[-1]}" if len(done) > 1 else ""))
                done.clear()

        for event in self.events:
            if event.kind == "committed":
                continue  # stands beside every item done
            if event.kind == "item done":
                done.append(event.data["index"])
                continue
            fold()
            lines.append(f"  {event.kind:<12}  {_detail(event)}".rstrip())
        fold()
        lines.append(f"  the row says {self.row.state}" + (f": {self.row.why}" if self.row.why else ""))
        return "\n".join(lines)

    def figure(self) -> Figure:
        """The plot, as a matplotlib figure of its own (nothing is shown by making it)."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        start = self.events[0].at if self.events else 0.0
        figure = Figure(figsize=(9.5, 3.4), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        self._bars(axes, start)
        for kind, (shape, colour, label) in MARKS.items():
            found = [e for e in self.events if e.kind == kind]
            if found:
                places = [LANES.index(LANE_OF[kind])] * len(found)
                axes.scatter(
                    [e.at - start for e in found], places, marker=shape, color=colour, s=70, label=label, zorder=3
                )
        for event in self.events:
            if event.kind in ("soft signal", "killed"):
                axes.axvline(event.at - start, color="#666666", linestyle="--", linewidth=0.8, zorder=1)
        axes.set_yticks(range(len(LANES)), LANES)
        axes.set_ylim(len(LANES) - 0.4, -0.6)
        axes.set_xlabel("seconds since the message was sent")
        axes.set_xlim(left=-0.02 * axes.get_xlim()[1])  # from the beginning, with room for half a mark
        axes.set_title(self._sentence(), fontsize=10, loc="left")
        axes.grid(axis="x", alpha=0.3)
        if self.events:
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
        return figure

    def _bars(self, axes: Any, start: float) -> None:
        began = next((e.at - start for e in self.events if e.kind == "started"), None)
        if began is None:
            return
        last = max(e.at - start for e in self.events)
        ended = next((e.at - start for e in self.events if e.kind == "finished"), None)
        lane = LANES.index("row")
        if ended is not None:
            axes.hlines(lane, began, ended, color="#0072B2", linewidth=6, alpha=0.35)
            return
        # The bar runs out of the picture: nothing in it ends the row.
        axes.hlines(lane, began, last * 1.15, color="#0072B2", linewidth=6, alpha=0.35)
        axes.set_xlim(right=last * 1.15)
        axes.text(last * 1.14, lane - 0.22, f"still {self.row.state} →", va="bottom", ha="right", fontsize=8)

    def _sentence(self) -> str:
        done = f"{self.row.done} of {self.row.total} items done" if self.row.total is not None else self.row.task
        killed = any(e.kind == "killed" for e in self.events)
        if killed and not self.row.terminal:
            return f"{done}, the process killed, and the row left saying {self.row.state}"
        return f"{done}; the row says {self.row.state}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        import base64
        import io

        buffer = io.BytesIO()
        self.figure().savefig(buffer, format="png", dpi=110)
        return {"image/png": base64.b64encode(buffer.getvalue()).decode(), "text/plain": str(self)}

    __repr__ = __str__


def _told(events: list[Event]) -> list[Event]:
    """The events without those that only chance put there.

    Between its SIGTERM and its SIGKILL a process has a tenth of a second, and how much it writes in that time differs
    from run to run; only an ending that reached the row counts.
    """
    killed = next((place for place, event in enumerate(events) if event.kind == "killed"), len(events))
    return [event for place, event in enumerate(events) if place <= killed or event.kind == "finished"]


def _detail(event: Event) -> str:
    data = event.data
    if event.kind == "item failed":
        return f"{data['index']}: {data['error']}"
    if event.kind == "soft signal":
        return f"delivered at {data.get('file')} line {data.get('line')}: {data.get('text')}"
    if event.kind == "caught":
        return f"at {data.get('file')} line {data.get('line')}, item {data['index']} blamed"
    if event.kind == "finished":
        return f"{data['state']}{': ' + data['why'] if data.get('why') else ''}"
    if event.kind == "returned":
        return f"with {data['outcome']}"
    return str(data.get("why") or "")


def timeline(job: SubmittedJob) -> Timeline:
    """The story of a job that was submitted to the lab."""
    return Timeline(job.events, job.row)
