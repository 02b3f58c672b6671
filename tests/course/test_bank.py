"""The bank of submissions: the course's own is as expected, and every mistake in a bank has its sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sandbox.cli import main
from sandbox.errors import BadNotebook
from sandbox.learn import bank, catalog, progress
from sandbox.learn.bank import Tried

ROOT = Path(__file__).parents[2]
BANK = "tests/submissions/00.1.toml"
Change = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(progress.ENV, progress.OFF)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> list[Tried]:
    """Every submission of the course, tried once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(progress.ENV, progress.OFF)
        patch.setenv("COURSE_ROOT", str(ROOT))
        return list(bank.try_all(catalog.load(ROOT).lessons, tmp_path_factory.mktemp("work")))


def test_every_submission_of_the_course_gets_its_marks_and_its_message(tried: list[Tried]) -> None:
    """Each right one passes with all points; each wrong one has the score and the message that its bank says."""
    assert [f"{one.exercise} {one.name}: {one.error}" for one in tried if one.error] == []


def test_every_exercise_of_the_course_has_its_mistakes(tried: list[Tried]) -> None:
    """Each exercise that something here checks has at least six mistakes, no two with the same message."""
    lessons = catalog.load(ROOT).lessons
    for lesson in lessons:
        for exercise in lesson.exercises:
            found = bank.read(lesson, exercise)
            wrong = [entry.name for entry in found if entry.says]
            assert len(wrong) >= 6, exercise.id
            told = [one.message for one in tried if one.exercise == exercise.id and one.name in wrong]
            assert len(set(told)) == len(told) == len(wrong)


def test_a_message_says_what_happened_what_people_see_and_why(tried: list[Tried]) -> None:
    """Every mistake that a check finds is told in all three parts."""
    poor = [one.name for one in tried if "not yet\n" in one.message and one.message.startswith("✗")]
    parts = ("  What happened: ", "  What people see: ", "  Why: ")
    wanting = [one.name for one in tried if one.name in poor and not all(part in one.message for part in parts)]
    assert wanting == []
    assert len(poor) > 30


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the course with lesson 00 alone."""
    text = (ROOT / "course.toml").read_text(encoding="utf-8")
    second = text.index("[[lesson]]", text.index("[[lesson]]") + 1)
    (tmp_path / "course.toml").write_text(text[:second], encoding="utf-8")
    for name in ("solutions/00_start_here/00_start_here.ipynb", BANK):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setenv("COURSE_ROOT", str(tmp_path))
    return tmp_path


def change(root: Path, before: str, after: str) -> None:
    path = root / BANK
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")


def try_course(root: Path, work: Path) -> list[Tried]:
    work.mkdir()
    return list(bank.try_all(catalog.load(root).lessons, work))


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("score = 0.43", "score = 0.5", "the graded cell gives 0.43 and not 0.5"),
        (
            "function answered nothing",
            "function answered too little",
            "cancelled your function answered too little (None).', but:",
        ),
        ("return state in TERMINAL", "return state not in TERMINAL", "check says 'not yet' and not 'passed'"),
        ("def has_ended(state):", "def has_begun(state):", "AttributeError"),
        ("def has_ended(state):", "def has_ended(state:", "it could not be tried: SyntaxError"),
    ],
)
def test_a_submission_that_is_not_as_expected_is_a_failure(
    course: Path, tmp_path: Path, before: str, after: str, sentence: str
) -> None:
    """A wrong score, a wrong message, a right one that is not right, and one that can not be imported."""
    change(course, before, after)
    failures = [one for one in try_course(course, tmp_path / "work") if one.error]
    (failed,) = failures
    assert sentence in failed.error


def test_two_mistakes_that_are_told_the_same_are_a_failure(course: Path, tmp_path: Path) -> None:
    """Two submissions whose whole message is the same fail, also where each bank line looks for another part of it."""
    path = course / BANK
    with open(path, "a", encoding="utf-8") as file:
        file.write(
            '\n[[wrong]]\nname = "again"\nsays = "pending are not terminal"\nscore = 0.71\n'
            "text = 'def has_ended(state): return bool(1)'\n"
        )
    failures = [one for one in try_course(course, tmp_path / "work") if one.error]
    (failed,) = failures
    assert (failed.name, failed.error) == ("again", "its author is told exactly what 'always yes' is told")


WRONG = "\n[[wrong]]\nname = {!r}\nsays = {!r}\nscore = 0\ntext = 'x'\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[wrong", "is not valid TOML"),
        ("", "has no [[right]] submission"),
        ("[[right]]\nname = 'a'\ntext = 'x'\n", "has 0 wrong submissions: write 6 more as [[wrong]]"),
        ("[right]\nname = 'a'\ntext = 'x'\n", "write each submission as [[right]], with two brackets"),
        ("[[rigth]]\nname = 'a'\n", "'rigth' is not known; there are [[right]] and [[wrong]]"),
        ("[[right]]\nname = 'a'\n", "right submission 'a' has no 'text' that is text in quotes"),
        ("[[right]]\ntext = 'x'\n", "right submission 'no. 1' has no 'name' that is text in quotes"),
        ("[[right]]\nname = 'a'\ntext = 'x'\nscore = 1\n", "right submission 'a' has a field 'score'"),
        (WRONG.format("b", "says").replace("score = 0\n", ""), "wrong submission 'b' has no 'score' that is a number"),
        (WRONG.format("b", "says").replace("score = 0", "score = true"), "has no 'score' that is a number"),
        (WRONG.format("b", "  "), "write a part of what its author is told"),
        (WRONG.format("b", "says") + "status = 'fine'\n", "has status = 'fine'; write one of 'passed', 'not yet'"),
        (
            "[[right]]\nname = 'w0'\ntext = 'x'\n" + "".join(WRONG.format(f"w{i}", f"word{i}") for i in range(6)),
            "the name 'w0' stands there twice",
        ),
        (
            "[[right]]\nname = 'r'\ntext = 'x'\n"
            + "".join(WRONG.format(f"w{i}", f"word{i}" if i else "the word5") for i in range(6)),
            "'w5' and 'w0' are told the same: 'word5'",
        ),
    ],
)
def test_every_mistake_in_a_bank_has_a_sentence(course: Path, text: str, sentence: str) -> None:
    """A bank that is none raises BadNotebook, which names the file and what to write."""
    (course / BANK).write_text(text)
    (lesson,) = catalog.load(course).lessons
    with pytest.raises(BadNotebook) as caught:
        bank.read(lesson, lesson.exercises[0])
    assert sentence in str(caught.value) and str(course / BANK) in str(caught.value)


def test_bytes_that_are_no_text_are_refused(course: Path) -> None:
    """A bank that is not UTF-8 raises BadNotebook."""
    (course / BANK).write_bytes(b"\xff")
    (lesson,) = catalog.load(course).lessons
    with pytest.raises(BadNotebook, match="is not valid TOML"):
        bank.read(lesson, lesson.exercises[0])


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    code = main(["check", "--only", "solutions", "--json", *words])
    shown = capsys.readouterr()
    return code, json.loads(shown.out), shown.err


def test_course_check_tries_the_bank_beside_the_notebooks(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON has a second list, of the submissions with what each was told, and the terminal counts them."""
    code, data, said = checked(capsys)
    assert code == 0, said
    assert list(data) == ["notebooks", "submissions", "quizzes"]
    assert len(data["submissions"]) == 7 and data["quizzes"] == []
    second = data["submissions"][1]
    assert list(second) == ["exercise", "name", "passed", "score", "expected", "message"]
    assert (second["exercise"], second["name"], second["passed"]) == ("00.1", "only success counts", True)
    assert second["score"] == second["expected"] == 0.43
    assert "For failed and cancelled your function answered False." in second["message"]
    assert main(["check", "--only", "solutions"]) == 0
    assert "submissions: 7 of 7 as expected\n" in capsys.readouterr().out


