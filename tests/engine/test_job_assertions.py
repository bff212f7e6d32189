"""Assertions on what was enqueued, and the fixtures for pytest."""

from __future__ import annotations

import pytest

from django_alkstore import queue
from django_alkstore.testing import (
    Report,
    assert_enqueued,
    assert_enqueued_count,
    assert_not_enqueued,
    enqueued,
    run_jobs,
)
from django_alkstore.testing.pytest_plugin import (  # noqa: F401
    Jobs,
    alkstore_inline,
    alkstore_jobs,
)
from tests import tasks

pytestmark = pytest.mark.django_db


def test_enqueued_lists_live_jobs_in_their_order() -> None:
    first = tasks.record.enqueue("a")
    raw = queue("raw").enqueue(1)
    third = tasks.add.using(delay=60, priority=3).enqueue(1, 2)

    assert [job.pk for job in enqueued()] == [first.pk, raw.pk, third.pk]
    assert [job.pk for job in enqueued(tasks.add)] == [third.pk]
    assert [job.pk for job in enqueued(queue="raw")] == [raw.pk]


def test_arguments_match_however_they_were_given() -> None:
    tasks.record.enqueue("a")
    tasks.record.enqueue(key="a", note="")

    assert len(assert_enqueued(tasks.record, "a")) == 2
    assert len(assert_enqueued(tasks.record, key="a")) == 2
    assert len(assert_enqueued(tasks.record, "a", "")) == 2
    assert_not_enqueued(tasks.record, "a", note="other")


def test_without_arguments_any_job_of_the_task_matches() -> None:
    tasks.record.using(priority=4).enqueue("a")

    [job] = assert_enqueued(tasks.record)

    assert job.priority == 4
    assert_not_enqueued(tasks.add)


def test_the_failure_says_what_is_stored() -> None:
    tasks.record.enqueue("a")

    with pytest.raises(AssertionError) as caught:
        assert_enqueued(tasks.record, "b")

    assert "no job of tests.tasks.record('b') is stored" in str(caught.value)
    assert '"args": ["a"]' in str(caught.value)


def test_with_nothing_stored_the_failure_says_so() -> None:
    with pytest.raises(AssertionError, match="none is stored at all"):
        assert_enqueued(tasks.record)


def test_counts_are_asserted() -> None:
    tasks.record.enqueue_many([("a",), ("a",), ("b",)])

    assert_enqueued_count(2, tasks.record, "a")
    assert_enqueued_count(0, tasks.add)
    with pytest.raises(AssertionError, match="3 jobs .* not 2"):
        assert_enqueued_count(2, tasks.record)


def test_that_something_was_not_enqueued_is_asserted() -> None:
    assert_not_enqueued()
    tasks.record.enqueue("a")

    with pytest.raises(AssertionError, match="any task"):
        assert_not_enqueued()
    with pytest.raises(AssertionError, match="record"):
        assert_not_enqueued(tasks.record)


def test_arguments_that_do_not_fit_the_task_are_a_slip_of_the_test() -> None:
    with pytest.raises(TypeError):
        assert_not_enqueued(tasks.record, kee="a")


def test_a_job_that_has_run_is_no_longer_enqueued() -> None:
    tasks.record.enqueue("a")
    run_jobs()

    assert_not_enqueued(tasks.record)


def test_the_fixture_runs_and_looks(alkstore_jobs: Jobs) -> None:  # noqa: F811
    tasks.record.enqueue("a")

    alkstore_jobs.assert_enqueued(tasks.record, "a")
    assert alkstore_jobs.run().succeeded == 1
    alkstore_jobs.assert_not_enqueued()


def test_the_inline_fixture_runs_at_once(alkstore_inline: Report) -> None:  # noqa: F811
    tasks.record.enqueue("a")

    assert alkstore_inline.succeeded == 1
