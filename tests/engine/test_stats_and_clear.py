"""Counting a queue's jobs, and deleting those that wait."""

from __future__ import annotations

import pytest
from django.db import transaction

from django_alkstore import clock, queue
from django_alkstore.jobs import QueueStats
from django_alkstore.managers import storing
from django_alkstore.models import DeadJob, LiveJob
from tests.engine.scenes import claimed, dead, store
from tests.engine.steps import us, waits

pytestmark = pytest.mark.django_db
q = queue("q")


def test_an_unknown_queue_has_nothing() -> None:
    assert queue("unknown").stats() == QueueStats(0, 0, 0, 0, None, False)


def test_the_jobs_are_counted_by_state_whatever_their_kind() -> None:
    dead("dead")
    claimed("a", "b", "c")
    store("d", at=us(-7))
    store("e", at=us(-5), task="t")
    store("f", delay=5)
    queue("other").enqueue("g")
    q.pause()

    assert q.stats() == QueueStats(
        scheduled=1, pending=2, processing=3, dead=1,
        oldest_pending_at=clock.to_instant(us(-7)), paused=True,
    )  # fmt: skip


def test_clear_deletes_what_waits_and_leaves_what_runs_or_is_dead() -> None:
    dead("dead")
    (running,) = claimed("running")
    store("pending")
    store("scheduled", delay=5)
    store("task", task="t")
    other = queue("other").enqueue("x")

    assert q.clear() == 3

    assert set(LiveJob.objects.values_list("pk", flat=True)) == {running.id, other.pk}
    assert waits(running.id)[0] == "processing"
    assert DeadJob.objects.count() == 1
    assert q.clear() == 0


def test_clear_goes_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "BULK", 3)
    store(*map(str, range(10)))

    assert q.clear() == 10


def test_clear_joins_the_callers_transaction() -> None:
    store("a")

    with transaction.atomic():
        assert q.clear() == 1
        transaction.set_rollback(True)

    assert LiveJob.objects.count() == 1


def test_clear_frees_the_keys() -> None:
    store("a", key="k")

    q.clear()

    assert q.enqueue("b", unique_key="k").created
