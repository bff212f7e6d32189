"""
A unique key: one live job of a queue holds it, and what happens to the next comer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_alkstore import DuplicateJob, clock, queue
from django_alkstore.jobs import ClaimedJob
from django_alkstore.models import DeadJob, LiveJob
from django_alkstore.options import OnConflict
from tests.engine.scenes import NOW, store
from tests.engine.steps import after, row, take, us, waits
from tests.models import Order

pytestmark = pytest.mark.django_db
q = queue("q")
RULES: list[OnConflict] = ["return", "raise", "replace"]


def hold(state: str, **options: Any) -> int:
    """Let a job in this state hold the key ``k``; return its id."""
    delay = 60 if state == "scheduled" else None
    with clock.pretend(NOW):
        job = q.enqueue("holder", unique_key="k", delay=delay, **options)
    if state == "processing":
        take()
    assert row(job.pk).state == state
    return job.pk


@pytest.mark.parametrize("state", LiveJob.State.values)
def test_return_hands_back_the_holder_as_it_is(state: str) -> None:
    holder = hold(state)

    job = q.enqueue("new", unique_key="k", priority=9)

    assert (job.pk, job.created) == (holder, False)
    assert (job.state, job.priority, job.decoded_payload()) == (state, 0, "holder")
    assert LiveJob.objects.count() == 1


@pytest.mark.parametrize("state", LiveJob.State.values)
def test_raise_names_the_holder(state: str) -> None:
    holder = hold(state)

    with pytest.raises(DuplicateJob, match=f"job {holder} .* is {state}$") as caught:
        q.enqueue("new", unique_key="k", on_conflict="raise")

    assert caught.value.job_id == holder
    assert LiveJob.objects.count() == 1


@pytest.mark.parametrize("state", ["scheduled", "pending"])
@pytest.mark.parametrize(("delay", "then"), [(None, "pending"), (90, "scheduled")])
def test_replace_gives_the_holder_payload_priority_and_instant(
    state: str, delay: int | None, then: str
) -> None:
    holder = hold(state, max_attempts=7, visibility_timeout=5)

    with after(1):
        job = q.enqueue("new", unique_key="k", on_conflict="replace", priority=9,
                        delay=delay, max_attempts=2)  # fmt: skip

    stored = row(holder)
    assert (job.pk, job.created) == (holder, False)
    assert (stored.decoded_payload(), stored.priority, stored.state) == ("new", 9, then)
    assert stored.run_at == clock.to_instant(us(1 + (delay or 0)))
    assert stored.created_at == clock.to_instant(NOW)
    assert stored.max_attempts == 7


def test_replace_leaves_a_holder_of_another_task_alone() -> None:
    (job_id,) = store("holder", key="k", task="shop.tasks.send")

    with pytest.raises(DuplicateJob) as caught:
        q.enqueue("new", unique_key="k", on_conflict="replace")

    assert caught.value.job_id == job_id
    assert row(job_id).decoded_payload() == "holder"


def test_what_replace_returns_equals_the_row() -> None:
    holder = hold("pending", expires=99, timeout=5)

    job = q.enqueue("new", unique_key="k", on_conflict="replace")

    stored = row(holder)
    for field in LiveJob._meta.concrete_fields:
        assert getattr(job, field.attname) == getattr(stored, field.attname), field.name


def test_replace_of_a_running_job_raises_and_changes_nothing() -> None:
    holder = hold("processing")

    with pytest.raises(DuplicateJob) as caught:
        q.enqueue("new", unique_key="k", on_conflict="replace", priority=9)

    assert caught.value.job_id == holder
    assert (row(holder).decoded_payload(), row(holder).priority) == ("holder", 0)


@pytest.mark.parametrize("rule", RULES)
def test_a_free_key_is_taken_whatever_the_rule(rule: OnConflict) -> None:
    job = q.enqueue("new", unique_key="k", on_conflict=rule)

    assert job.created
    assert row(job.pk).unique_key == "k"


@pytest.mark.parametrize(
    ("queue_name", "key"), [("r", "k"), ("q", "K"), ("q", "k "), ("Q", "k")]
)
def test_another_queue_or_key_is_another_one(queue_name: str, key: str) -> None:
    hold("pending")

    assert queue(queue_name).enqueue("new", unique_key=key).created


def test_jobs_without_a_key_are_never_equal() -> None:
    assert q.enqueue("a").created
    assert q.enqueue("a").created


FREED: dict[str, Callable[[ClaimedJob], object]] = {
    "acked": lambda job: job.ack(),
    "failed": lambda job: job.fail(),
    "spent": lambda job: job.retry(),
    "cancelled": lambda job: q.cancel(job.id),
}


@pytest.mark.parametrize("ended", FREED)
def test_a_job_that_has_ended_holds_its_key_no_longer(ended: str) -> None:
    hold("pending", max_attempts=1)
    (job,) = q.claim("w")

    FREED[ended](job)

    assert q.enqueue("new", unique_key="k").created


@pytest.mark.parametrize("rule", RULES)
def test_a_job_that_has_expired_gives_its_key_to_the_next(rule: OnConflict) -> None:
    holder = hold("pending", expires=1)

    with after(2):
        assert q.enqueue("new", unique_key="k", on_conflict=rule).created

    assert DeadJob.objects.get().pk == holder


def test_a_job_that_has_not_expired_yet_holds_its_key() -> None:
    hold("pending", expires=60)

    with after(2):
        assert not q.enqueue("new", unique_key="k").created


def test_a_retry_does_not_collide_with_itself() -> None:
    """B062."""
    holder = hold("scheduled")
    (job,) = take(at=60)

    with after(60):
        assert job.retry(delay=1)

    assert waits(holder) == ("scheduled", 1, "")
    assert row(holder).unique_key == "k"
    assert not q.enqueue("new", unique_key="k").created
    (again,) = take(at=61)
    assert (again.id, again.attempts) == (holder, 2)


@pytest.mark.parametrize("rule", RULES)
def test_a_conflict_leaves_the_callers_transaction_usable(rule: OnConflict) -> None:
    hold("processing")

    with transaction.atomic():
        Order.objects.create(number="before")
        with suppress(DuplicateJob):
            q.enqueue("new", unique_key="k", on_conflict=rule)
        Order.objects.create(number="after")

    assert Order.objects.count() == 2


def test_a_conflict_costs_two_statements_and_no_savepoint() -> None:
    hold("pending")

    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        q.enqueue("new", unique_key="k")

    assert [query["sql"].split()[0] for query in queries] == ["INSERT", "SELECT"]


@pytest.mark.parametrize("rule", RULES)
def test_a_holder_that_goes_before_it_is_looked_at_makes_room(rule: OnConflict) -> None:
    holder = hold("processing")

    def go(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT"):
            execute(
                'DELETE FROM "__alkstore_live" WHERE id = %s', [holder], False, context
            )
        return execute(sql, params, many, context)

    with connection.execute_wrapper(go):
        job = q.enqueue("new", unique_key="k", on_conflict=rule)

    assert job.created
    assert row(job.pk).decoded_payload() == "new"


def test_a_key_that_is_taken_and_freed_for_ever_is_a_duplicate_in_the_end() -> None:
    hold("processing")

    def hide(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT"):
            return execute(
                f"SELECT * FROM ({sql}) AS none WHERE false", params, many, context
            )
        return execute(sql, params, many, context)

    with connection.execute_wrapper(hide), pytest.raises(DuplicateJob) as caught:
        q.enqueue("new", unique_key="k")

    assert caught.value.job_id is None
    assert "100 times" in str(caught.value)
