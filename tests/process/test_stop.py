"""Stopping a worker: gracefully, in time, and at once."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from django_alkstore.models import Attempt, LiveJob, Worker
from tests import tasks
from tests.models import Effect
from tests.process.conftest import Gate, drained
from tests.processes import WorkerProcesses
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = pytest.mark.parametrize("threads", ["1", "2"])


@THREADS
def test_a_running_job_comes_to_its_end_and_the_next_one_does_not_begin(
    run_worker: WorkerProcesses, gate: Gate, threads: str
) -> None:
    """B065."""
    worker = run_worker("--threads", threads)
    tasks.hold.enqueue_many([(*gate.arguments, "done")] * int(threads))
    gate.wait(int(threads))
    tasks.record.enqueue("not now")

    worker.signal(signal.SIGTERM)
    wait_until(lambda: Worker.objects.filter(stopping=True).exists())
    gate.open()

    assert worker.wait() == 0
    assert {effect.key for effect in Effect.objects.all()} == {"done"}
    waiting = LiveJob.objects.get()
    assert (waiting.task, waiting.attempts) == ("tests.tasks.record", 0)
    assert not Worker.objects.exists()


@THREADS
def test_a_job_that_does_not_end_in_time_is_given_back_unspent(
    run_worker: WorkerProcesses, gate: Gate, threads: str
) -> None:
    """B065, B069."""
    worker = run_worker("--threads", threads, "--shutdown-timeout", "0.5")
    job = tasks.hold_deaf.enqueue(*gate.arguments)
    gate.wait()

    start = time.monotonic()
    status = worker.stop()

    assert status == 0
    assert 0.4 < time.monotonic() - start < 5
    row = LiveJob.objects.get(pk=job.pk)
    assert (row.state, row.attempts, row.worker_id) == ("pending", 0, "")
    assert not Attempt.objects.exists()


def test_no_time_at_all_gives_a_job_back_at_once(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """B069."""
    worker = run_worker("--shutdown-timeout", "0")
    tasks.hold_deaf.enqueue(*gate.arguments)
    tasks.async_hold.enqueue(*gate.arguments)
    gate.wait(2)

    start = time.monotonic()

    assert worker.stop() == 0
    assert time.monotonic() - start < 5
    left = list(LiveJob.objects.values_list("state", "attempts"))
    assert left == [("pending", 0)] * 2


@THREADS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once_and_the_claim_lapses_later(
    run_worker: WorkerProcesses, gate: Gate, threads: str, number: signal.Signals
) -> None:
    """B065."""
    worker = run_worker("--threads", threads)
    job = tasks.hold_deaf.enqueue(*gate.arguments)
    gate.wait()

    worker.signal(signal.SIGTERM)
    wait_until(lambda: Worker.objects.filter(stopping=True).exists())
    start = time.monotonic()
    worker.signal(number)

    assert worker.wait(5) == 128 + number
    assert time.monotonic() - start < 2
    assert LiveJob.objects.get(pk=job.pk).state == "processing"


def test_jobs_that_have_not_begun_are_given_back(
    run_worker: WorkerProcesses, make_gate: Callable[[], Gate]
) -> None:
    gate, other = make_gate(), make_gate()
    worker = run_worker("--threads", "1")
    # Short ones first, so that the worker claims ahead.
    tasks.noop.enqueue_many([()] * 50)
    tasks.hold.enqueue(*gate.arguments)
    tasks.hold.enqueue_many([other.arguments] * 5)
    gate.wait()

    worker.signal(signal.SIGTERM)
    wait_until(lambda: not LiveJob.objects.filter(state="processing")[1:].exists())
    gate.open()

    assert worker.wait() == 0
    left = list(LiveJob.objects.values_list("state", "attempts"))
    assert left == [("pending", 0)] * 5
    assert other.runs == []


def test_ctrl_c_stops_an_idle_worker(run_worker: WorkerProcesses) -> None:
    """B071."""
    worker = run_worker()
    wait_until(Worker.objects.exists)

    start = time.monotonic()
    worker.signal(signal.SIGINT)

    assert worker.wait() == 0
    assert time.monotonic() - start < 2


@THREADS
def test_a_signal_to_a_process_that_a_task_forked_stops_no_worker(
    run_worker: WorkerProcesses, threads: str
) -> None:
    worker = run_worker("--threads", threads)
    tasks.fork_and_terminate.enqueue()
    wait_until(Effect.objects.exists)

    assert Effect.objects.get().note == str(-signal.SIGTERM)
    tasks.record.enqueue("after")
    wait_until(lambda: Effect.objects.count() == 2)
    assert worker.is_running
    assert "event=stopping" not in worker.output


@THREADS
@pytest.mark.parametrize(
    "how, status", [("return", "0"), ("exit", "3"), ("raise", "1")]
)
def test_a_process_that_a_task_forked_ends_with_the_function_and_settles_nothing(
    run_worker: WorkerProcesses, threads: str, how: str, status: str
) -> None:
    worker = run_worker("--threads", threads)
    tasks.fork_and_leave.enqueue(how)
    wait_until(lambda: Effect.objects.count() == 2)

    assert Effect.objects.get(key="forked").note == status
    tasks.record.enqueue("after")
    wait_until(drained)
    assert Effect.objects.count() == 3
    assert worker.stop() == 0


def test_a_process_that_a_task_left_behind_keeps_no_worker_from_its_end(
    run_worker: WorkerProcesses,
) -> None:
    worker = run_worker("--threads", "1")
    tasks.fork_and_forget.enqueue(6.0)
    wait_until(lambda: not LiveJob.objects.exists())

    start = time.monotonic()
    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert time.monotonic() - start < 3
