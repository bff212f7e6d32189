"""
What an attempt can end with, in a real worker: every way is recorded, none ends it.
"""

from __future__ import annotations

import pytest

from django_alkstore.models import Attempt, DeadJob, LiveJob, Worker
from tests import tasks
from tests.models import Effect
from tests.process.conftest import StartWorker, drained
from tests.processes import WorkerProcesses
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ODD = {
    "SystemExit": "SystemExit",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "GeneratorExit": "GeneratorExit",
    "CancelledError": "CancelledError",
    "BaseException": "BaseException",
    "its own cause": "Boom",
    "two that cause each other": "Boom",
    "NUL": "Boom",
    "lone surrogate": "Boom",
    "unprintable": "Unprintable",
}


@pytest.mark.parametrize("threads", ["1", "3"])
def test_whatever_a_task_raises_is_a_failed_attempt_and_the_worker_lives_on(
    run_worker: WorkerProcesses, threads: str
) -> None:
    """B071, B074, B076."""
    jobs = {}
    for kind, name in ODD.items():
        jobs[tasks.raise_odd.enqueue(kind).pk] = name
        jobs[tasks.async_raise_odd.enqueue(kind).pk] = name
    worker = run_worker("--threads", threads)
    wait_until(drained)
    tasks.record.enqueue("after")
    tasks.async_record.enqueue("async after")
    wait_until(lambda: Effect.objects.count() == 2)

    assert worker.is_running
    assert Worker.objects.get().pid == worker.pid
    assert set(DeadJob.objects.values_list("reason", flat=True)) == {"exhausted"}
    said = dict(Attempt.objects.values_list("job_id", "exception_class"))
    assert {pk: path.rpartition(".")[2] for pk, path in said.items()} == jobs
    traces = Attempt.objects.values_list("traceback", flat=True)
    assert all(traces)
    # The first frame is the task's own; the worker's are of no use to its author.
    assert not any("worker/run.py" in trace.split("tasks.py")[0] for trace in traces)
    assert worker.stop() == 0


def test_retry_discard_and_results_end_as_the_task_says(
    start_worker: StartWorker,
) -> None:
    later = tasks.retry_later.enqueue(3600)
    no = tasks.discard.enqueue("no such order")
    odd = tasks.return_what_is_not_json.using(result_ttl=60, max_attempts=5).enqueue()
    kept = tasks.add.enqueue(2, 3)
    async_kept = tasks.async_add.enqueue(2, 4)
    told = tasks.report.using(result_ttl=60).enqueue(2)
    spent = tasks.retry_later.using(max_attempts=1).enqueue(3600)

    start_worker()
    wait_until(lambda: not LiveJob.objects.exclude(state="scheduled").exists())

    assert LiveJob.objects.get().pk == later.pk
    assert LiveJob.objects.get().state == "scheduled"
    reasons = dict(DeadJob.objects.values_list("pk", "reason"))
    assert reasons == {no.pk: "failed", odd.pk: "invalid", spent.pk: "exhausted"}
    assert "object is not JSON" in DeadJob.objects.get(pk=odd.pk).last_error
    assert tasks.add.get_result(kept.pk).return_value == 5
    assert tasks.async_add.get_result(async_kept.pk).return_value == 6
    attempt = tasks.report.get_result(told.pk).job.attempts_history[0]
    assert attempt.progress == {"done": 2, "total": 2, "message": "step 2"}
    assert "step 1 of 2" in attempt.log


def test_a_transactional_task_commits_its_effects_with_its_own_end_or_neither(
    start_worker: StartWorker,
) -> None:
    """B053."""
    tasks.record_once.enqueue("kept")
    tasks.record_then_fail.using(max_attempts=1).enqueue("gone")

    start_worker()
    wait_until(drained)

    assert [effect.key for effect in Effect.objects.all()] == ["kept"]
    assert DeadJob.objects.get().last_error.endswith("Boom: gone")
