"""What ``@task`` makes of a function, before any job is stored."""

from __future__ import annotations

import asyncio
import copy
import functools
import importlib
import inspect
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_alkstore import Context, Discard, Retry, exponential, task
from django_alkstore.decorator import Task, registry


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    before = dict(registry)
    yield
    registry.clear()
    registry.update(before)


def test_a_bare_task_has_the_documented_defaults() -> None:
    @task
    def plain(order_id: int) -> int:
        return order_id

    options = plain.options
    assert plain.name == f"{__name__}.{plain.function.__qualname__}"
    assert (options.queue, options.priority, options.max_attempts) == ("default", 0, 3)
    assert options.visibility_timeout == 300_000_000
    assert (options.timeout, options.expires, options.result_ttl) == (None, None, None)
    assert not plain.transactional
    assert not plain.takes_context


def test_options_of_the_decorator_reach_the_job_options() -> None:
    @task(
        queue="emails", name="send", priority=7, max_attempts=5, timeout=2,
        visibility_timeout=timedelta(minutes=1), expires=60, result_ttl=3600,
        dead_letter_retention=86400, on_conflict="raise", backoff=exponential(2),
    )  # fmt: skip
    def send() -> None: ...

    options = send.options
    assert (send.name, options.task, options.queue) == ("send", "send", "emails")
    assert (options.priority, options.max_attempts) == (7, 5)
    assert (options.timeout, options.visibility_timeout) == (2_000_000, 60_000_000)
    assert (options.expires, options.result_ttl) == (60_000_000, 3_600_000_000)
    assert options.dead_letter_retention == 86_400_000_000
    assert options.on_conflict == "raise"
    assert '"base": 2.0' in options.backoff


def test_calling_a_task_runs_its_function_here() -> None:
    @task
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    assert double(21) == 42
    assert double.__doc__ == "Double it."
    assert list(inspect.signature(double).parameters) == ["number"]


def test_calling_an_async_task_returns_what_is_awaited() -> None:
    @task
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    assert double.is_async
    assert asyncio.run(double(21)) == 42


def test_calling_a_task_that_takes_a_context_gives_it_one_without_a_job() -> None:
    @task(takes_context=True)
    def report(context: Context, number: int) -> tuple[int, int, bool, bool]:
        context.progress(1, 2)
        return context.job.id, context.attempt, context.heartbeat(), context.cancelled

    assert report(1) == (0, 1, True, False)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"queue": ""}, ValueError, "queue"),
        ({"queue": "q" * 101}, ValueError, "queue"),
        ({"name": ""}, ValueError, "name"),
        ({"name": "n" * 251}, ValueError, "name"),
        ({"priority": 2**31}, ValueError, "priority"),
        ({"priority": "high"}, TypeError, "priority"),
        ({"max_attempts": 0}, ValueError, "max_attempts"),
        ({"max_attempts": -1}, ValueError, "max_attempts"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"visibility_timeout": float("inf")}, ValueError, "visibility_timeout"),
        ({"expires": -1}, ValueError, "expires"),
        ({"result_ttl": 0}, ValueError, "result_ttl"),
        ({"dead_letter_retention": "30 days"}, TypeError, "dead_letter_retention"),
        ({"on_conflict": "ignore"}, ValueError, "on_conflict"),
        ({"backoff": "fast"}, TypeError, "backoff"),
        ({"unique": "k" * 201}, ValueError, "unique_key"),
        ({"unique": 3}, TypeError, "unique_key"),
        ({"retries": 3}, TypeError, "retries"),
        ({"delay": 3}, TypeError, "using"),
        ({"run_at": datetime(2050, 1, 1, tzinfo=UTC)}, TypeError, "using"),
    ],
)
def test_a_bad_option_is_refused_at_decoration(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    def function() -> None: ...

    with pytest.raises(error, match=words):
        Task(function, **options)


def test_max_attempts_none_is_the_default() -> None:
    @task(max_attempts=None)
    def function() -> None: ...

    assert function.options.max_attempts == 3


class PlainHandler:
    """A handler that is an object."""

    def __call__(self, number: int) -> int:
        return number


class AsyncHandler:
    """A handler that is an object and has to be awaited."""

    async def __call__(self, number: int) -> int:
        return number


async def later(number: int, step: int = 1) -> int:
    return number + step


def test_a_coroutine_is_recognised_behind_a_partial_and_in_a_callable_object() -> None:
    """B154."""
    nested = functools.partial(functools.partial(later, step=2))

    assert Task(nested, name="partial").is_async
    assert Task(AsyncHandler(), name="object").is_async
    assert not Task(PlainHandler(), name="plain").is_async


def test_a_function_without_a_name_must_be_given_one() -> None:
    with pytest.raises(TypeError, match="name="):
        Task(functools.partial(later, step=2))
    with pytest.raises(TypeError, match="name="):
        Task(PlainHandler())


def numbers() -> Iterator[int]:
    yield 1


async def anumbers() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    "target",
    [3, "text", int, PlainHandler, numbers, anumbers, functools.partial(numbers)],
    ids=str,
)
def test_what_cannot_run_a_job_is_refused(target: Any) -> None:
    with pytest.raises(TypeError):
        Task(target, name="name")


