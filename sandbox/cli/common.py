"""What several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.learn.catalog import Course


def load_course() -> Course:
    from sandbox.learn import catalog

    return catalog.load()


def build_folder(root: Path) -> Path:
    """Everything a command makes and nobody keeps in git; made if it is not there."""
    folder = root / "build"
    folder.mkdir(exist_ok=True)
    return folder


def shown(path: Path, root: Path) -> str:
    """`path` as a person would type it in the course's folder."""
    try:
        return str(path.resolve().relative_to(root.resolve()))
    except ValueError:
        return str(path)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
