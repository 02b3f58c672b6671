"""``lab.redis`` on a shared server: everything works on the lab's own keys, nothing on those of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.commands.redismodules import RedisModuleCommands

from sandbox.errors import NotConfined
from sandbox.services.confined import HARMLESS, ConfinedRedis, KeyPlaces, key_positions, read_table

MINE, THEIRS = "always_ends_aaaaaaaa:", "always_ends_bbbbbbbb:"


@pytest.fixture
def everything(real_servers: Any) -> Iterator[redis.Redis]:
    """A client that sees the whole server, empty but for one key of somebody else."""
    with real_servers.redis() as client:
        client.flushall()
        client.set("foreign", "theirs")
        yield client
        client.flushall()


@pytest.fixture
def mine(real_servers: Any, everything: redis.Redis) -> Iterator[ConfinedRedis]:
    with ConfinedRedis(real_servers.redis_url, MINE) as client:
        yield client


@pytest.fixture
def theirs(real_servers: Any, everything: redis.Redis) -> Iterator[ConfinedRedis]:
    with ConfinedRedis(real_servers.redis_url, THEIRS) as client:
        yield client


def outside(everything: redis.Redis) -> list[str]:
    return sorted(key for key in everything.keys() if not key.startswith(MINE))


def test_keys_get_the_prefix_and_lose_it_again(mine: ConfinedRedis, everything: redis.Redis) -> None:
    """Text, bytes and numbers as keys; the caller never sees the prefix."""
    mine.set("text", "1")
    mine.set(b"bytes", "2")
    mine.set(7, "3")
    mine.mset({"a": 1, "b": 2})
    mine.rename("a", "c")
    mine.copy("b", "d")
    assert sorted(mine.keys()) == ["7", "b", "bytes", "c", "d", "text"]
    assert mine.mget("text", "bytes", 7, "foreign") == ["1", "2", "3", None]
    assert mine.exists("text", "foreign") == 1
    assert outside(everything) == ["foreign"]
    assert {key for key in everything.keys() if key != "foreign"} == {f"{MINE}{key}" for key in mine.keys()}
    assert mine.delete("text", "bytes", "foreign") == 2
    assert everything.get("foreign") == "theirs"


def test_each_lab_sees_its_own_value_of_one_key(mine: ConfinedRedis, theirs: ConfinedRedis) -> None:
    """The same name is two keys."""
    mine.set("k", "mine")
    theirs.set("k", "theirs")
    assert (mine.get("k"), theirs.get("k")) == ("mine", "theirs")
    assert mine.keys() == theirs.keys() == ["k"]


def test_patterns_look_among_own_keys_only(mine: ConfinedRedis, theirs: ConfinedRedis) -> None:
    """KEYS and SCAN, with and without a pattern, a count and a type."""
    mine.mset({"job:1": 1, "job:2": 2, "other": 3})
    mine.rpush("job:list", "x")
    theirs.set("job:9", 1)
    assert sorted(mine.keys("job:*")) == ["job:1", "job:2", "job:list"]
    assert mine.keys("*foreign*") == []
    assert sorted(mine.scan_iter()) == ["job:1", "job:2", "job:list", "other"]
    assert sorted(mine.scan_iter(match="job:?", count=2)) == ["job:1", "job:2"]
    assert list(mine.scan_iter(_type="list")) == ["job:list"]
    assert list(theirs.scan_iter("*")) == ["job:9"]
    assert sorted(mine.execute_command("scan", 0, "count", 100, "match", "job:?")[1]) == ["job:1", "job:2"]


def test_answers_that_name_keys_are_stripped(mine: ConfinedRedis) -> None:
    """Blocking pops, pops of several lists and reads of streams say the caller's own names."""
    mine.rpush("l", "1", "2", "3", "4")
    assert tuple(mine.blpop(["none", "l"], 1)) == ("l", "1")  # type: ignore[arg-type]
    assert tuple(mine.brpop("l", 1)) == ("l", "4")  # type: ignore[arg-type]
    assert mine.lmpop(2, "none", "l", direction="LEFT")[0] == "l"  # type: ignore[index]
    assert mine.blmpop(1, 2, "none", "l", direction="LEFT")[0] == "l"  # type: ignore[index]
    assert mine.blpop("none", 0.01) is None  # type: ignore[arg-type]
    mine.zadd("z", {"a": 1, "b": 2, "c": 3})
    assert mine.bzpopmin("z", 1)[:2] in (["z", "a"], ("z", "a"))  # type: ignore[index]
    assert mine.zmpop(1, ["z"], min=True)[0] == "z"  # type: ignore[index]
    mine.xadd("s", {"f": "v"})
    found: Any = mine.xread({"s": 0})
    assert "s" in dict(found) and MINE not in str(found)
    mine.xgroup_create("s", "streams", "0")  # a group of that name must not be taken for the word STREAMS
    assert "s" in dict(mine.xreadgroup("streams", "me", {"s": ">"}, count=1))  # type: ignore[arg-type]
    assert mine.xinfo_stream("s")["length"] == 1  # type: ignore[index]


