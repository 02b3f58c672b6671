"""The hints of an exercise: titles to read, and one button that opens the next."""

from __future__ import annotations

from sandbox.learn import hints
from sandbox.learn.catalog import Exercise
from sandbox.learn.widgets.base import Practice, script, style


class Hints(Practice):
    """A ladder of hints. The page gets the text of a step when it is opened, and not before."""

    _esm = script("hints")
    _css = style("hints")
    actions = ("reveal",)

    def __init__(self, exercise: Exercise) -> None:
        self.exercise = exercise
        titles = [hint.title for hint in exercise.hints]
        super().__init__(id=exercise.id, title=exercise.title, titles=titles, texts=[], next="")
        self.refresh()

    def reveal(self, step: int | None = None) -> Hints:
        """Open the next step, or the one of that number if its turn has come. Raises BadSetting."""
        hints.open_step(self.exercise, step)
        return self.refresh()

    def refresh(self) -> Hints:
        """Draw what is open now: another cell or another notebook may have opened a step."""
        done = hints.opened(self.exercise)
        texts = [hint.text for hint in self.exercise.hints[:done]]
        self.change(texts=texts, next=hints.what_next(self.exercise, done), problem="")
        return self

    def __str__(self) -> str:
        return str(hints.Ladder(self.exercise, len(self.state["texts"])))
