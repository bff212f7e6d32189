"""A random history of one queue: what can happen to it, by its managers and a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection

from django_alkstore import clock
from django_alkstore.exceptions import DuplicateJob
from django_alkstore.jobs import ClaimedJob, Failure
from django_alkstore.models import DeadJob, LiveJob, QueueState
from django_alkstore.options import JobOptions
from tests.engine.invariants import START, Watched
from tests.engine.model import Row

live = LiveJob.objects
no = Failure.said("no")


class History(Watched):
    """What can happen to the queue: every step does something and then looks."""

    def step(self) -> None:
        """Do something, compare its outcome, and look at every row."""
        acts: dict[Callable[[], None], float] = {
            self.enqueue: 5, self.enqueue_many: 1, self.claim: 6, self.wait: 5,
            self.wait_as_told: 2, self.settle: 7, self.cancel: 1, self.edit: 1,
            self.sweep: 1, self.switch: 1, self.requeue: 1, self.clear: 0.05,
        }  # fmt: skip
        (act,) = self.random.choices(list(acts), list(acts.values()))
        self.told.append(f"at {self.model.now - START}: {act.__name__}")
        with clock.pretend(self.model.now):
            act()
        with clock.pretend(self.model.now):
            self.look()

    def drain(self) -> None:
        """Go where the queue says that something can be claimed, till none is left."""
        with clock.pretend(self.model.now):
            QueueState.objects.resume(self.queue)
        self.model.paused = False
        for _ in range(200):
            self.told.append(f"at {self.model.now - START}: drain")
            with clock.pretend(self.model.now):
                for job in self.claimed("w", 9, None, True):
                    self.model.finish(self.model.live[job.id])
                    assert live.ack(job)
                self.look()
                at = self.next_claim_at()
            if not self.model.live:
                return
            if at is None:
                # Only rows that end as dead letters are left.
                self.model.now = 1 + max(
                    row.claim_end or row.expires_at or 0
                    for row in self.model.live.values()
                )
                with clock.pretend(self.model.now):
                    assert live.sweep_expired(self.queue) == self.model.sweep() > 0
            else:
                self.model.now = max(at, self.model.now)
        raise AssertionError(f"stranded: {self.model.live}")

    def forget(self) -> None:
        """Delete what is left, so that the next history's looks stay short."""
        with connection.cursor() as cursor:
            for table in ("live", "dead", "results"):
                cursor.execute(
                    f'DELETE FROM "__alkstore_{table}" WHERE queue = %s', [self.queue]
                )

    def enqueue(self) -> None:
        options, key = self.options(), self.key()
        payload = self.payload()
        holder = self.model.holder(key)
        try:
            job = live.enqueue(options, payload, unique_key=key)
        except DuplicateJob as error:
            assert holder is not None
            assert error.job_id == holder.id
            assert options.on_conflict == "raise" or holder.state == "processing"
            return
        assert job.created == (holder is None)
        if holder is None:
            self.born(job.pk)
            self.model.add(job.pk, payload, options, key)
        else:
            assert job.pk == holder.id
            if options.on_conflict == "replace":
                self.model.replace(holder, payload, options)
        row = self.model.live[job.pk]
        assert (job.payload, job.state) == (row.payload, row.state)

    def enqueue_many(self) -> None:
        options = self.options(on_conflict="return")
        payloads = [self.payload() for _ in range(self.random.randint(0, 4))]
        keys = [self.key() for _ in payloads]
        ids = live.enqueue_many(options, payloads, unique_keys=keys)
        assert len(ids) == len(payloads)
        for job_id, payload, key in zip(ids, payloads, keys, strict=True):
            if holder := self.model.holder(key):
                assert job_id == holder.id
            else:
                self.model.add(job_id, payload, options, key)
        # Not in the payloads' order: an expired holder's key is free only afterwards.
        for job_id in sorted(set(ids)):
            if job_id not in self.stamps:
                self.born(job_id)

    def claim(self) -> None:
        slots = self.random.choice([None, None, 0, 1, 2])
        worker = self.random.choice(["w", "v"])
        self.claimed(
            worker, self.random.randint(1, 4), slots, self.random.random() < 0.8
        )

    def claimed(
        self, worker: str, limit: int, slots: int | None, upkeep: bool
    ) -> list[ClaimedJob]:
        expected = self.model.claim(worker, limit, slots, upkeep)
        jobs = live.claim(
            self.queue, worker_id=worker, limit=limit, raw=self.raw, slots=slots,
            upkeep=upkeep,
        )  # fmt: skip
        assert [job.id for job in jobs] == expected
        order = [(-job.priority, job.run_at_us, job.id) for job in jobs]
        assert order == sorted(order)
        for job in jobs:
            row = self.model.live[job.id]
            assert job.attempts == row.attempts <= job.max_attempts
            assert job.claim_expires_at_us == row.claim_end
            assert f'"{job.payload}"' == row.payload
            earlier = self.valid.get(job.id)
            assert earlier is None or earlier.claim_expires_at_us < self.model.now
            self.valid[job.id] = job
        self.receipts += jobs
        return jobs

    def wait(self) -> None:
        self.model.now += self.random.randint(1, 4)

    def wait_as_told(self) -> None:
        """Go to the time at which something can be claimed: then it can."""
        at = self.next_claim_at()
        if at is None or not self.raw:
            return
        self.model.now = max(at, self.model.now)
        with clock.pretend(self.model.now):
            assert self.claimed("w", 1, None, True)

    def settle(self) -> None:
        """Use a receipt, of a claim that stands or of one that has lapsed."""
        if not self.receipts:
            return
        job = self.random.choice(self.receipts[-6:])
        row = self.model.ours(job)
        delay = self.random.choice([0, 0, 1, 3])
        how = self.random.choice(
            ["ack", "transactional", "retry", "fail", "snooze", "release", "heartbeat"]
        )
        self.told.append(f"    {how} {job!r} of {job.worker_id}, {row}")
        if how == "transactional":
            self.ack_transactional(job)
            return
        done: bool = {
            "ack": lambda: live.ack_many([job]) == {job.id},
            "retry": lambda: self.retry(job, row, delay),
            "fail": lambda: live.fail(job, failure=no),
            "snooze": lambda: live.snooze(job, delay),
            "release": lambda: live.release_many([job]) == {job.id},
            "heartbeat": lambda: self.heartbeat(job, row),
        }[how]()
        assert done == (row is not None)
        if row is None or how == "heartbeat":
            return
        del self.valid[job.id]
        if how == "ack":
            self.model.finish(row)
        elif how == "fail" or (how == "retry" and row.spent):
            self.model.bury(row.id, "exhausted" if how == "retry" else "failed")
        elif how == "retry":
            self.model.put_back(row, delay, unspend=False)
        else:
            delay = delay if how == "snooze" else 0
            self.model.put_back(row, delay, unspend=True)

    def retry(self, job: ClaimedJob, row: Row | None, delay: int) -> bool:
        outcome = live.retry(job, delay=delay, failure=no)
        expected = "lost" if row is None else "dead" if row.spent else "retried"
        assert outcome == expected
        return outcome != "lost"

    def heartbeat(self, job: ClaimedJob, row: Row | None) -> bool:
        extend = self.random.choice([None, 1, 9])
        held = live.heartbeat(job, extend)
        if row is not None:
            span = row.options.visibility_timeout if extend is None else extend
            row.claim_end = max(row.claim_end or 0, self.model.now + span)
            assert job.claim_expires_at_us == row.claim_end
        return held

    def ack_transactional(self, job: ClaimedJob) -> None:
        row = self.model.attempt_of(job)
        assert live.ack(job, lapsed_ok=True) == (row is not None)
        if row is not None:
            # What it ran is what the row still asks for. (One that was given back and
            # claimed anew has the same number again.)
            if self.valid.pop(job.id, None) is job:
                assert row.payload == f'"{job.payload}"'
            self.model.finish(row)

    def cancel(self) -> None:
        job_id = self.some_id()
        assert live.cancel(job_id) == (job_id in self.model.live)
        if job_id in self.model.live:
            self.valid.pop(job_id, None)
            self.model.bury(job_id, "cancelled")

    def edit(self) -> None:
        job_id = self.some_id()
        priority = self.random.choice([None, 0, 1])
        run_at = self.random.choice([None, self.model.now + self.random.randint(-2, 3)])
        payload = self.random.choice([..., f"edited {len(self.told)}"])
        row = self.model.live.get(job_id)
        editable = row is not None and row.state != "processing"
        done = live.edit(
            job_id, priority=priority, payload=payload,
            run_at=None if run_at is None else clock.to_instant(run_at),
        )  # fmt: skip
        assert done == editable
        if row is None or not editable:
            return
        row.worker = ""
        if priority is not None:
            row.priority = priority
        if payload is not ...:
            row.payload = f'"{payload}"'
        if run_at is not None:
            row.run_at = run_at
            row.state = "scheduled" if run_at > self.model.now else "pending"

    def sweep(self) -> None:
        assert live.sweep_expired(self.queue) == self.model.sweep()

    def switch(self) -> None:
        states = QueueState.objects
        act = states.resume if self.model.paused else states.pause
        assert act(self.queue)
        self.model.paused = not self.model.paused
        assert states.is_paused(self.queue) == self.model.paused

    def requeue(self) -> None:
        chosen = sorted(set(self.random.choices(sorted(self.model.dead) or [0], k=2)))
        refused: list[int] = []
        old: list[int] = []
        held = {row.key for row in self.model.live.values() if row.key}
        for job_id in (each for each in chosen if each in self.model.dead):
            key = self.model.dead[job_id][0].key
            (refused if key in held else old).append(job_id)
            if key:
                held.add(key)
        new, stayed = DeadJob.objects.requeue(chosen)
        assert stayed == refused
        for before, after in zip(old, new, strict=True):
            self.born(after)
            self.model.requeue(before, after)

    def clear(self) -> None:
        waiting = [r.id for r in self.model.live.values() if r.state != "processing"]
        assert live.clear(self.queue) == len(waiting)
        for job_id in waiting:
            del self.model.live[job_id]
            self.model.gone.add(job_id)

    def some_id(self) -> int:
        return self.random.choice([*self.model.live] * 3 or [0])

    def payload(self) -> str:
        self.payloads += 1
        return f'"p{self.payloads}"'

    def key(self) -> str | None:
        return self.random.choice([None, None, None, "a", "b"])

    def options(self, **fixed: Any) -> JobOptions:
        pick = self.random.choice
        delayed: dict[str, int] = pick(
            [
                {},
                {},
                {"delay": pick([1, 3])},
                {"run_at": self.model.now + self.random.randint(-2, 3)},
            ]
        )
        given = {
            "task": "" if self.raw else "t",
            "priority": pick([0, 0, 1, -1]),
            "max_attempts": pick([1, 2, 3]),
            "expires": pick([None, None, 1, 4, 9]),
            "visibility_timeout": pick([1, 3, 6]),
            "result_ttl": pick([None, 5]),
            "on_conflict": pick(["return", "raise", "replace"]),
            **delayed,
        }
        return JobOptions(self.queue, **{**given, **fixed})
