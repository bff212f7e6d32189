"""Handlers in a real worker that fail, lie, are cancelled, or return odd things."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import pytest
from django.db import transaction

from django_alkstore import constant, queue, task
from django_alkstore.models import Attempt, DeadJob, LiveJob, Result
from tests import tasks
from tests.engine.scenes import commits
from tests.models import Effect
from tests.process.conftest import SOON, Gate, StartWorker, drained
from tests.processes import WorkerProcesses
from tests.waiting import wait_until

pytestmark = commits


def keys() -> set[str]:
    return set(Effect.objects.values_list("key", flat=True))


def test_a_failure_outlives_the_handlers_own_transaction(
    start_worker: StartWorker,
) -> None:
    """B053: the handler's writes are gone, its error is not."""

    @task(max_attempts=1)
    @transaction.atomic
    def fail() -> None:
        Effect.objects.create(key="gone")
        raise tasks.Boom("the handler's own words")

    start_worker(threads=1)
    fail.enqueue()
    wait_until(drained)

    assert keys() == set()
    assert DeadJob.objects.get().last_error.endswith("Boom: the handler's own words")


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_job_with_one_attempt_that_is_over_its_timeout_runs_once(
    run_worker: WorkerProcesses, gate: Gate, threads: str
) -> None:
    """B072: one attempt, dead, and its error is the timeout."""
    task = tasks.sleep_in_c.using(timeout=0.3, max_attempts=1, visibility_timeout=1)
    job = task.enqueue(*gate.arguments, 1.2)
    worker = run_worker(*SOON, "--threads", threads)
    wait_until(drained)
    if threads == "1":
        tasks.record.enqueue("after")
        wait_until(Effect.objects.exists)
        assert worker.is_running

    letter = DeadJob.objects.get()
    assert (letter.pk, letter.attempts, letter.reason) == (job.pk, 1, "exhausted")
    assert Attempt.objects.get().exception_class.endswith("TaskTimeout")
    assert len(gate.runs) == 1


@pytest.mark.parametrize("kept", [None, 60])
def test_a_result_that_is_not_a_number_fails_nothing_but_itself(
    start_worker: StartWorker, kept: int | None
) -> None:
    """B089: a NaN result that is to be kept goes dead at once; else it is dropped."""
    runs: list[int] = []

    @task(max_attempts=5, backoff=constant(0), result_ttl=kept)
    def nan() -> float:
        runs.append(1)
        return float("nan")

    start_worker()
    nan.enqueue()
    wait_until(drained)

    assert len(runs) == 1
    assert not Result.objects.exists()
    if kept is None:
        assert not DeadJob.objects.exists()
    else:
        assert DeadJob.objects.get().reason == "invalid"


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_cancelled_while_it_runs_stays_cancelled(
    start_worker: StartWorker, fails: bool
) -> None:
    """B102: neither its return nor its failure, with attempts left, changes that."""
    begun, go = threading.Event(), threading.Event()
    runs: list[int] = []

    @task(max_attempts=5, backoff=constant(0), result_ttl=60)
    def work() -> None:
        runs.append(1)
        begun.set()
        assert go.wait(15)
        if fails:
            raise tasks.Boom

    start_worker(threads=1)
    job = work.enqueue()
    assert begun.wait(15)
    assert queue("default").cancel(job.pk)
    go.set()
    tasks.record.enqueue("after")
    wait_until(lambda: keys() == {"after"} and drained())

    assert len(runs) == 1
    letter = DeadJob.objects.get()
    assert (letter.pk, letter.reason) == (job.pk, "cancelled")
    assert not Result.objects.exists()


def test_a_handler_finds_its_keywords_unchanged(start_worker: StartWorker) -> None:
    """B098: keywords named like options are the handler's own."""
    names = [
        "queue", "delay", "priority", "timeout", "run_at", "expires", "unique_key",
        "max_attempts", "db", "using", "task", "self", "fn", "func", "name", "args",
        "kwargs", "context", "job", "run", "function", "result", "worker_id",
    ]  # fmt: skip
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    @task
    def take(*args: Any, **kwargs: Any) -> None:
        seen.append((args, kwargs))

    start_worker()
    given = {name: number for number, name in enumerate(names)}
    take.enqueue("positional", **given)
    wait_until(drained)

    assert seen == [(("positional",), given)]


class Handler:
    async def __call__(self, key: str) -> None:
        await asyncio.sleep(0)
        await Effect.objects.acreate(key=key)


async def record_later(key: str, note: str) -> None:
    await asyncio.sleep(0)
    await Effect.objects.acreate(key=key, note=note)


def test_async_handlers_of_every_kind_are_awaited_to_their_end(
    start_worker: StartWorker,
) -> None:
    """B154: a function, a partial, an object; one that fails, one that spawns."""
    ended = threading.Event()

    @task(max_attempts=1)
    async def fail() -> None:
        await asyncio.sleep(0)
        raise tasks.Boom("awaited")

    @task
    async def spawn() -> None:
        async def child() -> None:
            try:
                await asyncio.sleep(0.05)
            finally:
                ended.set()

        spawned.append(asyncio.create_task(child()))

    @task(max_attempts=1)
    def hidden() -> object:
        return record_later("never", "hidden")

    spawned: list[asyncio.Task[None]] = []
    partial = task(name="partial")(functools.partial(record_later, note="x"))
    instance = task(name="object")(Handler())
    start_worker()
    tasks.async_record.enqueue("function")
    partial.enqueue("partial")
    instance.enqueue("object")
    for each in (fail, spawn, hidden):
        each.enqueue()
    wait_until(drained)

    assert keys() == {"function", "partial", "object"}
    assert ended.wait(15)
    errors = {letter.last_error for letter in DeadJob.objects.all()}
    assert len(errors) == 2
    assert any("Boom: awaited" in error for error in errors)
    assert any("make it async def" in error for error in errors)


def test_a_handler_that_breaks_its_connection_in_the_main_thread_is_recorded(
    run_worker: WorkerProcesses,
) -> None:
    """B010: the failure is written on another connection, and the next job runs."""
    job = tasks.break_connection.enqueue()
    worker = run_worker(*SOON, "--threads", "1")
    wait_until(drained)
    tasks.record.enqueue("after")
    wait_until(Effect.objects.exists)

    assert worker.is_running
    letter = DeadJob.objects.get()
    assert (letter.pk, letter.reason) == (job.pk, "exhausted")
    assert letter.last_error.endswith("ValueError: x")


def test_a_task_that_was_removed_dies_and_the_worker_goes_on(
    run_worker: WorkerProcesses,
) -> None:
    """B100: a delayed job whose function is gone holds up none behind it."""
    old = tasks.noop.using(delay=0.3, unique_key="k").enqueue()
    LiveJob.objects.filter(pk=old.pk).update(task="tests.gone.tasks.old")
    worker = run_worker(*SOON, "--threads", "1")
    wait_until(DeadJob.objects.exists)
    tasks.record.enqueue_many([(str(number),) for number in range(10)])
    wait_until(drained)

    assert worker.is_running
    assert len(keys()) == 10
    letter = DeadJob.objects.get()
    assert (letter.pk, letter.reason) == (old.pk, "invalid")
    assert "tests.gone.tasks.old" in letter.last_error
