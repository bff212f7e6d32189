"""get_job: a job in whichever table it is, with the history of its attempts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_alkstore import JobSnapshot, clock, queue
from django_alkstore.jobs import Notes
from django_alkstore.models import Attempt
from tests.engine.scenes import DAY, NOW, claimed, live, store, tried
from tests.engine.steps import after, take, us

pytestmark = pytest.mark.django_db
q = queue("q")


def get(job_id: int) -> JobSnapshot:
    with after(2):
        job = q.get_job(job_id)
    assert job is not None
    return job


def test_a_waiting_job_shows_every_column() -> None:
    (job_id,) = store("a", delay=60, priority=2, max_attempts=5, expires=90, key="k",
                      timeout=1, dead_letter_retention=2, result_ttl=3)  # fmt: skip

    job = get(job_id)

    assert (job.id, job.state, job.queue, job.task) == (job_id, "scheduled", "q", "")
    assert (job.payload, job.payload_text, job.readable) == ("a", '"a"', True)
    assert (job.priority, job.attempts, job.max_attempts) == (2, 0, 5)
    assert job.run_at == clock.to_instant(us(60))
    assert job.created_at == clock.to_instant(NOW)
    assert job.expires_at == clock.to_instant(us(90))
    assert (job.worker_id, job.claimed_at, job.claim_expires_at) == ("", None, None)
    assert job.visibility_timeout == timedelta(seconds=10)
    assert [job.timeout, job.dead_letter_retention, job.result_ttl] == [
        timedelta(seconds=seconds) for seconds in (1, 2, 3)
    ]
    assert job.unique_key == "k"
    assert job.attempts_history == ()
    assert (job.has_result, job.result, job.finished_at) == (False, None, None)
    assert (job.reason, job.last_error, job.died_at) == ("", "", None)


def test_a_running_job_shows_its_claim() -> None:
    (claim,) = claimed("a", worker="me")

    job = get(claim.id)

    assert (job.state, job.worker_id, job.attempts) == ("processing", "me", 1)
    assert job.claimed_at == clock.to_instant(NOW)
    assert job.claim_expires_at == clock.to_instant(us(10))


def test_a_dead_job_shows_why_it_died() -> None:
    (claim,) = claimed("a")
    with after(1):
        claim.fail("no")

    job = get(claim.id)

    assert (job.state, job.reason, job.last_error) == ("dead", "failed", "no")
    assert job.died_at == clock.to_instant(us(1))
    assert [attempt.message for attempt in job.attempts_history] == ["no"]


@pytest.mark.parametrize("value", [None, 0, "", [], {"a": 1}])
def test_a_finished_job_shows_its_result_and_none_is_one(value: object) -> None:
    (claim,) = claimed("a", result_ttl=DAY)
    with after(1):
        claim.ack(value)

    job = get(claim.id)

    assert (job.state, job.has_result, job.result) == ("finished", True, value)
    assert job.finished_at == clock.to_instant(us(1))


def test_a_job_that_left_no_result_or_never_was_is_none() -> None:
    (claim,) = claimed("a")
    with after(1):
        claim.ack()

    assert q.get_job(claim.id) is None
    assert q.get_job(claim.id + 1000) is None


def test_a_result_past_its_lifetime_is_none_though_it_was_not_swept() -> None:
    (claim,) = claimed("a", result_ttl=5)
    with after(1):
        claim.ack("x")

    with after(5.9):
        assert q.get_job(claim.id) is not None
    with after(6):
        assert q.get_job(claim.id) is None


def test_the_history_is_told_oldest_first_with_what_was_noted() -> None:
    claim = tried("a", worker="w")
    with after(1):
        live.write_notes([(claim, Notes(progress='{"done": 1, "total": 2}', log="l"))])

    first, second = get(claim.id).attempts_history

    assert (first.attempt, first.message, first.progress, first.log) == (
        1,
        "first",
        None,
        "",
    )
    assert first.ended_at == clock.to_instant(NOW)
    assert (second.attempt, second.worker_id) == (2, "w")
    assert (second.progress, second.log) == ({"done": 1, "total": 2}, "l")
    assert (second.started_at, second.ended_at) == (clock.to_instant(NOW), None)


def test_the_history_is_that_of_the_job_alone() -> None:
    tried("a")
    other = tried("b")
    Attempt.objects.filter(job_id=other.id).update(message="other")

    assert [attempt.message for attempt in get(other.id).attempts_history] == ["other"]


def test_a_snapshot_cannot_be_changed() -> None:
    (job_id,) = store("a")

    with pytest.raises(AttributeError):
        get(job_id).priority = 5  # type: ignore[misc]  # that it fails is the point


def test_the_handle_finds_a_job_of_any_queue() -> None:
    (job_id,) = store("a")

    found = queue("other").get_job(job_id)

    assert found is not None
    assert found.queue == "q"


def test_a_lapsed_job_is_processing_until_somebody_looks() -> None:
    (claim,) = claimed("a")

    with after(99):
        found = q.get_job(claim.id)
    assert found is not None
    assert found.state == "processing"
    take(at=99, worker="v")
    assert get(claim.id).worker_id == "v"
