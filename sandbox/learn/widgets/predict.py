"""Predict how a run will end, before it runs. The key is the outcome of the run itself.

::

    said = practice("03.naive")
    said                            # in a cell of its own: choose, and lock in
    job = lab.run(...)
    said.outcome(job.row.state)     # compares, and says why
"""

from __future__ import annotations

from typing import Any

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import progress
from sandbox.learn.content import Item
from sandbox.learn.widgets.base import MARKS, RIGHT, WRONG, Practice, letter, script, style


class Predict(Practice):
    """One question, some outcomes, one try: an answer is locked in, and stays until the run has told, or `again`."""

    _esm = script("predict")
    _css = style("predict")
    actions = ("answer", "again")

    def __init__(self, item: Item) -> None:
        self.item = item
        super().__init__(
            id=item.id,
            question=item.question,
            code=item.code,
            options=[option.text for option in item.options],
            locked=None,  # the place of the answer
            ended=None,  # the place of what happened
            verdict="",
            told="",  # you said ..., it is ...
            message="",
        )
        before = progress.last("answer", item.id)
        texts = self.state["options"]
        # Only the answer comes back, by its text, because an author may put the options into another order. What happened is
        # told by a run, and this kernel has not run it.
        if before is not None and before.data.get("locked") is not None and before.data.get("text") in texts:
            self.change(locked=texts.index(before.data["text"]))

    def answer(self, option: int | str) -> Predict:
        """Lock an answer in: its letter, its text, or its place from 0.

        Raises BadSetting for an option that is not there, for another one once an answer is locked, and when the outcome is
        known.
        """
        place = self._place(option)
        if self.state["ended"] is not None:
            raise BadSetting(
                f"it is too late to predict: {self._text(self.state['ended'])!r} is known. Type "
                f'practice("{self.item.id}").again() and predict before you run it once more.'
            )
        if self.state["locked"] not in (None, place):
            raise BadSetting(
                f"{self._text(self.state['locked'])!r} is locked in. Run the next cell to see what happens; "
                f'practice("{self.item.id}").again() takes the answer back.'
            )
        if self.state["locked"] is None:
            self.change(locked=place, problem="")
            progress.record("answer", self.item.lesson, self.item.id, locked=place, text=self._text(place))
        return self

    def outcome(self, happened: Any) -> None:
        """What the run ended with, for example a row's state: compare, tell, and print it in one line.

        Without a locked answer it tells what happened, and records nothing. Raises BadNotebook for an outcome that is none
        of the options: then it is the lesson that is wrong.
        """
        texts, found = [option.text.strip() for option in self.item.options], str(happened).strip()
        if found not in texts:
            raise BadNotebook(
                f"practice item {self.item.id}: the run ended with {found!r}, which is none of its options "
                f"({', '.join(texts)}). Mend the item, or the lesson that gave this outcome."
            )
        ended, locked = texts.index(found), self.state["locked"]
        if locked is None:
            told = f"It is {found}. Nothing was predicted."
            self.change(ended=ended, verdict="", told=told, message=self.item.why, problem="")
            print(f"{self.item.id}  {told}")
            return
        right = locked == ended
        verdict = RIGHT if right else WRONG
        told = f"You said {texts[locked]}{', and' if right else ';'} it is {found}."
        message = f"{self.item.options[locked].says} {self.item.why}".strip()
        self.change(ended=ended, verdict=verdict, told=told, message=message, problem="")
        print(f"{self.item.id}  {MARKS[verdict]} {told}")
        self._record(locked=locked, text=texts[locked], answer=locked, right=right, outcome=found)

    def again(self) -> Predict:
        """Take the answer back, and forget what happened, to predict anew."""
        if self.state["locked"] is not None:
            progress.record("answer", self.item.lesson, self.item.id, locked=None)
        self.change(locked=None, ended=None, verdict="", told="", message="", problem="")
        return self

    def _record(self, **data: Any) -> None:
        """Once for an answer: the lesson may be run again and again."""
        before = progress.last("answer", self.item.id)
        if before is None or before.data != data:
            progress.record("answer", self.item.lesson, self.item.id, **data)

    def _text(self, place: int) -> str:
        return self.item.options[place].text

    def _place(self, option: int | str) -> int:
        texts = [one.text.strip() for one in self.item.options]
        letters = [letter(place) for place in range(len(texts))]
        if isinstance(option, int) and not isinstance(option, bool) and 0 <= option < len(texts):
            return option
        typed = option.strip() if isinstance(option, str) else ""
        if typed in texts:
            return texts.index(typed)
        if typed.lower() in letters:
            return letters.index(typed.lower())
        known = ", ".join(f"{one!r} ({text})" for one, text in zip(letters, texts, strict=True))
        raise BadSetting(f"there is no option {option!r}: type one of {known}.")

    def __str__(self) -> str:
        state = self.state
        lines = [f"{state['id']}  {state['question']}", "", *(f"    {line}" for line in state["code"].splitlines())]
        lines += [""] if state["code"] else []
        for place, text in enumerate(state["options"]):
            notes = [note for note, at in (("you said", state["locked"]), ("it is", state["ended"])) if at == place]
            lines.append(f"  {letter(place)}) {text}" + (f"   <- {', '.join(notes)}" if notes else ""))
        mine = f'practice("{state["id"]}")'
        if state["ended"] is not None:
            mark = f"{MARKS[state['verdict']]} " if state["verdict"] else ""
            return "\n".join([*lines, "", f"{mark}{state['told']} {state['message']}"])
        if state["locked"] is not None:
            locked = f"Locked in: {state['options'][state['locked']]}. Run the next cell. {mine}.again() takes it back."
            return "\n".join([*lines, "", locked])
        return "\n".join([*lines, "", f'Lock an answer in with {mine}.answer("a"), before you run the next cell.'])
