"""Labs on a real Redis and a real PostgreSQL that others use too: own keys, own database, and nothing left."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from sandbox.errors import BadSetting, NotConfined, StackFailed
from sandbox.services import Lab, cleanup, shared
from sandbox.services.confined import key_positions, read_table
from sandbox.services.stack import Stack

PASSWORD = "s3cret/ with:signs@%"
QUOTED = "s3cret%2F%20with%3Asigns%40%25"
NAME = re.compile(r"always_ends_[0-9a-f]{8}")
TASK = """
import time
def work(job, table):
    job.db.execute(f"create table {table} (n integer)")
    for n in range(3):
        with job.transaction() as db:
            db.execute(f"insert into {table} values (%s)", [n])
        job.item_done(n)
    job.complete()
def long(job):
    job.item_done(0)
    time.sleep(600)
"""
OWNER = (
    """
import sys, time
from sandbox.services import Lab
lab = Lab.open("owner", quiet=True)
print(lab.stack.id, lab.stack.folder, flush=True)
module = lab.write_file("work", '''"""
    + TASK
    + """''')
job = lab.submit(module.long)
while not lab.ledger.read(kind="item done"):
    time.sleep(0.01)
print("running", flush=True)
sys.stdin.read()
"""
)


@pytest.fixture
def both(real_servers: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Both addresses set; afterwards nothing of a lab may be on the servers."""
    monkeypatch.setenv("SANDBOX_REDIS_URL", real_servers.redis_url)
    monkeypatch.setenv("SANDBOX_DATABASE_URL", real_servers.database_url)
    yield real_servers
    if Lab._open is not None:
        Lab._open.close()
    assert (real_servers.databases(), real_servers.keys()) == ([], [])


def with_both(env: dict[str, str], servers: Any) -> dict[str, str]:
    return env | {"SANDBOX_REDIS_URL": servers.redis_url, "SANDBOX_DATABASE_URL": servers.database_url}


ASKED_BY_THE_TEST = ("KEYS", "PUBSUB")


class Watched:
    """Every command the Redis server gets meanwhile, as its own MONITOR tells it."""

    def __init__(self, servers: Any) -> None:
        self._client, self.commands = servers.redis(socket_timeout=None), []
        with servers.redis() as asking:
            asking.set_response_callback("COMMAND", lambda answer, **_: answer)
            self.table = read_table(asking.execute_command("COMMAND"))

    def __enter__(self) -> Watched:
        self._monitor = self._client.monitor()
        self._monitor.__enter__()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def _listen(self) -> None:
        for told in self._monitor.listen():
            if told["command"] == "ECHO the-watch-is-over":
                return
            self.commands.append(told["command"])

    def __exit__(self, *_: object) -> None:
        self._client.echo("the-watch-is-over")
        self._thread.join(10)
        self._monitor.__exit__()
        self._client.close()

    def names(self) -> set[str]:
        """Every key and channel that a command named, however it came to the server."""
        found: set[str] = set()
        for command in self.commands:
            words = command.split(" ")
            name = words[0].upper()
            if name in ("PUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE"):
                found |= set(words[1:2] if name == "PUBLISH" else words[1:])
            elif name in ("EVALSHA", "EVAL"):
                found |= set(words[3 : 3 + int(words[2])])
            elif name == "SCAN":
                found.add(words[words.index("MATCH") + 1])
            elif name not in ("HELLO", "AUTH", "CLIENT", "SELECT", "SCRIPT", "MONITOR", *ASKED_BY_THE_TEST):
                found |= {words[at] for at in key_positions(self.table, words)}
        return found


