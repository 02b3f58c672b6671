"""A Redis client that reaches the keys of one lab only, on a server that others use too.

Which arguments of a command are keys is not a list kept here: the server is asked (``COMMAND``), and every key gets
the lab's prefix. What the server does not describe, or what works on more than the keys it names, is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import redis
from redis.client import Pipeline as RedisPipeline
from redis.client import PubSub
from redis.lock import Lock

from sandbox.errors import NotConfined

# Commands without a key that neither show nor change anything of others.
HARMLESS = frozenset(
    {"ping", "echo", "time", "info", "lastsave", "wait", "multi", "exec", "discard", "unwatch", "command"}
    | {"client|id", "client|info", "client|getname", "client|setname", "client|setinfo"}
    | {"script|load", "script|exists"}
)
# The server says of these that their keys move about. Here is where: the number of keys stands at this place ...
COUNTED = dict.fromkeys(["zunion", "zinter", "zdiff", "sintercard", "zintercard", "lmpop", "zmpop"], 1)
COUNTED |= dict.fromkeys(["zunionstore", "zinterstore", "zdiffstore", "blmpop", "bzmpop"], 2)
STORING = frozenset({"zunionstore", "zinterstore", "zdiffstore"})  # ... and in these the first argument is a key too
# ... or the keys are the first half of what follows the word STREAMS, looked for from this place on.
STREAMING = {"xread": 1, "xreadgroup": 4}
# A script may touch keys that it does not name. Those of redis-py's own locks do not.
LOCK_SCRIPTS = frozenset(
    hashlib.sha1(text.encode()).hexdigest()  # a script's name on the server
    for text in (Lock.LUA_RELEASE_SCRIPT, Lock.LUA_EXTEND_SCRIPT, Lock.LUA_REACQUIRE_SCRIPT)
)
SUBSCRIBING = frozenset({"SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE"})

INSTEAD = {
    "flushall": "lab.reset() empties the lab; lab.redis.delete(*lab.redis.keys()) deletes its keys",
    "flushdb": "lab.reset() empties the lab; lab.redis.delete(*lab.redis.keys()) deletes its keys",
    "dbsize": "len(lab.redis.keys()) counts the lab's keys",
    "randomkey": "random.choice(lab.redis.keys()) picks one of the lab's keys",
    "eval": "lab.redis.pipeline() and lab.redis.transaction(...) change several keys at once",
    "evalsha": "lab.redis.pipeline() and lab.redis.transaction(...) change several keys at once",
    "sort": "sorted(lab.redis.lrange(key, 0, -1)) sorts on this side",
    "copy": "leave out the other database",
}


@dataclass(frozen=True, kw_only=True)
class KeyPlaces:
    """Where one command has its keys: from `first` to `last` in steps, 0 for no key, -1 for the last argument."""

    first: int
    last: int
    step: int
    movable: bool


def read_table(answer: Iterable[Any]) -> dict[str, KeyPlaces]:
    """What ``COMMAND`` answered, by command ("get") or container and command ("object|encoding")."""
    table: dict[str, KeyPlaces] = {}
    for entry in answer:
        flags = {_text(flag) for flag in entry[2]}
        places = KeyPlaces(first=entry[3], last=entry[4], step=entry[5], movable="movablekeys" in flags)
        table[_text(entry[0]).lower()] = places
        if len(entry) > 9 and entry[9]:
            table |= read_table(entry[9])
    return table


def key_positions(table: dict[str, KeyPlaces], words: list[Any]) -> list[int]:
    """Which of `words`, a command and its arguments, are keys. Raises NotConfined."""
    name = _text(words[0]).lower()
    full = f"{name}|{_text(words[1]).lower()}" if len(words) > 1 else name
    places = table.get(full) or table.get(name)
    label = name.upper()
    if places is None or "." in name:
        refuse(label, "this client does not know which keys it would touch")
    if name == "move" or (name == "copy" and any(_text(word).upper() == "DB" for word in words[3:])):
        refuse(label, "it leads out of this lab's database")
    if name == "evalsha" and len(words) > 2 and _text(words[1]) in LOCK_SCRIPTS:
        return list(range(3, 3 + _count(label, words, 2)))
    if name in COUNTED:
        at = COUNTED[name]
        return [1] * (name in STORING) + list(range(at + 1, at + 1 + _count(label, words, at)))
    if name in STREAMING:
        spoken = [_text(word).upper() for word in words]
        if "STREAMS" not in spoken[STREAMING[name] :]:
            refuse(label, "it names no STREAMS")
        start = spoken.index("STREAMS", STREAMING[name]) + 1
        return list(range(start, start + (len(words) - start) // 2))
    if places.movable:
        refuse(label, "it can touch keys that it does not name, those of others too")
    if not places.first:
        if full in HARMLESS or name in HARMLESS:
            return []
        refuse(label, "it works on the whole server, not on this lab's keys")
    last = places.last if places.last >= 0 else len(words) + places.last
    return list(range(places.first, min(last, len(words) - 1) + 1, places.step))


def _count(label: str, words: list[Any], at: int) -> int:
    try:
        count = int(_text(words[at]))
    except (ValueError, IndexError):
        refuse(label, "the number of its keys is missing")
    if not 0 <= count <= len(words) - at - 1:
        refuse(label, "it names fewer keys than it announces")
    return count


def refuse(command: str, why: str) -> NoReturn:
    instead = INSTEAD.get(command.lower().split()[0])
    raise NotConfined(
        f"{command} is not run on a shared Redis: {why}. "
        + (f"Instead: {instead}. " if instead else "")
        + "On a private Redis (unset SANDBOX_REDIS_URL and open the lab again) every command runs."
    )


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, (bytes, bytearray)) else str(value)


class _Confined:
    """Puts the prefix before every key on its way out. Mixed into a client and into its pipelines."""

    prefix: str
    table: dict[str, KeyPlaces]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        return super().execute_command(*self._confine(args), **options)  # type: ignore[misc]

    def _confine(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        # redis-py writes "XGROUP CREATE" as one argument and splits it on its way out.
        head = _text(args[0]).split()
        words = [*head, *args[1:]]
        name = head[0].upper()
        if (name, len(words)) in (("KEYS", 2), ("PUBLISH", 3)):
            positions = [1]
        elif name == "SCAN":
            options = [_text(word).upper() for word in words]
            if "MATCH" in options[2:-1:2]:
                positions = [2 * options[2:-1:2].index("MATCH") + 3]
            else:
                words += ["MATCH", "*"]
                positions = [len(words) - 1]
        else:
            positions = key_positions(self.table, words)
        for position in positions:
            words[position] = self._with_prefix(words[position])
        return (args[0], *words[len(head) :])

    def _with_prefix(self, key: Any) -> Any:
        if isinstance(key, (bytes, bytearray, memoryview)):
            return self.prefix.encode() + bytes(key)
        return f"{self.prefix}{key}"

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> ConfinedPipeline:
        pipe = ConfinedPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)  # type: ignore[attr-defined]
        pipe.prefix, pipe.table = self.prefix, self.table
        return pipe

    def pubsub(self, **options: Any) -> ConfinedPubSub:
        return ConfinedPubSub(self.connection_pool, prefix=self.prefix, **options)  # type: ignore[attr-defined]

    def client(self) -> NoReturn:
        refuse("client()", "it would be a client without the lab's prefix")

    def monitor(self) -> NoReturn:
        refuse("MONITOR", "it shows the commands of everybody")

    def _module(self, *_: Any, **__: Any) -> NoReturn:
        refuse("A module's command", "this client does not know which keys it would touch")

    json = ft = ts = bf = cf = cms = topk = tdigest = vset = _module


class ConfinedPipeline(_Confined, RedisPipeline):  # type: ignore[misc]
    """A pipeline of a ConfinedRedis."""


class ConfinedRedis(_Confined, redis.Redis):  # type: ignore[misc]
    """``redis.Redis`` for the keys that begin with `prefix`, which the caller never sees."""

    def __init__(self, url: str, prefix: str, **options: Any) -> None:
        self.prefix, self.table = prefix, {}
        super().__init__(connection_pool=redis.ConnectionPool.from_url(url, decode_responses=True, **options))
        self.auto_close_connection_pool = True
        with self.connection_pool_connection() as connection:
            connection.send_command("COMMAND")
            self.table = read_table(connection.read_response())
        for command, strip in STRIPPERS.items():
            self._strip_answer(command, strip)

    def connection_pool_connection(self) -> _Borrowed:
        return _Borrowed(self.connection_pool)

    def _strip_answer(self, command: str, strip: Callable[[Any, Callable[[Any], Any]], Any]) -> None:
        parse = self.response_callbacks.get(command)

        def answer(response: Any, **options: Any) -> Any:
            parsed = parse(response, **options) if parse else response
            return strip(parsed, self._without_prefix) if parsed else parsed

        self.set_response_callback(command, answer)

    def _without_prefix(self, key: Any) -> Any:
        return key.removeprefix(self.prefix if isinstance(key, str) else self.prefix.encode())


class _Borrowed:
    """A connection of a pool, given back at the end."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        self._connection = self._pool.get_connection()
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._pool.release(self._connection)


