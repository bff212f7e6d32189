"""Consumers of one's own: the iterators, what wakes them, and how they end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.test import override_settings

from django_alkstore import queue
from django_alkstore.exceptions import WatcherDied
from django_alkstore.jobs import ClaimedJob
from django_alkstore.models import LiveJob
from django_alkstore.wake import AsyncWaiter, Waiter, watcher_for
from tests.engine.scenes import commits
from tests.waiting import wait_until

pytestmark = [commits, pytest.mark.usefixtures("committing")]
q = queue("q")
LONG = 20.0
# Where a commit wakes nobody, the next poll has to come soon.
SOON = {"POLL_INTERVAL": 0.05}
NEVER = {"POLL_INTERVAL": 600}


@pytest.fixture
def patient(engine: str) -> Iterator[None]:
    """Poll as seldom as the engine allows, so that it is a wake that ends a wait."""
    with override_settings(ALKSTORE=NEVER if engine == "sqlite" else SOON):
        yield


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Is set each time a consumer has found nothing, and begins to wait."""
    event = threading.Event()
    wait, async_wait = Waiter.wait, AsyncWaiter.wait

    def watched(waiter: Waiter, timeout: float) -> bool:
        event.set()
        return wait(waiter, timeout)

    async def async_watched(waiter: AsyncWaiter, timeout: float) -> bool:
        event.set()
        return await async_wait(waiter, timeout)

    monkeypatch.setattr(Waiter, "wait", watched)
    monkeypatch.setattr(AsyncWaiter, "wait", async_watched)
    return event


Consume = Callable[..., threading.Thread]


@pytest.fixture(params=["jobs", "ajobs"])
def consume(request: pytest.FixtureRequest) -> Iterator[Consume]:
    """Consume so many jobs in a thread; what each yields is put on a list."""
    threads: list[threading.Thread] = []

    def sync_take(count: int, seen: list[Any]) -> None:
        found = cast("Generator[ClaimedJob]", q.jobs("w"))
        for job in found:
            seen.append(job.payload)
            assert job.ack()
            if len(seen) >= count:
                break
        found.close()

    async def async_take(count: int, seen: list[Any]) -> None:
        found = cast("AsyncGenerator[ClaimedJob]", q.ajobs("w"))
        try:
            async for job in found:
                seen.append(job.payload)
                assert await sync_to_async(job.ack)()
                if len(seen) >= count:
                    break
            await found.aclose()
        finally:
            await sync_to_async(connections.close_all)()

    def run(count: int, seen: list[Any]) -> None:
        try:
            if request.param == "jobs":
                sync_take(count, seen)
            else:
                asyncio.run(async_take(count, seen))
        except BaseException as error:
            seen.append(error)
        finally:
            connections.close_all()

    def start(count: int, seen: list[Any]) -> threading.Thread:
        thread = threading.Thread(target=run, args=[count, seen])
        threads.append(thread)
        thread.start()
        return thread

    yield start
    # Whatever a failed test has left waiting is woken, and fed until it ends.
    for thread in threads:
        for number in range(100):
            if not thread.is_alive():
                break
            q.enqueue(number)
            thread.join(0.1)
        assert not thread.is_alive()


def test_what_waits_is_yielded_in_its_order(consume: Consume) -> None:
    q.enqueue("second")
    q.enqueue("first", priority=1)
    q.enqueue("third")
    seen: list[Any] = []

    consume(3, seen).join(LONG)

    assert seen == ["first", "second", "third"]
    assert not LiveJob.objects.exists()


def test_a_commit_wakes_a_consumer(
    consume: Consume, waits: threading.Event, patient: None
) -> None:
    """B049: nothing is seen of a transaction before it commits."""
    seen: list[Any] = []
    thread = consume(2, seen)
    for payload in ("one", "two"):
        assert waits.wait(LONG)
        with transaction.atomic():
            q.enqueue(payload)
            time.sleep(0.1)
            assert payload not in seen
            waits.clear()
        wait_until(lambda: payload in seen)
    thread.join(LONG)

    assert seen == ["one", "two"]


