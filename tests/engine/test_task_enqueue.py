"""Enqueueing through a task: what is stored, what is refused, what is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_alkstore import DuplicateJob, InvalidPayload, task
from django_alkstore.models import LiveJob
from django_alkstore.signals import job_enqueued
from tests.tasks import add, record

pytestmark = pytest.mark.django_db


@task
def takes_anything(*args: object, **kwargs: object) -> None:
    """Take whatever is given."""


async def enqueue_later(name: str) -> LiveJob:
    return await takes_anything.aenqueue(**{name: 1})


def test_enqueue_stores_the_name_the_arguments_and_the_stamps() -> None:
    job = add.using(queue="sums", priority=5, max_attempts=7, timeout=2).enqueue(1, b=2)

    row = LiveJob.objects.get(pk=job.pk)
    assert (row.task, row.queue, row.state) == ("tests.tasks.add", "sums", "pending")
    assert row.decoded_payload() == {"args": [1], "kwargs": {"b": 2}}
    assert (row.priority, row.max_attempts) == (5, 7)
    assert row.timeout == timedelta(seconds=2)
    assert row.result_ttl == timedelta(hours=1)
    assert job.created


def test_enqueue_is_one_statement_and_no_savepoint() -> None:
    with CaptureQueriesContext(connection) as queries:
        add.enqueue(1, 2)

    assert len(queries) == 1
    assert queries[0]["sql"].startswith("INSERT")


def test_a_job_commits_or_rolls_back_with_the_callers_writes() -> None:
    with transaction.atomic():
        first = record.enqueue("a")
        with pytest.raises(RuntimeError), transaction.atomic():
            record.enqueue("b")
            raise RuntimeError
        third = record.enqueue("c")

    assert list(LiveJob.objects.values_list("pk", flat=True)) == [first.pk, third.pk]


@pytest.mark.parametrize(
    "name",
    [
        "queue", "delay", "priority", "timeout", "run_at", "expires", "unique_key",
        "max_attempts", "db", "using", "task", "self", "fn", "func", "function",
        "name", "args", "kwargs", "context", "job", "calls", "options",
    ],
)  # fmt: skip
def test_a_keyword_named_like_an_option_is_the_handlers_own(name: str) -> None:
    """B098."""
    job = takes_anything.enqueue(**{name: 1})
    [bulk] = takes_anything.enqueue_many([{name: 1}])
    later = async_to_sync(enqueue_later)(name)

    for pk in (job.pk, bulk, later.pk):
        payload = LiveJob.objects.get(pk=pk).decoded_payload()
        assert payload == {"args": [], "kwargs": {name: 1}}
    takes_anything(**{name: 1})


def test_arguments_that_do_not_fit_are_refused_and_nothing_is_stored() -> None:
    wrong: Any = add
    calls: list[Callable[[], object]] = [
        lambda: wrong.enqueue(1),
        lambda: wrong.enqueue(1, 2, 3),
        lambda: wrong.enqueue(1, 2, c=3),
        lambda: wrong.enqueue_many([(1, 2), (1,)]),
        lambda: wrong.enqueue_many([{"a": 1}]),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"tests\.tasks\.add"):
            call()

    assert not LiveJob.objects.exists()


def test_what_is_not_json_is_refused_and_the_transaction_stays_usable() -> None:
    """B078, B089, B090."""
    with transaction.atomic():
        for value in (datetime.now(UTC), object(), float("nan"), "a\x00b"):
            with pytest.raises(InvalidPayload, match=r"args\[0\]"):
                takes_anything.enqueue(value)
            with pytest.raises(InvalidPayload, match="note"):
                takes_anything.enqueue_many([{"note": 1}, {"note": value}])
        record.enqueue("after")

    assert LiveJob.objects.count() == 1


def test_a_payload_above_the_limit_is_refused() -> None:
    with (
        override_settings(ALKSTORE={"MAX_PAYLOAD_BYTES": 100}),
        pytest.raises(InvalidPayload, match="MAX_PAYLOAD_BYTES"),
    ):
        record.enqueue("é" * 60)

    assert not LiveJob.objects.exists()


def test_enqueue_many_returns_ids_position_by_position() -> None:
    ids = add.enqueue_many([(1, 2), {"a": 3, "b": 4}, (5,) + (6,)])

    payloads = [LiveJob.objects.get(pk=pk).decoded_payload() for pk in ids]
    assert payloads == [
        {"args": [1, 2], "kwargs": {}},
        {"args": [], "kwargs": {"a": 3, "b": 4}},
        {"args": [5, 6], "kwargs": {}},
    ]


def test_enqueue_many_takes_an_iterator_and_an_empty_one() -> None:
    assert add.enqueue_many([]) == []
    assert len(add.enqueue_many((n, n) for n in range(3))) == 3


@pytest.mark.parametrize("call", [3, "ab", [1, 2], None])
def test_enqueue_many_refuses_what_is_neither_tuple_nor_dict(call: Any) -> None:
    with pytest.raises(TypeError, match="call 1 is"):
        add.enqueue_many([(1, 2), call])

    assert not LiveJob.objects.exists()


def test_unique_is_computed_from_the_arguments(own_registry: None) -> None:
    @task(unique=lambda order_id, note="": f"order-{order_id}")
    def send(order_id: int, note: str = "") -> None: ...

    first = send.enqueue(1)
    again = send.enqueue(order_id=1, note="other")
    other = send.enqueue(2)

    assert (first.unique_key, first.created) == ("order-1", True)
    assert (again.pk, again.created) == (first.pk, False)
    assert other.created
    ids = send.enqueue_many([(1,), (3,), {"order_id": 3}])
    third = LiveJob.objects.get(unique_key="order-3").pk
    assert ids == [first.pk, third, third]


def test_unique_may_be_none_for_some_arguments(own_registry: None) -> None:
    @task(unique=lambda order_id: None if order_id == 0 else str(order_id))
    def send(order_id: int) -> None: ...

    assert send.enqueue(0).pk != send.enqueue(0).pk
    assert send.enqueue(1).pk == send.enqueue(1).pk


def test_a_unique_function_that_returns_no_string_is_an_error(
    own_registry: None,
) -> None:
    @task(unique=lambda order_id: order_id)
    def send(order_id: int) -> None: ...

    with pytest.raises(TypeError, match="unique_key"):
        send.enqueue(1)

    assert not LiveJob.objects.exists()


def test_using_gives_a_key_and_what_happens_when_it_is_held() -> None:
    first = record.using(unique_key="k").enqueue("a")

    assert record.using(unique_key="k").enqueue("b").pk == first.pk
    with pytest.raises(DuplicateJob) as caught:
        record.using(unique_key="k", on_conflict="raise").enqueue("b")
    assert caught.value.job_id == first.pk
    replaced = record.using(unique_key="k", on_conflict="replace", priority=9)
    assert replaced.enqueue("c").pk == first.pk
    row = LiveJob.objects.get()
    assert (row.priority, row.decoded_payload()["args"]) == (9, ["c"])


def test_a_delayed_job_is_scheduled_and_delay_zero_is_not() -> None:
    assert record.using(delay=60).enqueue("a").state == "scheduled"
    assert record.using(delay=0).enqueue("a").state == "pending"
    run_at = datetime.now(UTC) + timedelta(hours=1)
    assert record.using(run_at=run_at).enqueue("a").run_at == run_at


@pytest.mark.django_db(databases=["default", "other"])
def test_using_another_database_stores_the_job_there() -> None:
    job = record.using(using="other").enqueue("a")

    assert not LiveJob.objects.using("default").exists()
    assert LiveJob.objects.using("other").get().pk == job.pk
    assert record.using(using="other").get_result(job.pk).state == "pending"


def test_the_signal_is_sent_in_the_transaction_with_the_task_as_its_sender() -> None:
    told: list[tuple[object, int, bool]] = []

    def receive(sender: object, job: LiveJob, **kwargs: object) -> None:
        told.append((sender, job.pk, connection.in_atomic_block))

    job_enqueued.connect(receive, sender=record)
    try:
        job = record.using(priority=1).enqueue("a")
        add.enqueue(1, 2)
    finally:
        job_enqueued.disconnect(receive, sender=record)

    assert told == [(record, job.pk, True)]


def test_a_bulk_sends_one_signal_with_its_jobs() -> None:
    told: list[list[int]] = []

    def receive(jobs: list[LiveJob], **kwargs: object) -> None:
        told.append([job.pk for job in jobs])

    job_enqueued.connect(receive)
    try:
        ids = add.enqueue_many([(1, 2), (3, 4)])
    finally:
        job_enqueued.disconnect(receive)

    assert told == [ids]


def test_a_job_that_was_found_is_told_of_no_second_time() -> None:
    told: list[object] = []

    def receive(job: LiveJob, **kwargs: object) -> None:
        told.append(job.pk)

    job_enqueued.connect(receive)
    try:
        job = record.using(unique_key="k").enqueue("a")
        record.using(unique_key="k").enqueue("a")
    finally:
        job_enqueued.disconnect(receive)

    assert told == [job.pk]


def test_a_receiver_that_raises_does_not_keep_the_job_from_being_stored() -> None:
    def receive(**kwargs: object) -> None:
        raise RuntimeError("not today")

    job_enqueued.connect(receive)
    try:
        job = record.enqueue("a")
    finally:
        job_enqueued.disconnect(receive)

    assert LiveJob.objects.filter(pk=job.pk).exists()


def test_the_async_twins_store_the_same() -> None:
    async def enqueue() -> tuple[int, list[int]]:
        job = await add.aenqueue(1, 2)
        return job.pk, await add.aenqueue_many([(3, 4)])

    pk, ids = async_to_sync(enqueue)()

    assert set(LiveJob.objects.values_list("pk", flat=True)) == {pk, *ids}
