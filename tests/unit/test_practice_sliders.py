"""Sliders: they read and write the notebook's numbers, say so in text, and put moved numbers back only where it is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from nbformat import v4

from sandbox.errors import BadSetting
from sandbox.learn import progress, sliders
from sandbox.learn.widgets import sliders as module
from sandbox.learn.widgets.sliders import Range

RANGES: dict[str, Any] = {"rows": (8, 200), "time_scale": (0.5, 4.0, 0.5), "seed": (0, 99)}


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names of a notebook whose parameters cell has been run."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setattr(module, "_made", {})
    shell = InteractiveShell.instance()
    shell.user_ns |= {"rows": 40, "time_scale": 1.0, "seed": 3}
    yield shell.user_ns
    InteractiveShell.clear_instance()


def run(code: str) -> None:
    InteractiveShell.instance().run_cell(code)


def test_a_moved_slider_changes_the_name_in_the_notebook(names: dict[str, Any]) -> None:
    """set() writes the number, says so, and the other numbers stay."""
    widget = sliders("03", **RANGES).set(rows=80)
    assert (names["rows"], names["time_scale"], names["seed"]) == (80, 1.0, 3)
    assert widget.state["message"] == "rows is 80 now; run the cells below again."
    widget.set(time_scale=2, seed=4)
    assert widget.state["message"] == "time_scale is 2.0, seed is 4 now; run the cells below again."
    assert isinstance(names["time_scale"], float)


def test_the_text_has_names_values_ranges_and_how_to_change_them(names: dict[str, Any]) -> None:
    """Printed, the sliders say everything that they show."""
    widget = sliders("03", **RANGES)
    assert str(widget).splitlines() == [
        "The numbers of lesson 03",
        "",
        "  rows        40   8 to 200",
        "  time_scale  1.0  0.5 to 4.0, in steps of 0.5",
        "  seed        3    0 to 99",
        "",
        'Change one with sliders("03").set(rows=200), then run the cells below again.',
    ]
    bundle, _ = widget._repr_mimebundle_()
    assert bundle["text/plain"] == str(widget)
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "rows is 80 now; run the cells below again." in str(widget.set(rows=80))


def test_what_the_page_sends_does_the_same(names: dict[str, Any]) -> None:
    """A number of JavaScript has no kind: 2 is 2.0 for a slider of fractions."""
    widget = sliders("03", **RANGES)
    widget._heard(widget, {"do": "move", "with": ["time_scale", 2]})
    assert names["time_scale"] == 2.0
    widget._heard(widget, {"do": "move", "with": ["time_scale", 9]})
    assert "out of range" in widget.state["problem"]
    widget._heard(widget, {"do": "reset", "with": []})
    assert (names["time_scale"], widget.state["problem"]) == (1.0, "")


def test_reset_gives_the_notebooks_own_numbers_back(names: dict[str, Any]) -> None:
    """Also after several moves, and it says which they are."""
    widget = sliders("03", **RANGES).set(rows=80).set(rows=90, seed=7)
    widget.reset()
    assert (names["rows"], names["seed"]) == (40, 3)
    assert widget.state["message"].startswith("rows is 40, time_scale is 1.0, seed is 3: the lesson's own numbers")


def test_each_move_is_recorded_with_the_base_it_was_made_from(names: dict[str, Any]) -> None:
    """An entry has all the numbers, and the notebook's own ones."""
    sliders("03", **RANGES).set(rows=80).reset()
    own = {"rows": 40, "time_scale": 1.0, "seed": 3}
    found = [(entry.lesson, entry.data) for entry in progress.entries()]
    assert found == [("03", {"values": own | {"rows": 80}, "base": own}), ("03", {"values": own, "base": own})]


@pytest.mark.parametrize("value", [4, 5000])
def test_a_value_out_of_range_widens_the_range(names: dict[str, Any], value: int) -> None:
    """papermill may have set any number: the slider starts there, and can come back there."""
    names["rows"] = value
    widget = sliders("03", **RANGES)
    assert f"{min(value, 8)} to {max(value, 200)}" in str(widget)
    assert value in widget.state["numbers"][0]["places"]
    assert names["rows"] == value
    assert widget.set(rows=80).set(rows=value).values["rows"] == value


