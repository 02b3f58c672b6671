"""Notebooks as they stand in git: one form, so that a diff shows what a person changed and nothing else."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.errors import BadNotebook

if TYPE_CHECKING:
    from nbformat import NotebookNode

FOLDERS = ("lessons", "solutions", "exercises")
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# nbval does not compare these: their outputs differ from run to run, or hold tracebacks with paths.
NOT_COMPARED_TAGS = {"nbval-ignore-output", "nbval-skip", "raises-exception", "nbval-raises-exception"}
NOT_COMPARED_COMMENTS = {"NBVAL_IGNORE_OUTPUT", "NBVAL_SKIP", "NBVAL_RAISES_EXCEPTION"}
# Nor these parts of any output: pictures, and widgets, whose ids are random.
NOT_COMPARED_DATA = ("image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json")
# nbgrader's locks: without them a learner edits a test cell by accident.
LOCKS = ("deletable", "editable")
BACKUP = ".bak.ipynb"


def tags(cell: dict[str, Any]) -> list[str]:
    found = cell.get("metadata", {}).get("tags", [])
    return [tag for tag in found if isinstance(tag, str)] if isinstance(found, list) else []


def is_compared(cell: dict[str, Any]) -> bool:
    """Whether ``pytest --nbval`` compares what `cell` prints with what is stored."""
    if cell["cell_type"] != "code" or NOT_COMPARED_TAGS.intersection(tags(cell)):
        return False
    lines = (line.strip() for line in cell["source"].splitlines())
    return not any(line.startswith("#") and line.lstrip("#").strip() in NOT_COMPARED_COMMENTS for line in lines)


def parse(text: str, name: str | Path) -> NotebookNode:
    """The notebook in `text`; `name` is the file's, for the error. Raises BadNotebook."""
    try:
        raw = json.loads(text)
    except ValueError as error:
        hint = " (the marks of a merge conflict are in it)" if "<<<<<<< " in text else ""
        raise BadNotebook(f"{name} is not JSON{hint}: {error}.") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("nbformat"), int):
        raise BadNotebook(f'{name} is JSON, but not a notebook: it has no "nbformat".')
    import nbformat

    try:
        if raw["nbformat"] != 4:
            found: NotebookNode = nbformat.convert(nbformat.reads(text, as_version=nbformat.NO_CONVERT), 4)
        else:
            found = nbformat.v4.reads_json(text)
        if not isinstance(found.cells, list):
            raise TypeError("its cells are not a list")
        for cell in found.cells:
            if cell.cell_type not in ("code", "markdown", "raw") or not isinstance(cell.source, str):
                raise TypeError("a cell has no type or no source")
            cell.setdefault("metadata", nbformat.NotebookNode())
    except Exception as error:
        raise BadNotebook(f"{name} is not a notebook that can be read: {type(error).__name__}: {error}.") from None
    return found


def read(path: Path) -> NotebookNode:
    """The notebook in the file `path`. Raises BadNotebook."""
    return parse(read_text(path), path)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadNotebook(f"{path} is missing.") from None
    except UnicodeDecodeError:
        raise BadNotebook(f"{path} is not text in UTF-8, so it is not a notebook.") from None
    except OSError as error:
        raise BadNotebook(f"{path} can not be read: {error.strerror}.") from None


def clean(notebook: NotebookNode, *, keep_outputs: bool = False, name: str | Path = "the notebook") -> NotebookNode:
    """`notebook` in the form it has in git; the one passed in stays as it is.

    With `keep_outputs` (solutions) the outputs of cells that nbval compares stay, and so does the sign that these
    cells were run, because nbval compares nothing in a cell without an execution count. That count is the cell's place
    among the code cells. Sources are never changed. Raises BadNotebook when the result is not a valid notebook.
    """
    import nbformat

    result = copy.deepcopy(notebook)
    result.nbformat, result.nbformat_minor = 4, 5
    result.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    for cell, identity in zip(result.cells, _ids(result.cells), strict=True):
        cell.id = identity
        for unknown in set(cell) - {
            "id",
            "cell_type",
            "metadata",
            "source",
            "outputs",
            "execution_count",
            "attachments",
        }:
            del cell[unknown]
        cell.metadata = _cell_metadata(cell)
        if cell.cell_type != "code":
            cell.pop("outputs", None)
            cell.pop("execution_count", None)
    for place, cell in enumerate((c for c in result.cells if c.cell_type == "code"), 1):
        cell.pop("attachments", None)
        ran = cell.get("execution_count") is not None or bool(cell.get("outputs"))
        kept = keep_outputs and ran and is_compared(cell)
        cell.execution_count = place if kept else None
        cell.outputs = _outputs(cell.get("outputs", []), place) if kept else []
    try:
        nbformat.validate(result)
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise BadNotebook(f"{name} is not a valid notebook: {first}.") from None
    return result


