"""The claim: which jobs, in which order, for how long, and for whom."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_alkstore import clock, queue
from django_alkstore.models import LiveJob
from tests.engine.scenes import NOW, labels, live, store
from tests.engine.steps import row, side_by_side, take, us, waits

pytestmark = pytest.mark.django_db
q = queue("q")


def test_the_highest_priority_goes_first_then_run_at_then_id() -> None:
    store("4", at=us(-5))
    store("2", at=us(-5), priority=7)
    store("3", at=us(-9))
    store("5", "6", at=us(-5))
    store("1", at=NOW, priority=2**31 - 1)
    store("7", at=us(-9), priority=-(2**31))

    assert labels(take()) == list("1234567")


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_limit_takes_the_first_of_the_order_and_leaves_the_rest(limit: int) -> None:
    store("4", at=us(-9))
    store("3", at=us(-5), priority=1)
    store("2", at=us(-7), priority=1)
    store("1", at=us(-1), priority=2)

    assert labels(take(limit)) == list("1234")[:limit]
    assert labels(take()) == list("1234")[limit:]


def test_the_receipt_tells_of_the_claim() -> None:
    (job_id,) = store("a", key="k", visibility_timeout=10, max_attempts=5, priority=2,
                      expires=99, timeout=3, result_ttl=4, dead_letter_retention=8)  # fmt: skip

    (job,) = take(worker="me", at=1)

    assert (job.id, job.queue, job.task, job.payload) == (job_id, "q", "", "a")
    assert (job.attempts, job.max_attempts, job.worker_id) == (1, 5, "me")
    assert (job.priority, job.unique_key, job.using) == (2, "k", "default")
    assert job.run_at == job.created_at == clock.to_instant(NOW)
    assert job.expires_at == clock.to_instant(us(99))
    assert job.claimed_at == clock.to_instant(us(1))
    assert job.claim_expires_at == clock.to_instant(us(11))
    assert (job.timeout_us, job.result_ttl_us) == (3_000_000, 4_000_000)
    assert job.dead_letter_retention_us == 8_000_000
    assert repr(job) == f"<ClaimedJob {job_id} q attempt 1>"


def test_the_row_tells_of_the_claim_too() -> None:
    (job_id,) = store("a")

    take(worker="me", at=1)

    stored = row(job_id)
    assert waits(job_id) == ("processing", 1, "me")
    assert stored.claimed_at == clock.to_instant(us(1))
    assert stored.claim_expires_at == clock.to_instant(us(11))
    assert stored.run_at == clock.to_instant(NOW)


def test_each_row_is_held_for_its_own_time() -> None:
    store("a", visibility_timeout=0.5)
    store("b", visibility_timeout=3600)

    jobs = take()

    assert [job.claim_expires_at_us for job in jobs] == [us(0.5), us(3600)]


def test_a_claimed_job_is_claimed_by_nobody_else() -> None:
    store("a")
    take()

    assert take(worker="v") == []


@pytest.mark.parametrize(("raw", "label"), [(True, "raw"), (False, "task")])
def test_raw_jobs_and_jobs_with_a_task_are_handed_out_apart(
    raw: bool, label: str
) -> None:
    store("raw", priority=5)
    store("task", task="shop.tasks.send", priority=9)

    assert labels(take(raw=raw)) == [label]


def test_the_handle_claims_raw_jobs_alone() -> None:
    store("task", task="t")
    store("raw")

    assert labels(q.claim("w", 9)) == ["raw"]


def test_another_queues_jobs_are_left_alone() -> None:
    store("a")

    assert take(queue="Q") == []
    assert take(queue="q ") == []


@pytest.mark.parametrize(("at", "found"), [(59.999_999, []), (60, ["a"])])
def test_a_job_is_due_at_its_instant_and_not_before(
    at: float, found: list[str]
) -> None:
    store("a", delay=60)

    assert labels(take(at=at)) == found


@pytest.mark.parametrize(("at", "found"), [(59.999_999, ["a"]), (60, [])])
@pytest.mark.parametrize("upkeep", [True, False])
def test_a_job_past_its_expiry_is_never_handed_out(
    at: float, found: list[str], upkeep: bool
) -> None:
    store("a", expires=60)

    assert labels(take(at=at, upkeep=upkeep)) == found


def test_a_paused_queue_hands_nothing_out_until_it_is_resumed() -> None:
    store("a")
    store("task", task="t")

    q.pause()
    assert take() == take(raw=False) == []
    q.resume()

    assert labels(take()) == ["a"]


def test_a_paused_queue_pauses_no_other() -> None:
    store("a")
    queue("other").pause()

    assert labels(take()) == ["a"]


def test_a_row_on_its_last_attempt_is_claimed_only_for_a_slot() -> None:
    store("1", "2", max_attempts=2)
    store("last 3", "last 4", max_attempts=1)
    store("5", max_attempts=2)

    assert labels(take(slots=1)) == ["1", "2", "last 3"]
    assert labels(take(slots=0)) == []
    assert labels(take(slots=9)) == ["last 4", "5"]


def test_what_is_given_back_for_want_of_a_slot_is_as_it_was() -> None:
    first, last = store("first", max_attempts=2)[0], store("last", max_attempts=1)[0]
    before = LiveJob.objects.filter(pk=last).values().get()

    assert labels(take(slots=0)) == ["first"]

    assert waits(first)[0] == "processing"
    assert LiveJob.objects.filter(pk=last).values().get() == before


def test_a_claim_with_nothing_to_move_is_two_statements_and_no_savepoint() -> None:
    store("a")

    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        live.claim("q", worker_id="w", limit=1, raw=True)

    assert [query["sql"].split()[0] for query in queries] == ["SELECT", "UPDATE"]


def test_a_claim_that_is_rolled_back_never_was() -> None:
    (job_id,) = store("a")

    with transaction.atomic():
        take()
        transaction.set_rollback(True)

    assert waits(job_id) == ("pending", 0, "")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("", 1), ValueError), (("w" * 201, 1), ValueError), (("w\x00", 1), ValueError),
        ((None, 1), TypeError), (("w", 0), ValueError), (("w", -1), ValueError),
        (("w", 1.5), TypeError), (("w", True), TypeError),
    ],
)  # fmt: skip
def test_a_bad_argument_is_refused_before_any_sql(
    arguments: Any, error: type[Exception]
) -> None:
    with CaptureQueriesContext(connection) as queries, pytest.raises(error):
        q.claim(*arguments)

    assert len(queries) == 0


@pytest.mark.parametrize("kind", ["raw", "task"])
def test_many_workers_claim_each_job_once(committing: None, kind: str) -> None:
    stored = store(*map(str, range(120)), task="t" if kind == "task" else "")

    def work(worker: str) -> list[int]:
        mine: list[int] = []
        while jobs := take(7, worker=worker, raw=kind == "raw"):
            mine += [job.id for job in jobs]
        return mine

    taken = side_by_side(*[lambda name=name: work(name) for name in "abcd"])

    assert sorted(sum(taken, [])) == stored


@pytest.mark.postgresql_only
def test_a_claim_passes_over_rows_that_another_one_is_taking(committing: None) -> None:
    store("a", "b", "c")
    taken, done = threading.Event(), threading.Event()

    def hold() -> list[str]:
        with transaction.atomic():
            jobs = take(2, worker="holder")
            taken.set()
            assert done.wait(10)
        return labels(jobs)

    def pass_over() -> list[str]:
        assert taken.wait(10)
        try:
            return labels(take(worker="other"))
        finally:
            done.set()

    assert side_by_side(hold, pass_over) == [["a", "b"], ["c"]]
