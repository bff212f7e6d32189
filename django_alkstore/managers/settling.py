"""
How a claim ends: ack, retry, fail, snooze, release, or cancelled from outside.

Every statement is fenced by job, worker, attempt and expiry, so an old receipt settles
nothing: zero rows is "lost", which is no error. Database errors are raised.

    processing --ack--> gone, or a result     --retry--> scheduled or pending, or dead
               --fail--> dead                 --snooze, release--> waits, attempt unspent
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

from django.db import transaction

from django_alkstore import sql
from django_alkstore.jobs import ClaimedJob, Failure, Notes
from django_alkstore.managers import moves
from django_alkstore.managers.base import ModelT, Row, SqlManager, fetch

RetryOutcome: TypeAlias = Literal["retried", "dead", "lost"]
_NOTHING: Mapping[int, Notes] = MappingProxyType({})


class Settling(SqlManager[ModelT]):
    """heartbeat, ack, retry, fail, snooze, release, cancel."""

    def heartbeat_many(
        self, jobs: Sequence[ClaimedJob], extend: int | None = None
    ) -> dict[int, int]:
        """
        Extend valid claims by their own stamps, or by ``extend`` microseconds.

        Never to an earlier end. Return the new ends of those that are still held.
        """
        statement = sql.statements_for(self.database).heartbeat
        ends: dict[int, int] = {}
        for worker_id, ours in _by_worker(jobs).items():
            parameters = {
                "claims": moves.claims_parameter(ours),
                "worker_id": worker_id,
                "extend": extend,
            }
            ends.update(dict(fetch(self.database, statement, parameters)))
        for job in jobs:
            if job.id in ends:
                job.claim_expires_at_us = ends[job.id]
        return ends

    def heartbeat(self, job: ClaimedJob, extend: int | None = None) -> bool:
        """Extend one claim, as ``heartbeat_many``."""
        return bool(self.heartbeat_many([job], extend))

    def write_notes(self, notes: Sequence[tuple[ClaimedJob, Notes]]) -> None:
        """Write progress and log lines of attempts that still run."""
        with transaction.atomic(using=self.database):
            moves.note_attempts(
                self.database, [moves.note(job, each, None) for job, each in notes]
            )

    def ack_many(
        self,
        jobs: Sequence[ClaimedJob],
        *,
        results: Mapping[int, str] = MappingProxyType({}),
        notes: Mapping[int, Notes] = _NOTHING,
    ) -> set[int]:
        """
        Finish jobs. Return the ids of those whose claim still stood.

        A job with a ``result_ttl`` leaves a result: its JSON text in ``results``, else
        null. ``notes`` names the jobs that left progress or log lines.
        """
        plain = [job for job in jobs if job.result_ttl_us is None]
        kept = [job for job in jobs if job.result_ttl_us is not None]
        known = [job for job in plain if job.attempts > 1 or job.id in notes]
        if not kept and not known:
            return self._delete(plain)
        with transaction.atomic(using=self.database):
            done = self._delete(plain)
            forgotten = [job.id for job in known if job.id in done]
            if forgotten:
                moves.forget_attempts(self.database, forgotten)
            return done | self._finish(kept, results, notes)

    def ack(
        self, job: ClaimedJob, result: str | None = None, *, lapsed_ok: bool = False
    ) -> bool:
        """
        Finish one job; ``result`` is JSON text.

        ``lapsed_ok`` is the fence of a transactional task: job, worker and attempt.
        While its attempt is on the row nobody else has run it, whatever the clock says.
        """
        results = {} if result is None else {job.id: result}
        if not lapsed_ok:
            return bool(self.ack_many([job], results=results))
        with transaction.atomic(using=self.database):
            rows = self._take([job], sql.statements_for(self.database).take_attempt)
            if rows and job.result_ttl_us is not None:
                moves.save_results(self.database, [(rows[0], result or "null")])
                moves.end_attempts(self.database, [job])
            elif rows:
                moves.forget_attempts(self.database, [job.id])
            return bool(rows)

    def retry(
        self,
        job: ClaimedJob,
        *,
        delay: int,
        failure: Failure,
        notes: Notes | None = None,
    ) -> RetryOutcome:
        """
        Put a job back to be tried again after ``delay`` microseconds.

        With its attempts spent it dies as exhausted. The attempt is written down.
        """
        if job.attempts >= job.max_attempts:
            dead = self.fail(job, failure=failure, reason="exhausted", notes=notes)
            return "dead" if dead else "lost"
        with transaction.atomic(using=self.database):
            statement = sql.statements_for(self.database).retry
            parameters = {
                "claims": moves.claims_parameter([job]),
                "worker_id": job.worker_id,
                "delay": delay,
            }
            if not fetch(self.database, statement, parameters):
                return "lost"
            moves.note_attempts(self.database, [moves.note(job, notes, failure)])
        return "retried"

    def fail(
        self,
        job: ClaimedJob,
        *,
        failure: Failure,
        reason: str = "failed",
        notes: Notes | None = None,
    ) -> bool:
        """Let a job die now. The attempt is written down. False when it is not ours."""
        with transaction.atomic(using=self.database):
            rows = self._take([job], sql.statements_for(self.database).take)
            if rows:
                moves.bury(self.database, rows, reason=reason, error=failure.summary)
                moves.note_attempts(self.database, [moves.note(job, notes, failure)])
        return bool(rows)

    def snooze(self, job: ClaimedJob, delay: int) -> bool:
        """Put a job back for ``delay`` microseconds; the attempt is not spent."""
        return bool(self._release([job], delay))

    def release_many(self, jobs: Sequence[ClaimedJob]) -> set[int]:
        """Give jobs back at once, the attempt unspent. Return the ids still ours."""
        return self._release(jobs, 0)

    def cancel(self, job_id: int) -> bool:
        """
        Let a job die as cancelled, whatever its state. False when it is not live.

        One that runs is told at its next heartbeat, and its ack is refused.
        """
        with transaction.atomic(using=self.database):
            statement = sql.statements_for(self.database).cancel
            rows = fetch(self.database, statement, {"id": job_id})
            moves.bury(
                self.database, rows, reason="cancelled", error="it was cancelled"
            )
        return bool(rows)

    def _delete(self, jobs: Sequence[ClaimedJob]) -> set[int]:
        rows = self._take(jobs, sql.statements_for(self.database).ack)
        return {job_id for (job_id,) in rows}

    def _finish(
        self,
        jobs: Sequence[ClaimedJob],
        results: Mapping[int, str],
        notes: Mapping[int, Notes],
    ) -> set[int]:
        rows = self._take(jobs, sql.statements_for(self.database).take)
        done = {row[0] for row in rows}
        moves.save_results(
            self.database, [(row, results.get(row[0], "null")) for row in rows]
        )
        noted = [job for job in jobs if job.id in done and job.id in notes]
        if noted:
            moves.note_attempts(
                self.database, [moves.note(job, notes[job.id], None) for job in noted]
            )
            moves.end_attempts(self.database, noted)
        return done

    def _release(self, jobs: Sequence[ClaimedJob], delay: int) -> set[int]:
        statement = sql.statements_for(self.database).release
        return {row[0] for row in self._take(jobs, statement, delay=delay)}

    def _take(
        self, jobs: Sequence[ClaimedJob], statement: str, **more: int
    ) -> list[Row]:
        """Run a fenced statement over jobs, once for each worker that holds some."""
        rows: list[Row] = []
        for worker_id, ours in _by_worker(jobs).items():
            parameters = {
                "claims": moves.claims_parameter(ours),
                "worker_id": worker_id,
                **more,
            }
            rows += fetch(self.database, statement, parameters)
        return rows


def _by_worker(jobs: Sequence[ClaimedJob]) -> dict[str, list[ClaimedJob]]:
    workers: dict[str, list[ClaimedJob]] = {}
    for job in jobs:
        workers.setdefault(job.worker_id, []).append(job)
    return workers
