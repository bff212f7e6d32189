"""Workers that are killed in the middle of anything."""

from __future__ import annotations

import random
import time

import pytest

from django_alkstore.models import Attempt, DeadJob, LiveJob
from tests import tasks
from tests.models import Effect
from tests.process.conftest import Gate, drained
from tests.processes import WorkerProcess, WorkerProcesses
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_killed_workers_job_runs_again_after_its_claim_has_lapsed(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """B003, B006."""
    tasks.hold.using(visibility_timeout=1).enqueue(*gate.arguments, key="done")
    last = tasks.hold.using(visibility_timeout=1, max_attempts=1, queue="last")
    dead = last.enqueue(*gate.arguments)
    first = run_worker()
    gate.wait(2)

    first.kill()
    run_worker()
    gate.wait(3)
    gate.open()
    wait_until(drained)

    (effect,) = Effect.objects.all()
    assert effect.note == "attempt 2"
    assert [attempt for attempt, _ in gate.runs] == [1, 1, 2]
    letter = DeadJob.objects.get()
    assert (letter.pk, letter.reason) == (dead.pk, "exhausted")
    assert Attempt.objects.get(job_id=dead.pk).exception_class.endswith("ClaimLost")


def test_a_transactional_task_that_is_killed_leaves_nothing_and_then_runs_once(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    task = tasks.write_then_hold.using(visibility_timeout=1)
    task.enqueue(*gate.arguments, "once")
    first = run_worker()
    gate.wait()

    first.kill()
    run_worker()
    gate.wait(2)
    gate.open()
    wait_until(drained)

    assert [effect.note for effect in Effect.objects.all()] == ["attempt 2"]


def test_workers_killed_at_random_lose_nothing_and_commit_exactly_once(
    run_worker: WorkerProcesses,
) -> None:
    count = 300
    stamps = tasks.record.using(visibility_timeout=1, max_attempts=100)
    stamps.enqueue_many([(f"any {n}",) for n in range(count)])
    once = tasks.record_once.using(visibility_timeout=1, max_attempts=100)
    once.enqueue_many([(f"once {n}",) for n in range(count)])
    dice = random.Random(20)
    killed = 0
    workers: list[WorkerProcess] = []
    end = time.monotonic() + 40

    # Killed soon after they begin, and in the end left alone.
    while not drained() and time.monotonic() < end:
        while len(workers) < 2:
            workers.append(run_worker("--poll-interval", "0.2", "--threads", "2"))
        time.sleep(dice.uniform(0.3, 0.9))
        if killed < 8:
            workers.pop(0).kill()
            killed += 1

    assert not LiveJob.objects.exists()
    assert not DeadJob.objects.exists()
    keys = list(Effect.objects.values_list("key", flat=True))
    assert killed > 0
    kinds = ("any", "once")
    assert set(keys) == {f"{kind} {n}" for kind in kinds for n in range(count)}
    committed = [key for key in keys if key.startswith("once")]
    assert len(committed) == count
