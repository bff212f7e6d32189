"""
The queue as a few lines of Python over a dict: what the managers are compared with.

Time is counted in microseconds, and passes a few of them at a time, so that every
boundary is met. The rules are those of the contract; nothing here reads the database.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from django_alkstore.jobs import ClaimedJob
from django_alkstore.options import JobOptions


@dataclass(slots=True)
class Row:
    """A live job."""

    id: int
    payload: str
    options: JobOptions
    key: str | None
    state: str
    priority: int
    run_at: int
    expires_at: int | None
    attempts: int = 0
    worker: str = ""
    claim_end: int | None = None

    def order(self) -> tuple[int, int, int]:
        return (-self.priority, self.run_at, self.id)

    def held(self, now: int) -> bool:
        return self.state == "processing" and (self.claim_end or 0) >= now

    def lapsed(self, now: int) -> bool:
        return self.state == "processing" and not self.held(now)

    def expired(self, now: int) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    @property
    def spent(self) -> bool:
        return self.attempts >= self.options.max_attempts


@dataclass(slots=True)
class Model:
    """One queue. ``dead`` holds (row, reason); ``results`` and ``gone`` hold ids."""

    now: int
    live: dict[int, Row] = field(default_factory=dict)
    dead: dict[int, tuple[Row, str]] = field(default_factory=dict)
    results: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    paused: bool = False

    def holder(self, key: str | None) -> Row | None:
        found = self._holder(key)
        # One that has expired makes room, with whatever else has.
        if found is not None and found.expired(self.now):
            self.sweep()
            found = self._holder(key)
        return found

    def _holder(self, key: str | None) -> Row | None:
        return next((r for r in self.live.values() if key and r.key == key), None)

    def add(
        self, job_id: int, payload: str, options: JobOptions, key: str | None
    ) -> None:
        assert job_id not in self.live
        run_at, state = self.when(options)
        expires = None if options.expires is None else self.now + options.expires
        self.live[job_id] = Row(
            job_id, payload, options, key, state, options.priority, run_at, expires
        )

    def when(self, options: JobOptions) -> tuple[int, str]:
        run_at = self.now + options.delay if options.run_at is None else options.run_at
        return run_at, "scheduled" if run_at > self.now else "pending"

    def replace(self, row: Row, payload: str, options: JobOptions) -> None:
        row.payload, row.priority = payload, options.priority
        row.run_at, row.state = self.when(options)
        row.worker = ""

    def claim(
        self, worker: str, limit: int, slots: int | None, upkeep: bool
    ) -> list[int]:
        if upkeep:
            self.sweep()
            for row in self.live.values():
                due = row.state == "scheduled" and row.run_at <= self.now
                if due or row.lapsed(self.now):
                    row.state = "pending"
        if self.paused:
            return []
        waiting = [
            row
            for row in self.live.values()
            if row.state == "pending" and not row.expired(self.now)
        ]
        taken = sorted(waiting, key=Row.order)[:limit]
        for place, row in enumerate(taken):
            last = row.attempts + 1 >= row.options.max_attempts
            if last and slots is not None:
                if slots == 0:
                    for back in taken[place:]:  # claimed and given back
                        back.worker, back.claim_end = "", None
                    taken = taken[:place]
                    break
                slots -= 1
        for row in taken:
            row.state, row.worker = "processing", worker
            row.attempts += 1
            row.claim_end = self.now + row.options.visibility_timeout
        return [row.id for row in taken]

    def sweep(self) -> int:
        over = {
            row.id: "exhausted" if row.lapsed(self.now) and row.spent else "expired"
            for row in self.live.values()
            if not row.held(self.now)
            and (row.expired(self.now) or (row.lapsed(self.now) and row.spent))
        }
        for job_id, reason in over.items():
            self.bury(job_id, reason)
        return len(over)

    def ours(self, job: ClaimedJob) -> Row | None:
        """Return the row while the receipt's claim stands."""
        row = self.attempt_of(job)
        return row if row is not None and row.held(self.now) else None

    def attempt_of(self, job: ClaimedJob) -> Row | None:
        """Return the row while the receipt's attempt is on it, lapsed or not."""
        row = self.live.get(job.id)
        if row is None or (row.attempts, row.worker) != (job.attempts, job.worker_id):
            return None
        return row

    def finish(self, row: Row) -> None:
        del self.live[row.id]
        (self.results if row.options.result_ttl is not None else self.gone).add(row.id)

    def bury(self, job_id: int, reason: str) -> None:
        self.dead[job_id] = (self.live.pop(job_id), reason)

    def put_back(self, row: Row, delay: int, *, unspend: bool) -> None:
        row.state = "scheduled" if delay else "pending"
        row.worker, row.claim_end = "", None
        row.attempts -= unspend
        if delay or not unspend:
            row.run_at = self.now + delay

    def requeue(self, old: int, new: int) -> None:
        row, _ = self.dead.pop(old)
        span = row.options.expires
        self.live[new] = replace(
            row,
            id=new,
            state="pending",
            run_at=self.now,
            expires_at=None if span is None else self.now + span,
            attempts=0,
            worker="",
            claim_end=None,
        )

    def next_claim_at(self) -> int | None:
        """Return the first instant at which a claim could return something."""
        if self.paused:
            return None
        times = []
        for row in self.live.values():
            at = row.run_at
            if row.state == "processing":
                if row.spent:
                    continue
                at = (row.claim_end or 0) + 1
            if not row.expired(max(at, self.now)):
                times.append(at)
        return min(times, default=None)
