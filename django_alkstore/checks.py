"""
System checks: what would make jobs wait, fail or get lost, told before it happens.

Those that read settings run with every command. Those that ask a database run where
Django runs its own: with ``migrate`` and with ``check --database``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, Warning
from django.db import connections, router
from django.db.migrations.loader import MigrationLoader

from django_alkstore import sql
from django_alkstore.conf import get_settings, setting_problems
from django_alkstore.exceptions import UnsupportedDatabase

APP = "django_alkstore"
OPTIONS_HINT = (
    'Set in DATABASES[{alias!r}]: "OPTIONS": {{"transaction_mode": "IMMEDIATE",'
    ' "timeout": 20, "init_command": "PRAGMA journal_mode=WAL;'
    ' PRAGMA synchronous=NORMAL"}}.'
)


def register_all() -> None:
    """Register every check here with Django. Registering twice is as good as once."""
    checks.register(check_settings)
    checks.register(check_engine)
    checks.register(check_sqlite_options)
    checks.register(check_pool)
    checks.register(check_sqlite_file, Tags.database)
    checks.register(check_migrated, Tags.database)


def check_settings(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """E001: a problem in the ``ALKSTORE`` setting, one message each."""
    return [
        Error(
            problem,
            hint="The names and their defaults are in docs/reference/settings.md.",
            id=f"{APP}.E001",
        )
        for problem in setting_problems()
    ]


def check_engine(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """E002: the database that jobs are written to cannot hold the queue."""
    alias = _alias()
    try:
        sql.vendor_of(alias)
    except UnsupportedDatabase as error:
        return [
            Error(
                f"{error}.",
                hint=(
                    "Use SQLite, or PostgreSQL with psycopg 3"
                    " (pip install django-alkstore[postgresql]), or let a database"
                    " router send the app django_alkstore to such a database."
                ),
                id=f"{APP}.E002",
            )
        ]
    return []


def check_sqlite_options(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """W001, W002, W003: how connections to an SQLite file begin and wait."""
    alias = _alias()
    if _vendor(alias) != "sqlite" or sql.sqlite.in_memory(alias):
        return []
    settings = connections[alias].settings_dict
    options = settings.get("OPTIONS") or {}
    hint = OPTIONS_HINT.format(alias=alias)
    messages: list[CheckMessage] = []
    if str(options.get("transaction_mode")).upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        messages.append(
            Warning(
                f"Transactions on {alias!r} do not begin with the write lock"
                " (transaction_mode is not IMMEDIATE): one that reads first and then"
                " writes, or enqueues, fails with “database is locked” as soon as"
                " another process has written in between, however long the timeout.",
                hint=hint,
                id=f"{APP}.W001",
            )
        )
    elif settings.get("ATOMIC_REQUESTS"):
        messages.append(
            Warning(
                f"ATOMIC_REQUESTS and transaction_mode IMMEDIATE on {alias!r} together"
                " take the write lock for the whole of every request, also of one that"
                " only reads: requests and workers run one after another.",
                hint=(
                    "Set ATOMIC_REQUESTS to False and put transaction.atomic() around"
                    " the writes, or @transaction.non_atomic_requests on the views that"
                    " only read."
                ),
                id=f"{APP}.W002",
            )
        )
    timeout = options.get("timeout")
    if "busy_timeout" not in str(options.get("init_command")).lower() and (
        timeout is None or timeout < 5
    ):
        wait = "Python's default, 5 s" if timeout is None else f"{timeout:g} s"
        messages.append(
            Warning(
                f"A connection to {alias!r} waits {wait}, for the write lock before it"
                " fails with “database is locked”. A migration, a backup or a long"
                " transaction holds it for longer.",
                hint=hint,
                id=f"{APP}.W003",
            )
        )
    return messages


def check_pool(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """W004: a connection pool that is too small for a worker's threads."""
    alias = _alias()
    if setting_problems() or _vendor(alias) != "postgresql":
        return []
    pool = (connections[alias].settings_dict.get("OPTIONS") or {}).get("pool")
    if not pool:
        return []
    given = {} if pool is True else pool
    # psycopg's pool holds four connections, and no more than its least unless told.
    size = given.get("max_size") or given.get("min_size", 4)
    needed = get_settings().threads + 2
    if size >= needed:
        return []
    return [
        Warning(
            f"The connection pool of {alias!r} holds {size}, and a worker with"
            f" {needed - 2} threads wants up to {needed}: jobs wait for connections.",
            hint=(
                f'Set DATABASES[{alias!r}]["OPTIONS"]["pool"] to'
                f' {{"max_size": {needed}}} or more, or lower ALKSTORE["THREADS"].'
            ),
            id=f"{APP}.W004",
        )
    ]


def check_sqlite_file(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """W005, W006: the journal and the durability of an SQLite file."""
    alias = _alias()
    if alias not in (databases or ()) or _vendor(alias) != "sqlite":
        return []
    if sql.sqlite.in_memory(alias):
        return []
    messages: list[CheckMessage] = []
    mode = sql.sqlite.pragma(alias, "journal_mode")
    if mode != "wal":
        messages.append(
            Warning(
                f"The SQLite file of {alias!r} is not in WAL mode (journal_mode is"
                f" {mode}): readers and writers block each other.",
                hint=OPTIONS_HINT.format(alias=alias),
                id=f"{APP}.W005",
            )
        )
    if sql.sqlite.pragma(alias, "synchronous") == 0:
        messages.append(
            Warning(
                f"{alias!r} runs with PRAGMA synchronous=OFF: a power loss may lose"
                " jobs that were committed, or the whole file.",
                hint="Use NORMAL, or FULL to keep every commit through a power loss.",
                id=f"{APP}.W006",
            )
        )
    return messages


def check_migrated(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """W007: migrations of this app that have not been applied."""
    alias = _alias()
    if alias not in (databases or ()) or _vendor(alias) is None:
        return []
    loader = MigrationLoader(connections[alias])
    missing = sorted(
        name
        for app, name in loader.graph.nodes
        if app == APP and (app, name) not in loader.applied_migrations
    )
    if not missing:
        return []
    # No error: Django checks before it migrates, and an error would keep it from that.
    return [
        Warning(
            f"The tables of the job queue are not up to date in {alias!r}: not applied"
            f" is {', '.join(missing)}.",
            hint="Run manage.py migrate; before its first run this is as it should be.",
            id=f"{APP}.W007",
        )
    ]


def _alias() -> str:
    """Return the database that jobs are written to, as the router says."""
    from django_alkstore.models import LiveJob

    return router.db_for_write(LiveJob)


def _vendor(alias: str) -> str | None:
    try:
        return sql.vendor_of(alias)
    except UnsupportedDatabase:
        return None
