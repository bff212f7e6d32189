"""The one expression the migrations need: the database's own clock, in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import BigIntegerField, Func
from django.utils.deconstruct import deconstructible

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler


@deconstructible(path="django_alkstore.sql.expressions.NowMicroseconds")
class NowMicroseconds(Func):
    """
    Now, in microseconds since the epoch: a column default that any language gets.

    SQLite before 3.42 counts milliseconds only, so its last three digits are zero.
    """

    output_field = BigIntegerField()
    allowed_default = True
    arity = 0

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, tuple[Any, ...]]:
        # julianday is exact to the millisecond; ROUND undoes its binary fraction.
        return (
            "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
            " * 1000)",
            (),
        )

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, tuple[Any, ...]]:
        return (
            "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
            (),
        )
