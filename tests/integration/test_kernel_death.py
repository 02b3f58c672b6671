"""However a lab's owner ends, nothing is left: no process, no socket, no folder.

``KERNEL_KILLS`` says how many owners are killed by SIGKILL while a task runs (default 6; 50 for the full proof).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

KILLS = int(os.environ.get("KERNEL_KILLS", "6"))
KERNELS = max(2, KILLS // 10)  # of them, how many are Jupyter kernels; the others are plain Python processes

LONG_TASK = """
import sys, time
from sandbox.services import Lab
lab = Lab.open("killed", quiet=True)
module = lab.write_file("long", '''
import subprocess, sys, time
def quiet(job):
    job.item_done(0)
    time.sleep(600)
def spawning(job):
    forever = [sys.executable, "-c", "import time; time.sleep(600)"]
    own = subprocess.Popen(forever, start_new_session=True)
    shell = subprocess.Popen("sleep 600 & sleep 601", shell=True)
    subprocess.run(["/bin/sh", "-c", "setsid sleep 602 >/dev/null 2>&1 &"])
    job.expect(own.pid)
    time.sleep(600)
''')
"""
STARTED = """
while not lab.ledger.read(job.id, "started") or (job.row.task == "spawning" and not job.row.total):
    time.sleep(0.01)
print("running", lab.stack._process.pid, lab.stack.folder, flush=True)
"""


def owned(kind: str, then: str = "") -> str:
    """A program that opens a lab, submits the task, says when it runs, and goes on with `then`."""
    return f"{LONG_TASK}\njob = lab.submit(module.{kind}){STARTED}{then}"


FOREVER = "time.sleep(600)\n"


@pytest.fixture(autouse=True)
def _temporary(lab_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and owners that this test starts put their labs into its own folder."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    )


@contextlib.contextmanager
def kernel() -> Iterator[tuple[KernelManager, Any]]:
    """A real Jupyter kernel of this interpreter, and a client that has seen it answer."""
    spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name="test",
        language="python",
    )
    manager = KernelManager()
    manager._kernel_spec = spec
    manager.start_kernel(cwd="/", stderr=subprocess.DEVNULL)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        yield manager, client
    finally:
        client.stop_channels()
        with contextlib.suppress(Exception):
            manager.shutdown_kernel(now=True)


def output_of(client: Any, text: str, seconds: float = 120) -> str:
    """Run a cell and return what it wrote on stdout; fails with the cell's own traceback."""
    written: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["header"]["msg_type"] == "stream" and message["content"]["name"] == "stdout":
            written.append(message["content"]["text"])

    reply = client.execute_interactive(text, output_hook=hear, timeout=seconds)
    assert reply["content"]["status"] == "ok", "\n".join(reply["content"].get("traceback", []))
    return "".join(written)


def kernel_pid(manager: KernelManager) -> int:
    return int(manager.provisioner.pid)  # type: ignore[union-attr]


@pytest.fixture
def nothing_left(eventually: Any, traces: Any, folders_in: Any, lab_folders: Path) -> Callable[..., list[str]]:
    """Waits up to five seconds for everything of the labs in this test's folder to be gone; returns what is left."""

    def wait(*besides: int, seconds: float = 5) -> list[str]:
        def left() -> list[str]:
            return traces.left(str(lab_folders / "always-ends-"), besides=besides) + folders_in(lab_folders)

        eventually(lambda: not left(), seconds)
        return left()

    return wait


def running(line: str) -> tuple[int, str]:
    word, sidecar, folder = line.strip().split(" ", 2)
    assert word == "running"
    return int(sidecar), folder


# -- killed while a task runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(KERNELS))
def test_a_killed_kernel_leaves_nothing(n: int, nothing_left: Any, traces: Any) -> None:
    """A real Jupyter kernel, SIGKILLed in the middle of a task."""
    with kernel() as (manager, client):
        _, folder = running(output_of(client, owned("quiet")))
        assert len(traces.processes(folder)) >= 4 and traces.sockets(folder)
        os.kill(kernel_pid(manager), signal.SIGKILL)
        assert nothing_left() == []


def test_killed_owners_leave_nothing(owner: Any, nothing_left: Any, lab_folders: Path, folders_in: Any) -> None:
    """Plain Python owners, two at a time, each SIGKILLed in the middle of a task that has spawned processes or not."""
    left = KILLS - KERNELS
    while left > 0:
        batch = [
            owner(
                owned("spawning" if (left - n) % 2 else "quiet", FOREVER), env=dict(os.environ, TMPDIR=str(lab_folders))
            )
            for n in range(min(2, left))
        ]
        for process in batch:
            line = process.stdout.readline()
            assert line.startswith("running"), process.stderr.read()
        assert len(folders_in(lab_folders)) == len(batch)
        for process in batch:
            process.kill()
            process.wait()
        assert nothing_left() == []
        left -= len(batch)


def test_what_a_task_has_spawned_goes_with_its_owner(owner: Any, nothing_left: Any, traces: Any) -> None:
    """Sessions of their own, shells in the background, and children of children that have lost their parent."""
    process = owner(owned("spawning", FOREVER), env=dict(os.environ))
    _, folder = running(process.stdout.readline())
    commands = [line.partition(" ")[2].strip() for line in traces.processes(folder)]
    assert [f"sleep {n}" in commands for n in (600, 601, 602)] == [True] * 3, commands
    assert any("time.sleep(600)" in command for command in commands)
    process.kill()
    process.wait()
    assert nothing_left() == []


