"""
Enqueueing a raw job: what the row holds, what is refused, whose transaction it is in.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_alkstore import InvalidPayload, clock, constant, queue
from django_alkstore.models import LiveJob
from django_alkstore.options import JobOptions
from tests.engine.scenes import NOW
from tests.engine.steps import row, take, us
from tests.models import Order

pytestmark = pytest.mark.django_db
q = queue("q")

NAMES = ["a b", "a-b", "a.b", 'a"b', "a'b", "Ünï", "A", "a", "*", "a,b", "%s", "%(now)s",
         "\\", " ", "; DROP TABLE x", "x" * 43, "x" * 63, "x" * 64, "☃" * 100]  # fmt: skip
IDS = [3889108265204450030, 899999999999999990, 999999999999999990, 2**53 + 1, -(2**63)]


def test_a_job_is_pending_and_carries_the_default_stamps() -> None:
    with clock.pretend(NOW):
        job = q.enqueue({"a": 1})

    stored = row(job.pk)
    assert (stored.queue, stored.task, stored.state) == ("q", "", "pending")
    assert stored.decoded_payload() == {"a": 1}
    assert (stored.priority, stored.attempts, stored.max_attempts) == (0, 0, 3)
    assert stored.run_at == stored.created_at == clock.to_instant(NOW)
    assert stored.visibility_timeout == timedelta(seconds=300)
    assert (stored.worker_id, stored.claimed_at, stored.claim_expires_at) == (
        "",
        None,
        None,
    )
    assert (stored.expires_at, stored.timeout, stored.unique_key) == (None, None, None)
    assert (stored.dead_letter_retention, stored.result_ttl) == (None, None)


def test_every_option_is_copied_onto_the_row() -> None:
    with clock.pretend(NOW):
        job = q.enqueue(
            [], delay=60, priority=-7, max_attempts=9, expires=3600, unique_key="k",
            visibility_timeout=1.5, backoff=constant(4), timeout=timedelta(minutes=1),
            dead_letter_retention=86_400, result_ttl=7,
        )  # fmt: skip

    stored = row(job.pk)
    assert (stored.state, stored.priority, stored.max_attempts) == ("scheduled", -7, 9)
    assert stored.run_at == clock.to_instant(us(60))
    assert stored.expires_at == clock.to_instant(us(3600))
    assert stored.unique_key == "k"
    assert stored.visibility_timeout == timedelta(seconds=1.5)
    assert stored.backoff == JobOptions.build("q", backoff=4).backoff
    assert stored.timeout == timedelta(minutes=1)
    assert stored.dead_letter_retention == timedelta(days=1)
    assert stored.result_ttl == timedelta(seconds=7)


def test_the_job_that_is_returned_equals_its_row() -> None:
    job = q.enqueue({"a": [1.0]}, delay=5, expires=9, timeout=1, unique_key="k")

    stored = row(job.pk)
    for field in LiveJob._meta.concrete_fields:
        assert getattr(job, field.attname) == getattr(stored, field.attname), field.name
    assert job.created
    assert not job._state.adding


def test_enqueue_is_one_statement_and_no_savepoint() -> None:
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        q.enqueue("x", unique_key="k")

    assert [query["sql"].split()[0] for query in queries] == ["INSERT"]


@pytest.mark.parametrize(
    ("ahead", "state"),
    [(-60, "pending"), (0, "pending"), (1e-6, "scheduled"), (60, "scheduled")],
)
def test_an_instant_ahead_is_scheduled_and_one_past_is_pending(
    ahead: float, state: str
) -> None:
    with clock.pretend(NOW):
        job = q.enqueue("x", run_at=clock.to_instant(us(ahead)))

    assert row(job.pk).state == state
    assert row(job.pk).run_at == clock.to_instant(us(ahead))


def test_an_instant_ahead_is_one_of_the_databases_clock() -> None:
    ahead = q.enqueue("x", run_at=datetime.now(UTC) + timedelta(hours=1))
    past = q.enqueue("x", run_at=datetime.now(UTC) - timedelta(hours=1))

    assert (ahead.state, past.state) == ("scheduled", "pending")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: q.enqueue(float("nan")), InvalidPayload),
        (lambda: q.enqueue({"a": [float("inf")]}), InvalidPayload),
        (lambda: q.enqueue(date.today()), InvalidPayload),
        (lambda: q.enqueue({"note": "a\x00b"}), InvalidPayload),
        (lambda: q.enqueue("\ud800"), InvalidPayload),
        (lambda: q.enqueue("x" * 2**20), InvalidPayload),
        (lambda: q.enqueue("x", unique_key="k\x00"), ValueError),
        (lambda: q.enqueue("x", unique_key="k" * 201), ValueError),
        (lambda: q.enqueue("x", delay=-1), ValueError),
        (lambda: q.enqueue("x", delay=1, run_at=datetime.now(UTC)), ValueError),
        (lambda: q.enqueue("x", run_at=datetime.now()), ValueError),
        (lambda: q.enqueue("x", max_attempts=0), ValueError),
        (lambda: q.enqueue("x", priority=2**31), ValueError),
        (lambda: queue("a\x00"), ValueError),
        (lambda: queue(""), ValueError),
        (lambda: q.enqueue_many(["x", "a\x00b"]), InvalidPayload),
        (lambda: q.enqueue_many(["x", "y"], unique_key=["k", "k\x00"]), ValueError),
        (lambda: q.enqueue_many(["x"], delay=-1), ValueError),
    ],
)
def test_bad_input_is_refused_before_any_sql(
    call: Callable[[], object], error: type[Exception]
) -> None:
    """B078, B089, B090, B145."""
    with CaptureQueriesContext(connection) as queries, pytest.raises(error):
        call()

    assert len(queries) == 0


def test_a_job_commits_or_rolls_back_with_the_callers_writes() -> None:
    with transaction.atomic():
        q.enqueue("a")
        with pytest.raises(RuntimeError), transaction.atomic():
            q.enqueue("b")
            raise RuntimeError
        q.enqueue("c")

    assert [job.payload for job in take()] == ["a", "c"]


def test_an_insert_that_fails_fails_the_callers_transaction() -> None:
    Order.objects.create(number="1")

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "__alkstore_live" in sql:
            raise RuntimeError("no space")
        return execute(sql, params, many, context)

    with (
        connection.execute_wrapper(refuse),
        pytest.raises(RuntimeError, match="no space"),
        transaction.atomic(),
    ):
        Order.objects.update(notified=True)
        q.enqueue("x")

    assert not Order.objects.get().notified


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, -0.0, 1e16, *IDS])
def test_a_payload_is_claimed_as_it_was_given(value: object) -> None:
    """B086."""
    q.enqueue(value)
    q.enqueue_many([{"in": [value]}])

    first, second = (job.payload for job in LiveJob.objects.claim(
        "q", worker_id="w", limit=2, raw=True
    ))  # fmt: skip

    assert repr(first) == repr(value)
    assert repr(second) == repr({"in": [value]})


@override_settings(ALKSTORE={"MAX_PAYLOAD_BYTES": 6_000_000})
@pytest.mark.parametrize("size", [7_900, 7_999, 8_000, 100_000, 5_000_000])
def test_a_payload_of_any_size_below_the_limit_is_taken(size: int) -> None:
    """B094."""
    payload = "x" * size

    q.enqueue(payload)
    q.enqueue_many([payload])

    assert {job.payload for job in q.claim("w", 2)} == {payload}


@pytest.mark.parametrize("name", NAMES)
def test_a_queues_name_is_only_itself(name: str) -> None:
    """B129, B131."""
    for other in NAMES:
        queue(other).enqueue(other)

    jobs = queue(name).claim("w", 99)

    assert [job.payload for job in jobs] == [name]


def test_a_worker_and_a_key_may_have_odd_names_too() -> None:
    """B131."""
    for name in NAMES:
        queue(name).enqueue(name, unique_key=name)
        (job,) = queue(name).claim(name)
        assert (job.worker_id, job.unique_key) == (name, name)
        assert job.heartbeat()
        assert job.ack()

    assert not LiveJob.objects.exists()


def test_the_async_twins_store_the_same() -> None:
    async def enqueue() -> list[int]:
        job = await q.aenqueue("a", priority=1)
        return [job.pk, *await q.aenqueue_many(["b"], priority=2)]

    ids = async_to_sync(enqueue)()

    assert [row(pk).priority for pk in ids] == [1, 2]


def test_the_handle_does_no_input_or_output() -> None:
    with CaptureQueriesContext(connection) as queries:
        handle = queue("q", using="no such database")

    assert len(queries) == 0
    assert handle.name == "q"
    assert repr(handle) == "queue('q')"
