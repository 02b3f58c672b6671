"""One slider for each number of a lesson. A moved slider changes the number in the notebook, as the parameters cell would.

The sliders are native inputs in an ipywidgets widget of our own: in ipywidgets' IntSlider the part that takes the focus has
no name, so a screen reader says "slider" for every one of them, and axe-core calls that a violation.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.errors import BadSetting
from sandbox.learn import progress
from sandbox.learn.catalog import Course
from sandbox.learn.front import person_watches
from sandbox.learn.widgets.base import Practice, script, style

USUAL: dict[str, tuple[float, ...]] = {"rows": (8, 200), "time_scale": (0.5, 4.0, 0.5), "seed": (0, 99)}
MOST = 1000  # places of one slider: it is a few hundred pixels wide
AGAIN = "run the cells below again"

_made: dict[str, Sliders] = {}  # one widget a lesson: a cell that is run again shows the same one


@dataclass(frozen=True, kw_only=True)
class Range:
    """The places of one slider: from `low` to `high`, both included, in steps."""

    name: str
    low: float
    high: float
    step: float
    whole: bool  # whole numbers only

    @classmethod
    def of(cls, name: str, given: Any) -> Range:
        """The range that (low, high) or (low, high, step) says. Raises BadSetting for one that has no places."""
        numbers = tuple(given) if isinstance(given, (tuple, list)) else ()
        if len(numbers) not in (2, 3) or not all(_is_number(number) for number in numbers):
            raise BadSetting(
                f"{name}={given!r} is no range: type {name}=(8, 200), or with a step {name}=(0.5, 4.0, 0.5)."
            )
        low, high = numbers[:2]
        whole = all(isinstance(number, int) for number in numbers)
        if len(numbers) == 2 and not whole:
            raise BadSetting(f"{name}={given!r} has no step: type one, {name}=({low}, {high}, {(high - low) / 10:g}).")
        step = numbers[2] if len(numbers) == 3 else 1
        if low >= high or step <= 0:
            raise BadSetting(f"{name}={given!r}: the first number is the lower one, and a step is above zero.")
        if (high - low) / step > MOST:
            raise BadSetting(f"{name}={given!r} has more than {MOST} places: type a wider step as the third number.")
        return cls(name=name, low=low, high=high, step=step, whole=whole)

    def places(self, *also: float) -> list[float]:
        """Every value there is, in order. `also` are values the notebook has, which need not be on the grid, nor inside."""
        count = math.floor((self.high - self.low) / self.step + 1e-9)
        grid = [round(self.low + place * self.step, 10) for place in range(count + 1)]
        return sorted({self.value(number) for number in (*grid, self.high, *also)})

    def value(self, given: Any) -> float:
        """`given` as a number of this slider. Raises BadSetting for anything else."""
        if not _is_number(given) or (self.whole and given != int(given)):
            raise BadSetting(f"{self.name} is {given!r}, but needs {self.kind}: type {self.name} = {show(self.low)}.")
        return int(given) if self.whole else float(given)

    @property
    def kind(self) -> str:
        return "a whole number" if self.whole else "a number"

    def __str__(self) -> str:
        steps = "" if self.whole and self.step == 1 else f", in steps of {show(self.step)}"
        return f"{show(self.low)} to {show(self.high)}{steps}"


def sliders(lesson: str, /, **ranges: tuple[float, ...]) -> Sliders:
    """The sliders of a lesson: ``sliders("03", rows=(8, 200), time_scale=(0.5, 4.0, 0.5))``.

    A range is (low, high) in whole numbers, or (low, high, step). Without ranges: the sliders this notebook has already,
    or those of the usual names (rows, time_scale, seed) that the notebook knows. Raises BadSetting for a lesson that does
    not exist, a bad range, and a name that the notebook does not know.
    """
    lesson = Course.load().find(_text(lesson)).number
    made = _made.get(lesson)
    if made is not None and made.comm is not None and ranges in ({}, made.given):
        made.begin()
        return made
    if not ranges:
        known = _notebook().user_ns
        ranges = {name: given for name, given in USUAL.items() if name in known}
        if not ranges:
            raise BadSetting(f'say which numbers: sliders("{lesson}", rows=(8, 200)), after the cell that sets rows.')
    new = Sliders(lesson, ranges)  # which refuses a bad range, and then the old ones stay
    if made is not None:
        made.leave()
    _made[lesson] = new
    return new


class Sliders(Practice):
    """The numbers of one lesson, as sliders over the names of the notebook."""

    _esm = script("sliders")
    _css = style("sliders")
    actions = ("move", "reset")

    def __init__(self, lesson: str, ranges: Mapping[str, tuple[float, ...]]) -> None:
        self.lesson, self.given = lesson, dict(ranges)
        self.ranges = {name: Range.of(name, given) for name, given in ranges.items()}
        self.names = _notebook().user_ns
        self.base = self._present()  # the notebook's own numbers
        self.values = dict(self.base)  # what they are now
        super().__init__(lesson=lesson, numbers=[], message="")
        self.begin()
        _notebook().events.register("post_run_cell", self._look)

    def begin(self) -> None:
        """Take over what the notebook says now, and put back what was last moved from just these numbers."""
        self._take_over(self._present())
        self._draw(self.state["message"])
        if not person_watches() or self.values != self.base:
            return
        left = self._left()
        if left and left != self.base:
            self._write(left)
            moved = _are({name: value for name, value in left.items() if value != self.base[name]})
            own = ", ".join(f"{name} = {show(value)}" for name, value in self.base.items())
            self._draw(f"{moved}, as you left it; Reset gives the lesson's own numbers ({own}).")

    def leave(self) -> None:
        """Stop watching the notebook: other sliders have taken this one's place."""
        with contextlib.suppress(ValueError):  # left already
            _notebook().events.unregister("post_run_cell", self._look)
        self.close()

    def move(self, name: str, value: float) -> Sliders:
        """Move one slider: ``move("rows", 80)``."""
        return self.set(**{str(name): value})

    def set(self, **values: float) -> Sliders:
        """Move sliders: ``set(rows=80)``. Raises BadSetting for an unknown name or a value out of range; none moves then."""
        if not values:
            raise BadSetting(f"say which number: set({self._example()}).")
        for name, value in values.items():
            if name not in self.ranges:
                raise BadSetting(
                    f"there is no slider {name!r}; there are {', '.join(self.ranges)}: set({self._example()})."
                )
            places = self._places(name)
            if not places[0] <= self.ranges[name].value(value) <= places[-1]:
                raise BadSetting(
                    f"{name} = {value} is out of range: type a number from {show(places[0])} to {show(places[-1])}."
                )
        new = {name: self.ranges[name].value(value) for name, value in values.items()}
        self._write(new)
        self._draw(f"{_are(new)} now; {AGAIN}.")
        progress.record("sliders", self.lesson, self._item, values=self.values, base=self.base)
        return self

    def reset(self) -> Sliders:
        """Give the notebook its own numbers back."""
        self._write(self.base)
        self._draw(f"{_are(self.base)}: the lesson's own numbers; {AGAIN}.")
        progress.record("sliders", self.lesson, self._item, values=self.values, base=self.base)
        return self

    @property
    def _item(self) -> str:
        return f"sliders:{self.lesson}"

    def _present(self) -> dict[str, float]:
        """What the notebook says. Raises BadSetting for a name it does not know, or one that is no number."""
        for name in self.ranges:
            if name not in self.names:
                raise BadSetting(f"there is no {name} in this notebook yet: run the cell that says {name} = ... first.")
        return {name: range_.value(self.names[name]) for name, range_ in self.ranges.items()}

    def _take_over(self, present: dict[str, float]) -> dict[str, float]:
        """What a cell of the notebook has set is the notebook's own number from now on; returns those that changed."""
        changed = {name: value for name, value in present.items() if value != self.values[name]}
        self.values |= changed
        self.base |= changed
        return changed

    def _look(self, _: Any = None) -> None:
        """After each cell: one may have set a number, and a slider must not show another."""
        try:
            changed = self._take_over(self._present())
        except BadSetting:
            return  # said when the sliders' own cell is run
        if changed:
            self._draw(f"{_are(changed)} now: a cell has set it.")

    def _left(self) -> dict[str, float] | None:
        """The values last moved to from the present base; None when there are none that can be used."""
        for entry in reversed(progress.entries()):
            if entry.kind != "sliders" or entry.item != self._item:
                continue
            values, base = entry.data.get("values"), entry.data.get("base")
            if not isinstance(values, dict) or set(values) != set(self.ranges):
                continue  # of other sliders: the author has changed them
            if base != self.base:
                return None
            try:
                left = {name: range_.value(values[name]) for name, range_ in self.ranges.items()}
            except BadSetting:
                return None
            inside = (self._places(name)[0] <= value <= self._places(name)[-1] for name, value in left.items())
            return left if all(inside) else None
        return None

    def _places(self, name: str) -> list[float]:
        return self.ranges[name].places(self.base[name], self.values[name])

    def _write(self, values: Mapping[str, float]) -> None:
        self.values |= values
        self.names.update(values)

    def _draw(self, message: str) -> None:
        numbers = [
            {"name": name, "value": self.values[name], "places": self._places(name), "whole": range_.whole}
            for name, range_ in self.ranges.items()
        ]
        self.change(numbers=numbers, message=message, problem="")

    def _example(self) -> str:
        name, range_ = next(iter(self.ranges.items()))
        return f"{name}={show(range_.high)}"

    def __str__(self) -> str:
        wide = max(map(len, self.ranges))
        values = {name: show(value) for name, value in self.values.items()}
        longest = max(map(len, values.values()))
        lines = [f"The numbers of lesson {self.lesson}", ""]
        for name, range_ in self.ranges.items():
            low, high = self._places(name)[0], self._places(name)[-1]
            now = Range(name=name, low=low, high=high, step=range_.step, whole=range_.whole)
            lines.append(f"  {name:<{wide}}  {values[name]:<{longest}}  {now}")
        told = self.state["problem"] or self.state["message"]
        change = f'Change one with sliders("{self.lesson}").set({self._example()}), then {AGAIN}.'
        return "\n".join([*lines, "", *([told] if told else []), change])


def show(value: float) -> str:
    """80, 1.0, 0.25: as one would type it."""
    return repr(value)


def _are(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} is {show(value)}" for name, value in values.items())


def _is_number(given: Any) -> bool:
    # A whole number has no bound in Python, and a slider has.
    return (
        isinstance(given, (int, float)) and not isinstance(given, bool) and abs(given) <= 1e15
    )  # beyond it a float does not tell two whole numbers apart


def _text(lesson: Any) -> str:
    if isinstance(lesson, str):
        return lesson
    raise BadSetting(f'{lesson!r} is no lesson: type its number in quotes, sliders("03", rows=(8, 200)).')


def _notebook() -> Any:
    """The shell whose names the sliders move. Raises BadSetting outside of one."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        raise BadSetting("sliders move the names of a notebook, and this is none: set the names yourself.")
    return shell
