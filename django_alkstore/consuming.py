"""Consumers of your own: raw jobs one by one, woken by commits and by due times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from asgiref.sync import sync_to_async

from django_alkstore import clock
from django_alkstore.conf import get_settings
from django_alkstore.wake import AsyncWaiter, Waiter

if TYPE_CHECKING:
    from django_alkstore.jobs import ClaimedJob
    from django_alkstore.queues import Queue


def jobs(queue: Queue, worker_id: str) -> Iterator[ClaimedJob]:
    """
    Yield raw jobs for ever.

    Raise WatcherDied when nothing could wake it any more.
    """
    # Subscribed before the first look, so that no commit falls between the two.
    with Waiter(queue.database) as waiter:
        while True:
            claimed = queue.claim(worker_id)
            if not claimed:
                waiter.wait(_seconds_until(queue.next_claim_at()))
                continue
            waiter.stay_alert()
            yield from claimed


async def ajobs(queue: Queue, worker_id: str) -> AsyncIterator[ClaimedJob]:
    """Yield raw jobs for ever; see ``jobs``."""
    async with AsyncWaiter(await sync_to_async(lambda: queue.database)()) as waiter:
        while True:
            claimed = await sync_to_async(queue.claim)(worker_id)
            if not claimed:
                at = await sync_to_async(queue.next_claim_at)()
                await waiter.wait(_seconds_until(at))
                continue
            waiter.stay_alert()
            for job in claimed:
                yield job


def _seconds_until(at: datetime | None) -> float:
    # Never longer than a poll: a wake may be missed, and clocks may differ.
    longest = get_settings().poll_interval
    if at is None:
        return longest
    wait = clock.from_instant(at, "next_claim_at") - clock.host_now()
    return min(max(clock.seconds(wait), 0.0), longest)
