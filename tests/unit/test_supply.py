"""When the worker looks for jobs, from which queues it claims, and how many."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.db import DataError, OperationalError

from django_alkstore import Context
from django_alkstore.jobs import ClaimedJob, QueueSurvey
from django_alkstore.managers.live_job import LiveJobManager
from django_alkstore.options import JobOptions
from django_alkstore.worker.selection import Selection
from django_alkstore.worker.supply import ASIDE, LOOK_GAP, Room, Supply
from tests import tasks

PLAIN = tasks.noop.name
ASYNC = tasks.async_record.name


class Database:
    """Stands in for the manager: queues of jobs, and what was asked of it."""

    def __init__(self, **queues: list[ClaimedJob]) -> None:
        self.queues = queues
        self.upkeep: set[str] = set()
        self.waits: list[int] = []
        self.looks = 0
        self.claims: list[tuple[str, int, int | None]] = []
        self.errors: dict[str, Exception] = {}

    def survey(self) -> list[QueueSurvey]:
        self.looks += 1
        wait = min(self.waits, default=None)
        return [
            QueueSurvey(name, bool(jobs), name in self.upkeep, None, wait)
            for name, jobs in self.queues.items()
        ]

    def claim(
        self, name: str, *, limit: int, slots: int | None, upkeep: bool, **more: Any
    ) -> list[ClaimedJob]:
        if name in self.errors:
            raise self.errors[name]
        self.claims.append((name, limit, slots))
        claimed: list[ClaimedJob] = []
        for job in self.queues[name][:limit]:
            if job.attempts >= job.max_attempts and slots is not None:
                if slots == 0:
                    break
                slots -= 1
            claimed.append(job)
        del self.queues[name][: len(claimed)]
        return claimed


def jobs(count: int, *, task: str = PLAIN, max_attempts: int = 3) -> list[ClaimedJob]:
    options = JobOptions.build("any", task=task, max_attempts=max_attempts)
    return [Context.detached(options, "default").job for _ in range(count)]


def looking(database: Database) -> Supply:
    supply = Supply(cast(LiveJobManager, database), Selection(), "w", 1.0)
    supply.look_if_needed(100.0)
    return supply


def room(free: int = 4, ahead: int = 16, on_loop: int = 100, most: int = 1000) -> Room:
    return Room(free=free, wanted=free + ahead, on_loop=on_loop, most=most)


def claim(supply: Supply, given: Room, now: float = 100.0) -> list[ClaimedJob]:
    return supply.claim(supply.queues(given, now), given, isolated_at=now)


def test_it_looks_once_a_poll_and_when_something_may_have_changed() -> None:
    database = Database()
    supply = looking(database)

    assert not supply.look_if_needed(100.5)
    assert supply.look_if_needed(101.0)
    supply.is_stale = True
    assert supply.look_if_needed(101.001)
    assert database.looks == 3


def test_it_looks_when_the_next_job_is_due() -> None:
    database = Database(a=[])
    database.waits = [250_000]
    supply = looking(database)

    assert supply.look_at == 100.25
    database.waits = [60_000_000]
    supply.look_if_needed(100.25)
    assert supply.look_at == 101.25


def test_while_jobs_are_known_to_wait_commits_are_no_reason_to_look_at_once() -> None:
    supply = looking(Database(a=jobs(5)))
    supply.is_stale = True

    assert not supply.look_if_needed(100.0 + LOOK_GAP / 2)
    assert supply.look_if_needed(100.0 + LOOK_GAP * 1.1)


def test_a_claim_fills_the_room_and_a_short_one_empties_the_queue() -> None:
    database = Database(a=jobs(30))
    supply = looking(database)

    assert len(claim(supply, room())) == 20
    assert supply.queues(room(), 100.0) == ["a"]
    assert len(claim(supply, room(ahead=0, free=16))) == 10
    assert supply.queues(room(), 100.0) == []
    assert supply.is_empty


def test_queues_share_a_round_and_take_turns_to_begin_it() -> None:
    database = Database(a=jobs(50), b=jobs(3), c=jobs(50))
    supply = looking(database)

    claim(supply, room(ahead=0))
    claim(supply, room(ahead=0))

    assert [name for name, *_ in database.claims] == ["a", "b", "c"]


def test_jobs_on_their_last_attempt_are_claimed_for_free_threads_only() -> None:
    database = Database(a=jobs(2) + jobs(30, max_attempts=1))
    supply = looking(database)

    first = claim(supply, room(free=4))
    second = claim(supply, room(free=3))
    none = claim(supply, room(free=0))

    assert [len(first), len(second), len(none)] == [6, 3, 0]
    # Once met, they are asked for in the number in which they can begin.
    assert database.claims == [("a", 20, 4), ("a", 3, None)]


def test_ahead_is_claimed_again_once_the_last_attempts_are_past() -> None:
    database = Database(a=jobs(1, max_attempts=1) + jobs(60))
    supply = looking(database)

    claim(supply, room())
    claim(supply, room())
    claim(supply, room())

    assert [limit for _, limit, _ in database.claims] == [20, 4, 20]


def test_a_queue_of_async_jobs_is_claimed_for_the_loop_beside_busy_threads() -> None:
    database = Database(a=jobs(200, task=ASYNC), b=jobs(5))
    supply = looking(database)

    claim(supply, room(free=4, ahead=0))
    claim(supply, room(free=0, ahead=0, on_loop=90))

    assert database.claims == [("a", 4, None), ("b", 4, None), ("a", 90, None)]


def test_no_more_than_asked_for_are_claimed() -> None:
    supply = looking(Database(a=jobs(10), b=jobs(10)))

    assert len(claim(supply, room(most=7))) == 7


def test_rows_to_be_moved_are_moved_once_and_looked_for_again() -> None:
    database = Database(a=[])
    database.upkeep = {"a"}
    supply = looking(database)

    assert supply.moves_rows(["a"])
    claim(supply, room())

    assert not supply.moves_rows(["a"])
    assert supply.is_stale


def test_a_queue_whose_claim_fails_by_itself_is_put_aside_for_a_while() -> None:
    database = Database(a=jobs(5), b=jobs(5))
    database.errors["a"] = DataError("a bad row")
    supply = looking(database)

    assert len(claim(supply, room(free=9))) == 5
    assert supply.queues(room(), 100.0) == ["b"]
    database.errors.clear()
    assert "a" in supply.queues(room(), 100.0 + ASIDE)


def test_an_outage_is_everybodys() -> None:
    database = Database(a=jobs(5))
    database.errors["a"] = OperationalError("away")
    supply = looking(database)

    with pytest.raises(OperationalError):
        claim(supply, room())
    supply.forget()
    assert supply.is_empty
    assert supply.look_if_needed(100.0)
