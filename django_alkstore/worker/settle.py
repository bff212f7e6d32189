"""
Match what an attempt ended with to the step of the job's life that follows, and tell of
it.

``settle_all`` works inside the caller's transaction; ``tell`` is for after its commit.
Every step is fenced: a job whose claim has gone is LOST, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, assert_never

from django_alkstore import signals
from django_alkstore.jobs import Failure
from django_alkstore.worker.outcomes import (
    Committed,
    Discarded,
    Failed,
    Invalid,
    Lost,
    Released,
    Succeeded,
)
from django_alkstore.worker.runs import Run

if TYPE_CHECKING:
    from django_alkstore.managers.live_job import LiveJobManager


class Fate(Enum):
    """What became of the job. For a dead one the value is the reason."""

    FINISHED = "finished"
    RETRIED = "retried"
    RELEASED = "released"
    LOST = "lost"
    EXHAUSTED = "exhausted"
    FAILED = "failed"
    INVALID = "invalid"

    @property
    def is_dead(self) -> bool:
        """Whether the job will not run again by itself."""
        return self in (Fate.EXHAUSTED, Fate.FAILED, Fate.INVALID)


_RETRY_FATES = {"retried": Fate.RETRIED, "dead": Fate.EXHAUSTED, "lost": Fate.LOST}


def settle_all(manager: LiveJobManager, runs: Sequence[Run]) -> list[tuple[Run, Fate]]:
    """Settle runs that are over; those that succeeded, or go back, in one statement."""
    # Two attempts of one job cannot be told apart by its id.
    if len({run.job.id for run in runs}) < len(runs):
        return [(run, settle(manager, run)) for run in runs]
    acked: list[Run] = []
    released: list[Run] = []
    others: list[Run] = []
    for run in runs:
        kind = type(run.outcome)
        group = acked if kind is Succeeded else released if kind is Released else others
        group.append(run)
    done = _ack(manager, acked) if acked else set()
    if released:
        done |= manager.release_many([run.job for run in released])
    fates = [(run, _fate(run, Fate.FINISHED, done)) for run in acked]
    fates += [(run, _fate(run, Fate.RELEASED, done)) for run in released]
    return fates + [(run, settle(manager, run)) for run in others]


def settle(manager: LiveJobManager, run: Run) -> Fate:
    """Settle one run that is over. Return what became of its job."""
    job, outcome = run.job, run.outcome
    match outcome:
        case Succeeded():
            return Fate.FINISHED if _ack(manager, [run]) else Fate.LOST
        case Committed():
            return Fate.FINISHED
        case Failed(failure=failure, delay=delay):
            return _retry(manager, run, failure, delay)
        case Discarded(failure=failure):
            done = manager.fail(job, failure=failure, notes=run.notes)
            return Fate.FAILED if done else Fate.LOST
        case Invalid(failure=failure):
            done = manager.fail(job, failure=failure, reason="invalid", notes=run.notes)
            return Fate.INVALID if done else Fate.LOST
        case Released():
            return Fate.RELEASED if manager.release_many([job]) else Fate.LOST
        case Lost():
            return Fate.LOST
        case None:
            raise ValueError(f"{run!r} is not over")
        case _:
            assert_never(outcome)


def tell(run: Run, fate: Fate) -> None:
    """Send the signals of a settled run and write its log line, after the commit."""
    job, task, outcome = run.job, run.task, run.outcome
    if fate is Fate.FINISHED:
        signals.send_succeeded(task, job, run.seconds)
    elif fate is Fate.LOST:
        signals.log_lost(job)
    elif isinstance(outcome, (Failed, Discarded, Invalid)):
        signals.send_failed(task, job, outcome.exception, run.seconds)
        if fate.is_dead:
            signals.send_dead(task, job, fate.value, outcome.exception)


def _fate(run: Run, fate: Fate, done: set[int]) -> Fate:
    return fate if run.job.id in done else Fate.LOST


def _retry(
    manager: LiveJobManager, run: Run, failure: Failure, delay: int | None
) -> Fate:
    if delay is None:
        done = manager.fail(run.job, failure=failure, notes=run.notes)
        return Fate.FAILED if done else Fate.LOST
    said = manager.retry(run.job, delay=delay, failure=failure, notes=run.notes)
    return _RETRY_FATES[said]


def _ack(manager: LiveJobManager, runs: Sequence[Run]) -> set[int]:
    results = {}
    notes = {}
    for run in runs:
        if isinstance(run.outcome, Succeeded) and run.outcome.result is not None:
            results[run.job.id] = run.outcome.result
        if run.context is not None and run.notes is not None:
            notes[run.job.id] = run.notes
    return manager.ack_many([run.job for run in runs], results=results, notes=notes)
