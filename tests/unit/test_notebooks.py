from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import BadNotebook
from sandbox.learn import notebooks


def code(source: str = "1 + 1", **more: Any) -> dict[str, Any]:
    cell = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    return cell | more


def markdown(source: str = "text", **more: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source} | more


def text_of(*cells: dict[str, Any], **more: Any) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": list(cells)} | more)


def cleaned(text: str, *, keep_outputs: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(notebooks.clean_text(text, Path("x.ipynb"), keep_outputs=keep_outputs))
    return result


STREAM = {"output_type": "stream", "name": "stdout", "text": ["a\n"]}


def test_outputs_counts_and_transient_metadata_go() -> None:
    """A cleaned lesson has no outputs, no counts, and only what a person chose in its metadata."""
    metadata = {
        "papermill": {"duration": 1},
        "collapsed": True,
        "execution": {"iopub.status.busy": "now"},
        "tags": ["parameters", "parameters"],
        "nbgrader": {"grade_id": "loop", "solution": True},
        "deletable": False,
        "editable": True,
    }
    done = cleaned(
        text_of(
            code(outputs=[STREAM], execution_count=7, metadata=metadata),
            metadata={"widgets": {"state": {}}, "celltoolbar": "x", "language_info": {"version": "3.11.7"}},
        )
    )
    (cell,) = done["cells"]
    assert cell["outputs"] == []
    assert cell["execution_count"] is None
    assert cell["metadata"] == {
        "tags": ["parameters"],
        "nbgrader": {"grade_id": "loop", "solution": True},
        "deletable": False,
    }
    assert done["metadata"] == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert (done["nbformat"], done["nbformat_minor"]) == (4, 5)


def test_ids_come_from_the_grade_id_or_the_place() -> None:
    """Cells are called by their grade_id, else by their place; no two are called the same."""
    graded = {"nbgrader": {"grade_id": "my loop!"}}
    taken = {"nbgrader": {"grade_id": "cell-04"}}
    done = cleaned(
        text_of(markdown(id="random"), code(metadata=graded), code(metadata=graded), code(), code(metadata=taken))
    )
    assert [cell["id"] for cell in done["cells"]] == ["cell-01", "my-loop-", "my-loop--2", "cell-04", "cell-04-2"]


def test_the_source_of_every_cell_survives_byte_for_byte() -> None:
    """Cleaning never changes what a person wrote, whatever characters it holds."""
    sources = ["x = 'ü – 日本 \\u0000 \t'\n\n", "", "%%worker_file a\r\nb", " lead", "end\n"]
    done = cleaned(
        text_of(*[code(source) for source in sources], markdown("![a](attachment:b)", attachments={"b": {}}))
    )
    assert ["".join(cell["source"]) for cell in done["cells"]][:-1] == sources
    assert done["cells"][-1]["attachments"] == {"b": {}}


@pytest.mark.parametrize("keep_outputs", [True, False])
def test_cleaning_twice_changes_nothing_more(keep_outputs: bool) -> None:
    """What is clean stays as it is, byte for byte."""
    text = text_of(markdown(), code(outputs=[STREAM, STREAM], execution_count=3), code("2"))
    once = notebooks.clean_text(text, Path("x"), keep_outputs=keep_outputs)
    assert notebooks.clean_text(once, Path("x"), keep_outputs=keep_outputs) == once
    assert once.endswith("}\n")
    assert '\n "cells"' in once


def test_solutions_keep_what_nbval_compares() -> None:
    """In a solution the output of a cell that nbval compares stays, with the count without which nbval skips it."""
    done = cleaned(text_of(markdown(), code(outputs=[STREAM], execution_count=41), code("2")), keep_outputs=True)
    _, ran, not_run = done["cells"]
    assert ran["outputs"] == [STREAM]
    assert ran["execution_count"] == 1
    assert (not_run["outputs"], not_run["execution_count"]) == ([], None)


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"tags": ["nbval-ignore-output"]}},
        {"metadata": {"tags": ["nbval-skip"]}},
        {"metadata": {"tags": ["raises-exception"]}},
        {"source": "# NBVAL_IGNORE_OUTPUT\n1"},
        {"source": "x\n  #NBVAL_SKIP"},
    ],
)
def test_solutions_drop_what_nbval_does_not_compare(more: dict[str, Any]) -> None:
    """A cell that nbval is told to pass over keeps no output and no count."""
    done = cleaned(text_of(code(outputs=[STREAM], execution_count=1) | more), keep_outputs=True)
    assert (done["cells"][0]["outputs"], done["cells"][0]["execution_count"]) == ([], None)


