"""Several databases: all that is done goes where the router, or ``using``, says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_alkstore import queue
from django_alkstore.counter import raise_counter
from django_alkstore.jobs import Notes
from django_alkstore.models import (
    Attempt,
    DeadJob,
    LiveJob,
    QueueState,
    Result,
    Worker,
)

pytestmark = pytest.mark.django_db(databases=["default", "other"])
MODELS = (LiveJob, DeadJob, Result, Attempt, QueueState, Worker)


class ToOther:
    """Sends this package's tables to the database ``other``."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "django_alkstore" else None

    db_for_write = db_for_read


@pytest.fixture
def routed() -> Iterator[CaptureQueriesContext]:
    """Send the tables to ``other``; nothing at all may be asked of ``default``."""
    with (
        override_settings(DATABASE_ROUTERS=[ToOther()]),
        CaptureQueriesContext(connections["default"]) as asked,
    ):
        yield asked
    assert [query["sql"] for query in asked] == []


def live_a_whole_life(using: str | None) -> None:
    """Do everything there is to do with a job."""
    q = queue("q", using=using)
    live = LiveJob.objects.using_alias(using)
    kept, retried, failed = (
        q.enqueue(n, result_ttl=60, max_attempts=2) for n in range(3)
    )
    q.enqueue_many([3, 4], unique_key=["a", "b"])
    assert not q.enqueue("again", unique_key="a").created
    q.enqueue("instead", unique_key="b", on_conflict="replace")
    q.update(kept.pk, priority=9)
    q.enqueue("scheduled", delay=60, expires=90)
    assert [found.name for found in live.survey()] == ["q"]
    first, second, third, fourth, fifth = q.claim("w", 5)
    assert first.id == kept.pk
    assert q.next_claim_at() is not None
    assert first.heartbeat()
    live.write_notes([(first, Notes(log="x"))])
    assert first.ack({"value": 1})
    assert second.retry(0)
    assert third.fail("no")
    assert fourth.snooze(5)
    assert q.ack_many([fifth]) == 1
    assert q.cancel(fourth.id)
    for job_id, state in (
        (kept.pk, "finished"),
        (retried.pk, "pending"),
        (failed.pk, "dead"),
    ):
        found = q.get_job(job_id)
        assert found is not None
        assert found.state == state
    assert q.stats().dead == 2
    assert q.sweep_expired() == 0
    assert q.pause() and q.is_paused and q.resume()
    dead = DeadJob.objects.using_alias(using)
    new, refused = dead.requeue(dead.filter(pk=failed.pk))
    assert (len(new), refused) == (1, [])
    assert dead.sweep_retention() == 0
    assert Result.objects.using_alias(using).sweep() == 0
    assert Attempt.objects.using_alias(using).sweep_orphans()[0] == 0
    workers = Worker.objects.using_alias(using)
    workers.beat(
        "w", host="h", pid=1, queues="", threads=1, running="[]", stopping=False
    )
    assert workers.alive().count() == 1
    workers.remove("w")
    assert q.clear() > 0


def test_all_goes_where_the_router_says_and_nothing_is_asked_of_the_default(
    routed: CaptureQueriesContext,
) -> None:
    """B115."""
    live_a_whole_life(None)

    assert DeadJob.objects.using("other").exists()


def test_all_goes_where_using_says_and_nothing_is_asked_of_the_default() -> None:
    with CaptureQueriesContext(connections["default"]) as asked:
        live_a_whole_life("other")

    assert [query["sql"] for query in asked] == []
    assert DeadJob.objects.using("other").exists()
    for model in MODELS:
        assert not model._default_manager.using("default").exists()


def test_using_has_the_last_word_over_the_router() -> None:
    with override_settings(DATABASE_ROUTERS=[ToOther()]):
        queue("q", using="default").enqueue("x")

    assert LiveJob.objects.using("default").count() == 1
    assert LiveJob.objects.using("other").count() == 0


def test_a_receipt_remembers_its_database(routed: CaptureQueriesContext) -> None:
    queue("q").enqueue("x")

    (job,) = queue("q").claim("w")

    assert job.using == "other"
    with override_settings(DATABASE_ROUTERS=[]):
        assert job.ack()


def test_a_claim_opens_its_transaction_where_it_writes(
    routed: CaptureQueriesContext,
) -> None:
    queue("q").enqueue("x", delay=0.000_001)

    with CaptureQueriesContext(connections["other"]) as asked:
        (job,) = queue("q").claim("w")

    assert job.payload == "x"
    words = [query["sql"].split()[0] for query in asked]
    assert "SAVEPOINT" in words


def test_two_databases_hold_two_queues_of_one_name() -> None:
    for alias in ("default", "other"):
        queue("q", using=alias).enqueue(alias)
        queue("q", using=alias).enqueue("x", unique_key="k")

    for alias in ("default", "other"):
        payloads = [job.payload for job in queue("q", using=alias).claim("w", 9)]
        assert payloads == [alias, "x"]


def test_a_job_commits_with_the_transaction_of_its_own_database() -> None:
    q = queue("q", using="other")

    with transaction.atomic(using="other"):
        q.enqueue("x")
        transaction.set_rollback(True, using="other")

    assert q.claim("w") == []


def test_each_database_has_a_counter_of_its_own() -> None:
    ours, other = queue("q"), queue("q", using="other")
    last = ours.enqueue("x").pk
    high = other.enqueue("x").pk + 10**6
    DeadJob.objects.using("other").create(
        id=high, queue="q", payload="1", reason="failed"
    )

    assert raise_counter("other") == high

    assert other.enqueue("y").pk > high
    assert ours.enqueue("y").pk == last + 1
