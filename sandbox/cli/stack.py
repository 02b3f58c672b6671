"""``course up``, ``down`` and ``status``: a stack that belongs to no kernel."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sandbox.cli.common import build_folder, counted
from sandbox.errors import StackFailed

START_SECONDS = 90
STOP_SECONDS = 15


@click.command(short_help="Start a stack outside a kernel.")
def up() -> int:
    """Start Redis, PostgreSQL and a worker that stay up until `course down`.

    For psql, redis-cli and your own scripts; the lessons do not need it, each opens a stack of its own.

    \b
    course up
    course status
    course down
    """
    state_file = _state_file()
    with _one_at_a_time(state_file):
        state = read_state(state_file)
        if state is not None:
            click.echo(f"It is up already (pid {state['pid']}).")
        else:
            began = time.monotonic()
            click.echo("starting Redis, PostgreSQL and a worker ...")
            state = _start(state_file)
            click.echo(
                f"Up after {time.monotonic() - began:.1f} s (pid {state['pid']}); it stays when this terminal closes."
            )
    _say_how_to_reach(state)
    click.echo("`course down` ends it.")
    return 0


@click.command()
def down() -> int:
    """End what `course up` started. Its data is gone then.

    \b
    course down
    """
    import psutil

    from sandbox.learn.processes import wait_until_gone

    state_file = _state_file()
    with _one_at_a_time(state_file):
        state = read_state(state_file)
        if state is None:
            click.echo("Nothing is up.")
            return 0
        keeper = psutil.Process(state["pid"])
        family = []
        with contextlib.suppress(psutil.Error):
            family = keeper.children(recursive=True)
            keeper.terminate()
        for process in wait_until_gone([keeper], STOP_SECONDS):
            process.kill()  # what it looked after ends by itself then
        alive = wait_until_gone([keeper, *family], STOP_SECONDS)
        state_file.unlink(missing_ok=True)
    if alive:
        raise StackFailed(f"{counted(len(alive), 'process')} did not end: pid {', '.join(str(p.pid) for p in alive)}.")
    click.echo("Down.")
    return 0


@click.command(short_help="Say what is up, and what its jobs are doing.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def status(as_json: bool) -> int:
    """Say whether a stack is up, for how long, and what its jobs are doing.

    \b
    course status
    course status --json
    """
    state = read_state(_state_file())
    if state is None:
        click.echo(json.dumps({"up": False}) if as_json else "Nothing is up. `course up` starts a stack.")
        return 0
    seconds = max(0.0, time.time() - state["created"])
    jobs = _job_counts(state["dsn"])
    if as_json:
        shown = {key: state[key] for key in ("pid", "redis_url", "database_url")}
        click.echo(json.dumps({"up": True, **shown, "seconds": round(seconds), "jobs": jobs}))
        return 0
    click.echo(f"Up for {_duration(seconds)} (pid {state['pid']}). {state['described']}")
    click.echo(f"jobs        {', '.join(f'{count} {name}' for name, count in jobs.items()) or 'none'}")
    _say_how_to_reach(state)
    return 0


def read_state(path: Path) -> dict[str, Any] | None:
    """What `course up` wrote, or None if that is not true any more: no file, or its process is gone.

    A process is known by its pid and the moment it began, because a pid is used again.
    """
    import psutil

    try:
        state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        process = psutil.Process(state["pid"])
        same = abs(process.create_time() - state["created"]) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None
    return state if same else None


def _state_file() -> Path:
    from sandbox.learn import catalog

    return build_folder(catalog.find_root()) / "up.json"


@contextlib.contextmanager
def _one_at_a_time(state_file: Path) -> Iterator[None]:
    """Two terminals that type `course up` at once get one stack."""
    with open(state_file.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(state_file: Path) -> dict[str, Any]:
    state_file.unlink(missing_ok=True)
    log = state_file.with_suffix(".log")
    here = str(Path(__file__).resolve().parents[2])
    python_path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    with open(log, "wb") as file:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "sandbox.cli.keeper", str(state_file)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd="/",
            env=os.environ | {"PYTHONPATH": python_path},
            start_new_session=True,
        )
    try:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            state = read_state(state_file)
            if state is not None:
                return state
            if keeper.poll() is not None:
                break
            time.sleep(0.02)
    except BaseException:
        keeper.terminate()
        keeper.wait()
        raise
    keeper.terminate()
    keeper.wait()
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    raise StackFailed(f"the stack did not come up; type `course doctor` to look for the reason.\n{tail}")


def _job_counts(dsn: str) -> dict[str, int]:
    from sandbox.jobs import PgStore

    store = PgStore(dsn)
    try:
        return store.counts()
    finally:
        store.close()


def _say_how_to_reach(state: dict[str, Any]) -> None:
    click.echo(f"psql        psql {shlex.quote(state['dsn'])}")
    if state["redis_socket"]:
        click.echo(f"redis-cli   redis-cli -s {shlex.quote(state['redis_socket'])}")
    click.echo(f"Python      redis.Redis.from_url({state['redis_url']!r}), psycopg.connect({state['database_url']!r})")
    click.echo(f"worker log  {state['worker_log']}")
    click.echo("For a lab that uses these servers:")
    click.echo(f"export SANDBOX_REDIS_URL={shlex.quote(state['redis_url'])}")
    click.echo(f"export SANDBOX_DATABASE_URL={shlex.quote(state['database_url'])}")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
