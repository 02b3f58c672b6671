"""The event ledger: what happened to a job, in the order in which it happened.

A file of JSON lines, written with ``O_APPEND``, one ``write`` a line, so that the worker's parent, its children and
a signal handler can all write to it and every reader sees whole lines in one order. It needs no connection, so it
still tells the truth when the database can not be reached or a transaction is rolled back.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.errors import BadSetting

KINDS = {
    "queued": "the message was sent",
    "accepted": "a worker process took the message; from here the limits count",
    "started": "the row went from pending to running",
    "soft signal": "the soft limit's signal was delivered, at the line given",
    "caught": "an except clause of the task caught the signal",
    "swallowed": "the signal was delivered, yet its exception never left the task",
    "item done": "one item of the batch is finished",
    "item failed": "one item of the batch was given up",
    "committed": "a write of the task was committed",
    "finished": "the row reached a terminal state",
    "returned": "the attempt is over: the task function returned or raised",
    "killed": "the worker's parent saw the process die, or killed it at the hard limit",
}
HEAD_BYTES = 64  # of a ledger, enough to hold the moment of its first event


@dataclass(frozen=True, kw_only=True)
class Event:
    seq: int  # place in the ledger, from 0
    at: float  # seconds since the epoch, the machine's clock
    kind: str
    job: str | None
    pid: int
    data: dict[str, Any] = field(default_factory=dict)


def _checked(kind: str, event: dict[str, Any]) -> str:
    if kind not in KINDS:
        raise BadSetting(f"{kind!r} is not a kind of event; the kinds are {', '.join(KINDS)}.")
    try:
        return json.dumps(event)
    except (TypeError, ValueError) as error:
        raise BadSetting(f"an event's data must be JSON: {error}") from None


def _parsed(lines: list[bytes], seq: int = 0) -> Iterator[Event]:
    """The events of these lines, numbered from `seq`.

    Counted by event, not by line: a writer that meets another in the middle of its write leaves an empty line.
    """
    for line in lines:
        try:
            event = Event(seq=seq, **json.loads(line))
        except (ValueError, TypeError):
            continue
        seq += 1
        yield event


class Ledger:
    """The ledger in the file `path`; created by the first event."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def append(self, kind: str, job: str | None = None, /, **data: Any) -> None:
        """Write one event. Raises BadSetting for an unknown kind or for data that is not JSON."""
        event = {"at": time.time(), "kind": kind, "job": job, "pid": os.getpid(), "data": data}
        line = _checked(kind, event).encode() + b"\n"
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(handle).st_size
            # Behind a line that was cut off ours would be lost with it. (Another's write that is under way looks like one,
            # too; then a line stays empty.)
            if size and os.pread(handle, 1, size - 1) not in (b"\n", b""):
                line = b"\n" + line
            os.write(handle, line)
        finally:
            os.close(handle)

    def read(self, job: str | None = None, kind: str | None = None) -> list[Event]:
        """The events in order, those of one job or one kind where asked. A line cut off by a crash is left out."""
        return [e for e in self._events() if (job is None or e.job == job) and (kind is None or e.kind == kind)]

    def _events(self) -> Iterator[Event]:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        yield from _parsed(lines)

    def clear(self) -> None:
        """Forget every event; writers go on at the start of the file."""
        if self.path.exists():
            os.truncate(self.path, 0)


class Tail:
    """Reads the ledger in the file `path` while it grows, each byte once. For one reader; writers need not know of it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._forget()

    def _forget(self) -> None:
        self._offset = self._seq = 0
        self._head = b""  # how the ledger began when we first read it

    def news(self) -> tuple[bool, list[Event]]:
        """Whether the ledger was cleared since the last call, and the events since then (all of them, if it was).

        A line that has no end yet is left for the next call. A ledger that is not there is an empty one.
        """
        try:
            handle = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            cleared = self._offset > 0
            self._forget()
            return cleared, []
        try:
            # The beginning holds a moment of its own, so one that was cleared and has grown past our place shows, too.
            cleared = os.pread(handle, len(self._head), 0) != self._head
            if cleared:
                self._forget()
            size = os.fstat(handle).st_size
            text = os.pread(handle, max(0, size - self._offset), self._offset)
        finally:
            os.close(handle)
        whole = text[: text.rfind(b"\n") + 1]
        if not self._head:
            self._head = whole[:HEAD_BYTES]
        self._offset += len(whole)
        events = list(_parsed(whole.split(b"\n"), self._seq))
        self._seq += len(events)
        return cleared, events


class MemoryLedger(Ledger):
    """A ledger in a list, for checks that need no worker. `clock` returns seconds."""

    def __init__(self, clock: Any = time.time) -> None:
        self._clock = clock
        self._list: list[Event] = []

    def append(self, kind: str, job: str | None = None, /, **data: Any) -> None:
        data = json.loads(_checked(kind, data))
        event = Event(seq=len(self._list), at=self._clock(), kind=kind, job=job, pid=os.getpid(), data=data)
        self._list.append(event)

    def _events(self) -> Iterator[Event]:
        yield from self._list

    def clear(self) -> None:
        self._list.clear()
