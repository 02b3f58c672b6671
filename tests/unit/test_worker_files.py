"""Worker files: what the kernel and a running worker both import, and both see as it is now."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.errors import BadWorkerFile
from sandbox.grade import Submission
from sandbox.services import Lab, code


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path_before = list(sys.path)
    yield tmp_path
    code.forget(tmp_path)
    sys.path[:] = path_before


def load(folder: Path, name: str, text: str) -> object:
    return code.load(code.write(name, text, folder))


def answer(lab: Lab, name: str, text: str) -> object:
    """Write the file and let the worker run its function ``f``."""
    return lab.run(lab.write_file(name, text).f)._result.result


# -- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "a b", "1st", "../up", "a/b", "a.b", ".hidden", "class", "None", "__main__", "__init__", "a-b", "a\0b"]
)
def test_a_name_that_can_not_be_imported_is_refused(folder: Path, name: str) -> None:
    """The error shows a right one, and no file is written anywhere."""
    with pytest.raises(BadWorkerFile, match="%%worker_file imports"):
        code.write(name, "", folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "time", "sys", "celery", "sandbox", "print", "list", "email", "json.py"])
def test_a_name_that_would_hide_a_module_or_builtin_is_refused(folder: Path, name: str) -> None:
    """Also for one that has not been imported yet, and with the ending written out."""
    with pytest.raises(BadWorkerFile, match="choose another name"):
        code.write(name, "", folder)
    assert list(folder.iterdir()) == []


def test_a_folder_beside_the_notebook_takes_no_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would import any folder as a module; only one that is installed is in the way."""
    (folder / "beside" / "orders").mkdir(parents=True)
    (folder / "site-packages" / "google_like").mkdir(parents=True)
    (folder / "worker").mkdir()
    monkeypatch.syspath_prepend(folder / "beside")
    monkeypatch.syspath_prepend(folder / "site-packages")
    assert load(folder / "worker", "orders", "x = 1").x == 1  # type: ignore[attr-defined]
    with pytest.raises(BadWorkerFile, match="choose another name"):
        code.write("google_like", "", folder / "worker")
    code.forget(folder / "worker")


def test_a_name_in_any_script_and_with_its_ending(folder: Path) -> None:
    """Python's own rule for names holds."""
    assert load(folder, "заказы.py", "x = 'Ж'").x == "Ж"  # type: ignore[attr-defined]
    assert (folder / "заказы.py").read_text(encoding="utf-8") == "x = 'Ж'"


def test_a_name_may_be_written_again(folder: Path) -> None:
    """A worker file does not stand in its own way, imported or not."""
    load(folder, "again", "x = 1")
    assert load(folder, "again", "x = 2").x == 2  # type: ignore[attr-defined]


# -- loading ------------------------------------------------------------------------------------------------------


def test_an_unchanged_text_leaves_the_file_and_the_module_alone(folder: Path) -> None:
    """The module keeps its state, the file its moment."""
    first = load(folder, "same", "state = []")
    before = (folder / "same.py").stat().st_mtime_ns
    assert load(folder, "same", "state = []") is first
    assert (folder / "same.py").stat().st_mtime_ns == before


def test_edits_of_the_same_size_within_a_second_are_seen(folder: Path) -> None:
    """Neither the file's moment nor its size decides."""
    for digit in "123456789":
        path = code.write("quick", f"x = {digit}", folder)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert code.load(path).x == int(digit)


