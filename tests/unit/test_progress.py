"""The progress file: what is written comes back, whatever else is in the file and whoever else writes to it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox.learn import progress, running
from sandbox.learn.front import SESSION
from sandbox.learn.progress import Entry

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "new folder" / "mine.jsonl"
    monkeypatch.setenv(progress.ENV, str(path))
    monkeypatch.setattr(progress, "_complained", False)
    monkeypatch.setattr(progress, "_unkept", [])
    return path


def entry(minute: int = 0, **more: Any) -> Entry:
    return Entry(**{"kind": "answer", "lesson": "03", "item": "03.q1", "at": NOON + timedelta(minutes=minute)} | more)


# -- writing and reading ----------------------------------------------------------------------------------------------


def test_what_is_recorded_is_read_again(file: Path) -> None:
    """An entry comes back with its kind, lesson, item, data and moment, and `last` gives the newest of an item."""
    first = progress.record("answer", "03", "03.q1", right=False, answer=2)
    second = progress.record("answer", "03", "03.q1", right=True, answer=1)
    other = progress.record("answer", "03", "03.q2", right=True, answer="ж ∑ \n two lines")
    assert progress.entries() == [first, second, other]
    assert progress.last("answer", "03.q1") == second
    assert progress.last("check", "03.q1") is None
    assert len(file.read_text().splitlines()) == 3


@pytest.mark.parametrize("text", ["\x00\x1b[31m", "\u2028", '"\\'], ids=["control", "separator", "quotes"])
def test_any_text_can_be_recorded(file: Path, text: str) -> None:
    """Control characters and line separators come back as they were."""
    progress.record("check", "03", "03.1", status="not yet", source=text)
    (found,) = progress.entries()
    assert found.data["source"] == text


def test_half_a_character_is_recorded_and_comes_back_as_a_question_mark(file: Path) -> None:
    """Half of a surrogate pair can be typed and not be sent to a page: it costs neither the entry nor whoever reads it."""
    progress.record("check", "03", "03.1", status="not yet", source="a\udc80b", more=["\ud83d"])
    (found,) = progress.entries()
    assert (found.data["source"], found.data["more"]) == ("a?b", ["?"])


def test_an_entry_from_the_future_is_not_the_newest_for_ever(file: Path) -> None:
    """A clock that was wrong once: what is done after it counts as newer."""
    now = datetime.now(UTC)
    progress.record("answer", "03", "03.q1", at=now - timedelta(hours=1), answer=0)
    progress.record("answer", "03", "03.q1", at=now + timedelta(days=400), answer=1)
    progress.record("answer", "03", "03.q1", at=now, answer=2)
    assert progress.last("answer", "03.q1").data["answer"] == 2  # type: ignore[union-attr]


def test_a_relative_file_is_one_and_the_same_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COURSE_PROGRESS without a leading slash is meant from the course's folder, not from that of a notebook."""
    (tmp_path / "course.toml").write_text("")
    (tmp_path / "lessons").mkdir()
    monkeypatch.setenv(progress.ENV, "mine.jsonl")
    monkeypatch.delenv("COURSE_ROOT", raising=False)
    for folder in (tmp_path, tmp_path / "lessons"):
        monkeypatch.chdir(folder)
        assert progress.chosen() == tmp_path / "mine.jsonl"


def test_what_json_can_not_write_becomes_text(file: Path) -> None:
    """A value that is no JSON is kept as its text and does not stop the lesson."""
    progress.record("sliders", "03", "03.limits", values={"soft": Path("x")})
    assert progress.entries()[0].data["values"] == {"soft": "x"}


def test_a_moment_can_be_given(file: Path) -> None:
    """An entry stands at the moment that is passed in."""
    progress.record("card", "03", "worker", at=NOON, rating="good")
    assert progress.entries()[0].at == NOON


