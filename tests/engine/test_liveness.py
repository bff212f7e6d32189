"""Who is alive is told by the claim alone: no name, and no row of a worker, helps."""

from __future__ import annotations

import pytest

from django_alkstore import queue
from django_alkstore.models import DeadJob, Worker
from tests.engine.scenes import claimed, labels, store
from tests.engine.steps import after, take, waits

pytestmark = pytest.mark.django_db
q = queue("q")


def beat(worker_id: str) -> None:
    Worker.objects.beat(
        worker_id, host="h", pid=1, queues="*", threads=1, running="[]", stopping=False
    )


def test_a_job_of_a_worker_that_nobody_knows_lapses_all_the_same() -> None:
    """B007: the worker's row was pruned before anybody looked for its jobs."""
    with after(0):
        beat("w-0")
    (job,) = claimed("a", worker="w-0")
    with after(1):
        Worker.objects.remove("w-0")
        assert q.sweep_expired() == 0

    assert take(worker="v", at=10) == []
    assert labels(take(worker="v", at=11)) == ["a"]
    assert waits(job.id) == ("processing", 2, "v")


def test_a_living_worker_of_the_same_name_keeps_no_old_claim_alive() -> None:
    """
    B007: the one that came after has the same name, is busy, and sends heartbeats.
    """
    (orphan,) = claimed("orphan", worker="w-0")
    store("busy", priority=1)
    with after(1):
        beat("w-0")
        (busy,) = take(1, worker="w-0", at=1)

    for at in range(2, 16, 2):
        with after(at):
            beat("w-0")
            assert busy.heartbeat()
            if at <= 10:
                assert take(worker="v", at=at) == []

    assert labels(take(worker="v", at=16)) == ["orphan"]
    with after(16):
        assert not orphan.ack()
        assert busy.ack()


def test_a_unique_job_that_is_kept_alive_neither_runs_again_nor_gets_a_twin() -> None:
    """
    B017: it runs for five times its visibility timeout; the sweep looks each time.
    """
    (job,) = claimed("stats", key="stats", visibility_timeout=2)

    for at in range(2, 11, 2):
        with after(at):
            assert q.sweep_expired() == 0
            assert take(worker="v", at=at) == []
            assert not q.enqueue("stats", unique_key="stats").created
            assert job.heartbeat()

    assert waits(job.id) == ("processing", 1, "w")
    with after(11):
        assert job.ack()
        assert q.enqueue("stats", unique_key="stats").created


def test_a_job_whose_every_worker_dies_goes_dead() -> None:
    """B006, B023: by the count of its attempts, whoever began them."""
    store("a", max_attempts=3)

    runs = [len(take(worker=f"w{number}", at=11 * number)) for number in range(4)]

    assert runs == [1, 1, 1, 0]
    letter = DeadJob.objects.get()
    assert (letter.reason, letter.attempts) == ("exhausted", 3)
    assert "claim" in letter.last_error.lower()
