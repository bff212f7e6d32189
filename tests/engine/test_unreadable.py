"""Rows that cannot be read: all that lists, counts or shows jobs goes on."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from django_alkstore import queue
from django_alkstore.models import DeadJob, LiveJob, Result
from django_alkstore.testing import run_jobs
from tests import tasks
from tests.engine.steps import run_sql

pytestmark = pytest.mark.django_db
q = queue("default")
TEXTS = ["", "hello", '{"a":', "NaN"]


@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_a_live_and_a_dead_row_are_shown_as_unreadable(text: str) -> None:
    """B084: get_job, stats and the models' own lists, before and after its death."""
    broken = tasks.noop.enqueue()
    good = tasks.noop.enqueue()
    run_sql(
        'UPDATE "__alkstore_live" SET payload = %s WHERE id = %s', [text, broken.pk]
    )

    assert len(list(LiveJob.objects.all())) == 2
    assert str(LiveJob.objects.get(pk=broken.pk))
    assert q.stats().pending == 2
    call_command("alkstore_stats", stdout=StringIO())
    live = q.get_job(broken.pk)
    assert live is not None
    assert (live.readable, live.payload, live.payload_text) == (False, None, text)
    other = q.get_job(good.pk)
    assert other is not None
    assert other.readable
    run_jobs()
    call_command("alkstore_stats", "--json", stdout=StringIO())
    assert str(DeadJob.objects.get())
    dead = q.get_job(broken.pk)
    assert dead is not None
    assert (dead.state, dead.reason, dead.readable) == ("dead", "invalid", False)
    assert dead.payload_text == text
    result = tasks.noop.get_result(broken.pk)
    assert (result.state, result.attempts) == ("dead", dead.attempts)


@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_a_result_is_shown_as_unreadable(text: str) -> None:
    """B084: a broken result says so where it is asked for, and breaks no look."""
    job = tasks.add.enqueue(1, 2)
    run_jobs()
    run_sql('UPDATE "__alkstore_results" SET value = %s', [text])

    assert str(Result.objects.get())
    found = q.get_job(job.pk)
    assert found is not None
    assert (found.state, found.has_result, found.result) == ("finished", True, None)
    assert (found.readable, found.result_readable) == (True, False)
    with pytest.raises(ValueError, match="cannot be read"):
        _ = tasks.add.get_result(job.pk).return_value


def test_a_finished_jobs_payload_may_be_unreadable_and_its_result_is_there() -> None:
    """B084: each column by itself."""
    job = tasks.add.enqueue(1, 2)
    run_jobs()
    run_sql("""UPDATE "__alkstore_results" SET payload = '{'""")

    result = tasks.add.get_result(job.pk)

    assert (result.return_value, result.job.readable) == (3, False)


def test_progress_that_is_unreadable_is_none() -> None:
    """B084: a history is shown without it."""
    job = tasks.report.using(result_ttl=60).enqueue(1)
    run_jobs()
    run_sql("""UPDATE "__alkstore_attempts" SET progress = '{'""")

    (attempt,) = tasks.report.get_result(job.pk).job.attempts_history

    assert attempt.progress is None
    assert "step 1" in attempt.log
