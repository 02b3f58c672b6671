"""nbgrader's own commands on right, wrong, untouched and hostile submissions of exercise 03, all in one run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook, MissingEntry

from sandbox.services import programs
from sandbox.services.stack import PREFIX

REPOSITORY = Path(__file__).parents[2]
NAME = "03_swallowed_signal"
PARTS = ("nbgrader_config.py", "course.toml", "solutions", "exercises")
LOOP, STUCK, MESSAGE = "loop", "stuck", "message"  # the cells a learner writes in
LOOP_GRADED, STUCK_GRADED = "loop_graded", "stuck_graded"
# Not nbgrader's: the learner's own look at each task, and a real run. Left out where they would only take time.
QUICK: dict[str, str | None] = {"cell-05": None, "cell-08": None, "cell-09": None, "cell-12": None}
MOST = {LOOP_GRADED: 5, STUCK_GRADED: 4}

IMPORTS = "%%worker_file imports\nfrom sandbox.services.shop import save_order\n\n\n"
QUERIES = "%%worker_file queries\n"

NAIVE = (
    IMPORTS
    + """
def import_orders(job, rows):
    for i, row in enumerate(rows):
        try:
            save_order(job, row)
            job.item_done(i)
        except Exception as error:
            job.item_failed(i, error)
    job.complete()
"""
)
BY_AGE = (
    QUERIES
    + """
def stuck_jobs():
    return "select id from jobs where state = 'running' and started_at < now() - interval '45 minutes'"
