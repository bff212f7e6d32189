"""What the managers share: the database they write to, and how they run a statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import connections, models, router

from django_alkstore import sql

ModelT = TypeVar("ModelT", bound=models.Model)
Row = tuple[Any, ...]


class SqlManager(models.Manager[ModelT]):
    """
    A manager whose statements are raw SQL on the database the model is written to.

    The few writes through the ORM stand in a savepoint of their own: without it one
    that fails would doom the caller's whole transaction.
    """

    @property
    def database(self) -> str:
        """
        The database: the one of ``using``, else where the router writes the model.
        """
        return self._db or router.db_for_write(self.model)

    def now(self) -> int:
        """Return the queue's clock, in microseconds."""
        now: int = fetch(self.database, sql.statements_for(self.database).now, {})[0][0]
        return now

    def using_alias(self, alias: str | None) -> Any:
        """Return this manager for a database; None leaves it to the router."""
        return self if alias is None else self.db_manager(alias)


def fetch(alias: str, statement: str, parameters: Mapping[str, Any]) -> list[Row]:
    """Run a statement that returns rows, and fetch them to their end."""
    # An unread RETURNING would block the next COMMIT or SAVEPOINT on SQLite.
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, {"now": sql.clock_for(alias), **parameters})
        rows: list[Row] = cursor.fetchall()
        return rows


def execute(alias: str, statement: str, parameters: Mapping[str, Any]) -> int:
    """Run a statement that returns nothing. Return how many rows it touched."""
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, {"now": sql.clock_for(alias), **parameters})
        touched: int = cursor.rowcount
        return touched


def execute_each(
    alias: str, statement: str, parameters: Iterable[Mapping[str, Any]]
) -> None:
    """Run a statement once for each set of parameters."""
    now = sql.clock_for(alias)
    rows = [{"now": now, **each} for each in parameters]
    if rows:
        with connections[alias].cursor() as cursor:
            cursor.executemany(statement, rows)


def columns(row: Sequence[Any]) -> dict[str, Any]:
    """
    Return a row of job columns by name, fit to be the parameters of an INSERT.

    Text that is not UTF-8 is escaped: the row is kept for somebody to read.
    """
    return {
        name: value.decode(errors="backslashreplace")
        if isinstance(value, bytes)
        else value
        for name, value in zip(sql.JOB_COLUMNS, row, strict=False)
    }


def ids_parameter(ids: Iterable[int]) -> str:
    """Return the JSON list of ids that a statement's ``ids`` takes."""
    return json.dumps(list(ids))
