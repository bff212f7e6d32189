"""Draining jobs in a test's own process, connection and transaction."""

from __future__ import annotations

import asyncio
import functools

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, connection, transaction

from django_alkstore import Context, constant, queue, task
from django_alkstore.models import DeadJob, LiveJob, Result
from django_alkstore.testing import arun_jobs, run_jobs
from tests import tasks
from tests.models import Effect, Order

pytestmark = pytest.mark.django_db


def effects() -> list[str]:
    return list(Effect.objects.order_by("pk").values_list("key", flat=True))


def test_everything_that_is_due_runs_and_is_counted() -> None:
    tasks.record.enqueue("a")
    tasks.fail.using(max_attempts=1).enqueue()
    tasks.record.enqueue("b")

    report = run_jobs()

    assert effects() == ["a", "b"]
    assert (report.ran, report.succeeded, report.failed, report.dead) == (3, 2, 1, 1)
    assert [type(error) for error in report.errors] == [tasks.Boom]
    assert not LiveJob.objects.exists()


def test_nothing_to_run_is_an_empty_report() -> None:
    assert run_jobs().ran == 0


def test_jobs_run_by_priority_and_then_in_their_order() -> None:
    tasks.record.enqueue("second")
    tasks.record.using(priority=5).enqueue("first")
    tasks.record.enqueue("third")

    run_jobs()

    assert effects() == ["first", "second", "third"]


def test_jobs_that_a_task_enqueues_run_too() -> None:
    order = Order.objects.create(number="1")
    tasks.notify.enqueue(order.pk)

    report = run_jobs()

    order.refresh_from_db()
    assert report.ran == 2
    assert order.notified
    assert effects() == [f"notified {order.pk}", f"followed {order.pk}"]


def test_limit_bounds_the_attempts() -> None:
    tasks.record.enqueue_many([("a",), ("b",), ("c",)])

    assert run_jobs(2).ran == 2
    assert effects() == ["a", "b"]
    assert run_jobs(limit=2).ran == 1


def test_one_queue_can_be_run_by_itself() -> None:
    tasks.record.using(queue="mine").enqueue("mine")
    tasks.record.enqueue("other")

    run_jobs(queue="mine")

    assert effects() == ["mine"]


def test_a_paused_queue_and_raw_jobs_are_left_alone() -> None:
    queue("raw").enqueue({"any": "thing"})
    tasks.record.using(queue="paused").enqueue("a")
    queue("paused").pause()

    assert run_jobs().ran == 0
    assert LiveJob.objects.count() == 2


@pytest.mark.django_db(databases=["default", "other"])
def test_the_jobs_of_another_database_are_run_when_named() -> None:
    tasks.add.using(using="other").enqueue(1, 2)

    assert run_jobs().ran == 0
    assert run_jobs(using="other").succeeded == 1


def test_a_failed_attempt_is_tried_again_when_it_is_due() -> None:
    tasks.fail_times.enqueue(2, "done")

    report = run_jobs()

    assert (report.ran, report.failed, report.succeeded, report.dead) == (3, 2, 1, 0)
    assert Effect.objects.get().note == "attempt 3"


def test_an_exception_is_raised_here_if_asked_for_once_it_is_settled() -> None:
    job = tasks.fail.using(max_attempts=1).enqueue("that one")
    tasks.record.enqueue("after")

    with pytest.raises(tasks.Boom, match="that one"):
        run_jobs(raise_errors=True)

    assert DeadJob.objects.get().pk == job.pk
    assert run_jobs(raise_errors=True).succeeded == 1


def test_discard_and_system_exit_are_failures_and_end_nothing() -> None:
    tasks.discard.enqueue("no such order")
    tasks.leave.enqueue()
    tasks.record.enqueue("after")

    report = run_jobs()

    assert (report.failed, report.dead, report.succeeded) == (2, 2, 1)
    assert dict(DeadJob.objects.values_list("task", "reason")) == {
        "tests.tasks.discard": "failed",
        "tests.tasks.leave": "exhausted",
    }


def test_an_unknown_task_and_an_unreadable_payload_die_as_invalid() -> None:
    gone = tasks.noop.enqueue()
    LiveJob.objects.filter(pk=gone.pk).update(task="shop.tasks.gone")
    shape = tasks.noop.enqueue()
    LiveJob.objects.filter(pk=shape.pk).update(payload="[1]")
    broken = tasks.noop.enqueue()
    LiveJob.objects.filter(pk=broken.pk).update(payload='{"a":')
    tasks.record.enqueue("after")

    run_jobs()

    assert set(DeadJob.objects.values_list("pk", "reason")) == {
        (gone.pk, "invalid"), (shape.pk, "invalid"), (broken.pk, "invalid"),
    }  # fmt: skip
    assert DeadJob.objects.get(pk=broken.pk).payload == '{"a":'
    assert effects() == ["after"]


def test_async_tasks_run_on_this_connection() -> None:
    tasks.async_record.enqueue("a")
    result = tasks.async_add.enqueue(1, 2)
    tasks.async_fail.using(max_attempts=1).enqueue()

    report = run_jobs()

    assert (report.succeeded, report.dead) == (2, 1)
    assert effects() == ["a"]
    assert tasks.async_add.get_result(result.pk).return_value == 3


