"""Whichever statement fails, no row is lost or doubled, and the caller can go on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from django.db import connection

from django_alkstore.managers.base import SqlManager
from django_alkstore.models import (
    Attempt,
    DeadJob,
    LiveJob,
    QueueState,
    Result,
    Worker,
)
from tests.engine.faults import Fault, How, Operation, disturb, rehearse
from tests.engine.operations import OPERATIONS
from tests.engine.scenes import commits, store

MANAGERS = {
    model.__name__: model.objects
    for model in (Attempt, DeadJob, LiveJob, QueueState, Result, Worker)
}
READS: dict[str, Callable[[], object]] = {
    "LiveJob.get_job": lambda: LiveJob.objects.get_job(1),
    "LiveJob.next_claim_at": lambda: LiveJob.objects.next_claim_at("q"),
    "LiveJob.stats": lambda: LiveJob.objects.stats("q"),
    "LiveJob.survey": lambda: LiveJob.objects.survey(),
    "QueueState.is_paused": lambda: QueueState.objects.is_paused("q"),
    "Worker.alive": lambda: list(Worker.objects.alive()),
}
# What every manager has: its clock, its database, and the switch to another one.
COMMON = {name for name in vars(SqlManager) if not name.startswith("_")}


@commits
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_any_statement_may_fail(committing: None, operation: Operation) -> None:
    run = rehearse(operation)

    assert run.saved, "it makes no statement"
    for at, how in product(range(len(run.saved)), How):
        for inside in (True, False):
            if not inside and how is How.WRONG:
                continue  # There is no transaction of the caller's to be aborted.
            try:
                disturb(operation, run, at, how, inside)
            except Exception as error:
                where = "inside" if inside else "outside"
                error.add_note(
                    f"statement {at} failed {how.value}, {where} a transaction"
                )
                raise


def test_every_method_that_changes_rows_is_tried() -> None:
    methods = {f"{model}.{name}" for model in MANAGERS for name in _methods(model)}

    assert {each.method for each in OPERATIONS} == methods - set(READS)
    assert set(READS) <= methods


def test_each_operation_has_a_name_of_its_own() -> None:
    names = [each.name for each in OPERATIONS]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("read", READS)
def test_a_read_changes_nothing_and_never_hides_an_error(db: None, read: str) -> None:
    store("a")
    counted = Fault()

    with connection.execute_wrapper(counted):
        READS[read]()

    assert counted.seen
    for at, sql in enumerate(counted.seen):
        assert sql.lstrip().startswith(("SELECT", "WITH"))
        fault = Fault(at)
        with connection.execute_wrapper(fault), pytest.raises(Exception) as caught:
            READS[read]()
        assert caught.value is fault.error


def _methods(model: str) -> set[str]:
    kinds: list[type[Any]] = type(MANAGERS[model]).mro()
    return {
        name
        for kind in kinds
        if kind.__module__.startswith("django_alkstore.")
        for name in vars(kind)
        if not name.startswith("_") and callable(getattr(kind, name))
    } - COMMON
