"""What a learner has done: a file of JSON lines that is only ever added to.

It lies in the learner's user data folder. Widgets are rebuilt from it after a kernel restart, and points, streak and
what is due follow from it (``sandbox/learn/points.py``). ``COURSE_PROGRESS`` names another file, or is ``off``. Without it,
something is recorded only where a person has the notebook open: papermill, nbval and nbgrader leave no trace.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from sandbox.errors import BadSetting
from sandbox.learn.catalog import find_root
from sandbox.learn.front import person_watches

ENV = "COURSE_PROGRESS"
OFF = "off"
SLACK = timedelta(minutes=5)  # two machines' clocks do not agree to the second
# The lock is held for milliseconds. Whoever holds it this long is stopped, and a lesson does not wait for that.
LOCK_SECONDS = 5.0
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
        return json.dumps(fields | {"item": self.item, "data": self.data}, ensure_ascii=False, default=str)

    @classmethod
    def parse(cls, line: str) -> Entry | None:
        """The entry of a line; None for one that is none: half a line, or a kind of a later version."""
        found = cls._of_any_kind(line)
        return found if found is not None and found.kind in KINDS else None

    @classmethod
    def _of_any_kind(cls, line: str) -> Entry | None:
        try:
            # What JSON can write and no text can hold, half of a surrogate pair, is replaced.
            found = json.loads(json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace"))
            at = datetime.fromisoformat(found["at"])
            kind, lesson, item, data = found["kind"], found["lesson"], found["item"], found["data"]
            texts = all(isinstance(value, str) for value in (found["entry"], kind, lesson, item))
            # Outside of these years it is no clock's, and the next review of a card might have no date.
            if not texts or not isinstance(data, dict) or at.tzinfo is None or not 1970 <= at.year < 3000:
                return None
            return cls(entry=found["entry"], at=at, kind=kind, lesson=lesson, item=item, data=data)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


_complained = False
_unkept: list[tuple[Path | None, Entry]] = []  # and the file each was meant for


def place() -> Path | None:
    """The file, whether it is there or not; None when nothing is to be recorded here."""
    if os.environ.get(ENV, "").strip():
        return chosen()
    return home() if person_watches() else None


def chosen() -> Path | None:
    """The file of whoever asks for it, as the `course` command does: COURSE_PROGRESS, else ``home``; None for "off"."""
    named = os.environ.get(ENV, "").strip()
    if not named:
        return home()
    if named.lower() == OFF:
        return None
    path = Path(named)
    with contextlib.suppress(RuntimeError):  # ~somebody who is not known here
        path = path.expanduser()
    # From the course's folder, or a lesson, an exercise and a terminal would each have a file of their own.
    return path if path.is_absolute() else _root() / path


def _root() -> Path:
    try:
        return find_root()
    except BadSetting:
        return Path.cwd()


def home() -> Path:
    """Where the file lies when nobody has said otherwise."""
    from platformdirs import user_data_path

    return user_data_path("always-ends", appauthor=False) / "progress.jsonl"


def record(kind: str, lesson: str, item: str = "", *, at: datetime | None = None, **data: Any) -> Entry | None:
    """Add one entry; None where nothing is recorded. A file that can not be written never stops a lesson.

    What is not written is remembered until the kernel ends: ``unkept``.
    """
    global _complained
    assert kind in KINDS, kind
    path = place()
    entry = Entry(kind=kind, lesson=lesson, item=item, data=data, at=at or datetime.now(UTC))
    if path is None:
        _unkept.append((path, entry))
        return None
    try:
        append(path, [entry])
    except OSError as error:
        _unkept.append((path, entry))
        if not _complained:
            _complained = True
            print(f"Your progress is not kept: {path}: {error.strerror}. Set {ENV} to a file you can write.")
        return None
    return entry


def unkept() -> list[Entry]:
    """What would stand in the file as well if it were written: the cards go on by it where nothing is recorded."""
    path = place()
    return [entry for meant_for, entry in _unkept if meant_for == path]


def append(path: Path, entries: Sequence[Entry]) -> None:
    """Add entries in one write, under a lock, so that two notebooks do not lose each other's. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path) as file:
        _add(file, [entry.line() for entry in entries])


