"""Clients side by side: threads and processes on one real database."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from django.db import OperationalError, connection, transaction

from django_alkstore import queue
from django_alkstore.checks import check_sqlite_options
from django_alkstore.exceptions import DuplicateJob
from django_alkstore.models import LiveJob
from django_alkstore.options import OnConflict
from tests.engine.crowd import CLAIMERS_EACH, LONGEST, ORDERS_EACH, at_once, good
from tests.engine.faults import Fault, Injected
from tests.engine.scenes import commits
from tests.models import Order
from tests.processes import WorkerProcess, WorkerProcesses
from tests.waiting import wait_until

pytestmark = [commits, pytest.mark.usefixtures("committing")]
crowd = queue("crowd")
Start = Callable[[str, str], WorkerProcess]


@pytest.fixture
def start(run_worker: WorkerProcesses, tmp_path: Path) -> Start:
    """Start a process of the crowd: its role, and an argument."""

    def start(role: str, argument: str) -> WorkerProcess:
        log = tmp_path / f"{role}_{argument}.log"
        command = [sys.executable, "-m", "tests.engine.crowd", role, argument]
        process = WorkerProcess(command, run_worker.environment(), log)
        run_worker.started.append(process)
        return process

    return start


def told(process: WorkerProcess) -> Any:
    assert process.wait(LONGEST) == 0, process.output
    return json.loads(process.output)


def test_each_job_is_handed_out_once_to_threads_and_processes(start: Start) -> None:
    ids = crowd.enqueue_many(range(500))

    processes = [start("claim", name) for name in ("a", "b")]
    lists = [each for process in processes for each in told(process)]

    assert len(lists) == 2 * CLAIMERS_EACH
    assert sorted(job_id for each in lists for job_id in each) == ids
    assert crowd.stats().dead == 0


def test_views_that_read_think_and_enqueue_do_not_lock_a_worker_out(
    start: Start,
) -> None:
    """B027."""
    numbers = ["a", "b", "c", "d"]
    Order.objects.bulk_create(Order(number=number) for number in numbers)
    finished: list[int] = []
    stop = threading.Event()

    def work(number: int) -> None:
        while not stop.is_set() or crowd.next_claim_at():
            jobs = crowd.claim("w", limit=10)
            assert crowd.ack_many(jobs) == len(jobs)
            finished.extend(job.id for job in jobs)
            stop.wait(0 if jobs else 0.01)

    def wait_for_views(number: int) -> int:
        try:
            return sum(told(process) for process in views)
        finally:
            stop.set()

    views = [start("order", number) for number in numbers]
    acts: list[Callable[[int], Any]] = [work, wait_for_views]
    outcomes = good(at_once(2, lambda number: acts[number](number)))

    assert outcomes == [None, 4 * ORDERS_EACH]
    assert len(set(finished)) == len(finished) == 4 * ORDERS_EACH


def test_a_deferred_transaction_commits_with_its_job_or_not_at_all() -> None:
    """B029."""

    def update_or_create(number: int) -> list[Exception]:
        defer()
        errors: list[Exception] = []
        for turn in range(25):
            try:
                with transaction.atomic():
                    Order.objects.update_or_create(number=f"{number} {turn}")
                    crowd.enqueue(f"{number} {turn}")
            except OperationalError as error:
                errors.append(error)
        return errors

    errors = sum(good(at_once(2, update_or_create)), [])

    orders = set(Order.objects.values_list("number", flat=True))
    assert orders == {job.decoded_payload() for job in LiveJob.objects.all()}
    assert len(orders) == 50 - len(errors)


@pytest.mark.sqlite_only
def test_deferred_transactions_are_warned_of() -> None:
    """B029."""
    options = connection.settings_dict["OPTIONS"]
    deferred = {
        key: value for key, value in options.items() if key != "transaction_mode"
    }

    with pytest.MonkeyPatch.context() as patch:
        assert not warned("W001")
        patch.setitem(connection.settings_dict, "OPTIONS", deferred)
        assert warned("W001")


@pytest.mark.parametrize("deferred", [False, True], ids=["immediate", "deferred"])
def test_there_is_a_job_for_each_view_that_answered(
    engine: str, deferred: bool
) -> None:
    """B032."""

    @transaction.atomic
    def view(key: str) -> int:
        Order.objects.filter(number=key).exists()
        return crowd.enqueue(key).pk

    def request(number: int) -> list[int | Exception]:
        if deferred:
            defer()
        return [answer(view, f"{number} {turn}") for turn in range(25)]

    answers = sum(good(at_once(8, request)), [])

    stored = [each for each in answers if isinstance(each, int)]
    assert len(answers) == 8 * 25
    assert sorted(stored) == sorted(LiveJob.objects.values_list("pk", flat=True))
    assert all(isinstance(each, (int, OperationalError)) for each in answers)
    if not deferred or engine == "postgresql":
        assert len(stored) == len(answers)


def test_of_many_enqueues_of_one_key_one_is_stored_and_all_get_it() -> None:
    """B043, B058."""
    for turn in range(5):
        key = f"k{turn}"

        jobs = good(at_once(30, lambda number: crowd.enqueue(number, unique_key=key)))

        assert len({job.pk for job in jobs}) == 1
        assert [job.created for job in jobs].count(True) == 1
        assert LiveJob.objects.filter(unique_key=key).count() == 1


@pytest.mark.postgresql_only
def test_under_repeatable_read_an_enqueue_gives_the_job_or_raises() -> None:
    """B058."""
    import psycopg

    def enqueue(number: int) -> LiveJob:
        raw: Any = connection.connection
        raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return crowd.enqueue(number, unique_key="k")

    jobs = at_once(20, enqueue)

    assert LiveJob.objects.count() == 1
    assert {each.pk for each in jobs if isinstance(each, LiveJob)} == {
        LiveJob.objects.get().pk
    }
    for each in jobs:
        if isinstance(each, Exception):
            assert isinstance(each.__cause__, psycopg.errors.SerializationFailure)


def test_a_key_whose_holder_comes_and_goes_is_never_an_empty_answer() -> None:
    """B058."""
    enqueuing = threading.Barrier(6, timeout=LONGEST)
    done = threading.Event()

    def client(number: int) -> list[Any]:
        if number < 6:
            jobs = [crowd.enqueue(number, unique_key="k") for _ in range(25)]
            if enqueuing.wait() == 0:
                done.set()
            return [job.pk for job in jobs if job.created]
        finished = []
        while not done.is_set() or crowd.next_claim_at():
            for job in crowd.claim(f"w{number}"):
                assert job.ack()
                finished.append(job.id)
        return finished

    lists = good(at_once(8, client))

    created = sorted(job_id for each in lists[:6] for job_id in each)
    assert created == sorted(job_id for each in lists[6:] for job_id in each)
    assert created


@pytest.mark.parametrize("rule", ["return", "raise", "replace"])
def test_a_bulk_enqueue_beside_others_of_its_keys_neither_deadlocks_nor_doubles(
    rule: OnConflict,
) -> None:
    """B043, B059."""

    def enqueue_many(number: int) -> list[int]:
        keys = [f"k{place}" for place in range(20)]
        # Half of them the other way round: locks taken in another order.
        chosen = keys if number % 2 else keys[::-1]
        return crowd.enqueue_many(chosen, unique_key=chosen, on_conflict=rule)

    outcomes = at_once(6, enqueue_many)

    assert LiveJob.objects.count() == 20
    refused = [each for each in outcomes if isinstance(each, Exception)]
    assert len(refused) == (5 if rule == "raise" else 0)
    assert all(isinstance(each, DuplicateJob) for each in refused), refused


def test_an_enqueue_that_fails_takes_the_order_with_it() -> None:
    """B048."""
    order = Order.objects.create(number="1")

    with pytest.raises(Injected), transaction.atomic():
        Order.objects.filter(pk=order.pk).update(notified=True)
        with connection.execute_wrapper(Fault(at=0)):
            crowd.enqueue(order.pk)

    order.refresh_from_db()
    assert not order.notified
    assert not LiveJob.objects.exists()


def test_a_process_killed_between_two_statements_leaves_both_or_none(
    start: Start,
) -> None:
    """B048."""
    numbers = ["0", "1", "2", "3"]
    Order.objects.bulk_create(Order(number=number) for number in numbers)

    processes = [start("notify_and_die", number) for number in numbers]
    ends = [process.wait(LONGEST) for process in processes]

    # Killed before UPDATE, before INSERT and before COMMIT; the last one lived.
    assert ends == [-9, -9, -9, 0]
    notified = Order.objects.filter(notified=True).values_list("number", flat=True)
    assert list(notified) == ["3"]
    assert [job.decoded_payload() for job in LiveJob.objects.all()] == ["3"]


@pytest.mark.parametrize("commits", [True, False])
def test_a_job_is_not_seen_before_its_commit_nor_after_a_rollback(
    commits: bool,
) -> None:
    """B049."""
    enqueued, looked = threading.Event(), threading.Event()

    def enqueue(number: int) -> None:
        with transaction.atomic():
            Order.objects.create(number="1")
            crowd.enqueue("read the order")
            enqueued.set()
            assert looked.wait(LONGEST)
            transaction.set_rollback(not commits)

    def claim(number: int) -> list[bool]:
        assert enqueued.wait(LONGEST)
        assert crowd.next_claim_at() is None
        assert not LiveJob.objects.exists()
        looked.set()
        if commits:
            wait_until(crowd.next_claim_at)
        return [Order.objects.filter(number="1").exists() for _ in crowd.claim("w")]

    acts: list[Callable[[int], Any]] = [enqueue, claim]
    outcomes = good(at_once(2, lambda number: acts[number](number)))

    assert outcomes == [None, [True] if commits else []]


def test_a_nested_rollback_takes_only_its_own_job() -> None:
    """B051."""

    class Nested(Exception):
        pass

    with transaction.atomic():
        crowd.enqueue("a")
        with pytest.raises(Nested), transaction.atomic():
            crowd.enqueue("b")
            raise Nested
        crowd.enqueue("c")

    assert [job.payload for job in crowd.claim("w", limit=9)] == ["a", "c"]


def defer() -> None:
    """Let this thread's transactions begin without the write lock, SQLite's default."""
    there: Any = connection
    there.ensure_connection()
    there.transaction_mode = None


def answer(view: Callable[[str], int], key: str) -> int | Exception:
    try:
        return view(key)
    except Exception as error:
        return error


def warned(code: str) -> list[checks.CheckMessage]:
    found = check_sqlite_options(None)
    return [each for each in found if str(each.id).endswith(code)]