def test_entries_come_in_the_order_of_time_and_each_once(file: Path) -> None:
    """After an import a later line may be an earlier moment; a line that stands there twice counts once."""
    late, early = entry(5), entry(0)
    progress.append(file, [late, early, late])
    assert progress.entries() == [early, late]
    assert progress.last("answer", "03.q1") == late


def test_without_a_file_there_are_no_entries(file: Path) -> None:
    """Reading makes no file."""
    assert progress.entries() == [] and progress.last("opened", "") is None
    assert not file.parent.exists()


# -- damage -----------------------------------------------------------------------------------------------------------


def test_half_a_last_line_costs_only_itself(file: Path) -> None:
    """Where a machine went down in the middle of a line, the entries before it and the next one after it are read."""
    progress.append(file, [entry(0), entry(1)])
    file.write_bytes(file.read_bytes()[:-20])
    assert progress.entries() == [progress.entries()[0]]
    after = progress.record("finished", "03")
    assert [one.kind for one in progress.entries()] == ["answer", "finished"]
    assert progress.entries()[1] == after
    assert progress.read(file).passed_over == 1


GOOD = json.loads(entry().line())
NO_ENTRY = {
    "binary": bytes(range(256)).replace(b"\n", b""),
    "not JSON": b"{",
    "a list": b"[1, 2]",
    "a number": b"7",
    "deeply nested": b"[" * 100_000,
    "nothing in it": b"{}",
    "no id": json.dumps({k: v for k, v in GOOD.items() if k != "entry"}).encode(),
    "an id that is a number": json.dumps(GOOD | {"entry": 1}).encode(),
    "data that is a list": json.dumps(GOOD | {"data": []}).encode(),
    "a lesson that is null": json.dumps(GOOD | {"lesson": None}).encode(),
    "no moment": json.dumps(GOOD | {"at": "soon"}).encode(),
    "a moment without a timezone": json.dumps(GOOD | {"at": "2026-03-04T12:00:00"}).encode(),
    "a moment of no clock": json.dumps(GOOD | {"at": "9999-12-31T23:59:59+00:00"}).encode(),
}


@pytest.mark.parametrize("line", NO_ENTRY.values(), ids=NO_ENTRY)
def test_a_line_that_is_no_entry_is_passed_over(file: Path, line: bytes) -> None:
    """Whatever a line holds, the entries around it are read, and it is counted."""
    before, after = entry(0), entry(1)
    file.parent.mkdir()
    file.write_bytes(before.line().encode() + b"\n" + line + b"\n\n" + after.line().encode() + b"\n")
    assert progress.entries() == [before, after]
    assert progress.read(file).passed_over == 1


FULL = """
import resource, signal
from sandbox.learn import progress
path = progress.place()
size = path.stat().st_size
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, size + 10))
assert progress.record("opened", "03") is None
assert path.stat().st_size == size
"""


def test_a_disk_that_is_full_leaves_whole_lines(file: Path, script: Callable[..., Any]) -> None:
    """Where only a part of a line can be written, that part is taken away again, and it is said."""
    progress.append(file, [entry(0)])
    done = script(FULL)
    assert done.returncode == 0, done.stderr
    assert "Your progress is not kept" in done.stdout
    assert len(progress.entries()) == 1 and progress.read(file).passed_over == 0


# -- several at once --------------------------------------------------------------------------------------------------

ADD = """
import sys
from sandbox.learn import progress
sys.stdin.readline()
for number in range(200):
    assert progress.record("answer", "03", sys.argv[1], number=number, text="x" * 300)
print("done")
"""


def test_two_processes_at_once_lose_nothing(file: Path, owner: Callable[..., Any]) -> None:
    """Two processes that add 200 entries each at the same time leave 400 whole lines, those of each in order."""
    writers = [owner(ADD, name) for name in ("a", "b")]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.stdout.readline() == "done\n", writer.stderr.read()
    assert progress.read(file).passed_over == 0
    found = progress.entries()
    for name in ("a", "b"):
        assert [one.data["number"] for one in found if one.item == name] == list(range(200))