def write_text(notebook: NotebookNode) -> str:
    """The text of a notebook's file: sorted keys, one space of indentation, a newline at the end."""
    import nbformat

    return nbformat.v4.writes(notebook).rstrip("\n") + "\n"


def clean_text(text: str, path: Path, *, keep_outputs: bool) -> str:
    return write_text(clean(parse(text, path), keep_outputs=keep_outputs, name=path))


def keeps_outputs(path: Path, root: Path) -> bool:
    """Only solutions are stored with outputs."""
    return path.resolve().is_relative_to(root.resolve() / "solutions")


def replace(path: Path, text: str) -> None:
    """Write `text` in one step: a full disk or a crash leaves the old file, never half of a new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, fresh = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(fresh, mode)
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise


def find_all(root: Path) -> list[Path]:
    """Every notebook that git knows, and every one in the course's folders; no backups, no checkpoints."""
    found = {path for folder in FOLDERS for path in (root / folder).rglob("*.ipynb")}
    listed = git(root, "ls-files", "-z", "--", "*.ipynb")
    if listed is not None:
        found |= {root / name for name in listed.split("\0") if name and (root / name).is_file()}
    return sorted(path for path in found if is_ours(path))


def is_ours(path: Path) -> bool:
    return not path.name.endswith(BACKUP) and ".ipynb_checkpoints" not in path.parts


def expand(paths: Iterable[Path]) -> list[Path]:
    """The notebooks that `paths` name, with those in the folders among them."""
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found |= {inner for inner in path.rglob("*.ipynb") if is_ours(inner)}
        elif path.exists():
            found.add(path)
        else:
            raise BadNotebook(f"{path} is missing.")
    return sorted(found)


def git(root: Path, *arguments: str) -> str | None:
    """What ``git`` prints in `root`; None where there is no git, no repository, or no such object."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _ids(cells: list[Any]) -> list[str]:
    wanted = []
    for place, cell in enumerate(cells, 1):
        nbgrader = cell.metadata.get("nbgrader")
        grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
        # An id holds letters, digits, - and _, at most 64.
        named = re.sub(r"[^A-Za-z0-9_-]+", "-", grade_id)[:60] if isinstance(grade_id, str) else ""
        wanted.append(named or f"cell-{place:02d}")
    given: set[str] = set()
    result = []
    for name in wanted:
        unique, number = name, 2
        while unique in given or (unique != name and unique in wanted):
            unique, number = f"{name}-{number}", number + 1
        given.add(unique)
        result.append(unique)
    return result


def _cell_metadata(cell: Any) -> Any:
    import nbformat

    kept: dict[str, Any] = {}
    if isinstance(cell.metadata.get("nbgrader"), dict):
        kept["nbgrader"] = cell.metadata["nbgrader"]
    if names := list(dict.fromkeys(tags(cell))):
        kept["tags"] = names
    for lock in LOCKS:
        if cell.metadata.get(lock) is False:
            kept[lock] = False
    return nbformat.from_dict(kept)


def _outputs(outputs: list[Any], place: int) -> list[Any]:
    """Outputs without what depends on the moment: how a stream was cut into messages, counts, pictures."""
    result: list[Any] = []
    for output in outputs:
        last = result[-1] if result else None
        if output.output_type == "stream" and last and last.output_type == "stream" and last.name == output.name:
            last.text += output.text
            continue
        if "metadata" in output:
            output.metadata.clear()
        for kind in NOT_COMPARED_DATA:
            output.get("data", {}).pop(kind, None)
        if output.get("data") == {}:
            continue
        if output.output_type == "execute_result":
            output.execution_count = place
        result.append(output)
    return result
