"""
The ``ALKSTORE`` setting, read once into a frozen object.

This is the only module that reads it. Names are checked against the whole list and
values against their types, so that a slip of the pen is an error at start and not a
default in production. The cache is emptied when the setting changes in a test.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from django_alkstore import clock

DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Retention:
    """How long finished things are kept, in seconds; None keeps them for ever."""

    dead: float | None = 30 * DAY
    metrics: float | None = 14 * DAY
    notifications: float | None = DAY
    notification_rows: int = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The ``ALKSTORE`` dict with its defaults. Durations are in seconds."""

    threads: int = 4
    processes: int = 1
    prefetch: int = 64
    poll_interval: float = 1.0
    shutdown_timeout: float = 30.0
    max_payload_bytes: int = 2**20
    worker_ttl: float = 60.0
    leader_ttl: float = 60.0
    retention: Retention = Retention()
    inline: bool = False
    mask: tuple[str, ...] = ()
    schedules: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    task_modules: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the settings. Raise ImproperlyConfigured that lists every problem."""
    found, problems = _read()
    if problems:
        raise ImproperlyConfigured(" ".join(problems))
    return found


def setting_problems() -> list[str]:
    """Return what is wrong with the ``ALKSTORE`` setting, a sentence a problem."""
    return _read()[1]


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "ALKSTORE":
        get_settings.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_alkstore.conf")


def _read() -> tuple[Settings, list[str]]:
    given = getattr(settings, "ALKSTORE", {})
    if not isinstance(given, Mapping):
        return Settings(), [
            f"ALKSTORE must be a dict of settings, not {type(given).__name__}."
        ]
    values, problems = _convert(given, _CONVERTERS, "ALKSTORE")
    return Settings(**values), problems


def _convert(
    given: Mapping[Any, Any],
    converters: Mapping[str, Callable[[Any, str], Any]],
    place: str,
) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in given.items():
        convert = converters.get(name)
        if convert is None:
            problems.append(_unknown(name, converters, place))
            continue
        try:
            values[name.lower()] = convert(value, f"{place}[{name!r}]")
        except (TypeError, ValueError) as error:
            problems.append(f"{error}.")
    return values, problems


def _unknown(name: object, known: Iterable[str], place: str) -> str:
    nearest = difflib.get_close_matches(
        str(name).upper(), {key.upper(): key for key in known}, n=1, cutoff=0
    )
    spelled = {key.upper(): key for key in known}[nearest[0]]
    return f"{place} has an unknown key {name!r}; the nearest known one is {spelled!r}."


def _count(least: int) -> Callable[[Any, str], int]:
    def convert(value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
        if value < least:
            raise ValueError(f"{name} must be {least} or more, not {value}")
        return value

    return convert


def _seconds(value: Any, name: str) -> float:
    return clock.seconds(clock.duration(value, name))


def _some_seconds(value: Any, name: str) -> float:
    if seconds := _seconds(value, name):
        return seconds
    raise ValueError(f"{name} must be more than zero")


def _age(value: Any, name: str) -> float | None:
    return None if value is None else _seconds(value, name)


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def _texts(value: Any, name: str) -> tuple[str, ...]:
    # A bare string is a sequence of strings too: a module named "a", one named "p", …
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"{name} must be a list of strings, not {value!r}")
    for item in value:
        if not isinstance(item, str) or not item:
            raise TypeError(f"{name} must be a list of strings, and holds {item!r}")
    return tuple(value)


def _schedules(value: Any, name: str) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict of schedules by name")
    for key, schedule in value.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"{name} has the key {key!r}, which is no name")
        if not isinstance(schedule, Mapping):
            raise TypeError(f"{name}[{key!r}] must be a dict")
    return MappingProxyType({key: MappingProxyType(dict(value[key])) for key in value})


def _retention(value: Any, name: str) -> Retention:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, not {type(value).__name__}")
    values, problems = _convert(value, _RETENTION, name)
    if problems:
        raise ValueError(" ".join(problems).removesuffix("."))
    return Retention(**values)


_RETENTION: dict[str, Callable[[Any, str], Any]] = {
    "dead": _age,
    "metrics": _age,
    "notifications": _age,
    "notification_rows": _count(0),
}

_CONVERTERS: dict[str, Callable[[Any, str], Any]] = {
    "THREADS": _count(1),
    "PROCESSES": _count(1),
    "PREFETCH": _count(0),
    "POLL_INTERVAL": _some_seconds,
    "SHUTDOWN_TIMEOUT": _seconds,
    "MAX_PAYLOAD_BYTES": _count(1),
    "WORKER_TTL": _some_seconds,
    "LEADER_TTL": _some_seconds,
    "RETENTION": _retention,
    "INLINE": _flag,
    "MASK": _texts,
    "SCHEDULES": _schedules,
    "TASK_MODULES": _texts,
}

SETTING_NAMES = tuple(_CONVERTERS)
