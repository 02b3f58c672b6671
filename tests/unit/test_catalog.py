from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import catalog

GOOD = """
title = "A course"

[[lesson]]
number = "00"
slug = "start_here"
title = "Start here"
question = "Why?"
minutes = 10

[[lesson]]
number = "03"
slug = "swallowed_signal"
title = "The signal"
question = "Where?"
minutes = 35

[[lesson.exercise]]
id = "03.1"
title = "A loop"
graded = "auto"
points = 5

[[lesson.exercise.hint]]
title = "Which?"
text = "one"

[[lesson.exercise.hint]]
title = "How?"
text = "two"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "course.toml").write_text(GOOD)
    return tmp_path


def test_lessons_come_in_the_order_of_the_file_with_their_exercises(root: Path) -> None:
    """The catalog holds the lessons in the file's order, each with its exercises."""
    course = catalog.Course.load(root)
    assert [lesson.name for lesson in course] == ["00_start_here", "03_swallowed_signal"]
    (exercise,) = course.lessons[1].exercises
    assert (exercise.id, exercise.points) == ("03.1", 5)
    assert exercise.hints == (catalog.Hint(title="Which?", text="one"), catalog.Hint(title="How?", text="two"))


def test_a_lesson_knows_where_its_three_notebooks_lie(root: Path) -> None:
    """A lesson's paths follow from its number and slug."""
    lesson = catalog.load(root).find("03")
    assert lesson.lesson_path == root / "lessons/03_swallowed_signal.ipynb"
    assert lesson.solution_path == root / "solutions/03_swallowed_signal/03_swallowed_signal.ipynb"
    assert lesson.exercise_path == root / "exercises/03_swallowed_signal/03_swallowed_signal.ipynb"


@pytest.mark.parametrize("typed", ["03", "3", " 003 ", "03_swallowed_signal", "swallowed_signal"])
def test_a_lesson_is_found_by_whatever_a_person_calls_it(root: Path, typed: str) -> None:
    """A lesson is found by its number, with or without zeros, and by its name."""
    assert catalog.load(root).find(typed).number == "03"


@pytest.mark.parametrize("typed", ["7", "", "start", "-3", "³"])
def test_an_unknown_lesson_is_answered_with_the_list(root: Path, typed: str) -> None:
    """An unknown lesson raises BadSetting, which lists the lessons there are."""
    with pytest.raises(BadSetting, match="the lessons are 00_start_here, 03_swallowed_signal"):
        catalog.load(root).find(typed)


def test_selecting_keeps_the_order_of_the_course_and_no_doubles(root: Path) -> None:
    """Several lessons named come once each, in the order of the course; none named means all."""
    course = catalog.load(root)
    assert [lesson.number for lesson in course.select(["3", "00", "03"])] == ["00", "03"]
    assert course.select([]) == course.lessons


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("minutes = 35", "", "lesson 03 has no 'minutes'; write minutes = a whole number"),
        ("minutes = 35", 'minutes = "35"', "'minutes' of lesson 03 is '35'; write a whole number"),
        ("minutes = 35", "minutes = true", "'minutes' of lesson 03 is True; write a whole number"),
        ("minutes = 35", "minutes = 0", "lesson 03 takes 0 minutes"),
        ('title = "A course"', "", "the course has no 'title'"),
        ('title = "The signal"', 'title = " "', "'title' of lesson 03 is empty"),
        ('title = "The signal"', 'titel = "The signal"', "lesson 03 has a field 'titel' that is not known"),
        ('number = "03"', 'number = "00"', "lesson 00, so write its id as 00.1"),
        ('id = "03.1"', 'id = "04.1"', "exercise 04.1 stands in lesson 03"),
        ('number = "00"', 'number = "03"', "the lesson number '03' stands there twice"),
        ('number = "00"', "number = 0", "'number' of lesson 0 is 0; write text in quotes"),
        ('number = "00"', 'number = "0"', "needs a number of two digits"),
        ('slug = "start_here"', 'slug = "swallowed_signal"', "the slug 'swallowed_signal' stands there twice"),
        ('slug = "start_here"', 'slug = "../etc"', "use small letters, digits and single _"),
        ('graded = "auto"', 'graded = "robot"', 'write "auto" or "person"'),
        ("points = 5", "points = 0", "exercise 03.1 has 0 points"),
        (
            "points = 5",
            'points = 5\nhints = ["one"]',
            "write each hint as [[lesson.exercise.hint]] with a title and a text",
        ),
        (
            GOOD[GOOD.index("[[lesson.exercise.hint") :],
            "hint = 7",
            "write each hint of exercise 03.1 as [[lesson.exercise.hint]]",
        ),
        ('title = "How?"', "", "hint 2 of exercise 03.1 has no 'title'"),
        ('title = "How?"', 'title = "Which?"', "exercise 03.1 has two hints with the title 'Which?'"),
        ('text = "two"', 'text = " "', "'text' of hint 2 of exercise 03.1 is empty"),
        ('text = "two"', "text = 2", "'text' of hint 2 of exercise 03.1 is 2; write text in quotes"),
        ('text = "two"', 'text = "two"\nsays = "x"', "hint 2 of exercise 03.1 has a field 'says' that is not known"),
        ("[[lesson.exercise]]", "[lesson.exercise]", "with two brackets"),
        ("[[lesson]]", "[[lesson", "is not valid TOML"),
    ],
)
def test_every_mistake_in_the_file_has_a_sentence(root: Path, before: str, after: str, sentence: str) -> None:
    """A malformed course.toml raises BadNotebook in one line that names the file and the mistake."""
    (root / "course.toml").write_text(GOOD.replace(before, after))
    with pytest.raises(BadNotebook) as caught:
        catalog.load(root)
    assert sentence in str(caught.value)
    assert str(root / "course.toml") in str(caught.value)
    assert "\n" not in str(caught.value).rstrip()


