"""Loads the named, described statements of ``queries.sql``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, kw_only=True)
class Query:
    name: str
    about: str  # the comment under the name, as one line
    sql: str


@cache
def queries() -> dict[str, Query]:
    """Every statement of ``queries.sql`` by its name, in the order of the file."""
    text = files("sandbox.jobs").joinpath("queries.sql").read_text(encoding="utf-8")
    found: dict[str, Query] = {}
    for block in re.split(r"^-- name: ", text, flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        lines = rest.splitlines()
        about = [line[2:].strip() for line in lines if line.startswith("--")]
        sql = "\n".join(line for line in lines if not line.startswith("--")).strip().rstrip(";")
        found[name.strip()] = Query(name=name.strip(), about=" ".join(about), sql=sql)
    return found


@cache
def schema() -> str:
    """The statements that create the job table; running them twice is harmless."""
    return files("sandbox.jobs").joinpath("schema.sql").read_text(encoding="utf-8")
