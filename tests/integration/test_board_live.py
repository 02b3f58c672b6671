"""The live board on a real lab: it moves while a cell runs, it holds nothing up, and it ends with what it shows."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from jupyter_client.manager import KernelManager

from sandbox.errors import BadSetting, NoLabOpen, StackFailed
from sandbox.learn.widgets import board as module
from sandbox.learn.widgets.board import CLOSED, EVERY_SECONDS, NEWER, WAITING, Board, board
from sandbox.services import Lab

TASKS = """
import os, time
def until(job, file):
    job.expect(2)
    job.item_done(0)
    while not os.path.exists(file):
        time.sleep(0.01)
    job.complete()
def quick(job):
    job.fail("not today")
"""


@pytest.fixture
def live(lab: Lab) -> Iterator[Callable[[], Board]]:
    """Boards with a thread, as where a person watches."""
    made: list[Board] = []

    def open_one() -> Board:
        made.append(Board(lab, live=True))
        return made[-1]

    yield open_one
    for one in made:
        one.close()


@pytest.fixture
def own_lab(lab_folders: Path) -> Iterator[Lab]:
    """A lab without a worker, for a test that does something to it."""
    with Lab.open("own", worker=False, quiet=True) as opened:
        yield opened


def tasks(lab: Lab) -> Any:
    return lab.write_file("board_tasks", TASKS)


def thread_of(one: Board) -> threading.Thread:
    assert one._thread is not None
    return one._thread


# --- in this process


def test_a_job_is_shown_until_it_has_ended(lab: Lab, live: Any, eventually: Any, tmp_path: Path) -> None:
    """Running with its progress, then ended with the reason, without anybody asking for it."""
    shown, go = live(), tmp_path / "go"
    job = lab.submit(tasks(lab).until, {"file": str(go)})
    row = f"row:{job.id}"
    assert eventually(lambda: shown._sent.get(row, {}).get("done") == 1)
    assert (shown._sent[row]["word"], shown._sent[row]["total"]) == ("running", 2)
    go.touch()
    assert eventually(lambda: shown._sent[row]["over"])
    failed = lab.run(tasks(lab).quick)
    assert eventually(lambda: shown._sent.get(f"row:{failed.id}", {}).get("why") == "not today")
    assert shown._sent["ids"] == [job.id, failed.id]


def test_the_text_is_up_to_date_at_once(lab: Lab) -> None:
    """A snapshot reads the rows itself; no thread is needed and none is there."""
    one = board(lab)
    assert one._thread is None and str(one) == "Lab tests: no jobs yet."
    job = lab.run(tasks(lab).quick)
    text = one.snapshot()
    assert f"{job.id[:8]}  quick  ✗ failed" in text and text.splitlines()[2].endswith("not today")
    assert "the row says failed: not today" in one.select(job).snapshot().partition("Story of job")[2]


def test_where_nobody_watches_the_output_is_text(lab: Lab) -> None:
    """What papermill keeps can be read without a kernel, the whole table of it."""
    for _ in range(5):
        lab.jobs.add("load")
    one = board(lab)
    assert one._repr_mimebundle_() == {"text/plain": one.snapshot()}
    assert one.snapshot().count("load") == 5


def test_a_page_gets_the_whole_text_beside_the_widget(lab: Lab, live: Any) -> None:
    """For a page that can not draw widgets, and for the notebook's file."""
    for _ in range(5):
        lab.jobs.add("load")
    data, _ = live()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data and data["text/plain"].count("load") == 5


def test_a_page_that_is_loaded_again_gets_everything(lab: Lab, live: Any, eventually: Any) -> None:
    """The values that are no traits are part of the widget's state, with the database's time of now."""
    one = live()
    row = lab.jobs.add("load")
    assert eventually(lambda: f"row:{row.id}" in one.get_state())
    first, second = one.get_state(), one.get_state()
    assert first["ids"] == [row.id] and first["state"]["lab"] == "tests" and second["now"] >= first["now"]
    assert abs(first["now"] - lab.jobs.now().timestamp()) < 60


def test_a_reset_lab_is_an_empty_board(lab: Lab, live: Any, eventually: Any) -> None:
    """Rows, events and stories go; what comes afterwards is shown."""
    one = live()
    lab.run(tasks(lab).quick)
    assert eventually(lambda: one._sent["ids"] and one._sent["events"])
    lab.reset()
    assert eventually(lambda: not one._sent["ids"] and not one._sent["events"])
    assert not [name for name in one._sent if ":" in name] and str(one) == "Lab tests: no jobs yet."
    job = lab.run(tasks(lab).quick)
    assert eventually(lambda: one._sent["ids"] == [job.id])


