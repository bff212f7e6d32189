"""What the command does before there is a worker: checks, log lines, reloading."""

from __future__ import annotations

import atexit
import logging
import os
from typing import NoReturn

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections, router
from django.utils import autoreload
from django.utils.connection import ConnectionDoesNotExist

from django_alkstore import sql
from django_alkstore.exceptions import UnsupportedDatabase
from django_alkstore.models import LiveJob
from django_alkstore.worker.options import WorkerOptions
from django_alkstore.worker.supervisor import KILL_AFTER, Supervisor

PACKAGE = "django_alkstore"


def default_database() -> str:
    """Return the database that jobs are written to."""
    return router.db_for_write(LiveJob)


def existing_database(alias: str | None) -> str:
    """Return the database that a command was told, or the default one."""
    if alias is None:
        return default_database()
    if alias not in connections:
        raise CommandError(f"there is no database {alias!r} in DATABASES")
    return alias


def check_database(alias: str) -> None:
    """Raise ValueError, with a sentence, for a database that no worker can work on."""
    try:
        vendor = sql.vendor_of(alias)
    except ConnectionDoesNotExist as error:
        raise ValueError(f"there is no database {alias!r} in DATABASES") from error
    except UnsupportedDatabase as error:
        raise ValueError(str(error)) from error
    if vendor == "sqlite" and sql.sqlite.in_memory(alias):
        raise ValueError(
            f"the database {alias!r} is in memory, where no other process can see it;"
            " use a file, or django_alkstore.testing.run_jobs() in tests"
        )
    if connections[alias].in_atomic_block:
        raise ValueError(
            "a worker cannot run inside a transaction, as its own connections would see"
            " nothing of it; in a TestCase use django_alkstore.testing.run_jobs()"
        )


def check_tables(alias: str) -> None:
    """
    Raise ValueError, with a sentence, where ``migrate`` has not been run yet.

    For a batch, which would wait for the tables and never end. A database that does not
    answer is no reason: it may be back before long.
    """
    was_open = connections[alias].connection is not None
    try:
        tables = connections[alias].introspection.table_names()
    except DatabaseError:
        return
    finally:
        if not was_open:
            connections[alias].close()
    if LiveJob._meta.db_table not in tables:
        raise ValueError(
            f"the tables of the job queue are not in the database {alias!r}: run"
            " manage.py migrate first"
        )


def say_what_is_wrong(command: BaseCommand, alias: str) -> None:
    """
    Print the warnings of the database checks; they run with no other command of ours.
    """
    was_open = connections[alias].connection is not None
    try:
        command.check(tags=[Tags.database], databases=[alias])
    except DatabaseError as error:
        # Not a reason to end: the worker waits until the database answers.
        command.stderr.write(f"The database {alias!r} does not answer yet: {error}")
    finally:
        # One that was open is the caller's: a test that calls the command, say.
        if not was_open:
            connections[alias].close()


class JobFormatter(logging.Formatter):
    """Names the job in front of what its task wrote with ``context.logger``."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line. The message is made anew for each handler."""
        told = record.__dict__
        if "job_id" in told:
            record.message = (
                f"job={told['job_id']} task={told['job_task']} {record.message}"
            )
        return super().formatMessage(record)


def log_to_stderr(verbosity: int) -> None:
    """
    Show the worker's log lines where a site has not configured any logging for them.

    Verbosity 0 shows errors, 1 what happens to the worker and to jobs that fail, 2 each
    job, 3 everything.
    """
    logger = logging.getLogger(PACKAGE)
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JobFormatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    levels = [logging.ERROR, logging.INFO, logging.INFO, logging.DEBUG]
    logger.setLevel(levels[verbosity])
    if verbosity == 1:
        logging.getLogger(f"{PACKAGE}.signals").setLevel(logging.WARNING)


def run_reloading(options: WorkerOptions, verbosity: int) -> NoReturn:
    """
    Run under Django's reloader, in children that are stopped before the code is loaded
    anew.

    So a change gives back what has not begun, and lets what runs come to its end.
    """

    def supervise() -> None:
        supervisor = Supervisor(options, verbosity=verbosity)
        # The reloader leaves from the main thread; this is a daemon thread beside it.
        atexit.register(supervisor.stop, options.shutdown_timeout + KILL_AFTER)
        status = supervisor.run()
        if status:
            os._exit(status)

    autoreload.run_with_reloader(supervise)
    raise SystemExit(0)
