"""Results: what became of a job, and waiting for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import override_settings

from django_alkstore import JobFailed, ResultDoesNotExist, task
from django_alkstore.models import DeadJob, LiveJob, Result
from django_alkstore.results import TaskError, TaskResult
from django_alkstore.testing import run_jobs
from django_alkstore.wake import AsyncWaiter, Waiter
from tests import tasks

VALUES: list[Any] = [0, [], "", False, {}, None, 0.0]


@pytest.fixture
def once_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Do something in another thread, as soon as this one has looked and waits."""
    threads: list[threading.Thread] = []
    waits = threading.Event()
    wait, async_wait = Waiter.wait, AsyncWaiter.wait

    def watched(waiter: Waiter, timeout: float) -> bool:
        waits.set()
        return wait(waiter, timeout)

    async def async_watched(waiter: AsyncWaiter, timeout: float) -> bool:
        waits.set()
        return await async_wait(waiter, timeout)

    monkeypatch.setattr(Waiter, "wait", watched)
    monkeypatch.setattr(AsyncWaiter, "wait", async_watched)

    def start(work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                if waits.wait(30):
                    work()
            finally:
                connection.close()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


def holding(value: object) -> Any:
    @task(name=f"returns {value!r}", result_ttl=60)
    def returns() -> Any:
        return value

    return returns


@pytest.mark.django_db
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_falsy_return_value_is_a_value(value: object, own_registry: None) -> None:
    """B179."""
    returns = holding(value)
    job = returns.enqueue()
    run_jobs()

    result = returns.get_result(job.pk)
    assert (result.state, result.is_finished) == ("finished", True)
    assert repr(result.return_value) == repr(value)
    assert result.job.has_result


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_waiting_for_a_falsy_value_returns_it_at_once(
    value: object, own_registry: None
) -> None:
    """B179."""
    returns = holding(value)
    job = returns.enqueue()
    run_jobs()
    result = returns.get_result(job.pk)

    assert repr(result.wait(timeout=5)) == repr(value)
    assert repr(async_to_sync(result.await_result)(timeout=5)) == repr(value)


@pytest.mark.django_db
def test_an_unfinished_job_has_no_return_value_yet() -> None:
    result = tasks.add.get_result(tasks.add.enqueue(1, 2).pk)

    assert (result.state, result.attempts, result.errors) == ("pending", 0, [])
    assert result.finished_at is None
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value


@pytest.mark.django_db
def test_refresh_reads_the_job_again() -> None:
    result = tasks.add.get_result(tasks.add.enqueue(1, 2).pk)
    run_jobs()

    assert result.state == "pending"
    result.refresh()
    assert (result.state, result.return_value) == ("finished", 3)
    assert result.finished_at is not None
    assert result.finished_at >= result.enqueued_at


@pytest.mark.django_db
def test_refresh_and_get_result_have_async_twins() -> None:
    job = tasks.add.enqueue(1, 2)

    async def look() -> TaskResult[int]:
        result = await tasks.add.aget_result(job.pk)
        await result.arefresh()
        return result

    assert async_to_sync(look)().id == job.pk


@pytest.mark.django_db
def test_a_dead_job_has_its_errors_and_no_return_value() -> None:
    job = tasks.fail.using(max_attempts=2).enqueue("broken")
    run_jobs()

    result = tasks.fail.get_result(job.pk)
    assert (result.state, result.attempts) == ("dead", 2)
    assert result.job.reason == "exhausted"
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value
    first, second = result.errors
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.exception_class_path == "tests.tasks.Boom"
    assert first.exception_class is tasks.Boom
    assert first.message == "broken"
    assert "raise Boom(message)" in first.traceback


@pytest.mark.django_db
def test_errors_of_earlier_attempts_stay_with_a_success() -> None:
    job = tasks.fail_times.using(result_ttl=60).enqueue(2, "done")
    run_jobs()

    result = tasks.fail_times.get_result(job.pk)
    assert (result.state, result.attempts) == ("finished", 3)
    assert [error.message for error in result.errors] == ["attempt 1", "attempt 2"]


def test_an_error_whose_class_is_no_exception_says_so() -> None:
    with pytest.raises(ValueError, match="no exception"):
        _ = TaskError("builtins.int", "").exception_class
    assert TaskError("builtins.KeyError", "").exception_class is KeyError


@pytest.mark.django_db
def test_the_progress_of_the_last_attempt_is_shown() -> None:
    job = tasks.report.using(result_ttl=60).enqueue(3)
    assert tasks.report.get_result(job.pk).progress is None
    run_jobs()

    progress = tasks.report.get_result(job.pk).progress
    assert progress == {"done": 3, "total": 3, "message": "step 3"}


@pytest.mark.django_db
def test_an_unknown_id_and_the_job_of_another_task_do_not_exist() -> None:
    job = tasks.record.enqueue("a")

    for job_id in (0, -1, job.pk + 1, 2**62):
        with pytest.raises(ResultDoesNotExist):
            tasks.record.get_result(job_id)
    with pytest.raises(ResultDoesNotExist, match=r"tests\.tasks\.add"):
        tasks.add.get_result(job.pk)


@pytest.mark.django_db
def test_a_job_that_kept_no_result_does_not_exist_once_it_is_finished() -> None:
    job = tasks.noop.enqueue()
    result = tasks.noop.get_result(job.pk)
    run_jobs()

    with pytest.raises(ResultDoesNotExist):
        tasks.noop.get_result(job.pk)
    with pytest.raises(ResultDoesNotExist):
        result.refresh()


@pytest.mark.django_db
def test_a_result_past_its_lifetime_does_not_exist_even_before_it_is_swept() -> None:
    """B179."""
    job = tasks.add.enqueue(1, 2)
    run_jobs()
    past = datetime.now(UTC) - timedelta(seconds=1)
    Result.objects.filter(pk=job.pk).update(keep_until=past)

    with pytest.raises(ResultDoesNotExist):
        tasks.add.get_result(job.pk)


@pytest.mark.django_db
def test_waiting_inside_an_atomic_block_is_refused_at_once() -> None:
    result = tasks.add.get_result(tasks.add.enqueue(1, 2).pk)
    start = time.monotonic()

    with pytest.raises(transaction.TransactionManagementError, match="atomic"):
        result.wait(timeout=30)
    with pytest.raises(transaction.TransactionManagementError, match="atomic"):
        async_to_sync(result.await_result)(timeout=30)

    assert time.monotonic() - start < 5


@pytest.mark.django_db(transaction=True)
def test_waiting_longer_than_the_timeout_is_a_timeout_error() -> None:
    result = tasks.add.get_result(tasks.add.enqueue(1, 2).pk)

    for timeout in (0, 0.05, timedelta(milliseconds=50)):
        with pytest.raises(TimeoutError, match=f"job {result.id} had not finished"):
            result.wait(timeout=timeout)
        with pytest.raises(TimeoutError):
            async_to_sync(result.await_result)(timeout=timeout)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_timeout_that_is_no_duration_is_refused(timeout: float) -> None:
    result = tasks.add.get_result(tasks.add.enqueue(1, 2).pk)

    with pytest.raises(ValueError, match="timeout"):
        result.wait(timeout=timeout)


@pytest.mark.django_db(transaction=True)
def test_a_job_that_went_dead_raises_job_failed_with_its_reason() -> None:
    """B179."""
    job = tasks.fail.using(max_attempts=1).enqueue("broken")
    result = tasks.fail.get_result(job.pk)
    run_jobs()

    with pytest.raises(JobFailed) as caught:
        result.wait(timeout=5)
    assert (caught.value.job_id, caught.value.reason) == (job.pk, "exhausted")
    assert "broken" in caught.value.error


@pytest.mark.django_db(transaction=True)
def test_a_job_that_kept_nothing_raises_result_does_not_exist() -> None:
    """B179."""
    job = tasks.noop.enqueue()
    result = tasks.noop.get_result(job.pk)
    run_jobs()

    with pytest.raises(ResultDoesNotExist):
        result.wait(timeout=5)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("waits", ["sync", "async"])
def test_a_waiter_is_woken_when_the_job_ends_in_another_thread(
    waits: str, once_it_waits: Callable[[Callable[[], object]], None]
) -> None:
    result = tasks.add.get_result(tasks.add.enqueue(1, 2).pk)
    wait = result.wait if waits == "sync" else async_to_sync(result.await_result)

    with override_settings(ALKSTORE={"POLL_INTERVAL": 0.5}):
        once_it_waits(run_jobs)
        assert wait(timeout=30) == 3


@pytest.mark.sqlite_only
@pytest.mark.django_db(transaction=True)
def test_on_sqlite_the_wait_ends_long_before_the_poll_interval(
    once_it_waits: Callable[[Callable[[], object]], None],
) -> None:
    result = tasks.add.get_result(tasks.add.enqueue(1, 2).pk)
    start = time.monotonic()

    with override_settings(ALKSTORE={"POLL_INTERVAL": 60}):
        once_it_waits(run_jobs)
        assert result.wait(timeout=120) == 3

    assert time.monotonic() - start < 20


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_job_ends_the_wait(
    once_it_waits: Callable[[Callable[[], object]], None],
) -> None:
    job = tasks.add.enqueue(1, 2)
    result = tasks.add.get_result(job.pk)

    with override_settings(ALKSTORE={"POLL_INTERVAL": 0.5}):
        once_it_waits(lambda: LiveJob.objects.cancel(job.pk))
        with pytest.raises(JobFailed, match="cancelled"):
            result.wait(timeout=30)
    assert DeadJob.objects.filter(pk=job.pk).exists()
