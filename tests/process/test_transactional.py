"""
Transactional tasks in a real worker: everything commits together, or nothing does.
"""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import Permission
from django.db import connection, transaction

from django_alkstore import Context, constant, task
from django_alkstore.models import DeadJob, LiveJob
from tests import tasks
from tests.models import Effect
from tests.process.conftest import StartWorker, drained
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_error_at_commit_time_is_a_failed_attempt(start_worker: StartWorker) -> None:
    @task(transactional=True, max_attempts=2, backoff=constant(0), takes_context=True)
    def commit_badly(context: Context) -> None:
        Effect.objects.create(key=f"attempt {context.attempt}")
        if context.attempt == 1:
            # A foreign key is looked at when the transaction commits.
            Permission.objects.create(codename="x", name="x", content_type_id=999_999)

    start_worker()
    commit_badly.enqueue()
    wait_until(drained)

    assert not DeadJob.objects.exists()
    assert [effect.key for effect in Effect.objects.all()] == ["attempt 2"]


def test_hooks_of_a_transactional_task_run_after_its_commit(
    start_worker: StartWorker,
) -> None:
    hooks: list[tuple[str, bool]] = []

    @task(transactional=True)
    def hook(fails: bool) -> None:
        def after() -> None:
            hooks.append(("after", connection.in_atomic_block))
            if fails:
                raise tasks.Boom("too late")

        transaction.on_commit(after)
        Effect.objects.create(key="done")

    start_worker()
    hook.enqueue(False)
    # The commit stands, so this one is done too, whatever its hook raised.
    hook.enqueue(True)
    wait_until(drained)

    assert hooks == [("after", False)] * 2
    assert Effect.objects.count() == 2
    assert not DeadJob.objects.exists()


# On SQLite nobody can cancel it meanwhile: the task holds the write lock.
@pytest.mark.postgresql_only
def test_a_transactional_task_whose_job_was_cancelled_leaves_nothing(
    start_worker: StartWorker,
) -> None:
    begun, go = threading.Event(), threading.Event()

    @task(transactional=True)
    def slow() -> None:
        begun.set()
        assert go.wait(15)
        Effect.objects.create(key="never")

    job = slow.enqueue()
    start_worker()
    assert begun.wait(15)
    assert LiveJob.objects.cancel(job.pk)
    go.set()
    tasks.record.enqueue("after")
    wait_until(Effect.objects.exists)

    assert [effect.key for effect in Effect.objects.all()] == ["after"]
    assert DeadJob.objects.get().reason == "cancelled"


def test_a_transactional_task_that_leaves_one_open_has_failed_and_written_nothing(
    start_worker: StartWorker,
) -> None:
    @task(transactional=True, max_attempts=2, backoff=constant(0), takes_context=True)
    def leave_open(context: Context) -> None:
        Effect.objects.create(key=f"attempt {context.attempt}")
        if context.attempt == 1:
            transaction.atomic().__enter__()

    start_worker(threads=1)
    leave_open.enqueue()
    wait_until(drained)

    assert [effect.key for effect in Effect.objects.all()] == ["attempt 2"]