def test_a_lab_lives_in_its_own_database_and_under_its_own_prefix(both: Any) -> None:
    """A job runs to its end; rows are in the lab's database, keys under its prefix, the time zone is UTC."""
    with Lab.open("real", quiet=True) as lab:
        assert lab.servers.prefix == f"always_ends_{lab.stack.id}:"
        assert both.databases() == [f"always_ends_{lab.stack.id}"]
        job = lab.run(lab.write_file("work", TASK).work, {"table": "mine"})
        assert (str(job.row.state), job.celery_state) == ("completed", "SUCCESS")
        assert lab.query("select count(*), current_setting('TimeZone') from mine").rows == [(3, "UTC")]
        assert both.keys() and all(key.startswith(lab.servers.prefix) for key in both.keys())
        assert ("127.0.0.1" in repr(lab) and "Valkey" in repr(lab)) or "Redis" in repr(lab)
        for secret in (PASSWORD, QUOTED):
            assert secret not in repr(lab) + repr(lab.servers) + lab.stack.log("worker").read_text()
            assert secret not in repr(lab._settings())


def test_reset_empties_the_lab_and_nothing_else(both: Any) -> None:
    """Keys of others stay; the next job finds its way to the worker."""
    with both.redis() as everything, Lab.open("real", quiet=True) as lab:
        everything.set("foreign", 1)
        lab.redis.set("mine", 1)
        module = lab.write_file("work", TASK)
        lab.run(module.work, {"table": "mine"})
        assert "was left as it is" in lab.reset()
        assert everything.get("foreign") == "1" and lab.redis.get("mine") is None
        assert all("_kombu.binding" in key for key in lab.redis.keys())
        assert lab.query("select tablename from pg_tables where schemaname = 'public'").column("tablename") == ["jobs"]
        assert lab.run(module.work, {"table": "mine"}).row.state == "completed"
        everything.delete("foreign")


def test_every_command_of_two_labs_stays_under_their_prefixes(both: Any, owner: Any, eventually: Any) -> None:
    """Queues, unacknowledged messages, results, bindings and remote control, as the server itself saw them."""
    with Watched(both) as watched, Lab.open("one", quiet=True) as lab:
        other = owner(OWNER, env=with_both(dict(os.environ), both))
        other_id, _ = other.stdout.readline().split()
        module = lab.write_file("work", TASK)
        jobs = [lab.submit(module.work, {"table": f"t{n}"}) for n in range(3)]
        assert lab.app.control.ping(timeout=5, limit=1, destination=[f"lab@{lab.stack.id}"])
        lab.app.control.broadcast("ping")
        assert other.stdout.readline() == "running\n"
        killed = lab.submit(module.long)
        assert eventually(lambda: lab.ledger.read(killed.id, "item done"))
        lab.kill(killed)
        for job in [*jobs, killed]:
            job.wait()
        prefixes = (lab.servers.prefix, f"always_ends_{other_id}:")
        assert all(key.startswith(prefixes) for key in both.keys())
        with both.redis() as everything:
            assert everything.pubsub_numpat() >= 2
        assert len(both.databases()) == 2
        other.stdin.close()
        other.wait(60)
    names = watched.names()
    assert {name for name in names if not name.startswith(prefixes)} == set()
    for part in ("celery", "unacked", "_kombu.binding.celery", "celery-task-meta-", "pidbox", "/0."):
        assert any(part in name for name in names), part


def test_two_labs_and_a_third_never_see_each_others_work(both: Any, owner: Any) -> None:
    """Three at once, each with the same names of files, tables, keys and channels."""
    text = """
import sys
from sandbox.services import Lab
n = int(sys.argv[1])
with Lab.open("same", quiet=True) as lab:
    lab.redis.set("key", n)
    print("open", flush=True)
    sys.stdin.readline()
    module = lab.write_file("same", f'''
def work(job, m):
    assert m == {n}, (m, {n})
    job.db.execute("create table if not exists same (n integer)")
    job.db.execute("insert into same values (%s)", [m])
    job.complete(str(m))
''')
    for _ in range(5):
        lab.run(module.work, {"m": n})
    rows = lab.query("select distinct n from same").rows
    whys = sorted({(str(row.state), row.why) for row in lab.jobs.all()})
    print(lab.redis.get("key"), rows, len(lab.jobs.all()), whys, len(lab.ledger.read(kind="accepted")), flush=True)
"""
    labs = [owner(text, str(n), env=with_both(dict(os.environ), both)) for n in range(3)]
    assert [lab.stdout.readline() for lab in labs] == ["open\n"] * 3
    for lab in labs:
        lab.stdin.write("go\n")
        lab.stdin.flush()
    for n, lab in enumerate(labs):
        assert lab.stdout.readline() == f"{n} [({n},)] 5 [('completed', '{n}')] 5\n", lab.stderr.read()
        assert lab.wait(60) == 0


