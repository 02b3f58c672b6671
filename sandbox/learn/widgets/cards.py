"""Flashcards from the glossary: you say it to yourself, look, and say how well you knew it; that decides when it comes back."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sandbox.errors import BadSetting
from sandbox.learn import content, reviews
from sandbox.learn.catalog import Course
from sandbox.learn.content import Term
from sandbox.learn.widgets.base import Practice, script, style

GLOSSARY = "../docs/glossary.md"  # from a lesson
# Unit, its seconds, and the most that one says of it before the next unit is the better word.
UNITS = (("minute", 60, 59), ("hour", 3600, 23), ("day", 86400, 59), ("month", 2629746, math.inf))

_made: dict[str, Cards] = {}  # one widget a deck: a cell that is run again shows the same one


def cards(lesson: str | None = None) -> Cards:
    """The cards of a lesson, ``cards("03")``; without one, those that are due over the whole course.

    Raises BadSetting for a lesson that does not exist.
    """
    if lesson is not None and not isinstance(lesson, str):
        raise BadSetting(f'{lesson!r} is no lesson: type its number in quotes, cards("03").')
    number = None if lesson is None else Course.load().find(lesson).number
    made = _made.get(number or "")
    if made is None or made.comm is None:
        made = _made[number or ""] = Cards(number)
    elif not made.state["term"]:
        made.look()
    return made


def now() -> datetime:
    return datetime.now().astimezone()


class Cards(Practice):
    """One deck. A card is a term or, at every second review of it, a definition whose term is asked for."""

    _esm = script("cards")
    _css = style("cards")
    actions = ("show", "rate", "look")

    def __init__(self, lesson: str | None = None, clock: Callable[[], datetime] = now) -> None:
        self.lesson, self.clock = lesson, clock
        self.deck = tuple(term for term in content.terms() if lesson in (None, term.lesson))
        super().__init__(
            title="Cards that are due" if lesson is None else f"Cards of lesson {lesson}",
            ratings=list(reviews.RATINGS),
            message="",
        )
        self.look()

    def look(self) -> Cards:
        """Ask again what is due now."""
        self._turn("")
        return self

    def show(self) -> Cards:
        """Turn the card round. Raises BadSetting when there is none."""
        self._need_card()
        self.change(shown=True, message="", problem="")
        return self

    def rate(self, rating: str | int) -> Cards:
        """Say how well you knew it: "again", "hard", "good", "easy", or 1 to 4. Raises BadSetting before `show`."""
        term = self._need_card()
        choices = ", ".join(f"{self._call}.rate({name!r})" for name in reviews.RATINGS).replace("'", '"')
        if not self.state["shown"]:
            raise BadSetting(f"this card still shows its front: {self._call}.show() turns it round.")
        name = _rating(rating)
        if name is None:
            raise BadSetting(f"there is no rating {rating!r}: type {choices}.")
        moment = self.clock()
        due = reviews.review(term.name, name, moment)
        self._turn(f"{term.name}: {name}. It comes back {wait(due - moment)}.")
        return self

    @property
    def _call(self) -> str:
        return f'cards("{self.lesson}")' if self.lesson else "cards()"

    def _need_card(self) -> Term:
        found = next((term for term in self.deck if term.name == self.state["term"]), None)
        if found is None:
            raise BadSetting(f"there is no card to turn now. {self.state['over']}")
        return found

    def _turn(self, message: str) -> None:
        """Put the first card that is due on the table, front up."""
        moment = self.clock()
        due = self._due(moment)
        card: dict[str, Any] = {"term": "", "front": "", "back": "", "ask": "", "link": "", "when": [], "over": ""}
        if due:
            card |= _card(due[0], moment)
        else:
            card["over"] = self._over(moment)
        self.change(**card, shown=False, left=len(due), message=message, problem="")

    def _due(self, moment: datetime) -> list[Term]:
        names = {term.name for term in self.deck}
        due = [term for term in reviews.due(moment) if term.name in names]
        if self.lesson is None:
            return due
        # Whoever asks for a lesson's cards gets all of them, also those above the day's number of new ones.
        seen = reviews.schedule()
        return due + [term for term in self.deck if term.name not in seen and term not in due]

    def _over(self, moment: datetime) -> str:
        if not self.deck:
            where = f" for lesson {self.lesson}" if self.lesson else ""
            return f"The glossary has no terms{where} yet, so there are no cards."
        seen = reviews.schedule()
        coming = sorted(seen[term.name][0].due for term in self.deck if term.name in seen)
        if not coming:
            return "Nothing is due. New cards come with each lesson that you open."
        first = wait(coming[0] - moment)
        count = sum(wait(due - moment) == first for due in coming)
        return f"Nothing is due; next: {first}, {count} card{'s' if count > 1 else ''}."

    def __str__(self) -> str:
        state = self.state
        told = [text for text in (state["problem"], state["message"]) if text]
        if not state["term"]:
            return "\n".join([state["title"], "", *told, state["over"]])
        lines = [f"{state['title']}: {state['left']} left", "", *told, f"  {state['front']}"]
        if not state["shown"]:
            return "\n".join([*lines, "", f"{state['ask']} Then type {self._call}.show()."])
        rates = ", ".join(f"{name} ({when})" for name, when in zip(state["ratings"], state["when"], strict=True))
        how = f'How well did you know it? {self._call}.rate("good"), or another:'
        return "\n".join([*lines, f"  = {state['back']}", f"  {state['link']}", "", how, f"  {rates}"])


def _card(term: Term, moment: datetime) -> dict[str, Any]:
    """The two sides of a card; every second review asks for the term."""
    turned = reviews.state(term.name, moment)["reviews"] % 2 == 1
    front, back = (term.text, term.name) if turned else (term.name, term.text)
    ask = "Say to yourself what this is called." if turned else "Say to yourself what it means."
    when = [wait(due - moment) for due in reviews.ahead(term.name, moment).values()]
    link = f"{GLOSSARY}#{term.anchor}"
    return {"term": term.name, "front": front, "back": back, "ask": ask, "link": link, "when": when}


def _rating(given: Any) -> str | None:
    if isinstance(given, str) and given.strip().lower() in reviews.RATINGS:
        return given.strip().lower()
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= len(reviews.RATINGS):
        return reviews.RATINGS[given - 1]
    return None


def wait(time: timedelta) -> str:
    """How long until then, in the unit that one would say it in: "now", "in 10 minutes", "in 3 days"."""
    seconds = time.total_seconds()
    if seconds <= 0:
        return "now"
    unit, length = next((unit, length) for unit, length, most in UNITS if seconds < (most + 0.5) * length)
    count = max(round(seconds / length), 1)
    return f"in {count} {unit}{'s' if count > 1 else ''}"
