"""A writer whose statements fail, now one and then another."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DataError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_alkstore.models import DeadJob
from django_alkstore.worker import ledger, loop, outage, supply
from tests import tasks
from tests.models import Effect
from tests.process.conftest import StartWorker, drained
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

CONTROL = ("SAVEPOINT", "RELEASE", "ROLLBACK")


def test_statements_that_fail_at_random_strand_no_claim_and_lose_no_outcome(
    start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A claim that was forgotten would stay processing: no visibility timeout runs out
    here.
    """
    for module, name in (
        (outage, "FIRST_PAUSE"), (outage, "LONGEST_PAUSE"), (loop, "APART"),
        (ledger, "RETRY_EVERY"), (supply, "ASIDE"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 0.005)
    dice = random.Random(7)
    failed: list[type[Exception]] = []

    def fail(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        chance = dice.random()
        kind = OperationalError if chance < 0.1 else DataError
        if failed and len(failed) > 300 or chance > 0.2 or sql.startswith(CONTROL):
            return execute(sql, params, many, context)
        failed.append(kind)
        if chance > 0.15 and context["connection"].in_atomic_block:
            execute(sql, params, many, context)
        raise kind("as ordered")

    def spoil(connection: BaseDatabaseWrapper, **kwargs: object) -> None:
        if threading.current_thread().name == "alkstore-writer":
            connection.execute_wrappers[:] = [fail]

    count = 120
    tasks.record.enqueue_many([(f"any {n}",) for n in range(count)])
    tasks.record_once.enqueue_many([(f"once {n}",) for n in range(count)])
    tasks.fail_times.enqueue_many([(1, f"second {n}") for n in range(20)])
    tasks.async_record.enqueue_many([(f"async {n}",) for n in range(20)])
    connection_created.connect(spoil)
    try:
        start_worker()
        wait_until(drained, timeout=40)
    finally:
        connection_created.disconnect(spoil)

    assert {OperationalError, DataError} <= set(failed)
    assert not DeadJob.objects.exists()
    keys = list(Effect.objects.values_list("key", flat=True))
    # No claim lapsed, so nothing ran twice either.
    assert len(keys) == len(set(keys)) == 2 * count + 40
