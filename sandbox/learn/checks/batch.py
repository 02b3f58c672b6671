"""Judges a batch loop: what does it do with bad rows, and what when the soft limit lands at a given place?"""

from __future__ import annotations

import re
from typing import Any

from sandbox.grade import Outcome, Submission, run_cases
from sandbox.jobs import State
from sandbox.learn.checks.books import COUNTED, PLACES, Batch, Books
from sandbox.learn.checks.clauses import around, catching
from sandbox.learn.checks.wording import SLIPS, SPINNER, in_longer, said_at, said_end, said_error, said_rows
from sandbox.learn.verdict import NotAttempted, NotYet


def judge(books: Books, outcome: Outcome, source: str = "") -> None:
    """Raise NotYet for the first thing that is wrong in one case, NotAttempted for an empty function.

    `source` is the learner's file: a message names the `except` clauses in it.
    """
    case, row = books.case, books.row
    if outcome.type == "NotImplementedError":
        raise NotAttempted
    if outcome.kind == "no end":
        raise NotYet(
            "Your function did not come to an end, and its process was killed.",
            seen="A worker process that is lost to every other job until the hard limit.",
            why="Look for a loop whose end depends on something that no longer happens.",
            mistake="the function did not come to an end",
            hints=False,
        )
    if outcome.kind == "died":
        raise NotYet(
            f"The process your function ran in ended in the middle of it{': ' + outcome.message if outcome.message else '.'}",
            seen=f"The job's row says {said_end(row)}, and nothing in it tells of a process that is gone.",
            why="A task leaves by returning or by raising; os._exit and sys.exit end the worker process with it.",
            mistake="the process ended in the middle of the function",
            hints=False,
        )
    if case.limit is None:
        _judge_quiet(books, outcome)
    elif books.landed is None:
        _judge_missed(books, outcome)
    else:
        _judge_limit(books, outcome, books.landed, source)


def _judge_missed(books: Books, outcome: Outcome) -> None:
    place = PLACES[books.case.limit or ""].format(at=books.case.at)
    if outcome.kind == "error":
        raise NotYet(
            f"The soft limit was to land {place}. Before that your function raised {said_error(outcome)}, "
            f"{said_at(outcome.where)}.",
            seen=f"The job's row says {said_end(books.row)}.",
            why="No soft limit had a part in it: look at that line first.",
            mistake=f"it raised {outcome.type} before the limit landed",
            hints=False,
        )
    raise NotYet(
        f"The soft limit was to land {place}, and your function never came there.",
        seen=f"The job's row says {said_end(books.row)}.",
        why="Every row of the file has to be saved or recorded as failed, one after the other, and then the job completed.",
        mistake="the function never came to the place where the limit lands",
    )


def _judge_error(books: Books, outcome: Outcome) -> None:
    case, row = books.case, books.row
    one, at = said_error(outcome), said_at(outcome.where)
    count = f"{len(books.saved) or 'None'} of the {case.rows} orders {'is' if len(books.saved) < 2 else 'are'} in"
    last = books.tried[-1] if books.tried else None
    if last in case.bad and outcome.type == "ValueError":
        raise NotYet(
            f"The first bad row ended the whole file: {one} came out {at}.",
            seen=f"{count}, and the file stops at the same row whenever it is tried again.",
            why="A bad row means go on: catch its error inside the loop and record it with job.item_failed.",
            mistake="a bad row ended the whole file",
        )
    if last in case.bad:
        raise NotYet(
            f"Your function raised {one}, {at}. The last row it had tried to save was row {last}{COUNTED}, a bad one.",
            seen=f"{count}, and the job's row says {said_end(row)}.",
            why="It is another error than the bad row's own: look at the lines that run once a row's saving has failed.",
            mistake=f"it raised {outcome.type} after a bad row",
            hints=outcome.type not in SLIPS,
        )
    raise NotYet(
        f"Your function raised {one}, {at}.",
        seen=f"{count}, and the job's row says {said_end(row)}.",
        why="No soft limit and no bad row had a part in it: the error is in the code itself.",
        mistake=f"it raised {outcome.type}, without a limit or a bad row as the reason",
        hints=False,
    )


