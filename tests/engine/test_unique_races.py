"""A unique key among callers at the same instant, each on a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from django_alkstore import DuplicateJob, queue
from django_alkstore.models import LiveJob
from tests.engine.steps import row, run_sql, side_by_side
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("committing")
q = queue("q")
CALLERS = 8
ROUNDS = 8


def enqueue(key: str, **options: Any) -> Callable[[], LiveJob]:
    return lambda: q.enqueue("x", unique_key=key, **options)


def test_of_many_callers_one_stores_and_the_others_get_its_job() -> None:
    for number in range(ROUNDS):
        jobs = side_by_side(*[enqueue(f"k{number}")] * CALLERS)

        assert [job for job in jobs if isinstance(job, Exception)] == []
        assert len({job.pk for job in jobs}) == 1
        assert sum(job.created for job in jobs) == 1
    assert LiveJob.objects.count() == ROUNDS


def test_of_many_callers_all_but_one_are_told_of_the_duplicate() -> None:
    for number in range(ROUNDS):
        told = side_by_side(*[enqueue(f"k{number}", on_conflict="raise")] * CALLERS)

        (stored,) = [each for each in told if isinstance(each, LiveJob)]
        errors = [each for each in told if each is not stored]
        assert {type(error) for error in errors} == {DuplicateJob}
        assert {error.job_id for error in errors} == {stored.pk}


def test_many_callers_may_replace_one_job() -> None:
    for number in range(ROUNDS):
        jobs = side_by_side(*[enqueue(f"k{number}", on_conflict="replace")] * CALLERS)

        assert len({job.pk for job in jobs}) == 1


def test_a_caller_gets_a_job_while_others_take_and_finish_it() -> None:
    done = threading.Event()

    def consume() -> int:
        finished = 0
        while not done.is_set():
            finished += q.ack_many(q.claim("w", 9))
        return finished

    def produce() -> list[LiveJob]:
        try:
            return [q.enqueue("x", unique_key="k") for _ in range(60)]
        finally:
            done.set()

    finished, jobs = side_by_side(consume, produce)

    assert not isinstance(jobs, Exception), jobs
    assert len(jobs) == 60
    assert finished + LiveJob.objects.count() == sum(job.created for job in jobs)


def test_batches_with_the_same_keys_in_another_order_do_not_lock_each_other() -> None:
    keys = [f"k{number}" for number in range(200)]

    def store(order: list[str]) -> Callable[[], list[int]]:
        return lambda: q.enqueue_many(order, unique_key=order)

    for _ in range(2):
        batches = side_by_side(store(keys), store(keys[::-1]))

        assert [each for each in batches if isinstance(each, Exception)] == []
        assert [row(pk).decoded_payload() for pk in batches[1][:3]] == keys[:-4:-1]
        assert LiveJob.objects.count() == len(keys)
        LiveJob.objects.all().delete()


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
def test_a_job_that_waits_for_the_key_follows_its_holders_transaction(
    commits: bool, engine: str
) -> None:
    held, asked = threading.Event(), threading.Event()

    def hold() -> LiveJob:
        with transaction.atomic():
            job = q.enqueue("holder", unique_key="k")
            held.set()
            assert asked.wait(10)
            if engine == "postgresql":
                wait_until(somebody_waits, message="nobody waits for the key")
            transaction.set_rollback(not commits)
        return job

    def follow() -> LiveJob:
        assert held.wait(10)
        asked.set()
        return q.enqueue("follower", unique_key="k")

    holder, follower = side_by_side(hold, follow)

    assert (holder.created, follower.created) == (True, not commits)
    stored = LiveJob.objects.get()
    assert stored.pk == follower.pk
    assert stored.decoded_payload() == ("holder" if commits else "follower")


@pytest.mark.postgresql_only
def test_a_job_that_waits_for_the_key_gets_it_when_the_holder_ends_meanwhile() -> None:
    q.enqueue("holder", unique_key="k")
    (holder,) = q.claim("w")
    gone = threading.Event()

    def finish() -> bool:
        with transaction.atomic():
            done = holder.ack()
            gone.set()
            wait_until(somebody_waits, message="nobody waits for the key")
        return done

    def follow() -> LiveJob:
        assert gone.wait(10)
        return q.enqueue("follower", unique_key="k")

    done, follower = side_by_side(finish, follow)

    assert done
    assert follower.created


def somebody_waits() -> bool:
    """Whether another session waits for this transaction to end; PostgreSQL tells."""
    statement = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        " AND transactionid = CAST(pg_current_xact_id() AS xid)"
    )
    return bool(run_sql(statement)[0][0])
