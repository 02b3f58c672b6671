"""The live board: the jobs of a lab, how long they have left, why they ended, and what has just happened.

A thread of its own looks at the rows and the ledger a few times a second and sends what changed, so that the board moves
while a cell runs. It needs no care on ipykernel's side: what a thread sends is sent in the name of the latest request, and
pages find a widget by the id of its comm. What the page does (selecting, pausing) it does at once by itself, and tells the
kernel, which hears of it when it is free.

Every value has a name in the page's model (``ids``, ``row:<id>``, ``step:<id>:<n>``, ``events``). A message sets some
of them, so none can be missed by a page that has not drawn yet, and a page that is loaded again gets all.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from typing import Any

from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sandbox.errors import BadSetting, NoLabOpen, SandboxError
from sandbox.jobs import PgStore
from sandbox.jobs.ledger import Tail
from sandbox.learn.front import person_watches
from sandbox.learn.widgets.base import Practice, script, style
from sandbox.learn.widgets.board_rows import SHOWN, Picture, View, difference, snapshot_text
from sandbox.services import Lab

EVERY_SECONDS = 0.25  # at most one message in this time
BEAT_SECONDS = (
    2.0  # a message even if nothing has changed; the page takes five of them missing for a kernel that is gone
)
ANSWER_SECONDS = 1.0  # how long a statement of ours may wait, for a lock that a lesson holds

CLOSED = "The lab was closed, so this board has stopped. You see what it showed last."
NEWER = "A newer board of this lab was opened, so this one has stopped."
WAITING = f"The job table has not answered for {ANSWER_SECONDS:g} s (is a lock held on it?). You see older rows; trying again."


class Board(Practice):
    """The jobs of one lab. `live` says whether a thread keeps it up to date; by default where a person watches."""

    _esm = script("board")
    _css = style("board")
    actions = ("select", "pause", "resume")

    def __init__(self, lab: Lab, *, live: bool | None = None) -> None:
        self.lab = lab
        self._store = PgStore(_patient(lab.servers.dsn))
        self._tail = Tail(lab.ledger.path)
        self._picture = Picture()
        self._looking = threading.RLock()  # store, tail, picture, and what was sent of it
        self._changing = threading.RLock()  # state: the thread, a cell and the page may all change it
        self._now, self._read_at = time.time(), time.monotonic()  # the database's clock, and when we asked
        self._sent: View = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.live = person_watches() if live is None else live
        self._refresh()
        self._sent = self._picture.view()
        super().__init__(lab=lab.name, paused=False, selected=None, stopped="", note="")
        if self.live:
            lab.before_close.append(self._look_once_more)
            self._thread = threading.Thread(target=self._watch, name="sandbox-board", daemon=True)
            self._thread.start()

    # -- what a notebook and the page may ask for -----------------------------------------------------------------

    def snapshot(self) -> str:
        """The board as it is now, as text. Once the lab is gone, what it showed last, and why there is no more."""
        with self._looking:
            told = self.state["stopped"]
            if not self.lab.stack.closed:
                with contextlib.suppress(Exception):
                    if problem := self._refresh():
                        told = told or problem
            elif not told:
                told = CLOSED
            text = snapshot_text(self._picture, self.lab.name, self._time(), self.state["selected"])
        return f"{text}\n{told}" if told else text

    def select(self, job: Any = None) -> Board:
        """Show the story of a job: the job, its id, or how its id begins; None for no story. Raises BadSetting."""
        if job is None:
            self.change(selected=None, problem="")
            return self
        text = str(getattr(job, "id", job))
        with self._looking:
            found = self._starting_with(text)
            if not found:
                self._refresh()
                found = self._starting_with(text)
            known = ", ".join(repr(job_id[:8]) for job_id in list(self._picture.rows)[:5])
        if len(found) != 1:
            what = f"{len(found)} jobs begin with {text!r}" if found else f"there is no job {text!r} on the board"
            hint = f"type more of it, as one of {known}" if known else "no job was submitted yet"
            raise BadSetting(f"{what}: {hint}.")
        self.change(selected=found[0], problem="")
        return self

    def pause(self) -> Board:
        """Leave the board as it is until `resume`."""
        self.change(paused=True, problem="")
        return self

    def resume(self) -> Board:
        self.change(paused=False, problem="")
        return self

    def stop(self, why: str) -> None:
        """End the updates for good, and say why on the board. Does not wait for the thread."""
        self._over.set()
        if not self.state["stopped"]:
            self.change(stopped=why, note="")

    def close(self) -> None:
        self._over.set()
        super().close()

    def change(self, **fields: Any) -> None:
        with self._changing:
            if any(self.state.get(name, ...) != value for name, value in fields.items()):
                super().change(**fields)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """With the values that are no traits, for a page that draws the board for the first time or again."""
        found = super().get_state(key, drop_defaults)
        if key is None:
            with self._looking:
                found |= {**self._sent, "now": self._time()}
        return found

    def __str__(self) -> str:
        return self.snapshot()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget where the page can follow it, else the text alone, which needs no kernel to be read."""
        plain = {"text/plain": self.snapshot()}
        made = super()._repr_mimebundle_(**options) if self.live else None
        return plain if made is None else ({**made[0], **plain}, made[1])

    # -- looking and sending --------------------------------------------------------------------------------------

    def _starting_with(self, text: str) -> list[str]:
        return [job_id for job_id in self._picture.rows if text and job_id.startswith(text)]

    def _time(self) -> float:
        """The database's clock, in seconds."""
        return round(self._now + time.monotonic() - self._read_at, 3)

    def _refresh(self) -> str:
        """Bring the picture up to date; what there is to say about it. Raises StackFailed, psycopg.Error, OSError."""
        with self._looking:
            try:
                self.lab.stack.require_up("postgres")
                rows = self._store.newest(SHOWN)
                total = len(rows) if len(rows) < SHOWN else sum(self._store.counts().values())
                self._now, self._read_at = self._store.now().timestamp(), time.monotonic()
                cleared, events = self._tail.news()
            except (errors.QueryCanceled, errors.LockNotAvailable):
                return WAITING
            finally:
                if self._thread is None or self._over.is_set():
                    self._store.close()
            worker = self.lab._worker
            self._picture.limits = (worker.soft_time_limit, worker.time_limit) if worker else (None, None)
            self._picture.take(rows, total, events, cleared=cleared)
            return ""

    def _send_changes(self, *, beat: bool) -> bool:
        """One message with what the page does not have yet; whether one was sent."""
        with self._looking:
            view = self._picture.view()
            changed = difference(self._sent, view)
            self._sent = view
            if changed or beat:
                self._send({"method": "update", "state": {**changed, "now": self._time()}, "buffer_paths": []})
            return bool(changed or beat)

    def _look_once_more(self) -> None:
        """What ended since the last look still comes onto the page."""
        if not self._over.is_set() and not self.state["paused"]:
            self._refresh()
            self._send_changes(beat=False)

    def _watch(self) -> None:
        """The thread: look, send, until the lab, the board or the database is gone."""
        beaten = time.monotonic()
        try:
            while not self._over.wait(EVERY_SECONDS):
                if self.lab.stack.closed:
                    self.stop(CLOSED)
                elif not self.state["paused"]:
                    self.change(note=self._refresh())
                    if self._send_changes(beat=time.monotonic() - beaten >= BEAT_SECONDS):
                        beaten = time.monotonic()
        except Exception as error:
            # Whatever it was: a traceback between the learner's cells would explain less than a sentence on the board.
            with contextlib.suppress(Exception):
                self.stop(CLOSED if self.lab.stack.closed else _sentence(error, self.lab.name))
        finally:
            with self._looking, contextlib.suppress(Exception):
                self._store.close()


