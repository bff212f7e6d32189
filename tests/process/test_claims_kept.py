"""
Claims are rows with a deadline: no name, session or row of a worker keeps them alive.
"""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from datetime import datetime

import pytest
from django.db import OperationalError, connection, transaction

from django_alkstore import queue
from django_alkstore.models import LiveJob, Worker
from tests import tasks
from tests.engine.scenes import commits
from tests.engine.steps import run_sql
from tests.models import Effect
from tests.process.conftest import SOON, Gate, drained
from tests.processes import WorkerProcess, WorkerProcesses
from tests.waiting import wait_until

pytestmark = commits


def lapses_at(job_id: int) -> datetime:
    at = LiveJob.objects.get(pk=job_id).claim_expires_at
    assert at is not None
    return at


def is_paused(worker: WorkerProcess, job_id: int) -> bool:
    """Stop a worker between two of its transactions, whose locks it would keep."""
    worker.signal(signal.SIGSTOP)
    try:
        if connection.vendor == "sqlite":
            path = connection.settings_dict["NAME"]
            with closing(sqlite3.connect(path, timeout=0.1)) as file:
                file.execute("BEGIN IMMEDIATE")
        else:
            with transaction.atomic():
                LiveJob.objects.select_for_update(nowait=True).get(pk=job_id)
    except (sqlite3.OperationalError, OperationalError):
        worker.signal(signal.SIGCONT)
        return False
    return True


def test_a_job_of_a_dead_worker_without_a_row_runs_again(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """B007: the workers' table is for people, and its rows may be gone."""
    task = tasks.hold.using(visibility_timeout=0.6)
    task.enqueue(*gate.arguments, key="done")
    first = run_worker(*SOON)
    gate.wait()

    first.kill()
    Worker.objects.all().delete()
    assert queue("default").sweep_expired() == 0
    run_worker(*SOON)
    gate.wait(2)
    gate.open()
    wait_until(drained)

    assert [effect.note for effect in Effect.objects.all()] == ["attempt 2"]


def test_a_paused_workers_late_ack_is_refused(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """B015: whoever slept past its deadline is told so, and has no say any more."""
    task = tasks.hold.using(visibility_timeout=2)
    job = task.enqueue(*gate.arguments)
    first = run_worker(*SOON, "--threads", "1")
    gate.wait()

    wait_until(lambda: is_paused(first, job.pk))
    run_worker(*SOON, "--threads", "1")
    gate.wait(2)
    owner = LiveJob.objects.get(pk=job.pk).worker_id
    first.signal(signal.SIGCONT)
    wait_until(lambda: "event=claim_lost" in first.output)

    row = LiveJob.objects.get(pk=job.pk)
    assert (row.worker_id, row.attempts) == (owner, 2)
    gate.open()
    wait_until(drained)
    assert len(gate.runs) == 2


@pytest.mark.postgresql_only
def test_a_claim_survives_the_loss_of_its_workers_sessions(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """B020: the heartbeat reconnects in time, and nobody else runs the job."""
    task = tasks.hold.using(visibility_timeout=2)
    job = task.enqueue(*gate.arguments, key="done")
    run_worker(*SOON, "--threads", "1")
    gate.wait()
    run_worker(*SOON, "--threads", "1")
    wait_until(lambda: Worker.objects.count() == 2)

    before = lapses_at(job.pk)
    (ended,) = run_sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert ended[0] >= 2
    wait_until(lambda: (lapses_at(job.pk) - before).total_seconds() > 1)
    gate.open()
    wait_until(drained)

    assert [effect.note for effect in Effect.objects.all()] == ["attempt 1"]
    assert len(gate.runs) == 1