def test_an_exercise_may_have_no_hints(root: Path) -> None:
    """An exercise without a hint, as one that a person reads, has an empty list of them."""
    (root / "course.toml").write_text(GOOD[: GOOD.index("[[lesson.exercise.hint]]")])
    assert catalog.load(root).exercise("03.1")[1].hints == ()


@pytest.mark.parametrize("number", ["03.9", "3.1", "", 3.1, None])
def test_an_unknown_exercise_is_answered_with_the_list(root: Path, number: object) -> None:
    """An exercise that does not exist, or is no text, raises BadSetting with those there are."""
    course = catalog.load(root)
    assert course.exercise("03.1")[0].number == "03"
    with pytest.raises(BadSetting, match=r"the exercises are 03\.1"):
        course.exercise(number)  # type: ignore[arg-type]


def test_a_course_without_lessons_is_refused(root: Path) -> None:
    """A file with a title and nothing else says how a lesson begins."""
    (root / "course.toml").write_text('title = "x"\n')
    with pytest.raises(BadNotebook, match=r"lists no lesson: add one that begins with \[\[lesson\]\]"):
        catalog.load(root)


def test_one_exercise_table_in_place_of_a_list_is_named(root: Path) -> None:
    """A single [lesson] table gets the two brackets explained."""
    (root / "course.toml").write_text('title = "x"\n[lesson]\nnumber = "00"\n')
    with pytest.raises(BadNotebook, match=r"write each lesson as \[\[lesson\]\]"):
        catalog.load(root)


def test_bytes_that_are_no_text_are_refused(root: Path) -> None:
    """A course.toml that is not UTF-8 raises BadNotebook, not UnicodeDecodeError."""
    (root / "course.toml").write_bytes(b'title = "\xff"')
    with pytest.raises(BadNotebook, match="is not valid TOML"):
        catalog.load(root)


def test_the_root_is_the_nearest_folder_above(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a folder inside a course the root is that course's, unless COURSE_ROOT names another."""
    monkeypatch.delenv("COURSE_ROOT", raising=False)
    inner = root / "lessons" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert catalog.find_root() == root.resolve()
    other = tmp_path_factory.mktemp("other")
    (other / "course.toml").write_text(GOOD)
    monkeypatch.setenv("COURSE_ROOT", str(other))
    assert catalog.find_root() == other.resolve()


def test_outside_every_course_the_root_is_the_packages_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a course above the working folder, the one this package is installed from is used."""
    monkeypatch.delenv("COURSE_ROOT", raising=False)
    assert catalog.find_root(tmp_path) == Path(catalog.__file__).parents[2]


def test_no_course_anywhere_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no course.toml above and none beside the package, the error says what to change."""
    monkeypatch.delenv("COURSE_ROOT", raising=False)
    monkeypatch.setattr(catalog, "__file__", str(tmp_path / "site/sandbox/learn/catalog.py"))
    with pytest.raises(BadSetting, match="change to the folder you cloned, or set COURSE_ROOT"):
        catalog.find_root(tmp_path)


def test_a_course_root_without_a_course_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A COURSE_ROOT that holds no course.toml is an error, not a reason to look elsewhere."""
    monkeypatch.setenv("COURSE_ROOT", str(tmp_path))
    with pytest.raises(BadSetting, match=f"COURSE_ROOT is {tmp_path}"):
        catalog.find_root()


def test_the_course_itself_loads() -> None:
    """The repository's own course.toml is well-formed and says what its text says."""
    root = Path(catalog.__file__).parents[2]
    text = tomllib.loads((root / "course.toml").read_text(encoding="utf-8"))
    assert [lesson.number for lesson in catalog.load(root)] == [table["number"] for table in text["lesson"]]