def test_a_value_between_the_steps_keeps_its_place(names: dict[str, Any]) -> None:
    """The slider shows 1.25, and not the step beside it."""
    names["time_scale"] = 1.25
    widget = sliders("03", **RANGES)
    assert widget.state["numbers"][1]["places"] == [0.5, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]
    widget.set(time_scale=0.75)
    assert names["time_scale"] == 0.75


def test_a_cell_that_sets_a_number_moves_the_slider(names: dict[str, Any]) -> None:
    """What a cell sets is the notebook's own from then on; what it leaves alone is not touched."""
    widget = sliders("03", **RANGES).set(seed=9)
    run("rows = 60")
    assert (widget.values["rows"], widget.state["message"]) == (60, "rows is 60 now: a cell has set it.")
    run("rows = 'many'")
    assert widget.values["rows"] == 60
    run("rows = 60")
    widget.reset()
    assert (names["rows"], names["seed"]) == (60, 3)


def test_the_cell_run_again_shows_the_same_sliders_and_keeps_the_base(names: dict[str, Any]) -> None:
    """A moved number is not taken for the lesson's own one."""
    widget = sliders("03", **RANGES).set(rows=80)
    assert sliders("03", **RANGES) is widget
    assert sliders("3") is widget
    assert names["rows"] == 80
    assert widget.reset().values["rows"] == 40


def test_other_ranges_make_other_sliders(names: dict[str, Any]) -> None:
    """An edited cell takes effect, and the old sliders let go of the notebook."""
    old = sliders("03", **RANGES)
    new = sliders("03", rows=(1, 50))
    assert new is not old
    assert list(new.values) == ["rows"]
    run("rows = 7")
    assert (old.values["rows"], new.values["rows"]) == (40, 7)


def test_without_ranges_the_usual_names_that_are_there_get_a_slider(names: dict[str, Any]) -> None:
    """sliders("00") in a notebook with rows and seed has these two."""
    del names["time_scale"]
    assert list(sliders("00").values) == ["rows", "seed"]
    del names["rows"], names["seed"]
    with pytest.raises(BadSetting, match=r'say which numbers: sliders\("03", rows=\(8, 200\)\)'):
        sliders("03")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"row": 80}, "no slider 'row'; there are rows, time_scale, seed: set\\(rows=200\\)"),
        ({"rows": 201}, "type a number from 8 to 200"),
        ({"rows": 8.5}, "needs a whole number: type rows = 8"),
        ({"rows": "80"}, "rows is '80', but needs a whole number"),
        ({"rows": True}, "needs a whole number"),
        ({"time_scale": float("nan")}, "needs a number: type time_scale = 0.5"),
        ({"time_scale": float("inf")}, "needs a number"),
        ({"seed": 5, "rows": 7}, "type a number from 8 to 200"),
        ({}, "say which number: set\\(rows=200\\)"),
    ],
)
def test_a_bad_move_is_refused_and_moves_nothing(names: dict[str, Any], values: dict[str, Any], says: str) -> None:
    """The message has what to type; also the good half of a bad move is not done."""
    widget = sliders("03", **RANGES)
    with pytest.raises(BadSetting, match=says):
        widget.set(**values)
    assert (names["rows"], names["time_scale"], names["seed"]) == (40, 1.0, 3)
    assert progress.entries() == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((8,), "is no range: type x=\\(8, 200\\)"),
        (8, "is no range"),
        ("ab", "is no range"),
        ((8, "200"), "is no range"),
        ((0, float("inf")), "is no range"),
        ((0.5, 4.0), "has no step: type one, x=\\(0.5, 4.0, 0.35\\)"),
        ((200, 8), "the first number is the lower one"),
        ((8, 8), "the first number is the lower one"),
        ((8, 200, 0), "a step is above zero"),
        ((0, 10**9), "more than 1000 places"),
    ],
)
def test_a_bad_range_is_refused(given: Any, says: str) -> None:
    """The message shows a range that works."""
    with pytest.raises(BadSetting, match=says):
        Range.of("x", given)


def test_a_bad_range_leaves_the_sliders_that_are_there(names: dict[str, Any]) -> None:
    """After a refusal the ones before work on, and good ranges make new ones."""
    before = sliders("03", rows=(8, 200))
    with pytest.raises(BadSetting):
        sliders("03", rows=(8, 8))
    assert sliders("03") is before and before.set(rows=80) and names["rows"] == 80
    assert sliders("03", rows=(8, 100)) is not before