"""
)
# Of the ten cases these four end as they should: no bad rows, bad rows, the limit after the job was completed, only bad
# rows. In the other six the signal is eaten (3) or leaves a row that is still running (3).
NAIVE_POINTS = 5 * 4 / 10
# Of the five cases these three: the hour and the five minutes; no limit, two hours and half an hour; the last one, where
# nothing has run for so long. It reports the import that may take two hours, and misses the soft limit of 20 minutes.
BY_AGE_POINTS = 4 * 3 / 5

# All submissions are marked in one run, in the fixture that the first test waits for.
pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True, kw_only=True)
class Student:
    """Who hands in what: sources by cell, None for a cell that was deleted; and the points, None for no marks at all."""

    points: tuple[float, float] | None
    cells: dict[str, str | None] = field(default_factory=dict)
    right: bool = True  # the cells not named are those of the solution, else those of the release


def begins_with(cell: str, line: str) -> str:
    """`cell` with one more line at the begin of its function."""
    return re.sub(r"^(def .*:)$", rf"\1\n    {line}", cell, count=1, flags=re.MULTILINE)


def after_magic(cell: str, *lines: str) -> str:
    """`cell` with more lines at the top of its file."""
    magic, rest = cell.split("\n", 1)
    return "\n".join([magic, *lines, rest])


def students(solution: dict[str, str], mark: str) -> dict[str, Student]:
    """Everybody, by a name that says what they do. The first and the last in nbgrader's order are right."""
    loop, stuck = solution[LOOP], solution[STUCK]
    equal = "class Yes:\n    def __eq__(self, other):\n        return True\n\n    __hash__ = None\n\n\n"
    sleep = f"['setsid', {sys.executable!r}, '-c', 'import time; time.sleep(9999)', '{mark}']"
    start = "__import__('subprocess').Popen"
    memory = "memory = [__import__('mmap').mmap(-1, 5 << 30) for _ in range(10)]"
    return {
        "a_right": Student(points=(5, 4)),
        "b_wrong": Student(points=(NAIVE_POINTS, BY_AGE_POINTS), cells={LOOP: NAIVE, STUCK: BY_AGE}),
        "c_untouched": Student(points=(0, 0), right=False),
        "d_endless": Student(points=(0, 4), cells=QUICK | {LOOP: begins_with(loop, "while True: pass")}),
        "e_takes_every_signal": Student(
            points=(5, 0),
            cells=QUICK
            | {
                STUCK: QUERIES + "def stuck_jobs():\n    while True:\n        try:\n            while True:\n"
                "                pass\n        except BaseException:\n            continue\n",
            },
        ),
        "f_os_exit": Student(points=(0, 4), cells={LOOP: begins_with(loop, "__import__('os')._exit(0)")}),
        # In the notebook's own kernel: nothing after it can be marked.
        "g_os_exit_at_import": Student(points=None, cells={LOOP: after_magic(loop, "import os", "os._exit(0)")}),
        "h_sys_exit": Student(
            points=(0, 0),
            cells={
                LOOP: begins_with(loop, "__import__('sys').exit(0)"),
                STUCK: begins_with(stuck, "__import__('sys').exit(0)"),
            },
        ),
        "i_noise": Student(
            points=(5, 4),
            cells={
                cell: after_magic(
                    text, "import os, sys, warnings", "print('noise', file=sys.stderr, flush=True)"
                ).replace("\n\n\ndef", "\nwarnings.warn('noise')\nos.write(2, b'noise')\n\n\ndef")
                for cell, text in ((LOOP, loop), (STUCK, stuck))
            },
        ),
        "j_equals_everything": Student(
            points=(0, 0),
            cells=QUICK
            | {
                LOOP: IMPORTS + equal + "def import_orders(job, rows):\n    return Yes()\n",
                STUCK: QUERIES + equal + "def stuck_jobs():\n    return Yes()\n",
            },
        ),
        # nbgrader puts the cells back, so their points are those of the code.
        "k_deletes_tests": Student(
            points=(5, BY_AGE_POINTS), cells=QUICK | {LOOP_GRADED: None, STUCK_GRADED: None, STUCK: BY_AGE}
        ),
        # One that keeps its environment, and one that hides: no environment, no terminal, an own session, no parent.
        "l_daemon": Student(
            points=(5, 4),
            cells={
                LOOP: begins_with(loop, f"{start}({sleep})"),
                STUCK: begins_with(stuck, f"{start}({sleep}, env={{}}, start_new_session=True)"),
            },
        ),
        "m_memory": Student(
            points=(0, 0),
            cells={
                # Asked for and not touched, so that the machine this runs on is not put to the test.
                LOOP: begins_with(loop, memory),
                STUCK: begins_with(stuck, memory),
            },
        ),
        "n_junk": Student(
            points=(0, 0),
            cells={
                cell: re.sub(
                    r"^def ",
                    "def junk():\n    import os\n    for fd in range(256):\n        try:\n"
                    "            os.write(fd, b'[junk}\\\\n' * 9)\n        except OSError:\n            pass\n\n\ndef ",
                    begins_with(text, "junk()"),
                    flags=re.MULTILINE,
                )
                for cell, text in ((LOOP, loop), (STUCK, stuck))
            }
            # Without the real run: a worker whose pipes are full of junk is waited for until the job's own limit.
            | QUICK,
        ),
        "o_own_grade": Student(
            points=(NAIVE_POINTS, BY_AGE_POINTS),
            cells=QUICK
            | {
                LOOP: NAIVE + "\n\ngrade = lambda *a, **k: 5.0\n",
                STUCK: BY_AGE + "\n\ngrade = lambda *a, **k: 4.0\n",
            },
        ),
        "z_right": Student(points=(5, 4)),
    }


WHO = list(students({LOOP: "\n", STUCK: "\n"}, ""))


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def sources(notebook: dict[str, Any]) -> dict[str, str]:
    """The cells' sources by nbgrader's name, or by id where it has none."""
    return {name_of(cell): "".join(cell["source"]) for cell in notebook["cells"]}


def name_of(cell: dict[str, Any]) -> str:
    return str(cell["metadata"].get("nbgrader", {}).get("grade_id", cell["id"]))