def test_course_check_fails_with_each_deviation(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One submission with other marks makes exit code 1, is named, and is a failure in JUnit; the notebook is still ok."""
    change(course, "score = 0.71", "score = 1")
    code, data, said = checked(capsys, "--junit", str(course / "junit.xml"))
    assert code == 1
    assert [one["passed"] for one in data["notebooks"]] == [True]
    assert [one["name"] for one in data["submissions"] if not one["passed"]] == ["always yes"]
    assert "submission 00.1 always yes: the graded cell gives 0.71 and not 1.0" in said
    suite = ElementTree.parse(course / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("8", "1")
    (failure,) = suite.findall("testcase/failure")
    assert "0.71 and not 1.0" in failure.get("message", "")


def test_a_bank_that_is_missing_or_stray_is_a_failure(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A graded exercise without a bank says what to write; a file for no exercise is named."""
    (course / BANK).rename(course / "tests/submissions/00.7.toml")
    code, data, said = checked(capsys)
    assert code == 1 and len(data["submissions"]) == 2
    assert f"{course / BANK} is missing: write at least one [[right]] with name and text, and 6 [[wrong]]" in said
    assert "00.7.toml: there is no exercise '00.7'; the exercises are 00.1." in said


def test_an_exercise_without_a_checker_is_a_failure(course: Path, tmp_path: Path) -> None:
    """An exercise that is graded by machine, with a bank and without a checker, is told where to write one."""
    path = course / "course.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('id = "00.1"', 'id = "00.9"'), encoding="utf-8")
    (course / BANK).rename(course / "tests/submissions/00.9.toml")
    (failed,) = try_course(course, tmp_path / "work")
    assert "exercise 00.9 is graded by machine and has no checker: write one under sandbox/learn/checks" in failed.error


def test_a_trial_that_does_not_end_is_stopped(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was tried until then is reported, and that the rest was not."""
    from sandbox.learn.trials import Trials

    change(course, "from sandbox.jobs import TERMINAL", "import time; time.sleep(999)")
    with Trials(catalog.load(course).lessons, submissions=True, quizzes=False, folder=tmp_path / "build") as trials:
        found = trials.collect(0)
    assert not found.passed
    assert found.submissions[-1]["error"] == "trying them took more than 0 s and was stopped"
