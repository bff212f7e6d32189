"""When a claim is extended, what goes with it, and what becomes of one that is lost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, cast

import pytest
from django.db import transaction

from django_alkstore import Context
from django_alkstore.jobs import ClaimedJob, Notes
from django_alkstore.managers.live_job import LiveJobManager
from django_alkstore.options import JobOptions
from django_alkstore.worker.heartbeat import LONGEST, NOTES_EVERY, Heartbeats
from django_alkstore.worker.runs import NEVER, Run


class Database:
    """Stands in for the manager: which claims it still holds, and what it was told."""

    database = "default"

    def __init__(self) -> None:
        self.held: set[int] = {0}
        self.beats: list[list[int]] = []
        self.notes: list[Notes] = []

    def heartbeat_many(self, jobs: Sequence[ClaimedJob]) -> dict[int, int]:
        self.beats.append([job.id for job in jobs])
        return {job.id: 0 for job in jobs if job.id in self.held}

    def write_notes(self, notes: Sequence[tuple[ClaimedJob, Notes]]) -> None:
        self.notes += [each for _, each in notes]


@pytest.fixture(autouse=True)
def no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "atomic", lambda **kwargs: nullcontext())


def a_run(visibility_timeout: float = 6.0, *, context: bool = False) -> Run:
    options = JobOptions.build(
        "default", task="no.such.task", visibility_timeout=visibility_timeout
    )
    run = Run(Context.detached(options, "default").job, ask=lambda run: None)
    if context:
        run.make_context()
    return run


def beating(database: Any) -> Heartbeats:
    return Heartbeats(cast(LiveJobManager, database))


def test_a_claim_is_extended_after_a_third_of_its_visibility_timeout() -> None:
    heartbeats = beating(Database())
    run = a_run(6.0)
    heartbeats.add(run, claimed_at=100.0)

    assert heartbeats.next_at == run.beat_at == 102.0
    assert run.valid_until == 106.0
    assert heartbeats.due([run], now=101.9) == []
    assert heartbeats.due([run], now=102.0) == [run]


def test_a_long_visibility_timeout_does_not_keep_cancellation_from_being_seen() -> None:
    heartbeats = beating(Database())
    run = a_run(3600.0)
    heartbeats.add(run, claimed_at=100.0)

    assert run.beat_at == 100.0 + LONGEST


def test_a_beat_moves_the_next_one_and_the_end_of_the_claim() -> None:
    database = Database()
    heartbeats = beating(database)
    run = a_run(6.0)
    now = time.monotonic()
    heartbeats.add(run, claimed_at=now - 3)

    assert heartbeats.beat([run]) == []
    assert database.beats == [[0]]
    assert run.beat_at >= now + 2
    assert run.valid_until >= now + 6
    assert heartbeats.due([run], now=now + 1) == []


def test_a_claim_that_is_gone_is_told_and_asked_for_no_more() -> None:
    database = Database()
    database.held = set()
    heartbeats = beating(database)
    run = a_run(context=True)
    heartbeats.add(run, claimed_at=0.0)

    assert heartbeats.beat([run]) == [run]
    run.lose()

    assert run.context is not None
    assert run.context.cancelled
    assert run.context.heartbeat() is False
    assert heartbeats.due([run], now=1e9) == []
    assert run.beat_at == NEVER


def test_a_context_made_after_the_claim_was_lost_knows_it() -> None:
    run = a_run()
    run.lose()

    assert run.make_context().cancelled


def test_a_job_that_asks_is_extended_soon_but_not_all_the_time() -> None:
    heartbeats = beating(Database())
    run = a_run(30.0)
    heartbeats.add(run, claimed_at=100.0)

    heartbeats.ask(run)

    assert heartbeats.next_at == 0.0
    assert heartbeats.due([run], now=100.5) == []
    assert heartbeats.due([run], now=100.0 + NOTES_EVERY) == [run]


def test_notes_are_stored_once_for_each_change() -> None:
    database = Database()
    heartbeats = beating(database)
    run = a_run(30.0, context=True)
    assert run.context is not None
    heartbeats.add(run, claimed_at=100.0)
    run.context.progress(1, 2)

    assert heartbeats.due([run], now=100.5) == []
    assert heartbeats.due([run], now=100.0 + NOTES_EVERY) == [run]
    heartbeats.beat([run])
    assert heartbeats.due([run], now=time.monotonic() + NOTES_EVERY) == []
    run.context.logger.info("more")
    assert heartbeats.due([run], now=time.monotonic() + NOTES_EVERY) == [run]
    heartbeats.beat([run])

    assert [bool(notes.log) for notes in database.notes] == [False, True]


def test_notes_of_a_lost_claim_are_not_stored() -> None:
    database = Database()
    database.held = set()
    heartbeats = beating(database)
    run = a_run(context=True)
    assert run.context is not None
    heartbeats.add(run, claimed_at=100.0)
    run.context.progress(1)

    heartbeats.beat([run])

    assert database.notes == []