def test_a_killed_owner_leaves_nothing_on_the_servers(both: Any, owner: Any, eventually: Any, traces: Any) -> None:
    """SIGKILL while a task runs: database, keys, channels, processes and folder go."""
    killed = owner(OWNER, env=with_both(dict(os.environ), both))
    _, folder = killed.stdout.readline().split()
    assert killed.stdout.readline() == "running\n"
    assert len(both.databases()) == 1 and both.keys()
    killed.kill()
    killed.wait()
    assert eventually(lambda: not (both.databases() or both.keys() or traces.left(folder)))
    with both.redis() as everything:
        assert (everything.pubsub_numpat(), everything.pubsub_channels()) == (0, [])


def test_a_killed_sidecar_leaves_nothing_on_the_servers(both: Any, eventually: Any, traces: Any) -> None:
    """The owner does its last work."""
    lab = Lab.open("real", quiet=True)
    folder = str(lab.stack.folder)
    os.kill(lab.stack._process.pid, signal.SIGKILL)
    assert eventually(lambda: not (both.databases() or both.keys() or traces.left(folder)))
    lab.close()


def test_an_owner_killed_while_its_database_is_made_leaves_none(both: Any, owner: Any, eventually: Any) -> None:
    """The clean-up waits for the server to finish what it had begun."""
    text = """
import sys, psycopg
from sandbox.services import Lab, shared
real = psycopg.Connection.execute
def execute(self, query, *a, **k):
    if "create database" in str(query):
        # As a slow server: the statement is on its way, the owner does not see it end.
        real(self, "set application_name = 'creating'")
        self.pgconn.send_query(query.as_bytes(self).replace(b"template0", b"template1"))
        self.pgconn.flush()
        print("creating", flush=True)
        sys.stdin.read()
    return real(self, query, *a, **k)
psycopg.Connection.execute = execute
Lab.open("dying", worker=False, quiet=True)
"""
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and wait_event = 'advisory'"
    alive = "select count(*) from pg_stat_activity where application_name = 'creating'"
    with both.admin() as admin:

        def count(query: str) -> int:
            return int(admin.execute(query).fetchone()[0])

        # While somebody is connected to its template the server waits, up to five seconds, before it begins.
        guest = psycopg.connect(both.stack.postgres_dsn, port=both.database_port, dbname="template1")
        killed = owner(text, env=with_both(dict(os.environ), both))
        assert killed.stdout.readline() == "creating\n", killed.stderr.read()
        killed.kill()
        killed.wait()
        eventually(lambda: count(waiting), 2)  # the clean-up, unless it is slow to start: then it comes after
        guest.close()
        assert eventually(lambda: not count(alive) and not both.databases())
        assert eventually(lambda: not count(waiting))
    assert both.databases() == []


def test_a_lab_that_fails_to_open_leaves_nothing(
    both: Any, monkeypatch: pytest.MonkeyPatch, lab_folders: Path, folders_in: Any
) -> None:
    """The database was made and the worker could not start: the error is the worker's, and all is gone."""
    real = Lab._worker_program
    monkeypatch.setattr(Lab, "_worker_program", lambda *a: real(*a) | {"argv": ["/bin/sh", "-c", "exit 3"]})
    with pytest.raises(StackFailed, match="worker is not running"):
        Lab.open("half", quiet=True)
    monkeypatch.undo()
    assert both.databases() == [] and folders_in(lab_folders) == []
    assert Lab._open is None


