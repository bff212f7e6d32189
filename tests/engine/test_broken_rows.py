"""
Rows that raw SQL has broken: each dies alone, its text kept, and its neighbours run.
"""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from django_alkstore import queue
from django_alkstore.models import DeadJob
from tests.engine.scenes import claimed, labels, live, store
from tests.engine.steps import after, run_sql, take, why_dead

pytestmark = pytest.mark.django_db
q = queue("q")
NUMBERS = ["priority", "max_attempts", "created_at", "visibility_timeout", "timeout",
           "expires_at", "dead_letter_retention", "result_ttl"]  # fmt: skip


def break_row(job_id: int, column: str, value: object) -> None:
    run_sql(
        f'UPDATE "__alkstore_live" SET "{column}" = %s WHERE id = %s', [value, job_id]
    )


def places(job_id: int) -> list[str]:
    """Return the tables in which a job is."""
    tables = ("live", "dead", "results")
    return [
        table
        for table in tables
        if run_sql(f'SELECT id FROM "__alkstore_{table}" WHERE id = %s', [job_id])
    ]


@pytest.mark.parametrize(
    "text",
    ['{"a":', "hello", "", "NaN", '{"a": Infinity}', "[" * 100_000, '"tab\there"'],
)
@pytest.mark.parametrize("kind", ["raw", "task"])
def test_a_payload_that_is_not_json_goes_dead_as_invalid_with_its_text(
    text: str, kind: str
) -> None:
    """B081."""
    task = "t" if kind == "task" else ""
    store("before", task=task)
    (broken,) = store("broken", task=task)
    store("behind", task=task)
    break_row(broken, "payload", text)

    jobs = take(raw=kind == "raw")

    assert labels(jobs) == ["before", "behind"]
    dead = DeadJob.objects.get()
    assert (dead.pk, dead.reason, dead.payload) == (broken, "invalid", text)
    assert dead.last_error.startswith("the row cannot be decoded: ")
    assert places(broken) == ["dead"]


@pytest.mark.sqlite_only
@pytest.mark.parametrize("column", ["payload", "backoff", "unique_key", "task"])
def test_text_that_is_not_utf8_dies_alone_and_is_kept_escaped(column: str) -> None:
    store("before", task="t")
    (broken,) = store("broken", task="t")
    store("behind", task="t")
    run_sql(
        f'UPDATE "__alkstore_live" SET "{column}" = CAST(%s AS TEXT) WHERE id = %s',
        [b"a\xff", broken],
    )

    assert labels(take(raw=False)) == ["before", "behind"]

    dead = DeadJob.objects.get()
    assert (dead.pk, dead.reason) == (broken, "invalid")
    assert getattr(dead, column) == "a\\xff"


@pytest.mark.sqlite_only
def test_a_job_whose_text_is_not_utf8_can_be_cancelled_and_expires() -> None:
    first, second = store("a", "b", expires=1)
    run_sql('UPDATE "__alkstore_live" SET payload = CAST(%s AS TEXT)', [b"\xff"])

    assert q.cancel(first)
    with after(2):
        assert q.sweep_expired() == 1

    assert set(DeadJob.objects.values_list("payload", flat=True)) == {"\\xff"}


def test_many_broken_rows_leave_no_good_one_behind() -> None:
    broken = store(*"abcdefgh", priority=9)
    live.filter(pk__in=broken).update(payload="{")
    store("good")

    assert labels(take()) == ["good"]
    assert DeadJob.objects.count() == 8


def test_a_broken_row_can_be_looked_at_before_and_after_it_dies() -> None:
    """B084."""
    (broken,) = store("broken")
    break_row(broken, "payload", "")

    job = q.get_job(broken)
    assert job is not None
    assert (job.state, job.readable, job.payload) == ("pending", False, None)
    assert job.payload_text == ""
    take()
    job = q.get_job(broken)
    assert job is not None
    assert (job.state, job.reason, job.readable) == ("dead", "invalid", False)


@pytest.mark.sqlite_only
@pytest.mark.parametrize("value", ["abc", 1.5, b"\x00"])
@pytest.mark.parametrize("column", NUMBERS)
def test_a_waiting_row_with_a_column_of_another_type_dies_alone(
    column: str, value: object
) -> None:
    (broken,) = store("broken")
    store("good")
    break_row(broken, column, value)

    assert labels(take()) == ["good"]
    assert set(why_dead().values()) <= {"invalid", "expired"}
    assert places(broken) == ["dead"]


@pytest.mark.sqlite_only
@pytest.mark.parametrize("column", [*NUMBERS, "attempts", "claimed_at"])
def test_a_lapsed_row_with_a_column_of_another_type_holds_no_other_up(
    column: str,
) -> None:
    broken, good = claimed("broken", "good")
    break_row(broken.id, column, "abc")

    with after(11):
        assert {queue.name for queue in live.survey()} == {"q"}
        jobs = live.claim("q", worker_id="v", limit=9, raw=True)
        live.survey()
        q.stats()

    assert good.id in [job.id for job in jobs]
    assert len(places(broken.id)) == 1


@pytest.mark.sqlite_only
def test_a_row_that_is_broken_while_it_runs_is_lost_to_its_holder_and_nothing_else() -> (
    None
):
    """B002."""
    (job,) = claimed("broken")
    store("good")
    break_row(job.id, "attempts", "abc")

    with after(1):
        assert not job.retry(error="x")
        assert not job.fail("x")
        assert not job.heartbeat()
        assert not job.ack()
    assert places(job.id) == ["live"]

    assert labels(take(at=11)) == ["good"]
    assert why_dead() == {"broken": "exhausted"}


@pytest.mark.sqlite_only
@pytest.mark.parametrize("value", ["2026-01-01 10:00:00", "soon", b"1", float("inf")])
@pytest.mark.parametrize("column", ["run_at", "claim_expires_at"])
def test_an_instant_that_no_clock_would_reach_is_refused(
    column: str, value: object
) -> None:
    (job,) = claimed("a")

    with pytest.raises(IntegrityError), transaction.atomic():
        break_row(job.id, column, value)

    assert labels(take(at=11)) == ["a"]
