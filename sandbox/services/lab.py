"""``Lab``: a private Redis, PostgreSQL and Celery worker, opened from a notebook and closed with it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
import redis

from sandbox.errors import BadSetting, NoLabOpen, PoolIgnoresLimits
from sandbox.jobs import Ledger, PgStore, State
from sandbox.services import code
from sandbox.services.shared import Servers, private_servers, shared_servers
from sandbox.services.stack import Stack
from sandbox.services.submitted import SubmittedJob, require_json
from sandbox.services.table import Table
from sandbox.services.worker import Worker, ignored, limit, worker_options

if TYPE_CHECKING:
    from celery import Celery

    from sandbox.services.worker_app import WorkerSettings


class Lab:
    """One lesson's servers. ``Lab.open("03")`` opens it, the end of the kernel closes it, however it ends.

    ``lab.db`` is a psycopg connection in autocommit, ``lab.redis`` a Redis client, ``lab.jobs`` the job rows,
    ``lab.ledger`` the events. A lab is used by the process and the thread that opened it.
    """

    _open: ClassVar[Lab | None] = None
    _ended: ClassVar[dict[str, int]] = {}  # jobs by state, of the labs this process has closed

    def __init__(self, name: str, stack: Stack, servers: Servers) -> None:
        self.name, self.stack, self.servers = name, stack, servers
        self.work = stack.folder / "work"
        self.work.mkdir()
        # The worker is ended by SIGKILL, so what it and its tasks put into a temporary folder has to go with the lab.
        self.temporary = stack.folder / "tmp"
        self.temporary.mkdir()
        self.ledger = Ledger(stack.folder / "ledger.jsonl")
        self.before_close: list[Callable[[], object]] = []  # a last look at the jobs, for whoever shows them
        self._jobs = PgStore(servers.dsn)
        self._db: psycopg.Connection[Any] | None = None
        self._redis: redis.Redis | None = None
        self._app: Celery | None = None
        self._worker: Worker | None = None
        self._options: dict[str, Any] | None = None  # what the worker was started with

    # -- opening and closing --------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        name: str = "lab",
        *,
        worker: bool = True,
        quiet: bool = False,
        **options: Any,
    ) -> Lab:
        """Start Redis, PostgreSQL and, unless `worker` is false, a worker; return when all are ready.

        `options` are those of ``lab.worker``. A lab that this kernel has open already is closed first, with its data.
        ``SANDBOX_REDIS_URL`` and ``SANDBOX_DATABASE_URL`` put a real server in the place of a private one; the lab
        then has a key prefix and a database of its own, removed when it closes.
        Raises MissingProgram, StackFailed, BadSetting, PoolIgnoresLimits.
        """
        options = worker_options(**options)
        if cls._open is not None:
            cls._open.close()
        say: Callable[[str], None] = (lambda _: None) if quiet else print
        stack = Stack(say)
        try:
            servers = shared_servers(stack) or private_servers(stack)
            lab = cls(name, stack, servers)
            # The worker first: it takes longest, and imports Celery while PostgreSQL's data directory is copied.
            specs = [*([lab._worker_program(options)] if worker else []), *servers.programs]
            stack.open(specs)
            servers.prepare()
            stack.wait_ready(*(spec["name"] for spec in specs))
        except BaseException:
            stack.close()
            raise
        if worker:
            lab._worker = lab._started(options)
        cls._open = lab
        if not quiet:
            print(lab)
        return lab

    @classmethod
    def current(cls) -> Lab:
        """The lab this kernel has open; raises NoLabOpen."""
        if cls._open is None or cls._open.stack.owner != os.getpid():
            raise NoLabOpen('no lab is open here. Run this first: lab = Lab.open("03")')
        return cls._open

    def close(self) -> None:
        """Stop everything and remove it. Closing twice is harmless."""
        if self.stack.closed or self.stack.owner != os.getpid():
            return
        # First, because a transaction that a cell has left open may hold a lock that all that follows would wait for.
        if self._db is not None:
            with contextlib.suppress(Exception):
                self._db.close()
        for look in self.before_close:
            with contextlib.suppress(Exception):
                look()
        with contextlib.suppress(Exception):
            # A connection that the notebook opened by itself may hold one, too.
            self._jobs.connection().execute("set statement_timeout = '1s'")
            for state, count in self._jobs.counts().items():
                Lab._ended[state] = Lab._ended.get(state, 0) + count
        self._jobs.close()
        if self._redis is not None:
            with contextlib.suppress(Exception):
                self._redis.close()
        if self._app is not None:
            with contextlib.suppress(Exception):
                self._app.close()
        code.forget(self.work)
        with contextlib.suppress(ValueError):
            sys.path.remove(str(self.work))
        self.stack.close()
        if Lab._open is self:
            Lab._open = None

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.stack.closed:
            return f"Lab {self.name} is closed."
        worker = self._worker
        text = "no worker"
        if worker:
            text = f"{worker.pool} worker with {worker.concurrency} process{'es' * (worker.concurrency != 1)}"
        return f"Lab {self.name} is open: {self.servers.described}, {text}."

    @classmethod
    def summary(cls) -> dict[str, int]:
        """Jobs by state, over every lab this process has opened; what ``course check`` reads at the end."""
        found = dict(cls._ended)
        if cls._open is not None and not cls._open.stack.closed:
            for state, count in cls._open.jobs.counts().items():
                found[state] = found.get(state, 0) + count
        return dict(sorted(found.items()))

    # -- the servers ----------------------------------------------------------------------------------------------

    @property
    def db(self) -> psycopg.Connection[Any]:
        """A connection in autocommit; a new one if the last was closed or broken."""
        self.stack.require_up("postgres")
        if self._db is None or self._db.closed:
            self._db = psycopg.connect(self.servers.dsn, autocommit=True)
        return self._db

    @property
    def jobs(self) -> PgStore:
        """The job rows."""
        self.stack.require_up("postgres")
        return self._jobs

    @property
    def redis(self) -> redis.Redis:
        """A Redis client whose answers are text; on a shared server it reaches this lab's keys only."""
        self.stack.require_up("redis")
        if self._redis is None:
            self._redis = self.servers.redis_client()
        return self._redis

    def query(self, sql: str, *params: Any) -> Table:
        """Run one statement on ``lab.db`` and return its rows as a table (empty for a statement without any)."""
        cursor = self.db.execute(sql, params or None)  # type: ignore[call-overload]
        if cursor.description is None:
            return Table((), [])
        return Table([column.name for column in cursor.description], cursor.fetchall())

    @property
    def app(self) -> Celery:
        """The Celery application, on the sending side."""
        if self._app is None:
            from sandbox.services.worker_app import make_app

            self._app = make_app(self._settings())
        return self._app

    def log(self, name: str = "worker", lines: int = 20) -> None:
        """Print the end of a log: "worker", "postgres", "redis" or "sidecar"."""
        if not self.stack.log(name).exists():
            names = ", ".join(sorted(path.stem for path in self.stack.folder.glob("*.log")))
            raise BadSetting(f"there is no log {name!r}; there are {names}.")
        print("\n".join(self.stack.tail(name, lines)) or "(empty)")

    # -- the worker -----------------------------------------------------------------------------------------------

    def worker(self, **options: Any) -> Worker:
        """Start the worker anew with these options, and return it when it is ready.

        Options: `concurrency` (processes, default 1), `pool` (default "prefork"), `soft_time_limit` and `time_limit`
        (seconds, the command line's limits), `include` (worker files with Celery tasks of their own),
        `limits_may_be_ignored` (true to be allowed a pool that does not enforce limits). A task that is running is killed.
        """
        options = worker_options(**options)
        self.stack.stop("worker")
        self._worker = self._options = None
        self.stack.start(self._worker_program(options))
        self.stack.wait_ready("worker")
        self._worker = self._started(options)
        return self._worker

    def _started(self, options: dict[str, Any]) -> Worker:
        pid = self.stack.pid("worker")
        assert pid is not None
        self._options = options
        fields = {k: options[k] for k in ("pool", "concurrency", "soft_time_limit", "time_limit")}
        return Worker(pid=pid, log=self.stack.log("worker"), **fields)

    def _settings(self) -> WorkerSettings:
        from sandbox.services.worker_app import WorkerSettings

        return WorkerSettings(**self._settings_fields())

    def _settings_fields(self) -> dict[str, str]:
        return {
            "redis_url": self.servers.redis_url,
            "prefix": self.servers.prefix,
            "dsn": self.servers.dsn,
            "ledger": str(self.ledger.path),
            "work": str(self.work),
            "ready": str(self.stack.folder / "worker.ready"),
        }

    def _worker_program(self, options: dict[str, Any]) -> dict[str, Any]:
        argv = [sys.executable, "-m", "celery", "-A", "sandbox.services.worker_app", "worker", "-l", "INFO"]
        argv += ["-P", options["pool"], "-c", str(options["concurrency"]), "-n", f"lab@{self.stack.id}"]
        argv += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        for flag, name in (("--soft-time-limit", "soft_time_limit"), ("--time-limit", "time_limit")):
            if options[name] is not None:
                argv += [flag, str(options[name])]
        if options["include"]:
            argv += ["-I", ",".join(options["include"])]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SANDBOX_", "CELERY_"))}
        env |= {
            # Not from WorkerSettings: importing Celery takes half a second, which the worker spends meanwhile.
            "SANDBOX_WORKER": json.dumps(self._settings_fields()),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.work), os.environ.get("PYTHONPATH", "")])),
            # The worker runs as whoever runs the notebook, also in a container; it reads nothing but JSON.
            "C_FORCE_ROOT": "1",
            "NO_COLOR": "1",
        }
        ready = {"path": str(self.stack.folder / "worker.ready")}
        return self.stack._program("worker", argv, ready=ready) | {"env": env, "cwd": str(self.work)}

    # -- jobs -----------------------------------------------------------------------------------------------------

    def write_file(self, name: str, text: str) -> Any:
        """Write worker file `name` and import it here; returns the module. Raises what importing it raises."""
        return code.load(code.write(name, text, self.work))

    def submit(
        self,
        function: Callable[..., Any],
        kwargs: dict[str, Any] | None = None,
        *,
        soft_time_limit: float | None = None,
        time_limit: float | None = None,
        total: int | None = None,
        max_attempts: int = 1,
    ) -> SubmittedJob:
        """Add a job row and send the message that runs ``function(job, **kwargs)`` in the worker.

        `function` stands in a worker file (a cell that begins with ``%%worker_file NAME``). The limits, in seconds,
        travel in the message. Raises NotSendable, BadSetting.
        """
        kwargs = {} if kwargs is None else kwargs
        file = code.file_of(function)
        require_json(kwargs)
        soft, hard = limit("soft_time_limit", soft_time_limit), limit("time_limit", time_limit)
        if self._worker is not None and (soft or hard) and not self._worker.enforces_limits:
            raise PoolIgnoresLimits(ignored(self._worker.pool))
        row = self.jobs.add(
            function.__name__,
            kwargs,
            soft_limit_seconds=soft,
            hard_limit_seconds=hard,
            total=total,
            max_attempts=max_attempts,
        )
        self.ledger.append("queued", row.id, task=row.task)
        from sandbox.services.worker_app import TASK

        message = {"file": str(file), "function": function.__name__, "kwargs": kwargs}
        try:
            sent = self._asked(
                lambda: self.app.send_task(TASK, kwargs=message, task_id=row.id, soft_time_limit=soft, time_limit=hard)
            )
        except Exception as error:
            self.jobs.finish(row.id, State.FAILED, f"could not be sent: {error}")
            raise
        return SubmittedJob(self, row.id, sent)

    def _asked(self, question: Callable[[], Any]) -> Any:
        """The answer to a question that needs Redis; StackFailed if that has died."""
        self.stack.require_up("redis", "postgres")
        try:
            return question()
        except Exception as error:
            from kombu.exceptions import OperationalError  # here: it takes a moment, which Lab.open does not have

            if isinstance(error, (redis.ConnectionError, OSError, OperationalError)):
                self.stack.require_up("redis", within=2)
            raise

    def run(self, function: Callable[..., Any], kwargs: dict[str, Any] | None = None, **options: Any) -> SubmittedJob:
        """``submit``, then wait until the attempt is over. `seconds` (default 60) bounds the waiting."""
        seconds = options.pop("seconds", 60)
        job = self.submit(function, kwargs, **options)
        job.wait(seconds)
        return job

    def kill(self, job: SubmittedJob) -> None:
        """SIGKILL the process that runs `job`, as the kernel does when memory runs out."""
        started = self.ledger.read(job.id, "started")
        if not started or job.row.state != State.RUNNING:
            raise BadSetting(f"job {job.id[:8]} is {job.row.state}, not running: there is no process to kill.")
        os.kill(started[-1].pid, signal.SIGKILL)

    def reset(self) -> str:
        """Empty the job table, the tables made since, Redis and the ledger. Says what became of a running task."""
        running = self._running()
        restart = self._options if running else None
        if restart:
            self.stack.stop("worker")
        tables = [row[0] for row in self.query("select tablename from pg_tables where schemaname = 'public'")]
        made = [name for name in tables if name != "jobs"]
        if made:
            names = psycopg.sql.SQL(", ").join(map(psycopg.sql.Identifier, made))
            self.db.execute(psycopg.sql.SQL("drop table {} cascade").format(names))
        self.db.execute("truncate jobs")
        self.servers.clear_redis(self.redis)
        self.ledger.clear()
        if restart:
            self.worker(**restart)
            ids = ", ".join(job_id[:8] for job_id in running)
            what = f"{len(running)} running task" + ("s were" if len(running) != 1 else " was")
            return f"Reset. {what} killed with the worker ({ids}), and a new worker started."
        return "Reset. No task was running; the worker was left as it is."

    def _running(self) -> list[str]:
        """The jobs that the worker has taken and not answered for. What an earlier worker had taken died with it."""
        worker = self.stack.pid("worker")
        taken = {e.job for e in self.ledger.read(kind="accepted") if e.job and e.pid == worker}
        over = {e.job for e in self.ledger.read() if e.kind in ("returned", "killed")}
        # One that was not started, a job taken twice or a file with an error, leaves no such event but has an answer.
        return [job for job in sorted(taken - over) if not self.app.AsyncResult(job).ready()]


@atexit.register
def _close_at_exit() -> None:
    if Lab._open is not None:
        Lab._open.close()
