"""How long a job waits after a failed attempt: as its stamp says, or its task."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_alkstore import backoff as backoffs
from django_alkstore import clock
from django_alkstore.decorator import Retry
from django_alkstore.jobs import AttemptSnapshot, ClaimedJob, Failure
from django_alkstore.results import TaskResult
from django_alkstore.worker.runs import Run

if TYPE_CHECKING:
    from django_alkstore.decorator import Task

logger = logging.getLogger(__name__)


def asks_function(job: ClaimedJob, task: Task[..., Any], error: BaseException) -> bool:
    """Whether the task's own function is to be asked, which may use the database."""
    return (
        task.backoff_function is not None
        and job.attempts < job.max_attempts
        and backoffs.delay_of(job.backoff, job.attempts) is None
        and not (isinstance(error, Retry) and error.delay_us is not None)
    )


def delay_after(
    run: Run, task: Task[..., Any], error: BaseException, failure: Failure
) -> int | None:
    """Return the microseconds until the next attempt, or None: there is to be none."""
    job = run.job
    if isinstance(error, Retry) and error.delay_us is not None:
        return error.delay_us
    if asks_function(job, task, error):
        return _answer(run, task, error, failure)
    return stamped_delay(job)


def _answer(
    run: Run, task: Task[..., Any], error: BaseException, failure: Failure
) -> int | None:
    assert task.backoff_function is not None
    try:
        result = TaskResult[object].read(run.job.id, using=run.job.using)
        this = AttemptSnapshot(
            attempt=run.job.attempts,
            worker_id=run.job.worker_id,
            started_at=run.job.claimed_at,
            ended_at=None,
            exception_class=failure.exception_class,
            message=failure.message,
            traceback=failure.traceback,
            progress=None,
            log="",
        )
        history = [each for each in result.job.attempts_history if each.ended_at]
        known = replace(result.job, attempts_history=(*history, this))
        seconds = task.backoff_function(error, TaskResult[object](known, run.job.using))
        return None if seconds is None else clock.duration(seconds, "backoff")
    except BaseException as broken:
        logger.error(
            "event=backoff_failed job=%s task=%s exception=%s",
            run.job.id, task.name, type(broken).__qualname__, exc_info=broken,
        )  # fmt: skip
        return stamped_delay(run.job)


def stamped_delay(job: ClaimedJob) -> int:
    """
    Return the microseconds that a job's stamp says, without asking anybody.

    As by default where it only says that its task has a function.
    """
    delay = backoffs.delay_of(job.backoff, job.attempts)
    if delay is None:
        delay = backoffs.delay_of(backoffs.DEFAULT_STAMP, job.attempts)
    return delay or 0