@pytest.mark.parametrize("which", ["SANDBOX_REDIS_URL", "SANDBOX_DATABASE_URL"])
def test_either_server_alone_can_be_real(both: Any, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """The other one stays private."""
    other = ({"SANDBOX_REDIS_URL", "SANDBOX_DATABASE_URL"} - {which}).pop()
    monkeypatch.setenv(other, " ")
    with Lab.open("half", quiet=True) as lab:
        assert [spec["name"] for spec in lab.servers.programs] == ["postgres" if "REDIS" in which else "redis"]
        assert bool(both.databases()) == ("DATABASE" in which) and bool(both.keys()) == ("REDIS" in which)
        assert lab.run(lab.write_file("work", TASK).work, {"table": "t"}).row.state == "completed"
        if "REDIS" in which:
            with pytest.raises(NotConfined):
                lab.redis.flushall()
        else:
            assert lab.redis.flushall()


def test_a_redis_on_a_socket_with_a_password(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address unix:///path works like redis://, its database number too."""
    monkeypatch.setenv("SANDBOX_REDIS_URL", f"unix://:{QUOTED}@{both.stack.redis_socket}?db=3")
    with Lab.open("socket", quiet=True) as lab:
        assert lab.run(lab.write_file("work", TASK).work, {"table": "t"}).row.state == "completed"
        with both.redis(db=3) as third:
            assert all(key.startswith(lab.servers.prefix) for key in third.keys()) and third.keys()
        assert both.keys() == []
    with both.redis(db=3) as third:
        assert third.keys() == []


def test_no_password_is_in_any_command_line(both: Any) -> None:
    """Every process of the machine shows its arguments to every user."""
    with Lab.open("real", quiet=True):
        lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert lines or not Path("/proc/self").exists()
    assert not [line for line in lines if b"s3cret" in line]


# -- one sentence for each thing that can be wrong ----------------------------------------------------------------


def refused(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception], folders: Callable[[], list[str]], **env: str
) -> str:
    for name, value in env.items():
        monkeypatch.setenv(f"SANDBOX_{name}_URL", value)
    with pytest.raises(kind) as caught:
        Lab.open("refused", quiet=True)
    text = str(caught.value)
    assert "\n" not in text and text.endswith(".")
    for secret in ("s3cret", QUOTED, PASSWORD, "wr0ng"):
        assert secret not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert folders() == [] and Lab._open is None
    return text


@pytest.fixture
def sentence(monkeypatch: pytest.MonkeyPatch, lab_folders: Path, folders_in: Any) -> Callable[..., str]:
    """Open a lab with these addresses; returns the error's text once it is one sentence without a password."""
    return lambda kind, **env: refused(monkeypatch, kind, lambda: folders_in(lab_folders), **env)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:6379",
        "http://u:s3cret@localhost",
        "redis://",
        "redis://u:s3cret@host:notaport/0",
        "redis://u:s3cret@host:6379/zero",
        "redis://u:s3cret@host:6379/0#x",
        "unix://u:s3cret@/tmp/x.sock?db=one",
        "redis://u:s3cret@[::1",
        "nonsense s3cret",
    ],
)
def test_a_redis_address_that_is_none(sentence: Callable[..., str], address: str) -> None:
    """The error shows the form of a right one."""
    assert "redis://USER:PASSWORD@HOST:6379/0" in sentence(BadSetting, REDIS=address)


@pytest.mark.parametrize(
    "address",
    [
        "localhost",
        "host=localhost password=s3cret",
        "mysql://u:s3cret@localhost/db",
        "postgresql://u:s3cret@localhost/db?nonsense=1",
        "postgresql://u:s3cret@local host:port",
        "postgresql+psycopg://u:s3cret@localhost/db",
        "postgresql://u:s3cret%@localhost",
    ],
)
def test_a_database_address_that_is_none(sentence: Callable[..., str], address: str) -> None:
    """The error shows the form of a right one."""
    assert "postgresql://USER:PASSWORD@HOST:5432/DATABASE" in sentence(BadSetting, DATABASE=address)


def test_tls_is_refused_by_name(sentence: Callable[..., str]) -> None:
    """It is not what a typing error is."""
    assert "TLS" in sentence(BadSetting, REDIS="rediss://u:s3cret@localhost:6379/0")


