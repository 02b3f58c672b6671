"""How the messages of the checks name a line, an error, the rows of a file and the end of a job."""

from __future__ import annotations

from typing import Any

from sandbox.grade import Outcome
from sandbox.learn.checks.books import Books

SPINNER = "The job's row says running, and goes on saying so: a spinner that never stops."
# Errors that no hint is about: the code does not say what its author meant.
SLIPS = {"AttributeError", "ImportError", "IndexError", "KeyError", "ModuleNotFoundError", "NameError", "SyntaxError"}
SLIPS |= {"BadSetting", "TypeError", "UnboundLocalError", "ZeroDivisionError"}


def said_at(where: dict[str, Any]) -> str:
    return f"at line {where['line']}, `{where['text']}`" if where.get("line") else "outside your file"


def said_error(outcome: Outcome) -> str:
    return f"`{f'{outcome.type}: {outcome.message}'.rstrip(': .')}`"


def said_rows(places: list[int], counted: str = "") -> str:
    if not places:
        return "no row"
    names = ", ".join(map(str, places[:4])) + (", …" if len(places) > 4 else "")
    return f"row {names}{counted}" if len(places) == 1 else f"rows {names}{counted}"


def said_end(row: Any) -> str:
    """What the row of the job says, the learner's own reason in quotes."""
    return f"{row.state}, with the reason {row.why!r}" if row.why else str(row.state)


def in_longer(books: Books) -> str:
    """What people see of work that went on after the limit: in this file, and in one that the hard limit cuts off."""
    if not books.row.terminal:
        return SPINNER
    says = f"the job's row says {said_end(books.row)}."
    if not books.saved_after and len(books.done) + len(books.failed) < books.case.rows:
        return says[0].upper() + says[1:]
    return (
        f"This file is short: your function came to its end, and {says} With a longer file the hard limit kills the "
        "process, and the job's row is left at running: a spinner that never stops."
    )
