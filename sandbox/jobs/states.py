"""The states of a job, and the only ways from one to another.

::

    pending ──► running ──► completed | failed | timed_out | cancelled | expired
       │           └──────► pending          (an attempt ended, another will follow)
       └──────────────────► failed | cancelled | expired

A terminal state never changes.
"""

from __future__ import annotations

from enum import StrEnum

from sandbox.errors import BadSetting, IllegalTransition


class State(StrEnum):
    """Where a job stands; equal to its text, so it can be compared with a row's column."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @classmethod
    def parse(cls, text: str) -> State:
        """Return the state named `text`; raises BadSetting that lists the names otherwise."""
        try:
            return cls(text)
        except ValueError:
            raise BadSetting(f"{text!r} is not a job state; the states are {', '.join(cls)}.") from None


TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.TIMED_OUT, State.CANCELLED, State.EXPIRED})

# A pending job has not run, so it can neither complete nor run out of an attempt's time.
MOVES: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.RUNNING, State.FAILED, State.CANCELLED, State.EXPIRED}),
    State.RUNNING: TERMINAL | {State.PENDING},
    **{state: frozenset[State]() for state in TERMINAL},
}


def sources(target: State) -> list[State]:
    """The states from which `target` can be reached, in the order of the enum."""
    return [state for state in State if target in MOVES[state]]


def require_move(source: State, target: State) -> None:
    """Raise IllegalTransition, naming both states, unless `source` can become `target`."""
    if target not in MOVES[source]:
        after = ", ".join(sorted(MOVES[source])) or "nothing: it is terminal"
        raise IllegalTransition(f"a job that is {source} can not become {target}; after {source} comes {after}.")
