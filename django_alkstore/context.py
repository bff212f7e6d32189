"""
What a running task knows of its job, and how it talks back: progress, log, heartbeat.

Everything a task says is kept in memory, in ``Notes`` that the worker stores with its
next heartbeat or settlement, at most once a second.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django_alkstore import clock, payload
from django_alkstore.jobs import MAX_LOG, ClaimedJob, Notes

if TYPE_CHECKING:
    from django_alkstore.options import JobOptions

    LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:
    LoggerAdapter = logging.LoggerAdapter

MAX_PROGRESS_MESSAGE = 500
NO_ARGUMENTS = '{"args": [], "kwargs": {}}'

logger = logging.getLogger("django_alkstore.job")


class Context:
    """
    The first argument of a task with ``takes_context=True``.

    ``job`` is the claim it runs under, ``attempt`` its number (1 for the first), and
    ``logger`` a logger whose lines are also kept with the attempt. Safe to use from the
    task's own threads.
    """

    def __init__(
        self,
        job: ClaimedJob,
        *,
        notes: Notes | None = None,
        heartbeat: Callable[[], bool] | None = None,
    ) -> None:
        """``heartbeat`` extends the claim or asks for it; True while it is not lost."""
        self.job = job
        self.attempt = job.attempts
        self.notes = Notes() if notes is None else notes
        self.logger: LoggerAdapter = JobLogger(job, self._keep)
        self._heartbeat = job.heartbeat if heartbeat is None else heartbeat
        self._cancelled = threading.Event()
        self._lock = threading.Lock()

    @classmethod
    def detached(cls, options: JobOptions, using: str) -> Context:
        """Return a context for a call that no job stands behind. Its job's id is 0."""
        now = clock.host_now()
        end = now + options.visibility_timeout
        row = (
            0, options.queue, options.task, NO_ARGUMENTS, options.priority, now, 1,
            options.max_attempts, now, None, "", now, end, options.visibility_timeout,
            options.backoff, options.timeout, options.dead_letter_retention,
            options.result_ttl, None,
        )  # fmt: skip
        return cls(ClaimedJob(row, using), heartbeat=lambda: True)

    def __repr__(self) -> str:
        return f"<Context of {self.job!r}>"

    @property
    def cancelled(self) -> bool:
        """Whether the job was cancelled or its claim lost, as far as is known here."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Let ``cancelled`` be True from now on. For the worker, which finds it out."""
        self._cancelled.set()

    def heartbeat(self) -> bool:
        """
        Hold on to the job for another visibility timeout. Return False once it is lost.

        The worker does so by itself while a task runs. In a worker this only asks, and
        returns what is known so far; it never waits for the database.
        """
        if not self.cancelled and not self._heartbeat():
            self.cancel()
        return not self.cancelled

    def progress(
        self, done: float, total: float | None = None, message: str = ""
    ) -> None:
        """
        Tell how far the work is: ``done`` of ``total``, in any unit, with a few words.

        Raise TypeError or ValueError for what is no finite number, or no text. The last
        one told replaces the one before.
        """
        _check_number(done, "done")
        if total is not None:
            _check_number(total, "total")
        if not isinstance(message, str):
            raise TypeError(f"message must be a string, not {type(message).__name__}")
        text = payload.escape(message, MAX_PROGRESS_MESSAGE)
        said = json.dumps(
            {"done": done, "total": total, "message": text}, ensure_ascii=False
        )
        with self._lock:
            self.notes.progress = said

    def _keep(self, line: str) -> None:
        clean = payload.escape(line, MAX_LOG)
        with self._lock:
            log = f"{self.notes.log}{clean}\n"
            if len(log) > MAX_LOG:
                # The newest lines are the ones that tell where it went wrong.
                log = log[-MAX_LOG + 4 :]
                log = "[…]\n" + log[log.find("\n") + 1 :]
            self.notes.log = log


class JobLogger(LoggerAdapter):
    """
    A logger that keeps each line with the attempt and passes it on to normal logging.

    All levels are kept. Passed on to the logger ``django_alkstore.job``, records have
    the attributes job_id, job_queue, job_task and job_attempt.
    """

    def __init__(self, job: ClaimedJob, keep: Callable[[str], None]) -> None:
        super().__init__(
            logger,
            {
                "job_id": job.id,
                "job_queue": job.queue,
                "job_task": job.task,
                "job_attempt": job.attempts,
            },
        )
        self._keep = keep

    def isEnabledFor(self, level: int) -> bool:
        """Return True: every level is kept."""
        return True

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Keep a line and pass it on. One that cannot be formatted is kept as it is."""
        error = kwargs.get("exc_info")
        self._keep(_line(level, msg, args, error))
        extra = {**(self.extra or {}), **(kwargs.pop("extra", None) or {})}
        # One frame for this method, so that the record names the task's own line.
        stacklevel = kwargs.pop("stacklevel", 1) + 1
        self.logger.log(level, msg, *args, extra=extra, stacklevel=stacklevel, **kwargs)


def _line(level: int, msg: object, args: tuple[Any, ...], error: Any) -> str:
    record = logging.LogRecord("", level, "", 0, msg, args, None)
    try:
        text = record.getMessage()
    except Exception:
        text = str(msg)
    if error:
        text = f"{text}\n{_traceback(error)}".rstrip()
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{at} {logging.getLevelName(level)} {text}"


def _traceback(error: Any) -> str:
    import sys

    if isinstance(error, BaseException):
        error = (type(error), error, error.__traceback__)
    elif not isinstance(error, tuple):
        error = sys.exc_info()
    return logging.Formatter().formatException(error)


def _check_number(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
