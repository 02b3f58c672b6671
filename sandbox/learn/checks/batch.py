"""Judges a batch loop: what does it do with bad rows, and what when the soft limit lands at a given place?"""

from __future__ import annotations

import re
from typing import Any

from sandbox.grade import Outcome, Submission, run_cases
from sandbox.jobs import State
from sandbox.learn.checks.books import PLACES, Batch, Books
from sandbox.learn.verdict import NotAttempted, NotYet

SPINNER = (
    "The row says running until the hard limit kills the process, and goes on saying so: a spinner that never stops."
)


def _at(where: dict[str, Any]) -> str:
    return f"at line {where['line']}, `{where['text']}`" if where.get("line") else "outside your file"


def _error(outcome: Outcome) -> str:
    return f"{outcome.type}: {outcome.message}".rstrip(": .")


def _rows(places: list[int]) -> str:
    if not places:
        return "no row"
    names = ", ".join(map(str, places[:4])) + (", …" if len(places) > 4 else "")
    return f"row {names}" if len(places) == 1 else f"rows {names}"


def judge(books: Books, outcome: Outcome) -> None:
    """Raise NotYet for the first thing that is wrong in one case, NotAttempted for an empty function."""
    case, row = books.case, books.row
    if outcome.type == "NotImplementedError":
        raise NotAttempted
    if outcome.kind == "no end":
        raise NotYet(
            "Your function did not come to an end, and its process was killed.",
            seen="A worker process that is lost to every other job until the hard limit.",
            why="Look for a loop whose end depends on something that no longer happens.",
            mistake="the function did not come to an end",
        )
    if outcome.kind == "died":
        raise NotYet(
            f"The process your function ran in ended in the middle of it{': ' + outcome.message if outcome.message else '.'}",
            seen="A job whose row still says running, and no error anywhere.",
            why="A task leaves by returning or by raising; os._exit and sys.exit end the worker process with it.",
            mistake="the process ended in the middle of the function",
        )
    if case.limit is None:
        _judge_quiet(books, outcome)
    elif books.landed is None:
        raise NotYet(
            f"The soft limit was to land {PLACES[case.limit].format(at=case.at)}, and your function never came there.",
            seen=f"The row says {row.state}.",
            why="Every row has to be saved or recorded as failed, one after the other, and then the job completed.",
            mistake="the function never came to the place where the limit lands",
        )
    else:
        _judge_limit(books, outcome, books.landed)


def _judge_quiet(books: Books, outcome: Outcome) -> None:
    case, row = books.case, books.row
    if outcome.kind == "error":
        one = _error(outcome)
        if outcome.type == "ValueError" and case.bad:
            raise NotYet(
                f"The first bad row ended the whole file: {one} came out {_at(outcome.where)}.",
                seen=f"{len(books.saved)} of {case.rows} orders are in, and the file stops at the same place every night.",
                why="A bad row means go on: catch its error inside the loop and record it with job.item_failed.",
                mistake="a bad row ended the whole file",
            )
        raise NotYet(
            f"Your function raised {one}, {_at(outcome.where)}.",
            seen=f"No import at all; the row says {row.state}.",
            why="No limit had landed in this run, and no bad row raises this: the error is in the code itself.",
            mistake=f"it raised {outcome.type}, without a limit or a bad row as the reason",
        )
    good = [i for i in range(case.rows) if i not in case.bad]
    if books.saved != good:
        missing = [i for i in good if i not in books.saved]
        twice = sorted({i for i in books.saved if books.saved.count(i) > 1})
        what = f"saved {_rows(twice)} more than once" if twice else f"never saved {_rows(missing)}"
        if not twice and not missing:
            what = "saved the rows in another order than the file's"
        raise NotYet(
            f"Your function {what}.",
            seen="Orders that are missing, or there twice.",
            why="Call save_order(job, row) once for each row, in the order of the file, also after a bad one.",
            mistake="not every good row was saved once, in the order of the file",
        )
    blamed = [index for index, _, _ in books.failed]
    if blamed != list(case.bad):
        good_one = next((index for index in blamed if index not in case.bad), None)
        reason = "" if good_one is None else f", row {good_one} because of {books.reasons[good_one]}".rstrip(".")
        raise NotYet(
            f"The bad rows were {list(case.bad)}; your function recorded {blamed} as failed{reason}.",
            seen="A report that names the wrong rows, or none.",
            why="Call job.item_failed(i, error) once for each row whose saving raised, and for no other.",
            mistake="the rows recorded as failed are not the bad ones",
        )
    if books.done != good:
        raise NotYet(
            f"{len(good)} rows were saved, and job.item_done was called for {books.done}.",
            seen="A progress bar that does not say how far the import is.",
            why="Call job.item_done(i) once for each row that was saved, right after it was.",
            mistake="job.item_done was not called once for each row that was saved",
        )
    if row.state != State.COMPLETED:
        what = f"says {row.state}" if row.terminal else "was left open: it still says running"
        raise NotYet(
            f"Every row was dealt with, and the job's row {what}.",
            seen=SPINNER if not row.terminal else f"An import that did all its work and is shown as {row.state}.",
            why="Call job.complete() once, after the loop.",
            mistake=f"every row was dealt with, and the row of the job ended as {row.state}"
            if row.terminal
            else "every row was dealt with, and the job was left open",
        )