def test_a_lock_on_the_job_table_is_waited_out(lab: Lab, live: Any, eventually: Any) -> None:
    """The board says that its rows are older, goes on trying, and takes its word back."""
    one = live()
    with psycopg.connect(lab.servers.dsn) as other:
        other.execute("lock table jobs in access exclusive mode")
        assert eventually(lambda: one.state["note"] == WAITING)
        assert str(one).endswith(WAITING)
    assert eventually(lambda: one.state["note"] == "")
    assert not one.state["stopped"] and thread_of(one).is_alive()


def test_a_paused_board_stays_as_it_is(lab: Lab, live: Any, eventually: Any) -> None:
    """Resumed, it shows what has happened meanwhile; its text is never behind."""
    one = live().pause()
    row = lab.jobs.add("load")
    assert row.id[:8] in str(one)
    beside = live()  # a second thread has looked and sent in the meantime; this one has not
    other = lab.jobs.add("load")
    assert eventually(lambda: other.id in beside._sent["ids"])
    assert one._sent["ids"] == []
    one.resume()
    assert eventually(lambda: one._sent["ids"] == [row.id, other.id])


def test_selecting_takes_a_job_its_id_or_a_beginning(lab: Lab) -> None:
    """None takes the story away again."""
    one, row = board(lab), lab.jobs.add("load")
    for given in (row.id, row.id[:8], SimpleNamespace(id=row.id)):
        assert one.select(None).select(given).state["selected"] == row.id
    assert "Story of job" in str(one) and "Story of job" not in str(one.select())


@pytest.mark.parametrize("given", ["zz", "", 7, {"id": 1}, ["a"]])
def test_selecting_what_is_not_there_is_refused(lab: Lab, given: Any) -> None:
    """The error names what was asked for and a job there is; from the page it becomes a sentence on the board."""
    one = board(lab)
    with pytest.raises(BadSetting, match="no job was submitted yet"):
        one.select(given)
    row = lab.jobs.add("load")
    with pytest.raises(BadSetting, match=f"there is no job .* type more of it, as one of '{row.id[:8]}'"):
        one.select(given)
    one._heard(None, {"do": "select", "with": [given]})
    assert "there is no job" in one.state["problem"]
    one._heard(None, {"do": "select", "with": [row.id]})
    assert one.state["problem"] == "" and one.state["selected"] == row.id


def test_an_ambiguous_beginning_is_refused(lab: Lab) -> None:
    """It says how many jobs begin so."""
    ids = [lab.jobs.add("load").id for _ in range(17)]
    twice = next(a[0] for n, a in enumerate(ids) if any(a[0] == b[0] for b in ids[n + 1 :]))
    with pytest.raises(BadSetting, match=rf"^\d+ jobs begin with '{twice}'"):
        board(lab).select(twice)


@pytest.mark.parametrize("given", ["03", 3, Lab])
def test_a_board_of_what_is_no_lab_is_refused(given: Any) -> None:
    """It says what board() takes."""
    with pytest.raises(BadSetting, match=r"takes the lab that Lab\.open\(\) gave you, or nothing; it got"):
        board(given)


