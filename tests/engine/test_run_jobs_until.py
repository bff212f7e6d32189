"""Draining jobs while time passes: ``run_jobs(until=...)``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_alkstore import Context, Retry, exponential, task
from django_alkstore.models import DeadJob, LiveJob
from django_alkstore.testing import run_jobs
from tests import tasks
from tests.models import Effect

pytestmark = pytest.mark.django_db


def effects() -> list[str]:
    return list(Effect.objects.order_by("pk").values_list("key", flat=True))


def test_a_job_for_later_waits() -> None:
    tasks.record.using(delay=60).enqueue("later")

    assert run_jobs().ran == 0
    assert run_jobs(until=59).ran == 0
    assert run_jobs(until=61).ran == 1
    assert effects() == ["later"]


def test_until_takes_a_datetime_or_a_timedelta() -> None:
    at = datetime.now(UTC) + timedelta(days=400)
    tasks.record.using(run_at=at).enqueue("a")
    tasks.record.using(run_at=at + timedelta(days=1)).enqueue("b")

    assert run_jobs(until=at - timedelta(seconds=1)).ran == 0
    assert run_jobs(until=at).ran == 1
    assert run_jobs(until=timedelta(days=402)).ran == 1


def test_time_passes_job_by_job_in_the_order_in_which_they_are_due() -> None:
    tasks.record.using(delay=30).enqueue("c")
    tasks.record.using(delay=10).enqueue("a")
    tasks.record.using(delay=20, priority=9).enqueue("b")

    run_jobs(until=60)

    assert effects() == ["a", "b", "c"]


def test_retries_within_the_time_run_and_those_beyond_it_wait(
    own_registry: None,
) -> None:
    @task(backoff=exponential(10), max_attempts=10)
    def fail() -> None:
        raise tasks.Boom

    fail.enqueue()

    # At 0, 10, 30, 70 and 150 seconds.
    assert run_jobs(until=69).ran == 3
    assert LiveJob.objects.get().state == "scheduled"


def test_a_job_enqueued_with_a_delay_while_time_passes_waits_from_there(
    own_registry: None,
) -> None:
    @task
    def chain(left: int) -> None:
        Effect.objects.create(key=str(left))
        if left:
            chain.using(delay=10).enqueue(left - 1)

    chain.using(delay=10).enqueue(5)
    run_jobs(until=35)

    assert effects() == ["5", "4", "3"]


def test_retry_with_a_delay_waits_that_long(own_registry: None) -> None:
    @task(takes_context=True)
    def later(context: Context) -> None:
        if context.attempt == 1:
            raise Retry(delay=100)

    later.enqueue()

    assert run_jobs(until=99).ran == 1
    assert run_jobs(until=100).succeeded == 1


def test_a_job_that_expires_before_it_is_due_dies_as_time_passes() -> None:
    tasks.record.using(delay=60, expires=30).enqueue("never")

    assert run_jobs(until=120).ran == 0
    assert DeadJob.objects.get().reason == "expired"


def test_a_backoff_function_decides_and_none_means_dead(own_registry: None) -> None:
    asked: list[tuple[str, int]] = []

    def wait(exception: BaseException, result: object) -> float | None:
        asked.append((str(exception), result.attempts))  # type: ignore[attr-defined]
        return 5 if len(asked) == 1 else None

    @task(backoff=wait, max_attempts=10)
    def fail() -> None:
        raise tasks.Boom("no")

    fail.enqueue()
    report = run_jobs(until=60)

    assert asked == [("no", 1), ("no", 2)]
    assert (report.ran, report.dead) == (2, 1)
    assert DeadJob.objects.get().reason == "failed"
