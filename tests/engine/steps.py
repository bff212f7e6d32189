"""
The small steps of the tests: a claim at an instant, a row looked at, raw SQL, threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Barrier
from typing import Any

from django.db import connection, connections
from django.db.models import Model

from django_alkstore import clock, sql
from django_alkstore.jobs import ClaimedJob
from django_alkstore.models import DeadJob, LiveJob
from tests.engine.scenes import NOW

Columns = tuple[Any, ...]


def us(seconds: float) -> int:
    """Return the instant so many seconds after NOW, in microseconds."""
    return NOW + round(seconds * clock.SECOND)


def after(seconds: float) -> AbstractContextManager[None]:
    """Let the queue's clock stand so many seconds after NOW."""
    return clock.pretend(us(seconds))


def take(
    limit: int = 9, *, queue: str = "q", worker: str = "w", at: float = 0, **more: Any
) -> list[ClaimedJob]:
    """Claim raw jobs, ``at`` seconds after NOW."""
    with after(at):
        return LiveJob.objects.claim(
            queue, worker_id=worker, limit=limit, **{"raw": True, **more}
        )


def row(job_id: int) -> LiveJob:
    return LiveJob.objects.get(pk=job_id)


def waits(job_id: int) -> tuple[str, int, str]:
    """Return a live job's state, the attempts it has spent, and its worker."""
    job = row(job_id)
    return (job.state, job.attempts, job.worker_id)


def columns_of(model: type[Model]) -> dict[str, Any]:
    """Return the columns that every job row has, of the only row of ``model``."""
    (values,) = model._default_manager.values()
    return {name: values[name] for name in sql.JOB_COLUMNS}


def why_dead() -> dict[Any, str]:
    """Return the reason of each dead job, by its payload's text without the quotes."""
    # Not through the model: some tests break columns that it would stumble over.
    rows = run_sql(f'SELECT payload, reason FROM "{DeadJob._meta.db_table}"')
    return {payload.strip('"'): reason for payload, reason in rows}


def run_sql(statement: str, parameters: Sequence[Any] = ()) -> list[Columns]:
    """Run SQL past the package, as a program in any language may."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def side_by_side(*calls: Callable[[], Any]) -> list[Any]:
    """
    Start the calls at once, each in a thread and on a connection of its own.

    Return what they return, or the exceptions that they raise.
    """
    start = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            start.wait(10)
            return call()
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
