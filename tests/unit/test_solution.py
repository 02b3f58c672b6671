"""The course's solution beside the learner's: when it is shown, what is shown, and where it comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import catalog, hint, hints, progress, solution, solutions
from sandbox.learn.solutions import Beside, NotYetShown

ROOT = Path(__file__).parents[2]
MINE = "%%worker_file imports\ndef import_orders(job, rows):\n    pass  # <b>mine</b>\n"


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A progress file of this test's own."""
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv(progress.ENV, str(path))
    monkeypatch.setattr(progress, "_unkept", [])
    hints._shown.clear()
    return path


def checked(number: str, status: str, source: str = MINE) -> None:
    progress.record("check", number[:2], number, status=status, source=source)


def test_before_anything_was_done_it_says_what_to_do() -> None:
    """Without a check that passed and with closed hints there is a sentence and no solution."""
    found = solution("03.1")
    assert isinstance(found, NotYetShown)
    assert str(found) == (
        'The solution of 03.1 is shown after check("03.1", ...) has passed, or when all hints are open: 4 of 4 are closed.'
    )
    checked("03.1", "not yet")
    assert isinstance(solution("03.1"), NotYetShown)
    assert [entry.kind for entry in progress.entries()] == ["check"]


def test_after_a_check_that_passed_it_is_shown_and_recorded() -> None:
    """The learner's last checked text stands beside the solution, and the look is recorded."""
    checked("03.1", "passed", "old")
    checked("03.1", "not yet")
    found = solution("03.1")
    assert isinstance(found, Beside)
    assert found.yours == "def import_orders(job, rows):\n    pass  # <b>mine</b>"
    assert progress.last("solution", "03.1") is not None


def test_when_all_hints_are_open_it_is_shown() -> None:
    """All hints opened are enough, also where nothing was ever checked."""
    for _ in range(4):
        hint("03.2")
    assert isinstance(solution("03.2"), NotYetShown)
    hint("03.2")
    found = solution("03.2")
    assert isinstance(found, Beside) and found.yours == ""
    assert "Yours" not in found._repr_html_() and str(found).startswith("03.2 ")


def test_without_a_file_this_kernel_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is recorded a check of this kernel opens the solution as well."""
    monkeypatch.setenv(progress.ENV, "off")
    checked("03.1", "passed")
    assert isinstance(solution("03.1"), Beside)


def test_a_message_is_shown_once_one_was_written() -> None:
    """For an exercise that a person reads, a try that was checked is enough, an empty one is not."""
    checked("03.3", "not attempted", "")
    assert "Write yours first" in str(solution("03.3"))
    checked("03.3", "not yet", "Dear customer,")
    found = solution("03.3")
    assert isinstance(found, Beside)
    assert found.title == "03.3 Tell the people who waited: one good answer beside yours"
    assert found.ours.startswith("Your import did not finish.")


def test_where_the_solutions_were_not_handed_out_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A course without solutions/ says so."""
    (tmp_path / "course.toml").write_text((ROOT / "course.toml").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setenv("COURSE_ROOT", str(tmp_path))
    checked("03.1", "passed")
    assert "The solutions are not in this copy of the course" in str(solution("03.1"))


def test_an_unknown_exercise_is_named_with_those_there_are() -> None:
    """An exercise that does not exist raises BadSetting."""
    with pytest.raises(BadSetting, match=r"there is no exercise '3\.1'; the exercises are 00\.1, 03\.1"):
        solution("3.1")


def test_each_exercise_of_the_course_has_its_solution_without_marks() -> None:
    """The text of every solution is found, without nbgrader's marks and the magic, and differs from the others."""
    found = []
    for lesson in catalog.load(ROOT):
        for exercise in lesson.exercises:
            text = solutions.text_of(lesson, exercise.id)
            assert text and not re.search(r"###|%%|SOLUTION|NotImplemented", text), exercise.id
            found.append(text)
    assert len(set(found)) == len(found)


def test_a_notebook_that_checks_nothing_is_named(tmp_path: Path) -> None:
    """Where no cell calls check the solution can not be told, and the error says which call is missing."""
    lesson = next(iter(catalog.load(ROOT)))
    with pytest.raises(BadNotebook, match=r'no cell calls check\("44\.1", ...\)'):
        solutions.text_of(lesson, "44.1")
    with pytest.raises(BadNotebook, match=r'no graded cell calls grade\("44\.1", ...\)'):
        solutions.graded_source(lesson, "44.1")


BESIDE = Beside(title="03.1 a", yours="same\nmine <b>\nend", ours="same\nours & others\nend\nmore")


def test_lines_that_differ_have_a_sign() -> None:
    """Each line is told by a sign: in both, only in yours, only in ours."""
    left, right = BESIDE.lines()
    assert [sign for sign, _ in left] == [" ", "−", " "]
    assert [sign for sign, _ in right] == [" ", "+", " ", "+"]


def test_the_page_has_two_labelled_columns_and_no_markup_of_theirs() -> None:
    """The HTML has both texts, escaped, each in a box with a name that the keyboard can scroll."""
    page = BESIDE._repr_html_()
    assert page.count("<pre tabindex='0' role='group'") == 2
    assert "aria-label='Yours'" in page and "aria-label='Ours'" in page
    assert "<strong>− mine &lt;b&gt;</strong>" in page and "<strong>+ ours &amp; others</strong>" in page
    assert "<b>" not in page


def test_the_text_twin_has_both_and_what_differs() -> None:
    """Printed, yours comes first, then ours, then the difference."""
    text = str(BESIDE)
    assert text.index("Yours:") < text.index("Ours:") < text.index("From yours to ours:")
    assert "    -mine <b>" in text and "    +ours & others" in text
    assert "letter by letter" in str(Beside(title="t", yours="a", ours="a"))
