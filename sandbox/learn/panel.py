"""Where the learner is: at the top of each lesson, in lesson 00 for the whole course, and at a lesson's end.

A panel is HTML in a notebook and the same words as text everywhere else. It has no colours of its own, so it is readable
in every theme, and says everything in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from urllib.parse import quote

from sandbox.learn import content, points, progress, reviews
from sandbox.learn.catalog import Course, Lesson
from sandbox.learn.points import Overview, Standing, count

NOT_RECORDED = "Nothing is recorded here, so this shows the course, and not what you have done."
KEEPING = (
    ("course progress export FILE", "write a copy, to keep or to take to another machine"),
    ("course progress import FILE", "add what a copy holds and this file does not"),
    ("course progress wipe", "remove it for good, after asking"),
)
COLUMNS = ("Lesson", "State", "Practice right", "Exercises passed", "Hints opened", "Minutes")
RULE_COLUMNS = ("Points for", "Worth", "Times so far")
LONGEST_LIST = 10  # open jobs that an error names


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What a cell shows: HTML, and its twin in plain text."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return self.html

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def look(path: Path | None = None, *, course: Course | None = None, now: datetime | None = None) -> Overview:
    """What the file at `path` amounts to (without one, the file of this kernel), on the machine's own clock and days."""
    course = course or Course.load()
    now = now or datetime.now().astimezone()
    entries = progress.entries(path)
    cards = (course.root / content.FOLDER / content.GLOSSARY).exists()
    return points.overview(
        course,
        lambda lesson: content.items(lesson.number, course.root),
        entries,
        reviews.due(now, course.root, entries=entries) if cards else [],
        now,
    )


def here(number: str) -> Panel:
    """Where lesson `number` stands in the course, and you in it; notes that it was opened. Raises BadSetting."""
    course = Course.load()
    lesson = course.find(str(number))
    progress.record("opened", lesson.number)
    recorded = progress.place() is not None
    seen = look(course=course)
    place = course.lessons.index(lesson)
    head = f"Lesson {lesson.number}, {lesson.title}: {place + 1} of {len(course.lessons)} in the course."
    lines, rows = [], []
    for one in seen.standings:
        words = one.words if recorded else ""
        words = ", ".join(filter(None, ["you are here" if one.lesson is lesson else "", words]))
        mark = "▸" if one.lesson is lesson else "✓" if recorded and one.finished else "·"
        lines.append(f"  {mark} {one.lesson.number} {one.lesson.title}{f' ({words})' if words else ''}")
        now_here = ' aria-current="page"' if one.lesson is lesson else ""
        name = escape(f"{one.lesson.number} {one.lesson.title}")
        name = f"<strong>{name}</strong>" if one.lesson is lesson else _link(one.lesson, name)
        rows.append(f'<li{now_here}><span aria-hidden="true">{mark}</span> {name}{f" ({words})" if words else ""}</li>')
    about = _about(seen, seen.standings[place]) if recorded else NOT_RECORDED
    return Panel(
        html=(
            '<nav class="ae-panel" aria-label="Where you are in the course">'
            f"<p><strong>{escape(head)}</strong></p>"
            '<ol role="list" style="list-style:none;padding:0;margin:0 0 0.5em 0;display:flex;flex-wrap:wrap;gap:0 1.5em">'
            f"{''.join(rows)}</ol><p>{escape(about)}</p></nav>"
        ),
        text="\n".join([head, "", *lines, "", about]),
    )


def _about(seen: Overview, one: Standing) -> str:
    spent = f"{_minutes(one.minutes)} so far; about {one.lesson.minutes} are planned"
    cards = f"{count(len(seen.due), 'card')} to review" if seen.due else "No card to review"
    practice = f"Practice: {one.right} of {one.items} right." if one.items else "No practice."
    exercises = f"Exercises: {one.passed} of {one.exercises} passed." if one.exercises else "No exercise."
    return f"{practice} {exercises} {cards}. {spent}."


def my_progress() -> Panel:
    """All of it: points and their rule, streak, reviews, each lesson, what is next, and the file it is kept in."""
    file = progress.place()
    seen = look()
    doing, lesson = seen.next
    done, total = sum(one.finished for one in seen.standings), len(seen.standings)
    if file is None:
        summary, next_html = [NOT_RECORDED], ""
        columns: tuple[str, ...] = ("Lesson", "Practice items", "Exercises", "Minutes planned")
        rows = [[str(one.items), str(one.exercises), str(one.lesson.minutes)] for one in seen.standings]
    else:
        streak = (
            f"{count(seen.streak, 'day')} in a row." if seen.streak else "No streak yet: it begins with what you do."
        )
        finished = f"{done} of {count(total, 'lesson')} finished."
        summary = [f"{count(seen.xp, 'point')}.", streak, due_text(seen), finished, f"Next: {doing}."]
        next_html = _link(lesson, escape(doing)) if lesson else escape(doing)
        columns, rows = COLUMNS, [cells(one) for one in seen.standings]
    names = [f"{one.lesson.number} {one.lesson.title}" for one in seen.standings]
    rule = [[rule.what, count(rule.points, "point"), str(times)] for rule, times in seen.earned]
    text = [
        "Your progress",
        "",
        *(f"  {line}" for line in summary),
        "",
        *_columns([list(columns), *([name, *row] for name, row in zip(names, rows, strict=True))]),
        "",
        *_columns([list(RULE_COLUMNS), *rule]),
        "",
        points.FREE,
        points.MINUTES_RULE,
        *([_kept(file), "In a terminal:", *(f"  {command}: {what}" for command, what in KEEPING)] if file else []),
    ]
    bar = f'<progress max="{total}" value="{done}" aria-label="Lessons finished">{done} of {total}</progress>'
    linked = [_link(one.lesson, escape(name)) for one, name in zip(seen.standings, names, strict=True)]
    commands = "".join(f"<li><code>{escape(command)}</code>: {escape(what)}</li>" for command, what in KEEPING)
    html = [
        f'<section class="ae-panel" aria-label="Your progress"><h3>Your progress</h3><p>{escape(" ".join(summary[:3]))}</p>',
        f"<p>{bar} {done} of {count(total, 'lesson')} finished. Next: {next_html}.</p>" if file else "",
        _table("Your lessons" if file else "The lessons", columns, zip(linked, rows, strict=True)),
        _table("How points are made", RULE_COLUMNS, [(escape(what), row) for what, *row in rule]),
        f"<p>{escape(points.FREE)} {escape(points.MINUTES_RULE)}</p>",
        f"<p>{escape(_kept(file))} In a terminal:</p><ul>{commands}</ul>" if file else "",
        "</section>",
    ]
    return Panel(html="".join(html), text="\n".join(text))


