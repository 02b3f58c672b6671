"""``course progress`` and its export, import and wipe, on a course and a file of the test's own."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox.cli import main
from sandbox.learn import content, points, progress
from sandbox.learn.progress import Entry

TOML = """
title = "t"
[[lesson]]
number = "00"
slug = "intro"
title = "Begin [bold]here"
question = "q"
minutes = 10
[[lesson]]
number = "03"
slug = "loop"
title = "Loop"
question = "q"
minutes = 35
[[lesson.exercise]]
id = "03.1"
title = "t"
graded = "auto"
points = 2
"""
NOW = datetime.now(UTC)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "course"
    (root / content.FOLDER).mkdir(parents=True)
    (root / "course.toml").write_text(TOML)
    (root / content.FOLDER / "glossary.toml").write_text(
        '[[term]]\nname = "worker"\ntext = "t"\nlesson = "03"\n', encoding="utf-8"
    )
    monkeypatch.setenv("COURSE_ROOT", str(root))
    path = tmp_path / "data" / "progress.jsonl"
    monkeypatch.setenv(progress.ENV, str(path))
    return path


@pytest.fixture
def filled(file: Path) -> Path:
    """Three entries, of which the file's order is not the order of time."""
    progress.append(
        file,
        [
            Entry(kind="finished", lesson="03", at=NOW - timedelta(minutes=1)),
            Entry(kind="opened", lesson="03", at=NOW - timedelta(minutes=4)),
            Entry(kind="hint", lesson="03", item="03.1", data={"step": 1}, at=NOW),
        ],
    )
    return file


Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def course(capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command; its exit code, stdout and stderr."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = main(["progress", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def refused(answer: tuple[int, str, str]) -> str:
    """The one sentence of a command that failed."""
    code, out, err = answer
    assert code == 1 and out == ""
    assert err.startswith("course: ") and err.count("\n") == 1
    return err


# -- the overview -----------------------------------------------------------------------------------------------------


def test_the_overview_shows_each_lesson_and_the_rule(filled: Path, course: Said) -> None:
    """Points, streak, reviews, what is next, every lesson, the rule, and where the file is."""
    code, out, err = course()
    assert code == 0 and err == ""
    for words in ("Begin [bold]here", "Loop", "finished", "not begun", "0 of 1", "4 of about 35"):
        assert words in out
    assert "10 points, " in out and " in a row. 1 card to review: worker." in out
    assert "Next: open lesson 00, Begin [bold]here." in out
    assert points.FREE in out and points.MINUTES_RULE in out and f"Kept in {filled}.\n" in out
    for rule in points.RULE:
        assert rule.what in out


def test_the_overview_as_json_is_json_alone(filled: Path, course: Said) -> None:
    """Every number of the table is there under a name."""
    code, out, _ = course("--json")
    found = json.loads(out)
    assert code == 0
    assert (found["file"], found["entries"], found["points"], found["due"]) == (str(filled), 3, 10, ["worker"])
    assert found["rule"][0] == {"points": 10, "what": points.RULE[0].what, "times": 1}
    assert found["lessons"][1] == {
        "number": "03",
        "title": "Loop",
        "state": "finished",
        "practice_right": 0,
        "practice_items": 0,
        "exercises_passed": 0,
        "exercises": 1,
        "hints_opened": 1,
        "minutes": 4.0,
    }


def test_before_anything_was_done_the_overview_is_empty_and_makes_no_file(file: Path, course: Said) -> None:
    """Looking is no entry."""
    code, out, _ = course()
    assert code == 0 and "0 points, no streak yet." in out and "which is not there yet" in out
    assert not file.exists()


def test_lines_that_are_no_entry_are_told(filled: Path, course: Said) -> None:
    """A file that is partly damaged is shown, and its bad lines are counted."""
    filled.write_bytes(filled.read_bytes() + b"\xff\xfe\nhalf a li")
    code, out, _ = course()
    assert code == 0 and "10 points" in out and "2 lines of it were no entry and passed over." in out


def test_without_a_setting_the_usual_file_is_meant(filled: Path, course: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal is no notebook, and still finds what notebooks have recorded."""
    monkeypatch.delenv(progress.ENV)
    monkeypatch.setattr(progress, "home", lambda: filled)
    assert json.loads(course("--json")[1])["due"] == ["worker"]


def test_with_the_file_off_every_command_says_so(course: Said, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking is no failure; what needs a file is."""
    monkeypatch.setenv(progress.ENV, "off")
    assert course() == (0, "Nothing is recorded: COURSE_PROGRESS is off. Unset it, or set it to a file.\n", "")
    assert json.loads(course("--json")[1]) == {"file": None}
    for arguments in (("export", "x"), ("import", filled), ("wipe", "--yes")):
        assert "COURSE_PROGRESS is off" in refused(course(*arguments))
    assert filled.exists()


def test_json_goes_with_the_overview_alone(filled: Path, course: Said) -> None:
    """With a command of the group it is a mistake in what was typed, and nothing happens."""
    code, _, err = course("--json", "wipe", "--yes")
    assert code == 2 and "--json" in err and filled.exists()


# -- export -----------------------------------------------------------------------------------------------------------


def test_an_export_is_in_the_order_of_time_and_comes_back(filled: Path, course: Said, tmp_path: Path) -> None:
    """Exported, wiped and imported, the same entries are there."""
    copy = tmp_path / "copy ж.jsonl"
    before = progress.entries(filled)
    assert course("export", copy) == (0, f"Wrote 3 entries to {copy}.\n", "")
    assert [json.loads(line)["kind"] for line in copy.read_text().splitlines()] == ["opened", "finished", "hint"]
    assert course("wipe", "--yes")[0] == 0
    assert course("import", copy) == (0, "3 entries new, 0 there already.\n", "")
    assert progress.entries(filled) == before


def test_an_export_does_not_replace_unless_told(filled: Path, course: Said, tmp_path: Path) -> None:
    """A file that is there stays as it is without --force."""
    copy = tmp_path / "copy"
    copy.write_text("mine")
    assert "--force" in refused(course("export", copy))
    assert copy.read_text() == "mine"
    assert course("export", copy, "--force")[0] == 0
    assert len(copy.read_text().splitlines()) == 3


def test_an_export_leaves_bad_lines_behind_and_says_so(filled: Path, course: Said, tmp_path: Path) -> None:
    """The copy holds whole lines; those of a later version are among them."""
    later = json.dumps(json.loads(filled.read_text().splitlines()[0]) | {"entry": "e", "kind": "badge", "new": 1})
    filled.write_text(filled.read_text() + later + "\nhalf a li")
    copy = tmp_path / "copy"
    assert course("export", copy) == (
        0,
        f"Wrote 4 entries to {copy}. 1 line of it was no entry and passed over.\n",
        "",
    )
    assert later in copy.read_text().splitlines()


def test_an_export_into_nowhere_is_one_sentence(filled: Path, course: Said, tmp_path: Path) -> None:
    """A folder, a missing folder, a pipe, a name that is too long, or the file itself: it is said, nothing is written."""
    os.mkfifo(tmp_path / "pipe")
    link = tmp_path / "link"
    link.symlink_to(filled)
    before = filled.read_bytes()
    for target, says in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "copy", "there is no folder"),
        (filled / "copy", "there is no folder"),
        (tmp_path / "pipe", "is not a regular file"),
        (filled, "is the file itself"),
        (link, "is the file itself"),
        (tmp_path / ("x" * 300), "ame too long"),
    ):
        assert says in refused(course("export", target, "--force"))
    assert filled.read_bytes() == before


