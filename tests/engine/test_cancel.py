"""Cancel: a job in any state goes dead, and what runs is told by its next word."""

from __future__ import annotations

import pytest

from django_alkstore import clock, queue
from django_alkstore.models import Attempt, DeadJob, LiveJob
from tests.engine.scenes import DAY, claimed, store, tried
from tests.engine.steps import after, columns_of, take, us

pytestmark = pytest.mark.django_db
q = queue("q")


@pytest.mark.parametrize("state", LiveJob.State.values)
def test_a_job_in_any_state_goes_dead_as_cancelled(state: str) -> None:
    (job_id,) = store("a", delay=5 if state == "scheduled" else None, result_ttl=DAY,
                      dead_letter_retention=60)  # fmt: skip
    if state == "processing":
        take()
    before = columns_of(LiveJob)

    with after(1):
        assert q.cancel(job_id) is True

    assert columns_of(DeadJob) == before
    dead = DeadJob.objects.get()
    assert (dead.pk, dead.reason) == (job_id, "cancelled")
    assert dead.last_error == "it was cancelled"
    assert dead.died_at == clock.to_instant(us(1))
    assert dead.keep_until == clock.to_instant(us(61))
    assert not LiveJob.objects.exists()


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_running_job_that_was_cancelled_is_not_tried_again(attempts: int) -> None:
    """B102."""
    (job,) = claimed("a", max_attempts=attempts)
    assert q.cancel(job.id)

    with after(1):
        assert not job.heartbeat()
        assert not job.retry(error="failed after all")
        assert not job.ack()

    assert take(at=99) == []
    assert DeadJob.objects.get().reason == "cancelled"


def test_what_is_not_live_cannot_be_cancelled() -> None:
    (acked,) = claimed("a")
    with after(1):
        acked.ack()
    (cancelled,) = store("b")
    assert q.cancel(cancelled)

    assert q.cancel(acked.id) is False
    assert q.cancel(cancelled) is False
    assert q.cancel(cancelled + 1000) is False
    assert DeadJob.objects.count() == 1


def test_the_attempts_history_stays_with_the_dead_job() -> None:
    job = tried("a")

    assert q.cancel(job.id)

    assert Attempt.objects.get().job_id == job.id
