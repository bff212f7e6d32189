"""What a real worker sees of other transactions, and what others see of its own."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from django.db import transaction

from django_alkstore.models import LiveJob, Worker
from tests import tasks
from tests.engine.scenes import commits
from tests.engine.steps import run_sql
from tests.models import Effect, Order
from tests.process.conftest import SOON, Gate, RunSite, drained
from tests.processes import WorkerProcesses
from tests.waiting import wait_until

pytestmark = commits


@pytest.mark.parametrize("kept", [True, False], ids=["commit", "rollback"])
def test_a_job_begins_after_its_transaction_commits_or_never(
    run_worker: WorkerProcesses, kept: bool
) -> None:
    """B049: a worker that looks all the time finds the row that its job is about."""
    run_worker("--poll-interval", "0.02", "--threads", "2")
    wait_until(Worker.objects.exists)

    with transaction.atomic():
        order = Order.objects.create(number="1")
        tasks.notify.using(max_attempts=1).enqueue(order.pk)
        # Time for some twenty looks of the worker, of which none may find it.
        time.sleep(0.4)
        assert not Effect.objects.exists()
        transaction.set_rollback(not kept)
    tasks.record.enqueue("after")
    wait_until(drained)

    keys = set(Effect.objects.values_list("key", flat=True))
    if kept:
        order.refresh_from_db()
        assert order.notified
        assert keys == {f"notified {order.pk}", f"followed {order.pk}", "after"}
    else:
        assert keys == {"after"}


@pytest.mark.sqlite_only
def test_a_worker_that_seldom_polls_is_woken_by_the_commit(
    run_worker: WorkerProcesses,
) -> None:
    """B049: nobody waits for the next poll."""
    run_worker("--poll-interval", "60")
    wait_until(Worker.objects.exists)

    with transaction.atomic():
        tasks.record.enqueue("committed")

    wait_until(Effect.objects.exists, timeout=5)


@pytest.mark.postgresql_only
def test_a_handler_that_asks_nothing_holds_nothing(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """
    B055: no session is idle in a transaction, and a table can be altered meanwhile.
    """
    tasks.hold_deaf.using(visibility_timeout=1).enqueue(*gate.arguments)
    run_worker(*SOON, "--threads", "2")
    gate.wait()
    ours = "datname = current_database() AND pid <> pg_backend_pid()"

    for _ in range(10):
        idle = run_sql(
            "SELECT query FROM pg_stat_activity"
            f" WHERE {ours} AND state LIKE 'idle in transaction%%'"
            " AND state_change < clock_timestamp() - interval '0.2 s'"
        )
        assert idle == []
        time.sleep(0.05)
    start = time.monotonic()
    run_sql("SET lock_timeout = '2s'")
    try:
        run_sql('ALTER TABLE "__alkstore_live" ADD COLUMN extra INTEGER')
        run_sql('ALTER TABLE "__alkstore_live" DROP COLUMN extra')
    finally:
        run_sql("RESET lock_timeout")

    assert time.monotonic() - start < 1
    gate.open()
    wait_until(drained)


def test_a_far_job_keeps_no_worker_from_a_new_one(
    run_worker: WorkerProcesses, engine: str
) -> None:
    """B147: a wait of seven thousand years is cut, and ends with the next job."""
    far = tasks.record.using(run_at=datetime(9000, 1, 1, tzinfo=UTC)).enqueue("far")
    # As long as no system call waits, where a commit wakes; else as usual.
    interval = "1e12" if engine == "sqlite" else "1"
    worker = run_worker("--threads", "1", "--poll-interval", interval)
    wait_until(Worker.objects.exists)

    tasks.record.enqueue("now")
    wait_until(lambda: LiveJob.objects.count() == 1)

    assert [effect.key for effect in Effect.objects.all()] == ["now"]
    assert LiveJob.objects.get().pk == far.pk
    assert worker.stop() == 0


def test_a_site_without_time_zones_waits_as_long_as_it_was_told(
    run_site: RunSite,
) -> None:
    """B152: half a second is half a second in Shanghai, eight hours from UTC."""
    tasks.record.using(delay=0.5).enqueue("soon")
    tasks.record.using(delay=3600).enqueue("in an hour")
    tasks.record.using(delay=-0.0, expires=7200).enqueue("not expired")
    worker = run_site("USE_TZ = False\nTIME_ZONE = 'Asia/Shanghai'\n", *SOON)
    wait_until(lambda: LiveJob.objects.count() == 1)

    assert Effect.objects.count() == 2
    assert LiveJob.objects.get().state == "scheduled"
    assert worker.stop() == 0
    assert "Traceback" not in worker.output


def test_unique_jobs_that_wait_or_are_tried_again_run(
    run_worker: WorkerProcesses,
) -> None:
    """B062: neither a delay nor a retry makes a job a duplicate of itself."""
    tasks.record.using(unique_key="delayed", delay=0.3).enqueue("delayed")
    again = tasks.fail_times.using(unique_key="retried", backoff=0.2)
    again.enqueue(1, "retried")
    run_worker(*SOON)
    wait_until(drained)

    keys = set(Effect.objects.values_list("key", flat=True))
    assert keys == {"delayed", "retried"}
