"""
The threads that run task functions: one by one in threads, async ones on an event loop.

The writer puts runs in and gets them back through its inbox. What has not begun can be
taken back. With one thread that is the process's main one, which a timeout can
interrupt.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from django.db import connections

from django_alkstore.exceptions import TaskTimeout
from django_alkstore.jobs import Failure
from django_alkstore.worker.alarm import Alarm
from django_alkstore.worker.delays import stamped_delay
from django_alkstore.worker.event_loop import EventLoop
from django_alkstore.worker.hygiene import Hygiene
from django_alkstore.worker.outcomes import LOST, Failed, Outcome
from django_alkstore.worker.run import run_job
from django_alkstore.worker.runs import Run

logger = logging.getLogger(__name__)

# How long a thread keeps its connections when no job follows.
LINGER = 1.0


class Runners:
    """
    All that runs jobs in this process.

    ``threads`` is how many jobs of plain functions run at a time. ``in_main``: the one
    thread is the caller of ``work``.
    """

    def __init__(
        self,
        threads: int,
        hand_back: Callable[[Run], None],
        *,
        in_main: bool,
        debug: bool,
    ) -> None:
        self.threads = threads
        self.in_main = in_main
        self.loop = EventLoop(hand_back, debug=debug)
        self._ready: SimpleQueue[Run | None] = SimpleQueue()
        self._runners = [
            Runner(self._ready, hand_back, debug=debug) for _ in range(threads)
        ]
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads."""
        if self.in_main:
            return
        for number, runner in enumerate(self._runners, 1):
            thread = threading.Thread(
                target=runner.work, name=f"alkstore-runner-{number}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def work(self) -> None:
        """Be the one thread that runs jobs, until ``stop``. For the main thread."""
        alarm = Alarm()
        with alarm.install():
            self._runners[0].work(alarm)

    def put(self, run: Run) -> None:
        """
        Let a run begin as soon as there is a thread for it, or a place on the loop.
        """
        if run.is_async:
            self.loop.put(run)
        else:
            self._ready.put(run)

    @property
    def waiting(self) -> int:
        """How many runs have not begun, those for the loop aside."""
        return self._ready.qsize()

    @property
    def is_busy(self) -> bool:
        """Whether a job is running."""
        return self.loop.running > 0 or any(each.is_busy for each in self._runners)

    def take_back(self) -> list[Run]:
        """Return the runs that have not begun; they will not begin."""
        runs = self.loop.take_back()
        try:
            while True:
                run = self._ready.get_nowait()
                if run is not None:
                    runs.append(run)
        except Empty:
            return runs

    def end_threads(self) -> None:
        """Let every thread end after the runs that are already its own."""
        for _ in self._runners:
            self._ready.put(None)

    def stop(self, timeout: float) -> bool:
        """End the threads. Return whether all have ended within ``timeout`` seconds."""
        self.end_threads()
        end = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        loop_ended = self.loop.stop(max(0.1, end - time.monotonic()))
        return loop_ended and not any(thread.is_alive() for thread in self._threads)


class Runner:
    """One thread's work: take a run, call its function, hand it back."""

    def __init__(
        self,
        ready: SimpleQueue[Run | None],
        hand_back: Callable[[Run], None],
        *,
        debug: bool,
    ) -> None:
        self.is_busy = False
        self._ready = ready
        self._hand_back = hand_back
        self._hygiene = Hygiene(debug)

    def work(self, alarm: Alarm | None = None) -> None:
        """Run what comes, until the end is in the queue."""
        get, hygiene = self._ready.get, self._hygiene
        while True:
            try:
                run = get() if hygiene.is_idle else get(timeout=LINGER)
            except Empty:
                hygiene.idle()
                continue
            if run is None:
                break
            self.is_busy = True
            try:
                self._run(run, alarm)
            except BaseException as error:
                self._broken(run, error)
            self._hand_back(run)
            self.is_busy = False
            # An idle thread holds nothing of its last job.
            del run
        connections.close_all()

    def _run(self, run: Run, alarm: Alarm | None) -> None:
        if run.lost or time.monotonic() >= run.valid_until:
            # Somebody else may be running it already.
            run.outcome = LOST
            return
        self._hygiene.before()
        outcome = run.outcome = self._call(run, alarm)
        if isinstance(outcome, Failed) and isinstance(outcome.exception, TaskTimeout):
            self._hygiene.interrupted()
        self._hygiene.after(raised=isinstance(outcome, Failed))
        # An exception's traceback leads to the frames that called the task, this one
        # among them: what it holds would hold the exception for ever.
        del outcome

    @staticmethod
    def _broken(run: Run, error: BaseException) -> None:
        """Go on: a thread that ended here would keep its job and claim for ever."""
        logger.error(
            "event=runner_failed job=%s exception=%s",
            run.job.id, type(error).__qualname__, exc_info=error,
        )  # fmt: skip
        if run.outcome is None:
            run.outcome = Failed(error, Failure.of(error), stamped_delay(run.job))

    @staticmethod
    def _call(run: Run, alarm: Alarm | None) -> Outcome:
        # A context of its own: what one job sets (time zone and language among it) the
        # next one does not find.
        context = contextvars.copy_context()
        if alarm is None or run.job.timeout_us is None:
            return context.run(run_job, run, durable=True)
        try:
            return context.run(run_job, run, guard=alarm.guard, durable=True)
        finally:
            alarm.disarm()