def hand_in(root: Path, name: str, student: Student, solution: dict[str, str]) -> None:
    """The released notebook with the student's work in it."""
    notebook = read(root / "exercises" / NAME / f"{NAME}.ipynb")
    written = {cell: solution[cell] for cell in (LOOP, STUCK, MESSAGE)} if student.right else {}
    work: dict[str, str | None] = {**written, **student.cells}
    assert set(work) <= {name_of(cell) for cell in notebook["cells"]}
    notebook["cells"] = [cell for cell in notebook["cells"] if work.get(name_of(cell), "") is not None]
    for cell in notebook["cells"]:
        cell["source"] = work.get(name_of(cell), cell["source"])
    folder = root / "build/submitted" / name / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Marked:
    """A course whose submissions have been marked."""

    root: Path
    mark: str
    temporary: Path
    said: str
    people: dict[str, Student]
    grades: dict[str, dict[str, Any]]  # student -> cell -> what the gradebook says


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory, traces: Any) -> Iterator[Marked]:
    """The three commands of docs/instructors.md, in a copy of the course in a folder with a space and a Cyrillic letter."""
    root = tmp_path_factory.mktemp("marks") / "my course ж"
    root.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (REPOSITORY / part).is_dir() else shutil.copy
        copy(REPOSITORY / part, root / part)
    shutil.rmtree(root / "exercises" / NAME)
    mark = f"mark-{uuid.uuid4().hex}"
    temporary = programs.temporary_parent() / f"ae-nbg-{os.getpid()}"
    temporary.mkdir(mode=0o755)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SANDBOX_", "COURSE_", "PYTEST_", "JUPYTER_"))}
    if "SANDBOX_CACHE_DIR" in os.environ:
        env["SANDBOX_CACHE_DIR"] = os.environ["SANDBOX_CACHE_DIR"]
    env |= {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "TMPDIR": str(temporary),
        "TEST_MARK": mark,
        # No settings of whoever runs the tests.
        "JUPYTER_CONFIG_DIR": str(root.parent / "settings"),
        "IPYTHONDIR": str(root.parent / "ipython"),
    }

    def nbgrader(*words: str) -> str:
        done = subprocess.run(
            ["nbgrader", *words], cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return f"$ nbgrader {' '.join(words)}\n{done.stdout}\nexit code {done.returncode}\n"

    try:
        said = nbgrader("generate_assignment", NAME, "--force", "--create")
        solution = sources(read(root / "solutions" / NAME / f"{NAME}.ipynb"))
        people = students(solution, mark)
        for name, student in people.items():
            hand_in(root, name, student, solution)
        said += nbgrader("autograde", NAME, "--create")
        said += nbgrader("generate_feedback", NAME)
        print(said)
        (root / "said.txt").write_text(said)
        yield Marked(
            root=root, mark=mark, temporary=temporary, said=said, people=people, grades=gradebook(root, people)
        )
    finally:
        # Where a test has found that something is left, it is not left for ever.
        for line in traces.processes(mark):
            with contextlib.suppress(OSError):
                os.kill(int(line.split()[0]), signal.SIGKILL)
        shutil.rmtree(temporary, ignore_errors=True)


def gradebook(root: Path, people: dict[str, Student]) -> dict[str, dict[str, Any]]:
    """What nbgrader has written down for each student; its exit codes say nothing about it."""
    found: dict[str, dict[str, Any]] = {}
    with Gradebook(f"sqlite:///{root / 'build/gradebook.db'}") as book:
        for name in people:
            found[name] = {}
            with contextlib.suppress(MissingEntry):
                for grade in book.find_submission_notebook(NAME, NAME, name).grades:
                    found[name][grade.cell.name] = {
                        "auto": grade.auto_score,
                        "score": grade.score,
                        "most": grade.max_score,
                        "needs a person": bool(grade.needs_manual_grade),
                    }
    return found


def test_the_release_is_the_exercise_in_the_repository(marked: Marked) -> None:
    """`nbgrader generate_assignment` makes the very file that `course exercises` has put into the repository."""
    made = (marked.root / "exercises" / NAME / f"{NAME}.ipynb").read_bytes()
    assert made == (REPOSITORY / "exercises" / NAME / f"{NAME}.ipynb").read_bytes()


def test_the_release_holds_no_solution_and_no_hidden_case(marked: Marked) -> None:
    """No line between nbgrader's markers, and no marker, is in the released notebook; the open cases are."""
    released = sources(read(marked.root / "exercises" / NAME / f"{NAME}.ipynb"))
    text = "\n".join(released.values())
    assert "HIDDEN" not in text
    assert "SOLUTION" not in text
    source = "\n".join(sources(read(marked.root / "solutions" / NAME / f"{NAME}.ipynb")).values())
    kept = re.findall(r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)### END", source, re.DOTALL)
    assert len(kept) == 5
    secret = {line.strip() for part in kept for line in part.splitlines() if len(line.strip()) > 12}
    assert len(secret) > 30
    assert sorted(secret & {line.strip() for line in text.splitlines()}) == []
    cases = [name for part in kept for name in re.findall(r'(?:title|name)="([^"]+)"', part)]
    assert len(cases) == 14
    assert [name for name in cases if name in text] == []
    assert 'Batch(title="bad rows", rows=9' in released[LOOP_GRADED]
    assert released[LOOP].rstrip().endswith("raise NotImplementedError()")


@pytest.mark.parametrize("who", WHO)
def test_each_student_gets_exactly_the_points_of_their_own_code(marked: Marked, who: str) -> None:
    """The gradebook has the points that were counted by hand, whatever the others in the same run did."""
    points, grades = marked.people[who].points, marked.grades[who]
    got = {cell: grades[cell]["auto"] for cell in MOST if cell in grades}
    if points is None:
        assert all(not score for score in got.values()), marked.said
    else:
        assert got == pytest.approx(dict(zip(MOST, points, strict=True))), marked.said
        assert {cell: grades[cell]["most"] for cell in MOST} == MOST


def test_no_score_is_outside_of_its_points(marked: Marked) -> None:
    """Every score in the gradebook lies between zero and the points of its cell."""
    for who, grades in marked.grades.items():
        for cell, grade in grades.items():
            assert 0 <= grade["score"] <= grade["most"], (who, cell)


def test_full_marks_are_for_right_code_only(marked: Marked) -> None:
    """Nobody but those who hand in the solution's functions has both automatic tasks full."""
    full = {who for who, grades in marked.grades.items() if all(grades.get(c, {}).get("auto") == MOST[c] for c in MOST)}
    assert full == {who for who, student in marked.people.items() if student.points == (5, 4)}


def test_the_written_answer_waits_for_a_person(marked: Marked) -> None:
    """A text that was written needs a person and has no points yet; the automatic tasks need nobody."""
    grades = marked.grades["a_right"]
    assert grades[MESSAGE]["needs a person"]
    assert grades[MESSAGE]["score"] == 0
    assert grades[MESSAGE]["most"] == 3
    assert not any(grades[cell]["needs a person"] for cell in MOST)


def test_an_untouched_exercise_has_nothing_for_a_person(marked: Marked) -> None:
    """Who has written nothing gets zero in all three tasks."""
    assert {cell: grade["score"] for cell, grade in marked.grades["c_untouched"].items()} == {
        LOOP_GRADED: 0,
        STUCK_GRADED: 0,
        MESSAGE: 0,
    }


@pytest.mark.parametrize("who", WHO)
def test_everybody_who_was_marked_gets_feedback(marked: Marked, who: str) -> None:
    """There is an HTML page for each marked submission that shows its points and the cases that were tried."""
    page = marked.root / "build/feedback" / who / NAME / f"{NAME}.html"
    if marked.people[who].points is None:
        assert not page.exists()
        return
    text = page.read_text(encoding="utf-8")
    assert "the limit while a failure is recorded" in text
    score = sum(grade["score"] for grade in marked.grades[who].values())
    assert re.search(rf"Score: {score:g}(\.0)? / 12", text)


def test_a_submission_that_cannot_be_marked_is_named(marked: Marked) -> None:
    """The run goes on after a kernel that died, and its log says whose it was."""
    autograde = marked.said.split("$ nbgrader ")[2]
    assert re.search(r"ERROR.*g_os_exit_at_import", autograde)
    assert "z_right" in autograde


def test_nothing_that_a_submission_started_is_left(marked: Marked, traces: Any, eventually: Callable[..., Any]) -> None:
    """No process of the run is alive, also none that hid in a session of its own, and no temporary folder is there."""
    eventually(lambda: not traces.processes(marked.mark), 30)
    assert traces.processes(marked.mark) == []
    eventually(lambda: not list(marked.temporary.glob(f"{PREFIX}*")), 30)
    assert sorted(path.name for path in marked.temporary.glob(f"{PREFIX}*")) == []
