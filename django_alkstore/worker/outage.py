"""
What to do while the database does not answer: say so once, and wait longer each time.
"""

from __future__ import annotations

import logging
import random
import time

from django.db import InterfaceError, OperationalError

logger = logging.getLogger(__name__)

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0

PASSING = (OperationalError, InterfaceError)
"""Errors of the connection, a lock or the server: the same statement may work later."""


class Outage:
    """
    A run of failures, from the first error until something works again.

    Logged once when it begins and once when it is over, however long it lasts.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._pause = FIRST_PAUSE
        self._since: float | None = None
        self.failures = 0

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._since is not None

    def failed(self, error: BaseException) -> float:
        """Take in an error. Return the seconds to wait before the next try."""
        self.failures += 1
        if self._since is None:
            self._since = time.monotonic()
            # An error of the database tells all in its text; any other is our own.
            logger.error(
                "event=%s_failed exception=%s error=%s",
                self._what, type(error).__qualname__, error,
                exc_info=None if isinstance(error, PASSING) else error,
            )  # fmt: skip
        pause = self._pause * (0.5 + random.random() / 2)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return pause

    def passed(self) -> None:
        """Take in that something worked."""
        if self._since is None:
            return
        logger.warning(
            "event=%s_recovered failures=%s seconds=%.1f",
            self._what, self.failures, time.monotonic() - self._since,
        )  # fmt: skip
        self._since = None
        self._pause = FIRST_PAUSE
        self.failures = 0