def _kept(file: Path) -> str:
    named = "" if file == progress.home() else f" {progress.ENV} names it: set it in the terminal as well."
    return f"All this is kept in {file}, on this machine; nobody else reads it.{named}"


def end_of_lesson(number: str) -> Panel:
    """Look whether every job of the lesson has ended, and note that you have finished it.

    Raises AssertionError that names the open jobs, or says that no job ran; NoLabOpen; BadSetting.
    """
    from sandbox.services.lab import Lab

    course = Course.load()
    lesson = course.find(str(number))
    jobs = Lab.current().jobs
    counts = jobs.counts()
    if not sum(counts.values()):
        raise AssertionError("no job ran in this lesson: run its cells from the top, and then this one.")
    open_jobs = [row for row in jobs.all() if not row.terminal]
    if open_jobs:
        names = [f"{row.id[:8]} ({row.task}, {row.state})" for row in open_jobs[:LONGEST_LIST]]
        more = len(open_jobs) - len(names)
        raise AssertionError(
            f"{len(open_jobs)} of {count(sum(counts.values()), 'job')} not at an end: {', '.join(names)}"
            f"{f', and {more} more' if more else ''}. Wait for them, or end them, and run this cell again."
        )
    before = points.xp(progress.entries())
    kept = progress.record("finished", lesson.number)
    ended = ", ".join(f"{amount} {state}" for state, amount in counts.items())
    lines = [f"Lesson {lesson.number} is finished: {count(sum(counts.values()), 'job')}, all at an end ({ended})."]
    seen = look(course=course)
    place = course.lessons.index(lesson)
    one = seen.standings[place]
    if kept is None:
        lines.append("Nothing is recorded here, so there are no points.")
    else:
        gained = seen.xp - before
        mine = points.xp(entry for entry in progress.entries() if entry.lesson == lesson.number)
        why = f"{count(gained, 'point')} for finishing it" if gained else "No new points, as you had finished it before"
        lines.append(f"{why}; {mine} from this lesson, {seen.xp} in all.")
        lines.append(_about(seen, one))
    links: list[tuple[str, str, str]] = []  # what, name, address
    # What a person reads is never known to be done.
    if lesson.exercises and (one.passed < one.exercises or not one.exercises):
        links.append(("Next", "the exercise of this lesson", f"../exercises/{lesson.name}/{lesson.name}.ipynb"))
    if place + 1 < len(course.lessons):
        after = course.lessons[place + 1]
        links.append(("Then" if links else "Next", f"{after.number} {after.title}", f"{after.name}.ipynb"))
    last = "" if links else "This was the last lesson."
    text = [*lines, *(f"{what}: {name}, {address}" for what, name, address in links), *filter(None, [last])]
    addresses = [f'{what}: <a href="{quote(address)}">{escape(name)}</a>.' for what, name, address in links]
    body = "".join(f"<p>{line}</p>" for line in [*map(escape, lines), *addresses, *filter(None, [last])])
    return Panel(
        html=f'<section class="ae-panel" aria-label="The end of the lesson">{body}</section>', text="\n".join(text)
    )


def cells(one: Standing) -> list[str]:
    """A lesson's row of numbers, as COLUMNS names them, without its name."""
    practice = f"{one.right} of {one.items}" if one.items else "none"
    exercises = f"{one.passed} of {one.exercises}" if one.exercises else "none"
    return [one.words, practice, exercises, str(one.hints), f"{one.minutes:.0f} of about {one.lesson.minutes}"]


def due_text(seen: Overview) -> str:
    """What is due for review, in a sentence; the first LONGEST_LIST terms by name."""
    if not seen.due:
        return "No card is due for review."
    names = ", ".join(term.name for term in seen.due[:LONGEST_LIST])
    more = len(seen.due) - LONGEST_LIST
    return f"{count(len(seen.due), 'card')} to review: {names}{f', and {more} more' if more > 0 else ''}."


def _minutes(spent: float) -> str:
    return f"{count(round(spent), 'minute')}" if spent >= 0.5 else "Less than a minute"


def _link(lesson: Lesson, html: str) -> str:
    return f'<a href="{quote(lesson.name)}.ipynb">{html}</a>'


def _table(caption: str, columns: Iterable[str], rows: Iterable[tuple[str, list[str]]]) -> str:
    """Each row is the HTML of its name, and the texts of its cells."""
    left = 'style="text-align:left"'  # JupyterLab puts cells to the right
    heads = "".join(f'<th scope="col" {left}>{escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row" {left}>{name}</th>{"".join(f"<td {left}>{escape(text)}</td>" for text in texts)}</tr>'
        for name, texts in rows
    )
    head = f"<caption {left}>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
