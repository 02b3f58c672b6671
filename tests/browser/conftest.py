"""The fixture with which a test opens a widget in a browser; what it gives is in practice_page.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .practice_page import PracticePage, Server, serve


@pytest.fixture(scope="module")
def practice_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("practice")) as server:
        yield server


@pytest.fixture
def practice_page(practice_server: Server) -> Iterator[Callable[..., PracticePage]]:
    """``practice_page(cells)`` opens a new notebook; at the end nothing may have been complained of by the browser."""
    opened: list[PracticePage] = []

    def open_page(cells: list[str], **options: object) -> PracticePage:
        opened.append(practice_server.open(cells, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_page
    for page in opened:
        practice_server.close(page)
    assert [one for page in opened for one in page.complaints] == []
