"""
Noticing the jobs that are past their timeout and run on, because nothing stops them.
"""

from __future__ import annotations

from collections.abc import Iterable

from django_alkstore import clock
from django_alkstore.worker.runs import NEVER, Run

GRACE = 1.0
"""Seconds that a function which is interrupted has to come to its end."""


class Timeouts:
    """
    Knows when a run is overdue. ``interrupts``: a timeout interrupts plain functions.
    """

    def __init__(self, *, interrupts: bool) -> None:
        self._interrupts = interrupts
        self.next_at = NEVER
        """When a run may be overdue, on the monotonic clock."""

    def add(self, run: Run, now: float) -> None:
        """Take in a run that has not begun before ``now``."""
        if run.job.timeout_us is not None:
            self.next_at = min(self.next_at, now + self._span(run, run.job.timeout_us))

    def overdue(self, runs: Iterable[Run], now: float) -> list[Run]:
        """Return the runs that have become overdue."""
        found = []
        next_at = NEVER
        for run in runs:
            if run.job.timeout_us is None or run.overdue:
                continue
            begun = now if run.started is None else run.started
            at = begun + self._span(run, run.job.timeout_us)
            if at <= now:
                run.overdue = True
                found.append(run)
            else:
                next_at = min(next_at, at)
        self.next_at = next_at
        return found

    def _span(self, run: Run, timeout: int) -> float:
        stops = run.is_async or self._interrupts
        return clock.seconds(timeout) + (GRACE if stops else 0.0)
