"""Jobs that run for long: claims kept, cancellation seen, timeouts kept to."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from django_alkstore import queue
from django_alkstore.models import Attempt, DeadJob, LiveJob, Worker
from django_alkstore.worker.stopping import EXIT_RECYCLE
from tests import tasks
from tests.models import Effect
from tests.process.conftest import Gate, drained
from tests.processes import WorkerProcesses
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_job_longer_than_its_visibility_timeout_runs_once(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """B015."""
    task = tasks.hold.using(visibility_timeout=0.5)
    job = task.enqueue(*gate.arguments, key="done")
    run_worker()
    run_worker()
    gate.wait()
    first = LiveJob.objects.get(pk=job.pk).claim_expires_at
    assert first is not None

    def is_extended() -> bool:
        now = LiveJob.objects.get(pk=job.pk).claim_expires_at
        return now is not None and (now - first).total_seconds() > 1

    wait_until(is_extended)
    gate.open()
    wait_until(drained)

    assert len(gate.runs) == 1
    assert [effect.note for effect in Effect.objects.all()] == ["attempt 1"]


def test_a_cancelled_job_sees_it_and_stays_cancelled(
    run_worker: WorkerProcesses, make_gate: Callable[[], Gate]
) -> None:
    """B102."""
    plain, on_loop = make_gate(), make_gate()
    jobs = [
        tasks.hold.using(visibility_timeout=5).enqueue(*plain.arguments, key="never"),
        tasks.async_hold.using(visibility_timeout=5).enqueue(*on_loop.arguments),
    ]
    worker = run_worker("--verbosity", "2")
    plain.wait()
    on_loop.wait()
    for job in jobs:
        assert queue("default").cancel(job.pk)

    # Both come to their end without their gates being opened.
    wait_until(lambda: worker.output.count("event=claim_lost") == 2)
    tasks.record.enqueue("after")
    wait_until(Effect.objects.exists)

    assert [effect.key for effect in Effect.objects.all()] == ["after"]
    assert set(DeadJob.objects.values_list("reason", flat=True)) == {"cancelled"}
    wait_until(drained)


def test_async_jobs_run_many_at_a_time(run_worker: WorkerProcesses, gate: Gate) -> None:
    tasks.async_hold.enqueue_many([gate.arguments] * 60)
    tasks.async_record.enqueue_many([(str(n),) for n in range(60)])
    run_worker("--threads", "2")

    gate.wait(60)
    wait_until(lambda: Effect.objects.count() == 60)
    gate.open()
    wait_until(drained)

    assert len(gate.runs) == 60


def test_a_timeout_interrupts_in_the_main_thread_and_on_the_loop(
    run_worker: WorkerProcesses,
) -> None:
    """B072, B154."""
    jobs = [tasks.outlast.enqueue(50), tasks.async_outlast.enqueue(50)]
    worker = run_worker("--threads", "1")
    start = time.monotonic()
    wait_until(drained)
    tasks.record.enqueue("after")
    wait_until(Effect.objects.exists)

    assert time.monotonic() - start < 10
    assert worker.is_running
    reasons = dict(DeadJob.objects.values_list("pk", "reason"))
    assert reasons == {job.pk: "exhausted" for job in jobs}
    for attempt in Attempt.objects.all():
        assert attempt.exception_class == "django_alkstore.exceptions.TaskTimeout"
        assert "0.5 s" in attempt.message


def test_a_timeout_in_a_thread_is_told_and_the_worker_recycled(
    run_worker: WorkerProcesses,
) -> None:
    """B072."""
    tasks.outlast.enqueue(1.2)
    worker = run_worker("--threads", "2")

    assert worker.wait() == EXIT_RECYCLE

    assert "event=timed_out" in worker.output
    assert DeadJob.objects.get().reason == "exhausted"
    assert Attempt.objects.get().exception_class.endswith("TaskTimeout")


def test_a_function_that_never_comes_back_is_a_failed_attempt_in_the_end(
    run_worker: WorkerProcesses,
) -> None:
    tasks.outlast.enqueue(50)
    worker = run_worker("--threads", "2", "--shutdown-timeout", "0.5")

    assert worker.wait() == EXIT_RECYCLE
    assert DeadJob.objects.get().reason == "exhausted"


def test_jobs_behind_a_slow_one_go_to_another_worker(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    tasks.noop.enqueue_many([()] * 50)
    tasks.hold_deaf.enqueue(*gate.arguments)
    tasks.record.enqueue_many([(str(n),) for n in range(10)])
    # It claims the short ones ahead together with those behind the slow one.
    run_worker("--threads", "1")
    gate.wait()

    run_worker("--threads", "1")
    wait_until(lambda: Effect.objects.count() == 10)

    # An effect is there before the ack of its job.
    wait_until(lambda: LiveJob.objects.count() == 1)
    assert LiveJob.objects.get().task == "tests.tasks.hold_deaf"
    gate.open()
    wait_until(drained)


def test_a_worker_tells_what_it_runs_while_it_lives(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    worker = run_worker("--queues", "default,mail*", "--threads", "3")
    wait_until(Worker.objects.exists)

    row = Worker.objects.get()
    assert (row.pid, row.threads, row.queues) == (worker.pid, 3, "default,mail*")
    assert not row.stopping
    assert worker.stop() == 0
    assert not Worker.objects.exists()
