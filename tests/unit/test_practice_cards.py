"""Flashcards: which card is up, what a rating does, and the text that does the same as the buttons."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sandbox.errors import BadSetting
from sandbox.learn import cards, content, progress
from sandbox.learn.widgets import cards as module
from sandbox.learn.widgets.cards import Cards, wait

REPOSITORY = Path(__file__).parents[2]
START = datetime(2025, 3, 4, 9, 0, tzinfo=UTC)
GLOSSARY = """
[[term]]
name = "soft limit"
lesson = "03"
text = "After so many seconds an exception appears."

[[term]]
name = "hard limit"
lesson = "03"
text = "After so many seconds the process is killed."

[[term]]
name = "job"
lesson = "00"
text = "A piece of work that somebody waits for."
"""


class Clock:
    """A moment that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def go_on(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture(autouse=True)
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course with a glossary of three terms, and a learner who has done nothing yet."""
    shutil.copy(REPOSITORY / "course.toml", tmp_path)
    (tmp_path / "lessons/practice").mkdir(parents=True)
    (tmp_path / "lessons/practice/glossary.toml").write_text(GLOSSARY)
    monkeypatch.setenv("COURSE_ROOT", str(tmp_path))
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    monkeypatch.setattr(module, "_made", {})
    return tmp_path


def through(deck: Cards, *ratings: str) -> Cards:
    for rating in ratings:
        deck.show().rate(rating)
    return deck


def test_a_lesson_deck_has_its_terms_one_after_the_other() -> None:
    """All terms of the lesson, whether its notebook was opened or not, and none of another lesson."""
    deck = Cards("03", Clock())
    seen = []
    while deck.state["term"]:
        seen.append(deck.state["term"])
        through(deck, "good")
    assert seen == ["hard limit", "soft limit"]
    assert deck.state["over"] == "Nothing is due; next: in 10 minutes, 2 cards."


def test_an_opened_lesson_has_each_of_its_terms_once() -> None:
    """What is new by the day's count is not put up a second time because it was asked for."""
    progress.record("opened", "03", at=START)
    assert Cards("03", Clock()).state["left"] == 2


def test_the_text_shows_the_front_then_the_back_with_what_each_rating_means() -> None:
    """Printed, a card is the same card: the front alone, and after show() the back, its link, and the waits."""
    deck = Cards("03", Clock())
    assert str(deck).splitlines() == [
        "Cards of lesson 03: 2 left",
        "",
        "  hard limit",
        "",
        'Say to yourself what it means. Then type cards("03").show().',
    ]
    assert str(deck.show()).splitlines() == [
        "Cards of lesson 03: 2 left",
        "",
        "  hard limit",
        "  = After so many seconds the process is killed.",
        "  ../docs/glossary.md#hard-limit",
        "",
        'How well did you know it? cards("03").rate("good"), or another:',
        "  again (in 1 minute), hard (in 6 minutes), good (in 10 minutes), easy (in 8 days)",
    ]


@pytest.mark.parametrize("rating", ["again", "hard", "good", "easy"])
def test_a_rating_does_what_it_said(rating: str) -> None:
    """The wait beside each rating is the one that the card then gets."""
    deck = Cards("03", Clock()).show()
    said = deck.state["when"][deck.state["ratings"].index(rating)]
    assert deck.rate(rating).state["message"] == f"hard limit: {rating}. It comes back {said}."


def test_every_second_review_asks_for_the_term() -> None:
    """The second time the definition is the front, the third time the term again."""
    clock = Clock()
    deck = through(Cards("03", clock), "easy", "easy")
    fronts = []
    for _ in range(2):
        clock.go_on(days=1000)
        deck.look()
        fronts.append(deck.state["front"])
        through(deck, "good", "good")
    assert fronts == ["After so many seconds the process is killed.", "hard limit"]
    assert "what this is called" not in str(deck)


def test_a_deck_goes_on_in_another_kernel() -> None:
    """A new widget has the state that the progress file says."""
    clock = Clock()
    through(Cards("03", clock), "good")
    deck = Cards("03", clock)
    assert (deck.state["term"], deck.state["left"]) == ("soft limit", 1)
    through(deck, "easy")
    clock.go_on(minutes=11)
    assert Cards("03", clock).state["term"] == "hard limit"


def test_where_nothing_is_recorded_the_deck_goes_on_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """With COURSE_PROGRESS=off a rated card does not come up again at once."""
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    monkeypatch.setattr(progress, "_unkept", [])
    assert through(Cards("03", Clock()), "good").state["term"] == "soft limit"


def test_the_deck_of_the_course_has_what_is_due_and_the_new_terms_of_opened_lessons() -> None:
    """Without a lesson, an unopened lesson's new terms are not in it; what is due of it is."""
    clock = Clock()
    assert "New cards come with each lesson that you open." in str(Cards(None, clock))
    progress.record("opened", "00", at=START)
    deck = Cards(None, clock)
    assert (deck.state["term"], deck.state["left"]) == ("job", 1)
    assert "type cards().show()" in str(deck)
    through(deck, "easy")
    through(Cards("03", clock), "good", "easy")
    assert deck.look().state["over"] == "Nothing is due; next: in 10 minutes, 1 card."
    clock.go_on(minutes=10)
    assert deck.look().state["term"] == "hard limit"


def test_a_lesson_without_terms_says_so(course: Path) -> None:
    """No term of that lesson, or an empty glossary: a sentence, and nothing to turn."""
    (course / "lessons/practice/glossary.toml").write_text(GLOSSARY.replace('lesson = "00"', 'lesson = "03"'))
    content._terms.cache_clear()
    deck = cards("00")
    assert "The glossary has no terms for lesson 00 yet, so there are no cards." in str(deck)
    with pytest.raises(BadSetting, match=r"no card to turn now\. The glossary has no terms"):
        deck.show()
    (course / "lessons/practice/glossary.toml").write_text("")
    content._terms.cache_clear()
    assert "The glossary has no terms yet" in str(cards())


def test_the_same_deck_is_shown_when_a_cell_is_run_again() -> None:
    """cards("03") keeps the card that is turned; cards("3") is the same deck."""
    deck = cards("03").show()
    assert cards("3") is deck
    assert deck.state["shown"]
    assert cards("00") is not deck


def test_a_finished_deck_looks_again_when_its_cell_is_run_again() -> None:
    """What has become due since is on the table."""
    clock = Clock()
    deck = cards("00")
    deck.clock = clock
    through(deck, "again")
    assert deck.state["term"] == ""
    clock.go_on(minutes=2)
    assert cards("00").state["term"] == "job"


def test_ratings_by_number_and_in_capitals() -> None:
    """3 is good, and so is "Good"."""
    deck = Cards("03", Clock())
    deck.show().rate(3)
    deck.show().rate(" Good ")
    assert [entry.data["rating"] for entry in progress.entries()] == ["good", "good"]


@pytest.mark.parametrize("rating", ["fine", "", 0, 5, True, 2.0, None, ["good"]])
def test_an_unknown_rating_is_refused(rating: object) -> None:
    """The message lists the four, as one would type them; nothing is recorded."""
    deck = Cards("03", Clock()).show()
    with pytest.raises(BadSetting, match=r'no rating .* type cards\("03"\).rate\("again"\)'):
        deck.rate(rating)  # type: ignore[arg-type]
    assert progress.entries() == []


def test_a_card_is_not_rated_before_it_is_turned() -> None:
    """Whoever has not looked can not know how well they knew it."""
    with pytest.raises(BadSetting, match=r'cards\("03"\).show\(\) turns it round'):
        Cards("03", Clock()).rate("good")


def test_a_bad_lesson_is_refused() -> None:
    """A lesson that does not exist, and a number without quotes."""
    with pytest.raises(BadSetting, match="there is no lesson '77'"):
        cards("77")
    with pytest.raises(BadSetting, match=r'cards\("03"\)'):
        cards(3)  # type: ignore[arg-type]


def test_a_term_that_has_left_the_glossary_is_passed_over(course: Path) -> None:
    """Old reviews of it stay in the file and disturb nobody."""
    progress.record("card", "03", "forgotten word", at=START, rating="good")
    assert Cards("03", Clock()).state["left"] == 2


def test_an_action_of_the_page_that_goes_wrong_is_said_on_the_page() -> None:
    """What would be raised in a notebook stands in the state."""
    deck = Cards("03", Clock())
    deck._heard(deck, {"do": "rate", "with": ["good"]})
    assert "turns it round" in deck.state["problem"]
    deck._heard(deck, {"do": "show", "with": []})
    assert (deck.state["shown"], deck.state["problem"]) == (True, "")


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ({"seconds": -5}, "now"),
        ({"seconds": 0}, "now"),
        ({"seconds": 1}, "in 1 minute"),
        ({"minutes": 59}, "in 59 minutes"),
        ({"minutes": 59.8}, "in 1 hour"),
        ({"hours": 23}, "in 23 hours"),
        ({"hours": 23.8}, "in 1 day"),
        ({"days": 3.2}, "in 3 days"),
        ({"days": 61}, "in 2 months"),
        ({"days": 4000}, "in 131 months"),
    ],
)
def test_a_wait_is_said_in_the_unit_one_would_use(time: dict[str, float], said: str) -> None:
    """Minutes, hours, days, months, rounded; what is past is now."""
    assert wait(timedelta(**time)) == said