def test_it_can_be_awaited() -> None:
    tasks.record.enqueue("a")

    async def run() -> int:
        await asyncio.sleep(0)
        return (await arun_jobs()).ran

    assert async_to_sync(run)() == 1
    assert effects() == ["a"]


def test_progress_and_log_lines_are_stored() -> None:
    job = tasks.report.using(result_ttl=60).enqueue(2)

    run_jobs()

    (attempt,) = tasks.report.get_result(job.pk).job.attempts_history
    assert attempt.progress == {"done": 2, "total": 2, "message": "step 2"}
    assert "step 1 of 2" in attempt.log
    assert attempt.ended_at is not None


def test_a_heartbeat_extends_the_claim_and_sees_a_cancellation(
    own_registry: None,
) -> None:
    seen: list[tuple[bool, bool]] = []

    @task(takes_context=True)
    def work(context: Context) -> None:
        seen.append((context.heartbeat(), context.cancelled))
        queue("default").cancel(context.job.id)
        seen.append((context.heartbeat(), context.cancelled))

    work.enqueue()
    report = run_jobs()

    assert seen == [(True, False), (False, True)]
    assert (report.ran, report.succeeded, report.failed) == (1, 0, 0)
    assert DeadJob.objects.get().reason == "cancelled"


def test_a_transactional_task_that_fails_leaves_nothing() -> None:
    tasks.record_then_fail.using(max_attempts=1).enqueue("gone")
    tasks.record_once.enqueue("kept")

    report = run_jobs()

    assert effects() == ["kept"]
    assert (report.succeeded, report.dead) == (1, 1)


def test_a_statement_that_fails_in_a_task_does_not_end_the_tests_transaction(
    own_registry: None,
) -> None:
    Order.objects.create(number="1")

    @task(max_attempts=1)
    def twice() -> None:
        Order.objects.create(number="1")

    twice.enqueue()
    tasks.record.enqueue("after")
    report = run_jobs()

    assert [type(error) for error in report.errors] == [IntegrityError]
    assert DeadJob.objects.get().reason == "exhausted"
    assert effects() == ["after"]


def test_a_task_that_marks_the_transaction_for_rollback_loses_only_its_own_part(
    own_registry: None,
) -> None:
    @task(max_attempts=1)
    def inner() -> None:
        Effect.objects.create(key="gone")
        with transaction.atomic(savepoint=False):
            raise tasks.Boom

    inner.enqueue()
    tasks.record.enqueue("kept")
    run_jobs()

    assert effects() == ["kept"]


def test_results_are_kept() -> None:
    job = tasks.add.enqueue(2, 3)

    run_jobs()

    assert Result.objects.get(pk=job.pk).decoded_value() == 5


def test_a_result_that_is_not_json_is_a_failure() -> None:
    tasks.return_what_is_not_json.using(result_ttl=60).enqueue()

    report = run_jobs()

    assert (report.failed, report.dead) == (1, 1)
    assert DeadJob.objects.get().last_error


@pytest.mark.django_db(transaction=True)
def test_it_works_without_a_transaction_too() -> None:
    tasks.record.enqueue("a")
    tasks.fail.using(max_attempts=1).enqueue()
    tasks.record_once.enqueue("b")

    report = run_jobs()

    assert (report.succeeded, report.dead) == (2, 1)
    assert effects() == ["a", "b"]
    assert not connection.in_atomic_block


def test_a_task_that_returns_an_awaitable_unmarked_is_awaited_or_failed(
    own_registry: None,
) -> None:
    async def body() -> None:
        await Effect.objects.acreate(key="ran")

    @task(max_attempts=1, backoff=constant(0))
    def hidden() -> object:
        return body()

    hidden.enqueue()
    report = run_jobs()

    assert report.succeeded == len(effects())
    assert report.ran == 1


class Handler:
    """A handler that is an object, and leaves a trace once it has been awaited."""

    async def __call__(self, key: str) -> None:
        await asyncio.sleep(0)
        await Effect.objects.acreate(key=key)


async def record_later(key: str, note: str) -> None:
    await asyncio.sleep(0)
    await Effect.objects.acreate(key=key, note=note)


def test_async_partials_and_objects_are_awaited_to_their_end(
    own_registry: None,
) -> None:
    """B154."""
    partial = task(name="partial")(functools.partial(record_later, note="partial"))
    instance = task(name="object")(Handler())
    partial.enqueue("a")
    instance.enqueue("b")

    report = run_jobs()

    assert report.succeeded == 2
    assert effects() == ["a", "b"]


def test_ctrl_c_is_settled_as_a_failure_and_still_ends_the_run(
    own_registry: None,
) -> None:
    @task(max_attempts=1)
    def interrupt() -> None:
        raise KeyboardInterrupt

    interrupt.enqueue()
    with pytest.raises(KeyboardInterrupt):
        run_jobs()

    assert "KeyboardInterrupt" in DeadJob.objects.get().last_error


def test_a_durable_block_of_a_task_works_in_a_test_case(own_registry: None) -> None:
    @task
    def durable() -> None:
        with transaction.atomic(durable=True):
            Effect.objects.create(key="durable")

    durable.enqueue()

    assert run_jobs(raise_errors=True).succeeded == 1
    assert effects() == ["durable"]
