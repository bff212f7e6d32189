"""``manage.py alkstore_prune``: delete what has been kept long enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from django_alkstore.models import Attempt, DeadJob, Result, Worker
from django_alkstore.worker.starting import existing_database

BATCH = 500


class Command(BaseCommand):
    """
    Prune in batches, each a transaction of its own, so that it may be interrupted.
    """

    help = (
        "Delete results and dead jobs past their time, attempts without a job, and rows"
        " of workers that have gone. Workers do so by themselves, bit by bit."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the options."""
        parser.add_argument("--database", help="Alias. Default: as the router says.")

    def handle(self, *args: Any, **given: Any) -> None:
        """Delete, and print how many rows of each kind went and how many stay."""
        alias = existing_database(given["database"])
        results = Result.objects.db_manager(alias)
        dead = DeadJob.objects.db_manager(alias)
        attempts = Attempt.objects.db_manager(alias)
        workers = Worker.objects.db_manager(alias)
        self._report(
            "results", _all(results.sweep), results.count(), "their result_ttl runs"
        )
        self._report(
            "dead jobs",
            _all(dead.sweep_retention),
            dead.count(),
            'their dead_letter_retention, or RETENTION["dead"], runs',
        )
        gone, after = attempts.sweep_orphans()
        while after:
            more, after = attempts.sweep_orphans(after=after)
            gone += more
        self._report("attempts", gone, attempts.count(), "their job is kept")
        self._report(
            "workers", workers.sweep(), workers.count(), "seen within the last day"
        )

    def _report(self, what: str, gone: int, kept: int, why: str) -> None:
        self.stdout.write(f"{what}: {gone} deleted, {kept} kept ({why})")


def _all(sweep: Callable[[int], int]) -> int:
    total = 0
    while count := sweep(BATCH):
        total += count
    return total
