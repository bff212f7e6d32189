"""Dead letters: their second chance, and their end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import QuerySet

from django_alkstore import clock, sql
from django_alkstore.conf import get_settings
from django_alkstore.managers import moves
from django_alkstore.managers.base import (
    Row,
    SqlManager,
    columns,
    execute_each,
    fetch,
    ids_parameter,
)
from django_alkstore.managers.pruning import delete_in_batches

if TYPE_CHECKING:
    from django_alkstore.models import DeadJob

BATCH = 500
OWN_COLUMNS = ("reason", "last_error", "died_at", "keep_until")


class DeadJobManager(SqlManager["DeadJob"]):
    """``DeadJob.objects``."""

    def requeue(
        self, jobs: Iterable[int] | QuerySet[DeadJob]
    ) -> tuple[list[int], list[int]]:
        """
        Make dead jobs pending again, with new ids and all their attempts.

        Return (new ids, refused ids). Refused are those whose unique key a live job
        holds, and they stay dead; ids that are not dead are left out. In batches, each
        in a transaction of its own outside one of the caller's. The time that a job had
        to start by counts anew.
        """
        ids: Iterable[int] = (
            jobs.values_list("pk", flat=True).iterator(BATCH)
            if isinstance(jobs, QuerySet)
            else jobs
        )
        stored: list[int] = []
        refused: list[int] = []
        batch: list[int] = []
        # A fixed list first: the rows leave the table that the query reads.
        for job_id in list(ids):
            batch.append(job_id)
            if len(batch) == BATCH:
                self._requeue(batch, stored, refused)
                batch = []
        self._requeue(batch, stored, refused)
        return stored, refused

    def _requeue(self, ids: list[int], stored: list[int], refused: list[int]) -> None:
        statements = sql.statements_for(self.database)
        back: list[dict[str, Any]] = []
        new: list[int] = []
        with transaction.atomic(using=self.database):
            rows = fetch(self.database, statements.exhume, {"ids": ids_parameter(ids)})
            jobs = [_dead_columns(row) for row in rows]
            for job in sorted(jobs, key=lambda job: job["id"]):
                inserted = fetch(self.database, statements.requeue, job)
                if inserted:
                    new.append(inserted[0][0])
                else:
                    back.append(job)
            execute_each(self.database, statements.unbury, back)
            kept = {job["id"] for job in back}
            gone = [job["id"] for job in jobs if job["id"] not in kept]
            if gone:
                moves.forget_attempts(self.database, gone)
        stored += new
        refused += [job["id"] for job in back]

    def sweep_retention(self, limit: int | None = None) -> int:
        """
        Delete dead jobs that have been kept long enough, with their attempts.

        By each one's own stamp, else by ``RETENTION["dead"]``. In batches. Return how
        many, at most ``limit``.
        """
        now = self.now()
        own = (
            self.using(self.database).filter(keep_until__lte=now).order_by("keep_until")
        )
        total = delete_in_batches(self.database, own, limit)
        age = get_settings().retention.dead
        if age is None:
            return total
        common = self.using(self.database).filter(
            keep_until__isnull=True, died_at__lte=now - clock.duration(age, "dead")
        )
        left = None if limit is None else limit - total
        return total + delete_in_batches(
            self.database, common.order_by("died_at"), left
        )


def _dead_columns(row: Row) -> dict[str, Any]:
    return columns(row) | dict(zip(OWN_COLUMNS, row[-len(OWN_COLUMNS) :], strict=True))
