"""The shop whose orders the lessons import: one slow, sometimes failing step for each row of a file."""

from __future__ import annotations

import time
from random import Random
from typing import Any

from sandbox.jobs import Job

TABLE = (
    "create table if not exists orders (line integer primary key, customer text not null, quantity integer not null)"
)


def order_rows(count: int, *, seed: int = 1, bad: tuple[int, ...] = (), seconds: float = 0.05) -> list[dict[str, Any]]:
    """`count` rows of an order file; those at the places in `bad` have a quantity that is not a number.

    `seconds` is how long the address check of one row takes.
    """
    random = Random(seed)
    names = ("Ada", "Edsger", "Grace", "Barbara", "Donald", "Frances", "Tony", "Radia")
    return [
        {
            "line": line,
            "customer": random.choice(names),
            "quantity": "seven" if line in bad else random.randint(1, 9),
            "seconds": seconds,
        }
        for line in range(count)
    ]


def save_order(job: Job, row: dict[str, Any]) -> None:
    """Check the row's address with a partner, which takes a while, then insert the order and commit it.

    Raises ValueError for a row that can not be an order.
    """
    time.sleep(row["seconds"])  # the partner's address check
    if not isinstance(row["quantity"], int):
        raise ValueError(f"quantity {row['quantity']!r} is not a number")
    with job.transaction() as db:
        db.execute(
            "insert into orders (line, customer, quantity) values (%s, %s, %s)",
            (row["line"], row["customer"], row["quantity"]),
        )
