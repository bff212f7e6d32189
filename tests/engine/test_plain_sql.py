"""Rows that a program in any language inserts: a whole job from two columns."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from django_alkstore import clock, queue
from django_alkstore.backoff import DEFAULT_STAMP
from django_alkstore.models import LiveJob
from tests.engine.scenes import live
from tests.engine.steps import run_sql

pytestmark = pytest.mark.django_db
q = queue("q")
INSERT = """INSERT INTO "__alkstore_live" (queue, payload) VALUES ('q', '{"a": 1}')"""


def test_queue_and_payload_are_a_job_that_the_next_claim_hands_out() -> None:
    run_sql(INSERT)

    (job,) = q.claim("w")

    assert (job.payload, job.task, job.attempts, job.max_attempts) == (
        {"a": 1},
        "",
        1,
        3,
    )
    assert job.ack()


def test_its_columns_have_the_defaults_of_enqueue() -> None:
    before = clock.host_now() - 1_000
    run_sql(INSERT)
    enqueued = q.enqueue({"a": 1})

    job = LiveJob.objects.exclude(pk=enqueued.pk).get()
    own = {"id", "state", "run_at", "created_at"}
    for name in {field.attname for field in LiveJob._meta.concrete_fields} - own:
        assert getattr(job, name) == getattr(enqueued, name), name
    assert job.backoff == DEFAULT_STAMP
    assert job.visibility_timeout == timedelta(seconds=300)
    found = q.get_job(job.pk)
    assert found is not None
    for instant in (found.run_at, found.created_at):
        assert before <= clock.from_instant(instant, "x") <= clock.host_now() + 1_000


def test_it_is_scheduled_for_now_so_that_a_worker_sees_it() -> None:
    run_sql(INSERT.replace("(queue, payload)", "(queue, task, payload)")
            .replace("'q',", "'q', 'shop.tasks.send',"))  # fmt: skip

    (found,) = live.survey()

    assert (found.name, found.upkeep) == ("q", True)
    (job,) = live.claim("q", worker_id="w", limit=1, raw=False)
    assert job.task == "shop.tasks.send"


def test_one_with_an_instant_ahead_waits_for_it() -> None:
    ahead = clock.host_now() + 3_600 * clock.SECOND
    run_sql(
        'INSERT INTO "__alkstore_live" (queue, payload, run_at) VALUES (%s, %s, %s)',
        ["q", "1", ahead],
    )

    assert q.claim("w") == []
    assert q.next_claim_at() == clock.to_instant(ahead)


def test_it_goes_through_the_whole_life() -> None:
    run_sql(INSERT)

    for attempt in (1, 2, 3):
        (job,) = q.claim("w")
        assert job.attempts == attempt
        assert job.retry(0)

    found = q.get_job(job.id)
    assert found is not None
    assert (found.state, found.reason) == ("dead", "exhausted")


@pytest.mark.parametrize(
    ("columns", "values", "constraint"),
    [
        ("queue", "''", "queue_named"),
        ("queue, state", "'q', 'running'", "state"),
        ("queue, state", "'q', ''", "state"),
        ("queue, state", "'q', 'processing'", "state"),
        ("queue, unique_key", "'q', 'held'", "unique_key"),
    ],
)
def test_a_row_that_nothing_would_reach_is_refused(
    columns: str, values: str, constraint: str
) -> None:
    q.enqueue("holder", unique_key="held")

    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        run_sql(
            f'INSERT INTO "__alkstore_live" (payload, {columns}) VALUES (1, {values})'
        )

    assert LiveJob.objects.count() == 1


@pytest.mark.parametrize("column", ["queue", "payload", "state", "run_at", "attempts"])
def test_a_column_without_a_value_is_refused(column: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        run_sql(
            'INSERT INTO "__alkstore_live" (id, queue, payload, state, run_at, attempts)'
            " SELECT 1, "
            + ", ".join(
                f"NULLIF({value}, {value})" if name == column else value
                for name, value in {
                    "queue": "'q'", "payload": "'1'", "state": "'pending'",
                    "run_at": "1", "attempts": "0",
                }.items()
            )
        )  # fmt: skip

    assert not LiveJob.objects.exists()