def _judge_quiet(books: Books, outcome: Outcome) -> None:
    case, row = books.case, books.row
    if outcome.kind == "error":
        _judge_error(books, outcome)
    good = [i for i in range(case.rows) if i not in case.bad]
    if books.saved != good:
        missing = [i for i in good if i not in books.saved]
        twice = sorted({i for i in books.saved if books.saved.count(i) > 1})
        what = (
            f"saved {said_rows(twice, COUNTED)} more than once"
            if twice
            else f"never saved {said_rows(missing, COUNTED)}"
        )
        if not twice and not missing:
            what = "saved the rows in another order than the file's"
        raise NotYet(
            f"Your function {what}.",
            seen="Orders that are there twice."
            if twice
            else "Orders that are missing."
            if missing
            else "Orders in an order that nobody can follow in the file.",
            why="Call save_order(job, row) once for each row, in the order of the file, also after a bad one.",
            mistake="not every good row was saved once, in the order of the file",
            hints=not twice,
        )
    blamed = [index for index, _, _ in books.failed]
    if blamed != list(case.bad):
        good_one = next((index for index in blamed if index not in case.bad), None)
        reason = "" if good_one is None else f", row {good_one} because of `{books.reasons[good_one].rstrip('.')}`"
        were = (
            f"The file's bad rows were {said_rows(list(case.bad), COUNTED)}" if case.bad else "The file had no bad row"
        )
        raise NotYet(
            f"{were}; your function recorded {said_rows(blamed, '' if case.bad else COUNTED)} as failed{reason}.",
            seen="A report that names the wrong rows."
            if blamed
            else "A report that names no row, and orders that are missing.",
            why="Call job.item_failed(i, error) once for each row whose saving raised, and for no other.",
            mistake="the rows recorded as failed are not the bad ones",
        )
    if books.done != good:
        raise NotYet(
            f"{len(good)} rows were saved, and job.item_done was called for {said_rows(books.done, COUNTED if books.done else '')}.",
            seen="A progress bar that does not say how far the import is.",
            why="Call job.item_done(i) once for each row that was saved, right after it was.",
            mistake="job.item_done was not called once for each row that was saved",
        )
    if row.state != State.COMPLETED:
        what = (
            f"says {said_end(row)}, written {said_at(books.ended)}"
            if row.terminal
            else "was left open: it still says running"
        )
        raise NotYet(
            f"Every row of the file was dealt with, and the job's row {what}.",
            seen=SPINNER if not row.terminal else f"An import that did all its work and is shown as {row.state}.",
            why="Call job.complete() once, after the loop.",
            mistake=f"every row was dealt with, and the job's row ended as {row.state}"
            if row.terminal
            else "every row was dealt with, and the job's row was left open",
            hints=False,
        )