@pytest.mark.parametrize("value", [10**400, float("inf"), float("nan")])
def test_a_number_without_a_place_on_any_slider_is_refused(names: dict[str, Any], value: float) -> None:
    """A whole number of any length is one in Python, and no number of a slider."""
    with pytest.raises(BadSetting):
        sliders("03", **RANGES).set(rows=value)
    assert names["rows"] == 40


def test_a_range_has_its_ends_and_no_rounding_errors() -> None:
    """Steps of a tenth are tenths, and the upper end is in it also where no step ends there."""
    assert Range.of("x", (0.1, 0.7, 0.1)).places() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert Range.of("x", (1, 10, 4)).places() == [1, 5, 9, 10]


def test_bad_surroundings_are_said(names: dict[str, Any]) -> None:
    """A name that is missing or no number, a lesson that does not exist or has no quotes."""
    with pytest.raises(BadSetting, match="no speed in this notebook yet: run the cell that says speed"):
        sliders("03", speed=(1, 5))
    names["rows"] = "forty"
    with pytest.raises(BadSetting, match="rows is 'forty', but needs a whole number: type rows = 8"):
        sliders("03", **RANGES)
    with pytest.raises(BadSetting, match="no lesson '77'"):
        sliders("77", **RANGES)
    with pytest.raises(BadSetting, match='type its number in quotes, sliders\\("03"'):
        sliders(3, **RANGES)  # type: ignore[arg-type]


def test_outside_of_a_notebook_it_says_so() -> None:
    """A plain program has no notebook whose numbers could be moved."""
    InteractiveShell.clear_instance()
    with pytest.raises(BadSetting, match="and this is none"):
        sliders("03", rows=(8, 200))


def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, last: str, *, watched: bool) -> str:
    """Run the lesson's cells in a real kernel of its own, and return what the last one prints."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.jsonl"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    if watched:
        monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "lesson.ipynb"))
    else:
        monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    first = f"from sandbox.learn import sliders\nrows = {rows}\nwidget = sliders('03', rows=(8, 200))"
    book = v4.new_notebook(cells=[v4.new_code_cell(first), v4.new_code_cell(last)])
    NotebookClient(book, timeout=120, kernel_name="python3").execute()
    return str(nbformat.from_dict(book).cells[-1].outputs[0]["text"]).strip()


def test_moved_numbers_come_back_in_a_new_kernel_while_the_notebook_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers are put back, said so, and Reset undoes it for good; an edited parameters cell wins."""

    def lesson(rows: int, last: str) -> str:
        return notebook(tmp_path, monkeypatch, rows, last, watched=True)

    assert lesson(40, "widget.set(rows=80); print(rows)") == "80"
    said = "rows is 80, as you left it; Reset gives the lesson's own numbers (rows = 40)."
    assert lesson(40, "print(rows, widget.state['message'])") == f"80 {said}"
    assert lesson(50, "print(rows, widget.state['message'])") == "50"
    assert lesson(40, "widget.reset(); print(rows)") == "40"
    assert lesson(40, "print(rows, widget.state['message'])") == "40"


def test_nothing_is_put_back_where_nobody_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """papermill's numbers count, even if a progress file is named and has others."""
    own = {"rows": 40}
    progress.append(
        tmp_path / "progress.jsonl",
        [progress.Entry(kind="sliders", lesson="03", item="sliders:03", data={"values": {"rows": 80}, "base": own})],
    )
    assert notebook(tmp_path, monkeypatch, 40, "print(rows, widget.state['message'])", watched=False) == "40"
    assert notebook(tmp_path, monkeypatch, 40, "print(rows)", watched=True) == "80"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"values": None, "base": {"rows": 40}},
        {"values": {"rows": "80"}, "base": {"rows": 40}},
        {"values": {"rows": 10**9}, "base": {"rows": 40}},
        {"values": {"rows": 80}, "base": [40]},
        {"values": {"other": 80}, "base": {"rows": 40}},
    ],
)
def test_an_entry_that_can_not_be_used_is_passed_over(names: dict[str, Any], data: dict[str, Any]) -> None:
    """A file that was edited, or comes of other ranges, changes no number."""
    progress.record("sliders", "03", "sliders:03", **data)
    assert sliders("03", rows=(8, 200))._left() is None
