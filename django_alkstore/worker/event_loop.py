"""The event loop on which async tasks run, many at a time, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections, reset_queries

from django_alkstore.worker.outcomes import LOST, RELEASED, Failed, Outcome
from django_alkstore.worker.run import arun_job
from django_alkstore.worker.runs import Run

logger = logging.getLogger(__name__)

LIMIT = 100
"""How many async jobs run at a time in one process."""

TIDY_EVERY = 1.0


class EventLoop:
    """
    Runs async jobs. The thread starts with the first one.

    Their ORM calls all go to one thread, asgiref's, and share its connection. That is
    closed when no job is left, or once it has become unusable.
    """

    def __init__(self, hand_back: Callable[[Run], None], *, debug: bool) -> None:
        self.limit = LIMIT
        self.running = 0
        """How many jobs have begun and have not ended."""
        self._hand_back = hand_back
        self._debug = debug
        self._waiting: deque[Run] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ending = False
        self._is_tidying = False
        self._spawned: set[asyncio.Task[None]] = set()

    def put(self, run: Run) -> None:
        """Let a run begin, in its turn if there are too many."""
        self._waiting.append(run)
        self._started().call_soon_threadsafe(self._begin)

    def take_back(self) -> list[Run]:
        """Return the runs that have not begun."""
        runs = []
        try:
            while True:
                runs.append(self._waiting.popleft())
        except IndexError:
            return runs

    def stop(self, timeout: float) -> bool:
        """End the thread. Return whether it has ended within ``timeout`` seconds."""
        self._ending = True
        if self._loop is None or self._thread is None:
            return True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._work, args=[self._loop], name="alkstore-loop", daemon=True
            )
            self._thread.start()
        return self._loop

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._ending:
            try:
                loop.run_forever()
            except BaseException as error:
                # SystemExit from a task that a job has spawned, say.
                logger.error(
                    "event=loop_interrupted exception=%s", type(error).__qualname__,
                    exc_info=error,
                )  # fmt: skip
        try:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=1.0))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(sync_to_async(connections.close_all)())
        finally:
            loop.close()

    def _begin(self) -> None:
        while self.running < self.limit:
            try:
                run = self._waiting.popleft()
            except IndexError:
                return
            self.running += 1
            self._create(run)

    def _create(self, run: Run) -> None:
        assert self._loop is not None
        loop = self._loop
        task = loop.create_task(self._run(run))
        # Never before the task's first step, which would then not be made at all.
        run.cancel_task = lambda: loop.call_soon_threadsafe(task.cancel)

    async def _run(self, run: Run) -> None:
        outcome: Outcome = LOST
        try:
            if run.giving_up:
                outcome = RELEASED
            elif not run.lost and time.monotonic() < run.valid_until:
                outcome = await arun_job(run)
        except asyncio.CancelledError:
            # Cancelled outside of its function, when that was over.
            outcome = LOST if run.lost else RELEASED
        finally:
            run.cancel_task = None
            run.outcome = outcome
            self.running -= 1
            self._hand_back(run)
            self._begin()
            failed = isinstance(outcome, Failed)
            # See Runner._run.
            del outcome
            if failed:
                self._spawn(self._check_once())
            if not self._is_tidying:
                self._is_tidying = True
                self._spawn(self._tidy())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        # The loop itself keeps only a weak reference.
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    async def _tidy(self) -> None:
        """
        Care for the connections that the jobs' ORM calls use, until no job is left.
        """
        try:
            while self.running:
                await asyncio.sleep(TIDY_EVERY)
                await self._check_once()
        finally:
            self._is_tidying = False

    async def _check_once(self) -> None:
        try:
            await sync_to_async(self._check)()
        except Exception:
            logger.exception("event=tidy_failed")

    def _check(self) -> None:
        if self._debug:
            reset_queries()
        if not self.running:
            close_old_connections()
            return
        # Another job may be in the middle of its rows, so one that works stays open.
        for connection in connections.all(initialized_only=True):
            if connection.errors_occurred and not connection.is_usable():
                connection.close()
