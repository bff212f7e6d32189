"""How an idle process sleeps, and is woken by a commit rather than by polling."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType

from django.db import connections

from django_alkstore import sql
from django_alkstore.wake.poll import PollWatcher
from django_alkstore.wake.sqlite import SqliteWatcher
from django_alkstore.wake.watcher import Subscription, Watcher

__all__ = ["AsyncWaiter", "Subscription", "Waiter", "Watcher", "watcher_for"]

_watchers: dict[tuple[str, str], Watcher] = {}
_lock = threading.Lock()


def watcher_for(alias: str) -> Watcher:
    """
    Return the watcher of a database, one for all in this process.

    A database without one of its own (in memory; PostgreSQL, for now) has a watcher
    that wakes nobody: whoever waits has to poll.
    """
    name = str(connections[alias].settings_dict["NAME"])
    with _lock:
        watcher = _watchers.get((alias, name))
        if watcher is None:
            watcher = _watchers[alias, name] = _new(alias, name)
        return watcher


def _new(alias: str, name: str) -> Watcher:
    if sql.vendor_of(alias) == "sqlite" and not sql.sqlite.in_memory(alias):
        return SqliteWatcher(name)
    return PollWatcher()


class Waiter:
    """
    Sleeps until the database changes; a context manager.

    Enter it before the first look at the database. Entering raises WatcherDied when
    there is nothing to watch.
    """

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._bell = threading.Event()
        self._subscription: Subscription | None = None

    def __enter__(self) -> Waiter:
        self._subscription = watcher_for(self._alias).subscribe(self._bell.set)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._subscription is not None:
            self._subscription.close()

    def stay_alert(self) -> None:
        """Say that a wake was of use; see ``Subscription.stay_alert``."""
        _entered(self._subscription).stay_alert()

    def wait(self, timeout: float) -> bool:
        """
        Wait for a commit since the last wait, at most ``timeout`` seconds.

        Return whether there was one. A timeout beyond what the system can wait is cut.
        Raise WatcherDied when none can be noticed any more.
        """
        subscription = _entered(self._subscription)
        subscription.check()
        # Longer waits than this overflow in the operating system's call.
        woken = self._bell.wait(min(timeout, threading.TIMEOUT_MAX))
        if woken:
            self._bell.clear()
        subscription.check()
        return woken


class AsyncWaiter:
    """Sleeps on the event loop until the database changes; see ``Waiter``."""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._bell = asyncio.Event()
        self._subscription: Subscription | None = None

    async def __aenter__(self) -> AsyncWaiter:
        loop = asyncio.get_running_loop()

        def ring() -> None:
            try:
                loop.call_soon_threadsafe(self._bell.set)
            except RuntimeError:
                # The loop was closed, before its waiter: nobody is left to be woken.
                pass

        watcher = watcher_for(self._alias)
        self._subscription = await _subscribe(watcher, ring)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._subscription is not None:
            self._subscription.close()

    def stay_alert(self) -> None:
        """Say that a wake was of use; see ``Subscription.stay_alert``."""
        _entered(self._subscription).stay_alert()

    async def wait(self, timeout: float) -> bool:
        """Wait for a commit, from async code; see ``Waiter.wait``."""
        subscription = _entered(self._subscription)
        subscription.check()
        try:
            async with asyncio.timeout(min(timeout, threading.TIMEOUT_MAX)):
                await self._bell.wait()
        except TimeoutError:
            woken = False
        else:
            woken = True
            self._bell.clear()
        subscription.check()
        return woken


async def _subscribe(watcher: Watcher, ring: Callable[[], None]) -> Subscription:
    # In a thread, as the watcher's first look may have to wait for a lock.
    loop = asyncio.get_running_loop()
    subscribing = loop.run_in_executor(None, watcher.subscribe, ring)
    try:
        return await asyncio.shield(subscribing)
    except asyncio.CancelledError:
        # The thread goes on, and nobody else would close what it brings.
        subscribing.add_done_callback(_close)
        raise


def _close(subscribing: asyncio.Future[Subscription]) -> None:
    if not subscribing.cancelled() and subscribing.exception() is None:
        subscribing.result().close()


def _entered(subscription: Subscription | None) -> Subscription:
    if subscription is None:
        raise RuntimeError("enter the waiter (with, async with) before waiting")
    return subscription
