"""``manage.py alkstore_stats``: what is in the queues."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from django_alkstore.models import DeadJob, LiveJob, QueueState, Worker
from django_alkstore.worker.starting import existing_database

COLUMNS = ("scheduled", "pending", "processing", "dead", "oldest_pending_at", "paused")


class Command(BaseCommand):
    """
    Count the jobs of each queue, and the workers. It reads every row's index entry.
    """

    help = "Print how many jobs each queue has in each state, and how many workers."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the options."""
        parser.add_argument("--json", action="store_true", help="Print a JSON object.")
        parser.add_argument("--database", help="Alias. Default: as the router says.")

    def handle(self, *args: Any, **given: Any) -> None:
        """Print a table, or JSON."""
        alias = existing_database(given["database"])
        live = LiveJob.objects.db_manager(alias)
        names: set[str] = set()
        for rows in (
            LiveJob.objects.using(alias).values_list("queue", flat=True),
            DeadJob.objects.using(alias).values_list("queue", flat=True),
            QueueState.objects.using(alias).values_list("name", flat=True),
        ):
            names.update(rows.order_by().distinct())
        queues = {name: asdict(live.stats(name)) for name in sorted(names)}
        workers = Worker.objects.db_manager(alias).alive().count()
        if given["json"]:
            found = {"queues": queues, "workers": workers}
            self.stdout.write(json.dumps(found, default=datetime.isoformat, indent=2))
            return
        table: list[tuple[str, ...]] = [("queue", *COLUMNS)]
        for name, stats in queues.items():
            table.append((name, *(_cell(stats[column]) for column in COLUMNS)))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())
        self.stdout.write(f"workers alive: {workers}")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    return str(value)