def _strip_first(answer: Any, strip: Callable[[Any], Any]) -> Any:
    return type(answer)([strip(answer[0]), *answer[1:]])


def _strip_streams(answer: Any, strip: Callable[[Any], Any]) -> Any:
    if isinstance(answer, dict):
        return {strip(key): entries for key, entries in answer.items()}
    return [_strip_first(stream, strip) for stream in answer]


STRIPPERS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "KEYS": lambda answer, strip: [strip(key) for key in answer],
    "SCAN": lambda answer, strip: (answer[0], [strip(key) for key in answer[1]]),
    "XREAD": _strip_streams,
    "XREADGROUP": _strip_streams,
    **dict.fromkeys(["BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX", "LMPOP", "ZMPOP", "BLMPOP", "BZMPOP"], _strip_first),
}


class ConfinedPubSub(PubSub):
    """Subscriptions to the lab's own channels."""

    def __init__(self, *args: Any, prefix: str, **options: Any) -> None:
        self.prefix = prefix
        super().__init__(*args, **options)

    def execute_command(self, *args: Any) -> Any:
        name = _text(args[0]).upper()
        if name in SUBSCRIBING:
            args = (args[0], *(f"{self.prefix}{_text(channel)}" for channel in args[1:]))
        elif name != "PING":
            refuse(name, "a subscriber only subscribes")
        return super().execute_command(*args)

    def parse_response(self, *args: Any, **options: Any) -> Any:
        answer = super().parse_response(*args, **options)
        if isinstance(answer, (list, tuple)) and len(answer) > 2:
            kind, *channels, data = answer
            return [kind, *(c.removeprefix(self.prefix) if isinstance(c, str) else c for c in channels), data]
        return answer
