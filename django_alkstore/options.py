"""
The options of a job, validated once, before any SQL.

``JobOptions`` is what enqueue copies onto the row. A task builds its own once, at
decoration; a call with other options derives from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, get_args

from django_alkstore import backoff as backoffs
from django_alkstore import clock

Seconds: TypeAlias = float | timedelta
OnConflict: TypeAlias = Literal["return", "raise", "replace"]

MAX_QUEUE_LENGTH = 100
MAX_TASK_LENGTH = 250
MAX_KEY_LENGTH = 200
MAX_PRIORITY = 2**31 - 1
MAX_ATTEMPTS = 2**31 - 1
DEFAULT_MAX_ATTEMPTS = 3
DEFAULT_VISIBILITY_TIMEOUT = 300 * clock.SECOND


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How a job is stored. Every duration and instant is in microseconds."""

    queue: str
    task: str = ""
    priority: int = 0
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    delay: int = 0
    run_at: int | None = None
    expires: int | None = None
    visibility_timeout: int = DEFAULT_VISIBILITY_TIMEOUT
    backoff: str = backoffs.DEFAULT_STAMP
    timeout: int | None = None
    dead_letter_retention: int | None = None
    result_ttl: int | None = None
    on_conflict: OnConflict = "return"

    @classmethod
    def build(cls, queue: str, *, task: str = "", **options: Any) -> JobOptions:
        """
        Return validated options from the public keywords of ``queue.enqueue``.

        Raise TypeError or ValueError that names the argument at fault.
        """
        check_name(queue, "queue", MAX_QUEUE_LENGTH)
        if task:
            check_name(task, "task", MAX_TASK_LENGTH)
        return cls(queue, task).change(**options)

    def change(self, **options: Any) -> JobOptions:
        """Return a copy with other options, validated as in ``build``."""
        if not options:
            return self
        if options.get("delay") is not None and options.get("run_at") is not None:
            raise ValueError("give delay or run_at, not both")
        changes: dict[str, Any] = {}
        for name, value in options.items():
            try:
                convert = _CONVERTERS[name]
            except KeyError:
                raise TypeError(f"unknown option {name!r}") from None
            changes[name] = convert(value, name)
        # The later of two calls wins as a whole: using(run_at=…) over a task's delay.
        if options.get("delay") is not None:
            changes["run_at"] = None
        elif options.get("run_at") is not None:
            changes["delay"] = 0
        return replace(self, **changes)


def check_name(value: object, name: str, limit: int) -> str:
    """
    Return a name that both engines store and compare alike.

    Raise TypeError when it is no string, ValueError when it is empty, over ``limit``
    characters, or holds NUL or a lone surrogate. Nothing in it is a pattern.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    if len(value) > limit:
        raise ValueError(f"{name} is over {limit} characters")
    if "\x00" in value:
        raise ValueError(f"{name} holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} holds a lone surrogate") from None
    return str(value)


def check_unique_key(value: object) -> str | None:
    """Return the key, or None for none; errors as in ``check_name``."""
    return None if value is None else check_name(value, "unique_key", MAX_KEY_LENGTH)


def check_priority(value: object, name: str = "priority") -> int:
    """Return a priority of at most 32 bits; the highest number goes first."""
    number = _integer(value, name)
    if not -MAX_PRIORITY - 1 <= number <= MAX_PRIORITY:
        raise ValueError(f"{name} must fit 32 bits, not {number}")
    return number


def check_limit(value: object, name: str = "limit") -> int:
    """Return how many rows are asked for: an integer of 1 or more."""
    number = _integer(value, name)
    if number < 1:
        raise ValueError(f"{name} must be 1 or more, not {number}")
    return number


def _integer(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    return int(value)


def _max_attempts(value: object, name: str) -> int:
    if value is None:
        return DEFAULT_MAX_ATTEMPTS
    number = _integer(value, name)
    if not 1 <= number <= MAX_ATTEMPTS:
        raise ValueError(f"{name} must be 1 or more, not {number}")
    return number


def _optional(value: Any, name: str) -> int | None:
    return None if value is None else clock.duration(value, name)


def _positive(value: Any, name: str) -> int | None:
    microseconds = _optional(value, name)
    if microseconds == 0:
        raise ValueError(f"{name} must be more than zero")
    return microseconds


def _visibility_timeout(value: Any, name: str) -> int:
    microseconds = _positive(value, name)
    return DEFAULT_VISIBILITY_TIMEOUT if microseconds is None else microseconds


def _delay(value: Any, name: str) -> int:
    return 0 if value is None else clock.duration(value, name)


def _run_at(value: datetime | None, name: str) -> int | None:
    return None if value is None else clock.from_instant(value, name)


def _on_conflict(value: Any, name: str) -> str:
    if value not in get_args(OnConflict):
        raise ValueError(
            f"{name} must be 'return', 'raise' or 'replace', not {value!r}"
        )
    return str(value)


_CONVERTERS: dict[str, Callable[[Any, str], Any]] = {
    "queue": lambda value, name: check_name(value, name, MAX_QUEUE_LENGTH),
    "priority": check_priority,
    "max_attempts": _max_attempts,
    "delay": _delay,
    "run_at": _run_at,
    "expires": _optional,
    "visibility_timeout": _visibility_timeout,
    "backoff": lambda value, name: backoffs.stamp(value),
    "timeout": _positive,
    "dead_letter_retention": _optional,
    "result_ttl": _positive,
    "on_conflict": _on_conflict,
}