def _sentence(error: Exception, lab: str) -> str:
    first = str(error).strip().splitlines() or [""]
    what = first[0] if isinstance(error, SandboxError) else f"{type(error).__name__}: {first[0]}"
    return f'This board has stopped: {what.rstrip(".:")}. Lab.open("{lab}") starts the servers anew; then run board().'


def _patient(dsn: str) -> str:
    """The same database, for a reader that is not held up and can be told from the lesson's own connections."""
    options = f"{conninfo_to_dict(dsn).get('options') or ''} -c statement_timeout={int(ANSWER_SECONDS * 1000)}"
    return make_conninfo(dsn, options=options.strip(), application_name="board", connect_timeout=5)


_boards: weakref.WeakKeyDictionary[Lab, Board] = weakref.WeakKeyDictionary()


def board(lab: Lab | None = None) -> Board:
    """A board of `lab` (the one that is open here); an older board of it stops. Raises NoLabOpen, BadSetting."""
    lab = Lab.current() if lab is None else lab
    if not isinstance(lab, Lab):
        raise BadSetting(f"board() takes the lab that Lab.open() gave you, or nothing; it got {lab!r}.")
    if lab.stack.closed:
        raise NoLabOpen(f'lab {lab.name} is closed. Run this first: lab = Lab.open("{lab.name}")')
    older = _boards.pop(lab, None)
    if older is not None:
        older.stop(NEWER)
    made = _boards[lab] = Board(lab)
    return made
