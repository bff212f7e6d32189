"""The commands for operators: each calls a manager and says what was done."""

from __future__ import annotations

import io
import json
import socket
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_alkstore import queue
from django_alkstore.models import Attempt, DeadJob, LiveJob, Result, Worker
from django_alkstore.testing import run_jobs
from tests import tasks

pytestmark = pytest.mark.django_db


def call(name: str, *arguments: Any) -> str:
    out = io.StringIO()
    call_command(name, *arguments, stdout=out)
    return out.getvalue()


def a_worker(worker_id: str, host: str = "elsewhere") -> None:
    Worker.objects.beat(
        worker_id, host=host, pid=1, queues="*", threads=1, running="[]", stopping=False
    )


def dead_jobs(count: int, **options: Any) -> list[int]:
    jobs = [
        tasks.fail.using(max_attempts=1, **options).enqueue().pk for _ in range(count)
    ]
    run_jobs()
    return jobs


def test_prune_deletes_what_is_old_and_says_what_it_keeps() -> None:
    long_ago = timezone.now() - timedelta(days=2)
    dead_jobs(1)
    DeadJob.objects.update(keep_until=long_ago)
    dead_jobs(2)
    tasks.add.enqueue(1, 2)
    run_jobs()
    Result.objects.update(keep_until=long_ago)
    tasks.add.enqueue(1, 2)
    run_jobs()
    Attempt.objects.create(job_id=10**9, attempt=1, worker_id="gone")
    a_worker("gone")
    Worker.objects.update(seen_at=long_ago)

    said = call("alkstore_prune")

    assert "results: 1 deleted, 1 kept" in said
    assert "dead jobs: 1 deleted, 2 kept" in said
    assert "attempts: 1 deleted, 2 kept" in said
    assert "workers: 1 deleted, 0 kept" in said
    assert (Result.objects.count(), DeadJob.objects.count()) == (1, 2)


def test_requeue_takes_ids_and_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_alkstore.management.commands.alkstore_requeue.BATCH", 2)
    first, *_ = dead_jobs(3, queue="mail")
    dead_jobs(2)

    assert "1 requeued, 0 refused" in call("alkstore_requeue", str(first))
    assert "2 requeued so far" in call("alkstore_requeue", "--queue", "mail")
    assert "2 requeued" in call("alkstore_requeue", "--reason", "exhausted")
    assert "0 requeued" in call("alkstore_requeue", "--all")
    assert LiveJob.objects.count() == 5


def test_requeue_counts_what_is_refused() -> None:
    dead_jobs(1, unique_key="k")
    tasks.fail.using(unique_key="k").enqueue()

    assert "0 requeued, 1 refused" in call("alkstore_requeue", "--all")
    assert DeadJob.objects.count() == 1


def test_requeue_wants_to_be_told_which() -> None:
    with pytest.raises(CommandError, match="--all"):
        call("alkstore_requeue")


def test_stats_in_words_and_in_json() -> None:
    dead_jobs(1)
    tasks.noop.enqueue()
    queue("mail").enqueue({}, delay=60)
    queue("mail").pause()
    a_worker("w")

    rows = [line.split() for line in call("alkstore_stats").splitlines()]
    found = json.loads(call("alkstore_stats", "--json"))

    assert rows[1][:5] == ["default", "0", "1", "0", "1"]
    assert rows[2] == ["mail", "1", "0", "0", "0", "-", "yes"]
    assert rows[3] == ["workers", "alive:", "1"]
    assert found["workers"] == 1
    assert found["queues"]["mail"]["scheduled"] == 1
    assert found["queues"]["default"]["oldest_pending_at"]


def test_health_is_a_matter_of_living_workers() -> None:
    with pytest.raises(CommandError, match="no worker is alive"):
        call("alkstore_health")

    a_worker("w")
    assert "workers alive: 1" in call("alkstore_health")
    with pytest.raises(CommandError, match="on this host"):
        call("alkstore_health", "--here")
    a_worker("x", socket.gethostname())
    assert "on this host: 1" in call("alkstore_health", "--here")


@pytest.mark.parametrize(
    "name", ["alkstore_health", "alkstore_prune", "alkstore_requeue", "alkstore_stats"]
)
def test_an_unknown_database_is_named(name: str) -> None:
    with pytest.raises(CommandError, match="no database 'nowhere'"):
        call(name, "--database", "nowhere")
