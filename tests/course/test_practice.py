"""What the course gives to practise: every fragment is run, every key compared, and every item stands in its lesson."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sandbox.learn import content, quizzes
from sandbox.learn.catalog import Course

ROOT = Path(__file__).parents[2]
ITEMS = content.all_items(ROOT)
COURSE = Course.load(ROOT)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_a_quiz_says_what_its_code_does(item: content.Item) -> None:
    """Every program of a quiz runs: its key is one of the answers, and every mistake that has a message is a mistake."""
    assert quizzes.problems(item) == []


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.name)
def test_a_lesson_practises_what_is_written_for_it(lesson: object) -> None:
    """Each practice item of a lesson is shown in it once, and it shows none that does not exist."""
    cells = json.loads(lesson.lesson_path.read_text(encoding="utf-8"))["cells"]  # type: ignore[attr-defined]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    shown = re.findall(r'practice\("([^"]+)"\)', code)
    assert sorted(shown) == sorted(item.id for item in content.items(lesson.number, ROOT))  # type: ignore[attr-defined]


def test_there_are_quizzes_of_every_kind() -> None:
    """Predict, choose, gap and Parsons each stand in a lesson."""
    assert {item.kind for item in ITEMS} == {"predict", "choose", "gap", "parsons"}
