"""A worker in a thread of the test, so that its tasks can be looked into."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone, translation

from django_alkstore import ClaimedJob, Context, constant, signals, task
from django_alkstore.models import DeadJob, LiveJob, Worker
from django_alkstore.results import TaskResult
from tests import tasks
from tests.models import Effect
from tests.process.conftest import StartWorker, drained
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Big:
    """Something whose end can be noticed."""


def test_an_idle_worker_holds_nothing_of_its_last_jobs(
    start_worker: StartWorker,
) -> None:
    """B158."""
    held: list[weakref.ref[Big]] = []

    def big() -> Big:
        made = Big()
        held.append(weakref.ref(made))
        return made

    @task(result_ttl=60)
    def succeed() -> int:
        local = big()
        return id(local)

    @task(max_attempts=1)
    def fail() -> None:
        local = big()
        raise tasks.Boom(local)

    @task(max_attempts=1, takes_context=True)
    def fail_with_context(context: Context) -> None:
        local = big()
        context.logger.info("here")
        raise tasks.Boom(local)

    @task(max_attempts=1)
    async def async_fail() -> None:
        local = big()
        raise tasks.Boom(local)

    start_worker()
    with no_collection():
        for each in (succeed, fail, fail_with_context, async_fail):
            each.enqueue()
        wait_until(drained)
        wait_until(lambda: len(held) == 4)

        wait_until(
            lambda: not any(ref() for ref in held),
            message="a job's objects are still alive",
        )


def test_a_job_finds_nothing_that_another_one_set(start_worker: StartWorker) -> None:
    seen: list[tuple[str, str, bool]] = []

    @task
    def look(leave: bool) -> None:
        seen.append(
            (
                timezone.get_current_timezone_name(),
                translation.get_language(),
                connection.in_atomic_block,
            )
        )
        if leave:
            timezone.activate("Asia/Tokyo")
            translation.activate("de")
            # What nobody should write: it leaves the transaction open.
            transaction.atomic().__enter__()
            Effect.objects.create(key="never committed")

    start_worker(threads=1)
    look.enqueue(True)
    wait_until(drained)
    look.enqueue(False)
    wait_until(lambda: len(seen) == 2 and drained())

    assert seen[0] == seen[1]
    assert not Effect.objects.exists()


def test_a_broken_connection_costs_an_attempt_and_no_more(
    start_worker: StartWorker,
) -> None:
    """B010, B033."""

    @task(max_attempts=2, backoff=constant(0), takes_context=True)
    def break_it(context: Context) -> None:
        Effect.objects.create(key=f"attempt {context.attempt}")
        if context.attempt == 1:
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            connection.connection.close()
            raise tasks.Boom

    start_worker(threads=1)
    break_it.enqueue()
    wait_until(drained)
    tasks.record.enqueue("after")
    wait_until(lambda: Effect.objects.count() == 3)

    assert not DeadJob.objects.exists()


def test_signals_are_sent_after_the_commit_and_may_fail(
    start_worker: StartWorker,
) -> None:
    told: list[tuple[str, bool, str]] = []
    writer: list[str] = []

    def receive(name: str) -> Callable[..., None]:
        def receiver(sender: object, **kwargs: object) -> None:
            job = kwargs["job"]
            assert isinstance(job, ClaimedJob)
            alive = LiveJob.objects.filter(pk=job.id).exists()
            told.append((name, alive, getattr(sender, "name", "")))
            writer.append(threading.current_thread().name)
            raise tasks.Boom("a receiver that fails")

        return receiver

    receivers = {
        name: receive(name) for name in ("job_succeeded", "job_failed", "job_dead")
    }
    for name, receiver in receivers.items():
        getattr(signals, name).connect(receiver)
    try:
        start_worker()
        tasks.noop.enqueue()
        wait_until(lambda: len(told) == 1)
        tasks.fail.using(max_attempts=1).enqueue()
        wait_until(lambda: len(told) == 3)
    finally:
        for name, receiver in receivers.items():
            getattr(signals, name).disconnect(receiver)

    assert told == [
        ("job_succeeded", False, "tests.tasks.noop"),
        ("job_failed", False, "tests.tasks.fail"),
        ("job_dead", False, "tests.tasks.fail"),
    ]
    assert "alkstore-writer" not in writer


def test_a_backoff_function_is_asked_with_the_attempts_so_far(
    start_worker: StartWorker,
) -> None:
    asked: list[tuple[str, int]] = []

    def wait(exception: BaseException, result: TaskResult[object]) -> float | None:
        asked.append((str(exception), len(result.errors)))
        return 0 if len(asked) < 3 else None

    @task(backoff=wait, max_attempts=10)
    def fail() -> None:
        raise tasks.Boom("no")

    @task(backoff=wait, max_attempts=10)
    async def async_fail() -> None:
        raise tasks.Boom("no")

    start_worker()
    for each in (fail, async_fail):
        asked.clear()
        each.enqueue()
        wait_until(drained)
        assert asked == [("no", 1), ("no", 2), ("no", 3)]

    assert set(DeadJob.objects.values_list("reason", flat=True)) == {"failed"}


def test_stopping_ends_every_thread_and_closes_every_connection(
    start_worker: StartWorker,
) -> None:
    worker = start_worker()
    tasks.async_record.enqueue("a")
    tasks.record.enqueue("b")
    wait_until(lambda: Effect.objects.count() == 2 and drained())
    worker.stop()

    def ours() -> list[str]:
        names = [thread.name for thread in threading.enumerate()]
        return [name for name in names if name.startswith("alkstore-")]

    wait_until(lambda: not ours(), message="threads of the worker are left")
    assert not Worker.objects.exists()
    assert not connections["default"].in_atomic_block


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_an_exception_whose_text_ends_threads_ends_none(
    start_worker: StartWorker, ending: type[BaseException]
) -> None:
    class Evil(Exception):
        def __str__(self) -> str:
            raise ending

    @task(max_attempts=1)
    def raise_evil() -> None:
        raise Evil

    start_worker(threads=1)
    raise_evil.enqueue()
    tasks.record.enqueue("after")
    wait_until(drained)

    dead = DeadJob.objects.get()
    assert dead.reason == "exhausted"
    assert ending.__name__ in dead.last_error
    assert Effect.objects.filter(key="after").exists()


def test_a_receiver_that_ends_threads_costs_an_attempt_and_no_thread(
    start_worker: StartWorker,
) -> None:
    def leave(**kwargs: Any) -> None:
        raise SystemExit

    @task(max_attempts=1)
    def heard() -> None: ...

    signals.job_started.connect(leave, sender=heard)
    try:
        start_worker(threads=1)
        heard.enqueue()
        tasks.record.enqueue("after")
        wait_until(drained)
    finally:
        signals.job_started.disconnect(leave, sender=heard)

    assert DeadJob.objects.get().last_error == "SystemExit: "
    assert Effect.objects.filter(key="after").exists()


def test_a_job_that_turns_autocommit_off_takes_no_other_one_with_it(
    start_worker: StartWorker,
) -> None:
    @task
    def turn_off() -> None:
        transaction.set_autocommit(False)
        Effect.objects.create(key="never committed")

    turn_off.enqueue()
    tasks.record.enqueue("after")
    start_worker(threads=1)
    wait_until(drained)

    assert [effect.key for effect in Effect.objects.all()] == ["after"]
