"""
A job queue in the database that a Django project already has.

The public names are here. They are loaded when first asked for, so that this package
can be imported before the apps are ready.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_alkstore.backoff import constant, exponential
    from django_alkstore.context import Context
    from django_alkstore.decorator import Discard, Retry, task
    from django_alkstore.exceptions import (
        AlkstoreError,
        ClaimLost,
        DuplicateJob,
        InvalidPayload,
        JobFailed,
        ResultDoesNotExist,
        TaskTimeout,
        UnsupportedDatabase,
        WatcherDied,
    )
    from django_alkstore.jobs import ClaimedJob, JobSnapshot
    from django_alkstore.queues import queue
    from django_alkstore.results import TaskResult

__version__ = "0.1.0"

__all__ = [
    "AlkstoreError",
    "ClaimLost",
    "ClaimedJob",
    "Context",
    "Discard",
    "DuplicateJob",
    "InvalidPayload",
    "JobFailed",
    "JobSnapshot",
    "ResultDoesNotExist",
    "Retry",
    "TaskResult",
    "TaskTimeout",
    "UnsupportedDatabase",
    "WatcherDied",
    "constant",
    "exponential",
    "queue",
    "task",
]

_HOMES = {
    "ClaimedJob": "jobs",
    "Context": "context",
    "Discard": "decorator",
    "JobSnapshot": "jobs",
    "Retry": "decorator",
    "TaskResult": "results",
    "constant": "backoff",
    "exponential": "backoff",
    "queue": "queues",
    "task": "decorator",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES.get(name, 'exceptions')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
