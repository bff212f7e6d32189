"""What a thread does between jobs, so that none finds what another one left behind."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from django.db import close_old_connections, connections, reset_queries
from django.db.backends.signals import connection_created

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger(__name__)

# While jobs follow one another a connection is checked this often, not at each of them:
# that would cost a reconnection a job where CONN_MAX_AGE is 0.
CHECK_EVERY = 1.0


class Hygiene:
    """
    One thread's connections and query log.

    Time zone and language need no care: each job runs in a context of its own.
    """

    def __init__(self, debug: bool) -> None:
        self._debug = debug
        self._checked = 0.0
        self._known: list[BaseDatabaseWrapper] = []
        self._opened = -1
        self.is_idle = True
        """
        Whether nothing ran since the last check, so that there is nothing to check.
        """

    def before(self) -> None:
        """Do what is due before a job."""
        now = time.monotonic()
        if now - self._checked > CHECK_EVERY:
            self._checked = now
            close_old_connections()
        self.is_idle = False

    def after(self, *, raised: bool) -> None:
        """
        Do what is due after a job. One that raised may have broken its connections.
        """
        if self._opened != _opened.count:
            # Django takes 25 us to tell which connections this thread has, so it is
            # asked only when one has been opened, by whatever thread.
            self._opened = _opened.count
            self._known = list(connections.all(initialized_only=True))
        for connection in self._known:
            if connection.in_atomic_block or _is_manual(connection):
                logger.error(
                    "event=transaction_left_open database=%s rolled_back=yes",
                    connection.alias,
                )
                self._drop(connection.alias)
        if raised:
            close_old_connections()
        if self._debug:
            reset_queries()

    def interrupted(self) -> None:
        """Drop every connection: the last job was stopped in the middle of anything."""
        for connection in connections.all(initialized_only=True):
            self._drop(connection.alias)

    def idle(self) -> None:
        """Do what is due when no job has followed for a while."""
        self.is_idle = True
        close_old_connections()

    def _drop(self, alias: str) -> None:
        connection = connections[alias]
        try:
            connection.close()
        except Exception as error:
            logger.warning(
                "event=close_failed database=%s exception=%s",
                alias, type(error).__qualname__,
            )  # fmt: skip
        # One that is closed within a transaction stays unusable; a new one is not.
        if connection.in_atomic_block:
            del connections[alias]
        self._opened = -1


def _is_manual(connection: BaseDatabaseWrapper) -> bool:
    """Whether a job turned autocommit off: nothing after it would be committed."""
    if connection.connection is None:
        return False
    return connection.autocommit is not connection.settings_dict["AUTOCOMMIT"]


class _Opened:
    """
    Counts the connections that this process has opened, roughly: it only has to move.
    """

    count = 0


_opened = _Opened()


def _note_opened(**kwargs: Any) -> None:
    _opened.count += 1


connection_created.connect(_note_opened, dispatch_uid="django_alkstore.worker.hygiene")
