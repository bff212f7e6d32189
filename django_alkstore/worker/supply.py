"""
What there is to claim, and the claims: which queue, how many, and when to look again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django_alkstore import clock
from django_alkstore.decorator import registry
from django_alkstore.jobs import ClaimedJob
from django_alkstore.worker.outage import PASSING
from django_alkstore.worker.selection import Selection

if TYPE_CHECKING:
    from django_alkstore.managers.live_job import LiveJobManager

logger = logging.getLogger(__name__)

# While jobs are known to wait, a commit is no reason to look more often than this.
LOOK_GAP = 0.02
SOONEST = 0.001
# How long a queue is left alone whose claim fails by itself.
ASIDE = 5.0


@dataclass(slots=True)
class Room:
    """
    How many jobs this process can take now.

    ``free`` threads have nothing to do; ``wanted`` adds what may wait for them.
    ``on_loop`` async ones can begin at once. At most ``most`` in all.
    """

    free: int
    wanted: int
    on_loop: int
    most: int

    def take(self, jobs: Iterable[ClaimedJob]) -> None:
        """Count claimed jobs off."""
        for job in jobs:
            self.most -= 1
            if _is_async(job) and self.on_loop > 0:
                self.on_loop -= 1
            else:
                self.free -= 1
                self.wanted -= 1


class Supply:
    """The queues that have work for this worker, as far as it has seen."""

    def __init__(
        self,
        manager: LiveJobManager,
        selection: Selection,
        worker_id: str,
        poll_interval: float,
    ) -> None:
        self._manager = manager
        self._selection = selection
        self._worker_id = worker_id
        self._poll_interval = poll_interval
        self._pending: set[str] = set()
        self._upkeep: set[str] = set()
        # Queues whose next job may be on its last attempt, and those of async jobs.
        self._last_attempts: set[str] = set()
        self._async: set[str] = set()
        self._aside: dict[str, float] = {}
        self.is_stale = True
        """Whether something may have changed since the last look."""
        self.looked_at = 0.0
        self.look_at = 0.0
        """When to look again if nothing wakes the worker before."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was left to claim when last seen."""
        return not self._pending and not self._upkeep

    def forget(self) -> None:
        """Know nothing any more: a transaction failed, or the database was away."""
        self._pending.clear()
        self._upkeep.clear()
        self.is_stale = True
        self.looked_at = self.look_at = 0.0

    def look_if_needed(self, now: float) -> bool:
        """Survey the queues if that is due. Return whether it was."""
        rested = self.is_empty or now - self.looked_at >= LOOK_GAP
        if now < self.look_at and not (self.is_stale and rested):
            return False
        self.is_stale = False
        ours = self._selection.ours(self._manager.survey())
        # Not before: a batch that could not look has not found that nothing is due.
        self.looked_at = now
        self._pending = {name for name, each in ours.items() if each.pending}
        self._upkeep = {name for name, each in ours.items() if each.upkeep}
        waits = [each.wait for each in ours.values() if each.wait is not None]
        soonest = clock.seconds(min(waits)) if waits else self._poll_interval
        self.look_at = now + max(SOONEST, min(soonest, self._poll_interval))
        return True

    def queues(self, room: Room, now: float) -> list[str]:
        """
        Return the queues to claim from, in turn, as far as there is room for them.
        """
        if self._aside:
            self._aside = {name: at for name, at in self._aside.items() if at > now}
        names = self._pending | self._upkeep
        return self._selection.in_turn(
            name
            for name in names
            if name not in self._aside and self._limit(name, room) > 0
        )

    def moves_rows(self, names: Iterable[str]) -> bool:
        """Whether a claim from these queues has rows to move first."""
        return not self._upkeep.isdisjoint(names)

    def claim(
        self, names: list[str], room: Room, *, isolated_at: float | None = None
    ) -> list[ClaimedJob]:
        """
        Claim from queues until there is no room.

        With ``isolated_at``, the present time, each claim is by itself: one that fails
        for a reason of its own puts its queue aside for a while.
        """
        jobs: list[ClaimedJob] = []
        for place, name in enumerate(names):
            limit = self._limit(name, room)
            if limit <= 0:
                continue
            try:
                claimed = self._claim(name, limit, room)
            except PASSING:
                raise
            except Exception:
                if isolated_at is None:
                    raise
                logger.exception("event=claim_failed queue=%s", name)
                self._aside[name] = isolated_at + ASIDE
                continue
            if place + 1 < len(names):
                room.take(claimed)
            jobs += claimed
            if place == 0:
                self._selection.begun_with(name)
        return jobs

    def _limit(self, name: str, room: Room) -> int:
        if name in self._async:
            return min(room.on_loop, room.most)
        wanted = room.free if name in self._last_attempts else room.wanted
        return min(wanted, room.most)

    def _claim(self, name: str, limit: int, room: Room) -> list[ClaimedJob]:
        slots = max(0, room.on_loop if name in self._async else room.free)
        upkeep = name in self._upkeep
        jobs = self._manager.claim(
            name,
            worker_id=self._worker_id,
            limit=limit,
            raw=False,
            # A limit within the slots needs no second look at the attempts.
            slots=None if limit <= slots else slots,
            upkeep=upkeep,
        )
        if upkeep:
            # There may be more rows to move than one claim moves.
            self._upkeep.discard(name)
            self._pending.add(name)
            self.is_stale = True
        self._learn(name, jobs, limit, slots)
        return jobs

    def _learn(self, name: str, jobs: list[ClaimedJob], limit: int, slots: int) -> None:
        if any(job.attempts >= job.max_attempts for job in jobs):
            self._last_attempts.add(name)
        elif len(jobs) == limit or limit <= slots:
            self._last_attempts.discard(name)
        else:
            # Either no more are waiting, or the next one is on its last attempt.
            self._last_attempts.add(name)
        if len(jobs) < limit <= slots:
            self._pending.discard(name)
        # The two ends tell enough: a wrong guess costs a claim that is given back.
        if jobs and _is_async(jobs[0]) and _is_async(jobs[-1]):
            self._async.add(name)
        else:
            self._async.discard(name)


def _is_async(job: ClaimedJob) -> bool:
    task = registry.get(job.task)
    return task is not None and task.is_async
