"""
What a watcher is: one source of wakes, any number of subscribers.

A wake is a hint, never a message: whoever is woken looks at the database. A subscriber
subscribes first and looks then, so that no commit falls between the two.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django_alkstore.exceptions import WatcherDied

logger = logging.getLogger(__name__)


class Subscription:
    """One subscriber of a watcher. ``error`` is why the watcher died, or None."""

    def __init__(self, watcher: Watcher, callback: Callable[[], None]) -> None:
        self.error: WatcherDied | None = None
        self._watcher = watcher
        self._callback = callback

    def check(self) -> None:
        """Raise WatcherDied when nothing can wake this subscriber any more."""
        if self.error is not None:
            raise WatcherDied(str(self.error)) from self.error

    def stay_alert(self) -> None:
        """Say that a wake was of use: the next minute's are to come at once."""
        self._watcher.stay_alert()

    def close(self) -> None:
        """End the subscription, once or again. A call under way may still arrive."""
        self._watcher.unsubscribe(self)

    def ring(self) -> None:
        """Call the subscriber. What it raises is logged, and goes no further."""
        try:
            self._callback()
        except BaseException:
            # SystemExit too: in this thread it would end the watcher, and nothing else.
            logger.exception("event=wake_callback_failed")


class Watcher:
    """The subscribers of one database. Subclasses know when to ring."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: list[Subscription] = []

    def subscribe(self, callback: Callable[[], None]) -> Subscription:
        """
        Have ``callback`` called after each commit to the database, by whatever process.

        It is called from the watcher's thread, so it must be cheap and not wait;
        several commits may be one call, and a call may come without a commit. What
        commits after this method has returned is never missed. When the watcher dies
        it is called one last time, with ``error`` set before. Raise WatcherDied when
        there is nothing to watch.
        """
        subscription = Subscription(self, callback)
        with self._lock:
            self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; see ``Subscription.close``."""
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def stay_alert(self) -> None:
        """Be quick for a while; see ``Subscription.stay_alert``."""

    def ring(self) -> None:
        """Call every subscriber."""
        with self._lock:
            subscriptions = list(self._subscriptions)
        # Outside the lock: a callback may close its subscription, or make another.
        for subscription in subscriptions:
            subscription.ring()