def test_a_newer_board_ends_the_older_one(lab: Lab, eventually: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One board a lab has a thread, and the older one says why it stands still."""
    monkeypatch.setattr(module, "person_watches", lambda: True)
    older = board(lab)
    newer = board(lab)
    assert older.state["stopped"] == NEWER
    assert eventually(lambda: not thread_of(older).is_alive())
    assert thread_of(newer).is_alive() and not newer.state["stopped"]
    newer.close()
    assert eventually(lambda: not thread_of(newer).is_alive())
    assert newer._store._conn is None


# --- how it ends: each of these opens a lab of its own, which closes the one of the tests before


def test_a_board_of_a_closed_lab_is_refused(own_lab: Lab) -> None:
    """It says how to open one; so it does where none was opened."""
    own_lab.close()
    with pytest.raises(NoLabOpen, match=r'lab own is closed\. .*Lab\.open\("own"\)'):
        board(own_lab)
    with pytest.raises(NoLabOpen, match="no lab is open here"):
        board()


def test_the_thread_ends_with_the_lab(own_lab: Lab, eventually: Any, capfd: Any) -> None:
    """The board says so and keeps what it showed; nothing is printed."""
    one = Board(own_lab, live=True)
    row = own_lab.jobs.add("load")
    assert eventually(lambda: row.id in one._sent["ids"])
    own_lab.close()
    assert eventually(lambda: not thread_of(one).is_alive())
    assert one.state["stopped"] == CLOSED and one._store._conn is None
    assert row.id[:8] in str(one) and str(one).endswith(CLOSED)
    assert capfd.readouterr() == ("", "")


def test_what_ended_just_before_the_lab_was_closed_is_on_the_board(
    own_lab: Lab, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a job in the last moment of a lab is not lost to the time between two looks."""
    monkeypatch.setattr(module, "EVERY_SECONDS", 3600)
    one = Board(own_lab, live=True)
    row = own_lab.jobs.add("load")
    own_lab.jobs.finish(row.id, "cancelled", "by hand")
    assert one._sent["ids"] == []
    own_lab.close()
    assert one._sent["ids"] == [row.id] and "cancelled" in str(one)
    one.close()


def test_the_thread_ends_when_the_server_dies(own_lab: Lab, eventually: Any, capfd: Any) -> None:
    """The board says what has died and what to type, in a sentence; nothing is printed."""
    one = Board(own_lab, live=True)
    os.kill(own_lab.stack.pid("postgres") or 0, signal.SIGKILL)
    assert eventually(lambda: not thread_of(one).is_alive())
    said = one.state["stopped"]
    assert said.startswith("This board has stopped: ") and said.endswith(
        'Lab.open("own") starts the servers anew; then run board().'
    )
    assert "\n" not in said and str(one).endswith(said)
    assert eventually(lambda: not own_lab.stack.is_up("postgres"))
    with pytest.raises(StackFailed, match="postgres is not running"):
        board(own_lab)
    assert capfd.readouterr() == ("", "")


def test_any_error_of_the_thread_ends_on_the_board(own_lab: Lab, eventually: Any, capfd: Any) -> None:
    """A job table that was dropped is one; the sentence names the error."""
    one = Board(own_lab, live=True)
    own_lab.db.execute("drop table jobs")
    assert eventually(lambda: not thread_of(one).is_alive())
    assert 'UndefinedTable: relation "jobs" does not exist' in one.state["stopped"]
    assert str(one).endswith(one.state["stopped"])
    assert capfd.readouterr() == ("", "")


def test_a_process_ends_with_its_board(script: Any, lab_folders: Path) -> None:
    """A board in the middle of a statement does not hold up the end."""
    program = """
import atexit, psycopg
from sandbox.services import Lab
from sandbox.learn.widgets.board import Board
lab = Lab.open("end", worker=False, quiet=True)
one = Board(lab, live=True)
other = psycopg.connect(lab.servers.dsn)
atexit.register(other.close)  # before the lab's own end, which asks the job table once more
other.execute("lock table jobs in access exclusive mode")
while not one.state["note"]:
    pass
print("waits")
"""
    ended = script(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "waits\n", "")


# --- in a kernel, as a notebook that somebody has open


class Kernel:
    """A kernel that a person watches, and what its widgets are sent."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)
        self.heard: list[dict[str, Any]] = []

    def listen(self, over: Callable[[dict[str, Any]], Any]) -> None:
        """Take what the kernel publishes until `over` says of a message that it is the one waited for."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            message = self.client.get_iopub_msg(timeout=60)
            self.heard.append(message)
            assert message["msg_type"] not in ("error", "stream"), message["content"]
            if over(message):
                return
        raise AssertionError("what was waited for did not come")

    def send(self, code: str) -> str:
        return str(self.client.execute(code))

    def run(self, code: str) -> Any:
        """Run a cell to its end; the value of its last line, as text."""
        asked, before = self.send(code), len(self.heard)
        self.listen(lambda message: self._idle(message, asked))
        found = [m["content"]["data"] for m in self.heard[before:] if m["msg_type"] == "execute_result"]
        return found[-1] if found else None

    @staticmethod
    def _idle(message: dict[str, Any], asked: str) -> bool:
        mine = message["parent_header"].get("msg_id") == asked
        return mine and message["content"].get("execution_state") == "idle"

    def is_over(self, asked: str) -> bool:
        return any(self._idle(message, asked) for message in self.heard)

    def updates(self) -> list[dict[str, Any]]:
        """What the board's thread sent, oldest first."""
        return [state for state in map(update, self.heard) if "now" in state]


def update(message: dict[str, Any]) -> dict[str, Any]:
    if message["msg_type"] != "comm_msg":
        return {}
    found: dict[str, Any] = message["content"]["data"].get("state", {})
    return found


@pytest.fixture
def kernel(lab_folders: Path, tmp_path: Path) -> Iterator[Kernel]:
    manager = KernelManager()
    manager.start_kernel(env={**os.environ, "JPY_SESSION_NAME": "lesson.ipynb", "COURSE_PROGRESS": "off"})
    one = Kernel(manager)
    one.run("from sandbox.learn import board\nfrom sandbox.services import Lab\nimport os, time")
    yield one
    one.client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_the_board_moves_while_a_cell_blocks(kernel: Kernel, tmp_path: Path) -> None:
    """The cell ends only after its job was seen running and then ended, so both were sent while it ran."""
    go, out = tmp_path / "go", tmp_path / "out"
    kernel.run('lab = Lab.open("03", quiet=True)')
    kernel.run(f"tasks = lab.write_file('t', '''{TASKS}''')")
    shown = kernel.run("board()")
    assert "application/vnd.jupyter.widget-view+json" in shown and shown["text/plain"] == "Lab 03: no jobs yet."
    wait = f"while not os.path.exists({str(out)!r}): time.sleep(0.01)"
    asked = kernel.send(f"job = lab.submit(tasks.until, {{'file': {str(go)!r}}})\n{wait}")

    def says(word: str) -> Callable[[dict[str, Any]], bool]:
        return lambda message: any(
            value and value["word"] == word for name, value in update(message).items() if name.startswith("row:")
        )

    kernel.listen(says("running"))
    assert not kernel.is_over(asked)
    go.touch()
    kernel.listen(says("completed"))
    assert not kernel.is_over(asked)
    out.touch()
    kernel.listen(lambda message: kernel._idle(message, asked))


def test_a_hundred_jobs_are_few_small_messages(kernel: Kernel) -> None:
    """At most four messages a second, each with what changed; the last state of every row arrives."""
    kernel.run('lab = Lab.open("03", worker=False, quiet=True)')
    kernel.run(
        "rows = [lab.jobs.add('load', total=30) for _ in range(100)]\n"
        "for row in rows: lab.jobs.start(row.id, lease_seconds=60)"
    )
    kernel.run("shown = board()\nshown")
    kernel.heard.clear()
    kernel.run(
        "for done in range(1, 31):\n"
        "    for row in rows:\n"
        "        lab.jobs.progress(row.id, done); lab.ledger.append('item done', row.id, index=done)"
    )

    def arrived() -> dict[str, Any]:
        return {name: value for state in kernel.updates() for name, value in state.items()}

    def all_there(_: Any) -> bool:
        last = arrived()
        ids = {name for name, value in last.items() if name.startswith("row:") and value["done"] == 30}
        return len(ids) == 100 and len(last["events"]) == 20

    kernel.listen(all_there)
    sent = kernel.updates()
    span = sent[-1]["now"] - sent[0]["now"]
    # A tenth more than there may be: `now` is rounded, and is taken a moment before the message leaves.
    assert len(sent) <= 1.1 * span / EVERY_SECONDS + 1
    assert all("ids" not in state for state in sent)
    kernel.heard.clear()
    kernel.run("lab.jobs.progress(rows[7].id, 12)")
    kernel.listen(lambda message: any(name.startswith("row:") for name in update(message)))
    changed = [name for state in kernel.updates() for name in state if name != "now"]
    assert len(changed) == 1 and changed[0].startswith("row:")


def test_a_kernel_ends_in_order_with_its_board(kernel: Kernel, folders_in: Any, lab_folders: Path) -> None:
    """It is asked to shut down while the board is busy, and ends by itself, its lab closed."""
    kernel.run('lab = Lab.open("03", worker=False, quiet=True)')
    kernel.run("board()")
    kernel.listen(lambda message: "now" in update(message))
    process = kernel.manager.provisioner.process  # type: ignore[union-attr]
    kernel.client.shutdown()
    assert process.wait(60) == 0
    assert folders_in(lab_folders) == []
