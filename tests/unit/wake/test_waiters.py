"""Waiters: they wake when rung, sleep no longer than told, and never in silence."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable

import pytest

from django_alkstore import wake
from django_alkstore.exceptions import WatcherDied
from django_alkstore.wake import AsyncWaiter, Subscription, Waiter, Watcher

LONG = 30.0


class Bells(Watcher):
    """A watcher that a test rings, and lets die."""

    @property
    def count(self) -> int:
        return len(self._subscriptions)

    def die(self) -> None:
        for subscription in self._subscriptions:
            subscription.error = WatcherDied("the file has gone")
        self.ring()


@pytest.fixture
def bells(monkeypatch: pytest.MonkeyPatch) -> Bells:
    """The watcher of every alias."""
    bells = Bells()
    monkeypatch.setattr(wake, "watcher_for", lambda alias: bells)
    return bells


def test_a_waiter_wakes_when_it_is_rung(bells: Bells) -> None:
    with Waiter("default") as waiter:
        threading.Timer(0.01, bells.ring).start()

        assert waiter.wait(LONG) is True


def test_a_wake_before_the_wait_is_kept_and_wakes_once(bells: Bells) -> None:
    with Waiter("default") as waiter:
        bells.ring()
        bells.ring()

        assert [waiter.wait(LONG), waiter.wait(0)] == [True, False]


def test_a_waiter_that_nobody_rings_sleeps_for_its_timeout(bells: Bells) -> None:
    with Waiter("default") as waiter:
        assert waiter.wait(0.01) is False


@pytest.mark.parametrize("timeout", [0.0, -1.0, -float("inf")])
def test_a_timeout_that_has_passed_returns_at_once(
    bells: Bells, timeout: float
) -> None:
    with Waiter("default") as waiter:
        assert waiter.wait(timeout) is False


@pytest.mark.parametrize("timeout", [2.5e11, 1e300, float("inf")])
def test_an_enormous_timeout_is_cut(bells: Bells, timeout: float) -> None:
    """B147."""
    with Waiter("default") as waiter:
        threading.Timer(0.01, bells.ring).start()

        assert waiter.wait(timeout) is True


def test_a_waiter_raises_when_its_watcher_dies(bells: Bells) -> None:
    with Waiter("default") as waiter:
        threading.Timer(0.01, bells.die).start()

        with pytest.raises(WatcherDied, match="the file has gone"):
            waiter.wait(LONG)


def test_a_waiter_of_a_dead_watcher_raises_without_waiting(bells: Bells) -> None:
    with Waiter("default") as waiter:
        bells.die()
        with pytest.raises(WatcherDied):
            waiter.wait(LONG)
        began = time.monotonic()

        with pytest.raises(WatcherDied, match="the file has gone"):
            waiter.wait(LONG)

    assert time.monotonic() - began < LONG / 2


def test_leaving_a_waiter_ends_its_subscription(bells: Bells) -> None:
    with pytest.raises(ZeroDivisionError), Waiter("default"):
        raise ZeroDivisionError

    assert bells.count == 0


def test_a_waiter_has_to_be_entered() -> None:
    with pytest.raises(RuntimeError, match="enter the waiter"):
        Waiter("default").wait(0)


def test_an_async_waiter_wakes_when_it_is_rung(bells: Bells) -> None:
    async def main() -> bool:
        async with AsyncWaiter("default") as waiter:
            threading.Timer(0.01, bells.ring).start()
            return await waiter.wait(LONG)

    assert asyncio.run(main()) is True
    assert bells.count == 0


def test_an_async_wake_before_the_wait_is_kept_and_wakes_once(bells: Bells) -> None:
    async def main() -> list[bool]:
        async with AsyncWaiter("default") as waiter:
            bells.ring()
            bells.ring()
            return [await waiter.wait(LONG), await waiter.wait(0)]

    assert asyncio.run(main()) == [True, False]


@pytest.mark.parametrize("timeout", [2.5e11, 1e300, float("inf")])
def test_an_enormous_timeout_is_cut_on_the_loop_too(
    bells: Bells, timeout: float
) -> None:
    async def main() -> bool:
        async with AsyncWaiter("default") as waiter:
            threading.Timer(0.01, bells.ring).start()
            return await waiter.wait(timeout)

    assert asyncio.run(main()) is True


def test_an_async_waiter_that_nobody_rings_sleeps_for_its_timeout(bells: Bells) -> None:
    async def main() -> bool:
        async with AsyncWaiter("default") as waiter:
            return await waiter.wait(0.01)

    assert asyncio.run(main()) is False


def test_an_async_waiter_raises_when_its_watcher_dies(bells: Bells) -> None:
    async def main() -> None:
        async with AsyncWaiter("default") as waiter:
            threading.Timer(0.01, bells.die).start()
            await waiter.wait(LONG)

    with pytest.raises(WatcherDied, match="the file has gone"):
        asyncio.run(main())


def test_a_closed_loop_is_not_an_error(
    bells: Bells, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="django_alkstore")
    waiter = AsyncWaiter("default")
    asyncio.run(waiter.__aenter__())

    bells.ring()

    assert bells.count == 1
    assert caplog.records == []


def test_an_async_waiter_has_to_be_entered() -> None:
    with pytest.raises(RuntimeError, match="enter the waiter"):
        asyncio.run(AsyncWaiter("default").wait(0))


def test_entering_that_is_cancelled_leaves_no_subscription(
    bells: Bells, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, gate = threading.Event(), threading.Event()

    class Slow(Bells):
        def subscribe(self, callback: Callable[[], None]) -> Subscription:
            began.set()
            gate.wait(LONG)
            return super().subscribe(callback)

    slow = Slow()
    monkeypatch.setattr(wake, "watcher_for", lambda alias: slow)

    async def main() -> None:
        entering = asyncio.ensure_future(AsyncWaiter("default").__aenter__())
        await asyncio.to_thread(began.wait, LONG)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        gate.set()

    asyncio.run(main())

    assert slow.count == 0