def test_there_is_nothing_to_export_before_there_is_something(file: Path, course: Said, tmp_path: Path) -> None:
    """Neither without a file nor with one that holds no entry is a copy made."""
    copy = tmp_path / "copy"
    assert "nothing to export" in refused(course("export", copy))
    file.parent.mkdir()
    file.write_text("rubbish\n")
    assert "nothing to export" in refused(course("export", copy))
    assert not copy.exists()


DENIED = """
import os, sys
from sandbox.cli import main
import click, sandbox.cli.app, sandbox.learn.notebooks, sandbox.learn.panel
if os.geteuid() == 0:  # who may write anywhere
    os.setuid(65534)
sys.exit(main(["progress", *sys.argv[1:]]))
"""


def test_without_permission_each_command_is_one_sentence(
    lab_folders: Path, monkeypatch: pytest.MonkeyPatch, script: Callable[..., Any]
) -> None:
    """A folder in which you may not write stops export, import and wipe with the reason, and nothing changes."""
    closed = lab_folders / "closed"
    closed.mkdir()
    mine, other = closed / "progress.jsonl", lab_folders / "other.jsonl"
    progress.append(mine, [Entry(kind="opened", lesson="03")])
    progress.append(other, [Entry(kind="finished", lesson="03")])
    mine.chmod(0o444)
    closed.chmod(0o555)
    before = mine.read_bytes()
    monkeypatch.setenv(progress.ENV, str(mine))
    try:
        for arguments in (("export", str(closed / "copy")), ("import", str(other)), ("wipe", "--yes")):
            done = script(DENIED, *arguments)
            assert done.returncode == 1, done.stderr
            assert done.stderr.startswith("course: ") and done.stderr.count("\n") == 1
            assert "Permission denied" in done.stderr
        assert mine.read_bytes() == before and not (closed / "copy").exists()
    finally:
        closed.chmod(0o755)


