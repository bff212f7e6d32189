"""
What became of a task's job: state, return value, errors; and waiting for its end.

A result is kept if the task has a ``result_ttl``. Waiting is woken by commits, and
looks again at least once each poll interval, so a missed wake costs no more than that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils.module_loading import import_string

from django_alkstore import clock
from django_alkstore.conf import get_settings
from django_alkstore.exceptions import JobFailed, ResultDoesNotExist

if TYPE_CHECKING:
    from django_alkstore.jobs import JobSnapshot, JobState
    from django_alkstore.managers.live_job import LiveJobManager

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class TaskError:
    """One failed attempt, as Django's tasks name it."""

    exception_class_path: str
    traceback: str
    message: str = ""
    attempt: int = 0

    @property
    def exception_class(self) -> type[BaseException]:
        """The exception's class. Raise ImportError when gone, ValueError when none."""
        found = import_string(self.exception_class_path)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
        raise ValueError(f"{self.exception_class_path!r} is no exception class")


class TaskResult(Generic[T_co]):
    """
    A job of a task as it was when it was read; ``refresh()`` reads it again.

    ``state`` is scheduled, pending, processing, dead or finished.
    """

    __slots__ = ("_job", "_using")

    _job: JobSnapshot
    _using: str | None

    def __init__(self, job: JobSnapshot, using: str | None = None) -> None:
        self._job = job
        self._using = using

    @classmethod
    def read(
        cls, job_id: int, *, using: str | None = None, task: str | None = None
    ) -> TaskResult[T_co]:
        """
        Return the result of a job. Raise ResultDoesNotExist for an unknown id.

        Unknown is also a job of another task than ``task``, and a finished job whose
        result was not kept or has expired.
        """
        job = _read(job_id, using)
        if task is not None and job.task != task:
            raise ResultDoesNotExist(f"job {job_id} is no job of the task {task}")
        return cls(job, using)

    def __repr__(self) -> str:
        return f"<TaskResult {self.id} {self.state}>"

    @property
    def id(self) -> int:
        """The job's id."""
        return self._job.id

    @property
    def state(self) -> JobState:
        """Where the job is: scheduled, pending, processing, dead or finished."""
        return self._job.state

    @property
    def is_finished(self) -> bool:
        """Whether the job is finished or dead: nothing more will happen by itself."""
        return self._job.state in ("finished", "dead")

    @property
    def attempts(self) -> int:
        """How many attempts were begun, the running one included."""
        return self._job.attempts

    @property
    def job(self) -> JobSnapshot:
        """Everything that is known of the job."""
        return self._job

    @property
    def enqueued_at(self) -> datetime:
        """When the job was stored."""
        return self._job.created_at

    @property
    def finished_at(self) -> datetime | None:
        """When the job finished or died; None while it has not."""
        return self._job.finished_at or self._job.died_at

    @property
    def errors(self) -> list[TaskError]:
        """The failed attempts, oldest first; of a long history the last 20."""
        return [
            TaskError(
                attempt.exception_class,
                attempt.traceback,
                attempt.message,
                attempt.attempt,
            )
            for attempt in self._job.attempts_history
            if attempt.exception_class
        ]

    @property
    def progress(self) -> dict[str, Any] | None:
        """The progress last told (done, total, message), or None."""
        for attempt in reversed(self._job.attempts_history):
            if attempt.progress is not None:
                return attempt.progress
        return None

    @property
    def return_value(self) -> T_co:
        """
        What the task returned.

        Raise ValueError if unfinished, failed or unreadable.
        """
        if self._job.state == "dead":
            raise ValueError(f"The task failed ({self._job.reason})")
        if self._job.state != "finished":
            raise ValueError("The task has not finished yet")
        if not self._job.result_readable:
            raise ValueError("The result cannot be read: its stored text is no JSON")
        return cast(T_co, self._job.result)

    def refresh(self) -> None:
        """Read the job again. Raise ResultDoesNotExist once it is known no more."""
        self._job = _read(self.id, self._using)

    async def arefresh(self) -> None:
        """Do as ``refresh``, from async code."""
        await sync_to_async(self.refresh)()

    def wait(self, timeout: float | timedelta | None = None) -> T_co:
        """
        Wait until the job is finished and return what the task returned.

        Raise TimeoutError after ``timeout`` seconds (None: never), JobFailed when the
        job went dead, ResultDoesNotExist when it finished and its result was not kept,
        and TransactionManagementError at once within an atomic block, where the end of
        the job could never be seen.
        """
        from django_alkstore.wake import Waiter

        countdown = _Countdown(timeout)
        self._refuse_in_atomic()
        # Listen first, then look: a job that ends in between still wakes this waiter.
        with Waiter(self._alias) as waiter:
            while not self._look():
                waiter.wait(countdown.step(self))
        return self._outcome()

    async def await_result(self, timeout: float | timedelta | None = None) -> T_co:
        """Do as ``wait``, from async code and without blocking the event loop."""
        from django_alkstore.wake import AsyncWaiter

        countdown = _Countdown(timeout)
        await sync_to_async(self._refuse_in_atomic)()
        async with AsyncWaiter(self._alias) as waiter:
            while not await sync_to_async(self._look)():
                await waiter.wait(countdown.step(self))
        return self._outcome()

    def _look(self) -> bool:
        if not self.is_finished:
            # Of all commits that wake this waiter few are its job's end.
            if _manager(self._using).using(self._alias).filter(pk=self.id).exists():
                return False
            self.refresh()
        return self.is_finished

    def _outcome(self) -> T_co:
        if self._job.state == "dead":
            raise JobFailed(self.id, self._job.reason, self._job.last_error)
        return self.return_value

    def _refuse_in_atomic(self) -> None:
        if transaction.get_connection(self._alias).in_atomic_block:
            raise transaction.TransactionManagementError(
                "A result cannot be awaited inside an atomic block: the job would end"
                " in a transaction that this one does not see. Wait after the block."
            )

    @property
    def _alias(self) -> str:
        return _manager(self._using).database


class _Countdown:
    """The steps in which a waiter waits until its timeout."""

    def __init__(self, timeout: float | timedelta | None) -> None:
        self.timeout = (
            None
            if timeout is None
            else clock.seconds(clock.duration(timeout, "timeout"))
        )
        self.start = time.monotonic()
        self.poll_interval = get_settings().poll_interval

    def step(self, result: TaskResult[Any]) -> float:
        """Return how long to wait now. Raise TimeoutError when the time is over."""
        if self.timeout is None:
            return self.poll_interval
        left = self.start + self.timeout - time.monotonic()
        if left <= 0:
            raise TimeoutError(
                f"job {result.id} had not finished after {self.timeout:g} s"
            )
        return min(left, self.poll_interval)


def _manager(using: str | None) -> LiveJobManager:
    # Models cannot be imported before the apps are loaded; this module can.
    from django_alkstore.models import LiveJob

    manager: LiveJobManager = LiveJob.objects.using_alias(using)
    return manager


def _read(job_id: int, using: str | None) -> JobSnapshot:
    job = _manager(using).get_job(job_id)
    if job is None:
        raise ResultDoesNotExist(
            f"no job {job_id} is known; a finished one is known while its result is"
            " kept, for as long as its result_ttl says"
        )
    return job
