"""Runs that are over stay in the ledger until what settles them has been committed."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any, cast

import pytest
from django.db import DataError, OperationalError, transaction

from django_alkstore import Context
from django_alkstore.jobs import ClaimedJob
from django_alkstore.managers.live_job import LiveJobManager
from django_alkstore.options import JobOptions
from django_alkstore.worker import ledger as module
from django_alkstore.worker.ledger import Ledger
from django_alkstore.worker.outcomes import RELEASED, SUCCEEDED
from django_alkstore.worker.runs import Run
from django_alkstore.worker.settle import Fate


class Database:
    """Stands in for the manager: acks all but those it has an error for."""

    database = "default"

    def __init__(self) -> None:
        self.errors: dict[int, Exception] = {}
        self.acked: list[list[int]] = []

    def ack_many(self, jobs: Sequence[ClaimedJob], **more: Any) -> Collection[int]:
        for job in jobs:
            if job.id in self.errors:
                raise self.errors[job.id]
        self.acked.append([job.id for job in jobs])
        return {job.id for job in jobs}


@pytest.fixture(autouse=True)
def no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "atomic", lambda **kwargs: nullcontext())


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def told() -> list[tuple[int, Fate]]:
    return []


@pytest.fixture
def ledger(database: Database, told: list[tuple[int, Fate]]) -> Ledger:
    return Ledger(
        cast(LiveJobManager, database),
        lambda news: told.extend((run.job.id, fate) for run, fate in news),
    )


def a_run(number: int) -> Run:
    options = JobOptions.build("default", task="no.such.task")
    run = Run(Context.detached(options, "default").job)
    run.job.id = number
    run.outcome = SUCCEEDED
    run.valid_until = time.monotonic() + 100
    return run


def test_what_succeeded_is_settled_in_one_statement(
    ledger: Ledger, database: Database, told: list[tuple[int, Fate]]
) -> None:
    ledger.add([a_run(1), a_run(2)])
    assert [ledger.owes, len(ledger)] == [True, 2]

    ledger.settle()

    assert database.acked == [[1, 2]]
    assert told == [(1, Fate.FINISHED), (2, Fate.FINISHED)]
    assert [ledger.owes, len(ledger)] == [False, 0]


def test_two_attempts_of_one_job_are_told_apart(
    ledger: Ledger, database: Database
) -> None:
    ledger.add([a_run(1), a_run(1)])

    ledger.settle()

    assert database.acked == [[1], [1]]


def test_nothing_leaves_while_the_database_is_away(
    ledger: Ledger, database: Database, told: list[tuple[int, Fate]]
) -> None:
    ledger.add([a_run(1), a_run(2)])
    database.errors[2] = OperationalError("away")

    with pytest.raises(OperationalError):
        ledger.settle()

    assert len(ledger) == 2
    assert told == []
    database.errors.clear()
    ledger.settle()
    assert sorted(told) == [(1, Fate.FINISHED), (2, Fate.FINISHED)]


def test_what_else_was_to_be_done_takes_the_settlement_along(
    ledger: Ledger, database: Database
) -> None:
    ledger.add([a_run(1)])

    def claim() -> None:
        raise OperationalError("away")

    with pytest.raises(OperationalError):
        ledger.settle(claim)

    assert len(ledger) == 1


def test_one_that_cannot_be_settled_holds_up_no_other(
    ledger: Ledger,
    database: Database,
    told: list[tuple[int, Fate]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RETRY_EVERY", 5.0)
    ledger.add([a_run(1), a_run(2), a_run(3)])
    database.errors[2] = DataError("a bad row")
    now = time.monotonic()

    with pytest.raises(DataError):
        ledger.settle()
    ledger.retry_refused(now)

    assert told == [(1, Fate.FINISHED), (3, Fate.FINISHED)]
    database.errors.clear()
    ledger.retry_refused(now + 1)
    assert [ledger.owes, len(ledger)] == [True, 1]
    ledger.retry_refused(now + 6)
    assert told[-1] == (2, Fate.FINISHED)
    assert [ledger.owes, len(ledger)] == [False, 0]


def test_it_is_tried_again_until_its_claim_has_lapsed(
    ledger: Ledger, database: Database, told: list[tuple[int, Fate]]
) -> None:
    ledger.add([a_run(1)])
    database.errors[1] = DataError("a bad row")
    with pytest.raises(DataError):
        ledger.settle()

    ledger.retry_refused(time.monotonic() + 1_000)

    assert told == [(1, Fate.LOST)]
    assert not len(ledger)


def test_a_claim_that_is_given_back_is_no_outcome_that_could_be_lost(
    ledger: Ledger,
) -> None:
    run = a_run(1)
    run.outcome = RELEASED
    ledger.add([run])

    assert not ledger.owes
    assert len(ledger) == 1
