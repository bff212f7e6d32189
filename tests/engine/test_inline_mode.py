"""Inline mode: the same checks and the same rows, and the job runs in the call."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings

from django_alkstore import InvalidPayload, task
from django_alkstore.models import DeadJob, LiveJob
from django_alkstore.testing import inline, run_jobs
from tests import tasks
from tests.models import Effect

pytestmark = pytest.mark.django_db


def effects() -> list[str]:
    return list(Effect.objects.order_by("pk").values_list("key", flat=True))


def test_a_job_has_run_when_enqueue_returns() -> None:
    with inline() as report:
        job = tasks.add.enqueue(1, 2)

        assert tasks.add.get_result(job.pk).return_value == 3
    assert (report.ran, report.succeeded) == (1, 1)


def test_the_setting_does_the_same() -> None:
    with override_settings(ALKSTORE={"INLINE": True}):
        tasks.record.enqueue("a")
        tasks.record.enqueue_many([("b",), ("c",)])
        async_to_sync(tasks.record.aenqueue)("d")

    assert effects() == ["a", "b", "c", "d"]


def test_outside_the_block_jobs_wait_again() -> None:
    with inline():
        pass
    tasks.record.enqueue("a")

    assert effects() == []


def test_other_settings_stay_as_they_are() -> None:
    with override_settings(ALKSTORE={"MAX_PAYLOAD_BYTES": 100}), inline():
        with pytest.raises(InvalidPayload):
            tasks.record.enqueue("x" * 200)


@pytest.mark.parametrize("value", [object(), datetime.now(UTC), {1: 2}, (1,)])
def test_what_is_not_json_is_refused_as_ever(value: Any) -> None:
    """B092."""
    with inline(), pytest.raises(TypeError, match="argument key"):
        tasks.record.enqueue(value)

    assert effects() == []


def test_arguments_that_do_not_fit_are_refused_as_ever() -> None:
    wrong: Any = tasks.record
    with inline(), pytest.raises(TypeError, match="missing"):
        wrong.enqueue()


def test_a_job_for_later_waits() -> None:
    with inline():
        tasks.record.using(delay=60).enqueue("later")

    assert effects() == []
    assert run_jobs(until=60).succeeded == 1


def test_a_failure_stays_in_the_job() -> None:
    with inline() as report:
        tasks.fail.using(backoff=60).enqueue("no")

    assert [str(error) for error in report.errors] == ["no"]
    assert LiveJob.objects.get().state == "scheduled"


def test_a_failure_comes_out_of_the_call_if_asked_for() -> None:
    with inline(raise_errors=True), pytest.raises(tasks.Boom):
        tasks.fail.using(max_attempts=1).enqueue()

    assert DeadJob.objects.count() == 1


def test_a_job_that_a_task_enqueues_runs_after_it_in_the_same_call(
    own_registry: None,
) -> None:
    @task
    def outer() -> None:
        tasks.record.enqueue("follow-up")
        Effect.objects.create(key="outer")

    with inline() as report:
        outer.enqueue()

    assert effects() == ["outer", "follow-up"]
    assert report.ran == 2


def test_a_transactional_task_and_its_follow_up_run() -> None:
    with inline() as report:
        tasks.notify.enqueue(1)

    assert effects() == ["notified 1", "followed 1"]
    assert report.succeeded == 2


def test_a_unique_job_that_runs_frees_its_key() -> None:
    with inline():
        first = tasks.record.using(unique_key="k").enqueue("a")
        second = tasks.record.using(unique_key="k").enqueue("b")

    assert (first.created, second.created) == (True, True)
    assert effects() == ["a", "b"]
