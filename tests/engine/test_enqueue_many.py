"""Enqueueing many: ids position by position, few statements, all or none."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_alkstore import DuplicateJob, InvalidPayload, clock, queue
from django_alkstore.managers import storing
from django_alkstore.models import LiveJob
from tests.engine.scenes import NOW, claimed
from tests.engine.steps import row, us

pytestmark = pytest.mark.django_db
q = queue("q")


def payloads(ids: list[int]) -> list[object]:
    return [row(pk).decoded_payload() for pk in ids]


def test_the_ids_are_those_of_the_payloads_in_their_order() -> None:
    given = [{"n": number, "big": 2**70 + number} for number in range(50)]

    ids = q.enqueue_many(given)

    assert payloads(ids) == given
    assert ids == sorted(ids)


def test_the_ids_keep_their_places_over_several_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storing, "BULK", 3)
    given = list(range(10))

    with CaptureQueriesContext(connection) as queries:
        ids = q.enqueue_many(given)

    assert payloads(ids) == given
    assert len([1 for query in queries if query["sql"].startswith("INSERT")]) == 4


def test_a_thousand_jobs_are_one_insert_in_one_savepoint() -> None:
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        ids = q.enqueue_many(range(1000))

    assert len(set(ids)) == 1000
    words = [query["sql"].split()[0] for query in queries]
    assert words == ["SAVEPOINT", "INSERT", "RELEASE"]


def test_nothing_is_stored_for_no_payloads() -> None:
    assert q.enqueue_many([]) == []
    assert q.enqueue_many(iter(())) == []
    assert q.enqueue_many([], unique_key=[]) == []


def test_the_options_are_the_same_for_all() -> None:
    with clock.pretend(NOW):
        ids = q.enqueue_many("ab", priority=3, delay=60, expires=90, max_attempts=1,
                             visibility_timeout=5, timeout=2, result_ttl=9)  # fmt: skip
        single = q.enqueue("x", priority=3, delay=60, expires=90, max_attempts=1,
                           visibility_timeout=5, timeout=2, result_ttl=9)  # fmt: skip

    names = [field.attname for field in LiveJob._meta.concrete_fields]
    for pk in ids:
        differing = {n for n in names if getattr(row(pk), n) != getattr(single, n)}
        assert differing == {"id", "payload"}
    assert single.run_at == clock.to_instant(us(60))


def test_an_instant_ahead_schedules_them() -> None:
    with clock.pretend(NOW):
        ids = q.enqueue_many("a", run_at=clock.to_instant(us(60)))
        ids += q.enqueue_many("b", run_at=clock.to_instant(us(-60)))

    assert [row(pk).state for pk in ids] == ["scheduled", "pending"]


def test_the_first_of_equal_keys_wins_and_a_held_key_is_left_alone() -> None:
    """B059."""
    held = q.enqueue("before", unique_key="c")

    ids = q.enqueue_many(
        ["a", "a again", "b", "b again", "c"], unique_key=["a", "a", "b", "b", "c"]
    )

    assert ids[0] == ids[1] and ids[2] == ids[3] and ids[4] == held.pk
    assert payloads(ids[::2]) == ["a", "b", "before"]
    assert LiveJob.objects.count() == 3


def test_jobs_without_a_key_keep_their_places_between_those_with_one() -> None:
    held = q.enqueue("held", unique_key="h")

    ids = q.enqueue_many(
        ["1", "2", "3", "4", "5", "6"], unique_key=[None, "k", None, "h", "k", None]
    )

    assert payloads(ids) == ["1", "2", "3", "held", "2", "6"]
    assert ids[3] == held.pk


def test_equal_keys_win_across_statements_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "BULK", 2)

    ids = q.enqueue_many("abcd", unique_key=["k", None, None, "k"])

    assert payloads(ids) == ["a", "b", "c", "a"]


def test_a_key_may_be_a_function_of_the_payload() -> None:
    ids = q.enqueue_many(
        [{"id": 1}, {"id": 2}, {"id": 1}, {"id": None}, {"id": None}],
        unique_key=lambda payload: payload["id"] and str(payload["id"]),
    )

    assert ids[0] == ids[2]
    assert len(set(ids)) == 4
    assert row(ids[1]).unique_key == "2"
    assert row(ids[3]).unique_key is None


@pytest.mark.parametrize("keys", [["a"], ["a", "b", "c"], []])
def test_a_wrong_number_of_keys_is_refused(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="one key for each payload"):
        q.enqueue_many(["1", "2"], unique_key=keys)

    assert not LiveJob.objects.exists()


def test_one_key_for_all_is_taken_for_a_slip() -> None:
    key: Any = "ab"
    with pytest.raises(TypeError, match="a function of the payload, or a list"):
        q.enqueue_many(["1", "2"], unique_key=key)


def test_a_bad_payload_is_named_by_its_place_and_none_is_stored() -> None:
    with pytest.raises(InvalidPayload, match=r"^payloads\[1\]\['x'\]: set is not JSON"):
        q.enqueue_many([1, {"x": set()}])

    assert not LiveJob.objects.exists()


def test_a_duplicate_that_raises_leaves_none_of_them() -> None:
    held = q.enqueue("held", unique_key="k")

    with transaction.atomic():
        with pytest.raises(DuplicateJob) as caught:
            q.enqueue_many(["1", "2"], unique_key=["j", "k"], on_conflict="raise")
        q.enqueue("after")

    assert caught.value.job_id == held.pk
    assert list(LiveJob.objects.values_list("payload", flat=True)) == [
        '"held"',
        '"after"',
    ]


def test_a_held_key_is_replaced_by_the_first_of_its_equals() -> None:
    held = q.enqueue("held", unique_key="k")

    ids = q.enqueue_many(
        ["1", "2"], unique_key=["k", "k"], on_conflict="replace", priority=5
    )

    assert ids == [held.pk, held.pk]
    assert (row(held.pk).decoded_payload(), row(held.pk).priority) == ("1", 5)


def test_a_running_holder_cannot_be_replaced_and_none_is_stored() -> None:
    claimed("held")
    LiveJob.objects.update(unique_key="k")

    with pytest.raises(DuplicateJob):
        q.enqueue_many(["1", "2"], unique_key=["j", "k"], on_conflict="replace")

    assert LiveJob.objects.count() == 1
