"""Arguments and results on their whole way: equal and of the same type, or refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_alkstore import InvalidPayload, Retry, queue, task
from django_alkstore.models import DeadJob, LiveJob
from django_alkstore.testing import inline, run_jobs
from tests import tasks

pytestmark = pytest.mark.django_db
q = queue("q")

WHOLE = [
    3889108265204450030,
    899999999999999990,
    999999999999999990,
    2**53 + 1,
    -(2**63),
]
FOREIGN = [
    datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    datetime(2026, 1, 2, 3, 4, 5),
    date(2026, 1, 2),
    UUID(int=7),
    Decimal("1.10"),
    object(),
    b"x",
    {"a", "b"},
    {1: "x"},
    float("nan"),
    float("inf"),
    float("-inf"),
    {"a": [float("nan")]},
]


def same(value: object) -> object:
    """Let equality mean the type too: 1.0 is not 1, and True is neither."""
    return (type(value), repr(value))


@pytest.mark.parametrize("number", WHOLE)
def test_a_whole_number_is_exact_on_every_way(own_registry: None, number: int) -> None:
    """
    B086: enqueue, claim, edit, retry, death, requeue and result, raw and by a task.
    """
    seen: list[object] = []

    @task(max_attempts=1, result_ttl=60, takes_context=True)
    def echo(context: Any, given: int, *, again: dict[str, list[int]]) -> int:
        seen.extend([given, again["in"][0], context.job.payload["args"][0]])
        if len(seen) == 3:
            raise Retry(delay=0)
        return given

    old = echo.using(max_attempts=1).enqueue(number, again={"in": [number]})
    run_jobs()
    letter = DeadJob.objects.get()
    assert same(letter.decoded_payload()["args"][0]) == same(number)
    (new,), _ = DeadJob.objects.requeue([old.pk])
    run_jobs()
    result = echo.get_result(new)

    assert [same(value) for value in seen] == [same(number)] * 6
    assert same(result.return_value) == same(number)
    raw = q.enqueue(0)
    assert q.update(raw.pk, payload=[number])
    for _ in range(2):
        (job,) = q.claim("w")
        assert same(job.payload) == same([number])
        assert job.retry(0)
    found = q.get_job(raw.pk)
    assert found is not None
    assert same(found.payload) == same([number])


CALLS: dict[str, Callable[[Any], object]] = {
    "raw": lambda value: q.enqueue(value),
    "raw, many": lambda value: q.enqueue_many([1, value]),
    "raw, delayed": lambda value: q.enqueue({"note": value}, delay=5),
    "task": lambda value: tasks.record.enqueue(value),
    "task, by name": lambda value: tasks.record.enqueue("x", note=value),
    "task, many": lambda value: tasks.record.enqueue_many([("x",), ("x", value)]),
    "task, delayed": lambda value: tasks.record.using(delay=5).enqueue(value),
    "edit": lambda value: q.update(1, payload=value),
}


@pytest.mark.parametrize("mode", ["stored", "inline"])
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_what_is_not_json_is_refused_everywhere_alike_before_any_sql(
    call: str, mode: str
) -> None:
    """B089, B090, B092: TypeError and ValueError, with the type or the place in it."""
    for value in FOREIGN:
        with CaptureQueriesContext(connection) as queries:
            with pytest.raises(InvalidPayload) as caught:
                if mode == "inline":
                    with inline():
                        CALLS[call](value)
                else:
                    CALLS[call](value)
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, ValueError)
        assert len(queries) == 0
        if call.startswith("task"):
            assert "argument " in str(caught.value)

    assert not LiveJob.objects.exists()


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_text_that_no_database_stores_is_refused_everywhere_alike(
    call: str, text: str
) -> None:
    """B078: nested or not, single, in bulk or for later."""
    for value in (text, [text], {"a": {"b": [text]}}, {text: 1}):
        with pytest.raises(InvalidPayload):
            CALLS[call](value)
    q.enqueue("the transaction goes on")

    assert LiveJob.objects.count() == 1
