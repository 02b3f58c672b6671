"""Whether a message to the people who waited has its parts. It looks for words; a person reads what they say."""

from __future__ import annotations

import re
from typing import Any

from sandbox.learn.verdict import NotAttempted, NotYet

FEWEST_WORDS = 60  # five lines, about
# Where the line for colleagues begins.
COLLEAGUES = re.compile(r"^\W*(a line |note )?(to|for)?\s*(my|our|the|your)?\s*(colleagues?|team)\b.*", re.I | re.M)
JARGON = (
    r"SoftTimeLimitExceeded|TimeLimitExceeded|SIG(?:KILL|TERM|USR1|INT)|kill -9|exceptions?|tracebacks?|stack traces?|"
    r"celery|redis|postgres(?:ql)?|workers?|brokers?|soft (?:time )?limits?|hard (?:time )?limits?|compare-and-set|"
    r"terminal state|try/except|null"
)
BLAME = (
    r"your (?:file|data|upload|import) (?:was|is|were|are) (?:too \w+|invalid|broken|corrupt\w*|wrong|bad|at fault)|"
    r"your (?:mistake|fault|error)|you (?:uploaded|sent|made|used|chose) (?:a |an |the |too )?\w+|"
    r"you (?:should|must) (?:not have|have)"
)
NOT_BLAME = r"(?:not|nor|n't)\s+$"
HOW_FAR = r"\b\d+ of \d+\b|number of rows|how many rows|how far|rows? up to|\b\d+ rows\b|first \d+|import page"
OURS = (
    r"\bwe (?:failed|stopped|cut|did not|didn't|ended|lost|should)|our (?:system|fault|mistake|side|import|service|"
    r"software|error|job|limit|servers?)|not your (?:file|fault|data)|no row was refused|its time was up|nothing (?:is|was) "
    r"wrong with your"
)
NEXT = r"\bplease\b|you can\b|\bsplit\b|upload|\banswer this|\breply\b|nothing (?:for you )?to do|need not do|do not have to|"
NEXT += r"don't (?:have|need) to|try (?:it )?again"
AGAIN = (
    r"from (?:today|now|this \w+|next \w+) on\b|from (?:today|now)\b|in future|in the future|next time|no longer|"
    r"will (?:say|tell|show|stop|end|get|see|be told|mail|send)|never again|not happen again|you(?:'ll| will) (?:get|see)"
)
OWN_LIMIT = r"\blimits?\b|deadline|time (?:they|it) (?:is|was|were|are) (?:given|allowed)|longer than"
WHY_ONLY = r"because|otherwise|may (?:still )?be|might (?:still )?be|could (?:still )?be|still (?:alive|running|writ|work)|compare"


def message(text: Any) -> None:
    """Raise NotYet for the first thing that is missing from the message, NotAttempted for none."""
    if not isinstance(text, str):
        raise NotYet(
            f"The check got a value of type {type(text).__name__}, and it reads a text.",
            why='Put your message between three quotation marks: message = """...""".',
        )
    if not text.strip():
        raise NotAttempted("Paste your message between the three quotation marks, run the cell, and read what it says.")
    words = len(text.split())
    if words < FEWEST_WORDS:
        raise NotYet(
            f"Your message has {words} words, which is too few for what it has to say.",
            seen="Customers who write back and ask, 97 times.",
            why="Five to ten lines: what happened to the file, what they have to do, how they see that it will not happen "
            "again; then one line for your colleagues.",
        )
    found = COLLEAGUES.search(text)
    if not found:
        raise NotYet(
            "There is no line for your colleagues in your message.",
            seen="Somebody who finishes the jobs by a script of their own, the healthy ones too.",
            why="Begin a line of its own with `For colleagues:` and say which jobs' rows a script may finish, and why only those.",
        )
    letter, note = text[: found.start()], text[found.start() :]
    if not letter.strip():
        raise NotYet(
            "Your message begins with the line for colleagues, and nothing in it is for the customers.",
            seen="97 customers who still look at a spinner.",
            why="Write to the customers first, then to your colleagues.",
        )
    _letter(letter)
    _note(note)


def _letter(text: str) -> None:
    if word := re.search(rf"\b(?:{JARGON})\b", text, re.I):
        raise NotYet(
            f"You say `{word[0]}` to the customers, {_line(text, word)}.",
            seen="A customer who does not know whether that is good or bad, and asks.",
            why="They know their file, its rows and the page they look at. Keep our words for the line for colleagues.",
        )
    for blame in re.finditer(rf"\b(?:{BLAME})\b", text, re.I):
        if not re.search(NOT_BLAME, text[: blame.start()], re.I):
            raise NotYet(
                f"`{blame[0]}` blames the customer, {_line(text, blame)}.",
                seen="A customer who looks for a mistake in a file that has none.",
                why="The time was up before the file was through, and nobody said so: both are ours.",
            )
    if not re.search(HOW_FAR, text, re.I):
        raise NotYet(
            "Nothing in your message says how far the file got, or where one can see that.",
            seen="A customer who uploads all of it once more, and has half of the orders twice.",
            why="Name the number of rows that are in, or the page that shows it.",
        )
    if not re.search(rf"\b(?:{OURS})\b", text, re.I):
        raise NotYet(
            "Nothing in your message says that it was our system that stopped, and not a row of their file.",
            seen="A customer who looks for the bad row.",
            why="One sentence is enough: who ended the import, and that no row was refused for what is in it.",
        )
    if not re.search(NEXT, text, re.I):
        raise NotYet(
            "Nothing in your message says what the customer has to do now.",
            seen="A customer who waits, or does everything again.",
            why="Say the next step, also if it is: nothing.",
        )
    if not re.search(AGAIN, text, re.I):
        raise NotYet(
            "Nothing in your message says how they can see that it will not happen again.",
            seen="A customer who does not trust the next import either.",
            why="A promise that can be checked: what they will see from now on when an import runs out of time.",
        )


def _note(text: str) -> None:
    if not re.search(OWN_LIMIT, text, re.I):
        raise NotYet(
            "The line for colleagues does not say which jobs' rows a script may finish.",
            seen="A script that finishes every job whose row says running.",
            why="A job is stuck when its own limit has passed; age alone says nothing.",
        )
    if not re.search(WHY_ONLY, text, re.I):
        raise NotYet(
            "The line for colleagues says which jobs' rows, and not why only those.",
            seen="A colleague who shortens the condition, since nobody knows what it is for.",
            why="Say what could still be alive before that, and what keeps a job that ends at this moment its own ending.",
        )


def _line(text: str, found: re.Match[str]) -> str:
    return f"in line {text[: found.start()].count(chr(10)) + 1 - (len(text) - len(text.lstrip(chr(10))))}"
