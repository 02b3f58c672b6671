"""Job rows, their states, and the ledger of what happened to them."""

from sandbox.jobs.attempt import Job, is_soft_limit, run_attempt
from sandbox.jobs.ledger import KINDS, Event, Ledger, MemoryLedger
from sandbox.jobs.memory import MemoryStore
from sandbox.jobs.postgres import PgStore
from sandbox.jobs.states import TERMINAL, State
from sandbox.jobs.store import JobRow, JobStore, as_dict

__all__ = [
    "KINDS",
    "TERMINAL",
    "Event",
    "Job",
    "JobRow",
    "JobStore",
    "Ledger",
    "MemoryLedger",
    "MemoryStore",
    "PgStore",
    "State",
    "as_dict",
    "is_soft_limit",
    "run_attempt",
]
