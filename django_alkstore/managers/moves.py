"""
The moves between tables: a row is deleted, and what came back is inserted elsewhere.

Delete first: it takes the row's lock, so that a second settler finds nothing to move.
Both statements stand in one savepoint, so that whichever fails, the row is in exactly
one table. Columns pass through as the driver gave them: nothing is decoded in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django_alkstore import sql
from django_alkstore.jobs import ClaimedJob, Failure, Notes
from django_alkstore.managers.base import (
    Row,
    columns,
    execute,
    execute_each,
    ids_parameter,
)

KEPT_ATTEMPTS = 20

LAPSED = Failure.said(
    "the claim lapsed: its worker gave no sign of life",
    "django_alkstore.exceptions.ClaimLost",
)


def bury(alias: str, rows: Iterable[Row], *, reason: str, error: str) -> None:
    """Insert rows of job columns, just deleted from the live table, as dead jobs."""
    execute_each(
        alias,
        sql.statements_for(alias).bury,
        [{**columns(row), "reason": reason, "last_error": error} for row in rows],
    )


def save_results(alias: str, rows: Iterable[tuple[Row, str]]) -> None:
    """Insert rows of job columns, just deleted, with the JSON text of their results."""
    execute_each(
        alias,
        sql.statements_for(alias).save_result,
        [{**columns(row), "value": value} for row, value in rows],
    )


def note(
    job: ClaimedJob, notes: Notes | None, failure: Failure | None
) -> dict[str, Any]:
    """Return the parameters of ``note_attempt``. Without a failure it still runs."""
    return {
        "job_id": job.id,
        "attempt": job.attempts,
        "worker_id": job.worker_id,
        "started_at": job.claimed_at_us,
        "ended": 0 if failure is None else 1,
        "exception_class": failure.exception_class if failure else "",
        "message": failure.message if failure else "",
        "traceback": failure.traceback if failure else "",
        "progress": notes.progress if notes else None,
        "log": notes.log if notes else "",
    }


def note_attempts(alias: str, notes: Sequence[dict[str, Any]]) -> None:
    """Write attempts, and keep no more than the last 20 of each job."""
    statements = sql.statements_for(alias)
    execute_each(alias, statements.note_attempt, notes)
    for each in notes:
        attempt = each["attempt"]
        # SQLite keeps whatever type a raw UPDATE wrote into a column.
        if isinstance(attempt, int) and attempt > KEPT_ATTEMPTS:
            last = {"job_id": each["job_id"], "attempt": attempt - KEPT_ATTEMPTS}
            execute(alias, statements.trim_attempts, last)


def note_lapsed(alias: str, lapsed: Iterable[tuple[int, int, str, int]]) -> None:
    """Write the attempts (job id, attempt, worker, start) whose claims have lapsed."""
    note_attempts(
        alias,
        [
            {
                "job_id": job_id,
                "attempt": attempt,
                "worker_id": worker_id,
                "started_at": started_at,
                "ended": 1,
                "exception_class": LAPSED.exception_class,
                "message": LAPSED.message,
                "traceback": "",
                "progress": None,
                "log": "",
            }
            for job_id, attempt, worker_id, started_at in lapsed
        ],
    )


def forget_attempts(alias: str, ids: Iterable[int]) -> None:
    """Delete the attempts of jobs whose row is gone for good."""
    parameters = {"ids": ids_parameter(ids)}
    execute(alias, sql.statements_for(alias).forget_attempts, parameters)


def end_attempts(alias: str, jobs: Iterable[ClaimedJob]) -> None:
    """Set the end of attempts that left notes and then succeeded."""
    parameters = {"claims": claims_parameter(jobs)}
    execute(alias, sql.statements_for(alias).end_attempts, parameters)


def claims_parameter(jobs: Iterable[ClaimedJob]) -> str:
    """Return the JSON list of receipts that a settling statement is fenced by."""
    return json.dumps([[job.id, job.attempts] for job in jobs])
