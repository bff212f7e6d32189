"""What a claim moves first: due, lapsed, spent and expired jobs, so many at a time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from django_alkstore import clock, queue
from django_alkstore.models import Attempt, DeadJob, LiveJob
from tests.engine.scenes import EARLIER, claimed, labels, live, options, store
from tests.engine.steps import row, take, us, waits, why_dead

pytestmark = pytest.mark.django_db
q = queue("q")


def store_many(count: int, **given: Any) -> list[int]:
    """Store jobs labelled by their number, well before NOW."""
    with clock.pretend(EARLIER):
        return live.enqueue_many(options(**given), [f'"{n}"' for n in range(count)])


def states() -> Counter[str]:
    return Counter(LiveJob.objects.values_list("state", flat=True))


@pytest.mark.parametrize(
    ("limit", "bound"), [(1, 256), (64, 256), (65, 260), (80, 320)]
)
def test_a_claim_promotes_at_most_its_bound_of_due_jobs(limit: int, bound: int) -> None:
    ids = store_many(330, delay=1)

    jobs = take(limit)

    assert [job.id for job in jobs] == ids[:limit]
    assert states()["scheduled"] == 330 - bound


def test_due_jobs_are_promoted_by_run_at_and_then_by_id() -> None:
    store_many(256, delay=9)
    late = store("late and urgent", at=EARLIER, delay=10, priority=9)
    early = store("early", at=EARLIER, delay=8, priority=1)

    first = take(1)

    assert [job.id for job in first] == early
    assert waits(late[0])[0] == "scheduled"
    assert labels(take(1)) == ["late and urgent"]


def test_a_high_priority_ahead_of_time_does_not_keep_a_low_one_waiting() -> None:
    store_many(300, delay=5_000, priority=9)
    store("now", priority=-9)

    assert labels(take()) == ["now"]


def test_a_claim_without_upkeep_moves_nothing() -> None:
    (due,) = store("due", at=EARLIER, delay=1)
    (lapsed,) = claimed("lapsed", at=EARLIER)
    (spent,) = claimed("spent", at=EARLIER, max_attempts=1)
    (expired,) = store("expired", at=EARLIER, expires=1)
    before = list(LiveJob.objects.order_by("pk").values())

    assert take(upkeep=False) == []

    assert list(LiveJob.objects.order_by("pk").values()) == before
    assert {due, lapsed.id, spent.id, expired} == {values["id"] for values in before}


@pytest.mark.parametrize(("at", "found"), [(10, []), (10.000_001, ["a"])])
def test_a_claim_is_valid_until_its_end_and_lapses_after_it(
    at: float, found: list[str]
) -> None:
    claimed("a")

    assert labels(take(worker="v", at=at)) == found


def test_a_lapsed_job_is_claimed_again_as_its_next_attempt() -> None:
    (old,) = claimed("a")

    (new,) = take(worker="v", at=11)

    assert (new.id, new.attempts, new.worker_id) == (old.id, 2, "v")
    assert new.claim_expires_at_us == us(21)
    assert new.run_at_us == old.run_at_us


def test_a_lapsed_attempt_is_written_down() -> None:
    (job,) = claimed("a", worker="gone")

    take(worker="v", at=11)

    (attempt,) = Attempt.objects.filter(job_id=job.id)
    assert (attempt.attempt, attempt.worker_id) == (1, "gone")
    assert attempt.started_at == job.claimed_at
    assert attempt.ended_at == clock.to_instant(us(11))
    assert attempt.exception_class == "django_alkstore.exceptions.ClaimLost"
    assert "lapsed" in attempt.message


def test_a_job_whose_workers_all_die_goes_dead_after_its_attempts() -> None:
    """B006, B023."""
    (job_id,) = store("a", max_attempts=3)

    for number in range(3):
        (job,) = take(at=number * 11)
        assert job.attempts == number + 1
    assert take(at=33) == []

    dead = DeadJob.objects.get(pk=job_id)
    assert (dead.reason, dead.attempts, dead.worker_id) == ("exhausted", 3, "w")
    assert dead.last_error.startswith("django_alkstore.exceptions.ClaimLost: ")
    assert dead.died_at == clock.to_instant(us(33))
    assert Attempt.objects.filter(job_id=job_id, ended_at__isnull=False).count() == 3
    assert not LiveJob.objects.exists()


def test_a_job_with_one_attempt_is_not_left_processing() -> None:
    """B006."""
    claimed("a", max_attempts=1)

    assert take(at=10) == []
    assert why_dead() == {}
    assert take(at=10.1) == []
    assert why_dead() == {"a": "exhausted"}


def test_a_claim_buries_at_most_its_bound_of_spent_jobs() -> None:
    claimed(*map(str, range(300)), at=EARLIER, max_attempts=1)

    take(1)

    assert set(why_dead()) == {str(number) for number in range(256)}
    assert states() == {"processing": 44}


def test_a_claim_buries_at_most_its_bound_of_expired_jobs() -> None:
    store_many(300, expires=1)

    assert take(1) == []

    assert set(why_dead().values()) == {"expired"}
    assert DeadJob.objects.count() == 256
    assert states() == {"pending": 44}


@pytest.mark.parametrize("state", ["scheduled", "pending", "lapsed"])
def test_a_job_past_its_expiry_goes_dead_as_expired(state: str) -> None:
    if state == "lapsed":
        claimed("a", at=EARLIER, expires=11)
    else:
        store("a", at=EARLIER, expires=5, delay=1 if state == "scheduled" else None)

    assert take() == []

    assert why_dead() == {"a": "expired"}


def test_a_running_job_past_its_expiry_is_left_to_its_holder() -> None:
    (job,) = claimed("a", expires=5)

    assert take(at=6) == []

    assert waits(job.id) == ("processing", 1, "w")
    with clock.pretend(us(7)):
        assert job.ack()


def test_upkeep_of_one_queue_leaves_the_others_alone() -> None:
    store("a", at=EARLIER, delay=1)
    store("b", at=EARLIER, expires=1)
    claimed("c", at=EARLIER, max_attempts=1, priority=5)

    assert take(queue="other") == []

    assert states() == {"scheduled": 1, "pending": 1, "processing": 1}


def test_upkeep_goes_on_in_a_paused_queue() -> None:
    store("a", at=EARLIER, delay=1)
    store("b", at=EARLIER, expires=1)
    q.pause()

    assert take() == []

    assert states() == {"pending": 1}
    assert why_dead() == {"b": "expired"}


def test_a_job_does_not_starve_behind_many_spent_ones() -> None:
    claimed(*map(str, range(300)), at=EARLIER, max_attempts=1)
    store("good")

    assert labels(take(1)) == ["good"]


def test_a_promoted_job_keeps_its_instant_and_attempts() -> None:
    (job_id,) = store("a", at=EARLIER, delay=1)
    store("urgent", priority=5)

    assert labels(take(1)) == ["urgent"]

    assert waits(job_id) == ("pending", 0, "")
    assert row(job_id).run_at == clock.to_instant(EARLIER + clock.SECOND)
