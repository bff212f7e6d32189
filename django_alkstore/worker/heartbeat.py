"""
Holding on to what runs: heartbeats, and the notes that go with them.

All of it happens in the writer's thread, which settles too. So no heartbeat ever comes
after the settlement of its job.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import transaction

from django_alkstore import clock
from django_alkstore.jobs import ClaimedJob, Notes
from django_alkstore.worker.runs import NEVER, Run

if TYPE_CHECKING:
    from django_alkstore.managers.live_job import LiveJobManager

SHARE = 1 / 3
"""The share of a visibility timeout after which a claim is extended."""

LONGEST = 5.0
"""Seconds between two heartbeats at most, whatever the visibility timeout, so that a
cancelled job hears of it soon."""

SHORTEST = 0.01

NOTES_EVERY = 1.0
"""Seconds between two heartbeats that a job asked for, or whose notes have changed."""


class Heartbeats:
    """
    Knows when which run is due, and does it. ``next_at`` is when to call ``due`` next.
    """

    def __init__(self, manager: LiveJobManager) -> None:
        self._manager = manager
        self._asked = False
        self._next_at = NEVER

    @property
    def next_at(self) -> float:
        """When a run may be due, on the monotonic clock; 0 once one has asked."""
        return 0.0 if self._asked else self._next_at

    def add(self, run: Run, claimed_at: float) -> None:
        """Take in a run whose claim began not before ``claimed_at``."""
        seconds = clock.seconds(run.job.visibility_timeout_us)
        run.valid_until = claimed_at + seconds
        run.beaten_at = claimed_at
        run.beat_at = claimed_at + _interval(seconds)
        task = run.task
        first = (
            min(run.beat_at, claimed_at + NOTES_EVERY)
            if task is not None and task.takes_context
            else run.beat_at
        )
        if first < self._next_at:
            self._next_at = first

    def ask(self, run: Run) -> None:
        """Have a run's claim extended soon. For its own thread."""
        run.beat_at = min(run.beat_at, run.beaten_at + NOTES_EVERY)
        self._asked = True

    def due(self, runs: Iterable[Run], now: float) -> list[Run]:
        """Return the runs to be extended now, or whose notes are to be stored."""
        self._asked = False
        due = []
        next_at = NEVER
        for run in runs:
            if run.lost:
                continue
            at = run.beat_at
            if run.context is not None:
                if _notes(run) != run.stored:
                    at = min(at, run.beaten_at + NOTES_EVERY)
                next_at = min(next_at, now + NOTES_EVERY)
            if at <= now:
                due.append(run)
                at = now + SHORTEST
            next_at = min(next_at, at)
        self._next_at = next_at
        return due

    def beat(self, due: list[Run]) -> list[Run]:
        """
        Extend claims and store notes. Return the runs whose claim is no longer ours.
        """
        at = time.monotonic()
        notes: list[tuple[ClaimedJob, Notes]] = []
        with transaction.atomic(using=self._manager.database):
            held = self._manager.heartbeat_many([run.job for run in due])
            for run in due:
                said = _notes(run)
                # Only a claim that stands may write: there may be another attempt.
                if run.job.id in held and said != run.stored:
                    notes.append((run.job, Notes(*said)))
            if notes:
                self._manager.write_notes(notes)
        stored = {job.id: (each.progress, each.log) for job, each in notes}
        for run in due:
            if run.job.id not in held:
                run.beat_at = NEVER
                continue
            seconds = clock.seconds(run.job.visibility_timeout_us)
            run.valid_until = at + seconds
            run.beaten_at = at
            run.beat_at = at + _interval(seconds)
            run.stored = stored.get(run.job.id, run.stored)
            self._next_at = min(self._next_at, run.beat_at)
        return [run for run in due if run.job.id not in held]


def _interval(seconds: float) -> float:
    # Once a job, and comparisons take a third of the time of min and max.
    interval = seconds * SHARE
    if interval > LONGEST:
        return LONGEST
    return interval if interval > SHORTEST else SHORTEST


def _notes(run: Run) -> tuple[str | None, str]:
    if run.context is None:
        return run.stored
    notes = run.context.notes
    return notes.progress, notes.log
