"""A job on its way: what may be sent to a worker, and what became of it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from sandbox.errors import NotSendable, StackFailed, WaitedInVain
from sandbox.jobs import JobRow
from sandbox.jobs.store import stored_json

if TYPE_CHECKING:
    from celery.result import AsyncResult

    from sandbox.services.lab import Lab


class SubmittedJob:
    """A job that was sent to the worker: its row, its events, and Celery's own opinion of it."""

    def __init__(self, lab: Lab, job_id: str, result: AsyncResult[Any]) -> None:
        self.id, self._lab, self._result = job_id, lab, result

    @property
    def row(self) -> JobRow:
        return self._lab.jobs.get(self.id)

    @property
    def events(self) -> list[Any]:
        return self._lab.ledger.read(self.id)

    @property
    def celery_state(self) -> str:
        """What Celery's result backend says: it knows about the message, not about the job row."""
        return self._result.state

    def wait(self, seconds: float = 60) -> JobRow:
        """Wait until the attempt is over, then return the row, whatever its state.

        Raises WaitedInVain after `seconds` (the job goes on), StackFailed when the worker has died.
        """
        until = time.monotonic() + seconds
        while not self._lab._asked(self._result.ready):
            if not self._lab.stack.is_up("worker"):
                gone = "the worker has died" if self._lab._worker else "no worker is running"
                raise StackFailed(
                    f"{gone}, so nobody works on job {self.id[:8]}; its row says {self.row.state}. "
                    "lab.worker() starts one."
                )
            if time.monotonic() > until:
                last = self.events[-1].kind if self.events else "nothing"
                raise WaitedInVain(
                    f"job {self.id[:8]} is not over after {seconds:g} s; it goes on without you. Its row says "
                    f"{self.row.state}, its last event is {last!r}. Wait longer with wait(seconds=...), or look at lab.log()."
                )
            time.sleep(0.01)
        return self.row

    def __repr__(self) -> str:
        row = self.row
        progress = f", {row.done} of {row.total} done" if row.total is not None else ""
        return f"<job {self.id[:8]} {row.task}: {row.state}{progress}{f', {row.why}' if row.why else ''}>"


def require_json(kwargs: Any) -> None:
    if not isinstance(kwargs, dict) or not all(isinstance(key, str) for key in kwargs):
        raise NotSendable('kwargs is a dict of the function\'s arguments, for example kwargs={"rows": [1, 2]}.')
    for key, value in kwargs.items():
        try:
            text = stored_json({key: value})
        except (TypeError, ValueError, RecursionError) as error:
            raise NotSendable(
                f"argument {key!r} can not be sent as JSON ({error}): send text, numbers, lists, dicts."
            ) from None
        if json.loads(text) != {key: value}:
            raise NotSendable(
                f"argument {key!r} would arrive as something else: JSON turns tuples into lists and every key into text. "
                "Send lists, and dicts with text as keys."
            )
