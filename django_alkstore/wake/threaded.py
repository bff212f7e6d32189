"""
A watcher that is one thread a process.

    idle --first subscribe--> starting --first look--> watching --last close--> idle
                                  |                        |
                                  +---------error----------+--> idle, and every
                                                subscriber is called once, and told why
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django_alkstore.exceptions import WatcherDied
from django_alkstore.wake.watcher import Subscription, Watcher

logger = logging.getLogger(__name__)

START_TIMEOUT = 30.0


class Life:
    """One run of the thread: ``ready`` once it misses nothing, ``ending`` to stop."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.ending = threading.Event()


class ThreadedWatcher(Watcher):
    """Runs ``watch`` in a daemon thread for as long as anybody is subscribed."""

    def __init__(self, name: str, *, start_timeout: float = START_TIMEOUT) -> None:
        super().__init__()
        self.name = name
        self._start_timeout = start_timeout
        self._life: Life | None = None

    def watch(self, life: Life) -> None:
        """
        Set ``life.ready``, then ring after each commit until ``life.ending`` is set.

        Raise WatcherDied, or anything else, when that is not possible any more.
        """
        raise NotImplementedError

    def subscribe(self, callback: Callable[[], None]) -> Subscription:
        """Do as ``Watcher.subscribe``; return once the thread has looked first."""
        subscription = Subscription(self, callback)
        with self._lock:
            if self._life is None:
                self._life = self._start()
            life = self._life
            self._subscriptions.append(subscription)
        try:
            if not life.ready.wait(self._start_timeout):
                raise WatcherDied(
                    f"{self.name} could not be read for {self._start_timeout:g} s:"
                    " another connection keeps it locked"
                )
            subscription.check()
        except BaseException:
            subscription.close()
            raise
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; the last one ends the thread."""
        super().unsubscribe(subscription)
        with self._lock:
            if not self._subscriptions and self._life is not None:
                self._life.ending.set()
                self._life = None

    def _start(self) -> Life:
        life = Life()
        thread = threading.Thread(
            target=self._run,
            args=(life,),
            name=f"alkstore-watcher {self.name}",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            raise WatcherDied(f"no thread to watch {self.name}: {error}") from error
        return life

    def _run(self, life: Life) -> None:
        try:
            self.watch(life)
        except WatcherDied as error:
            self._die(life, error)
        except BaseException as error:
            logger.exception("event=watcher_failed database=%s", self.name)
            died = WatcherDied(f"the watcher of {self.name} failed: {error!r}")
            died.__cause__ = error
            self._die(life, died)
        finally:
            life.ready.set()

    def _die(self, life: Life, error: WatcherDied) -> None:
        with self._lock:
            # Its subscribers have all left; those there are now belong to a later life.
            if life.ending.is_set():
                return
            self._life = None
            subscriptions, self._subscriptions = self._subscriptions, []
        logger.error("event=watcher_died database=%s reason=%s", self.name, error)
        for subscription in subscriptions:
            subscription.error = error
            subscription.ring()
