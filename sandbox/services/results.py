"""Celery's Redis result backend without its standing subscription."""

from __future__ import annotations

import contextlib
from typing import Any

from celery.backends.redis import RedisBackend


class PolledBackend(RedisBackend):
    """Asks for results; listens for them only inside ``result.get()``.

    Celery subscribes for every result when a task is sent, and unsubscribes when the result object is destroyed. After
    the lab has closed that finds no server: twenty tries, one a second, and a traceback on the notebook's stderr.
    """

    def on_task_call(self, producer: Any, task_id: str) -> None:
        """Nothing: no result is listened for yet."""

    def remove_pending_result(self, result: Any) -> Any:
        """Called by a result's destructor, where an error can only be printed."""
        with contextlib.suppress(Exception):
            return super().remove_pending_result(result)
        return result
