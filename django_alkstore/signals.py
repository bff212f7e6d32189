"""
One signal for each step of a job's life, and the log line that tells of the same step.

Both are worded here and nowhere else. Signals go out robustly: a receiver that raises
is logged by Django and changes nothing for the job. Log lines are ``key=value`` and
never hold a payload, a result or the text of an exception.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

if TYPE_CHECKING:
    from django_alkstore.decorator import Task
    from django_alkstore.jobs import ClaimedJob
    from django_alkstore.models import LiveJob

    AnyTask = Task[..., Any]

logger = logging.getLogger(__name__)

job_enqueued = Signal()
"""A call stored a job. In the caller's transaction, which may yet roll back. Arguments:
``job``, the LiveJob; from ``enqueue_many`` instead ``jobs``, a list of them, with
those that held a unique key already."""

job_started = Signal()
"""A worker is about to run a job. Argument: ``job``, the ClaimedJob."""

job_succeeded = Signal()
"""A job finished, and that is committed. Arguments: ``job``, ``seconds`` of its run."""

job_failed = Signal()
"""An attempt failed, and that is committed. Arguments: ``job``, ``exception`` and
``seconds``. The job waits for its next attempt, unless ``job_dead`` follows."""

job_dead = Signal()
"""A job went dead, and that is committed. Arguments: ``job``, ``reason`` and
``exception`` (None where none was raised)."""


def send_enqueued(task: AnyTask | None, job: LiveJob) -> None:
    """Tell that ``job`` was stored. The sender is None for a raw job."""
    if _heard(job_enqueued, task):
        job_enqueued.send_robust(sender=task, job=job)
    logger.debug(
        "event=enqueued job=%s queue=%s task=%s", job.pk, job.queue, job.task or "-"
    )


def send_enqueued_many(
    task: AnyTask | None,
    queue: str,
    ids: Sequence[int],
    load: Callable[[], list[LiveJob]],
) -> None:
    """Tell once of a whole batch. ``load`` reads its jobs, only if somebody listens."""
    if ids and _heard(job_enqueued, task):
        job_enqueued.send_robust(sender=task, jobs=load())
    logger.debug(
        "event=enqueued jobs=%s queue=%s task=%s", len(ids), queue, _name(task)
    )


def send_started(task: AnyTask | None, job: ClaimedJob) -> None:
    """Tell that ``job`` is about to run."""
    if _heard(job_started, task):
        job_started.send_robust(sender=task, job=job)
    logger.debug("event=started %s", _Job(job))


def send_succeeded(task: AnyTask | None, job: ClaimedJob, seconds: float) -> None:
    """Tell that ``job`` finished after ``seconds``."""
    if _heard(job_succeeded, task):
        job_succeeded.send_robust(sender=task, job=job, seconds=seconds)
    logger.info("event=succeeded %s seconds=%.3f", _Job(job), seconds)


def send_failed(
    task: AnyTask | None, job: ClaimedJob, exception: BaseException, seconds: float
) -> None:
    """Tell that an attempt of ``job`` ended with ``exception`` after ``seconds``."""
    if _heard(job_failed, task):
        job_failed.send_robust(
            sender=task, job=job, exception=exception, seconds=seconds
        )
    logger.warning(
        "event=failed %s exception=%s seconds=%.3f",
        _Job(job), type(exception).__qualname__, seconds,
    )  # fmt: skip


def send_dead(
    task: AnyTask | None,
    job: ClaimedJob,
    reason: str,
    exception: BaseException | None = None,
) -> None:
    """Tell that ``job`` went dead, and why."""
    if _heard(job_dead, task):
        job_dead.send_robust(sender=task, job=job, reason=reason, exception=exception)
    logger.error("event=dead %s reason=%s", _Job(job), reason)


def log_lost(job: ClaimedJob) -> None:
    """Log that ``job`` cannot be settled: its claim lapsed or it was cancelled."""
    logger.warning("event=claim_lost %s", _Job(job))


def log_overdue(job: ClaimedJob) -> None:
    """Log that ``job`` is past its timeout in a thread, which nothing can interrupt."""
    logger.warning("event=timed_out %s still_running=yes", _Job(job))


class _Job:
    """The words of a job in a log line, put together only if the line is written."""

    __slots__ = ("job",)

    def __init__(self, job: ClaimedJob) -> None:
        self.job = job

    def __str__(self) -> str:
        job = self.job
        return (
            f"job={job.id} queue={job.queue} task={job.task or '-'}"
            f" attempt={job.attempts}/{job.max_attempts}"
        )


def _heard(signal: Signal, task: AnyTask | None) -> bool:
    # Asking Django takes some microseconds, and most sites have no receiver at all.
    return bool(signal.receivers) and signal.has_listeners(task)


def _name(task: AnyTask | None) -> str:
    return "-" if task is None else task.name