def _judge_limit(books: Books, outcome: Outcome, landed: dict[str, Any], source: str) -> None:
    case, row = books.case, books.row
    place = PLACES[case.limit or ""].format(at=case.at)
    counted = "" if COUNTED in place else COUNTED
    where = f"The soft limit landed {place}, {said_at(landed)}"
    clause = catching(source, landed)
    caught = f"Your code caught it at {clause}, and" if clause else "Your function"
    blamed = [(index, at) for index, soft, at in books.failed if soft]
    if blamed:
        index, at = blamed[0]
        clause = around(source, at)
        after = f", and went on with {said_rows(books.saved_after)}" if books.saved_after else ""
        raise NotYet(
            f"{where}. Your code caught it {f'at {clause}' if clause else said_at(at)}, "
            f"blamed row {index}{counted} for it{after}.",
            seen=f"Row {index} of the file is reported as bad and is not. {in_longer(books)}",
            why="SoftTimeLimitExceeded is an Exception, so `except Exception` takes it. It comes once: a bad row means "
            "go on, a deadline means leave.",
            mistake="the limit was taken for an error of a row, which was blamed for it",
        )
    if books.saved_after:
        raise NotYet(
            f"{where}. {caught} went on with {said_rows(books.saved_after, counted)}.",
            seen=in_longer(books),
            why="The signal comes once. Whoever catches it has to stop the work, or nobody will before the hard limit.",
            mistake="the work went on after the limit",
        )
    if books.done != books.saved:
        raise NotYet(
            f"{where}. By then your function had saved {said_rows(books.saved, counted)} and counted {said_rows(books.done)} as done.",
            seen="A text that says how far the import got, with a number that is not true.",
            why="Save each row once, and call job.item_done(i) right after each row that was saved.",
            mistake="when the limit landed, saved rows and rows counted as done were not the same",
        )
    recorded = [index for index, _, _ in books.failed]
    tried = [index for index in case.bad if index in books.tried]
    if recorded != tried:
        raise NotYet(
            f"{where}. Of the rows until then {said_rows(tried, counted)} {'was' if len(tried) < 2 else 'were'} bad; your "
            f"function recorded {said_rows(recorded, '' if tried else counted)} as failed.",
            seen="A report that names the wrong rows, or none.",
            why="Call job.item_failed(i, error) once for each row whose saving raised, and for no other.",
            mistake="when the limit landed, the rows recorded as failed were not the bad ones so far",
        )
    expected = State.COMPLETED if case.limit == "completed" else State.TIMED_OUT
    if not row.terminal and outcome.kind == "error" and not outcome.soft:
        raise NotYet(
            f"{where}. Your code then raised {said_error(outcome)}, {said_at(outcome.where)}, and the job's row was left open.",
            seen=SPINNER,
            why="The error is in the lines that run when the limit has landed: write the terminal state there, and then a bare "
            "`raise`."
            if outcome.type in SLIPS
            else "Another error came in the way of the end. Write the terminal state first, and then a bare `raise`.",
            mistake=f"at the limit it raised {outcome.type}, and the job's row was left open",
            hints=outcome.type not in SLIPS,
        )
    if not row.terminal and outcome.kind == "value":
        raise NotYet(
            f"{where}. {caught} returned; the job's row was left open: it still says running.",
            seen=SPINNER,
            why="Whoever catches the signal has to write the end: job.time_out(...), and then a bare `raise`.",
            mistake="the function returned at the limit, and the job's row was left open",
        )
    if not row.terminal:
        raise NotYet(
            f"{where}. It left your function, and the job's row was left open: it still says running.",
            seen=SPINNER,
            why="No handler that writes the end stands around this line. Put one `try` around the whole of the work, with "
            "job.time_out(...) and `raise` in its `except SoftTimeLimitExceeded`.",
            mistake="the limit left the function, and the job's row was left open",
        )
    clause = around(source, books.ended) if books.ended_after else ""
    taken = f"Your code caught it at {clause}. " if clause else ""
    written = f"written {said_at(books.ended)}"
    if row.state != expected:
        cut = expected == State.TIMED_OUT
        raise NotYet(
            f"{where}. {taken}The job's row ended as {said_end(row)}, {written}.",
            seen=f"An import that {'was cut off' if cut else 'did all its work'} is shown as {row.state}.",
            why=f"A budget that ran out is an outcome of its own: the state is {expected}."
            if cut
            else "All rows were dealt with before the limit landed, and an end that was written is not changed any more.",
            mistake=f"the limit landed, and the job's row ended as {row.state}",
        )
    if expected == State.TIMED_OUT and not re.search(rf"\b{len(books.done)} of {case.rows}\b", row.why or ""):
        says = said_end(row) if row.why else "timed_out, without a reason"
        raise NotYet(
            f"{where}. The job's row ended as {says}, {written}.",
            seen="Somebody who has to guess how much of the file is in, and what to do about it.",
            why=f"Say how far it got: 'aborted after {len(books.done)} of {case.rows} rows: split the file and try again'.",
            mistake="the reason in the job's row does not say how many rows of how many are done",
        )
    if outcome.kind == "value":
        raise NotYet(
            f"{where}. {taken}Your function wrote the end of the job's row {said_at(books.ended)}, and then returned as "
            "if nothing had happened.",
            seen="The job's row is right. Celery counts the task as a success, and so does every dashboard built on it.",
            why="Write the terminal state, then let the signal go on with a bare `raise`.",
            mistake="the end was written, and the signal did not go on to Celery",
        )
    if not outcome.soft:
        raise NotYet(
            f"{where}. What left your function was {said_error(outcome)}, {said_at(outcome.where)}.",
            seen="A log full of an error that is not what happened.",
            why="Re-raise the signal as it is, with a bare `raise`; wrapped into another error nobody knows it.",
            mistake=f"the end was written, and the signal left the function as {outcome.type}",
            hints=outcome.type not in SLIPS,
        )


def run_batches(function: Any, cases: list[Batch]) -> list[NotYet | NotAttempted | None]:
    """Judge `function` in every case; None where it is right."""
    submission = Submission.of(function)
    books = [Books(case) for case in cases]
    outcomes = run_cases(submission, [b.order() for b in books], [b.answer for b in books])
    results: list[NotYet | NotAttempted | None] = []
    for book, outcome in zip(books, outcomes, strict=True):
        try:
            judge(book, outcome, submission.files[submission.module])
            results.append(None)
        except (NotYet, NotAttempted) as found:
            results.append(found)
    return results