def test_a_server_that_is_not_there(sentence: Callable[..., str]) -> None:
    """Place and setting are named, and three ways out."""
    for env in ({"REDIS": "redis://:s3cret@127.0.0.1:1/0"}, {"DATABASE": "postgresql://u:s3cret@127.0.0.1:1/d"}):
        text = sentence(StackFailed, **env)
        assert "127.0.0.1:1" in text and "does not answer" in text and "refused" in text
        assert "Start it, correct the address, or unset SANDBOX_" in text
        for name in ("REDIS", "DATABASE"):
            os.environ.pop(f"SANDBOX_{name}_URL", None)


def test_a_servers_own_words_never_repeat_a_password() -> None:
    """Whatever it answers, in whichever form the address had it, on one line."""
    told = f"no:\n  {PASSWORD}, nor {QUOTED}."
    for address in (
        f"redis://:{QUOTED}@host/0",
        f"redis://host/0?password={QUOTED}",
        shared._dsn(f"postgresql://u:{QUOTED}@host/d"),
    ):
        assert PASSWORD not in shared._without_passwords(told, address)
        assert shared._without_passwords(f"no:\n {PASSWORD}.", address) == "no: ***"
    assert QUOTED not in shared._without_passwords(told, f"redis://:{QUOTED}@host/0")


def test_a_wrong_password(sentence: Callable[..., str], real_servers: Any) -> None:
    """The server is named, its own words are there, and which setting to correct."""
    text = sentence(BadSetting, REDIS=real_servers.redis_url.replace(QUOTED, "wr0ng"))
    assert "does not let this lab in" in text and "SANDBOX_REDIS_URL" in text
    text = sentence(BadSetting, REDIS=re.sub(r"//.*@", "//", real_servers.redis_url))
    assert "does not let this lab in" in text
    text = sentence(BadSetting, REDIS="", DATABASE=real_servers.database_url.replace(QUOTED, "wr0ng"))
    assert "password authentication failed" in text and "SANDBOX_DATABASE_URL" in text


def test_a_database_that_is_not_there(sentence: Callable[..., str], real_servers: Any) -> None:
    """Of either server."""
    text = sentence(BadSetting, DATABASE=real_servers.database_url.replace("/maintenance", "/nowhere"))
    assert 'database "nowhere" does not exist' in text
    text = sentence(BadSetting, DATABASE="", REDIS=real_servers.redis_url.replace("/0", "/99"))
    assert "out of range" in text


def test_a_user_who_may_not_create_databases(sentence: Callable[..., str], real_servers: Any) -> None:
    """The error shows what an administrator types."""
    assert 'ALTER ROLE "poor" CREATEDB' in sentence(BadSetting, DATABASE=real_servers.poor_url)


