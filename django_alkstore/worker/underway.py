"""The runs that the runners have: handed out, not yet back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from django_alkstore import signals
from django_alkstore.exceptions import TaskTimeout
from django_alkstore.jobs import ClaimedJob, Failure
from django_alkstore.worker.delays import stamped_delay
from django_alkstore.worker.heartbeat import Heartbeats
from django_alkstore.worker.outcomes import LOST, RELEASED, Failed, Invalid
from django_alkstore.worker.prefetch import AIM, BOUND, Prefetch
from django_alkstore.worker.runners import Runners
from django_alkstore.worker.runs import Run
from django_alkstore.worker.supply import Room
from django_alkstore.worker.timeouts import Timeouts

logger = logging.getLogger(__name__)

LATE_LOOK = 0.25
UNLIMITED = 1_000_000


class Underway:
    """
    Hands jobs out, keeps their claims while they run, and takes back what has not
    begun.

    For the writer's thread alone, as are the heartbeats it sends. ``counted`` is how
    many jobs have come back.
    """

    def __init__(
        self,
        runners: Runners,
        prefetch: Prefetch,
        heartbeats: Heartbeats,
        *,
        ask: Callable[[Run], None],
        max_jobs: int | None,
    ) -> None:
        self.runs: set[Run] = set()
        self.counted = 0
        self._runners = runners
        self._prefetch = prefetch
        self._heartbeats = heartbeats
        self._timeouts = Timeouts(interrupts=runners.in_main)
        self._ask = ask
        self._max_jobs = max_jobs
        self._late_at = 0.0

    @property
    def has_done_its_share(self) -> bool:
        """Whether as many jobs as were asked for have run."""
        return self._max_jobs is not None and self.counted >= self._max_jobs

    @property
    def next_at(self) -> float:
        """When to look after the runs again, on the monotonic clock."""
        at = min(self._heartbeats.next_at, self._timeouts.next_at)
        return min(at, self._late_at) if self._runners.waiting else at

    def room(self, now: float) -> Room | None:
        """
        Return how many more jobs this process can take, or None if it can take none.
        """
        most = UNLIMITED
        if self._max_jobs is not None:
            most = self._max_jobs - self.counted - len(self.runs)
        in_threads = on_loop = stuck = 0
        for run in self.runs:
            if run.is_async:
                on_loop += 1
                continue
            in_threads += 1
            if run.started is not None and now - run.started > AIM:
                stuck += 1
        loop_free = self._runners.loop.limit - on_loop
        # Async jobs that found no place on the loop wait like others.
        free = self._runners.threads - in_threads - max(0, -loop_free)
        room = Room(
            free=free,
            wanted=free + self._prefetch.ahead(stuck),
            on_loop=max(0, loop_free),
            most=most,
        )
        return room if most > 0 and (room.wanted > 0 or room.on_loop > 0) else None

    def hand_out(self, jobs: list[ClaimedJob], claimed_at: float) -> list[Run]:
        """
        Give jobs to the runners. Return the runs that are over before they have begun.

        ``claimed_at`` is an instant on the monotonic clock that is not after the claim.
        """
        now = time.monotonic()
        over = []
        free = self._runners.threads - sum(1 for run in self.runs if not run.is_async)
        # Those on their last attempt begin at once or go back: one that waits could die
        # with this process and would never have run.
        jobs.sort(key=_is_last, reverse=True)
        for job in jobs:
            run = Run(job, ask=self._ask)
            run.handed_at = now
            try:
                self._heartbeats.add(run, claimed_at)
                self._timeouts.add(run, now)
            except (TypeError, ValueError) as error:
                # SQLite keeps whatever a raw UPDATE wrote into a column of numbers.
                run.outcome = Invalid(error, Failure.of(error))
            if not run.is_async:
                free -= 1
                if free < 0 and _is_last(job):
                    run.outcome = RELEASED
            if run.outcome is not None:
                over.append(run)
                continue
            self.runs.add(run)
            self._runners.put(run)
        return over

    def came_back(self, runs: Iterable[Run]) -> list[Run]:
        """Take runs off. Return those that were still out."""
        ours = []
        for run in runs:
            # One that was abandoned while it ran is over already.
            if run not in self.runs:
                continue
            self.runs.remove(run)
            ours.append(run)
            self.counted += 1
            if run.started is not None and not run.is_async:
                self._prefetch.measure(run.seconds)
        return ours

    def beat(self, now: float) -> bool:
        """Extend the claims that are due. Return whether there were any."""
        if self._heartbeats.next_at > now:
            return False
        due = self._heartbeats.due(self.runs, now)
        if due:
            for run in self._heartbeats.beat(due):
                run.lose()
        return bool(due)

    def ask(self, run: Run) -> None:
        """Have a run's claim extended soon. For the thread that runs it."""
        self._heartbeats.ask(run)

    def find_overdue(self, now: float) -> bool:
        """
        Tell of runs that are past their timeout. Return whether there are new ones.
        """
        if self._timeouts.next_at > now:
            return False
        overdue = self._timeouts.overdue(self.runs, now)
        for run in overdue:
            signals.log_overdue(run.job)
        return bool(overdue)

    def take_back_late(self, now: float) -> list[Run]:
        """Take back what has not begun if the oldest of it has waited for too long."""
        if self._late_at > now or not self._runners.waiting:
            return []
        self._late_at = now + LATE_LOOK
        oldest = now - BOUND
        if any(run.started is None and run.handed_at < oldest for run in self.runs):
            return self.take_back()
        return []

    def take_back(self) -> list[Run]:
        """Take back what has not begun."""
        return [self._off(run) for run in self._runners.take_back()]

    def cancel_async(self) -> None:
        """Cancel the runs on the loop, to be given back."""
        for run in self.runs:
            run.give_up()

    def abandon(self) -> list[Run]:
        """Wait no longer for what still runs: it ends with this process."""
        return [self._abandoned(run) for run in list(self.runs)]

    def _abandoned(self, run: Run) -> Run:
        logger.warning("event=abandoned job=%s task=%s", run.job.id, run.job.task)
        self._off(run)
        if run.overdue:
            # Given back it would be taken again, and hang again, for ever.
            error = TaskTimeout("it ran past its timeout until its worker ended")
            run.outcome = Failed(error, Failure.of(error), stamped_delay(run.job))
        return run

    def _off(self, run: Run) -> Run:
        self.runs.discard(run)
        run.outcome = LOST if run.lost else RELEASED
        return run


def _is_last(job: ClaimedJob) -> bool:
    return job.attempts >= job.max_attempts