def _add(file: IO[bytes], lines: Sequence[str]) -> None:
    # A machine that went down in the middle of a line must not cost the next one.
    end = file.seek(0, os.SEEK_END)
    whole = True
    if end:
        file.seek(end - 1)
        whole = file.read(1) == b"\n"
    # Half of a character pair, which a learner's text may hold, is written the way JSON writes it.
    text = ("" if whole else "\n") + "".join(line + "\n" for line in lines)
    data = text.encode("utf-8", "backslashreplace")
    if file.write(data) != len(data):
        file.truncate(end)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    until = time.monotonic() + LOCK_SECONDS
    while True:
        with open(path, "ab+", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "this is not a regular file")
            _lock(file, until)  # released when the file is closed
            # While this waited, `wipe` may have removed the file: what is written into it then is gone.
            try:
                there = os.path.samestat(os.fstat(file.fileno()), path.stat())
            except FileNotFoundError:
                there = False
            if there:
                yield file
                return


def _lock(file: IO[bytes], until: float) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise OSError(errno.EAGAIN, "another program has locked it") from None
            time.sleep(0.005)
        except OSError:
            return  # a file system without locks: one write with O_APPEND has to do


_read: tuple[Path, int, int, list[Entry]] | None = None


def entries(path: Path | None = None) -> list[Entry]:
    """All entries, in the order of time; lines that are none are passed over. Empty without a file."""
    global _read
    path = path or place()
    if path is None:
        return []
    try:
        about = path.stat()
        if _read and _read[:3] == (path, about.st_mtime_ns, about.st_size):
            return list(_read[3])
        found = [entry for entry in read(path).entries if entry.kind in KINDS]
    except OSError:
        return []
    _read = (path, about.st_mtime_ns, about.st_size, found)
    return list(found)


def last(kind: str, item: str) -> Entry | None:
    """The newest entry of this kind for this item.

    What a clock has put into the future is older than all that is not: it would be the newest for ever.
    """
    found = [entry for entry in entries() if entry.kind == kind and entry.item == item]
    now = datetime.now(UTC) + SLACK
    return next((entry for entry in reversed(found) if entry.at <= now), found[-1] if found else None)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a file holds: each entry once, also of kinds that only a later version knows."""

    in_file: list[Entry]  # in the order of the file
    lines: dict[str, str]  # entry id -> its line as it stands there: a copy loses no field that is not known here
    passed_over: int  # lines that are no entry

    @property
    def entries(self) -> list[Entry]:
        """In the order of time."""
        return sorted(self.in_file, key=lambda entry: entry.at)


def read(path: Path) -> Contents:
    """Read a file of entries. Raises OSError."""
    if path.exists() and not path.is_dir() and not path.is_file():
        raise OSError(errno.EINVAL, "this is not a regular file", str(path))
    found: dict[str, Entry] = {}
    lines: dict[str, str] = {}
    passed_over = 0
    for data in path.read_bytes().split(b"\n"):
        line = data.decode("utf-8", "replace").strip()
        if not line:
            continue
        entry = Entry._of_any_kind(line)
        if entry is None:
            passed_over += 1
        elif entry.entry not in found:
            found[entry.entry], lines[entry.entry] = entry, line
    return Contents(in_file=list(found.values()), lines=lines, passed_over=passed_over)


def merge(given: Contents, path: Path) -> int:
    """Add the entries of another file that the one at `path` does not have; returns how many. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path) as file:
        there = read(path).lines
        new = [given.lines[entry.entry] for entry in given.entries if entry.entry not in there]
        if new:
            _add(file, new)
    return len(new)


def wipe(path: Path) -> None:
    """Remove the file, and what this kernel remembers beside it. Raises OSError."""
    _unkept.clear()
    if path.exists():
        with _locked(path):
            path.resolve().unlink()  # not a link to it


__all__ = [
    "ENV",
    "KINDS",
    "OFF",
    "Contents",
    "Entry",
    "append",
    "chosen",
    "entries",
    "home",
    "last",
    "merge",
    "place",
    "read",
    "record",
    "unkept",
    "wipe",
]
