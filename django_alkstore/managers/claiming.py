"""
The claim, and what is moved so that it stays one cheap statement.

A claim takes pending rows only, by an index of their own. What else could be claimed is
made pending first, in the same transaction and at most so many rows a claim: scheduled
jobs that are due, and jobs whose claim has lapsed. What must not be claimed dies first:
jobs whose last attempt lapsed, and jobs past their expiry. So the cost of a claim
depends on its size alone, whatever waits, runs or lies dead beside it.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from django_alkstore import clock, sql
from django_alkstore.jobs import ClaimedJob, Failure, QueueSurvey
from django_alkstore.managers import moves
from django_alkstore.managers.base import (
    ModelT,
    Row,
    SqlManager,
    columns,
    execute,
    fetch,
)

BOUND = 256
SWEEP = 500


class Claiming(SqlManager[ModelT]):
    """survey, claim, sweep_expired, next_claim_at."""

    def survey(self) -> list[QueueSurvey]:
        """
        Look at every unpaused queue that has work for a worker, by name.

        One statement, no transaction and no write lock. Its cost is per queue.
        """
        statement = sql.statements_for(self.database).survey
        queues = []
        for name, pending, expired, *times, now in fetch(self.database, statement, {}):
            known = [at for at in times if at is not None]
            later = [at for at in known if at > now]
            next_at = min(later, default=None)
            queues.append(
                QueueSurvey(
                    name=name,
                    pending=bool(pending),
                    upkeep=expired is not None or len(later) < len(known),
                    next_at=next_at,
                    wait=None if next_at is None else next_at - now,
                )
            )
        return sorted(queues, key=lambda queue: queue.name)

    def claim(
        self,
        queue: str,
        *,
        worker_id: str,
        limit: int,
        raw: bool,
        slots: int | None = None,
        upkeep: bool = True,
    ) -> list[ClaimedJob]:
        """
        Take up to ``limit`` jobs and hold each for its own visibility timeout.

        Sorted by priority, highest first, then run_at, then id. Raw jobs, or jobs with
        a task. At most ``slots`` of them are on their last attempt: from the first one
        over it on, the rest is given back. ``upkeep=False`` leaves out the look for
        rows that have to be moved first. Empty when nothing is due or the queue is
        paused. Passes over rows that another worker is taking on PostgreSQL; waits its
        turn to write on SQLite. A row that cannot be decoded goes dead as invalid.
        """
        moving = upkeep and self._needs_upkeep(queue)
        if not moving and slots is None:
            return self._claim(queue, worker_id, limit, raw)
        with transaction.atomic(using=self.database):
            if moving:
                self._upkeep(queue, max(BOUND, 4 * limit))
            jobs = self._claim(queue, worker_id, limit, raw)
            return jobs if slots is None else self._within(jobs, slots)

    def sweep_expired(self, queue: str, limit: int | None = None) -> int:
        """
        Let jobs die that are past their expiry, or whose last attempt lapsed.

        Those that wait, and those that no valid claim holds. In batches, each in its
        own transaction outside one of the caller's. Return how many, at most ``limit``.
        """
        total = 0
        while limit is None or total < limit:
            size = SWEEP if limit is None else min(SWEEP, limit - total)
            with transaction.atomic(using=self.database):
                moved = self._exhaust(queue, size)
                if moved < size:
                    moved += self._expire(queue, size - moved)
            total += moved
            if moved < size:
                break
        return total

    def next_claim_at(self, queue: str) -> datetime | None:
        """
        Return when a claim of raw jobs could return something; None if never.

        It is already past if one can now. A paused queue has none.
        """
        statement = sql.statements_for(self.database).next_claim_at
        (at,) = fetch(self.database, statement, {"queue": queue})[0]
        return None if at is None else clock.to_instant(at)

    def _claim(
        self, queue: str, worker_id: str, limit: int, raw: bool
    ) -> list[ClaimedJob]:
        alias = self.database
        statements = sql.statements_for(alias)
        rows = fetch(
            alias,
            statements.claim_raw if raw else statements.claim_task,
            {"queue": queue, "worker_id": worker_id, "limit": limit},
        )
        jobs = []
        broken: list[tuple[Row, ValueError]] = []
        for row in rows:
            try:
                jobs.append(ClaimedJob(row, alias))
            except ValueError as error:
                broken.append((row, error))
        for row, why in broken:
            self._refuse(row, why)
        # RETURNING gives rows in any order.
        jobs.sort(key=_order)
        return jobs

    def _refuse(self, row: Row, why: ValueError) -> None:
        """
        Let a job die that cannot be decoded, its text kept, and its neighbours run.
        """
        values = columns(row)
        reason = Failure.said(f"the row cannot be decoded: {why}")
        with transaction.atomic(using=self.database):
            taken = fetch(
                self.database,
                sql.statements_for(self.database).take_attempt,
                {
                    "claims": f"[[{values['id']}, {values['attempts']}]]",
                    "worker_id": values["worker_id"],
                },
            )
            moves.bury(self.database, taken, reason="invalid", error=reason.message)

    def _within(self, jobs: list[ClaimedJob], slots: int) -> list[ClaimedJob]:
        for place, job in enumerate(jobs):
            if job.attempts < job.max_attempts:
                continue
            if slots == 0:
                self._give_back(jobs[place:])
                return jobs[:place]
            slots -= 1
        return jobs

    def _give_back(self, jobs: list[ClaimedJob]) -> None:
        fetch(
            self.database,
            sql.statements_for(self.database).release,
            {
                "claims": moves.claims_parameter(jobs),
                "worker_id": jobs[0].worker_id,
                "delay": 0,
            },
        )

    def _needs_upkeep(self, queue: str) -> bool:
        # Read outside the transaction: on SQLite one that began with a read could fail
        # to write after another process has written.
        statement = sql.statements_for(self.database).probe
        (found,) = fetch(self.database, statement, {"queue": queue})
        return any(instant is not None for instant in found)

    def _upkeep(self, queue: str, bound: int) -> None:
        self._exhaust(queue, bound)
        self._expire(queue, bound)
        self._reclaim(queue, bound)
        statement = sql.statements_for(self.database).promote
        execute(self.database, statement, {"queue": queue, "limit": bound})

    def _exhaust(self, queue: str, limit: int) -> int:
        statement = sql.statements_for(self.database).exhaust
        rows = fetch(self.database, statement, {"queue": queue, "limit": limit})
        self._note_lapsed(rows)
        moves.bury(self.database, rows, reason="exhausted", error=moves.LAPSED.summary)
        return len(rows)

    def _expire(self, queue: str, limit: int) -> int:
        statement = sql.statements_for(self.database).expire
        rows = fetch(self.database, statement, {"queue": queue, "limit": limit})
        self._note_lapsed(rows)
        error = "its time (expires_at) was up before it could be run to its end"
        moves.bury(self.database, rows, reason="expired", error=error)
        return len(rows)

    def _note_lapsed(self, rows: list[Row]) -> None:
        """Write down the attempts of deleted jobs that a worker held when it went."""
        held = [job for row in rows if (job := columns(row))["claimed_at"] is not None]
        moves.note_lapsed(
            self.database,
            [
                (job["id"], job["attempts"], job["worker_id"], job["claimed_at"])
                for job in held
            ],
        )

    def _reclaim(self, queue: str, limit: int) -> None:
        statement = sql.statements_for(self.database).reclaim
        rows = fetch(self.database, statement, {"queue": queue, "limit": limit})
        moves.note_lapsed(self.database, [row[:4] for row in rows])


def _order(job: ClaimedJob) -> tuple[int, int, int]:
    return (-job.priority, job.run_at_us, job.id)
