"""The queue's SQL. This is the only place that asks which engine a database is."""

from __future__ import annotations

from typing import Literal, TypeAlias

from django.db import connections

from django_alkstore import clock
from django_alkstore.exceptions import UnsupportedDatabase
from django_alkstore.sql import postgresql, sqlite
from django_alkstore.sql.statements import JOB_COLUMNS, Statements

__all__ = [
    "JOB_COLUMNS",
    "Statements",
    "Vendor",
    "clock_for",
    "raise_counter",
    "statements_for",
    "vendor_of",
]

Vendor: TypeAlias = Literal["sqlite", "postgresql"]

_STATEMENTS: dict[Vendor, Statements] = {
    "sqlite": sqlite.STATEMENTS,
    "postgresql": postgresql.STATEMENTS,
}


def vendor_of(alias: str) -> Vendor:
    """Return the engine of a database. Raise UnsupportedDatabase for any other."""
    connection = connections[alias]
    if connection.vendor == "sqlite":
        return "sqlite"
    if connection.vendor == "postgresql" and _is_psycopg3():
        return "postgresql"
    raise UnsupportedDatabase(
        f"the database {alias!r} ({connection.display_name}) cannot hold the queue:"
        " use SQLite 3.35 or newer, or PostgreSQL with psycopg 3"
    )


def statements_for(alias: str) -> Statements:
    """Return the statements that the database ``alias`` understands."""
    return _STATEMENTS[vendor_of(alias)]


def clock_for(alias: str) -> int | None:
    """
    Return the parameter ``now``: the host's clock for SQLite, None for PostgreSQL's
    own.

    Inside ``clock.pretend`` it is that instant on both.
    """
    pretended = clock.pretended()
    if pretended is None and connections[alias].vendor == "sqlite":
        return clock.host_now()
    return pretended


def raise_counter(alias: str, table: str, least: int) -> None:
    """Let the next id of ``table`` be above ``least``, and never lower the counter."""
    module = sqlite if vendor_of(alias) == "sqlite" else postgresql
    module.raise_counter(alias, table, least)


def _is_psycopg3() -> bool:
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    return is_psycopg3
