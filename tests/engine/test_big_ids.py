"""Ids above 32 bits, and above what a float tells apart, through a job's whole life."""

from __future__ import annotations

import pytest

from django_alkstore import queue, sql
from django_alkstore.jobs import Notes
from django_alkstore.models import Attempt, DeadJob, LiveJob, Result
from tests.engine.scenes import DAY, live
from tests.engine.steps import after, take

pytestmark = pytest.mark.django_db
q = queue("q")


@pytest.fixture(params=[2**31 + 5, 2**53 + 1], ids=["2**31", "2**53"])
def least(request: pytest.FixtureRequest) -> int:
    """Let every id from here on be above a number; return it."""
    for table in ("__alkstore_live", "__alkstore_attempts"):
        sql.raise_counter("default", table, request.param)
    number: int = request.param
    return number


def test_jobs_are_stored_and_acked(least: int) -> None:
    """B119."""
    job = q.enqueue("a")
    ids = q.enqueue_many(["b", "c"], unique_key=["b", "c"])

    claimed = q.claim("w", 9)

    assert [each.id for each in claimed] == [job.pk, *ids]
    assert job.pk > least
    assert all(each.heartbeat() for each in claimed)
    assert claimed[0].ack()
    assert q.ack_many(claimed[1:]) == 2
    assert not LiveJob.objects.exists()


def test_neighbouring_ids_are_told_apart(least: int) -> None:
    q.enqueue_many(range(4))
    first, second, third, fourth = q.claim("w", 9)

    assert second.ack()
    assert third.fail()
    assert fourth.release()

    assert first.heartbeat()
    assert set(LiveJob.objects.values_list("pk", flat=True)) == {first.id, fourth.id}
    assert DeadJob.objects.get().pk == third.id


def test_a_job_is_retried_edited_cancelled_and_requeued(least: int) -> None:
    """B119."""
    with after(0):
        job = q.enqueue("a", max_attempts=2, result_ttl=DAY)
        (claim,) = q.claim("w")
        live.write_notes([(claim, Notes(log="x"))])
        assert claim.retry(5)
        assert q.update(job.pk, priority=3)
        assert q.cancel(job.pk)
        (new,), refused = DeadJob.objects.requeue([job.pk])

    assert refused == []
    assert new > job.pk > least


def test_a_result_and_its_attempts_are_found(least: int) -> None:
    """B119."""
    with after(0):
        job = q.enqueue("a", result_ttl=DAY)
        (claim,) = q.claim("w")
        assert claim.retry(0)
        (claim,) = q.claim("w")
        assert claim.ack("value")
        found = q.get_job(job.pk)

    assert found is not None
    assert (found.result, len(found.attempts_history)) == ("value", 1)
    assert Attempt.objects.get().pk > least
    with after(DAY + 1):
        assert Result.objects.sweep() == 1
    assert not Attempt.objects.exists()


def test_a_lapsed_and_an_undecodable_one_are_moved(least: int) -> None:
    with after(-100):
        q.enqueue("lapsed", visibility_timeout=1, max_attempts=1)
        q.claim("w")
        broken = q.enqueue("broken")
        live.filter(pk=broken.pk).update(payload="{")

    assert take() == []

    reasons = DeadJob.objects.order_by("pk").values_list("reason", flat=True)
    assert list(reasons) == ["exhausted", "invalid"]
