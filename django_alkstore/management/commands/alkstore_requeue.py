"""``manage.py alkstore_requeue``: give dead jobs a second chance."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from django_alkstore.models import DeadJob
from django_alkstore.worker.starting import existing_database

BATCH = 1_000
FILTERS = ("queue", "task", "reason")


class Command(BaseCommand):
    """Choose dead jobs and requeue them, in batches."""

    help = "Make dead jobs pending again, with new ids and all their attempts."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the options. Something has to choose the jobs."""
        parser.add_argument("ids", nargs="*", type=int, help="Ids of dead jobs.")
        parser.add_argument("--queue", help="Those of a queue.")
        parser.add_argument("--task", help="Those of a task, by its name.")
        parser.add_argument("--reason", help="Those that died so, as exhausted.")
        parser.add_argument("--all", action="store_true", help="Every dead job.")
        parser.add_argument("--database", help="Alias. Default: as the router says.")

    def handle(self, *args: Any, **given: Any) -> None:
        """Requeue, and print how many were, and how many were refused and why."""
        manager = DeadJob.objects.db_manager(existing_database(given["database"]))
        chosen = {name: given[name] for name in FILTERS if given[name] is not None}
        if given["ids"]:
            chosen["pk__in"] = given["ids"]
        if not chosen and not given["all"]:
            raise CommandError("say which: ids, --queue, --task, --reason or --all")
        stored = refused = last = 0
        # By id, so that those which stay dead are passed only once.
        while ids := list(
            manager.filter(**chosen, pk__gt=last)
            .order_by("pk")
            .values_list("pk", flat=True)[:BATCH]
        ):
            new, kept = manager.requeue(ids)
            stored, refused, last = stored + len(new), refused + len(kept), ids[-1]
            if len(ids) == BATCH and given["verbosity"] > 0:
                self.stdout.write(f"{stored} requeued so far")
        self.stdout.write(
            f"{stored} requeued, {refused} refused (a live job holds their unique key)"
        )
