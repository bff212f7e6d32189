"""
A thread for what must not hold up the writer: signals after a commit, and pruning.
"""

from __future__ import annotations

import contextvars
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from django.db import close_old_connections, connections

from django_alkstore import signals
from django_alkstore.worker.outage import Outage
from django_alkstore.worker.runs import Run
from django_alkstore.worker.settle import Fate, tell

logger = logging.getLogger(__name__)

PRUNE_EVERY = 60.0
"""Seconds between two rounds of pruning."""

PRUNE_PAUSE = 0.5
"""Seconds between two batches of one round."""

MOST_BEHIND = 50
"""Batches of signals not yet sent, above which the writer claims nothing."""

News = Sequence[tuple[Run, Fate]]


class Errands:
    """
    Tells of settled jobs, and prunes now and then. ``prune`` returns True to go on
    soon.

    Its connection is open only while it is used.
    """

    def __init__(self, prune: Callable[[], bool]) -> None:
        self._prune = prune
        self._queue: SimpleQueue[News | None] = SimpleQueue()
        self._outage = Outage("pruning")
        self._thread = threading.Thread(
            target=self._work, name="alkstore-errands", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Send what is left to send, for at most ``timeout`` seconds."""
        self._queue.put(None)
        self._thread.join(timeout)
        if self._thread.is_alive():
            logger.warning("event=signals_unsent batches=%s", self._queue.qsize())

    @property
    def is_behind(self) -> bool:
        """Whether receivers take longer than jobs do."""
        return self._queue.qsize() > MOST_BEHIND

    def tell(self, news: News) -> None:
        """Send the signals of settled runs, from this thread or, to nobody, at once."""
        if _somebody_listens():
            self._queue.put(news)
            return
        if not signals.logger.isEnabledFor(logging.INFO):
            # Nobody wants to know of what went well.
            news = [each for each in news if each[1] is not Fate.FINISHED]
        _tell(news)

    def _work(self) -> None:
        # Not all at once where many workers are started together.
        prune_at = time.monotonic() + PRUNE_EVERY * random.random()
        while True:
            try:
                news = self._queue.get(timeout=max(0.0, prune_at - time.monotonic()))
            except Empty:
                prune_at = time.monotonic() + self._prune_once()
                connections.close_all()
                continue
            if news is None:
                break
            contextvars.copy_context().run(_tell, news)
            del news
            close_old_connections()
        connections.close_all()

    def _prune_once(self) -> float:
        """Prune a batch. Return the seconds until the next one."""
        try:
            more = self._prune()
        except Exception as error:
            self._outage.failed(error)
            return PRUNE_EVERY
        self._outage.passed()
        return PRUNE_PAUSE if more else PRUNE_EVERY * (0.75 + random.random() / 2)


def _somebody_listens() -> bool:
    return bool(
        signals.job_succeeded.receivers
        or signals.job_failed.receivers
        or signals.job_dead.receivers
    )


def _tell(news: News) -> None:
    for run, fate in news:
        tell(run, fate)
        # Its exception holds the frames of the task, and they may hold this run.
        run.outcome = None
