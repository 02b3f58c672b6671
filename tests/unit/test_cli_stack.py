"""``course up``, ``down`` and ``status``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis

from sandbox.cli import main, stack
from sandbox.learn.processes import is_alive

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A course of its own, so that its stack is not the one of whoever runs the tests; down at the end."""
    root = tmp_path / "a b ж"
    root.mkdir()
    (root / "course.toml").write_text("")
    monkeypatch.setenv("COURSE_ROOT", str(root))
    yield root
    main(["down"])


def status(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_up_status_down(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """up prints addresses that work, a second up starts nothing, status counts the jobs, down leaves nothing."""
    assert main(["up"]) == 0
    shown = capsys.readouterr().out
    for word in ("psql ", "redis-cli -s ", "export SANDBOX_REDIS_URL=", "export SANDBOX_DATABASE_URL=", "worker log"):
        assert word in shown
    state = status(capsys)
    assert state["up"]
    assert state["jobs"] == {}
    assert redis.Redis.from_url(state["redis_url"]).ping()
    with psycopg.connect(state["database_url"], autocommit=True) as connection:
        connection.execute("insert into jobs (id, task, args) values (gen_random_uuid(), 'nap', '{}')")
    assert status(capsys)["jobs"] == {"pending": 1}
    assert main(["up"]) == 0
    assert f"It is up already (pid {state['pid']})" in capsys.readouterr().out
    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    assert "jobs        1 pending" in shown
    assert "prefork worker" in shown
    family = [psutil.Process(state["pid"]), *psutil.Process(state["pid"]).children(recursive=True)]
    folder = Path(stack.read_state(root / "build/up.json")["folder"])  # type: ignore[index]
    assert main(["down"]) == 0
    assert capsys.readouterr().out == "Down.\n"
    assert not any(is_alive(process) for process in family)
    assert not folder.exists()
    assert status(capsys) == {"up": False}


def test_nothing_up_is_no_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """status and down say that nothing is up, and that is well."""
    assert main(["status"]) == 0
    assert main(["down"]) == 0
    assert capsys.readouterr().out == "Nothing is up. `course up` starts a stack.\nNothing is up.\n"


def test_it_stays_up_when_its_terminal_closes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stack outlives the session it was started from, and a hang-up."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-m", "sandbox.cli", "up"], env=environment, check=True, start_new_session=True)
    state = status(capsys)
    assert os.getsid(state["pid"]) == state["pid"]
    os.kill(state["pid"], signal.SIGHUP)
    with psycopg.connect(state["database_url"]) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    assert status(capsys)["up"]


def test_two_terminals_at_once_get_one_stack(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two `course up` at the same moment start one stack between them."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "sandbox.cli", "up"]
    said: list[str] = []

    def run() -> None:
        said.append(subprocess.run(command, env=environment, capture_output=True, text=True).stdout)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("It is up already" in text for text in said) == 1
    assert sum("Up after" in text for text in said) == 1


STALE = {
    "empty": "",
    "cut off": "{",
    "a list": "[]",
    "no pid": "{}",
    "a pid in words": '{"pid": "x", "created": 1}',
    "a pid that is dead": '{"pid": 999999999, "created": 1}',
    "a pid that is none": '{"pid": -5, "created": 1}',
    "a pid used again": json.dumps({"pid": os.getpid(), "created": 1}),
}


@pytest.mark.parametrize("text", STALE.values(), ids=STALE)
def test_a_stale_state_file_is_no_stack(root: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A state file that is broken, or whose pid is dead or another process's by now, counts as nothing being up."""
    (root / "build").mkdir()
    (root / "build/up.json").write_text(text)
    assert status(capsys) == {"up": False}
    assert main(["down"]) == 0
    assert is_alive(psutil.Process())


def test_a_keeper_that_is_killed_takes_its_servers_along(
    root: Path, capsys: pytest.CaptureFixture[str], eventually: Callable[..., Any]
) -> None:
    """After kill -9 of its owner nothing is up, nothing is left, and `course up` starts anew."""
    assert main(["up"]) == 0
    state = status(capsys)
    family = psutil.Process(state["pid"]).children(recursive=True)
    os.kill(state["pid"], signal.SIGKILL)
    assert eventually(lambda: not any(is_alive(process) for process in family))
    assert status(capsys) == {"up": False}
    assert main(["up"]) == 0
    assert status(capsys)["pid"] != state["pid"]


def test_a_stack_whose_server_died_is_not_up(
    root: Path, capsys: pytest.CaptureFixture[str], eventually: Callable[..., Any]
) -> None:
    """When a server dies the rest goes too: half a stack is not called up."""
    assert main(["up"]) == 0
    state = status(capsys)
    socket = state["redis_url"].removeprefix("unix://").split("?")[0]
    redis.Redis(unix_socket_path=socket).shutdown(nosave=True)
    assert eventually(lambda: stack.read_state(root / "build/up.json") is None)
    assert status(capsys) == {"up": False}


@pytest.mark.parametrize("text", [None, '{"pid": 1}'])
def test_a_stack_that_nobody_could_end_ends_by_itself(
    root: Path, text: str | None, capsys: pytest.CaptureFixture[str], eventually: Callable[..., Any]
) -> None:
    """A stack whose state file is gone, with the clone for example, or is another's, does not run for ever."""
    assert main(["up"]) == 0
    keeper = psutil.Process(status(capsys)["pid"])
    (root / "build/up.json").unlink()
    if text is not None:
        (root / "build/up.json").write_text(text)
    assert eventually(lambda: not is_alive(keeper))
    assert (root / "build/up.json").exists() is (text is not None)


def test_a_stack_that_does_not_come_up_says_why(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """When the stack can not start, the reason is shown and nothing is left behind."""
    monkeypatch.setenv("SANDBOX_REDIS_URL", "ftp://nowhere")
    assert main(["up"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("course: the stack did not come up; type `course doctor`")
    assert "SANDBOX_REDIS_URL" in shown
    assert "Traceback" not in shown
    assert status(capsys) == {"up": False}


def test_a_state_file_is_for_its_owner_alone(root: Path) -> None:
    """Real servers' addresses hold passwords: nobody else may read the state file."""
    assert main(["up"]) == 0
    assert (root / "build/up.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h 0 min")]
)
def test_a_duration_is_told_as_people_tell_it(seconds: float, text: str) -> None:
    """Seconds up to two minutes, minutes up to two hours, then hours and minutes."""
    assert stack._duration(seconds) == text
