"""The states of a job and the moves between them."""

from __future__ import annotations

import pytest

from sandbox.errors import BadSetting, IllegalTransition
from sandbox.jobs.queries import queries, schema
from sandbox.jobs.states import MOVES, TERMINAL, State, require_move, sources


def test_every_state_has_its_moves_listed() -> None:
    """No state is forgotten, and the database accepts exactly these."""
    assert set(MOVES) == set(State)
    assert all(f"'{state}'" in schema() for state in State)


def test_a_terminal_state_has_no_move() -> None:
    """There are five of them, and nothing comes after one."""
    assert {str(state) for state in TERMINAL} == {"completed", "failed", "timed_out", "cancelled", "expired"}
    for source in TERMINAL:
        for target in State:
            with pytest.raises(IllegalTransition, match="nothing: it is terminal"):
                require_move(source, target)


def test_every_state_leads_to_an_end() -> None:
    """From each open state a terminal one is one move away."""
    assert all(MOVES[state] & TERMINAL for state in set(State) - TERMINAL)


def test_a_job_that_never_ran_can_not_complete() -> None:
    """Completed and timed out come from running only; the error names both states and what may follow."""
    assert sources(State.COMPLETED) == sources(State.TIMED_OUT) == [State.RUNNING]
    with pytest.raises(IllegalTransition) as caught:
        require_move(State.PENDING, State.COMPLETED)
    assert "a job that is pending can not become completed" in str(caught.value)
    assert "cancelled, expired, failed, running" in str(caught.value)


@pytest.mark.parametrize("text", ["", "done", "COMPLETED", "timed out"])
def test_text_that_is_no_state_is_refused_with_the_states_there_are(text: str) -> None:
    """The message lists them all."""
    with pytest.raises(BadSetting) as caught:
        State.parse(text)
    assert all(str(state) in str(caught.value) for state in State)


def test_every_statement_says_what_it_is_for() -> None:
    """Each named query has a description, and no comment is left in what is sent."""
    assert set(queries()) == {
        "add",
        "get",
        "list",
        "newest",
        "now",
        "start",
        "finish",
        "release",
        "progress",
        "stuck",
        "counts",
    }
    for query in queries().values():
        assert query.about.endswith("."), query.name
        assert "--" not in query.sql and not query.sql.endswith(";")
