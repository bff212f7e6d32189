"""Edit: priority, instant and payload of a job that is not yet claimed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_alkstore import clock, queue
from django_alkstore.models import LiveJob
from tests.engine.scenes import claimed, labels, store
from tests.engine.steps import after, columns_of, row, take, us, waits

pytestmark = pytest.mark.django_db
q = queue("q")


@pytest.mark.parametrize("delay", [None, 60], ids=["pending", "scheduled"])
@pytest.mark.parametrize(
    ("changes", "column", "value"),
    [
        ({"priority": -3}, "priority", -3),
        ({"payload": {"b": 2**70}}, "payload", '{"b": 1180591620717411303424}'),
        ({"payload": None}, "payload", "null"),
    ],
)
def test_one_thing_is_changed_and_the_rest_stays(
    delay: int | None, changes: dict[str, Any], column: str, value: object
) -> None:
    (job_id,) = store("a", delay=delay, priority=1, key="k")
    before, state = columns_of(LiveJob), waits(job_id)

    assert q.update(job_id, **changes) is True

    assert columns_of(LiveJob) == {**before, column: value}
    assert waits(job_id) == state


@pytest.mark.parametrize("delay", [None, 60], ids=["pending", "scheduled"])
@pytest.mark.parametrize(
    ("at", "state"), [(-5, "pending"), (1, "pending"), (1.000_001, "scheduled")]
)
def test_another_instant_makes_a_job_scheduled_or_pending(
    delay: int | None, at: float, state: str
) -> None:
    (job_id,) = store("a", delay=delay)

    with after(1):
        assert q.update(job_id, run_at=clock.to_instant(us(at)))

    assert waits(job_id) == (state, 0, "")
    assert row(job_id).run_at == clock.to_instant(us(at))


def test_a_job_with_another_priority_is_claimed_in_its_new_place() -> None:
    first, second = store("first", "second")

    q.update(second, priority=1)

    assert labels(take()) == ["second", "first"]


def test_a_claimed_job_is_left_as_it_is() -> None:
    (job,) = claimed("a")
    before = columns_of(LiveJob)

    assert q.update(job.id, priority=9, payload="new") is False

    assert columns_of(LiveJob) == before


def test_what_is_not_live_cannot_be_edited() -> None:
    (job_id,) = store("a")
    q.cancel(job_id)

    assert q.update(job_id, priority=9) is False
    assert q.update(job_id + 1000, priority=9) is False


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"priority": 2**31}, "priority must fit 32 bits"),
        ({"priority": "1"}, "priority must be an integer"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at is a naive datetime"),
        ({"run_at": 5}, "run_at must be a datetime"),
        ({"payload": {1}}, "payload: set is not JSON"),
        ({"payload": "x" * 2**20}, "MAX_PAYLOAD_BYTES"),
    ],
)
def test_bad_values_are_refused_before_any_sql(
    changes: dict[str, Any], words: str
) -> None:
    (job_id,) = store("a")

    with (
        CaptureQueriesContext(connection) as queries,
        pytest.raises((TypeError, ValueError), match=words),
    ):
        q.update(job_id, **changes)

    assert len(queries) == 0
