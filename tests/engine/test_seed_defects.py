"""
The defects D-1 to D-7 of the seeds, each as a check that holds here.

And each check is shown to be one: with the cure taken away it fails.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from django_alkstore import clock, sql
from django_alkstore.jobs import Failure
from django_alkstore.managers import base, claiming, looking, settling, storing
from django_alkstore.models import DeadJob, LiveJob, QueueState
from tests.engine.faults import Fault, Injected
from tests.engine.scenes import (
    DAY,
    EARLIER,
    NOW,
    claimed,
    commits,
    live,
    only_id,
    store,
)

Patch = pytest.MonkeyPatch
no = Failure.said("it failed")


class Defect(NamedTuple):
    check: Callable[[], None]
    uncure: Callable[[Patch], None]


def fail_keeps_the_job() -> None:
    """D-1: fail() destroyed a job that it could not bury, and said "not our claim"."""
    (job,) = claimed("a")
    _put_in_the_way(job.id)

    caught = _caught(lambda: live.fail(job, failure=no))

    assert isinstance(caught, IntegrityError)
    assert _live_ids() == {job.id}
    _clear_the_way()
    assert live.fail(job, failure=no)
    assert _live_ids() == set() and _dead_ids() == {job.id}


def moves_are_whole() -> None:
    """D-2: jobs that died together were lost when the second could not be buried."""
    moves: list[tuple[Callable[[], Any], Callable[[Any], object]]] = [
        (_two_spent, lambda jobs: live.sweep_expired("q")),
        (_two_spent, lambda jobs: live.claim("q", worker_id="v", limit=1, raw=True)),
        (_two_expired, lambda ids: live.sweep_expired("q")),
        (_two_expired, lambda ids: live.claim("q", worker_id="v", limit=1, raw=True)),
        (
            lambda: claimed("a", max_attempts=1),
            lambda jobs: live.retry(jobs[0], delay=0, failure=no),
        ),
    ]
    for arrange, move in moves:
        scene = arrange()
        ids = _live_ids()
        _put_in_the_way(max(ids))

        caught = _caught(partial(move, scene))

        assert isinstance(caught, IntegrityError)
        assert _live_ids() == ids
        _clear_the_way()
        move(scene)
        assert _dead_ids() == ids
        DeadJob.objects.all().delete()


def retry_tells_of_an_error() -> None:
    """D-3: retry() took an error of the database for a claim that was not ours."""
    (job,) = claimed("a")

    _assert_raises_each_error(lambda: live.retry(job, delay=0, failure=no))

    assert live.retry(job, delay=0, failure=no) == "retried"


def no_answer_hides_an_error() -> None:
    """D-4: lock_acquire() said no where the database was broken; so might others."""
    (job,) = claimed("a")
    (waiting,) = store("b")
    answers: list[Callable[[], object]] = [
        lambda: live.heartbeat(job),
        lambda: live.ack(job),
        lambda: live.ack(job, lapsed_ok=True),
        lambda: live.snooze(job, 1),
        lambda: live.release_many([job]),
        lambda: live.cancel(waiting),
        lambda: live.edit(waiting, priority=1),
        lambda: live.next_claim_at("q"),
        lambda: QueueState.objects.is_paused("q"),
        lambda: QueueState.objects.pause("q"),
        lambda: QueueState.objects.resume("q"),
    ]

    for answer in answers:
        _assert_raises_each_error(answer)


def get_job_tells_of_an_error() -> None:
    """D-5: get_job() took an error of the database for a job that is not there."""
    job_id = only_id(store)()

    _assert_raises_each_error(lambda: live.get_job(job_id))

    if (
        sql.vendor_of("default") == "sqlite"
    ):  # where a column holds whatever was written
        with connection.cursor() as cursor:
            cursor.execute("UPDATE \"__alkstore_live\" SET claimed_at = 'yesterday'")
        assert isinstance(_caught(lambda: live.get_job(job_id)), ValueError)


def zombies_are_reached() -> None:
    """D-6: nothing reached a row whose worker had died in its last attempt."""
    reaches: list[Callable[[], object]] = [
        lambda: live.sweep_expired("q"),
        lambda: live.claim("q", worker_id="v", limit=1, raw=True),
    ]
    for reach in reaches:
        (spent,) = claimed("spent", at=EARLIER, max_attempts=1)
        (late,) = claimed("late", at=EARLIER, expires=20)

        reach()

        assert _live_ids() == set()
        assert DeadJob.objects.get(pk=spent.id).reason == "exhausted"
        assert DeadJob.objects.get(pk=late.id).reason == "expired"


def a_row_carries_its_stamps() -> None:
    """D-7: no claimed_at, no stamps by row, and get_job() knew no dead job."""
    options: dict[str, Any] = {
        "timeout": 7, "dead_letter_retention": DAY, "result_ttl": 2 * DAY,
        "backoff": 3, "max_attempts": 9,
    }  # fmt: skip
    (short,) = claimed("short", visibility_timeout=10, **options)
    (long,) = claimed("long", visibility_timeout=500, **options)

    for job, held in ((short, 10), (long, 500)):
        assert job.claim_expires_at_us == NOW + held * clock.SECOND
    running = live.get_job(short.id)
    live.fail(short, failure=no)
    dead = live.get_job(short.id)

    assert running is not None and dead is not None
    assert (running.state, dead.state, dead.reason) == ("processing", "dead", "failed")
    assert dead.last_error == "it failed"
    assert dead.died_at == clock.to_instant(NOW)
    for snapshot in (running, dead):
        assert snapshot.claimed_at == clock.to_instant(NOW)
        assert snapshot.visibility_timeout == timedelta(seconds=10)
        assert snapshot.timeout == timedelta(seconds=7)
        assert snapshot.dead_letter_retention == timedelta(days=1)
        assert snapshot.result_ttl == timedelta(days=2)
        assert snapshot.backoff == '{"seconds": 3.0, "kind": "constant"}'
        assert snapshot.max_attempts == 9


def without_savepoints(patch: Patch) -> None:
    for module in (settling, claiming):
        bare = SimpleNamespace(atomic=lambda **options: nullcontext())
        patch.setattr(module, "transaction", bare)


def with_errors_swallowed(patch: Patch) -> None:
    def swallowing(*arguments: Any) -> list[Any]:
        try:
            return base.fetch(*arguments)
        except DatabaseError:
            return []

    for module in (settling, storing, claiming):
        patch.setattr(module, "fetch", swallowing)


def with_get_job_swallowing(patch: Patch) -> None:
    real = looking.Looking.get_job

    def swallowing(manager: Any, job_id: int) -> object:
        try:
            return real(manager, job_id)
        except (DatabaseError, ValueError):
            return None

    patch.setattr(looking.Looking, "get_job", swallowing)


def with_moves_of_waiting_rows_only(patch: Patch) -> None:
    def waiting_only(text: str) -> str:
        return text.replace("WHERE queue", "WHERE state <> 'processing' AND queue")

    _patch_statements(patch, exhaust=waiting_only, expire=waiting_only)


def with_one_timeout_for_all(patch: Patch) -> None:
    def fixed(text: str) -> str:
        return text.replace("+ visibility_timeout", "+ 10000000")

    _patch_statements(patch, claim_raw=fixed)


DEFECTS = {
    "D-1": Defect(fail_keeps_the_job, without_savepoints),
    "D-2": Defect(moves_are_whole, without_savepoints),
    "D-3": Defect(retry_tells_of_an_error, with_errors_swallowed),
    "D-4": Defect(no_answer_hides_an_error, with_errors_swallowed),
    "D-5": Defect(get_job_tells_of_an_error, with_get_job_swallowing),
    "D-6": Defect(zombies_are_reached, with_moves_of_waiting_rows_only),
    "D-7": Defect(a_row_carries_its_stamps, with_one_timeout_for_all),
}


@commits
@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_the_defect_is_cured(committing: None, defect: Defect) -> None:
    with clock.pretend(NOW):
        defect.check()


@commits
@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_the_check_fails_without_the_cure(
    committing: None, monkeypatch: Patch, defect: Defect
) -> None:
    defect.uncure(monkeypatch)

    with clock.pretend(NOW), pytest.raises(AssertionError):
        defect.check()


def _two_spent() -> Any:
    return claimed("a", "b", at=EARLIER, max_attempts=1)


def _two_expired() -> Any:
    return store("a", "b", at=EARLIER, expires=1)


def _put_in_the_way(job_id: int) -> None:
    # No id is used twice, so this is only how a test makes an INSERT fail for real.
    DeadJob.objects.create(id=job_id, queue="in the way", payload="1", reason="failed")


def _clear_the_way() -> None:
    DeadJob.objects.filter(queue="in the way").delete()


def _live_ids() -> set[int]:
    return set(LiveJob.objects.values_list("pk", flat=True))


def _dead_ids() -> set[int]:
    return set(DeadJob.objects.values_list("pk", flat=True))


def _caught(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def _assert_raises_each_error(call: Callable[[], object]) -> None:
    for at in range(100):
        fault = Fault(at)
        with transaction.atomic():
            with connection.execute_wrapper(fault):
                caught = _caught(call)
            transaction.set_rollback(True)
        if fault.error is None:
            assert at > 0, "it makes no statement"
            return
        assert isinstance(caught, Injected), f"statement {at}: {caught!r}"


def _patch_statements(patch: Patch, **changes: Callable[[str], str]) -> None:
    engine = sql.vendor_of("default")
    old = sql.statements_for("default")
    new = {name: change(getattr(old, name)) for name, change in changes.items()}
    assert all(text != getattr(old, name) for name, text in new.items())
    patch.setitem(sql._STATEMENTS, engine, dataclasses.replace(old, **new))
