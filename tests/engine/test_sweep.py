"""sweep_expired: the jobs whose time is up go dead, though nobody claims."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_alkstore import clock, queue
from django_alkstore.managers import claiming
from django_alkstore.models import Attempt, DeadJob, LiveJob
from tests.engine.scenes import EARLIER, claimed, live, options, store, tried
from tests.engine.steps import after, why_dead

pytestmark = pytest.mark.django_db
q = queue("q")


def sweep(at: float, limit: int | None = None) -> int:
    with after(at):
        return live.sweep_expired("q", limit)


@pytest.mark.parametrize("task", ["", "t"])
def test_waiting_jobs_past_their_expiry_go_dead(task: str) -> None:
    store("pending", expires=5, task=task)
    store("scheduled", expires=5, delay=1, task=task)
    store("not yet", expires=5.000_001, task=task)
    store("never", task=task)

    assert sweep(5) == 2

    assert why_dead() == {"pending": "expired", "scheduled": "expired"}
    assert LiveJob.objects.count() == 2


def test_a_running_job_goes_dead_when_both_its_times_have_passed() -> None:
    claimed("a", expires=5)

    assert sweep(5) == sweep(10) == 0
    assert sweep(10.000_001) == 1
    assert why_dead() == {"a": "expired"}


def test_a_job_whose_last_attempt_lapsed_goes_dead_as_exhausted() -> None:
    (job,) = claimed("a", max_attempts=1, worker="gone")

    assert sweep(10) == 0
    assert sweep(10.000_001) == 1

    assert why_dead() == {"a": "exhausted"}
    assert Attempt.objects.get().worker_id == "gone"


def test_a_spent_job_that_is_expired_too_goes_dead_once() -> None:
    claimed("a", max_attempts=1, expires=5)

    assert sweep(11) == 1

    assert why_dead() == {"a": "exhausted"}


def test_a_lapsed_job_with_attempts_left_is_not_swept() -> None:
    claimed("a")

    assert sweep(99) == 0

    assert LiveJob.objects.count() == 1


def test_other_queues_are_left_alone() -> None:
    store("a", expires=5)

    with after(9):
        assert queue("other").sweep_expired() == 0
        assert q.sweep_expired() == 1


def test_a_paused_queue_is_swept_too() -> None:
    store("a", expires=5)
    q.pause()

    assert sweep(9) == 1


def test_a_limit_bounds_both_kinds_together() -> None:
    claimed("a", "b", max_attempts=1)
    store("c", "d", "e", expires=5)

    assert sweep(11, limit=3) == 3
    assert LiveJob.objects.count() == 2
    assert sweep(11, limit=3) == 2
    assert sweep(11, limit=3) == 0


def test_a_sweep_without_limit_goes_in_batches(
    monkeypatch: pytest.MonkeyPatch, committing: None
) -> None:
    monkeypatch.setattr(claiming, "SWEEP", 10)
    with clock.pretend(EARLIER):
        live.enqueue_many(options(expires=1), [f'"{n}"' for n in range(25)])

    with CaptureQueriesContext(connection) as queries:
        assert sweep(0) == 25

    begins = [query for query in queries if query["sql"].startswith("BEGIN")]
    assert len(begins) == 3
    assert DeadJob.objects.count() == 25


def test_a_sweep_joins_the_callers_transaction() -> None:
    store("a", expires=5)

    with transaction.atomic():
        assert sweep(9) == 1
        transaction.set_rollback(True)

    assert why_dead() == {}
    assert LiveJob.objects.count() == 1


def test_only_attempts_whose_job_is_nowhere_are_orphans() -> None:
    job = tried("a")
    for job_id in (job.id + 1000, job.id + 1001):
        Attempt.objects.create(job_id=job_id, attempt=1, worker_id="w")

    assert Attempt.objects.sweep_orphans() == (2, 0)
    assert Attempt.objects.sweep_orphans() == (0, 0)

    assert Attempt.objects.get().job_id == job.id


def test_orphans_are_looked_for_a_window_at_a_time() -> None:
    job = tried("a")
    for job_id in (job.id + 1000, job.id + 1001):
        Attempt.objects.create(job_id=job_id, attempt=1, worker_id="w")

    found, last = Attempt.objects.sweep_orphans(limit=2)
    then, end = Attempt.objects.sweep_orphans(after=last, limit=2)

    assert (found, then, end) == (1, 1, 0)
    assert Attempt.objects.get().job_id == job.id