def test_outputs_do_not_show_how_they_were_cut_up_or_drawn() -> None:
    """Pieces of one stream become one, and pictures, which nbval does not compare, go."""
    picture = {
        "output_type": "display_data",
        "metadata": {"x": 1},
        "data": {"image/png": "AAAA", "text/plain": "<Figure>"},
    }
    only = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA"}}
    error = STREAM | {"name": "stderr"}
    done = cleaned(text_of(code(outputs=[STREAM, STREAM, error, picture, only], execution_count=1)), keep_outputs=True)
    assert done["cells"][0]["outputs"] == [
        STREAM | {"text": ["a\n", "a\n"]},
        error,
        {"output_type": "display_data", "metadata": {}, "data": {"text/plain": ["<Figure>"]}},
    ]


def test_the_notebook_passed_in_stays_as_it_is() -> None:
    """clean returns a new notebook and leaves its argument alone."""
    notebook = notebooks.parse(text_of(code(outputs=[STREAM], execution_count=1)), "x")
    before = json.dumps(notebook)
    notebooks.clean(notebook)
    assert json.dumps(notebook) == before


def test_an_old_notebook_is_brought_up_to_date() -> None:
    """A notebook of format 3 becomes one of format 4.5 with the same source."""
    cell = {
        "cell_type": "code",
        "language": "python",
        "input": "x = 1",
        "outputs": [],
        "metadata": {},
        "collapsed": True,
    }
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": [cell], "metadata": {}}],
    }
    assert "".join(cleaned(json.dumps(old))["cells"][0]["source"]) == "x = 1"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "x.ipynb is not JSON"),
        ("{", "x.ipynb is not JSON"),
        ("<<<<<<< HEAD\n{}", "the marks of a merge conflict are in it"),
        ("[]", "not a notebook"),
        ("{}", "not a notebook"),
        ('{"nbformat": "4"}', "not a notebook"),
        ('{"nbformat": 4, "metadata": {}, "cells": 1}', "x.ipynb is not a notebook that can be read"),
        ('{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code"}]}', "can be read"),
        ('{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "poem", "source": ""}]}', "can be read"),
        ('{"nbformat": 99, "metadata": {}, "cells": []}', "can be read"),
    ],
)
def test_what_is_no_notebook_is_named_by_its_file(text: str, sentence: str) -> None:
    """A file that is no notebook raises BadNotebook, which names it and says why."""
    with pytest.raises(BadNotebook) as caught:
        notebooks.clean_text(text, Path("x.ipynb"), keep_outputs=False)
    assert sentence in str(caught.value)
    assert "x.ipynb" in str(caught.value)


def test_a_cell_with_broken_outputs_is_refused() -> None:
    """A notebook that would not be valid even when clean raises BadNotebook."""
    broken = code(outputs=[{"output_type": "stream", "name": "stdout", "text": 5}], execution_count=1)
    with pytest.raises(BadNotebook, match=r"x\.ipynb"):
        notebooks.clean_text(text_of(broken), Path("x.ipynb"), keep_outputs=True)


def test_missing_and_unreadable_files_are_named(tmp_path: Path) -> None:
    """A missing file, a folder and a binary file raise BadNotebook with their path."""
    with pytest.raises(BadNotebook, match="is missing"):
        notebooks.read(tmp_path / "no.ipynb")
    with pytest.raises(BadNotebook, match="can not be read"):
        notebooks.read(tmp_path)
    (tmp_path / "b.ipynb").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadNotebook, match="is not text in UTF-8"):
        notebooks.read(tmp_path / "b.ipynb")


def test_writing_leaves_the_old_file_when_it_fails(tmp_path: Path) -> None:
    """A write that can not be finished leaves the old text and nothing beside it."""
    path = tmp_path / "a.ipynb"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        notebooks.replace(path, "new \udc80")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_every_notebook_of_the_course_is_found_and_no_backup(tmp_path: Path) -> None:
    """Notebooks in the three folders and those git knows are found; backups and checkpoints are not."""
    wanted = ["lessons/00_a.ipynb", "solutions/00_a/00_a.ipynb", "exercises/00_a/00_a.ipynb", "docs/known.ipynb"]
    others = ["exercises/00_a/00_a.x.bak.ipynb", "lessons/.ipynb_checkpoints/00_a.ipynb", "docs/unknown.ipynb"]
    for name in [*wanted, *others]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "docs/known.ipynb"], check=True)
    assert notebooks.find_all(tmp_path) == sorted(tmp_path / name for name in wanted)


def test_git_that_is_not_there_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git, or outside a repository, only the course's folders are looked at."""
    assert notebooks.git(tmp_path, "show", "HEAD:x") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert notebooks.find_all(tmp_path) == []


def test_only_solutions_are_stored_with_outputs(tmp_path: Path) -> None:
    """Outputs are for solutions alone, also for a folder with a name that begins like theirs."""
    assert notebooks.keeps_outputs(tmp_path / "solutions/a/a.ipynb", tmp_path)
    assert not notebooks.keeps_outputs(tmp_path / "solutions_old/a.ipynb", tmp_path)
    assert not notebooks.keeps_outputs(tmp_path / "lessons/a.ipynb", tmp_path)
