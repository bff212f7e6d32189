"""
The fences: an old receipt settles nothing, and a heartbeat never shortens a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from django_alkstore import clock, queue
from django_alkstore.jobs import ClaimedJob
from django_alkstore.models import Attempt, DeadJob, LiveJob, Result
from tests.engine.scenes import DAY, claimed, live, store
from tests.engine.steps import after, row, take, us, waits

pytestmark = pytest.mark.django_db
q = queue("q")

ACTS: dict[str, Callable[[ClaimedJob], bool]] = {
    "ack": lambda job: job.ack("x"),
    "retry": lambda job: job.retry(5, "x"),
    "fail": lambda job: job.fail("x"),
    "snooze": lambda job: job.snooze(5),
    "release": lambda job: job.release(),
    "heartbeat": lambda job: job.heartbeat(99),
}


def lapse(job: ClaimedJob) -> None:
    """Nobody has looked yet."""


def forge(job: ClaimedJob) -> None:
    job.worker_id = "somebody else"
    live.filter(pk=job.id).update(claim_expires_at=us(99))


LOSSES: dict[str, Callable[[ClaimedJob], Any]] = {
    "lapsed": lapse,
    "claimed by another worker": lambda job: take(worker="v", at=11),
    "claimed again by a worker of the same name": lambda job: take(worker="w", at=11),
    "cancelled": lambda job: q.cancel(job.id),
    "of another worker": forge,
    **{f"settled by {name}": ACTS[name] for name in ACTS if name != "heartbeat"},
}


def everything() -> list[Any]:
    return [
        list(model._default_manager.order_by("pk").values())
        for model in (LiveJob, DeadJob, Result, Attempt)
    ]


@pytest.mark.parametrize("most", [1, 3], ids=["last attempt", "attempts left"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("act", ACTS)
def test_a_lost_claim_settles_nothing(act: str, loss: str, most: int) -> None:
    if loss.startswith("claimed"):
        most += 1
    (job,) = claimed("a", max_attempts=most, result_ttl=DAY)
    with after(1):
        LOSSES[loss](job)
    before = everything()

    with after(11):
        assert ACTS[act](job) is False

    assert everything() == before


@pytest.mark.parametrize("act", ACTS)
def test_a_claim_holds_up_to_its_very_end(act: str) -> None:
    (job,) = claimed("a")

    with after(10):
        assert ACTS[act](job) is True


@pytest.mark.parametrize("act", ACTS)
def test_a_claim_does_not_hold_a_microsecond_longer(act: str) -> None:
    (job,) = claimed("a")

    with after(10.000_001):
        assert ACTS[act](job) is False


def test_the_old_owners_heartbeat_and_ack_leave_the_job_to_the_new_one() -> None:
    """B023."""
    (old,) = claimed("a", worker="w1")
    (new,) = take(worker="w2", at=11)

    with after(12):
        assert not old.heartbeat()
        assert not old.ack()
        assert new.ack()


def test_a_late_heartbeat_does_not_overwrite_a_retrys_delay() -> None:
    """B022."""
    (job,) = claimed("a", visibility_timeout=5)
    with after(1):
        assert job.retry(30)
    before = everything()

    for at in (1, 2):
        with after(at):
            assert not job.heartbeat()

    assert everything() == before
    assert row(job.id).run_at == clock.to_instant(us(31))


def test_a_heartbeat_holds_for_the_stamp_from_now() -> None:
    (job,) = claimed("a", visibility_timeout=10)

    with after(4):
        assert job.heartbeat()

    assert (
        row(job.id).claim_expires_at == job.claim_expires_at == clock.to_instant(us(14))
    )
    assert waits(job.id) == ("processing", 1, "w")


@pytest.mark.parametrize(
    ("extend", "until"), [(30, 34), (6.5, 10.5), (6, 10), (1, 10), (0, 10)]
)
def test_a_heartbeat_extends_and_never_shortens(extend: float, until: float) -> None:
    (job,) = claimed("a", visibility_timeout=10)

    with after(4):
        assert job.heartbeat(extend)

    assert row(job.id).claim_expires_at == clock.to_instant(us(until))


def test_a_bad_extension_is_refused() -> None:
    (job,) = claimed("a")

    with pytest.raises(ValueError, match="extend must not be negative"):
        job.heartbeat(-1)

    assert row(job.id).claim_expires_at == clock.to_instant(us(10))


def test_a_job_that_is_kept_alive_is_never_claimed_again() -> None:
    """B017."""
    (job,) = claimed("a", visibility_timeout=2)

    for at in range(2, 11, 2):
        with after(at):
            assert take(worker="v", at=at) == []
            assert job.heartbeat()
            assert q.sweep_expired() == 0

    assert waits(job.id) == ("processing", 1, "w")


def test_many_heartbeats_tell_which_claims_are_still_held() -> None:
    jobs = [*claimed("a", "b", "c"), *claimed("d", worker="v"), *claimed("e")]
    with after(1):
        q.cancel(jobs[0].id)
        assert jobs[1].ack()

        held = live.heartbeat_many(jobs)

    assert held == {job.id: us(11) for job in jobs[2:]}
    assert [job.claim_expires_at_us for job in jobs] == [us(10)] * 2 + [us(11)] * 3


def test_heartbeats_of_nothing_are_nothing() -> None:
    assert live.heartbeat_many([]) == {}


def test_a_heartbeat_of_one_job_leaves_the_others_alone() -> None:
    mine, other = claimed("a", "b")

    with after(4):
        assert mine.heartbeat()

    assert row(other.id).claim_expires_at == clock.to_instant(us(10))


def test_a_database_error_is_raised_and_not_told_as_a_loss() -> None:
    """B002."""
    (job,) = claimed("a")

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        return execute('SELECT * FROM "no_such_table"', None, False, context)

    for act in ACTS.values():
        with (
            pytest.raises(DatabaseError),
            transaction.atomic(),
            connection.execute_wrapper(refuse),
        ):
            act(job)
    assert waits(job.id) == ("processing", 1, "w")


def test_a_row_can_be_settled_again_after_a_release_and_a_new_claim() -> None:
    store("a")
    (first,) = take(worker="w")
    with after(1):
        first.release()
    (second,) = take(worker="v", at=2)

    with after(3):
        assert not first.ack()
        assert second.ack()
