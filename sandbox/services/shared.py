"""Which servers a lab uses: private ones, or real ones with a prefix and a database of the lab's own."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import parse_qs, quote, unquote, urlsplit

import psycopg
import redis
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from redis.exceptions import AuthenticationError, AuthorizationError

from sandbox.errors import BadSetting, StackFailed
from sandbox.jobs import PgStore
from sandbox.services import cleanup
from sandbox.services.confined import ConfinedRedis
from sandbox.services.programs import OLDEST_POSTGRES, find_postgres, find_redis
from sandbox.services.stack import Stack

REDIS, DATABASE = "SANDBOX_REDIS_URL", "SANDBOX_DATABASE_URL"
OLDEST_REDIS = (6, 2)  # kombu reads its unacknowledged messages with ZRANGE ... BYSCORE
PATIENCE_SECONDS = 5  # for a server to answer at all

REDIS_FORM = "redis://USER:PASSWORD@HOST:6379/0, or unix:///PATH/TO/SOCKET?db=0"
DATABASE_FORM = "postgresql://USER:PASSWORD@HOST:5432/DATABASE"


@dataclass(frozen=True, kw_only=True)
class RedisServer:
    url: str = field(repr=False)  # as kombu writes it; may hold a password
    prefix: str
    described: str
    client: Callable[[], redis.Redis]
    programs: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class PostgresServer:
    dsn: str = field(repr=False)  # may hold a password
    described: str
    programs: list[dict[str, Any]] = field(default_factory=list)
    prepare: Callable[[], None] = lambda: None


@dataclass(frozen=True, kw_only=True)
class Servers:
    """How to reach one lab's Redis and PostgreSQL, and what to start for it."""

    redis_url: str = field(repr=False)
    prefix: str
    dsn: str = field(repr=False)
    described: str
    programs: list[dict[str, Any]] = field(default_factory=list, repr=False)
    redis_client: Callable[[], redis.Redis]
    clear_redis: Callable[[redis.Redis], None]
    prepare: Callable[[], None] = lambda: None


def private_servers(stack: Stack) -> Servers:
    """A Redis and a PostgreSQL that nobody else can reach, on unix sockets in the stack's folder."""
    return _servers(_private_redis(stack), _private_postgres(stack))


def shared_servers(stack: Stack) -> Servers | None:
    """The servers that ``SANDBOX_REDIS_URL`` and ``SANDBOX_DATABASE_URL`` name; None if neither is set.

    Where only one is set the other server is a private one. Tells the stack how to clean up, which must happen before
    ``stack.open``; the database is made by ``prepare``, which must happen after it: no moment leaves one behind.
    Raises BadSetting, StackFailed.
    """
    redis_url, database_url = os.environ.get(REDIS, "").strip(), os.environ.get(DATABASE, "").strip()
    if not redis_url and not database_url:
        return None
    name = f"always_ends_{stack.id}"
    remove: dict[str, Any] = {}
    if redis_url:
        redis_server = _shared_redis(redis_url, f"{name}:")
        remove["redis"] = {"url": redis_url, "prefix": redis_server.prefix}
    else:
        redis_server = _private_redis(stack)
    if database_url:
        postgres_server = _shared_postgres(database_url, name)
        remove["database"] = {"dsn": _dsn(database_url), "name": name}
    else:
        postgres_server = _private_postgres(stack)
    # A script, not a module: the sidecar need not find this package. -P keeps our code.py from hiding Python's.
    argv = [sys.executable, "-P", cleanup.__file__]
    stack.cleanup = {"args": argv, "env": {**os.environ, "SANDBOX_CLEANUP": json.dumps(remove)}}
    return _servers(redis_server, postgres_server)


def _servers(one: RedisServer, other: PostgresServer) -> Servers:
    return Servers(
        redis_url=one.url,
        prefix=one.prefix,
        dsn=other.dsn,
        described=f"{one.described}, {other.described}",
        programs=[*one.programs, *other.programs],
        redis_client=one.client,
        clear_redis=clear_all,
        prepare=other.prepare,
    )


def clear_all(client: redis.Redis) -> None:
    """Delete every key but kombu's bindings: a producer that has declared its queue does not declare it again."""
    keys = [key for key in client.scan_iter(count=1000) if not key.startswith("_kombu.binding")]
    for start in range(0, len(keys), 1000):
        client.delete(*keys[start : start + 1000])


