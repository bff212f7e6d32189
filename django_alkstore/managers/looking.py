"""Reading a job or a queue, for people and for callers. Nothing here changes a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.db.models import Count, Min, Q

from django_alkstore.jobs import (
    AttemptSnapshot,
    JobSnapshot,
    JobState,
    QueueStats,
)
from django_alkstore.managers.base import ModelT, SqlManager
from django_alkstore.payload import loads
from django_alkstore.sql import JOB_COLUMNS


class Looking(SqlManager[ModelT]):
    """get_job, stats."""

    def get_job(self, job_id: int) -> JobSnapshot | None:
        """
        Return a job in whichever table it is, or None when there is none.

        A finished job is known while its result is kept. Database errors are raised.
        """
        from django_alkstore.models import Attempt, DeadJob, LiveJob, Result

        alias = self.database
        # In the order in which a row moves, so that none is missed between two looks.
        live = LiveJob.objects.using(alias).filter(pk=job_id).first()
        dead = result = None
        if live is None:
            dead = DeadJob.objects.using(alias).filter(pk=job_id).first()
            if dead is None:
                # One past its lifetime is gone, whether it has been swept or not.
                result = (
                    Result.objects.using(alias)
                    .filter(pk=job_id, keep_until__gt=self.now())
                    .first()
                )
        row = live or dead or result
        if row is None:
            return None
        attempts = Attempt.objects.using(alias).filter(job_id=job_id)
        state: JobState = "dead" if dead else "finished"
        more: dict[str, Any] = {}
        if live is not None:
            state = cast(JobState, live.state)
        elif dead is not None:
            more = {
                "reason": dead.reason,
                "last_error": dead.last_error,
                "died_at": dead.died_at,
            }
        elif result is not None:
            value, result_readable = _decoded(result.decoded_value)
            more = {
                "has_result": True,
                "result": value,
                "result_readable": result_readable,
                "finished_at": result.finished_at,
            }
        columns = {
            name: getattr(row, name) for name in JOB_COLUMNS if name != "payload"
        }
        payload, readable = _decoded(row.decoded_payload)
        return JobSnapshot(
            state=state,
            payload=payload,
            payload_text=row.payload,
            readable=readable,
            attempts_history=tuple(
                _attempt(attempt) for attempt in attempts.order_by("attempt")
            ),
            **columns,
            **more,
        )

    def stats(self, queue: str) -> QueueStats:
        """Count the jobs of a queue by state. Its cost is per job of the queue."""
        from django_alkstore.models import DeadJob, LiveJob, QueueState

        alias = self.database
        live = LiveJob.objects.using(alias).filter(queue=queue)
        counts = live.aggregate(
            scheduled=Count("pk", filter=Q(state=LiveJob.State.SCHEDULED)),
            pending=Count("pk", filter=Q(state=LiveJob.State.PENDING)),
            processing=Count("pk", filter=Q(state=LiveJob.State.PROCESSING)),
            oldest_pending_at=Min("run_at", filter=Q(state=LiveJob.State.PENDING)),
        )
        return QueueStats(
            **counts,
            dead=DeadJob.objects.using(alias).filter(queue=queue).count(),
            paused=QueueState.objects.db_manager(alias).is_paused(queue),
        )


def _decoded(decode: Callable[[], Any]) -> tuple[Any, bool]:
    """Return a value and True, or None and False where its text is no JSON."""
    try:
        return decode(), True
    except ValueError:
        return None, False


def _attempt(row: Any) -> AttemptSnapshot:
    progress = row.progress
    return AttemptSnapshot(
        attempt=row.attempt,
        worker_id=row.worker_id,
        started_at=row.started_at,
        ended_at=row.ended_at,
        exception_class=row.exception_class,
        message=row.message,
        traceback=row.traceback,
        progress=None if progress is None else _decoded(lambda: loads(progress))[0],
        log=row.log,
    )
