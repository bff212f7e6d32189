"""One worker process: the parts put together, started, and ended in order."""

from __future__ import annotations

import gc
import logging
import os
import threading
from contextlib import ExitStack

from django.conf import settings

from django_alkstore import wake
from django_alkstore.exceptions import WatcherDied
from django_alkstore.models import LiveJob
from django_alkstore.worker.errands import Errands
from django_alkstore.worker.inbox import Inbox
from django_alkstore.worker.loop import Writer
from django_alkstore.worker.memory import resident_megabytes
from django_alkstore.worker.options import WorkerOptions
from django_alkstore.worker.outage import Outage
from django_alkstore.worker.prefetch import Prefetch
from django_alkstore.worker.registry import BEAT_EVERY, Pruner, Registry
from django_alkstore.worker.runners import Runners
from django_alkstore.worker.selection import Selection
from django_alkstore.worker.stopping import (
    EXIT_FAILED,
    Lateness,
    Reason,
    StopSignals,
    exit_now,
)
from django_alkstore.worker.supply import Supply

logger = logging.getLogger(__name__)

LATE = 1.5
"""Seconds that a stopping worker may take for its last words to the database."""

RUNNERS_END = 1.0
ERRANDS_END = 5.0


class Worker:
    """
    Runs jobs in this process until a signal, or its options, end it.

    ``supervisor`` is the process id of the one that has started it, if one has: it
    stops when that has gone. ``in_main`` is False where ``run`` is not called in the
    main thread: no signals are handled then, and no timeout interrupts a plain
    function.
    """

    def __init__(
        self,
        options: WorkerOptions,
        *,
        supervisor: int | None = None,
        in_main: bool = True,
    ) -> None:
        self._options = options
        self._supervisor = supervisor
        selection = Selection(options.queues, options.exclude)
        self._manager = LiveJob.objects.db_manager(options.database)
        self._queues = str(selection)
        self._registry = Registry(options.database, self._queues, options.threads)
        self._inbox = Inbox()
        self._subscription: wake.Subscription | None = None
        self._wakes = Outage("wakes")
        self._errands = Errands(Pruner(options.database).prune)
        self._runners = Runners(
            options.threads,
            self._inbox.put,
            in_main=in_main and options.threads == 1,
            debug=settings.DEBUG,
        )
        self._writer = Writer(
            self._manager,
            inbox=self._inbox,
            runners=self._runners,
            supply=Supply(
                self._manager,
                selection,
                self._registry.worker_id,
                options.poll_interval,
            ),
            prefetch=Prefetch(options.threads, options.prefetch),
            registry=self._registry,
            errands=self._errands,
            vigil=self._look_around,
            shutdown_timeout=options.shutdown_timeout,
            house_every=min(BEAT_EVERY, options.worker_ttl / 2),
            max_jobs=options.max_jobs,
            batch=options.batch,
        )
        self._thread = threading.Thread(
            target=self._write, name="alkstore-writer", daemon=True
        )
        self._in_main = in_main

    @property
    def worker_id(self) -> str:
        """The name under which it claims jobs, and has a row in the workers' table."""
        return self._registry.worker_id

    def stop(self) -> None:
        """Have it stop as SIGTERM does. From any thread."""
        self._writer.stop(Reason.SIGNAL)

    def run(self) -> int:
        """
        Work until stopped. Return the exit status.

        When a job still runs that cannot be waited for, this does not return: the
        process ends here, after everything has been given back.
        """
        with ExitStack() as stack:
            if self._in_main:
                lateness = Lateness(
                    self._options.shutdown_timeout,
                    lambda: self._runners.is_busy or self._writer.ledger.owes,
                    LATE,
                )
                stack.enter_context(
                    StopSignals(
                        self.stop,
                        is_late=lateness,
                        late=self._end_late,
                    ).install()
                )
            return self._run()

    def _run(self) -> int:
        logger.info(
            "event=starting worker=%s threads=%s queues=%s",
            self.worker_id, self._options.threads, self._queues,
        )  # fmt: skip
        # What has been loaded by now stays, so no later collection looks at it again.
        gc.collect()
        gc.freeze()
        self._runners.start()
        self._errands.start()
        self._thread.start()
        if self._runners.in_main:
            self._runners.work()
        self._thread.join()
        ended = self._runners.stop(0.0 if self._writer.abandoned else RUNNERS_END)
        self._errands.stop(ERRANDS_END)
        reason = self._writer.reason or Reason.FATAL
        status = reason.status(supervised=self._supervisor is not None)
        if unsettled := len(self._writer.ledger):
            logger.error("event=unsettled jobs=%s", unsettled)
            status = status or EXIT_FAILED
        logger.info("event=stopped worker=%s status=%s", self.worker_id, status)
        if not ended:
            exit_now(status)
        return status

    def _write(self) -> None:
        try:
            self._writer.run()
        except BaseException:
            logger.critical("event=writer_failed", exc_info=True)
        finally:
            if self._subscription is not None:
                self._subscription.close()
            if self._runners.in_main:
                self._leave_main()

    def _leave_main(self) -> None:
        """Get the main thread out of its runner, or out of the process."""
        if self._writer.abandoned:
            self._errands.stop(0.5)
            reason = self._writer.reason or Reason.FATAL
            exit_now(reason.status(supervised=self._supervisor is not None))
        self._runners.end_threads()

    def _look_around(self) -> Reason | None:
        """Look, once a second, for what should end this process."""
        limit = self._options.max_memory
        if limit is not None and (used := resident_megabytes()) > limit:
            logger.info("event=memory_limit megabytes=%.0f limit=%s", used, limit)
            return Reason.MAX_MEMORY
        if self._supervisor is not None and os.getppid() != self._supervisor:
            return Reason.ORPHANED
        return self._check_wakes()

    def _check_wakes(self) -> Reason | None:
        try:
            if self._subscription is None:
                watcher = wake.watcher_for(self._options.database)
                self._subscription = watcher.subscribe(self._wake)
            if self._writer.is_working:
                self._subscription.stay_alert()
            self._subscription.check()
        except WatcherDied as error:
            logger.critical("event=watcher_died reason=%s", error)
            return Reason.FATAL
        except Exception as error:
            # Until it works the worker polls.
            self._wakes.failed(error)
            return None
        self._wakes.passed()
        return None

    def _wake(self) -> None:
        """Take a wake from the watcher; its last one says that it has died."""
        if self._subscription is not None and self._subscription.error is not None:
            self._writer.look_around_soon()
        self._inbox.wake()

    def _end_late(self) -> None:
        """End a process whose writer does not come back from the database."""
        if not self._thread.is_alive():
            return
        logger.error("event=stopped_late the claims that it holds will lapse")
        exit_now(EXIT_FAILED)
