"""The event ledger: whole lines in one order, whoever writes and however a writer ends."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from sandbox.errors import BadSetting
from sandbox.jobs import KINDS, Ledger, MemoryLedger

WRITERS, EVENTS = 6, 200


def _write_many(path: str, writer: int) -> None:
    ledger = Ledger(path)
    for index in range(EVENTS):
        ledger.append("item done", f"job {writer}", index=index, padding="x" * (index * 7 % 900))


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl") if request.param == "file" else MemoryLedger()


def test_many_processes_write_whole_lines(tmp_path: Path) -> None:
    """Every event of processes that write at once is there, whole, and each writer's are in its own order."""
    path = str(tmp_path / "ledger.jsonl")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(path, n)) for n in range(WRITERS)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    events = Ledger(path).read()
    assert len(events) == WRITERS * EVENTS
    assert [event.seq for event in events] == list(range(WRITERS * EVENTS))
    for n in range(WRITERS):
        assert [event.data["index"] for event in events if event.job == f"job {n}"] == list(range(EVENTS))


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """A writer that died in the middle of a line costs that line and no other, before or after it."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append("queued", "a")
    with open(ledger.path, "ab") as file:
        file.write(b'{"at": 12.5, "kind": "sta')
    assert [event.kind for event in ledger.read()] == ["queued"]
    ledger.append("finished", "a")
    assert [event.kind for event in ledger.read()] == ["queued", "finished"]


@pytest.mark.parametrize("line", [b"", b"null", b"[]", b"{}", b'{"at": 1}', b'"text"', b"\xff\xfe", b'{"zoo": 1}'])
def test_a_line_that_is_no_event_is_left_out(tmp_path: Path, line: bytes) -> None:
    """Reading goes on past whatever else stands in the file."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append("queued", "a")
    with open(ledger.path, "ab") as file:
        file.write(line + b"\n")
    ledger.append("finished", "a")
    assert [event.kind for event in ledger.read()] == ["queued", "finished"]


def test_an_unknown_kind_is_refused_with_the_kinds_there_are(ledger: Ledger) -> None:
    """The message lists every kind, and nothing is written."""
    with pytest.raises(BadSetting) as caught:
        ledger.append("exploded")
    assert all(kind in str(caught.value) for kind in KINDS)
    assert ledger.read() == []


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", {(1, 2): 3}])
def test_data_that_is_not_json_is_refused(ledger: Ledger, value: object) -> None:
    """Nothing is written for it."""
    with pytest.raises(BadSetting, match="JSON"):
        ledger.append("queued", "a", value=value)
    assert ledger.read() == []


def test_data_may_use_the_names_of_an_events_own_fields(ledger: Ledger) -> None:
    """An event keeps its own moment, kind, job and process beside data of the same names."""
    ledger.append("queued", "a", at="x", kind="y", job="z", pid=0, seq=-1, data={"self": 1})
    (event,) = ledger.read()
    assert (event.seq, event.kind, event.job, event.pid) == (0, "queued", "a", os.getpid())
    assert event.at > 1_600_000_000
    assert event.data == {"at": "x", "kind": "y", "job": "z", "pid": 0, "seq": -1, "data": {"self": 1}}


def test_reading_by_job_and_by_kind(ledger: Ledger) -> None:
    """Both narrow what is read, alone and together."""
    for kind, job in (("queued", "a"), ("queued", "b"), ("started", "a"), ("killed", None)):
        ledger.append(kind, job)
    assert [event.kind for event in ledger.read("a")] == ["queued", "started"]
    assert [event.job for event in ledger.read(kind="queued")] == ["a", "b"]
    assert [event.seq for event in ledger.read("a", "started")] == [2]


def test_clearing_starts_again_at_zero(ledger: Ledger) -> None:
    """After it the next event is the first, also for a writer that has written before."""
    ledger.append("queued", "a")
    ledger.clear()
    assert ledger.read() == []
    ledger.append("started", "b")
    assert [(event.seq, event.kind) for event in ledger.read()] == [(0, "started")]


def test_a_ledger_without_a_file_is_empty(tmp_path: Path) -> None:
    """Reading and clearing before the first event are no errors."""
    ledger = Ledger(tmp_path / "none.jsonl")
    ledger.clear()
    assert ledger.read() == []


def test_text_of_every_kind_comes_back_as_it_was(ledger: Ledger) -> None:
    """Line ends, NUL, quotes and letters of any script do not disturb the lines."""
    text = "a\nb\r\n\0 \u2028 \" ' Ж 🙂"
    ledger.append("item failed", "a", error=text)
    assert ledger.read()[0].data == {"error": text}


def test_only_its_owner_may_read_the_file(tmp_path: Path) -> None:
    """The file is closed to other users of the machine."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append("queued", "a")
    assert ledger.path.stat().st_mode & 0o077 == 0
    assert json.loads(ledger.path.read_text())["kind"] == "queued"