def _judge_limit(books: Books, outcome: Outcome, landed: dict[str, Any]) -> None:
    case, row = books.case, books.row
    place = PLACES[case.limit or ""].format(at=case.at)
    where = f"The soft limit landed {place}, {_at(landed)}"
    blamed = [(index, at) for index, soft, at in books.failed if soft]
    if blamed:
        index, at = blamed[0]
        after = f", and went on with {_rows(books.saved_after)}" if books.saved_after else ""
        raise NotYet(
            f"{where}. Your code caught it {_at(at)}, blamed row {index} for it{after}.",
            seen=f"Row {index} is reported as bad and is not. {SPINNER}",
            why="SoftTimeLimitExceeded is an Exception, so `except Exception` takes it. It comes once: a bad row means "
            "go on, a deadline means leave.",
            mistake="the limit was taken for an error of a row, which was blamed for it",
        )
    if books.saved_after:
        raise NotYet(
            f"{where}. Your function went on with {_rows(books.saved_after)}.",
            seen=SPINNER,
            why="The signal comes once. Whoever catches it has to stop the work, or nobody will before the hard limit.",
            mistake="the work went on after the limit",
        )
    if books.done != books.saved:
        raise NotYet(
            f"{where}. By then your function had saved {_rows(books.saved)} and counted {_rows(books.done)} as done.",
            seen="A text that says how far the import got, with a number that is not true.",
            why="Save each row once, and call job.item_done(i) right after each row that was saved.",
            mistake="when the limit landed, saved rows and rows counted as done were not the same",
        )
    recorded = [index for index, _, _ in books.failed]
    tried = [index for index in case.bad if index in books.tried]
    if recorded != tried:
        raise NotYet(
            f"{where}. The bad rows until then were {tried}; your function recorded {recorded} as failed.",
            seen="A report that names the wrong rows, or none.",
            why="Call job.item_failed(i, error) once for each row whose saving raised, and for no other.",
            mistake="when the limit landed, the rows recorded as failed were not the bad ones so far",
        )
    expected = State.COMPLETED if case.limit == "completed" else State.TIMED_OUT
    if not row.terminal and outcome.kind == "error" and not outcome.soft:
        raise NotYet(
            f"{where}. Your code then raised {_error(outcome)}, {_at(outcome.where)}, and the job's row was left open.",
            seen=SPINNER,
            why="Another error came in the way of the end. Write the terminal state first, and then a bare `raise`.",
            mistake=f"at the limit it raised {outcome.type}, and the job was left open",
        )
    if not row.terminal:
        left = "Your function returned" if outcome.kind == "value" else "It left your function"
        raise NotYet(
            f"{where}. {left}, and the job's row was left open: it still says running.",
            seen=SPINNER,
            why="The handler that would write the end does not stand around this line. Put one `try` around the whole "
            "of the work, with job.time_out(...) and `raise` in its `except SoftTimeLimitExceeded`.",
            mistake="the limit left the function, and the job was left open"
            if outcome.kind == "error"
            else "the function returned at the limit, and the job was left open",
        )
    if row.state != expected:
        raise NotYet(
            f"{where}. The job's row ended as {row.state}{f' ({row.why})' if row.why else ''}.",
            seen=f"An import that was cut off is shown as {row.state}."
            if expected == State.TIMED_OUT
            else f"An import that did all its work is shown as {row.state}.",
            why=f"A budget that ran out is an outcome of its own: the state is {expected}."
            if expected == State.TIMED_OUT
            else "All rows were dealt with before the limit landed, and an end that was written is not changed any more.",
            mistake=f"the limit landed, and the job ended as {row.state}",
        )
    if expected == State.TIMED_OUT and not re.search(rf"\b{len(books.done)} of {case.rows}\b", row.why or ""):
        raise NotYet(
            f"{where}. The row ended as timed_out, because: {row.why or '(nothing)'}",
            seen="Somebody who has to guess how much of the file is in, and what to do about it.",
            why=f"Say how far it got: 'aborted after {len(books.done)} of {case.rows} rows: split the file and try again'.",
            mistake="the text of the timed-out row does not say how many rows of how many are done",
        )
    if outcome.kind == "value":
        raise NotYet(
            f"{where}. Your function wrote the end of the row and then returned as if nothing had happened.",
            seen="The row is right. Celery counts the task as a success, and so does every dashboard built on it.",
            why="Write the terminal state, then let the signal go on with a bare `raise`.",
            mistake="the end was written, and the signal did not go on to Celery",
        )
    if not outcome.soft:
        raise NotYet(
            f"{where}. What left your function was {_error(outcome)}.",
            seen="A log full of an error that is not what happened.",
            why="Re-raise the signal as it is, with a bare `raise`; wrapped into another error nobody knows it.",
            mistake=f"the end was written, and the signal left the function as {outcome.type}",
        )


def run_batches(function: Any, cases: list[Batch]) -> list[NotYet | NotAttempted | None]:
    """Judge `function` in every case; None where it is right."""
    submission = Submission.of(function)
    books = [Books(case) for case in cases]
    outcomes = run_cases(submission, [b.order() for b in books], [b.answer for b in books])
    results: list[NotYet | NotAttempted | None] = []
    for book, outcome in zip(books, outcomes, strict=True):
        try:
            judge(book, outcome)
            results.append(None)
        except (NotYet, NotAttempted) as found:
            results.append(found)
    return results
