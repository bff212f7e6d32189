"""What must hold after each step of a history, whatever the step was."""

from __future__ import annotations

from random import Random
from typing import Any

from django.db import connection

from django_alkstore import clock
from django_alkstore.jobs import ClaimedJob
from django_alkstore.models import LiveJob
from tests.engine.model import Model

START = 1_800_000_000 * clock.SECOND
STAMPS = (
    "task, max_attempts, created_at, expires_at, visibility_timeout, backoff, timeout,"
    " dead_letter_retention, result_ttl, unique_key"
)
EVERYWHERE = " UNION ALL ".join(
    f"SELECT '{table}', id, {state}, payload, priority, run_at, attempts, worker_id,"
    f' claim_expires_at, {STAMPS} FROM "__alkstore_{table}" WHERE queue = %s'
    for table, state in (("live", "state"), ("dead", "reason"), ("results", "''"))
)
live = LiveJob.objects


class Watched:
    """One queue and its model. ``told`` says what was done to them."""

    def __init__(self, queue: str, random: Random) -> None:
        self.queue = queue
        self.random = random
        self.model = Model(START)
        # Raw jobs are looked for by next_claim_at, jobs with a task by survey.
        self.raw = random.random() < 0.5
        self.receipts: list[ClaimedJob] = []
        self.valid: dict[int, ClaimedJob] = {}
        self.stamps: dict[int, tuple[Any, ...]] = {}
        self.newest = 0
        self.payloads = 0
        self.told: list[str] = []

    def look(self) -> None:
        """Read every row of the queue; compare it with the model and with before."""
        with connection.cursor() as cursor:
            cursor.execute(EVERYWHERE, [self.queue] * 3)
            rows = cursor.fetchall()
        places = {row[1]: row[0] for row in rows}
        assert len(places) == len(rows), "a job is in two tables"
        model = self.model
        known = {
            **dict.fromkeys(model.live, "live"),
            **dict.fromkeys(model.dead, "dead"),
        }
        assert places == known | dict.fromkeys(model.results, "results")
        for table, job_id, state, *columns in rows:
            values, stamps = tuple(columns[:6]), tuple(columns[6:])
            assert self.stamps.setdefault(job_id, stamps) == stamps, "a stamp changed"
            assert columns[3] <= stamps[1], "more attempts than allowed"
            if table == "live":
                row = model.live[job_id]
                assert state == row.state
                assert values == (
                    row.payload, row.priority, row.run_at, row.attempts, row.worker,
                    row.claim_end,
                )  # fmt: skip
            elif table == "dead":
                assert state == model.dead[job_id][1]
        assert self.next_claim_at() == (
            model.next_claim_at() if self.raw else self.due()
        )

    def next_claim_at(self) -> int | None:
        """Return when to look again, as a consumer or as a worker is told."""
        if self.raw:
            at = live.next_claim_at(self.queue)
            return None if at is None else clock.from_instant(at, "at")
        for found in live.survey():
            if found.name == self.queue:
                at_once = found.pending or found.upkeep
                return self.model.now if at_once else found.next_at
        return None

    def due(self) -> int | None:
        """Return when a worker has to look, for a claim or for a row to be moved."""
        now = self.model.now
        if self.model.paused:
            return None
        times = []
        for row in self.model.live.values():
            if row.state == "processing":
                times.append(max(now, (row.claim_end or 0) + 1))
            elif row.state == "scheduled" and not row.expired(now):
                times.append(max(now, row.run_at))
            else:
                times.append(now)
        return min(times, default=None)

    def born(self, job_id: int) -> None:
        assert job_id > self.newest, "an id was used again"
        self.newest = job_id