def test_a_task_of_a_task_is_refused() -> None:
    with pytest.raises(TypeError, match="is a task already"):
        Task(Task(later))


def test_an_async_task_cannot_be_transactional() -> None:
    with pytest.raises(TypeError, match="async"):
        Task(later, transactional=True)


def test_a_task_with_a_context_needs_an_argument_for_it() -> None:
    def nothing() -> None: ...

    with pytest.raises(TypeError, match="context"):
        Task(nothing, takes_context=True)


def test_two_functions_of_one_name_are_refused_and_both_named() -> None:
    def first() -> None: ...
    def second() -> None: ...

    task(name="same")(first)
    with pytest.raises(ImproperlyConfigured, match=r"first.*second"):
        task(name="same")(second)

    assert registry["same"].function is first


def test_two_partials_of_one_name_are_refused() -> None:
    task(name="same")(functools.partial(later, step=1))
    with pytest.raises(ImproperlyConfigured):
        task(name="same")(functools.partial(later, step=2))


def test_a_module_imported_again_replaces_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from django_alkstore import task\n\n@task\ndef job(): return {}\n"
    (tmp_path / "reloaded_tasks.py").write_text(source.format(1))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.import_module("reloaded_tasks")
    (tmp_path / "reloaded_tasks.py").write_text(source.format(22))

    importlib.reload(module)

    assert registry["reloaded_tasks.job"] is module.job
    assert registry["reloaded_tasks.job"]() == 22


def test_using_returns_a_task_of_the_same_name_with_other_options() -> None:
    @task(unique="one")
    def send(number: int) -> int:
        return number

    other = send.using(queue="slow", priority=3, delay=60, unique_key="two", using="db")

    assert (other.name, other(4)) == (send.name, 4)
    assert (other.options.queue, other.options.priority) == ("slow", 3)
    assert (other.options.delay, other.unique) == (60_000_000, "two")
    assert other.database == "db"
    assert (send.options.queue, send.unique, send.database) == ("default", "one", None)
    assert registry[send.name] is send


def test_using_can_be_used_on_what_using_returned() -> None:
    @task
    def send() -> None: ...

    run_at = datetime(2050, 1, 1, tzinfo=UTC)
    options = send.using(priority=3, delay=5).using(run_at=run_at).options

    assert (options.priority, options.delay) == (3, 0)
    assert options.run_at is not None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"delay": 1, "run_at": datetime(2050, 1, 1, tzinfo=UTC)}, ValueError),
        ({"run_at": datetime(2050, 1, 1)}, ValueError),
        ({"delay": -1}, ValueError),
        ({"unique": "a", "unique_key": "a"}, TypeError),
        ({"unique_key": ""}, ValueError),
        ({"unique_key": lambda number: "a"}, TypeError),
        ({"name": "other"}, TypeError),
        ({"transactional": True}, TypeError),
    ],
)
def test_a_bad_option_of_using_is_refused(
    options: dict[str, Any], error: type[Exception]
) -> None:
    @task
    def send() -> None: ...

    with pytest.raises(error):
        send.using(**options)


def test_a_backoff_function_belongs_to_the_decorator() -> None:
    def wait(exception: BaseException, result: object) -> float:
        return 1.0

    @task(backoff=wait)
    def send() -> None: ...

    assert send.backoff_function is wait
    assert send.using(backoff=wait).options.backoff == '{"kind": "function"}'
    with pytest.raises(ValueError, match="@task"):
        send.using(backoff=lambda exception, result: 2.0)


def test_retry_checks_its_delay_where_it_is_raised() -> None:
    assert Retry(timedelta(seconds=2)).delay_us == 2_000_000
    assert Retry().delay_us is None
    assert str(Retry(1, "the shop is closed")) == "the shop is closed"
    with pytest.raises(ValueError, match="delay"):
        Retry(-1)


def test_retry_and_discard_can_be_copied() -> None:
    again = copy.copy(Retry(5, "busy"))
    gone = copy.copy(Discard("no such order"))

    assert (again.delay, str(again)) == (5, "busy")
    assert (gone.reason, str(gone)) == ("no such order", "no such order")
