"""The attempts' history. It is written as jobs settle; here what is left over ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from django_alkstore.managers.base import SqlManager

if TYPE_CHECKING:
    from django_alkstore.models import Attempt


class AttemptManager(SqlManager["Attempt"]):
    """``Attempt.objects``."""

    def sweep_orphans(self, *, after: int = 0, limit: int = 500) -> tuple[int, int]:
        """
        Delete those whose job has no row left, among the next ``limit`` attempts.

        Return how many, and the id to go on ``after``: 0 at the end of the table. So
        one call costs the same however long the table is.

        A job that was released after it had left notes, and then succeeds at its first
        attempt, leaves one behind: looking for it at each ack would cost every job.
        """
        from django_alkstore.models import DeadJob, LiveJob, Result

        alias = self.database
        window = self.using(alias).filter(pk__gt=after).order_by("pk")
        jobs = dict(window.values_list("pk", "job_id")[:limit])
        if not jobs:
            return 0, 0
        kept: set[int] = set()
        for model in (LiveJob, DeadJob, Result):
            rows = model._default_manager.using(alias).filter(pk__in=set(jobs.values()))
            kept.update(rows.values_list("pk", flat=True))
        orphans = [pk for pk, job_id in jobs.items() if job_id not in kept]
        last = max(jobs) if len(jobs) == limit else 0
        if not orphans:
            return 0, last
        with transaction.atomic(using=alias):
            return self.using(alias).filter(pk__in=orphans).delete()[0], last
