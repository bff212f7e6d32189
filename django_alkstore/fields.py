"""
The two model fields behind every time in the tables.

Both are BIGINT columns of microseconds, on each engine alike, so that one SQL text with
arithmetic over a row's own columns serves both. Python sees datetimes and timedeltas,
in filters, ordering, forms and the admin.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.dateparse import parse_datetime, parse_duration
from django.utils.translation import gettext_lazy as _

from django_alkstore import clock

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.expressions import Expression

    InstantBase = models.Field[datetime | None, datetime | None]
    SpanBase = models.Field[timedelta | None, timedelta | None]
else:
    InstantBase = SpanBase = models.Field

T = TypeVar("T")


class InstantField(InstantBase):
    """
    An instant: microseconds since the epoch in the column, a datetime in Python.

    Aware where ``USE_TZ`` is on; a naive value is then refused with ValueError.
    """

    description = _("Instant, with microseconds")
    default_error_messages = {"invalid": _("“%(value)s” is not a date and time.")}

    def get_internal_type(self) -> str:
        return "BigIntegerField"

    def from_db_value(
        self, value: Any, expression: Expression, connection: BaseDatabaseWrapper
    ) -> datetime | None:
        # A column that raw SQL filled with text is a broken row: int() says so.
        return None if value is None else clock.to_instant(int(value))

    def to_python(self, value: Any) -> datetime | None:
        return _read(self, value, datetime, clock.to_instant, parse_datetime)

    def get_prep_value(self, value: Any) -> Any:
        return _prepare(self, super().get_prep_value(value), clock.from_instant)

    def value_to_string(self, obj: models.Model) -> str:
        value = self.value_from_object(obj)
        return "" if value is None else value.isoformat()

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": forms.DateTimeField, **kwargs})


class SpanField(SpanBase):
    """
    A length of time: microseconds in the column, a timedelta in Python.

    Django's DurationField is an interval on PostgreSQL, with which an instant in
    microseconds cannot be added; this one is BIGINT on both engines.
    """

    description = _("Length of time, with microseconds")
    default_error_messages = {"invalid": _("“%(value)s” is not a length of time.")}

    def get_internal_type(self) -> str:
        return "BigIntegerField"

    def from_db_value(
        self, value: Any, expression: Expression, connection: BaseDatabaseWrapper
    ) -> timedelta | None:
        return None if value is None else _span(int(value))

    def to_python(self, value: Any) -> timedelta | None:
        return _read(self, value, timedelta, _span, parse_duration)

    def get_prep_value(self, value: Any) -> Any:
        return _prepare(self, super().get_prep_value(value), clock.duration)

    def value_to_string(self, obj: models.Model) -> str:
        value = self.value_from_object(obj)
        return "" if value is None else str(value)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": forms.DurationField, **kwargs})


def _span(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


def _read(
    field: models.Field[Any, Any],
    value: Any,
    kind: type[T],
    of_integer: Callable[[int], T],
    parse: Callable[[str], T | None],
) -> T | None:
    """Return the Python value of what a form, a fixture or the column gives."""
    if value is None or isinstance(value, kind):
        return value
    if isinstance(value, int):
        return of_integer(value)
    try:
        parsed = parse(str(value))
    except ValueError:
        parsed = None
    if parsed is None:
        raise ValidationError(
            field.error_messages["invalid"], code="invalid", params={"value": value}
        )
    return parsed


def _prepare(
    field: models.Field[Any, Any], value: Any, to_integer: Callable[[Any, str], int]
) -> Any:
    """Return the column's integer; expressions pass through."""
    if value is None or isinstance(value, int) or hasattr(value, "as_sql"):
        return value
    prepared = field.to_python(value)
    return None if prepared is None else to_integer(prepared, field.name)
