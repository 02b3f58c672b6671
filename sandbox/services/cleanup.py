"""Removes what a lab left on real servers: its database and its keys.

The lab's sidecar runs this file after everything else has ended. What to remove stands in ``SANDBOX_CLEANUP`` (JSON),
because it holds passwords and a command line can be read by everybody:

    {"database": {"dsn": of another database on that server, "name"}, "redis": {"url", "prefix"}}
"""

from __future__ import annotations

import json
import os
import re
import sys

import psycopg
import redis
from psycopg import sql

NAMES = re.compile(r"always_ends_[0-9a-f]{8,}")  # nothing else is ever removed


def drop_database(dsn: str, name: str) -> None:
    """Drop the database `name`, with whoever is connected to it. No such database is no error."""
    if not NAMES.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a lab's database")
    with psycopg.connect(dsn, autocommit=True) as connection:
        # Its owner may have been killed while the server still creates it; the server holds this lock until it is done.
        connection.execute("select pg_advisory_lock(hashtextextended(%s, 0))", [name])
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def delete_keys(url: str, prefix: str) -> int:
    """Delete every key that begins with `prefix`; returns how many there were."""
    if not NAMES.fullmatch(prefix.removesuffix(":")) or not prefix.endswith(":"):
        raise ValueError(f"{prefix!r} is not the prefix of a lab's keys")
    deleted = 0
    with redis.Redis.from_url(url) as client:
        while keys := list(client.scan_iter(match=f"{prefix}*", count=1000)):
            for start in range(0, len(keys), 1000):
                deleted += client.unlink(*keys[start : start + 1000])
    return deleted


def main() -> int:
    order = json.loads(os.environ["SANDBOX_CLEANUP"])
    failed = 0
    for remove, what in ((drop_database, order.get("database")), (delete_keys, order.get("redis"))):
        if what:
            try:
                remove(**what)  # type: ignore[operator]
            except Exception as error:
                print(f"{remove.__name__}: {type(error).__name__}", file=sys.stderr)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