def _private_redis(stack: Stack) -> RedisServer:
    socket = str(stack.redis_socket)
    return RedisServer(
        url=f"redis+socket://{quote(socket)}?virtual_host=0",
        prefix="",
        described=find_redis().name.split("-")[0].capitalize(),
        client=lambda: redis.Redis(unix_socket_path=socket, decode_responses=True),
        programs=[stack.redis()],
    )


def _private_postgres(stack: Stack) -> PostgresServer:
    described = f"PostgreSQL {find_postgres().version}"
    return PostgresServer(dsn=stack.postgres_dsn, described=described, programs=[stack.postgres()])


# -- a real Redis -------------------------------------------------------------------------------------------------


def _shared_redis(url: str, prefix: str) -> RedisServer:
    where, kombu_url = _read_redis_url(url)
    patience = {"socket_connect_timeout": PATIENCE_SECONDS, "socket_timeout": PATIENCE_SECONDS}
    try:
        with redis.Redis.from_url(url, decode_responses=True, **patience) as client:
            about: Any = client.info()
            _check_redis(where, about)
            # The only way to know that keys of this name may be written; it goes away by itself.
            client.set(f"{prefix}probe", 1, ex=60)
            client.delete(f"{prefix}probe")
    except redis.RedisError as error:
        _redis_refused(where, url, error)
    brand = "Valkey" if about.get("server_name") == "valkey" else "Redis"
    return RedisServer(
        url=kombu_url,
        prefix=prefix,
        described=f"{brand} {about.get('valkey_version') or about['redis_version']} at {where}",
        client=lambda: ConfinedRedis(url, prefix),
    )


def _read_redis_url(url: str) -> tuple[str, str]:
    """The server's place without its password, and the address as kombu writes it. Raises BadSetting."""
    wrong = BadSetting(f"{REDIS} is no address of a Redis server: write it as {REDIS_FORM}.")
    try:
        parts = urlsplit(url)
        port = parts.port or 6379
    except ValueError:
        raise wrong from None
    if parts.scheme == "rediss":
        raise BadSetting(
            f"{REDIS} asks for TLS, which this sandbox does not speak: write redis:// and go through a tunnel, "
            f"or unset {REDIS} for a private Redis."
        )
    if parts.scheme == "unix" and parts.path.startswith("/"):
        number = parse_qs(parts.query).get("db", ["0"])[0]
        place = unquote(parts.path)
        given = ":".join(quote(unquote(text), safe="") for text in (parts.username or "", parts.password or ""))
        login = f"{given}@" if given != ":" else ""
        kombu_url = f"redis+socket://{login}{quote(place)}?virtual_host={number}"
    elif parts.scheme == "redis" and parts.hostname:
        number = parts.path.strip("/") or "0"
        place = f"{parts.hostname}:{port}"
        kombu_url = url if parts.path.strip("/") else parts._replace(path="/0").geturl()
    else:
        raise wrong
    if not number.isdigit() or parts.fragment:
        raise wrong
    return place, kombu_url


def _check_redis(where: str, about: dict[str, Any]) -> None:
    version = tuple(int(number) for number in re.findall(r"\d+", str(about["redis_version"]))[:2])
    if version < OLDEST_REDIS:
        raise BadSetting(
            f"Redis at {where} is version {about['redis_version']}; Celery needs {'.'.join(map(str, OLDEST_REDIS))} "
            f"or newer. Name another in {REDIS}, or unset it for a private one."
        )
    if about.get("role") == "slave":
        raise BadSetting(
            f"Redis at {where} is a read-only replica of {about.get('master_host')}:{about.get('master_port')}: "
            f"name the primary in {REDIS}."
        )
    if about.get("cluster_enabled"):
        raise BadSetting(f"Redis at {where} is a cluster, which Celery can not use: name a single server in {REDIS}.")


def _redis_refused(where: str, url: str, error: Exception) -> NoReturn:
    told = _without_passwords(str(error), url)
    # Both are ConnectionErrors to redis-py, but there a server answered.
    answered = isinstance(error, (AuthenticationError, AuthorizationError))
    if isinstance(error, (redis.ConnectionError, redis.TimeoutError)) and not answered:
        raise StackFailed(
            f"Redis at {where} ({REDIS}) does not answer: {told}. Start it, correct the address, or unset {REDIS} "
            "for a private one."
        ) from None
    raise BadSetting(
        f"Redis at {where} does not let this lab in: {told}. Correct the user, password or database in {REDIS}, "
        "or unset it for a private one."
    ) from None


