"""
The writer: one thread that does every queue statement of the process.

    claim -> hand out -> (runners run) -> collect -> settle -> wait

Each turn settles what has ended and claims what there is room for, in one transaction:
at once when little happens, many together when much does. A claim is in exactly one
place: underway until its runner hands it back, then in the ledger until a transaction
that settles it has committed. So an error loses nothing: the turn is done again, after
a pause, on a new connection.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from django.db import connections

from django_alkstore.worker.errands import Errands
from django_alkstore.worker.heartbeat import Heartbeats
from django_alkstore.worker.inbox import Inbox
from django_alkstore.worker.ledger import Ledger
from django_alkstore.worker.outage import PASSING, Outage
from django_alkstore.worker.prefetch import Prefetch
from django_alkstore.worker.registry import Registry
from django_alkstore.worker.runners import Runners
from django_alkstore.worker.runs import Run
from django_alkstore.worker.stopping import Reason
from django_alkstore.worker.supply import Room, Supply
from django_alkstore.worker.underway import Underway

if TYPE_CHECKING:
    from django_alkstore.jobs import ClaimedJob
    from django_alkstore.managers.live_job import LiveJobManager

logger = logging.getLogger(__name__)

CANCEL_GRACE = 1.0
"""Seconds that cancelled async jobs have to end, when the process stops."""

GIVE_UP_AFTER = 1.0
"""Seconds of a stop in which the database may come back to take claims that are given
back; for outcomes it has the shutdown timeout."""

APART = 5.0
"""Seconds after an error in which claims are not made together with settlements."""

STOP_LOOK = 0.25


class Writer:
    """Runs until it is asked to stop and nothing is left to settle."""

    def __init__(
        self,
        manager: LiveJobManager,
        *,
        inbox: Inbox,
        runners: Runners,
        supply: Supply,
        prefetch: Prefetch,
        registry: Registry,
        errands: Errands,
        vigil: Callable[[], Reason | None],
        shutdown_timeout: float,
        house_every: float,
        max_jobs: int | None,
        batch: bool,
    ) -> None:
        self.reason: Reason | None = None
        """Why it stops, once it does."""
        self.abandoned = False
        """Whether a job still runs that it could not wait for."""
        self.ledger = Ledger(manager, errands.tell)
        self._underway = Underway(
            runners, prefetch, Heartbeats(manager), ask=self._ask, max_jobs=max_jobs
        )
        self._alias = manager.database
        self._inbox = inbox
        self._supply = supply
        self._registry = registry
        self._errands = errands
        self._vigil = vigil
        self._shutdown_timeout = shutdown_timeout
        self._house_every = house_every
        self._batch = batch
        self._outage = Outage("database")
        self._answered = False
        self._house_at = 0.0
        self._vigil_at = 0.0
        self._apart_until = 0.0
        self._is_done = False
        self._stopping_since: float | None = None
        self._cancelled_at: float | None = None

    def stop(self, reason: Reason) -> None:
        """Ask it to stop; the first reason counts. From any thread."""
        if self.reason is None:
            self.reason = reason
        self._inbox.ring()

    @property
    def is_working(self) -> bool:
        """Whether jobs are running here, or wait to be settled."""
        return bool(self._underway.runs) or self.ledger.has_ended

    def look_around_soon(self) -> None:
        """Have it look now for what should end it. From any thread."""
        self._vigil_at = 0.0
        self._inbox.ring()

    def run(self) -> None:
        """Work until stopped and everything is settled, or cannot be."""
        # Be woken from now on, and look then: no commit falls between the two.
        self._look_around(time.monotonic())
        while not self._is_done:
            try:
                self._turn()
            except Exception as error:
                self._recover(error)
            self._finish_stop(time.monotonic())
        try:
            self._registry.remove()
        except Exception as error:
            logger.info("event=row_left exception=%s", type(error).__qualname__)
        connections.close_all()

    def _turn(self) -> None:
        self._collect(self._pause())
        now = time.monotonic()
        self._begin_stop(now)
        phases = [self._beat, self._advance, self._keep_house, self._watch]
        if self._outage.failures % 2:
            # Whichever of the two cannot be done must not keep the other from it.
            phases = [self._advance, self._beat]
        self._answered = False
        failed: Exception | None = None
        for phase in phases:
            try:
                phase(now)
            except PASSING:
                raise
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        # Of the whole turn: a full disk lets one read, and writes fail on.
        if self._answered:
            self._outage.passed()

    def _advance(self, now: float) -> None:
        """Settle, claim and hand out."""
        room = self._room(now)
        names: list[str] = []
        if room is not None:
            if self._inbox.woken:
                self._inbox.woken = False
                self._supply.is_stale = True
            if self._batch and self._supply.looked_at <= self.ledger.settled_at:
                self._supply.is_stale = True
            if self._supply.look_if_needed(now):
                self._answered = True
            names = self._supply.queues(room, now)
        jobs: list[ClaimedJob] = []
        claimed_at = now

        def claim() -> None:
            nonlocal claimed_at
            if room is not None:
                claimed_at = time.monotonic()
                isolated_at = None if together else claimed_at
                jobs.extend(self._supply.claim(names, room, isolated_at=isolated_at))

        # A claim that has rows to move first reads before it writes: not in here.
        together = (
            bool(names)
            and now >= self._apart_until
            and not self._supply.moves_rows(names)
        )
        if together or self.ledger.has_ended:
            try:
                self.ledger.settle(claim if together else None)
            except Exception:
                self._apart_until = now + APART
                raise
            self._answered = True
        if names and not together:
            claim()
        if jobs:
            self.ledger.add(self._underway.hand_out(jobs, claimed_at))

    def _room(self, now: float) -> Room | None:
        if self.reason is not None or self._errands.is_behind:
            return None
        return self._underway.room(now)

    def _collect(self, timeout: float) -> None:
        self.ledger.add(self._underway.came_back(self._inbox.collect(timeout)))

    def _beat(self, now: float) -> None:
        if self._underway.beat(now):
            self._answered = True

    def _ask(self, run: Run) -> None:
        """Have a run's claim extended soon. For the thread that runs it."""
        self._underway.ask(run)
        self._inbox.ring()

    def _watch(self, now: float) -> None:
        if self._underway.find_overdue(now):
            self.stop(Reason.TIMEOUT)
        self.ledger.add(self._underway.take_back_late(now))
        self.ledger.retry_refused(now)

    def _keep_house(self, now: float) -> None:
        if self._vigil_at <= now:
            self._look_around(now)
        if self._house_at <= now:
            self._registry.beat(self._underway.runs, stopping=self.reason is not None)
            self._house_at = now + self._house_every
            self._answered = True

    def _look_around(self, now: float) -> None:
        self._vigil_at = now + 1.0
        reason = self._vigil()
        if reason is not None:
            self.stop(reason)

    def _begin_stop(self, now: float) -> None:
        if self._underway.has_done_its_share:
            self.stop(Reason.MAX_JOBS)
        if self._batch and self._has_nothing():
            if self._supply.looked_at > self.ledger.settled_at:
                self.stop(Reason.BATCH)
        if self.reason is None or self._stopping_since is not None:
            return
        running = len(self._underway.runs)
        logger.info("event=stopping reason=%s running=%s", self.reason.value, running)
        self._stopping_since = now
        self._house_at = now
        self.ledger.add(self._underway.take_back())

    def _has_nothing(self) -> bool:
        return not self.is_working and self._supply.is_empty

    def _finish_stop(self, now: float) -> None:
        if self._stopping_since is None:
            return
        running = self._underway.runs
        if not running and not self.ledger.has_ended:
            self._is_done = True
        elif running and now >= self._stopping_since + self._shutdown_timeout:
            on_loop = any(run.is_async for run in running)
            if self._cancelled_at is None:
                self._cancelled_at = now
                self._underway.cancel_async()
            if not on_loop or now >= self._cancelled_at + CANCEL_GRACE:
                self.abandoned = True
                self.ledger.add(self._underway.abandon())

    def _pause(self) -> float:
        """Return for how many seconds nothing is to be done."""
        now = time.monotonic()
        if self.ledger.has_ended or (self._batch and self._has_nothing()):
            return 0.0
        room = self._room(now)
        at = min(self._underway.next_at, self._house_at, self._vigil_at)
        if self._stopping_since is not None:
            # The last run comes through the inbox, everything else by time.
            deadline = self._stopping_since + self._shutdown_timeout
            at = min(at, deadline if now < deadline else now + STOP_LOOK)
        elif self.reason is not None:
            at = now
        elif room is not None:
            if self._supply.queues(room, now):
                return 0.0
            at = min(at, self._supply.look_at)
        self._inbox.listen(room is not None)
        return max(0.0, at - now)

    def _recover(self, error: Exception) -> None:
        """Drop the connection, and let some time pass; the runners go on meanwhile."""
        pause = self._outage.failed(error)
        self._supply.forget()
        try:
            connections[self._alias].close()
        except Exception as broken:
            logger.debug("event=close_failed exception=%s", type(broken).__qualname__)
        if connections[self._alias].in_atomic_block:
            del connections[self._alias]
        end = time.monotonic() + pause
        while (left := end - time.monotonic()) > 0:
            self._collect(left)
            self._begin_stop(time.monotonic())
        since = self._stopping_since
        if since is not None and not self._underway.runs:
            # What was done and cannot be written is done twice: that is worth a wait.
            patience = self._shutdown_timeout if self.ledger.owes else 0.0
            if time.monotonic() > since + max(GIVE_UP_AFTER, patience):
                self._is_done = True
