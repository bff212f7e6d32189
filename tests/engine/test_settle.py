"""Ack: the job is finished, and leaves a result if one was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_alkstore import InvalidPayload, clock, queue
from django_alkstore.jobs import ClaimedJob, Failure, Notes
from django_alkstore.models import Attempt, DeadJob, LiveJob, Result
from tests.engine.scenes import DAY, claimed, labels, live, store, tried
from tests.engine.steps import after, columns_of, take, us, waits

pytestmark = pytest.mark.django_db
q = queue("q")


def ack(job: ClaimedJob, *result: object) -> bool:
    with after(1):
        return job.ack(*result)


def test_an_acked_job_is_gone() -> None:
    (job,) = claimed("a")

    assert ack(job)

    assert not LiveJob.objects.exists()
    assert not DeadJob.objects.exists()
    assert q.get_job(job.id) is None


def test_a_job_is_acked_once() -> None:
    (job,) = claimed("a")

    assert ack(job)
    assert not ack(job)


def test_a_first_attempt_is_acked_by_one_statement() -> None:
    (job,) = claimed("a")

    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        assert ack(job)

    assert [query["sql"].split()[0] for query in queries] == ["DELETE"]


@pytest.mark.parametrize("value", [None, 0, 0.0, False, "", [], {}, "x", -0.0, 2**80])
def test_a_result_comes_back_as_it_was_given(value: object) -> None:
    (job,) = claimed("a", result_ttl=DAY)

    assert ack(job, value)

    with after(2):
        found = q.get_job(job.id)
    assert found is not None
    assert (found.state, found.has_result) == ("finished", True)
    assert repr(found.result) == repr(value)


def test_a_result_row_keeps_the_jobs_id_and_columns() -> None:
    (job,) = claimed("a", result_ttl=60, priority=3, max_attempts=5)
    before = columns_of(LiveJob)

    assert ack(job, "x")

    assert columns_of(Result) == before
    result = Result.objects.get()
    assert result.finished_at == clock.to_instant(us(1))
    assert result.keep_until == clock.to_instant(us(61))


def test_a_result_nobody_asked_for_is_not_kept() -> None:
    (job,) = claimed("a")

    assert ack(job, "x")

    assert not Result.objects.exists()


@pytest.mark.parametrize("value", [float("nan"), {1}, object(), (1, 2)])
def test_a_result_that_is_not_json_is_refused_and_the_claim_stands(value: Any) -> None:
    (job,) = claimed("a", result_ttl=DAY)

    with pytest.raises(InvalidPayload, match="^result: "):
        ack(job, value)

    assert waits(job.id) == ("processing", 1, "w")
    assert ack(job, "x")


def test_text_that_no_database_stores_comes_back_in_a_result_unchanged() -> None:
    (job,) = claimed("a", result_ttl=DAY)
    value = {"a\x00": ["b\x00", "\ud800"]}

    assert ack(job, value)

    with after(2):
        found = q.get_job(job.id)
    assert found is not None
    assert found.result == value
    assert Result.objects.get().value.isascii()


def test_many_jobs_of_every_kind_are_acked_at_once() -> None:
    jobs = [
        *claimed("plain"), tried("tried"), *claimed("kept", result_ttl=DAY),
        *claimed("another worker's", worker="v"),
    ]  # fmt: skip

    with after(1):
        done = live.ack_many(jobs, results={jobs[2].id: '"value"'})

    assert done == {job.id for job in jobs}
    assert Result.objects.get().value == '"value"'
    assert not LiveJob.objects.exists()
    assert not Attempt.objects.exists()


def test_ack_many_counts_those_that_were_still_ours() -> None:
    mine = claimed("a", "b")
    (lapsed,) = claimed("c", visibility_timeout=0.5)

    with after(1):
        assert q.cancel(mine[0].id)
        assert q.ack_many([*mine, lapsed]) == 1

    assert LiveJob.objects.get().pk == lapsed.id


def test_ack_many_of_nothing_is_nothing() -> None:
    assert q.ack_many([]) == 0


def test_a_hundred_jobs_are_acked_by_one_statement() -> None:
    jobs = claimed(*map(str, range(100)))

    with after(1), CaptureQueriesContext(connection) as queries:
        assert q.ack_many(jobs) == 100

    assert len(queries) == 1


def test_the_attempts_of_a_job_without_a_result_go_with_it() -> None:
    job = tried("a")
    assert Attempt.objects.filter(job_id=job.id).exists()

    assert ack(job)

    assert not Attempt.objects.exists()


def test_the_attempts_of_a_job_with_a_result_are_kept_beside_it() -> None:
    job = tried("a", result_ttl=DAY)
    with after(0.5):
        live.write_notes([(job, Notes(progress='{"done": 1}', log="line"))])

    with after(1):
        live.ack_many([job], notes={job.id: Notes(log="line\nlast")})

    first, second = Attempt.objects.filter(job_id=job.id).order_by("attempt")
    assert (first.attempt, first.message) == (1, "first")
    assert (second.log, second.progress) == ("line\nlast", '{"done": 1}')
    assert second.ended_at == clock.to_instant(us(1))
    assert second.exception_class == ""


def test_notes_of_an_attempt_that_lapsed_do_not_undo_its_end() -> None:
    (job,) = claimed("a")
    take(worker="v", at=11)

    with after(12):
        live.write_notes([(job, Notes(progress='{"done": 2}', log="late"))])

    (attempt,) = Attempt.objects.filter(job_id=job.id)
    assert attempt.ended_at == clock.to_instant(us(11))
    assert attempt.exception_class.endswith("ClaimLost")
    assert (attempt.log, attempt.progress) == ("late", '{"done": 2}')


def test_a_failure_ends_an_attempt_that_has_left_notes_and_keeps_them() -> None:
    (job,) = claimed("a")
    with after(1):
        live.write_notes([(job, Notes(progress='{"done": 1}', log="line"))])

    with after(2):
        live.retry(job, delay=0, failure=Failure.said("no", "shop.Boom"))

    (attempt,) = Attempt.objects.filter(job_id=job.id)
    assert attempt.ended_at == clock.to_instant(us(2))
    assert (attempt.exception_class, attempt.message) == ("shop.Boom", "no")
    assert (attempt.log, attempt.progress) == ("line", '{"done": 1}')


# A transactional task's ack is fenced by job, worker and attempt, and not by expiry.


def ack_late(job: ClaimedJob, at: float = 30) -> bool:
    with after(at):
        return live.ack(job, '"done"', lapsed_ok=True)


@pytest.mark.parametrize(
    "found", [False, True], ids=["unnoticed", "made pending again"]
)
def test_a_transactional_ack_holds_until_somebody_claims_the_job_anew(
    found: bool,
) -> None:
    (job,) = claimed("a", result_ttl=DAY)
    if found:
        store("urgent", priority=5)
        assert labels(take(1, worker="v", at=11)) == ["urgent"]
        assert waits(job.id)[0] == "pending"

    assert ack_late(job)

    assert Result.objects.get().value == '"done"'
    assert not LiveJob.objects.filter(pk=job.id).exists()


def test_a_transactional_ack_is_refused_when_the_job_was_claimed_anew() -> None:
    (job,) = claimed("a")
    take(worker="w", at=11)

    assert not ack_late(job, at=12)

    assert waits(job.id) == ("processing", 2, "w")


def test_a_transactional_ack_is_refused_when_the_job_is_dead() -> None:
    (job,) = claimed("a", max_attempts=1)
    take(worker="v", at=11)

    assert not ack_late(job)
    assert DeadJob.objects.filter(pk=job.id).exists()


def test_a_transactional_ack_is_refused_when_the_waiting_job_was_changed() -> None:
    edited, replaced = claimed("edited", "replaced")
    LiveJob.objects.filter(pk=replaced.id).update(unique_key="k")
    store("urgent", priority=5)
    take(1, worker="v", at=11)

    q.update(edited.id, payload="new")
    q.enqueue("new", unique_key="k", on_conflict="replace")

    assert not ack_late(edited)
    assert not ack_late(replaced)
    assert LiveJob.objects.filter(payload='"new"').count() == 2
