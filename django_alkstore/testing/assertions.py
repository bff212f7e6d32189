"""Looking at the jobs that are stored and have not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from django_alkstore import arguments
from django_alkstore.decorator import Task

if TYPE_CHECKING:
    from django_alkstore.models import LiveJob

AnyTask: TypeAlias = "Task[..., Any]"


def enqueued(
    task: AnyTask | None = None,
    /,
    *,
    queue: str | None = None,
    using: str | None = None,
) -> list[LiveJob]:
    """
    Return the live jobs in the order in which they were stored.

    Those of one task or one queue if given; raw jobs too without a task. A job that has
    run is no longer among them, one that failed and waits to be tried again is.
    """
    from django_alkstore.models import LiveJob

    manager = LiveJob.objects.using_alias(using)
    jobs = manager.using(manager.database).order_by("pk")
    if task is not None:
        jobs = jobs.filter(task=task.name)
    if queue is not None:
        jobs = jobs.filter(queue=queue)
    return list(jobs)


def assert_enqueued(task: AnyTask, /, *args: Any, **kwargs: Any) -> list[LiveJob]:
    """
    Assert that a job of ``task`` is stored, and return all that match.

    With arguments, one with the same arguments, however they were given: by position,
    by name or by default. Without, with any. ``[job] = assert_enqueued(send, 1)``
    asserts that there is exactly one. A task from ``using(using=…)`` is looked for in
    that database.
    """
    found = _matching(task, args, kwargs)
    if not found:
        raise AssertionError(
            f"no job of {_call(task, args, kwargs)} is stored; {_stored(task)}"
        )
    return found


def assert_enqueued_count(
    count: int, task: AnyTask, /, *args: Any, **kwargs: Any
) -> list[LiveJob]:
    """Assert that ``count`` jobs match, as ``assert_enqueued``, and return them."""
    found = _matching(task, args, kwargs)
    if len(found) != count:
        raise AssertionError(
            f"{len(found)} jobs of {_call(task, args, kwargs)} are stored, not {count};"
            f" {_stored(task)}"
        )
    return found


def assert_not_enqueued(
    task: AnyTask | None = None, /, *args: Any, **kwargs: Any
) -> None:
    """Assert that no job matches, as ``assert_enqueued``; without a task, no job."""
    if task is None:
        found = enqueued()
        name = "any task"
    else:
        found = _matching(task, args, kwargs)
        name = _call(task, args, kwargs)
    if found:
        jobs = ", ".join(str(job) for job in found)
        raise AssertionError(f"a job of {name} is stored: {jobs}")


def _matching(
    task: AnyTask, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[LiveJob]:
    jobs = enqueued(task, using=task.database)
    if not args and not kwargs:
        return jobs
    wanted = _by_name(task, args, kwargs)
    return [job for job in jobs if _arguments_of(task, job) == wanted]


def _arguments_of(task: AnyTask, job: LiveJob) -> dict[str, Any] | None:
    try:
        args, kwargs = arguments.load(job.decoded_payload())
        return _by_name(task, args, kwargs)
    except (TypeError, ValueError):
        return None


def _by_name(task: AnyTask, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    bound = task.arguments.bind(args, kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _call(task: AnyTask, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    if not args and not kwargs:
        return task.name
    words = [repr(arg) for arg in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
    return f"{task.name}({', '.join(words)})"


def _stored(task: AnyTask) -> str:
    lines = [f"{job}: {job.payload}" for job in enqueued(using=task.database)]
    return "stored are\n" + "\n".join(lines) if lines else "none is stored at all"
