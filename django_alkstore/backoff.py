"""
How long a failed job waits before its next attempt: pure functions over a stamp.

A job carries its backoff as JSON text, copied at enqueue, so a later change of the code
does not change the jobs that wait. A function cannot be stored: its stamp says only
that the task has one, and it is looked up when the attempt has failed.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from django_alkstore import clock

if TYPE_CHECKING:
    from django_alkstore.results import TaskResult

FUNCTION_STAMP = '{"kind": "function"}'


@dataclass(frozen=True, slots=True)
class Exponential:
    """min(maximum, base x factor ** (attempt - 1)) seconds, spread by ``jitter``."""

    base: float
    factor: float
    maximum: float
    jitter: float
    kind: str = "exponential"


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same seconds."""

    seconds: float
    kind: str = "constant"


Backoff: TypeAlias = Exponential | Constant
BackoffFunction: TypeAlias = (
    "Callable[[BaseException, TaskResult[object]], float | None]"
)
AnyBackoff: TypeAlias = "float | timedelta | Backoff | BackoffFunction"


def exponential(
    base: float | timedelta,
    factor: float = 2,
    maximum: float | timedelta = 600,
    jitter: float = 0.0,
) -> Exponential:
    """
    Wait ``base`` seconds after the first failed attempt, ``factor`` times more each
    time.

    Never more than ``maximum`` seconds. ``jitter`` from 0 to 1 takes away up to that
    share at random, so that jobs which failed together do not come back together.
    """
    if not math.isfinite(factor) or factor < 1:
        raise ValueError(f"factor must be 1 or more, not {factor}")
    if not 0 <= jitter <= 1:
        raise ValueError(f"jitter must be from 0 to 1, not {jitter}")
    return Exponential(
        clock.seconds(clock.duration(base, "base")),
        float(factor),
        clock.seconds(clock.duration(maximum, "maximum")),
        float(jitter),
    )


def constant(seconds: float | timedelta) -> Constant:
    """Wait the same number of seconds after each failed attempt."""
    return Constant(clock.seconds(clock.duration(seconds, "seconds")))


def stamp(backoff: AnyBackoff) -> str:
    """Return the JSON text that a row carries. Raise TypeError for anything else."""
    if isinstance(backoff, (Exponential, Constant)):
        return json.dumps(asdict(backoff))
    if isinstance(backoff, (int, float, timedelta)):
        return json.dumps(asdict(constant(backoff)))
    if callable(backoff):
        return FUNCTION_STAMP
    raise TypeError(
        "backoff must be seconds, constant(…), exponential(…) or a function, "
        f"not {type(backoff).__name__}"
    )


def delay_of(stamp_text: str, attempt: int) -> int | None:
    """
    Return the microseconds to wait after ``attempt`` (1 for the first).

    None when the stamp is a function, which only the task knows. A stamp that cannot be
    read (raw SQL wrote it) counts as the default, so that its job is not lost.
    """
    try:
        fields = json.loads(stamp_text)
        kind = fields.pop("kind")
        if kind == "function":
            return None
        if kind == "constant":
            return clock.duration(fields["seconds"], "backoff")
        return _exponential_delay(exponential(**fields), attempt)
    except (ValueError, TypeError, KeyError, AttributeError):
        return _exponential_delay(DEFAULT, attempt)


def _exponential_delay(backoff: Exponential, attempt: int) -> int:
    try:
        wait = backoff.base * backoff.factor ** (attempt - 1)
    except OverflowError:
        wait = backoff.maximum if backoff.base else 0.0
    wait = min(wait, backoff.maximum)
    return clock.duration(wait * (1 - backoff.jitter * random.random()), "backoff")


DEFAULT = exponential(5)
DEFAULT_STAMP = stamp(DEFAULT)