def test_a_lock_that_is_never_given_back_does_not_hold_a_lesson(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where another program keeps the lock, the entry is given up, and that is said."""
    progress.append(file, [entry(0)])
    monkeypatch.setattr(progress, "LOCK_SECONDS", 0.01)
    with progress._locked(file):
        assert progress.record("opened", "03") is None
    assert "another program has locked it" in capsys.readouterr().out
    assert progress.record("opened", "03") is not None


WAIT = """
import sys
from sandbox.learn import progress
lock = progress._lock
def announced(file, until):
    print("waiting", flush=True)
    lock(file, until)
progress._lock = announced
print("up", flush=True)
sys.stdin.readline()
assert progress.record("opened", "03")
print("done", flush=True)
"""


def test_an_entry_that_waited_for_a_wipe_is_not_written_into_the_removed_file(
    file: Path, owner: Callable[..., Any]
) -> None:
    """A process that waits for the lock while the file is removed writes into the new file."""
    progress.append(file, [entry(0)])
    writer = owner(WAIT)
    assert writer.stdout.readline() == "up\n"
    with progress._locked(file):
        writer.stdin.write("go\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "waiting\n", writer.stderr.read()
        file.unlink()
    assert writer.stdout.readline() == "waiting\n"
    assert writer.stdout.readline() == "done\n", writer.stderr.read()
    assert [one.kind for one in progress.entries()] == ["opened"]


# -- where nothing can be or should be written ------------------------------------------------------------------------


def unwritable(tmp_path: Path, kind: str) -> Path:
    if kind == "a folder":
        return tmp_path
    if kind == "below a file":
        (tmp_path / "file").write_text("")
        return tmp_path / "file" / "progress.jsonl"
    if kind == "a pipe":
        os.mkfifo(tmp_path / "pipe")
        return tmp_path / "pipe"
    return tmp_path / ("x" * 300)


@pytest.mark.parametrize("kind", ["a folder", "below a file", "a pipe", "a name that is too long"])
def test_a_file_that_can_not_be_written_stops_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """A lesson goes on, is told so once, with what to set, and reads no entries."""
    path = unwritable(tmp_path, kind)
    monkeypatch.setenv(progress.ENV, str(path))
    assert progress.record("opened", "03") is None
    assert progress.record("finished", "03") is None
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert said.startswith(f"Your progress is not kept: {path}: ") and progress.ENV in said
    assert progress.entries() == []
    assert [one.kind for one in progress.unkept()] == ["opened", "finished"]


DENIED = """
import os
from sandbox.learn import progress
if os.geteuid() == 0:  # who may write anywhere
    os.setuid(65534)
assert progress.record("opened", "03") is None
"""


def test_a_folder_without_permission_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, script: Callable[..., Any], lab_folders: Path
) -> None:
    """A user who may not write there goes on, and is told why nothing is kept."""
    closed = lab_folders / "closed"
    closed.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setenv(progress.ENV, str(closed / "progress.jsonl"))
    done = script(DENIED)
    assert done.returncode == 0, done.stderr
    assert "Your progress is not kept" in done.stdout and "Permission denied" in done.stdout


@pytest.mark.parametrize("word", ["off", "OFF", " Off "])
def test_off_records_nothing(file: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """With COURSE_PROGRESS=off no file is made; what happened is remembered until the kernel ends."""
    monkeypatch.setenv(progress.ENV, word)
    assert progress.place() is None and progress.chosen() is None
    assert progress.record("opened", "03") is None
    assert progress.entries() == [] and not file.exists()
    assert [one.kind for one in progress.unkept()] == ["opened"]


def test_what_was_not_kept_in_one_place_is_not_of_another(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kernel remembers instead of writing it is of the place it was meant for."""
    monkeypatch.setenv(progress.ENV, "off")
    progress.record("opened", "03")
    monkeypatch.setenv(progress.ENV, str(file))
    assert progress.unkept() == []


def test_without_a_setting_only_a_person_is_recorded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs a notebook leaves no trace, even though a terminal would find the learner's file."""
    monkeypatch.delenv(progress.ENV)
    assert progress.place() is None
    assert progress.chosen() == progress.home()
    assert progress.home().name == "progress.jsonl"


def test_a_home_that_is_not_known_is_taken_as_it_stands(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file under `~nobody-of-this-name` is a path and not an error."""
    monkeypatch.setenv(progress.ENV, "~no-such-user-here/p.jsonl")
    place = progress.place()
    assert place is not None and place.parts[-2:] == ("~no-such-user-here", "p.jsonl")


KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
NOTEBOOK = """
import os
from sandbox.learn import progress
progress.record("finished", "03")
assert progress.place() is None, progress.place()
"""


def test_a_check_of_the_course_records_nothing(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook that `course check` runs leaves no trace in the file of whoever runs it, not even from a notebook."""
    monkeypatch.setenv(SESSION, "lessons/03.ipynb")
    cell = {"cell_type": "code", "metadata": {}, "source": NOTEBOOK, "outputs": [], "execution_count": None}
    path = tmp_path / "one.ipynb"
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": KERNEL}, "cells": [cell]})
    )
    target = running.Target(name="one", kind="lesson", path=path, kept=tmp_path / "kept" / "one.ipynb")
    (result,) = running.run_all([target], jobs=1, timeout_seconds=120)
    assert result.passed, result.error
    assert not file.exists()


# -- copies -----------------------------------------------------------------------------------------------------------


def test_a_merge_adds_what_is_new_and_changes_nothing(file: Path, tmp_path: Path) -> None:
    """Entries that are there already, by their id, are not added again; new ones are, in the order of time."""
    mine, both, new, newer = entry(1), entry(2), entry(0), entry(3)
    progress.append(file, [mine, both])
    before = file.read_bytes()
    copy = tmp_path / "copy.jsonl"
    progress.append(copy, [newer, both, new])
    assert progress.merge(progress.read(copy), file) == 2
    assert progress.entries() == [new, mine, both, newer]
    assert file.read_bytes().startswith(before)
    assert [json.loads(line)["entry"] for line in file.read_text().splitlines()[2:]] == [new.entry, newer.entry]
    assert progress.merge(progress.read(copy), file) == 0


def test_a_merge_into_a_file_that_ends_in_half_a_line_keeps_all(file: Path, tmp_path: Path) -> None:
    """The half line stays alone on its line."""
    progress.append(file, [entry(0)])
    file.write_bytes(file.read_bytes() + b'{"entry": "x')
    copy = tmp_path / "copy.jsonl"
    progress.append(copy, [entry(1)])
    assert progress.merge(progress.read(copy), file) == 1
    assert len(progress.entries()) == 2 and progress.read(file).passed_over == 1


def test_the_line_of_a_later_version_travels_as_it_is(file: Path, tmp_path: Path) -> None:
    """A kind and fields that are not known here are not shown, and a copy keeps them."""
    later = json.dumps(GOOD | {"entry": "later", "kind": "badge", "colour": "green"})
    copy = tmp_path / "copy.jsonl"
    copy.write_text(later + "\n")
    assert progress.merge(progress.read(copy), file) == 1
    assert later in file.read_text().splitlines()
    assert progress.entries() == []


def test_wiped_means_gone(file: Path) -> None:
    """The file and what the kernel remembers are gone, and the next entry begins a new file."""
    progress.record("opened", "03")
    progress.wipe(file)
    assert not file.exists() and progress.entries() == []
    progress.wipe(file)
    progress.record("finished", "03")
    assert [one.kind for one in progress.entries()] == ["finished"]


def test_a_wipe_reaches_through_a_link(file: Path, tmp_path: Path) -> None:
    """Where the file is a link, the entries go that it leads to."""
    real = tmp_path / "real.jsonl"
    progress.append(real, [entry()])
    file.parent.mkdir()
    file.symlink_to(real)
    progress.wipe(file)
    assert not real.exists()
