"""Which servers a lab uses: private ones, or real ones with a prefix and a database of the lab's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import redis

from sandbox.services.programs import find_postgres, find_redis
from sandbox.services.stack import Stack


@dataclass(frozen=True, kw_only=True)
class Servers:
    """How to reach one lab's Redis and PostgreSQL, and what to start for it."""

    redis_url: str
    prefix: str
    dsn: str
    described: str
    programs: list[dict[str, Any]] = field(default_factory=list)
    redis_client: Callable[[], redis.Redis]
    clear_redis: Callable[[redis.Redis], None]
    prepare: Callable[[], None] = lambda: None


def private_servers(stack: Stack) -> Servers:
    """A Redis and a PostgreSQL that nobody else can reach, on unix sockets in the stack's folder."""
    socket = str(stack.redis_socket)
    return Servers(
        redis_url=f"redis+socket://{quote(socket)}?virtual_host=0",
        prefix="",
        dsn=stack.postgres_dsn,
        described=f"{find_redis().name.split('-')[0].capitalize()}, PostgreSQL {find_postgres().version}",
        programs=[stack.redis(), stack.postgres()],
        redis_client=lambda: redis.Redis(unix_socket_path=socket, decode_responses=True),
        clear_redis=clear_all,
    )


def clear_all(client: redis.Redis) -> None:
    """Delete every key but kombu's bindings: a producer that has declared its queue does not declare it again."""
    keys = [key for key in client.scan_iter(count=1000) if not key.startswith("_kombu.binding.")]
    for start in range(0, len(keys), 1000):
        client.delete(*keys[start : start + 1000])


def shared_servers(stack: Stack) -> Servers | None:
    return None
