"""Every error of the package: what went wrong, and what to do about it."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured


class AlkstoreError(Exception):
    """The base of all errors here. Catch it; it is never raised itself."""


class UnsupportedDatabase(AlkstoreError, ImproperlyConfigured):
    """
    The database cannot hold the queue.

    Use SQLite 3.35+, or PostgreSQL with psycopg 3.
    """


class InvalidPayload(AlkstoreError, TypeError, ValueError):
    """
    The value is not JSON.

    Pass str, int, float, bool, None, and lists and dicts of them.
    """


class DuplicateJob(AlkstoreError):
    """
    A live job of the queue holds the unique key already, so nothing was stored.

    ``job_id`` is that job's id, or None when it had gone by the time it was looked up.
    Use ``on_conflict="return"`` to be given that job instead.
    """

    def __init__(self, message: str, *, job_id: int | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id


class ClaimLost(AlkstoreError):
    """
    The claim lapsed, was cancelled or stolen.

    Raise its visibility timeout or heartbeat sooner.
    """


class JobFailed(AlkstoreError):
    """
    The job whose result was awaited went dead. Look at ``reason`` and ``error``.

    ``job_id`` is its id; ``reason`` is exhausted, failed, expired, cancelled or
    invalid; ``error`` is the text of its last error.
    """

    def __init__(self, job_id: int, reason: str, error: str) -> None:
        super().__init__(f"job {job_id} is dead ({reason}): {error}")
        self.job_id = job_id
        self.reason = reason
        self.error = error

    def __reduce__(self) -> tuple[type[JobFailed], tuple[int, str, str]]:
        return type(self), (self.job_id, self.reason, self.error)


class ResultDoesNotExist(AlkstoreError):
    """
    No such job, or it kept no result.

    Give its task a ``result_ttl``, or ask sooner.
    """


class TaskTimeout(AlkstoreError, TimeoutError):
    """
    One attempt ran longer than its task's ``timeout``.

    Raise the timeout or split the work.
    """


class WatcherDied(AlkstoreError):
    """
    The watcher that wakes this process has ended.

    Restart the process; its message says why.
    """