def test_a_due_time_wakes_a_consumer(
    consume: Consume, waits: threading.Event, patient: None
) -> None:
    seen: list[Any] = []
    q.enqueue("later", delay=0.3)
    start = time.monotonic()

    consume(1, seen).join(LONG)

    assert seen == ["later"]
    assert 0.2 < time.monotonic() - start < 5


def test_a_lapsed_claim_wakes_a_consumer(
    consume: Consume, waits: threading.Event, patient: None
) -> None:
    q.enqueue("abandoned", visibility_timeout=0.3)
    assert q.claim("somebody who died")
    seen: list[Any] = []

    consume(1, seen).join(LONG)

    assert seen == ["abandoned"]


def test_a_far_job_is_waited_for_no_longer_than_can_be_waited(
    consume: Consume, waits: threading.Event
) -> None:
    """B147: the wait is cut to the poll interval, however long that is."""
    q.enqueue("far", delay=86_400 * 365 * 6_000)
    seen: list[Any] = []

    with override_settings(ALKSTORE=SOON):
        thread = consume(1, seen)
        assert waits.wait(LONG)
        q.enqueue("near")
        thread.join(LONG)

    assert seen == ["near"]


def test_jobs_with_a_task_and_paused_queues_are_left_alone(
    consume: Consume, waits: threading.Event
) -> None:
    job = q.enqueue("a task's")
    LiveJob.objects.filter(pk=job.pk).update(task="t")
    q.pause()
    q.enqueue("paused")
    seen: list[Any] = []

    with override_settings(ALKSTORE=SOON):
        thread = consume(1, seen)
        assert waits.wait(LONG)
        assert seen == []
        q.resume()
        thread.join(LONG)

    assert seen == ["paused"]


def test_a_consumer_that_is_left_waits_no_more() -> None:
    q.enqueue("x")
    watcher = watcher_for("default")
    before = len(watcher._subscriptions)
    found = cast("Generator[ClaimedJob]", q.jobs("w"))

    job = next(found)
    assert len(watcher._subscriptions) == before + 1
    found.close()

    assert len(watcher._subscriptions) == before
    # What it was given is its own: it is neither acked nor released.
    assert LiveJob.objects.get().state == "processing"
    assert job.ack()


def test_an_async_consumer_that_is_cancelled_waits_no_more(
    waits: threading.Event, patient: None
) -> None:
    watcher = watcher_for("default")
    before = len(watcher._subscriptions)

    async def main() -> None:
        async def consume() -> None:
            async for _ in q.ajobs("w"):
                raise AssertionError("there is no job")

        consuming = asyncio.create_task(consume())
        assert await asyncio.to_thread(waits.wait, LONG)
        consuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consuming
        await sync_to_async(connections.close_all)()

    asyncio.run(main())

    assert len(watcher._subscriptions) == before


def test_a_consumer_whose_watcher_dies_is_told(
    consume: Consume, waits: threading.Event
) -> None:
    """It does not wait for what can never come."""
    watcher = watcher_for("default")
    seen: list[Any] = []
    with override_settings(ALKSTORE=SOON):
        thread = consume(1, seen)
        assert waits.wait(LONG)
        for subscription in list(watcher._subscriptions):
            subscription.error = WatcherDied("for the test")
        watcher.ring()
        thread.join(LONG)

    (error,) = seen
    assert isinstance(error, WatcherDied)
    assert "for the test" in str(error)


@pytest.mark.parametrize("name", ["", "w" * 201])
def test_a_bad_worker_id_is_refused_at_the_call(name: str) -> None:
    for consumer in (q.jobs, q.ajobs):
        with pytest.raises(ValueError, match="worker_id"):
            consumer(name)


def test_the_async_iterator_is_one() -> None:
    assert isinstance(q.ajobs("w"), AsyncIterator)
    assert isinstance(q.jobs("w"), Iterator)
