"""Who subscribes in the tests of the watcher, and what makes it fail."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from django_alkstore.exceptions import WatcherDied
from django_alkstore.wake.data_version import DataVersion
from django_alkstore.wake.threaded import ThreadedWatcher
from django_alkstore.wake.watcher import Subscription


class Calls:
    """A callback that counts, and the subscription it belongs to."""

    def __init__(self, watcher: ThreadedWatcher) -> None:
        self.count = 0
        self.subscription: Subscription = watcher.subscribe(self.add)

    def add(self) -> None:
        self.count += 1

    @property
    def error(self) -> WatcherDied | None:
        return self.subscription.error


class Failing(DataVersion):
    """Raises what a test has put into ``failure`` instead of reading."""

    failure: Exception | None = None
    opened = 0
    closed = 0

    def close(self) -> None:
        Failing.closed += self._connection is not None
        super().close()

    def read(self) -> int:
        if self._connection is None:
            Failing.opened += 1
        if Failing.failure is not None:
            raise Failing.failure
        return super().read()


def threads(path: Path) -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.endswith(str(path))]


def io_error() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
    error.sqlite_errorname = "SQLITE_IOERR_READ"
    return error
