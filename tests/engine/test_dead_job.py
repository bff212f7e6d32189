"""Dead jobs: their second chance, and how long they are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_alkstore import clock, queue
from django_alkstore.managers import dead_job, pruning
from django_alkstore.models import Attempt, DeadJob, LiveJob, Result
from tests.engine.scenes import DAY, claimed, finished, labels, store
from tests.engine.scenes import dead as bury
from tests.engine.steps import after, columns_of, row, side_by_side, take, us, waits

pytestmark = pytest.mark.django_db
q = queue("q")
requeue = DeadJob.objects.requeue
FRESH = {"id", "run_at", "created_at", "expires_at", "attempts", "worker_id", "claimed_at",
         "claim_expires_at"}  # fmt: skip


def die(*labels: str, **given: Any) -> list[int]:
    """Make jobs that died just now; return their ids."""
    jobs = claimed(*labels, **given)
    with after(1):
        assert all(job.fail("no") for job in jobs)
    return [job.id for job in jobs]


def test_a_requeued_job_is_pending_with_a_new_id_and_all_its_attempts() -> None:
    (old,) = die("a", max_attempts=1, priority=4, timeout=5, result_ttl=6)
    before = columns_of(DeadJob)

    with after(2):
        (new,), refused = requeue([old])

    assert refused == []
    assert new > old
    assert waits(new) == ("pending", 0, "")
    assert row(new).run_at == row(new).created_at == clock.to_instant(us(2))
    changed = columns_of(LiveJob)
    assert {name for name in before if changed[name] != before[name]} <= FRESH
    assert not DeadJob.objects.exists()


def test_a_requeued_job_runs_as_often_as_a_new_one() -> None:
    (old,) = die("a", max_attempts=2)

    (new,), _ = requeue([old])

    for attempt in (1, 2):
        (job,) = take(at=2)
        assert (job.id, job.attempts) == (new, attempt)
        with after(2):
            assert job.retry(0)
    assert DeadJob.objects.get().pk == new


@pytest.mark.parametrize("value", [3889108265204450030, 2**80, -0.0, 1e16])
def test_a_payload_is_exact_through_death_and_requeue(value: object) -> None:
    """B086."""
    q.enqueue([value])
    (job,) = q.claim("w")
    job.fail("no")

    requeue(DeadJob.objects.all())

    (again,) = q.claim("w")
    assert repr(again.payload) == repr([value])


def test_the_time_to_start_by_counts_anew() -> None:
    (old,) = die("a", expires=30)

    with after(100):
        (new,), _ = requeue([old])

    assert row(new).expires_at == clock.to_instant(us(130))
    assert labels(take(at=129)) == ["a"]


def test_the_old_attempts_are_forgotten() -> None:
    die("a")
    assert Attempt.objects.exists()

    requeue(DeadJob.objects.all())

    assert not Attempt.objects.exists()


def test_a_job_whose_key_is_held_stays_dead_as_it_was() -> None:
    (free,) = die("free")
    (held,) = die("held")
    DeadJob.objects.filter(pk=held).update(unique_key="k")
    before = DeadJob.objects.filter(pk=held).values().get()
    q.enqueue("holder", unique_key="k")

    new, refused = requeue([held, free])

    assert refused == [held]
    assert row(new[0]).payload == '"free"'
    assert DeadJob.objects.values().get() == before
    assert Attempt.objects.get().job_id == held


def test_of_two_dead_jobs_with_one_key_the_older_is_requeued() -> None:
    older, younger = die("older", "younger")
    DeadJob.objects.update(unique_key="k")

    new, refused = requeue([younger, older])

    assert refused == [younger]
    assert row(new[0]).payload == '"older"'


def test_ids_that_are_not_dead_are_left_out() -> None:
    (alive,) = store("alive")
    (dead,) = die("dead", priority=9)

    new, refused = requeue([alive, dead, dead + 1000, dead])

    assert (len(new), refused) == (1, [])
    assert requeue([dead]) == ([], [])
    assert requeue([]) == ([], [])


def test_a_query_that_the_rows_leave_is_requeued_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dead_job, "BATCH", 3)
    die(*"abcdefgh")

    new, _ = requeue(DeadJob.objects.filter(reason="failed"))

    assert len(new) == 8
    assert labels(take()) == list("abcdefgh")


def test_each_batch_is_a_transaction_of_its_own(
    monkeypatch: pytest.MonkeyPatch, committing: None
) -> None:
    monkeypatch.setattr(dead_job, "BATCH", 3)
    ids = die(*"abcdefgh")

    with CaptureQueriesContext(connection) as queries:
        requeue(ids)

    assert len([query for query in queries if query["sql"].startswith("BEGIN")]) == 3


def test_two_operators_requeue_each_job_once(committing: None) -> None:
    ids = die(*map(str, range(40)))

    results = side_by_side(*[lambda: requeue(ids)] * 3)

    assert sorted(len(new) for new, _ in results) == [0, 0, 40]
    assert LiveJob.objects.count() == 40


def retention(at: float) -> int:
    with after(at):
        return DeadJob.objects.sweep_retention()


def test_a_dead_job_is_kept_for_its_own_time() -> None:
    die("a", dead_letter_retention=60)

    assert retention(60.999_999) == 0
    assert retention(61) == 1
    assert not DeadJob.objects.exists()
    assert not Attempt.objects.exists()


def test_a_dead_job_without_a_time_of_its_own_is_kept_for_thirty_days() -> None:
    die("a")

    assert retention(30 * DAY) == 0
    assert retention(30 * DAY + 1) == 1


@pytest.mark.parametrize(("kept", "swept"), [(60, [0, 1]), (None, [0, 0])])
def test_the_setting_says_how_long_the_others_are_kept(
    kept: int | None, swept: list[int]
) -> None:
    die("a")

    with override_settings(ALKSTORE={"RETENTION": {"dead": kept}}):
        assert [retention(60), retention(61)] == swept


def test_a_job_with_a_time_of_its_own_outlives_the_setting() -> None:
    die("a", dead_letter_retention=timedelta(days=365))

    assert retention(31 * DAY) == 0


def test_only_what_is_swept_loses_its_attempts() -> None:
    die("a", dead_letter_retention=5)
    (kept,) = die("b")

    assert retention(9) == 1

    assert Attempt.objects.get().job_id == kept


def test_a_limit_bounds_both_kinds_of_retention_together() -> None:
    die("a", "b", dead_letter_retention=5)
    die("c", "d")

    with after(31 * DAY):
        assert DeadJob.objects.sweep_retention(limit=3) == 3
        assert DeadJob.objects.sweep_retention(limit=3) == 1


def test_a_sweep_that_fails_keeps_the_batches_that_were_done(
    monkeypatch: pytest.MonkeyPatch, committing: None
) -> None:
    """B134."""
    monkeypatch.setattr(pruning, "BATCH", 2)
    bury(*"abcde", dead_letter_retention=1)
    deletes = 0

    def fail(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal deletes
        deletes += sql.startswith('DELETE FROM "__alkstore_dead"')
        if deletes == 2:
            raise RuntimeError("killed")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail), pytest.raises(RuntimeError, match="killed"):
        retention(0)

    assert DeadJob.objects.count() == 3
    assert retention(0) == 3


def test_results_are_swept_when_their_time_is_over() -> None:
    finished("a", "b")
    (job,) = claimed("kept", result_ttl=60)
    with after(1):
        job.ack("x")

    with transaction.atomic(), after(2):
        assert Result.objects.sweep(limit=1) == 1
        assert Result.objects.sweep() == 1
        assert Result.objects.sweep() == 0

    assert Result.objects.get().pk == job.id
    assert not Attempt.objects.exists()