def test_a_postgres_that_is_too_old(
    sentence: Callable[..., str], real_servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version it has and the one that is needed are named."""
    monkeypatch.setattr(shared, "OLDEST_POSTGRES", 99)
    assert re.search(r"is version \d+; 99 or newer", sentence(BadSetting, DATABASE=real_servers.database_url))


def test_a_redis_that_is_too_old(
    sentence: Callable[..., str], real_servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version it has and the one that is needed are named."""
    monkeypatch.setattr(shared, "OLDEST_REDIS", (99, 1))
    assert re.search(
        r"is version [\d.]+; Celery needs 99\.1 or newer", sentence(BadSetting, REDIS=real_servers.redis_url)
    )


def test_a_redis_user_who_may_not_write_there(sentence: Callable[..., str], real_servers: Any) -> None:
    """An ACL that leaves out the lab's keys is noticed before anything starts."""
    with real_servers.redis() as client:
        client.acl_setuser("limited", enabled=True, passwords=["+s3cret"], categories=["+@all"], keys=["other:*"])
    text = sentence(BadSetting, REDIS=f"redis://limited:s3cret@127.0.0.1:{real_servers.redis_port}/0")
    assert "does not let this lab in" in text and "key" in text.lower()


@pytest.fixture
def copies(real_servers: Any) -> Iterator[tuple[str, str]]:
    """Addresses of a Redis that is a replica and of a PostgreSQL that is a standby."""
    stack = Stack()
    try:
        one, other = stack.redis(), stack.postgres()
        one["argv"] += ["--replicaof", "127.0.0.1", "1"]
        # A data directory with this file in it is a standby, here of a primary that never sends anything.
        other["argv"] = ["/bin/sh", "-c", f'touch "{stack.folder}/data/standby.signal"; exec "$0" "$@"', *other["argv"]]
        stack.open([one, other])
        stack.wait_ready("redis", "postgres")
        yield (
            f"unix://{stack.redis_socket}?db=0",
            f"postgresql://sandbox@/sandbox?host={str(stack.folder / 'pg').replace('/', '%2F')}",
        )
    finally:
        stack.close()


def test_a_server_that_only_copies_another(copies: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica takes no writes: name the primary."""
    monkeypatch.setenv("SANDBOX_REDIS_URL", copies[0])
    with pytest.raises(BadSetting, match=r"read-only replica of 127\.0\.0\.1:1: name the primary in SANDBOX_REDIS_URL"):
        Lab.open("replica", quiet=True)
    monkeypatch.delenv("SANDBOX_REDIS_URL")
    monkeypatch.setenv("SANDBOX_DATABASE_URL", copies[1])
    with pytest.raises(BadSetting, match="read-only standby: name the primary in SANDBOX_DATABASE_URL"):
        Lab.open("standby", quiet=True)


# -- the clean-up program -------------------------------------------------------------------------------------------


def test_the_clean_up_touches_only_what_has_a_labs_name(both: Any) -> None:
    """Whatever it is told, a database or prefix that no lab could have is refused."""
    for name in ("maintenance", "postgres", "always_ends_", "always_ends_xyz", "x_always_ends_00000000", ""):
        with pytest.raises(ValueError, match="not the name"):
            cleanup.drop_database(both.database_url, name)
    for prefix in ("", "*", "always_ends_:", "always_ends_00000000", "always_ends_*:", "celery:"):
        with pytest.raises(ValueError, match="not the prefix"):
            cleanup.delete_keys(both.redis_url, prefix)


def test_the_clean_up_of_nothing_is_no_error(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may run before anything was made, and again."""
    order = '{"database": {"dsn": "%s", "name": "always_ends_00000000"}, "redis": {"url": "%s", "prefix": "always_ends_00000000:"}}'
    monkeypatch.setenv("SANDBOX_CLEANUP", order % (both.database_url, both.redis_url))
    assert cleanup.main() == cleanup.main() == 0


def test_the_clean_up_does_one_thing_when_the_other_fails(
    both: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unreachable PostgreSQL does not keep the keys, and its error shows no password."""
    with both.redis() as everything:
        everything.set("always_ends_00000000:key", 1)
        everything.set("always_ends_000000001:key", 1)
    dead = "postgresql://u:s3cret@127.0.0.1:1/d"
    order = '{"database": {"dsn": "%s", "name": "always_ends_00000000"}, "redis": {"url": "%s", "prefix": "always_ends_00000000:"}}'
    monkeypatch.setenv("SANDBOX_CLEANUP", order % (dead, both.redis_url))
    assert cleanup.main() == 1
    assert both.keys() == ["always_ends_000000001:key"]
    assert "s3cret" not in capsys.readouterr().err
    cleanup.delete_keys(both.redis_url, "always_ends_000000001:")


def test_a_database_with_people_in_it_is_dropped(both: Any) -> None:
    """A client that stays connected does not keep it."""
    with Lab.open("real", worker=False, quiet=True) as lab:
        guest = psycopg.connect(lab.servers.dsn)
        guest.execute("select 1")
    assert both.databases() == []
    with pytest.raises(psycopg.OperationalError):
        guest.execute("select 1")


def test_a_server_that_dies_later_is_named(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no log of it here; the error of the client is what can be told."""
    stack = Stack()
    one = stack.redis()
    try:
        stack.open([one])
        stack.wait_ready("redis")
        monkeypatch.setenv("SANDBOX_REDIS_URL", f"unix://{stack.redis_socket}?db=0")
        with Lab.open("dying", worker=False, quiet=True) as lab:
            module = lab.write_file("work", TASK)
            assert lab.redis.ping()
            stack.stop("redis")
            with pytest.raises((redis.ConnectionError, OSError)):
                lab.redis.ping()
            assert module
    finally:
        stack.close()
