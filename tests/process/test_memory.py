"""A worker's memory: flat over big jobs, and small beside a full table."""

from __future__ import annotations

import time
from pathlib import Path

from django_alkstore import clock
from django_alkstore.models import LiveJob, Result
from tests import tasks
from tests.engine.scenes import commits
from tests.engine.steps import run_sql
from tests.process.conftest import SOON, Gate
from tests.processes import WorkerProcess, WorkerProcesses
from tests.waiting import wait_until

pytestmark = commits

KILO = 1_000
WAITING = 200_000
FILL = f"""
INSERT INTO "__alkstore_live" (queue, task, payload, state, run_at)
WITH RECURSIVE numbers (n) AS
    (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {WAITING})
SELECT 'full', %s, %s, 'pending', {clock.SECOND} FROM numbers
"""


def megabytes(worker: WorkerProcess) -> float:
    """Return how much memory a process holds."""
    lines = Path(f"/proc/{worker.pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def test_big_payloads_and_results_leave_nothing_behind(
    run_worker: WorkerProcesses,
) -> None:
    """B158: a leak of each payload would add some 13 MB between the two looks."""
    echo = tasks.echo.using(result_ttl=60, queue="big")
    big = "x" * 450 * KILO

    def run(count: int) -> float:
        for _ in range(count):
            echo.enqueue(big)
        wait_until(lambda: not LiveJob.objects.filter(queue="big").exists())
        Result.objects.all().delete()
        return megabytes(worker)

    worker = run_worker(*SOON, "--threads", "2")
    before = run(30)
    after = run(30)

    assert after - before < 8


def test_a_full_table_is_not_read_at_the_start(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """B160: the first job runs at once, in little memory."""
    payload = '{"args": ["%s"], "kwargs": {}}' % ("x" * 150)
    run_sql(FILL, ["tests.tasks.echo", payload])
    tasks.hold.using(queue="full", priority=1).enqueue(*gate.arguments)
    start = time.monotonic()
    worker = run_worker("--threads", "1")

    gate.wait()

    assert time.monotonic() - start < 4
    assert megabytes(worker) < 150
    worker.kill()
