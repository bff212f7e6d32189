"""
SQLite's watcher: a thread that looks at the file's ``data_version`` all the time.

Each look costs some microseconds. It looks every millisecond while there is work for
somebody or much is committed, and less often after a minute without.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import time
from collections import deque
from collections.abc import Callable

from django_alkstore.exceptions import WatcherDied
from django_alkstore.wake.data_version import DataVersion, error_name, is_passing
from django_alkstore.wake.threaded import START_TIMEOUT, Life, ThreadedWatcher
from django_alkstore.wake.watcher import Subscription

logger = logging.getLogger(__name__)

FAST = 0.001
SLOW = 0.02
CALM_AFTER = 60.0
# So many commits a minute are a busy site. Fewer may be no more than the housekeeping
# of idle workers, who would keep each other awake with it for ever.
MANY = 20
# With the longest sleep after it this is still well under the promised 0.1 s.
IDENTITY_EVERY = 0.05
LONGEST_PAUSE = 1.0


class SqliteWatcher(ThreadedWatcher):
    """Rings about a millisecond after each commit to one database file."""

    def __init__(
        self,
        name: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        start_timeout: float = START_TIMEOUT,
    ) -> None:
        super().__init__(name, start_timeout=start_timeout)
        self._clock = clock
        self._sleep = sleep
        self._alert_until = 0.0

    def subscribe(self, callback: Callable[[], None]) -> Subscription:
        """Do as ``ThreadedWatcher.subscribe``; who comes is expecting something."""
        self.stay_alert()
        return super().subscribe(callback)

    def stay_alert(self) -> None:
        """Look every millisecond for the next minute."""
        self._alert_until = self._clock() + CALM_AFTER

    def watch(self, life: Life) -> None:
        """Do as ``ThreadedWatcher.watch``."""
        version = DataVersion(self.name)
        try:
            seen = self._first(version, life)
            life.ready.set()
            self._look(version, seen, life)
        finally:
            version.close()

    def _first(self, version: DataVersion, life: Life) -> int:
        while True:
            try:
                seen = version.read()
            except sqlite3.Error as error:
                if not is_passing(error) or life.ending.is_set():
                    raise WatcherDied(
                        f"the database file {version.path} cannot be read"
                        f" ({error_name(error)}: {error})"
                    ) from error
            else:
                # It may have been replaced before SQLite had opened it.
                version.check_identity()
                return seen
            self._sleep(FAST)

    def _look(self, version: DataVersion, seen: int, life: Life) -> None:
        now = checked = self._clock()
        commits: deque[float] = deque([-math.inf] * MANY, MANY)
        pause, lost = FAST, -math.inf
        while not life.ending.is_set():
            alert = now < self._alert_until or now - commits[0] < CALM_AFTER
            self._sleep(FAST if alert else SLOW)
            now = self._clock()
            if now - checked >= IDENTITY_EVERY:
                checked = now
                version.check_identity()
            try:
                found = version.read()
            except sqlite3.Error as error:
                if is_passing(error):
                    continue
                # A file that fails now and again is not to fail as fast as it can.
                pause = FAST if now - lost > CALM_AFTER else _longer(pause)
                seen = self._reconnect(version, error, pause, life)
                now = lost = self._clock()
                # What was committed in between changed no number that was seen here.
                self.ring()
                continue
            if found != seen:
                seen = found
                commits.append(now)
                self.ring()

    def _reconnect(
        self, version: DataVersion, error: sqlite3.Error, pause: float, life: Life
    ) -> int:
        """Open the file again, with growing pauses; return the number to begin from."""
        logger.error(
            "event=watcher_lost database=%s error=%s", version.path, error_name(error)
        )
        told = False
        while True:
            version.close()
            self._rest(version, pause, life)
            if life.ending.is_set():
                return 0
            try:
                seen = version.read()
            except sqlite3.Error:
                pause = _longer(pause)
            else:
                logger.warning("event=watcher_back database=%s", version.path)
                return seen
            if not told:
                # They look for themselves, and so meet the file's error themselves.
                told = True
                self.ring()

    def _rest(self, version: DataVersion, pause: float, life: Life) -> None:
        until = self._clock() + pause
        while (left := until - self._clock()) > 0 and not life.ending.is_set():
            version.check_identity()
            self._sleep(min(left, IDENTITY_EVERY))


def _longer(pause: float) -> float:
    return min(pause * 2, LONGEST_PAUSE)
