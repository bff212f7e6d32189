"""``manage.py alkstore_worker``: run jobs."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from django_alkstore.conf import get_settings
from django_alkstore.worker.options import WorkerOptions
from django_alkstore.worker.starting import (
    check_database,
    check_tables,
    default_database,
    log_to_stderr,
    run_reloading,
    say_what_is_wrong,
)
from django_alkstore.worker.supervisor import SUPERVISOR_VARIABLE, Supervisor
from django_alkstore.worker.worker import Worker


class Command(BaseCommand):
    """Parse, build, run."""

    help = "Run jobs until SIGTERM or SIGINT; a second one ends it at once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the options. Those left out are taken from the ALKSTORE setting."""
        add = parser.add_argument
        add("--queues", help="Comma-separated names, or prefix*. Default: every queue.")
        add("--exclude", help="Comma-separated names, or prefix*, to leave out.")
        add("--threads", type=int, help="How many jobs of plain functions at a time.")
        add("--processes", type=int, help="How many worker processes.")
        add("--batch", action="store_true", help="Run what is due, then exit with 0.")
        add("--max-jobs", type=int, help="End each process after so many jobs.")
        add("--max-memory", type=int, help="End each process over so many megabytes.")
        add("--shutdown-timeout", type=float, help="Seconds that jobs have to end.")
        add("--poll-interval", type=float, help="Seconds between looks without a wake.")
        add("--reload", action="store_true", help="Start again when the code changes.")
        add("--database", help="Alias of the database. Default: as the router says.")

    def handle(self, *args: Any, **given: Any) -> None:
        """Run until stopped. The exit status is 0 unless something went wrong."""
        names = (
            "queues", "exclude", "threads", "processes", "batch", "max_jobs",
            "max_memory", "shutdown_timeout", "poll_interval",
        )  # fmt: skip
        verbosity: int = given["verbosity"]
        supervisor = os.environ.pop(SUPERVISOR_VARIABLE, None)
        try:
            options = WorkerOptions.build(
                get_settings(),
                database=given["database"] or default_database(),
                **{name: given[name] for name in names},
            )
            check_database(options.database)
            if options.batch:
                check_tables(options.database)
        except ValueError as error:
            raise CommandError(str(error)) from error
        log_to_stderr(verbosity)
        if supervisor is None:
            say_what_is_wrong(self, options.database)
        if given["reload"]:
            run_reloading(options, verbosity)
        elif options.processes > 1:
            status = Supervisor(options, verbosity=verbosity).run()
        else:
            parent = None if supervisor is None else int(supervisor)
            status = Worker(options, supervisor=parent).run()
        if status:
            sys.exit(status)