@pytest.mark.parametrize("end", ["os._exit(1)", "os.abort()", "os.kill(os.getpid(), 15)", "sys.exit(0)", "1 / 0"])
def test_every_other_end_leaves_nothing(owner: Any, nothing_left: Any, end: str) -> None:
    """Without a clean-up of the interpreter, by a signal, by an exit and by an error."""
    process = owner(owned("quiet", f"import os\n{end}\n"), env=dict(os.environ))
    running(process.stdout.readline())
    process.wait(60)
    assert nothing_left() == []


def test_a_restarted_kernel_leaves_nothing_and_opens_again(
    nothing_left: Any, folders_in: Any, lab_folders: Path
) -> None:
    """The menu's "Restart kernel" while a task runs, then the same cells again."""
    with kernel() as (manager, client):
        _, first = running(output_of(client, owned("quiet")))
        manager.restart_kernel(now=True)
        client.wait_for_ready(timeout=120)
        _, second = running(output_of(client, owned("quiet")))
        assert second != first
        assert folders_in(lab_folders) == [second]
        manager.shutdown_kernel()
        assert nothing_left() == []


# -- killed at other moments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5])
def test_an_owner_killed_while_opening_leaves_nothing(owner: Any, nothing_left: Any, after: float) -> None:
    """At any moment from the first: before the servers, between them, while the worker starts."""
    text = "import sys, time\nfrom sandbox.services import Lab\nprint('opening', flush=True)\nLab.open(quiet=True)\ntime.sleep(600)"
    process = owner(text, env=dict(os.environ))
    assert process.stdout.readline() == "opening\n"
    time.sleep(after)
    process.kill()
    process.wait()
    assert nothing_left() == []


def test_an_owner_killed_while_its_worker_restarts_leaves_nothing(owner: Any, nothing_left: Any) -> None:
    """Between two workers."""
    process = owner(
        owned("spawning", f"lab.stack.stop('worker')\nprint('stopped', flush=True)\nlab.worker()\n{FOREVER}"),
        env=dict(os.environ),
    )
    running(process.stdout.readline())
    assert process.stdout.readline() == "stopped\n"
    process.kill()
    process.wait()
    assert nothing_left() == []


# -- the sidecar killed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["quiet", "spawning"])
def test_a_killed_sidecar_leaves_nothing(owner: Any, nothing_left: Any, kind: str) -> None:
    """Its owner notices and does its last work; the next use says that the servers are gone, and a new lab opens."""
    process = owner(
        owned(
            kind,
            """
sys.stdin.readline()
from sandbox.errors import StackFailed
for use in (lambda: lab.db, lambda: lab.redis, lambda: job.wait(5), lambda: lab.worker()):
    try:
        use()
    except StackFailed as error:
        print("told", str(error).splitlines()[0], flush=True)
with Lab.open("next", quiet=True) as lab:
    print("next", lab.query("select 1").rows, flush=True)
lab.close()
sys.stdin.readline()
""",
        ),
        env=dict(os.environ),
    )
    sidecar, _ = running(process.stdout.readline())
    os.kill(sidecar, signal.SIGKILL)
    assert nothing_left(process.pid) == []
    process.stdin.write("go on\n")
    process.stdin.flush()
    told = [process.stdout.readline() for _ in range(4)]
    assert told[0] == "told postgres is not running: the process that looks after it was killed.\n", (
        process.stderr.read()
    )
    assert told[1] == "told redis is not running: the process that looks after it was killed.\n"
    assert all(line.startswith("told ") for line in told)
    assert process.stdout.readline() == "next [(1,)]\n"
    assert nothing_left(process.pid) == []


# -- interrupted ------------------------------------------------------------------------------------------------------


def test_interrupting_a_cell_does_not_stop_the_worker(traces: Any, nothing_left: Any) -> None:
    """The cell ends with KeyboardInterrupt; the same worker goes on with the same task and finishes it."""
    text = f"""{LONG_TASK}
module = lab.write_file("short", '''
import time
def work(job):
    job.item_done(0)
    while not __import__("os").path.exists("go"):
        time.sleep(0.01)
    job.complete()
''')
job = lab.submit(module.work)
while not lab.ledger.read(job.id, "item done"):
    time.sleep(0.01)
print(lab.stack.pid("worker"), flush=True)
"""
    with kernel() as (manager, client):
        pid = output_of(client, text).strip()
        message = client.execute("print('waiting', flush=True); job.wait(600)", stop_on_error=False)
        while client.get_iopub_msg(timeout=60)["content"].get("text") != "waiting\n":
            pass
        manager.interrupt_kernel()
        while (reply := client.get_shell_msg(timeout=60))["parent_header"]["msg_id"] != message:
            pass
        assert (reply["content"]["status"], reply["content"]["ename"]) == ("error", "KeyboardInterrupt")
        assert output_of(client, "print(job.row.state, lab.stack.is_up('worker'), lab.stack.pid('worker'))") == (
            f"running True {pid}\n"
        )
        assert output_of(client, "(lab.work / 'go').touch(); print(job.wait().state)") == "completed\n"
        os.kill(kernel_pid(manager), signal.SIGKILL)
        assert nothing_left() == []
