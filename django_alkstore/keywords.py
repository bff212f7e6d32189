"""The keyword options of ``@task`` and ``using``, as types that a checker can read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias, TypedDict

from django_alkstore.backoff import AnyBackoff
from django_alkstore.options import OnConflict, Seconds

Unique: TypeAlias = Callable[..., str | None] | str


class StampOptions(TypedDict, total=False):
    """The options that both ``@task`` and ``using`` take."""

    queue: str
    priority: int
    max_attempts: int | None
    backoff: AnyBackoff
    visibility_timeout: Seconds | None
    timeout: Seconds | None
    expires: Seconds | None
    unique: Unique | None
    on_conflict: OnConflict
    result_ttl: Seconds | None
    dead_letter_retention: Seconds | None


class TaskOptions(StampOptions, total=False):
    """The options of ``@task``."""

    name: str
    transactional: bool


class CallOptions(StampOptions, total=False):
    """The options of ``using``."""

    delay: Seconds | None
    run_at: datetime | None
    unique_key: str | None
    using: str | None