# -- a real PostgreSQL ----------------------------------------------------------------------------------------------


def _shared_postgres(url: str, name: str) -> PostgresServer:
    dsn = _dsn(url)
    where = _place(dsn)
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            version = connection.info.server_version
            role = connection.info.user
            standby, may_create = connection.execute(
                "select pg_is_in_recovery(), rolcreatedb or rolsuper from pg_roles where rolname = current_user"
            ).fetchone() or (False, False)
    except psycopg.Error as error:
        _postgres_refused(where, dsn, error)
    if version // 10000 < OLDEST_POSTGRES:
        raise BadSetting(
            f"PostgreSQL at {where} is version {version // 10000}; {OLDEST_POSTGRES} or newer is needed. "
            f"Name another in {DATABASE}, or unset it for a private one."
        )
    if standby:
        raise BadSetting(f"PostgreSQL at {where} is a read-only standby: name the primary in {DATABASE}.")
    if not may_create:
        raise BadSetting(
            f"user {role!r} may not create databases on PostgreSQL at {where}, and every lab gets one of its own. "
            f'Type `ALTER ROLE "{role}" CREATEDB` there as an administrator, or unset {DATABASE} for a private one.'
        )
    own = make_conninfo(dsn, dbname=name)

    def prepare() -> None:
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                _create_database(connection, name)
            store = PgStore(own)
            try:
                store.create_schema()
            finally:
                store.close()
        except psycopg.Error as error:
            told = _without_passwords(str(error), dsn)
            raise StackFailed(f"PostgreSQL at {where} ({DATABASE}) did not make database {name}: {told}.") from None

    return PostgresServer(
        dsn=own, described=f"PostgreSQL {version // 10000}.{version % 10000} at {where}", prepare=prepare
    )


def _create_database(connection: psycopg.Connection[Any], name: str) -> None:
    # Held until the server has finished, even if we are killed meanwhile; the clean-up waits for it.
    connection.execute("select pg_advisory_lock(hashtextextended(%s, 0))", [name])
    found = connection.execute("select datname from pg_database where datname = 'template0'").fetchone()
    template = sql.Identifier("template0" if found else "template1")  # a lab's own server, slimmed, has but the latter
    connection.execute(
        sql.SQL(
            "create database {} template {} encoding 'UTF8' locale_provider libc lc_collate 'C' lc_ctype 'C'"
        ).format(sql.Identifier(name), template)
    )
    connection.execute(sql.SQL("alter database {} set timezone to 'UTC'").format(sql.Identifier(name)))


def _dsn(url: str) -> str:
    """The address as libpq's key-value text, with a bound on the waiting. Raises BadSetting."""
    try:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ValueError
        parts: dict[str, Any] = conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        # libpq's own message may quote the whole address, with the password.
        raise BadSetting(f"{DATABASE} is no address of a PostgreSQL server: write it as {DATABASE_FORM}.") from None
    return make_conninfo(**{"connect_timeout": PATIENCE_SECONDS, **parts})


def _place(dsn: str) -> str:
    parts = conninfo_to_dict(dsn)
    return f"{parts.get('host') or parts.get('hostaddr') or 'localhost'}:{parts.get('port') or 5432}"


def _postgres_refused(where: str, dsn: str, error: Exception) -> NoReturn:
    told = _without_passwords(str(error), dsn)
    # A server that refuses us still says that it takes connections.
    if psycopg.pq.PGconn.ping(dsn.encode()) == psycopg.pq.Ping.OK:
        raise BadSetting(
            f"PostgreSQL at {where} does not let this lab in: {told}. Correct the user, password or database in "
            f"{DATABASE}, or unset it for a private one."
        ) from None
    raise StackFailed(
        f"PostgreSQL at {where} ({DATABASE}) does not answer: {told}. Start it, correct the address, or unset "
        f"{DATABASE} for a private one."
    ) from None


def _without_passwords(text: str, address: str) -> str:
    """`text` on one line, without the password that `address` holds."""
    if "://" in address:
        given = urlsplit(address)
        secrets = [given.password, parse_qs(given.query).get("password", [""])[0]]
    else:
        secrets = [str(conninfo_to_dict(address).get("password") or "")]
    for secret in secrets:
        for form in {secret, unquote(secret or "")} - {None, ""}:
            text = text.replace(str(form), "***")
    return " ".join(text.split()).rstrip(".")
