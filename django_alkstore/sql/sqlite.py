"""SQLite's statements and PRAGMAs."""

from __future__ import annotations

from typing import Any

from django.db import connections

from django_alkstore.sql.text import Dialect, statements

# One writer at a time, so nothing is ever locked row by row: no SKIP LOCKED. The host's
# clock is handed in as ``now``, because SQLite before 3.42 counts milliseconds only.
DIALECT = Dialect(
    # SQLite stores any bytes as TEXT; the driver raises for what is not UTF-8, and with
    # it for every other row. As bytes each row is decoded by itself.
    text="CAST({column} AS BLOB)",
    now="%(now)s",
    among="id IN ({ids})",
    skip_locked="",
    greatest="MAX",
    claims=(
        "SELECT json_extract(value, '$[0]') AS id,"
        " json_extract(value, '$[1]') AS attempt FROM json_each(%(claims)s)"
    ),
    ids="SELECT value FROM json_each(%(ids)s)",
    # Payloads are JSON strings inside that list, never JSON values: SQLite would turn a
    # big integer into a float.
    payloads=(
        "SELECT NULL AS id, json_extract(value, '$[0]') AS payload,"
        " json_extract(value, '$[1]') AS unique_key FROM json_each(%(rows)s)"
    ),
)

STATEMENTS = statements(DIALECT)


def pragma(alias: str, name: str) -> Any:
    """Return the value of a PRAGMA on Django's connection. ``name`` is a constant."""
    if not name.isidentifier():
        raise ValueError(f"{name!r} is no PRAGMA")
    with connections[alias].cursor() as cursor:
        cursor.execute(f"PRAGMA {name}")
        return cursor.fetchall()[0][0]


def in_memory(alias: str) -> bool:
    """
    Whether the database lives in this process's memory, which no other one can see.
    """
    connection: Any = connections[alias]
    return bool(connection.is_in_memory_db())


def raise_counter(alias: str, table: str, least: int) -> None:
    """Let the next id of ``table`` be above ``least``, and never lower the counter."""
    with connections[alias].cursor() as cursor:
        # AUTOINCREMENT's own table has no row before the first insert.
        cursor.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT %s, 0 WHERE NOT EXISTS"
            " (SELECT 1 FROM sqlite_sequence WHERE name = %s)",
            [table, table],
        )
        cursor.execute(
            "UPDATE sqlite_sequence SET seq = MAX(seq, %s) WHERE name = %s",
            [least, table],
        )
