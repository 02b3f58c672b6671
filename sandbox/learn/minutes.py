"""How long a lesson takes, by a stated rule, so that the minutes in course.toml are no guess.

A lesson's time is the sum of

- its prose at 200 words a minute, the pace of technical reading;
- its code at 6 seconds a line that is not blank, tests and comments included: read, run, and looked at;
- what there is to practise: 45 s for a question with options, 90 s for a gap, 120 s for lines to put in order;
- its cards, the terms that it introduces, at 15 s each;
- the run of the notebook, where it was measured.

It is rounded to 5 minutes. Exercise, homework and hover texts are not in it. A lesson's cells run for seconds, which is less
than the rounding, so the rule can be held by a test that measures nothing. What a learner's own hour was made of
is another matter: ``course progress`` takes the minutes they really needed from their own entries.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass

from sandbox.errors import BadNotebook
from sandbox.learn import content, notebooks
from sandbox.learn.catalog import FILE, Lesson

WORDS_A_MINUTE = 200
CODE_LINE_SECONDS = 6
ITEM_SECONDS = {"predict": 45, "choose": 45, "gap": 90, "parsons": 120}
CARD_SECONDS = 15
STEP = 5  # minutes

_FENCED = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)(?:^\1[`~]*[ ]*$|\Z)", re.DOTALL | re.MULTILINE)
# The target of a link with its title, a bare address, an HTML tag: nobody reads those.
_NOT_READ = re.compile(r"""\]\([^()\s]*(?:\s+"(?:\\.|[^"\\])*")?\s*\)|<[^<>\n]+>|https?://\S+""", re.DOTALL)
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a lesson's minutes are made of."""

    words: int
    code_lines: int
    item_seconds: int
    items: int
    cards: int
    run_seconds: float = 0.0  # of the notebook under papermill; 0 where it was not measured

    @property
    def parts(self) -> dict[str, float]:
        """Seconds by part."""
        return {
            "prose": self.words * 60 / WORDS_A_MINUTE,
            "code": float(self.code_lines * CODE_LINE_SECONDS),
            "practice": float(self.item_seconds),
            "cards": float(self.cards * CARD_SECONDS),
            "run": self.run_seconds,
        }

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())

    @property
    def minutes(self) -> int:
        """Rounded to 5, half of it up; never less than 5."""
        return max(STEP, STEP * math.floor(self.seconds / 60 / STEP + 0.5))


def estimate(lesson: Lesson, *, run_seconds: float = 0.0) -> Estimate:
    """The minutes of `lesson` by the rule. Raises BadNotebook for a lesson or practice file that can not be read."""
    words = code_lines = 0
    for cell in notebooks.read(lesson.lesson_path).cells:
        if cell.cell_type == "code":
            code_lines += _lines(cell.source)
        elif cell.cell_type == "markdown":
            code_lines += sum(_lines(block[1]) for block in _FENCED.findall(cell.source))
            words += len(_WORD.findall(_NOT_READ.sub(" ", _FENCED.sub(" ", cell.source))))
    items = content.items(lesson.number, lesson.root)
    has_glossary = (lesson.root / content.FOLDER / content.GLOSSARY).exists()
    cards = [term for term in content.terms(lesson.root) if term.lesson == lesson.number] if has_glossary else []
    return Estimate(
        words=words,
        code_lines=code_lines,
        item_seconds=sum(ITEM_SECONDS[item.kind] for item in items),
        items=len(items),
        cards=len(cards),
        run_seconds=run_seconds,
    )


def in_course_file(text: str, lesson: Lesson, minutes: int) -> str:
    """The text of course.toml with another number of minutes for `lesson`; every other character stays.

    Raises BadNotebook where the line can not be found for certain.
    """
    lines, inside, numbered = text.splitlines(keepends=True), False, False
    place = None
    for at, line in enumerate(lines):
        if re.match(r"\s*\[", line):
            inside = re.match(r"\s*\[\[\s*lesson\s*\]\]", line) is not None
            if inside and numbered:
                break
            if inside:
                place = None
        elif inside and re.match(rf"\s*number\s*=\s*[\"']{lesson.number}[\"']", line):
            numbered = True
        elif inside and re.match(r"\s*minutes\s*=", line):
            place = at
    if numbered and place is not None:
        lines[place] = re.sub(r"(=\s*)[+\d_]+", rf"\g<1>{minutes}", lines[place], count=1)
        changed = "".join(lines)
        if _apart_from_minutes(changed, lesson.number, minutes) == _apart_from_minutes(text, lesson.number, minutes):
            return changed
    raise BadNotebook(
        f"{FILE}: the line `minutes = ...` of lesson {lesson.number} was not found: write {minutes} there."
    )


def in_readme(text: str, lesson: Lesson, minutes: int) -> str:
    """The README with another number at the end of the lesson's row in its table; as it was where there is no row."""
    row = re.compile(
        rf"^(\|[^\n]*\(lessons/{re.escape(lesson.name)}\.ipynb\)[^\n]*\|\s*)\d+(\s*\|[ \t]*)$", re.MULTILINE
    )
    return row.sub(rf"\g<1>{minutes}\g<2>", text, count=1)


def _apart_from_minutes(text: str, number: str, minutes: int) -> object:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    for table in data["lesson"]:
        if table["number"] == number:
            table["minutes"] = minutes
    return data


def _lines(code: str) -> int:
    return sum(1 for line in code.splitlines() if line.strip())
