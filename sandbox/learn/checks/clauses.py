"""The `except` clauses of a learner's source: which one a line stands in, and which one caught the soft limit."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Iterator
from typing import Any

SOFT_LIMIT = "SoftTimeLimitExceeded"
TAKES = {SOFT_LIMIT, "Exception", "BaseException"}


def around(source: str, where: dict[str, Any]) -> str:
    """``line 10, `except Exception as error:``` for the innermost clause around a line; empty where there is none."""
    path = _path(source, where)
    found = [node for node in _inside(path) if isinstance(node, ast.ExceptHandler)]
    return _named(source, found[-1]) if found else ""


def catching(source: str, where: dict[str, Any]) -> str:
    """The clause that caught the limit which landed at a line and let it go no further; empty where that is not sure."""
    line = where.get("line", 0)
    path = _inside(_path(source, where))
    renamed = {
        name.asname
        for node in ast.walk(path[0] if path else ast.Module([], []))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name == SOFT_LIMIT and name.asname
    }
    for node in reversed(path):
        if isinstance(node, ast.With) and "suppress" in "".join(ast.unparse(item) for item in node.items):
            return ""
        # Only the body of a `try` is under its clauses, not the clauses themselves.
        if not isinstance(node, ast.Try) or not _holds(node.body, line):
            continue
        for clause in node.handlers:
            takes = _takes(clause.type, TAKES | renamed)
            if takes is None:
                return ""
            if takes:
                if _passes_on(clause):
                    break  # to the clauses further out
                raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(clause))
                return "" if raises else _named(source, clause)
    return ""


def _path(source: str, where: dict[str, Any]) -> list[ast.AST]:
    """The nodes around a line, the outermost first; none for a source that can not be read."""
    line = where.get("line")
    if not line:
        return []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [tree, *_below(tree, line)]


def _below(node: ast.AST, line: int) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if _holds(child.body if isinstance(child, ast.match_case) else [child], line):
            yield child
            yield from _below(child, line)
            return


def _inside(path: list[ast.AST]) -> list[ast.AST]:
    """What of `path` stands in the same function as its end, after the module itself."""
    functions = [place for place, node in enumerate(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [*path[:1], *path[max(functions, default=0) + 1 :]]


def _holds(nodes: list[Any], line: int) -> bool:
    return bool(getattr(nodes[0], "lineno", line + 1) <= line <= (nodes[-1].end_lineno or 0))


def _passes_on(clause: ast.ExceptHandler) -> bool:
    last = clause.body[-1]
    own = isinstance(last, ast.Raise) and isinstance(last.exc, ast.Name) and last.exc.id == clause.name
    return isinstance(last, ast.Raise) and (last.exc is None or own)


def _takes(type_: ast.expr | None, known: set[str]) -> bool | None:
    """Whether a clause takes the soft limit; None for a name whose meaning the text does not tell."""
    if type_ is None:
        return True
    if isinstance(type_, ast.Tuple):
        answers = [_takes(each, known) for each in type_.elts]
        return True if True in answers else None if None in answers else False
    name = type_.id if isinstance(type_, ast.Name) else type_.attr if isinstance(type_, ast.Attribute) else ""
    return True if name in known else False if hasattr(builtins, name) else None


def _named(source: str, clause: ast.ExceptHandler) -> str:
    text = next(itertools.islice(source.splitlines(), clause.lineno - 1, None), "").strip()
    return f"line {clause.lineno}, `{text}`"