def test_an_edit_is_seen_even_behind_a_kept_bytecode_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain import, as for a worker's `include`, may have left one that looks right."""
    path = code.write("plain", "x = 1", folder)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    sys.path.insert(0, str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    import plain  # type: ignore[import-not-found]

    assert plain.x == 1 and list(folder.glob("__pycache__/plain.*.pyc"))
    code.write("plain", "x = 2", folder)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert code.load(path).x == 2


def test_a_file_sees_an_edit_of_the_file_it_imports(folder: Path) -> None:
    """Through two steps of imports, and without being edited itself."""
    load(folder, "lowest", "x = 1")
    load(folder, "middle", "import lowest\ny = lowest.x * 10")
    top = code.write("top", "from middle import y", folder)
    assert code.load(top).y == 10
    code.write("lowest", "x = 2", folder)
    assert code.load(top).y == 20


def test_a_syntax_error_names_the_file_and_line_and_can_be_repaired(folder: Path) -> None:
    """The broken text is not half imported, and the next version is."""
    load(folder, "broken", "x = 1")
    with pytest.raises(SyntaxError) as caught:
        load(folder, "broken", "x = 2\ndef f(:\n")
    assert (Path(str(caught.value.filename)).name, caught.value.lineno) == ("broken.py", 2)
    assert load(folder, "broken", "x = 3").x == 3  # type: ignore[attr-defined]


def test_an_error_while_importing_is_the_learners_own(folder: Path) -> None:
    """The traceback ends in the file's own line, with its text."""
    with pytest.raises(ZeroDivisionError) as caught:
        load(folder, "raising", "x = 1\ny = x / 0\n")
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (Path(last.filename).name, last.lineno, last.line) == ("raising.py", 2, "y = x / 0")
    assert "raising" not in sys.modules


def test_forgetting_touches_only_its_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Files of another lab stay imported."""
    other = tmp_path_factory.mktemp("other")
    load(folder, "mine", "x = 1")
    theirs = load(other, "theirs", "x = 2")
    code.forget(folder)
    assert "mine" not in sys.modules and sys.modules["theirs"] is theirs
    code.forget(other)


# -- in a worker that is running ------------------------------------------------------------------------------------


def test_a_running_worker_sees_an_edit_at_once(lab: Lab) -> None:
    """Several edits of one size within a second each run as they are; the worker's process stays the same."""
    pids = set()
    for digit in "1234":
        result = answer(lab, "edited", f"import os\ndef f(job): return [os.getpid(), {digit}]")
        pids.add(result[0])  # type: ignore[index]
        assert result[1] == int(digit)  # type: ignore[index]
    assert len(pids) == 1


def test_a_running_worker_sees_an_edit_of_an_imported_file(lab: Lab) -> None:
    """The file that imports it is not edited."""
    lab.write_file("helper", "VALUE = 'old'")
    text = "import helper\ndef f(job): return helper.VALUE"
    assert answer(lab, "caller", text) == "old"
    lab.write_file("helper", "VALUE = 'new'")
    assert answer(lab, "caller", text) == "new"


def test_an_error_in_the_worker_shows_the_learners_file_and_line(lab: Lab) -> None:
    """The traceback names the file, the line and its text, as after an edit."""
    lab.run(lab.write_file("failing", "\n\n\ndef f(job):\n    return 1\n").f)
    job = lab.run(lab.write_file("failing", "def f(job):\n    rows = []\n    return rows[7]\n").f)
    trace = job._result.traceback
    assert f'File "{lab.work / "failing.py"}", line 3, in f' in trace
    assert "return rows[7]" in trace and "IndexError: list index out of range" in trace
    assert job.celery_state == "FAILURE"


def test_a_file_broken_after_sending_fails_in_the_worker_with_its_own_line(lab: Lab) -> None:
    """The message outlives the text it was written for; the next right text runs."""
    module = lab.write_file("later", "def f(job): return 'right'")
    (lab.work / "later.py").write_text("def f(job):\n    return (\n")
    job = lab.run(module.f)
    assert job.celery_state == "FAILURE" and "later.py" in job._result.traceback and "line 2" in job._result.traceback
    assert "No task was running" in lab.reset()
    assert answer(lab, "later", "def f(job): return 'repaired'") == "repaired"


def test_a_function_gone_from_its_file_fails_by_name(lab: Lab) -> None:
    """The worker says which name is missing."""
    module = lab.write_file("renamed", "def f(job): return 1")
    (lab.work / "renamed.py").write_text("def g(job): return 1\n")
    job = lab.run(module.f)
    assert "has no attribute 'f'" in job._result.traceback


def test_a_result_that_is_not_json_is_named(lab: Lab) -> None:
    """The learner is told the function and the type."""
    job = lab.run(lab.write_file("result", "def f(job): return {1, 2}").f)
    assert "NotSendable: f returned a set" in job._result.traceback


def test_a_function_stays_sendable_when_another_file_is_edited(lab: Lab) -> None:
    """Editing one cell and running it again does not make the functions of the other cells unknown."""
    lab.write_file("first", "def one(job):\n    job.complete('1')\n")
    two = lab.write_file("second", "def two(job):\n    job.complete('2')\n").two
    lab.write_file("first", "def one(job):\n    job.complete('one')\n")
    assert lab.run(two).row.why == "2"
    assert Submission.of(two).function == "two"
