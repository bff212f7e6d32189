"""``manage.py alkstore_health``: an exit status for a container's probe."""

from __future__ import annotations

import socket
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from django_alkstore.models import Worker
from django_alkstore.worker.starting import existing_database


class Command(BaseCommand):
    """Say whether jobs are being worked on."""

    help = "Exit with 0 if a worker is alive, else with 1 and the reason."
    # A probe runs every few seconds and has nothing to do with the rest of the site.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the options."""
        parser.add_argument(
            "--here", action="store_true", help="Count workers of this host alone."
        )
        parser.add_argument("--database", help="Alias. Default: as the router says.")

    def handle(self, *args: Any, **given: Any) -> None:
        """Count the workers that were seen within WORKER_TTL."""
        alias = existing_database(given["database"])
        try:
            workers = Worker.objects.db_manager(alias).alive()
            if given["here"]:
                workers = workers.filter(host=socket.gethostname()[:255])
            count = workers.count()
        except DatabaseError as error:
            raise CommandError(f"the database does not answer: {error}") from error
        where = " on this host" if given["here"] else ""
        if not count:
            raise CommandError(f"no worker is alive{where}")
        self.stdout.write(f"workers alive{where}: {count}")
