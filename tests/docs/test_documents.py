"""The documents say what is so: links lead somewhere, code in them runs, what can be listed is listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.learn.catalog import Course
from sandbox.services import Lab

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS += sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_of_a_document_leads_to_a_file(document: Path) -> None:
    """A relative link or picture in a document names a file that exists."""
    targets = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    relative = [target for target in targets if "://" not in target]
    assert [target for target in relative if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_that_a_document_names_in_code_exists(document: Path) -> None:
    """A path in backticks that begins with one of our folders is there, so a moved file takes its mention along."""
    named = re.findall(r"`((?:sandbox|tests|docs|scripts|lessons|solutions|exercises)/[\w./-]*)`", document.read_text())
    assert [name for name in named if "NN_slug" not in name and not (ROOT / name).exists()] == []


def test_the_readme_shows_the_two_commands_and_every_lesson() -> None:
    """The README names `make lab` and `make test`, and each lesson with its question and its minutes."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make lab " in text and "make test " in text
    for lesson in Course.load(ROOT):
        row = (
            f"| [{lesson.number} {lesson.title}](lessons/{lesson.name}.ipynb) | {lesson.question} | {lesson.minutes} |"
        )
        assert row in text


def test_the_readme_names_no_make_target_or_command_that_is_not_there() -> None:
    """Each `make X` and `course X` in a document is a target of the Makefile or a command of the tool."""
    from sandbox.cli.app import course

    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"`([^`\n]+)`", text))
        assert set(re.findall(r"(?m)^make ([a-z]+)", code)) <= targets, document.name
        assert set(re.findall(r"(?m)(?:^|/)course ([a-z]+)", code)) <= set(course.commands), document.name


def test_the_python_of_the_guide_for_your_own_project_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The code in docs/your-project.md runs as it stands, against a real PostgreSQL."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/your-project.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    with Lab.open("docs", worker=False, quiet=True) as lab:
        names: dict[str, object] = {}
        exec(blocks[0].replace("dbname=shop", lab.servers.dsn), names)
        assert [row.state for row in lab.jobs.all()] == ["completed"]
    exec(blocks[1], {})
    assert capsys.readouterr().out == ""


def test_each_lesson_in_the_catalogue_has_its_three_notebooks_and_no_notebook_is_unlisted() -> None:
    """course.toml and the folders hold the same lessons, exercises and solutions."""
    course = Course.load(ROOT)
    listed = {path for lesson in course for path in (lesson.lesson_path, lesson.solution_path, lesson.exercise_path)}
    found = {path for folder in ("lessons", "solutions", "exercises") for path in (ROOT / folder).rglob("*.ipynb")}
    found = {path for path in found if ".ipynb_checkpoints" not in path.parts and not path.name.endswith(".bak.ipynb")}
    assert found == listed


def test_each_exercise_in_the_catalogue_has_a_checker_or_a_person() -> None:
    """An exercise that is graded by machine has a checker, one that is read by a person has none."""
    from sandbox.learn.checking import CHECKERS

    exercises = [exercise for lesson in Course.load(ROOT) for exercise in lesson.exercises]
    assert {exercise.id for exercise in exercises if exercise.graded == "auto"} == set(CHECKERS)


def test_the_points_in_the_catalogue_are_those_in_the_notebooks() -> None:
    """The grade cells of a solution are worth what course.toml says its exercises are worth."""
    import json

    for lesson in Course.load(ROOT):
        cells = json.loads(lesson.solution_path.read_text(encoding="utf-8"))["cells"]
        marked = [cell["metadata"]["nbgrader"] for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade")]
        assert [cell["points"] for cell in marked] == [exercise.points for exercise in lesson.exercises]
