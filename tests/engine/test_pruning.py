"""What is over and done: it slows no claim, and goes in small steps."""

from __future__ import annotations

import time
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_alkstore import clock, queue
from django_alkstore.managers import pruning
from django_alkstore.models import Attempt, DeadJob, LiveJob, Result
from tests.engine.scenes import NOW, commits, labels, store
from tests.engine.steps import after, run_sql, take

q = queue("q")
DONE = 8_000
NUMBERS = f"""
WITH RECURSIVE numbers (n) AS
    (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {DONE})
"""


def fill(table: str, columns: str, values: str) -> None:
    """Make many rows of jobs that are over, of which each was kept long enough."""
    run_sql(
        f'INSERT INTO "{table}" (id, queue, payload, {columns}) {NUMBERS}'
        f" SELECT 1000000 + n, 'q', '1', {values} FROM numbers"
    )


def fill_all() -> None:
    past = NOW - clock.SECOND
    fill("__alkstore_dead", "reason, last_error, died_at, keep_until",
         f"'failed', 'no', {past}, {past}")  # fmt: skip
    fill("__alkstore_results", "value, keep_until", f"'1', {past}")
    run_sql(
        f'INSERT INTO "__alkstore_attempts" (job_id, attempt, worker_id) {NUMBERS}'
        " SELECT 1000000 + n, 1, 'w' FROM numbers"
    )


@pytest.mark.django_db
def test_a_claim_asks_nothing_of_the_jobs_that_are_over() -> None:
    """B133: a claim reads the live table alone, with as many statements as ever."""
    store(*map(str, range(50)))
    with CaptureQueriesContext(connection) as few:
        assert len(take(20)) == 20
    fill_all()
    with CaptureQueriesContext(connection) as many:
        assert len(take(20)) == 20

    assert len(many) == len(few)
    for query in many:
        for table in ("dead", "results", "attempts"):
            assert f"__alkstore_{table}" not in query["sql"]


@pytest.mark.django_db
def test_claims_are_as_fast_beside_jobs_that_are_over() -> None:
    """B133: measured as the best of many, and with room for a busy machine."""

    def best() -> float:
        store(*map(str, range(100)))
        times = []
        for _ in range(10):
            start = time.perf_counter()
            assert len(take(10)) == 10
            times.append(time.perf_counter() - start)
        return min(times)

    before = best()
    fill_all()

    assert best() < 2 * before + 0.002


@commits
def test_pruning_goes_in_short_transactions_and_claims_go_on(
    committing: None, engine: str
) -> None:
    """
    B134: no statement is long, each batch commits, and a killed run is gone on with.
    """
    fill_all()
    store("waiting")
    sizes: list[int] = []
    longest = 0.0

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal longest
        start = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            longest = max(longest, time.perf_counter() - start)
            if sql.startswith("DELETE"):
                sizes.append(context["cursor"].rowcount)
                assert connection.in_atomic_block

    if engine == "postgresql":
        run_sql("SET statement_timeout = '1s'")
    try:
        with connection.execute_wrapper(watch), after(0):
            # As if ended in the middle: what was done stays done.
            assert DeadJob.objects.sweep_retention(limit=2_500) == 2_500
            assert labels(take()) == ["waiting"]
            assert DeadJob.objects.count() == DONE - 2_500
            assert DeadJob.objects.sweep_retention() == DONE - 2_500
            assert Result.objects.sweep() == DONE
    finally:
        if engine == "postgresql":
            run_sql("RESET statement_timeout")

    assert max(sizes) <= pruning.BATCH
    assert longest < 1
    assert not DeadJob.objects.exists()
    assert not Attempt.objects.exists()
    assert LiveJob.objects.count() == 1


@pytest.mark.django_db
def test_the_command_says_how_many_are_kept_and_why() -> None:
    """B133: nobody has to guess why a table does not shrink."""
    fill_all()
    run_sql('UPDATE "__alkstore_dead" SET keep_until = NULL WHERE id < 1000011')
    said = StringIO()

    with after(0):
        call_command("alkstore_prune", stdout=said)

    assert f"dead jobs: {DONE - 10} deleted, 10 kept (" in said.getvalue()
    assert "RETENTION" in said.getvalue()
    assert f"results: {DONE} deleted, 0 kept (" in said.getvalue()


@commits
def test_a_sweep_that_is_cut_short_keeps_what_it_did(committing: None) -> None:
    """B134: the connection goes in the middle; the next run does the rest."""
    fill_all()
    left = 6

    def end(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal left
        if sql.startswith("DELETE"):
            left -= 1
            if not left:
                raise OperationalError("gone")
        return execute(sql, params, many, context)

    with pytest.raises(OperationalError), connection.execute_wrapper(end), after(0):
        Result.objects.sweep()

    done = DONE - Result.objects.count()
    assert 0 < done < DONE
    assert done % pruning.BATCH == 0
    with after(0):
        assert Result.objects.sweep() == DONE - done
