"""What is generated or kept in one form is up to date: a change of its source must bring it along."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.cli import main
from sandbox.cli.app import course
from sandbox.cli.reference import FILE, render
from sandbox.learn import catalog, notebooks

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_ROOT", str(ROOT))


def test_the_reference_is_what_the_commands_say() -> None:
    """docs/reference.md is what `course reference --write` would write now."""
    assert (ROOT / FILE).read_text(encoding="utf-8") == render(course)


def test_the_reference_names_every_command_and_option() -> None:
    """No command and no option that a person sees is missing from the reference."""
    text = render(course)
    for name, command in course.commands.items():
        assert (f"\n## course {name}\n" in text) is not command.hidden
        if not command.hidden:
            part = text.split(f"\n## course {name}\n")[1].split("\n## ")[0]
            for parameter in command.params:
                if parameter.param_type_name == "option":
                    assert all(f"{option}" in part for option in parameter.opts)


def test_every_notebook_is_in_its_form_for_git(capsys: pytest.CaptureFixture[str]) -> None:
    """`course clean --check` finds nothing to do in the repository."""
    assert main(["clean", "--check"]) == 0, capsys.readouterr().out


def test_every_exercise_is_what_its_solution_makes(capsys: pytest.CaptureFixture[str]) -> None:
    """`course exercises --check` finds nothing to do in the repository."""
    assert main(["exercises", "--check"]) == 0, capsys.readouterr().out


def test_every_lesson_has_its_files_and_every_file_its_lesson() -> None:
    """course.toml and the three folders name the same lessons: nothing is missing and nothing is stray."""
    found = catalog.load(ROOT)
    lessons = {lesson.lesson_path for lesson in found}
    assert {path for path in (ROOT / "lessons").rglob("*.ipynb") if notebooks.is_ours(path)} == lessons
    for folder in ("solutions", "exercises"):
        wanted = {ROOT / folder / one.name / f"{one.name}.ipynb" for one in found if one.exercises}
        assert {path for path in (ROOT / folder).rglob("*.ipynb") if notebooks.is_ours(path)} == wanted


def test_the_points_in_the_solutions_are_those_of_the_list() -> None:
    """The points that nbgrader counts in a solution add up to those of its exercises in course.toml."""
    for lesson in catalog.load(ROOT):
        if lesson.exercises:
            cells = [cell.metadata.get("nbgrader", {}) for cell in notebooks.read(lesson.solution_path).cells]
            counted = sum(about.get("points", 0) for about in cells if about.get("grade") or about.get("task"))
            assert counted == sum(exercise.points for exercise in lesson.exercises), lesson.name


def test_no_exercise_shows_an_answer_or_a_hidden_test() -> None:
    """Nothing between nbgrader's markers reached an exercise, nor the markers themselves."""
    for lesson in catalog.load(ROOT):
        if lesson.exercises:
            text = lesson.exercise_path.read_text(encoding="utf-8")
            assert not re.search(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)", text), lesson.name
