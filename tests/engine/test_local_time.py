"""
``USE_TZ`` off in Asia/Shanghai, eight hours ahead of UTC: naive times are local ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.test import override_settings

from django_alkstore import queue
from django_alkstore.models import DeadJob, LiveJob
from tests.engine.scenes import claimed, labels, store
from tests.engine.steps import after, run_sql, take, us

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shanghai")]
q = queue("q")
# What the tests call NOW is 2027-01-15 08:00 UTC.
AFTERNOON = datetime(2027, 1, 15, 16)


@pytest.fixture
def shanghai() -> Iterator[None]:
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Shanghai"):
        yield


def test_two_seconds_are_two_seconds() -> None:
    """B152."""
    with after(0):
        job = q.enqueue("x", delay=2)

    assert take(at=1.9) == []
    assert labels(take(at=2)) == ["x"]
    assert job.run_at == AFTERNOON + timedelta(seconds=2)


def test_a_naive_time_is_local() -> None:
    """B152."""
    local = AFTERNOON + timedelta(seconds=2)

    with after(0):
        q.enqueue("x", run_at=local)

    assert take(at=1.9) == []
    (job,) = take(at=2)
    assert job.run_at == local
    assert job.run_at_us == us(2)


def test_the_databases_own_default_is_local_when_read() -> None:
    run_sql("""INSERT INTO "__alkstore_live" (queue, payload) VALUES ('q', '1')""")

    (job,) = q.claim("w")

    assert abs(job.run_at - datetime.now()) < timedelta(seconds=5)
    assert abs(job.created_at - datetime.now()) < timedelta(seconds=5)


def test_jobs_expire_and_are_pruned_in_time() -> None:
    """B152."""
    store("expired", expires=5, dead_letter_retention=60)

    with after(4.9):
        assert q.sweep_expired() == 0
    with after(5):
        assert q.sweep_expired() == 1
    with after(64.9):
        assert DeadJob.objects.sweep_retention() == 0
    with after(65):
        assert DeadJob.objects.sweep_retention() == 1


def test_all_that_is_shown_is_naive() -> None:
    (job,) = claimed("a", expires=60)
    with after(1):
        q.pause()
        stats = q.stats()
        job.fail()
        found = q.get_job(job.id)

    assert found is not None
    assert stats.oldest_pending_at is None
    for shown in (found.run_at, found.expires_at, found.died_at, found.claimed_at):
        assert shown is not None
        assert shown.tzinfo is None
    assert found.died_at == AFTERNOON + timedelta(seconds=1)


def test_filters_take_local_times() -> None:
    store("a")

    assert LiveJob.objects.filter(run_at=AFTERNOON).exists()
    assert not LiveJob.objects.filter(run_at__lt=AFTERNOON).exists()
