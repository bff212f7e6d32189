"""Retry, fail, snooze and release: the job goes back to wait, or goes dead."""

from __future__ import annotations

from typing import Any

import pytest

from django_alkstore import clock, constant, exponential, queue
from django_alkstore.backoff import FUNCTION_STAMP
from django_alkstore.jobs import ClaimedJob
from django_alkstore.models import Attempt, DeadJob, LiveJob
from tests.engine.scenes import at_attempt_21, claimed, labels, retry, store
from tests.engine.steps import after, columns_of, row, take, us, waits, why_dead

pytestmark = pytest.mark.django_db
q = queue("q")


def again(job: ClaimedJob, *args: Any, at: float = 1, **given: Any) -> bool:
    with after(at):
        return job.retry(*args, **given)


def test_a_retried_job_waits_for_its_delay() -> None:
    (job,) = claimed("a")

    assert again(job, 30)

    assert waits(job.id) == ("scheduled", 1, "")
    assert row(job.id).run_at == clock.to_instant(us(31))
    assert row(job.id).claimed_at is row(job.id).claim_expires_at is None
    assert labels(take(at=30)) == []
    assert labels(take(at=31)) == ["a"]


def test_a_retry_without_delay_is_pending_at_once() -> None:
    (job,) = claimed("a")

    assert again(job, 0)

    assert waits(job.id) == ("pending", 1, "")
    assert row(job.id).run_at == clock.to_instant(us(1))


@pytest.mark.parametrize(
    ("backoff", "waited"), [(constant(7), 7), (exponential(5, factor=3), 45), (90, 90)]
)
def test_a_retry_waits_as_the_stamp_says(backoff: Any, waited: int) -> None:
    (job_id,) = store("a", backoff=backoff, max_attempts=9)
    LiveJob.objects.filter(pk=job_id).update(attempts=2)
    (job,) = take()

    assert again(job)

    assert row(job_id).run_at == clock.to_instant(us(1 + waited))


@pytest.mark.parametrize("spent", [15, 16, 17, 24, 1024])
def test_a_backoff_that_would_overflow_is_its_maximum(spent: int) -> None:
    """B142."""
    week = 7 * 86_400
    (job_id,) = store(
        "a", backoff=exponential(5, factor=5, maximum=week), max_attempts=1100
    )
    LiveJob.objects.filter(pk=job_id).update(attempts=spent - 1)
    (job,) = take()

    assert again(job)

    assert waits(job_id) == ("scheduled", spent, "")
    assert row(job_id).run_at == clock.to_instant(us(1 + week))


def test_a_raw_job_whose_backoff_is_a_function_waits_as_by_default() -> None:
    (job_id,) = store("a")
    LiveJob.objects.filter(pk=job_id).update(backoff=FUNCTION_STAMP)
    (job,) = take()

    assert again(job)

    assert row(job_id).run_at == clock.to_instant(us(1 + 5))


@pytest.mark.parametrize(("most", "runs"), [(1, 1), (2, 2), (None, 3)])
def test_a_job_runs_as_often_as_its_attempts_and_then_goes_dead(
    most: int | None, runs: int
) -> None:
    """B145."""
    store("a", max_attempts=most, backoff=0)

    run = 0
    while jobs := take():
        run += 1
        assert again(jobs[0], at=0, error=f"failed {run}")

    assert run == runs
    dead = DeadJob.objects.get()
    assert (dead.reason, dead.last_error, dead.attempts) == (
        "exhausted",
        f"failed {run}",
        run,
    )
    messages = Attempt.objects.order_by("attempt").values_list("message", flat=True)
    assert list(messages) == [f"failed {number + 1}" for number in range(runs)]


def test_a_retry_writes_the_attempt_down() -> None:
    (job,) = claimed("a", worker="me")

    assert again(job, error="bad \x00 byte \ud800")

    attempt = Attempt.objects.get()
    assert (attempt.job_id, attempt.attempt, attempt.worker_id) == (job.id, 1, "me")
    assert attempt.started_at == job.claimed_at
    assert attempt.ended_at == clock.to_instant(us(1))
    assert attempt.message == "bad \\x00 byte \\ud800"


def test_the_last_twenty_attempts_are_kept() -> None:
    job = at_attempt_21()

    with after(1):
        assert retry(job) == "retried"

    kept = Attempt.objects.order_by("attempt").values_list("attempt", flat=True)
    assert list(kept) == list(range(2, 22))


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), 10**12, "1"])
@pytest.mark.parametrize("method", ["retry", "snooze"])
def test_a_bad_delay_is_refused_and_the_claim_stands(method: str, delay: Any) -> None:
    (job,) = claimed("a")

    with after(1), pytest.raises((TypeError, ValueError), match="delay must"):
        getattr(job, method)(delay)

    assert waits(job.id) == ("processing", 1, "w")


def test_the_longest_delay_is_stored_and_covered_by_next_claim_at() -> None:
    (job,) = claimed("a")

    assert again(job, clock.MAX_DURATION / clock.SECOND)

    at = q.next_claim_at()
    assert at == row(job.id).run_at
    assert at is not None
    assert at.year > 9000


def test_fail_lets_a_job_die_whatever_it_has_left() -> None:
    (job,) = claimed("a", max_attempts=9, dead_letter_retention=60, priority=2)
    before = columns_of(LiveJob)

    with after(1):
        assert job.fail("no such order")

    assert columns_of(DeadJob) == before
    dead = DeadJob.objects.get()
    assert (dead.reason, dead.last_error) == ("failed", "no such order")
    assert dead.died_at == clock.to_instant(us(1))
    assert dead.keep_until == clock.to_instant(us(61))
    assert Attempt.objects.get().message == "no such order"


def test_an_error_that_no_database_stores_is_escaped_and_cut() -> None:
    (job,) = claimed("a")

    with after(1):
        assert job.fail("head\x00" + "x" * 100_000 + "\udc80tail")

    error = DeadJob.objects.get().last_error
    assert error.startswith("head\\x00")
    assert error.endswith("\\udc80tail")
    assert len(error) < 5_000


def test_snooze_postpones_a_job_and_spends_no_attempt() -> None:
    (job,) = claimed("a", max_attempts=1)

    with after(1):
        assert job.snooze(30)

    assert waits(job.id) == ("scheduled", 0, "")
    assert row(job.id).run_at == clock.to_instant(us(31))
    assert not Attempt.objects.exists()
    (again,) = take(at=31)
    assert again.attempts == 1


def test_release_gives_a_job_back_as_it_was_before_its_claim() -> None:
    (job_id,) = store("a", priority=3)
    before = LiveJob.objects.values().get()
    (job,) = take(at=1)

    with after(2):
        assert job.release()

    assert LiveJob.objects.values().get() == before
    assert why_dead() == {}


def test_released_jobs_are_claimed_in_their_old_order() -> None:
    store("1", at=us(-9))
    store("2", at=us(-5))
    jobs = take()

    with after(1):
        assert all(job.release() for job in reversed(jobs))

    assert labels(take()) == ["1", "2"]


def test_a_job_may_be_released_more_often_than_it_has_attempts() -> None:
    store("a", max_attempts=1)

    for _ in range(5):
        (job,) = take()
        assert job.attempts == 1
        with after(0):
            assert job.release()

    assert waits(job.id) == ("pending", 0, "")
