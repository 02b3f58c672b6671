"""What a learner has done: a file of JSON lines that is only ever added to.

It lies in the learner's user data folder. Widgets are rebuilt from it after a kernel restart, and points, streak and
what is due follow from it (``sandbox/learn/points.py``). ``COURSE_PROGRESS`` names another file, or is ``off``. Without it,
something is recorded only where a person has the notebook open: papermill, nbval and nbgrader leave no trace.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from sandbox.learn.front import person_watches

ENV = "COURSE_PROGRESS"
OFF = "off"
KINDS = {
    "opened": "a lesson's notebook was begun",
    "finished": "a lesson ran to its end, every job of it in a terminal state",
    "answer": "a practice item was answered: `right`, `answer`",
    "check": "an exercise was checked: `status`, `source` (the text that was checked)",
    "hint": "a hint was opened: `step`, from 1",
    "solution": "a solution was looked at",
    "card": "a flashcard was reviewed: `rating`",
    "sliders": "the numbers of a lesson were moved: `values`, and `base`, the notebook's own",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the file."""

    kind: str  # one of KINDS
    lesson: str  # two digits
    item: str = ""  # the id of the exercise, practice item or glossary term
    data: dict[str, Any] = field(default_factory=dict)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    entry: str = field(default_factory=lambda: uuid.uuid4().hex)  # what tells it from its copy in an export

    def line(self) -> str:
        fields = {"entry": self.entry, "at": self.at.isoformat(), "kind": self.kind, "lesson": self.lesson}
        return json.dumps(fields | {"item": self.item, "data": self.data}, ensure_ascii=False)

    @classmethod
    def parse(cls, line: str) -> Entry | None:
        """The entry of a line; None for one that is none: half a line, or a kind of a later version."""
        try:
            found = json.loads(line)
            at = datetime.fromisoformat(found["at"])
            kind, lesson, item, data = found["kind"], found["lesson"], found["item"], found["data"]
            texts = all(isinstance(value, str) for value in (found["entry"], kind, lesson, item))
            if not texts or not isinstance(data, dict) or kind not in KINDS or at.tzinfo is None:
                return None
            return cls(entry=found["entry"], at=at, kind=kind, lesson=lesson, item=item, data=data)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


_complained = False


def place() -> Path | None:
    """The file, whether it is there or not; None when nothing is to be recorded here."""
    named = os.environ.get(ENV, "").strip()
    if named:
        return None if named.lower() == OFF else Path(named).expanduser()
    return home() if person_watches() else None


def home() -> Path:
    """Where the file lies when nobody has said otherwise."""
    from platformdirs import user_data_path

    return user_data_path("always-ends", appauthor=False) / "progress.jsonl"


def record(kind: str, lesson: str, item: str = "", **data: Any) -> Entry | None:
    """Add one entry; None where nothing is recorded. A file that can not be written never stops a lesson."""
    global _complained
    assert kind in KINDS, kind
    path = place()
    if path is None:
        return None
    entry = Entry(kind=kind, lesson=lesson, item=item, data=data)
    try:
        append(path, [entry])
    except OSError as error:
        if not _complained:
            _complained = True
            print(f"Your progress is not kept: {path}: {error.strerror}. Set {ENV} to a file you can write.")
        return None
    return entry


def append(path: Path, entries: list[Entry]) -> None:
    """Add entries in one write, under a lock, so that two notebooks do not lose each other's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path) as file:
        # A machine that went down in the middle of a line must not cost the next one.
        end = file.seek(0, os.SEEK_END)
        whole = True
        if end:
            file.seek(end - 1)
            whole = file.read(1) == b"\n"
        file.write((b"" if whole else b"\n") + "".join(entry.line() + "\n" for entry in entries).encode())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    with open(path, "ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
        yield file


_read: tuple[Path, int, int, list[Entry]] | None = None


def entries(path: Path | None = None) -> list[Entry]:
    """All entries, in the order of the file; lines that are none are passed over. Empty without a file."""
    global _read
    path = path or place()
    if path is None:
        return []
    try:
        about = path.stat()
        if _read and _read[:3] == (path, about.st_mtime_ns, about.st_size):
            return list(_read[3])
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    found = [entry for line in lines if (entry := Entry.parse(line.decode("utf-8", "replace"))) is not None]
    _read = (path, about.st_mtime_ns, about.st_size, found)
    return list(found)


def last(kind: str, item: str) -> Entry | None:
    """The newest entry of this kind for this item."""
    return next((entry for entry in reversed(entries()) if entry.kind == kind and entry.item == item), None)


__all__ = ["ENV", "KINDS", "OFF", "Entry", "append", "entries", "home", "last", "place", "record"]
