"""Wakes on the real databases: commits of any process, and who has to poll instead."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from django.db import connections, transaction

from django_alkstore import queue
from django_alkstore.exceptions import UnsupportedDatabase
from django_alkstore.models import LiveJob
from django_alkstore.wake import AsyncWaiter, Waiter, watcher_for
from django_alkstore.wake.poll import PollWatcher
from tests.processes import WorkerProcesses

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

LONG = 30.0
ENQUEUE = """
import django
django.setup()
from django_alkstore import queue
queue("q").enqueue(1)
"""


class Rings:
    """A subscriber of a database that remembers having been called."""

    def __init__(self, alias: str) -> None:
        self._called = threading.Event()
        self._subscription = watcher_for(alias).subscribe(self._called.set)

    def came(self, timeout: float = LONG) -> bool:
        """Wait for a call, and forget it."""
        came = self._called.wait(timeout)
        self._called.clear()
        return came

    def close(self) -> None:
        self._subscription.close()


@pytest.fixture
def rings() -> Iterator[Rings]:
    """A subscriber of the default database."""
    rings = Rings("default")
    yield rings
    rings.close()


def test_a_database_has_one_watcher() -> None:
    assert watcher_for("default") is watcher_for("default")
    assert watcher_for("default") is not watcher_for("other")


@pytest.mark.sqlite_only
def test_an_enqueued_job_wakes(rings: Rings) -> None:
    queue("q").enqueue(1)

    assert rings.came()


@pytest.mark.sqlite_only
def test_a_job_wakes_when_its_transaction_commits(rings: Rings) -> None:
    with transaction.atomic():
        queue("q").enqueue(1)
        # Long enough for many looks; on a slow machine for fewer, which only asks less.
        before = rings.came(0.05)

    assert not before
    assert rings.came()


@pytest.mark.sqlite_only
def test_a_transaction_that_is_rolled_back_wakes_nobody(rings: Rings) -> None:
    """B049, B051."""
    with transaction.atomic():
        queue("q").enqueue(1)
        transaction.set_rollback(True)

    assert not rings.came(0.05)


@pytest.mark.sqlite_only
def test_a_commit_of_another_process_wakes(
    rings: Rings, run_worker: WorkerProcesses
) -> None:
    subprocess.run(
        [sys.executable, "-c", ENQUEUE],
        env=run_worker.environment(),
        check=True,
        timeout=60,
    )

    assert rings.came()
    assert LiveJob.objects.count() == 1


@pytest.mark.sqlite_only
def test_a_commit_to_another_database_wakes_nobody(rings: Rings) -> None:
    queue("q", using="other").enqueue(1)

    assert not rings.came(0.05)


@pytest.mark.sqlite_only
def test_waiters_wake_each_time_they_wait() -> None:
    with Waiter("default") as waiter:
        woken = []
        for number in range(3):
            queue("q").enqueue(number)
            woken.append(waiter.wait(LONG))

    assert woken == [True, True, True]


@pytest.mark.sqlite_only
def test_async_waiters_wake_by_the_same_thread() -> None:
    async def main() -> bool:
        async with AsyncWaiter("default") as one, AsyncWaiter("default") as two:
            await queue("q").aenqueue(1)
            return await one.wait(LONG) and await two.wait(LONG)

    assert asyncio.run(main())


@pytest.mark.postgresql_only
def test_on_postgresql_a_waiter_sleeps_for_its_timeout() -> None:
    with Waiter("default") as waiter:
        queue("q").enqueue(1)

        assert isinstance(watcher_for("default"), PollWatcher)
        assert waiter.wait(0.05) is False


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    "name", [":memory:", "file:memory_of_a_test?mode=memory&cache=shared"]
)
def test_a_database_in_memory_is_polled(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(connections["other"].settings_dict, "NAME", name)

    assert isinstance(watcher_for("other"), PollWatcher)


def test_another_database_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections["other"], "vendor", "oracle")
    monkeypatch.setitem(connections["other"].settings_dict, "NAME", "elsewhere")

    with pytest.raises(UnsupportedDatabase, match="cannot hold the queue"):
        watcher_for("other")
