"""
The one helper that keeps ids from being used again.

A dead or result row keeps the id that it had in the live table, so the live table's
counter has to stay above all three. SQLite forgets it when a migration rebuilds an
empty table, a flush resets it, and a move between databases starts a new one: each of
them ends here.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Max

from django_alkstore import sql
from django_alkstore.exceptions import UnsupportedDatabase


def raise_counter(alias: str) -> int:
    """
    Let the next job's id be above every id in the database ``alias``; return the
    highest.
    """
    from django_alkstore.models import Attempt, DeadJob, LiveJob, Result

    highest = 0
    for model in (LiveJob, DeadJob, Result):
        found = model._default_manager.using(alias).aggregate(highest=Max("pk"))
        highest = max(highest, found["highest"] or 0)
    # An attempt that outlived its job's row must not become another job's.
    found = Attempt._default_manager.using(alias).aggregate(highest=Max("job_id"))
    highest = max(highest, found["highest"] or 0)
    if highest:
        sql.raise_counter(alias, LiveJob._meta.db_table, highest)
    return highest


def after_migrate(*, using: str, **kwargs: Any) -> None:
    """Raise the counter after ``migrate`` and ``flush``: a receiver of post_migrate."""
    from django.db import connections, router

    from django_alkstore.models import LiveJob

    if not router.allow_migrate_model(using, LiveJob):
        return
    try:
        sql.vendor_of(using)
    except UnsupportedDatabase:
        return
    # A migration plan that stops before ours leaves the tables out.
    tables = set(connections[using].introspection.table_names())
    if {"__alkstore_live", "__alkstore_dead", "__alkstore_results"} <= tables:
        raise_counter(using)