def test_commands_with_a_number_of_keys(mine: ConfinedRedis, everything: redis.Redis) -> None:
    """Unions and intersections read and write own keys, the destination too."""
    mine.zadd("x", {"a": 1, "b": 2})
    mine.zadd("y", {"b": 3})
    assert mine.zunionstore("xy", ["x", "y"]) == 2
    assert mine.zinter(["x", "y"]) == ["b"]
    assert mine.zintercard(2, ["x", "y"]) == 1
    mine.sadd("p", 1, 2)
    mine.sadd("q", 2)
    assert mine.sinterstore("pq", "p", "q") == 1
    assert mine.bitop("AND", "bits", "x1", "x2") == 0
    assert outside(everything) == ["foreign"]


def test_pipelines_and_transactions_are_confined(mine: ConfinedRedis, everything: redis.Redis) -> None:
    """Plain, transactional, watching, and made from another pipeline's client."""
    for transaction in (True, False):
        with mine.pipeline(transaction=transaction) as pipe:
            pipe.set("a", 1).incr("a").rpush("l", 1).keys("a*").blpop("l", 1)
            *_, keys, popped = pipe.execute()
            assert (keys, tuple(popped)) == (["a"], ("l", "1"))
    assert mine.transaction(lambda pipe: (pipe.multi(), pipe.incr("a")), "a") == [3]  # type: ignore[arg-type,func-returns-value]
    with mine.pipeline() as pipe:
        pipe.watch("a", "foreign")
        assert (pipe.get("a"), pipe.get("foreign")) == ("3", None)
        everything.set(f"{MINE}a", 9)
        pipe.multi()
        pipe.incr("a")
        with pytest.raises(redis.WatchError):
            pipe.execute()
    with mine.pipeline() as pipe, pytest.raises(NotConfined):
        pipe.flushall()
    assert outside(everything) == ["foreign"]


def test_locks_work_and_are_own_keys(mine: ConfinedRedis, everything: redis.Redis) -> None:
    """redis-py's lock runs scripts; those are known to touch nothing but the lock."""
    with mine.lock("once", timeout=30) as lock:
        assert everything.exists(f"{MINE}once")
        assert not mine.lock("once", blocking=False).acquire()
        lock.extend(5)
        lock.reacquire()
    assert outside(everything) == ["foreign"] and mine.keys() == []


def test_channels_are_own_channels(mine: ConfinedRedis, theirs: ConfinedRedis, everything: redis.Redis) -> None:
    """A message reaches subscribers of the same lab, under the name they gave, and nobody else."""
    with mine.pubsub(ignore_subscribe_messages=True) as ours, theirs.pubsub(ignore_subscribe_messages=True) as other:
        for listener in (ours, other):
            listener.subscribe("news")
            listener.psubscribe("ne?s*")
            while len(listener.channels) + len(listener.patterns) < 2:
                listener.get_message(timeout=1)
        heard: list[str] = []
        ours.subscribe(direct=lambda message: heard.append(message["channel"]))
        ours.get_message(timeout=1)
        assert sorted(everything.pubsub_channels()) == sorted([f"{MINE}direct", f"{MINE}news", f"{THEIRS}news"])
        assert mine.publish("news", "hello") == 2
        mine.publish("direct", "hello")
        got = [message for _ in range(20) if (message := ours.get_message(timeout=0.2))]
        assert {(m["type"], m["pattern"], m["channel"], m["data"]) for m in got} == {
            ("message", None, "news", "hello"),
            ("pmessage", "ne?s*", "news", "hello"),
        }
        assert heard == ["direct"]
        late = [other.get_message(timeout=0.05) for _ in range(3)]
        assert late == [None, None, None]


