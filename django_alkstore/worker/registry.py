"""The worker's own row, and what is done about it each half minute."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterable

from django_alkstore.models import Attempt, DeadJob, LiveJob, Result, Worker
from django_alkstore.worker.runs import Run

BEAT_EVERY = 30.0
"""Seconds between two renewals of the row, or half of WORKER_TTL if that is less."""

BATCH = 500


class Registry:
    """
    One process's row in ``__alkstore_workers``. For people; nothing is decided by it.
    """

    def __init__(self, alias: str, queues: str, threads: int) -> None:
        host = socket.gethostname()
        pid = os.getpid()
        # A restarted container has the same host and process id as the one before.
        self.worker_id = f"{host[:150]}-{pid}-{secrets.token_hex(4)}"
        self._workers = Worker.objects.db_manager(alias)
        self._columns = {
            "host": host[:255], "pid": pid, "queues": queues, "threads": threads,
        }  # fmt: skip

    def beat(self, runs: Iterable[Run], *, stopping: bool) -> None:
        """Write that this worker is alive, and what it runs."""
        running = [
            {"job": run.job.id, "queue": run.job.queue, "task": run.job.task}
            for run in runs
            if run.started is not None
        ]
        self._workers.beat(
            self.worker_id,
            running=json.dumps(running),
            stopping=stopping,
            **self._columns,
        )

    def remove(self) -> None:
        """Delete the row."""
        self._workers.remove(self.worker_id)


class Pruner:
    """
    Deletes what has been kept long enough, and sweeps queues that no worker serves.
    """

    def __init__(self, alias: str) -> None:
        self._jobs = LiveJob.objects.db_manager(alias)
        self._dead = DeadJob.objects.db_manager(alias)
        self._results = Result.objects.db_manager(alias)
        self._attempts = Attempt.objects.db_manager(alias)
        self._workers = Worker.objects.db_manager(alias)
        self._after = 0

    def prune(self) -> bool:
        """Prune at most one batch of each kind. Return whether there may be more."""
        counts = [self._dead.sweep_retention(BATCH), self._results.sweep(BATCH)]
        self._workers.sweep()
        for queue in self._jobs.survey():
            if queue.upkeep:
                counts.append(self._jobs.sweep_expired(queue.name, BATCH))
        # A window a round: reading all attempts each time would cost a scan.
        _, self._after = self._attempts.sweep_orphans(after=self._after, limit=BATCH)
        return BATCH in counts
