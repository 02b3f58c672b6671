"""What a batch loop does in one case: the calls that arrive from it, answered and written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import SandboxError
from sandbox.grade import Call, Reply
from sandbox.jobs import MemoryStore, State
from sandbox.services.shop import order_rows

COUNTED = " (counted from 0)"  # once in each message that names a row of the file
# Where the limit can land, and how a message calls it.
PLACES = {
    "saving": f"while row {{at}}{COUNTED} was being saved",
    "between": f"between two rows of the file, as row {{at}}{COUNTED} was about to be fetched",
    "recording": f"while the failure of row {{at}}{COUNTED} was being recorded",
    "completing": "after the last row, as the job was about to be completed",
    "completed": "just after the job was completed",
}


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One case: a file of `rows` rows, the places of its `bad` ones, and where the limit lands (None: nowhere)."""

    title: str
    rows: int = 8
    bad: tuple[int, ...] = ()
    limit: str | None = None
    at: int = 0
    seed: int = 1


@dataclass
class Books:
    """What arrived from the function in one case. The function's process has no hand in it."""

    case: Batch
    store: MemoryStore = field(default_factory=MemoryStore)
    tried: list[int] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    failed: list[tuple[int, bool, dict[str, Any]]] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)  # what the function gave as the error of a failed row
    landed: dict[str, Any] | None = None  # the learner's line at which the limit was delivered
    ended: dict[str, Any] = field(default_factory=dict)  # the learner's line that wrote the end of the job's row
    ended_after: bool = False  # whether that was after the limit had landed
    saved_after: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.job = self.store.add("import_orders", total=self.case.rows).id
        self.store.start(self.job, lease_seconds=60)

    def order(self) -> dict[str, Any]:
        return {"job": self.job, "rows": order_rows(self.case.rows, seed=self.case.seed, bad=self.case.bad, seconds=0)}

    def answer(self, call: Call) -> Reply:
        try:
            return self._answer(call)
        except SandboxError as error:
            # A state that does not exist, a number that is none: the function's own mistake, raised where it made it.
            return Reply(error=str(error))

    def _answer(self, call: Call) -> Reply:
        if call.name == "next":
            return self._land("between", _whole(call.args[0]), call)
        if call.name == "save":
            return self._save(call)
        if call.name == "item_done":
            self.done.append(_whole(call.args[0]))
            self.store.progress(self.job, len(self.done))
        elif call.name == "item_failed":
            self.failed.append((_whole(call.args[0]), call.args[2] is True, call.where))
            self.reasons.setdefault(_whole(call.args[0]), str(call.args[1]))
            return self._land("recording", _whole(call.args[0]), call)
        elif call.name == "finish":
            return self._finish(call)
        return Reply()

    def _save(self, call: Call) -> Reply:
        row = _whole(call.args[0])
        if self.landed is not None:
            self.saved_after.append(row)
        reply = self._land("saving", row, call)
        if reply.signal:
            return reply
        self.tried.append(row)
        if row in self.case.bad:
            return Reply(error="quantity 'seven' is not a number")
        self.saved.append(row)
        return Reply()

    def _finish(self, call: Call) -> Reply:
        state, why = State.parse(call.args[0]), call.args[1]
        if why is not None and not isinstance(why, str):
            raise TypeError("not a reason")
        if state == State.COMPLETED and self._land("completing", self.case.at, call).signal:
            return Reply(signal=True)
        won = self.store.finish(self.job, state, why)
        if won:
            self.ended, self.ended_after = call.where, self.landed is not None
        if state == State.COMPLETED and self._land("completed", self.case.at, call).signal:
            return Reply(signal=True)
        return Reply(value=won)

    def _land(self, place: str, at: int, call: Call) -> Reply:
        if self.landed is None and self.case.limit == place and at == self.case.at:
            self.landed = call.where
            return Reply(signal=True)
        return Reply()

    @property
    def row(self) -> Any:
        return self.store.get(self.job)


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("not a place in the file")
    return int(value)