REFUSED: list[tuple[Any, ...]] = [
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("flushall", "async"),
    ("SWAPDB", 0, 1),
    ("SELECT", 1),
    ("MOVE", "k", 1),
    ("COPY", "a", "b", "DB", 1),
    ("COPY", "a", "b", "REPLACE", "db", 1),
    ("RANDOMKEY",),
    ("DBSIZE",),
    ("EVAL", "return redis.call('get', 'foreign')", 0),
    ("EVAL", "return 1", 1, "k"),
    ("EVALSHA", "0" * 40, 0),
    ("EVAL_RO", "return 1", 0),
    ("FCALL", "f", 0),
    ("FUNCTION", "FLUSH"),
    ("SCRIPT", "FLUSH"),
    ("SCRIPT FLUSH",),
    ("CONFIG SET", "maxmemory", "1"),
    ("CONFIG", "GET", "requirepass"),
    ("ACL", "LIST"),
    ("CLIENT", "KILL", "ID", 1),
    ("CLIENT LIST",),
    ("SLOWLOG", "GET"),
    ("MONITOR",),
    ("SUBSCRIBE", "news"),
    ("PUBSUB", "CHANNELS"),
    ("SHUTDOWN",),
    ("SAVE",),
    ("REPLICAOF", "NO", "ONE"),
    ("DEBUG", "SLEEP", 0),
    ("SORT", "l", "GET", "foreign"),
    ("SORT", "l", "STORE", "foreign"),
    ("MIGRATE", "h", 1, "", 0, 1, "KEYS", "foreign"),
    ("GEORADIUS", "g", 1, 1, 1, "m", "STORE", "foreign"),
    ("XREAD", "COUNT", 1),
    ("ZUNION", "many", "k"),
    ("ZUNION", 5, "k"),
    ("LMPOP",),
    ("FT.CREATE", "idx"),
    ("NOSUCHCOMMAND", "k"),
    ("OBJECT",),
]


@pytest.mark.parametrize("command", REFUSED, ids=lambda command: " ".join(map(str, command))[:40])
def test_what_can_not_be_confined_is_refused(
    mine: ConfinedRedis, everything: redis.Redis, command: tuple[Any, ...]
) -> None:
    """The error names the command and the way to a private Redis; nothing is sent, in a pipeline neither."""
    with pytest.raises(NotConfined) as caught:
        mine.execute_command(*command)
    assert command[0].upper().split()[0] in str(caught.value) and "unset SANDBOX_REDIS_URL" in str(caught.value)
    with mine.pipeline() as pipe, pytest.raises(NotConfined):
        pipe.execute_command(*command)
    assert everything.keys() == ["foreign"]


def test_refusals_say_what_to_type_instead(mine: ConfinedRedis) -> None:
    """Where there is a way within the lab, the error shows it."""
    for call, instead in (
        (mine.flushall, "lab.reset()"),
        (mine.dbsize, "len(lab.redis.keys())"),
        (lambda: mine.eval("return 1", 0), "lab.redis.pipeline()"),
        (lambda: mine.register_script("return 1")(), "lab.redis.pipeline()"),
    ):
        with pytest.raises(NotConfined) as caught:
            call()  # type: ignore[operator]
        assert instead in str(caught.value)


def test_clients_made_from_this_one_are_refused_or_confined(mine: ConfinedRedis) -> None:
    """Neither a monitor, a bare client nor a module's client gets around the prefix."""
    modules = [name for name in vars(RedisModuleCommands) if not name.startswith("_")]
    for name in ["monitor", "client", *modules]:
        with pytest.raises(NotConfined):
            getattr(mine, name)()


def test_what_tells_nothing_of_others_is_allowed(mine: ConfinedRedis) -> None:
    """Health and time of the server may be asked."""
    assert mine.ping() and mine.time() and mine.echo("x") == "x" and mine.client_id()
    assert mine.info("server")["redis_version"]  # type: ignore[index]


def test_every_command_of_the_server_is_confined_or_refused(mine: ConfinedRedis) -> None:
    """For each command the server knows: its own answer about the keys is where the prefix goes, else it is refused."""
    words = ["k1", "k2", "k3", "k4", "k5", "k6"]
    for name, places in mine.table.items():
        command = [*name.split("|"), *words]
        try:
            positions = key_positions(mine.table, command)
        except NotConfined:
            continue
        assert positions or name in HARMLESS or name.split("|")[0] in HARMLESS, name
        if positions:
            assert not places.movable or name in {"evalsha"}, name
            assert min(positions) == places.first, name


def test_an_older_server_describes_containers_as_one_command() -> None:
    """Redis 6.2 has no entries for subcommands; its words for the container hold."""
    old = [
        [b"object", -2, [b"readonly"], 2, 2, 1, []],
        [b"config", -2, [b"admin"], 0, 0, 0, []],
        [b"xgroup", -2, [b"write"], 2, 2, 1, []],
    ]
    table = read_table(old)
    assert table["object"] == KeyPlaces(first=2, last=2, step=1, movable=False)
    assert key_positions(table, ["OBJECT", "ENCODING", "k"]) == [2]
    assert key_positions(table, ["XGROUP", "CREATE", "k", "g", "$"]) == [2]
    with pytest.raises(NotConfined):
        key_positions(table, ["CONFIG", "SET", "a", "b"])
