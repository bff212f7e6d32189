"""
A job as Python sees it: the receipt of a claim, and a picture of a job at rest.

``ClaimedJob`` is what a worker or a consumer of your own holds while it runs a job, and
what it settles the job with. ``JobSnapshot`` is what ``queue.get_job`` returns.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from django_alkstore import backoff as backoffs
from django_alkstore import clock, payload

if TYPE_CHECKING:
    from django_alkstore.managers.live_job import LiveJobManager

JobState: TypeAlias = Literal["scheduled", "pending", "processing", "dead", "finished"]

MAX_TRACEBACK = 16 * 1024
MAX_MESSAGE = 4 * 1024
MAX_LOG = 16 * 1024

_NUMBER = frozenset({int, type(None)})


class ClaimedJob:
    """
    One claim of a job: the exclusive, timed right to run it.

    ``attempts`` counts this claim. Instants end in ``_us`` where they are microseconds;
    without it they are datetimes. The methods return True when it was done, and False
    when the claim is no longer ours: lapsed, taken over, or the job cancelled. Database
    errors are raised.
    """

    __slots__ = (
        "id", "queue", "task", "payload", "priority", "run_at_us", "attempts",
        "max_attempts", "created_at_us", "expires_at_us", "worker_id", "claimed_at_us",
        "claim_expires_at_us", "visibility_timeout_us", "backoff", "timeout_us",
        "dead_letter_retention_us", "result_ttl_us", "unique_key", "using",
    )  # fmt: skip

    id: int
    queue: str
    task: str
    payload: Any
    priority: int
    attempts: int
    max_attempts: int
    worker_id: str
    backoff: str
    unique_key: str | None
    using: str
    run_at_us: int
    created_at_us: int
    expires_at_us: int | None
    claimed_at_us: int
    claim_expires_at_us: int
    visibility_timeout_us: int
    timeout_us: int | None
    dead_letter_retention_us: int | None
    result_ttl_us: int | None

    def __init__(self, row: Sequence[Any], using: str) -> None:
        """Read a row of job columns. Raise ValueError when one cannot be decoded."""
        (
            self.id, self.queue, self.task, text, self.priority, self.run_at_us,
            self.attempts, self.max_attempts, self.created_at_us, self.expires_at_us,
            self.worker_id, self.claimed_at_us, self.claim_expires_at_us,
            self.visibility_timeout_us, self.backoff, self.timeout_us,
            self.dead_letter_retention_us, self.result_ttl_us, self.unique_key,
        ) = row  # fmt: skip
        self.using = using
        # SQLite keeps whatever type a raw UPDATE wrote into a column.
        numbers = (
            self.priority, self.run_at_us, self.attempts, self.max_attempts,
            self.created_at_us, self.expires_at_us, self.visibility_timeout_us,
            self.timeout_us, self.dead_letter_retention_us, self.result_ttl_us,
        )  # fmt: skip
        if not _NUMBER.issuperset(map(type, numbers)):
            raise ValueError("a column that holds no number")
        # Read as bytes where a row may hold what is not UTF-8; UnicodeDecodeError is a
        # ValueError too.
        self.task, self.backoff = _text(self.task), _text(self.backoff)
        self.unique_key = None if self.unique_key is None else _text(self.unique_key)
        self.payload = payload.loads(_text(text))

    def __repr__(self) -> str:
        name = self.task or self.queue
        return f"<ClaimedJob {self.id} {name} attempt {self.attempts}>"

    @property
    def run_at(self) -> datetime:
        return clock.to_instant(self.run_at_us)

    @property
    def created_at(self) -> datetime:
        return clock.to_instant(self.created_at_us)

    @property
    def expires_at(self) -> datetime | None:
        return _instant(self.expires_at_us)

    @property
    def claimed_at(self) -> datetime:
        return clock.to_instant(self.claimed_at_us)

    @property
    def claim_expires_at(self) -> datetime:
        return clock.to_instant(self.claim_expires_at_us)

    def ack(self, result: object = None) -> bool:
        """
        Finish the job. ``result`` is kept if the job has a ``result_ttl``.

        Raise InvalidPayload for a result that is not JSON; the claim then stands.
        """
        text = payload.checked_result(result)
        return self._manager().ack(self, text)

    def retry(self, delay: float | timedelta | None = None, error: str = "") -> bool:
        """
        Give the job back to be tried again, or let it die when its attempts are spent.

        It waits for ``delay`` seconds, or as its backoff stamp says.
        """
        wait = (
            backoffs.delay_of(self.backoff, self.attempts)
            if delay is None
            else clock.duration(delay, "delay")
        )
        # A raw job has no task whose function could be asked.
        if wait is None:
            wait = backoffs.delay_of(backoffs.DEFAULT_STAMP, self.attempts) or 0
        outcome = self._manager().retry(self, delay=wait, failure=Failure.said(error))
        return outcome != "lost"

    def snooze(self, delay: float | timedelta) -> bool:
        """Postpone the job by ``delay`` seconds without spending the attempt."""
        return self._manager().snooze(self, clock.duration(delay, "delay"))

    def fail(self, error: str = "") -> bool:
        """Let the job die now, whatever attempts it has left."""
        return self._manager().fail(self, failure=Failure.said(error))

    def heartbeat(self, extend: float | timedelta | None = None) -> bool:
        """
        Hold a still valid claim until now + ``extend`` seconds, never less than before.

        Without ``extend`` it is the job's own visibility timeout.
        """
        span = None if extend is None else clock.duration(extend, "extend")
        return self._manager().heartbeat(self, span)

    def release(self) -> bool:
        """Give an unstarted job back at once without spending the attempt."""
        return bool(self._manager().release_many([self]))

    def _manager(self) -> LiveJobManager:
        # Models cannot be imported before the apps are loaded; this module can.
        from django_alkstore.models import LiveJob

        return LiveJob.objects.db_manager(self.using)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in an attempt, as it is stored: texts escaped and cut."""

    exception_class: str
    message: str
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return the failure that an exception was."""
        kind = type(error)
        # Whatever a text of its own raises, SystemExit too, must not end the thread.
        try:
            message = str(error)
        except BaseException as broken:
            message = f"(its text cannot be made: {type(broken).__name__})"
        try:
            trace = "".join(traceback.format_exception(error))
        except BaseException as broken:
            trace = f"(its traceback cannot be made: {type(broken).__name__})"
        return cls(
            payload.escape(f"{kind.__module__}.{kind.__qualname__}", 255),
            payload.escape(message, MAX_MESSAGE),
            payload.escape(trace, MAX_TRACEBACK),
        )

    @classmethod
    def said(cls, error: str, exception_class: str = "") -> Failure:
        """Return the failure that somebody told in words."""
        return cls(exception_class, payload.escape(str(error), MAX_MESSAGE), "")

    @property
    def summary(self) -> str:
        """The one line that a dead job shows as its last error."""
        name = self.exception_class.removeprefix("builtins.")
        return f"{name}: {self.message}" if name else self.message


@dataclass(slots=True)
class Notes:
    """What a running attempt has to tell: its progress as JSON text, and log lines."""

    progress: str | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class AttemptSnapshot:
    """
    One attempt of a job that failed, or left progress or log lines.

    ``ended_at`` is None while it runs. ``progress`` has the keys done, total and
    message.
    """

    attempt: int
    worker_id: str
    started_at: datetime | None
    ended_at: datetime | None
    exception_class: str
    message: str
    traceback: str
    progress: dict[str, Any] | None
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot:
    """
    A job as it was when it was read, in whichever table.

    ``state`` is scheduled, pending, processing, dead or finished. ``payload_text`` is
    the column; ``payload`` its value, or None where ``readable`` is False. ``attempts``
    is a number, ``attempts_history`` tells of those that failed or left notes, oldest
    first. A finished job is known only while its result is kept; ``result`` is None too
    where ``result_readable`` is False.
    """

    id: int
    state: JobState
    queue: str
    task: str
    payload: Any
    payload_text: str
    readable: bool
    priority: int
    run_at: datetime
    attempts: int
    max_attempts: int
    created_at: datetime
    expires_at: datetime | None
    worker_id: str
    claimed_at: datetime | None
    claim_expires_at: datetime | None
    visibility_timeout: timedelta
    backoff: str
    timeout: timedelta | None
    dead_letter_retention: timedelta | None
    result_ttl: timedelta | None
    unique_key: str | None
    attempts_history: tuple[AttemptSnapshot, ...]
    has_result: bool = False
    result: Any = None
    result_readable: bool = True
    finished_at: datetime | None = None
    reason: str = ""
    last_error: str = ""
    died_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many jobs a queue has in each state, and since when the oldest one waits."""

    scheduled: int
    pending: int
    processing: int
    dead: int
    oldest_pending_at: datetime | None
    paused: bool


@dataclass(frozen=True, slots=True)
class QueueSurvey:
    """
    What a queue has for a worker. ``next_at`` is in microseconds on the queue's clock.

    ``pending``: a job with a task waits. ``upkeep``: due, lapsed or expired rows are
    there for a claim to move first. ``next_at``: when the next one will be. ``wait``:
    how long that is from now.
    """

    name: str
    pending: bool
    upkeep: bool
    next_at: int | None
    wait: int | None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _instant(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else clock.to_instant(microseconds)