# -- import -----------------------------------------------------------------------------------------------------------


def test_an_import_says_how_many_are_new(filled: Path, course: Said, tmp_path: Path) -> None:
    """Entries that are there already are not added again; a second import adds nothing."""
    copy = tmp_path / "copy"
    course("export", copy)
    progress.append(copy, [Entry(kind="check", lesson="03", item="03.1", data={"status": "passed"})])
    assert course("import", copy)[1] == "1 entry new, 3 there already.\n"
    assert course("import", copy)[1] == "0 entries new, 4 there already.\n"
    assert json.loads(course("--json")[1])["points"] == 30


def test_an_import_keeps_the_good_lines_of_a_damaged_file(file: Path, course: Said, tmp_path: Path) -> None:
    """What is no entry is passed over and counted."""
    copy = tmp_path / "copy"
    progress.append(copy, [Entry(kind="finished", lesson="03")])
    copy.write_bytes(b"\x00\xff\n[]\n" + copy.read_bytes() + b'{"entry": "x", "at"')
    assert course("import", copy)[1] == "1 entry new, 0 there already. 3 lines of it were no entry and passed over.\n"
    assert [entry.kind for entry in progress.entries(file)] == ["finished"]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"hello\n", bytes(range(256)), b"{}\n[]\n", b'{"cells": []}'])
def test_a_file_without_an_entry_is_refused(file: Path, course: Said, tmp_path: Path, data: bytes) -> None:
    """It is said what to give instead, and no file of yours is made."""
    copy = tmp_path / "copy"
    copy.write_bytes(data)
    assert "holds no entry: give a file that `course progress export` has written" in refused(course("import", copy))
    assert not file.exists()


def test_an_import_from_nowhere_is_one_sentence(file: Path, course: Said, tmp_path: Path) -> None:
    """A folder, a file that is not there, or a pipe, which would never end, is named with the reason."""
    os.mkfifo(tmp_path / "pipe")
    for source, why in (
        (tmp_path, "Is a directory"),
        (tmp_path / "no", "No such file"),
        (tmp_path / "pipe", "not a regular file"),
    ):
        said = refused(course("import", source))
        assert str(source) in said and why in said
    assert not file.exists()


def test_a_progress_file_that_is_a_folder_is_one_sentence(
    course: Said, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command names the folder that COURSE_PROGRESS gives instead of a file."""
    copy = tmp_path / "copy"
    course("export", copy)
    monkeypatch.setenv(progress.ENV, str(tmp_path))
    for arguments in ((), ("--json",), ("export", tmp_path / "x"), ("import", copy), ("wipe", "--yes")):
        assert f"{tmp_path} can not be" in refused(course(*arguments))


# -- wipe -------------------------------------------------------------------------------------------------------------


def test_wipe_says_what_goes_and_asks(
    filled: Path, course: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A no keeps the file; a yes removes it and leaves no copy. An export is offered first."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    code, out, err = course("wipe")
    assert code == 130 and "stopped" in err
    assert f"{filled} goes, and no copy is kept: 3 entries, 10 points, from " in out
    assert "course progress export FILE" in out
    assert filled.exists()
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    code, out, _ = course("wipe")
    assert code == 0 and out.endswith("Removed.\n")
    assert list(filled.parent.iterdir()) == []


def test_wipe_without_an_answer_keeps_the_file(filled: Path, course: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can answer, nothing goes."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert course("wipe")[0] == 130
    assert filled.exists()


def test_there_is_nothing_to_wipe_before_there_is_something(file: Path, course: Said) -> None:
    """It is said, and is no failure."""
    assert course("wipe") == (0, f"Nothing to do: there is no {file}.\n", "")


def test_a_damaged_file_can_be_wiped(file: Path, course: Said) -> None:
    """Whatever it holds, it goes."""
    file.parent.mkdir()
    file.write_bytes(b"\xff\n")
    code, out, _ = course("wipe", "--yes")
    assert code == 0 and "0 entries, 0 points. 1 line of it was no entry" in out
    assert not file.exists()
