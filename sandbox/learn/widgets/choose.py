"""Choose what a program prints. The key is what it prints when it is run."""

from __future__ import annotations

from sandbox.errors import BadNotebook, BadSetting
from sandbox.learn import fragments, progress
from sandbox.learn.content import Item
from sandbox.learn.widgets.base import MARKS, RIGHT, WRONG, Practice, letter, script


def key(item: Item) -> int:
    """The place of the option that the program prints. Raises BadNotebook when it prints none of them."""
    ran = fragments.run(item.code)
    for place, option in enumerate(item.options):
        if option.text.strip() == ran.outcome:
            return place
    raise BadNotebook(
        f"practice item {item.id}: its code gives {ran.outcome!r}, which is none of its options. {ran.error}"
    )


class Choose(Practice):
    """One question, one program, some answers; as many tries as you like."""

    _esm = script("choose")
    actions = ("answer",)

    def __init__(self, item: Item) -> None:
        self.item = item
        super().__init__(
            id=item.id,
            question=item.question,
            code=item.code,
            options=[option.text for option in item.options],
            chosen=None,
            verdict="",
            message="",
        )
        before = progress.last("answer", item.id)
        # By its text, because an author may put the options into another order.
        if before is not None and before.data.get("text") in self.state["options"]:
            self._show(self.state["options"].index(before.data["text"]), right=before.data.get("right") is True)

    def answer(self, option: int | str) -> Choose:
        """Choose an option: its letter, its text, or its place from 0. Raises BadSetting for one that is not there."""
        place = self._place(option)
        right = key(self.item) == place
        self._show(place, right=right)
        progress.record(
            "answer", self.item.lesson, self.item.id, answer=place, text=self.state["options"][place], right=right
        )
        return self

    def _place(self, option: int | str) -> int:
        texts = self.state["options"]
        letters = [letter(place) for place in range(len(texts))]
        if isinstance(option, int) and not isinstance(option, bool) and 0 <= option < len(texts):
            return option
        if isinstance(option, str) and option.strip().lower() in letters:
            return letters.index(option.strip().lower())
        if isinstance(option, str) and option.strip() in texts:
            return int(texts.index(option.strip()))
        raise BadSetting(f"there is no option {option!r}: type one of {', '.join(map(repr, letters))}.")

    def _show(self, place: int, *, right: bool) -> None:
        says = self.item.options[place].says
        message = f"{says} {self.item.why}".strip() if right else says
        self.change(chosen=place, verdict=RIGHT if right else WRONG, message=message, problem="")

    def __str__(self) -> str:
        state = self.state
        lines = [f"{state['id']}  {state['question']}", "", *(f"    {line}" for line in state["code"].splitlines()), ""]
        for place, text in enumerate(state["options"]):
            head = f"  {letter(place)})"
            lines += [f"{head if not more else '    '} {line}" for more, line in enumerate(text.splitlines())]
        if state["verdict"]:
            chosen = letter(state["chosen"])
            lines += ["", f"{MARKS[state['verdict']]} {chosen}) {state['verdict']}: {state['message']}"]
        else:
            lines += ["", f'Answer with practice("{state["id"]}").answer("a").']
        return "\n".join(lines)
