"""Several processes under one supervisor."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from django_alkstore.models import Worker
from django_alkstore.worker import supervisor as module
from django_alkstore.worker.options import WorkerOptions
from django_alkstore.worker.supervisor import Supervisor
from tests import tasks
from tests.models import Effect
from tests.process.conftest import Gate, RunSite
from tests.processes import WorkerProcesses
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def pids() -> set[int]:
    return set(Worker.objects.values_list("pid", flat=True))


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_children_that_die_are_replaced_and_all_stop_together(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    """B067."""
    worker = run_worker("--processes", "2")
    wait_until(lambda: len(pids()) == 2)
    before = pids()
    assert worker.pid not in before

    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(pids() - before) == 2)
    after = pids() - before
    tasks.hold.enqueue(*gate.arguments, key="done")
    gate.wait()
    worker.signal(signal.SIGTERM)
    wait_until(lambda: any(is_gone(pid) for pid in after))
    gate.open()

    assert worker.wait() == 0
    assert all(is_gone(pid) for pid in after)
    assert Effect.objects.exists()
    assert worker.output.count("event=child_ended") >= 2


def test_a_child_that_reaches_its_jobs_is_replaced(run_worker: WorkerProcesses) -> None:
    tasks.record.enqueue_many([(str(n),) for n in range(12)])
    worker = run_worker("--processes", "2", "--max-jobs", "4")

    wait_until(lambda: Effect.objects.count() == 12)

    assert worker.is_running
    assert worker.stop() == 0


def test_children_of_a_killed_supervisor_end_by_themselves(
    run_worker: WorkerProcesses,
) -> None:
    worker = run_worker("--processes", "2")
    wait_until(lambda: len(pids()) == 2)
    children = pids()

    worker.kill()

    wait_until(lambda: all(is_gone(pid) for pid in children))
    assert not Worker.objects.exists()


def test_a_second_signal_ends_all_at_once(
    run_worker: WorkerProcesses, gate: Gate
) -> None:
    worker = run_worker("--processes", "2")
    tasks.hold_deaf.enqueue(*gate.arguments)
    gate.wait()
    (_, child), *_ = gate.runs

    worker.signal(signal.SIGINT)
    wait_until(lambda: Worker.objects.filter(stopping=True).exists())
    start = time.monotonic()
    worker.signal(signal.SIGINT)

    assert worker.wait() == 128 + signal.SIGINT
    assert time.monotonic() - start < 2
    wait_until(lambda: is_gone(child))


def test_a_supervisor_whose_children_cannot_start_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B067."""
    monkeypatch.setattr(module, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(module, "MOST_FAILURES", 2)
    monkeypatch.setattr(
        module, "child_command", lambda options, verbosity: ["/bin/false"]
    )

    assert Supervisor(WorkerOptions(database="default", processes=2)).run() == 1


# The engine has no part in it, and two starts of a worker take their time.
@pytest.mark.sqlite_only
def test_a_change_of_the_code_starts_a_fresh_worker_and_loses_nothing(
    run_site: RunSite, gate: Gate, tmp_path: Path
) -> None:
    worker = run_site("MARK = 1", "--reload", "--shutdown-timeout", "10")
    tasks.hold.enqueue(*gate.arguments, key="done")
    gate.wait()
    before = wait_until(pids)

    # The settings are a module like any other.
    changed = tmp_path / "site_settings.py"
    changed.write_text(changed.read_text().replace("MARK = 1", "MARK = 2"))
    wait_until(lambda: Worker.objects.filter(stopping=True).exists())
    gate.open()
    wait_until(lambda: pids() and pids().isdisjoint(before))

    assert [effect.note for effect in Effect.objects.all()] == ["attempt 1"]
    tasks.record.enqueue("after")
    wait_until(lambda: Effect.objects.count() == 2)
    worker.signal(signal.SIGINT)
    wait_until(lambda: not Worker.objects.exists())
    worker.wait()
