"""When each term of the glossary is to be looked at again: spaced repetition, by the FSRS algorithm of the library `fsrs`.

Nothing is stored but the reviews themselves, as entries of the kind ``card``; the schedule is what replaying them gives.
So an import, or two notebooks at once, can not leave a schedule that contradicts them. Moments carry a timezone; the
learner's day is the day of the `now` that is passed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.errors import BadSetting
from sandbox.learn import content, progress
from sandbox.learn.content import Term
from sandbox.learn.progress import Entry

if TYPE_CHECKING:
    from fsrs import Card, Scheduler

RATINGS: tuple[str, ...] = ("again", "hard", "good", "easy")  # in the order of fsrs.Rating, which counts from 1
NEW_A_DAY = 10  # each new card comes back several times in its first days; more than this become a burden


def due(now: datetime, root: Path | None = None, *, entries: Sequence[Entry] | None = None) -> list[Term]:
    """The terms to review: those seen before that are due, longest overdue first, then new ones, lesson by lesson.

    New are terms of lessons that were opened or finished, at most NEW_A_DAY on a day, counting those seen today.
    Without `entries` those that are recorded here.
    """
    _aware(now)
    found = _entries() if entries is None else entries
    cards = _replay(found)
    terms = content.terms(root)
    seen = [term for term in terms if term.name in cards]
    again = sorted((term for term in seen if cards[term.name][0].due <= now), key=lambda term: cards[term.name][0].due)
    begun = {entry.lesson for entry in found if entry.kind in ("opened", "finished")}
    fresh = sorted((t for t in terms if t.name not in cards and t.lesson in begun), key=lambda term: term.lesson)
    today = sum(_day(first, now) == now.date() for _, first, _ in cards.values())
    return again + fresh[: max(NEW_A_DAY - today, 0)]


def review(term_name: str, rating: str, now: datetime | None = None, root: Path | None = None) -> datetime:
    """Note how well a term was known; returns when it is due again, in UTC.

    Where nothing is recorded the kernel remembers it until it ends. Raises BadSetting for an unknown term or rating.
    """
    term = _term(term_name, root)
    if rating not in RATINGS:
        raise BadSetting(f"there is no rating {rating!r}: type one of {', '.join(map(repr, RATINGS))}.")
    progress.record("card", term.lesson, term.name, at=_aware(now or datetime.now(UTC)), rating=rating)
    card, _, _ = schedule()[term.name]
    return card.due


def next_due(term_name: str, root: Path | None = None) -> datetime | None:
    """When the term is due again, in UTC; None if it was never reviewed. Raises BadSetting for an unknown term."""
    found = schedule().get(_term(term_name, root).name)
    return found[0].due if found else None


def ahead(term_name: str, now: datetime, root: Path | None = None) -> dict[str, datetime]:
    """Rating -> when the term would be due again, in UTC, if it were rated so now. Raises BadSetting."""
    from fsrs import Card, Rating

    at = _aware(now).astimezone(UTC)
    name, seen = _term(term_name, root).name, schedule()
    card = seen[name][0] if name in seen else Card(card_id=1, due=at)
    # review_card leaves the card that it is given as it is.
    return {r: _scheduler().review_card(card, Rating(place), at)[0].due for place, r in enumerate(RATINGS, 1)}


def schedule() -> dict[str, tuple[Card, datetime, int]]:
    """Term -> its card, the moment of its first review, and how many there were; only terms that were reviewed."""
    return _replay(_entries())


def state(term_name: str, now: datetime, root: Path | None = None) -> dict[str, Any]:
    """`due` (a moment in UTC, or None if it was never reviewed), `due_now`, and the number of `reviews` so far."""
    _aware(now)
    found = schedule().get(_term(term_name, root).name)
    if found is None:
        return {"due": None, "due_now": False, "reviews": 0}
    card, _, reviews = found
    return {"due": card.due, "due_now": card.due <= now, "reviews": reviews}


def _entries() -> list[Entry]:
    return [*progress.entries(), *progress.unkept()]


def _replay(entries: Iterable[Entry]) -> dict[str, tuple[Card, datetime, int]]:
    """Term -> the card as its reviews leave it, the moment of the first of them, and how many there were."""
    from fsrs import Card, Rating

    found: dict[str, tuple[Card, datetime, int]] = {}
    reviews = (entry for entry in entries if entry.kind == "card" and entry.data.get("rating") in RATINGS)
    # Of two notebooks, or after an import, a later line may be an earlier review.
    for entry in sorted(reviews, key=lambda entry: entry.at):
        at = entry.at.astimezone(UTC)
        # Without an id of ours a card takes one from the clock, and sleeps for it.
        card, first, count = found.get(entry.item) or (Card(card_id=1, due=at), at, 0)
        card, _ = _scheduler().review_card(card, Rating(RATINGS.index(entry.data["rating"]) + 1), at)
        found[entry.item] = (card, first, count + 1)
    return found


@cache
def _scheduler() -> Scheduler:
    from fsrs import Scheduler

    # Its fuzz is a matter of chance, and the replay has to give the same schedule each time.
    return Scheduler(enable_fuzzing=False)


def _term(name: str, root: Path | None) -> Term:
    terms = {term.name: term for term in content.terms(root)}
    if name not in terms:
        raise BadSetting(f"there is no term {name!r} in the glossary; there are {', '.join(terms) or 'none yet'}.")
    return terms[name]


def _day(at: datetime, now: datetime) -> Any:
    return at.astimezone(now.tzinfo).date()


def _aware(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise BadSetting("this moment has no timezone: write datetime.now().astimezone(), not datetime.now().")
    return now
