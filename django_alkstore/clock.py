"""
Instants and durations, where Python's types meet the integers in the tables.

In the tables an instant is the number of microseconds since the Unix epoch, UTC, and a
duration is a number of microseconds. In Python an instant is an aware datetime (a naive
one in the default time zone where ``USE_TZ`` is off, as everywhere in Django), and a
duration is a number of seconds or a timedelta.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils import timezone

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Seven thousand years: added to any present instant it stays within datetime's range.
MAX_DURATION = 7_000 * 365 * 24 * 3_600 * SECOND
# A day inside datetime's range at both ends, so that no time zone pushes it out.
MIN_INSTANT = (datetime(1, 1, 2, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
MAX_INSTANT = (datetime(9999, 12, 30, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


_pretended: ContextVar[int | None] = ContextVar("pretended", default=None)


def pretended() -> int | None:
    """Return the instant that ``pretend`` set, or None."""
    return _pretended.get()


@contextmanager
def pretend(now: int) -> Iterator[None]:
    """
    Let the queue's statements take ``now`` (microseconds) for the clock, for tests.
    """
    token = _pretended.set(now)
    try:
        yield
    finally:
        _pretended.reset(token)


def host_now() -> int:
    """Return this host's clock, in microseconds since the epoch."""
    return time.time_ns() // 1_000


def to_instant(microseconds: int) -> datetime:
    """
    Return the datetime of a column's integer; beyond datetime's range, the nearest end.

    Aware and UTC, or naive in the default time zone where ``USE_TZ`` is off.
    """
    bounded = min(max(microseconds, MIN_INSTANT), MAX_INSTANT)
    value = EPOCH + timedelta(microseconds=bounded)
    if settings.USE_TZ:
        return value
    return timezone.make_naive(value, timezone.get_default_timezone())


def from_instant(value: datetime, name: str) -> int:
    """
    Return a column's integer for a datetime.

    Raise TypeError for anything else, and ValueError for a naive datetime when
    ``USE_TZ`` is on, because it names no instant. ``name`` is the argument at fault.
    """
    if not isinstance(value, datetime):
        raise TypeError(f"{name} must be a datetime, not {type(value).__name__}")
    if timezone.is_naive(value):
        if settings.USE_TZ:
            raise ValueError(
                f"{name} is a naive datetime and USE_TZ is on: give it a time zone"
            )
        value = timezone.make_aware(value, timezone.get_default_timezone())
    microseconds = (value - EPOCH) // timedelta(microseconds=1)
    if not MIN_INSTANT <= microseconds <= MAX_INSTANT:
        raise ValueError(f"{name} is outside the years 1 to 9999")
    return microseconds


def duration(value: float | timedelta, name: str) -> int:
    """
    Return a duration in microseconds from seconds or a timedelta.

    Raise TypeError for another type, and ValueError when it is negative, not finite or
    longer than 7,000 years. ``name`` is the argument at fault.
    """
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            f"{name} must be seconds or a timedelta, not {type(value).__name__}"
        )
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    elif abs(value) > MAX_DURATION // SECOND:
        microseconds = MAX_DURATION + 1 if value > 0 else -1
    else:
        microseconds = round(value * SECOND)
    if microseconds < 0:
        raise ValueError(f"{name} must not be negative")
    if microseconds > MAX_DURATION:
        raise ValueError(f"{name} must not be over 7,000 years")
    return microseconds


def seconds(microseconds: int) -> float:
    """Return a column's duration in seconds."""
    return microseconds / SECOND
