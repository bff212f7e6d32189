"""Running jobs in the calling process, on its connection and in its transaction."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections
from django.db.models import Count

from django_alkstore import clock
from django_alkstore.testing.running import run_claimed, settle_claimed
from django_alkstore.worker.outcomes import Discarded, Failed, Invalid
from django_alkstore.worker.settle import Fate

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_alkstore.jobs import ClaimedJob, QueueSurvey
    from django_alkstore.managers.live_job import LiveJobManager

WORKER_ID = f"run_jobs-{socket.gethostname()}-{os.getpid()}"


@dataclass
class Report:
    """
    What ``run_jobs`` did, in attempts.

    ``ran`` is all of them. ``succeeded`` finished; ``failed`` raised, of which ``dead``
    will not be tried again. ``lost`` could not be settled: cancelled while they ran, or
    their claim lapsed. ``jobs`` are the claims in the order in which they ran,
    ``errors`` the exceptions of those that failed.
    """

    raise_errors: bool = False
    ran: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    lost: int = 0
    jobs: list[ClaimedJob] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)


def run_jobs(
    limit: int | None = None,
    *,
    until: datetime | timedelta | float | None = None,
    queue: str | None = None,
    using: str | None = None,
    raise_errors: bool = False,
    report: Report | None = None,
) -> Report:
    """
    Run the jobs of tasks that are due until none is left, and return what happened.

    Everything runs here: in this thread, on this connection and inside an open
    transaction, so it works in a TestCase. Jobs that tasks enqueue run too: a task that
    enqueues itself for now goes on until ``limit`` attempts were made.

    ``until`` lets time pass, up to a datetime or by so many seconds: whatever comes due
    by then, retries included, runs in its order, at the time at which it is due. It
    moves the clock of the queue only, not the one that a task reads.

    An exception of a task is a failed attempt, as in a worker; with ``raise_errors`` it
    is also raised here, once the attempt is settled. Given a ``report``, add to it and
    do as it says.
    """
    from django_alkstore.models import LiveJob

    manager: LiveJobManager = LiveJob.objects.using_alias(using)
    report = Report(raise_errors=raise_errors) if report is None else report
    last = None if limit is None else report.ran + limit
    now, end = None, None
    if until is not None:
        now = manager.now()
        end = (
            clock.from_instant(until, "until")
            if isinstance(until, datetime)
            else now + clock.duration(until, "until")
        )
    before: object = None
    while last is None or report.ran < last:
        with nullcontext() if now is None else clock.pretend(now):
            found = [each for each in manager.survey() if queue in (None, each.name)]
            job = _claim(manager, found)
            if job is not None:
                _run(manager, job, report)
        if job is not None:
            continue
        # A claim that brought nothing may have moved rows, and may move more.
        after = (now, _counts(manager))
        if after == before or not any(each.pending or each.upkeep for each in found):
            now = _next(now, end, found)
            if now is None:
                break
        before = after
    return report


async def arun_jobs(*args: Any, **kwargs: Any) -> Report:
    """Do as ``run_jobs``, from async code."""
    return await sync_to_async(run_jobs)(*args, **kwargs)


def _claim(manager: LiveJobManager, found: list[QueueSurvey]) -> ClaimedJob | None:
    for each in found:
        if each.pending or each.upkeep:
            jobs = manager.claim(
                each.name, worker_id=WORKER_ID, limit=1, raw=False, upkeep=each.upkeep
            )
            if jobs:
                return jobs[0]
    return None


def _counts(manager: LiveJobManager) -> dict[str, int]:
    rows = manager.using(manager.database).values_list("state")
    return dict(rows.annotate(Count("pk")).order_by("state"))


def _next(now: int | None, end: int | None, found: list[QueueSurvey]) -> int | None:
    """Return the instant to go to when nothing is due any more, or None to stop."""
    if now is None or end is None or now >= end:
        return None
    later = [each.next_at for each in found if each.next_at is not None]
    return min([end, *(at for at in later if at > now)])


def _run(manager: LiveJobManager, job: ClaimedJob, report: Report) -> None:
    with _own_savepoints():
        run = run_claimed(job)
    fate = settle_claimed(manager, run)
    report.ran += 1
    report.jobs.append(job)
    report.succeeded += fate is Fate.FINISHED
    report.dead += fate.is_dead
    report.lost += fate is Fate.LOST
    if not isinstance(run.outcome, (Failed, Discarded, Invalid)):
        return
    error = run.outcome.exception
    if fate is not Fate.LOST:
        report.failed += 1
        report.errors.append(error)
    # Ctrl+C is meant for the tests, whatever was running.
    if report.raise_errors or isinstance(error, KeyboardInterrupt):
        raise error


@contextmanager
def _own_savepoints() -> Iterator[None]:
    """
    Keep what a task does to an open transaction from ending it.

    Outside a transaction a statement that fails hurts nothing that was written before
    it. Inside one it may end the whole, so the task's part alone is taken back then.
    """
    marks: list[tuple[BaseDatabaseWrapper, str]] = []
    for connection in connections.all(initialized_only=True):
        # No atomic() of ours: a task's atomic(durable=True) is refused inside one.
        if connection.in_atomic_block and (mark := connection.savepoint()):
            marks.append((connection, mark))
    try:
        yield
    finally:
        for connection, mark in reversed(marks):
            try:
                connection.savepoint_commit(mark)
            except DatabaseError:
                connection.needs_rollback = False
                connection.savepoint_rollback(mark)
