"""A query's result as something a notebook, a terminal and a stored output all show the same way."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any


class Table:
    """Rows with named columns. `rows` is a list of tuples; ``str()`` gives aligned text, a notebook shows HTML."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.columns = tuple(columns)
        self.rows = [tuple(row) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Any:
        return iter(self.rows)

    def column(self, name: str) -> list[Any]:
        """The values of one column, top to bottom."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def __repr__(self) -> str:
        cells = [list(self.columns), *([_text(value) for value in row] for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        lines.append("(no rows)" if not self.rows else f"({len(self.rows)} row{'s' * (len(self.rows) != 1)})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{html.escape(name)}</th>' for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{html.escape(_text(v))}</td>' for v in row) + "</tr>"
            for row in self.rows
        )
        if not self.rows:
            body = f'<tr><td colspan="{len(self.columns)}"><em>no rows</em></td></tr>'
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)
