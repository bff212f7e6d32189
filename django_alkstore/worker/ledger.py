"""The runs that are over and not yet settled. None leaves it before its commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from django.db import transaction

from django_alkstore.worker.outage import PASSING
from django_alkstore.worker.outcomes import Lost, Released
from django_alkstore.worker.runs import Run
from django_alkstore.worker.settle import Fate, settle, settle_all

if TYPE_CHECKING:
    from django_alkstore.managers.live_job import LiveJobManager

logger = logging.getLogger(__name__)

RETRY_EVERY = 5.0
"""Seconds until a settlement that fails by itself is tried again."""

News = list[tuple[Run, Fate]]


class Ledger:
    """
    Settles runs in batches, and tells of them after the commit.

    A run that cannot be settled, for a reason of its own, is set aside so that its
    neighbours are, and tried again until its claim has lapsed.
    """

    def __init__(self, manager: LiveJobManager, tell: Callable[[News], None]) -> None:
        self.settled_at = 0.0
        """When it last settled anything, on the monotonic clock."""
        self._manager = manager
        self._tell = tell
        self._ended: list[Run] = []
        self._refused: list[Run] = []
        self._retry_at = 0.0

    def __len__(self) -> int:
        return len(self._ended) + len(self._refused)

    @property
    def has_ended(self) -> bool:
        """Whether there is something to settle now."""
        return bool(self._ended)

    @property
    def owes(self) -> bool:
        """Whether the outcome of a job that has run is not settled yet."""
        unsettled = [*self._ended, *self._refused]
        return any(not isinstance(run.outcome, (Lost, Released)) for run in unsettled)

    def add(self, runs: Iterable[Run]) -> None:
        """Take in runs that are over."""
        self._ended.extend(runs)

    def settle(self, also: Callable[[], None] | None = None) -> None:
        """
        Settle all in one transaction, with what ``also`` does in it.

        Raise what fails. Runs whose settlement is not committed then stay in here.
        """
        ended, self._ended = self._ended, []
        try:
            with transaction.atomic(using=self._manager.database):
                news = settle_all(self._manager, ended) if ended else []
                if also is not None:
                    also()
        except PASSING:
            self._ended = ended
            raise
        except Exception:
            self._settle_each(ended)
            raise
        self._committed(news)

    def retry_refused(self, now: float) -> None:
        """Try again what could not be settled, if that is due."""
        if not self._refused or now < self._retry_at:
            return
        self._retry_at = now + RETRY_EVERY
        lapsed = [(run, Fate.LOST) for run in self._refused if now >= run.valid_until]
        again = [run for run in self._refused if now < run.valid_until]
        self._refused = []
        self._committed(lapsed)
        self._settle_each(again)

    def _settle_each(self, runs: list[Run]) -> None:
        while runs:
            run = runs[0]
            try:
                with transaction.atomic(using=self._manager.database):
                    fate = settle(self._manager, run)
            except PASSING:
                self._ended += runs
                raise
            except Exception:
                if not run.refused:
                    run.refused = True
                    logger.exception("event=settle_failed job=%s", run.job.id)
                self._refused.append(run)
            else:
                self._committed([(run, fate)])
            del runs[0]

    def _committed(self, news: News) -> None:
        if news:
            self.settled_at = time.monotonic()
            self._tell(news)
