"""One claimed job, run and settled by the worker's own code, here and now."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync, sync_to_async

from django_alkstore.worker.run import arun_job, run_job
from django_alkstore.worker.runs import Run
from django_alkstore.worker.settle import Fate, settle, tell

if TYPE_CHECKING:
    from django_alkstore.jobs import ClaimedJob
    from django_alkstore.managers.live_job import LiveJobManager
    from django_alkstore.worker.outcomes import Outcome


def run_claimed(job: ClaimedJob) -> Run:
    """Run a job in this thread. Only a transactional task is settled by that."""
    run = Run(job)
    # A loop lends its ORM calls back to this thread, so they use its connection.
    run.outcome = async_to_sync(_arun)(run) if run.is_async else run_job(run)
    return run


def settle_claimed(manager: LiveJobManager, run: Run) -> Fate:
    """Settle what was run, and send the signals that tell of it."""
    fate = settle(manager, run)
    tell(run, fate)
    return fate


async def _arun(run: Run) -> Outcome:
    beats: list[asyncio.Task[None]] = []

    async def beat() -> None:
        if not await sync_to_async(run.job.heartbeat)():
            run.lose()

    # As in a worker it only asks: an event loop cannot wait for the database.
    run.ask = lambda run: beats.append(asyncio.ensure_future(beat()))
    outcome = await arun_job(run)
    await asyncio.gather(*beats)
    return outcome
