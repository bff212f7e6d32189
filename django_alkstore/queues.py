"""
The queue handle: thin, does no I/O when made, holds no SQL.

A queue is a name. Its rows are handled by the managers of the models; this class names
their methods for one queue and checks what the caller gave.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from asgiref.sync import sync_to_async

from django_alkstore import backoff as backoffs
from django_alkstore import options as rules
from django_alkstore import payload as payload_text
from django_alkstore import signals
from django_alkstore.jobs import ClaimedJob, JobSnapshot, QueueStats

if TYPE_CHECKING:
    from django_alkstore.managers.live_job import LiveJobManager
    from django_alkstore.managers.queue_state import QueueStateManager
    from django_alkstore.models import LiveJob

UniqueKeys: TypeAlias = Callable[[Any], str | None] | Sequence[str | None] | None


class Queue:
    """
    One queue by name, on the database that the router names, or ``using``.

    The name is only itself: ``*`` and ``,`` in it are no pattern.
    """

    def __init__(self, name: str, using: str | None = None) -> None:
        self.name = rules.check_name(name, "queue", rules.MAX_QUEUE_LENGTH)
        self.using = using

    def __repr__(self) -> str:
        return f"queue({self.name!r})"

    def enqueue(
        self,
        payload: object,
        *,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
        priority: int = 0,
        max_attempts: int = 3,
        expires: float | timedelta | None = None,
        unique_key: str | None = None,
        on_conflict: rules.OnConflict = "return",
        visibility_timeout: float | timedelta = 300,
        backoff: backoffs.AnyBackoff = backoffs.DEFAULT,
        timeout: float | timedelta | None = None,
        dead_letter_retention: float | timedelta | None = None,
        result_ttl: float | timedelta | None = None,
    ) -> LiveJob:
        """
        Store a raw job, in the caller's transaction if there is one.

        Durations are seconds or timedeltas; ``run_at`` is an aware datetime. The job
        has ``.created``: False when a live job holds ``unique_key`` and was returned
        instead. Bad input raises TypeError or ValueError (InvalidPayload for the
        payload) before any SQL; DuplicateJob as ``on_conflict`` says.
        """
        options = rules.JobOptions.build(
            self.name,
            delay=delay,
            run_at=run_at,
            priority=priority,
            max_attempts=max_attempts,
            expires=expires,
            on_conflict=on_conflict,
            visibility_timeout=visibility_timeout,
            backoff=backoff,
            timeout=timeout,
            dead_letter_retention=dead_letter_retention,
            result_ttl=result_ttl,
        )
        key = rules.check_unique_key(unique_key)
        text = payload_text.checked(payload)
        job = self._live().enqueue(options, text, unique_key=key)
        if job.created:
            signals.send_enqueued(None, job)
        return job

    async def aenqueue(self, payload: object, **options: Any) -> LiveJob:
        """Store a raw job; see ``enqueue``."""
        return await sync_to_async(self.enqueue)(payload, **options)

    def enqueue_many(
        self,
        payloads: Iterable[object],
        *,
        unique_key: UniqueKeys = None,
        **options: Any,
    ) -> list[int]:
        """
        Store raw jobs in a few statements under one savepoint; all or none.

        Return their ids, position by position. The other options are those of
        ``enqueue``, the same for all; ``unique_key`` is a function of the payload, or
        one key for each. The first of equal keys wins.
        """
        values = list(payloads)
        chosen = rules.JobOptions.build(self.name, **options)
        texts = [
            payload_text.checked(value, f"payloads[{index}]")
            for index, value in enumerate(values)
        ]
        keys = _keys(unique_key, values)
        live = self._live()
        ids = live.enqueue_many(chosen, texts, unique_keys=keys)
        signals.send_enqueued_many(
            None, self.name, ids, lambda: list(live.filter(pk__in=ids))
        )
        return ids

    async def aenqueue_many(
        self, payloads: Iterable[object], **options: Any
    ) -> list[int]:
        """Store raw jobs; see ``enqueue_many``."""
        return await sync_to_async(self.enqueue_many)(payloads, **options)

    def claim(self, worker_id: str, limit: int = 1) -> list[ClaimedJob]:
        """
        Take up to ``limit`` raw jobs that are due, and hold each for its own time.

        Highest priority first, then run_at, then id. Empty when there is none. The
        receipts have to be settled: ack, retry, fail, snooze or release.
        """
        return self._live().claim(
            self.name,
            worker_id=rules.check_name(worker_id, "worker_id", 200),
            limit=rules.check_limit(limit),
            raw=True,
        )

    def jobs(self, worker_id: str) -> Iterator[ClaimedJob]:
        """
        Yield raw jobs one by one, for ever; waits for commits and for due times.

        It does not heartbeat, ack or release by itself.
        """
        from django_alkstore.consuming import jobs

        return jobs(self, rules.check_name(worker_id, "worker_id", 200))

    def ajobs(self, worker_id: str) -> AsyncIterator[ClaimedJob]:
        """Yield raw jobs one by one; see ``jobs``."""
        from django_alkstore.consuming import ajobs

        return ajobs(self, rules.check_name(worker_id, "worker_id", 200))

    def ack_many(self, jobs: Sequence[ClaimedJob]) -> int:
        """Finish claimed jobs. Return how many claims still stood."""
        return len(self._live().ack_many(jobs))

    def cancel(self, job_id: int) -> bool:
        """
        Let a job die as cancelled, whatever its state. False when it is not live.

        One that runs is told at its next heartbeat; its ack then returns False.
        """
        return self._live().cancel(job_id)

    def update(
        self,
        job_id: int,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        payload: object = ...,
    ) -> bool:
        """Edit a job that is not yet claimed; ``...`` leaves its payload as it is."""
        return self._live().edit(
            job_id, priority=priority, run_at=run_at, payload=payload
        )

    def get_job(self, job_id: int) -> JobSnapshot | None:
        """Return a job in whichever table it is, or None when there is none."""
        return self._live().get_job(job_id)

    def sweep_expired(self) -> int:
        """
        Let the jobs die whose time is up, and return how many.

        Those past ``expires_at`` that wait or whose claim has lapsed, and those whose
        last attempt's claim has lapsed.
        """
        return self._live().sweep_expired(self.name)

    def next_claim_at(self) -> datetime | None:
        """Return when a claim could return something, already past if now; or None."""
        return self._live().next_claim_at(self.name)

    def pause(self) -> bool:
        """
        Hand nothing out from now on; what runs goes on.

        True when it was not paused.
        """
        return self._states().pause(self.name)

    def resume(self) -> bool:
        """Hand out jobs again. True when it was paused."""
        return self._states().resume(self.name)

    @property
    def is_paused(self) -> bool:
        """Whether the queue is paused; one query."""
        return self._states().is_paused(self.name)

    def stats(self) -> QueueStats:
        """Count the queue's jobs by state."""
        return self._live().stats(self.name)

    def clear(self) -> int:
        """Delete the jobs that wait, in batches; what runs goes on. Return how many."""
        return self._live().clear(self.name)

    @property
    def database(self) -> str:
        """The alias of the database that the queue's rows are in."""
        return self._live().database

    def _live(self) -> LiveJobManager:
        # Models cannot be imported before the apps are loaded; this module can.
        from django_alkstore.models import LiveJob

        manager: LiveJobManager = LiveJob.objects.using_alias(self.using)
        return manager

    def _states(self) -> QueueStateManager:
        from django_alkstore.models import QueueState

        manager: QueueStateManager = QueueState.objects.using_alias(self.database)
        return manager


def queue(name: str, using: str | None = None) -> Queue:
    """Return the handle of a queue. It does no I/O."""
    return Queue(name, using)


def _keys(unique_key: UniqueKeys, values: Sequence[object]) -> list[str | None] | None:
    if unique_key is None:
        return None
    if isinstance(unique_key, str):
        raise TypeError(
            "unique_key must be a function of the payload, or a list of keys"
        )
    keys = (
        [unique_key(value) for value in values] if callable(unique_key) else unique_key
    )
    return [rules.check_unique_key(key) for key in keys]
