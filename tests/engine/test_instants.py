"""
Time in the columns: filters, forms and fixtures, far years, naive and local times.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models import F, Max, Min
from django.forms import modelform_factory
from django.test import override_settings

from django_alkstore import clock, queue
from django_alkstore.models import DeadJob, LiveJob, Result
from tests.engine.scenes import DAY, NOW, claimed, store
from tests.engine.steps import after, row, run_sql, take, us

pytestmark = pytest.mark.django_db
q = queue("q")


def of(**lookups: Any) -> list[str]:
    """Return the labels of the jobs that a filter finds, by run_at."""
    jobs = LiveJob.objects.filter(**lookups).order_by("run_at")
    return [job.payload.strip('"') for job in jobs]


def test_jobs_are_filtered_and_ordered_by_instants() -> None:
    store("late", delay=60)
    store("early", delay=5)
    store("now")
    middle = clock.to_instant(us(5))

    assert of() == ["now", "early", "late"]
    assert of(run_at=middle) == ["early"]
    assert of(run_at__gt=middle) == ["late"]
    assert of(run_at__lte=middle.isoformat()) == ["now", "early"]
    assert of(run_at__range=(middle, clock.to_instant(us(99)))) == ["early", "late"]
    assert of(run_at__in=[middle, clock.to_instant(NOW)]) == ["now", "early"]
    assert of(run_at__lt=us(5)) == ["now"]
    assert of(run_at=F("created_at")) == ["now"]
    assert of(expires_at__isnull=True) == ["now", "early", "late"]


def test_jobs_are_filtered_by_lengths_of_time() -> None:
    store("short", visibility_timeout=1.5)
    store("long", visibility_timeout=90, timeout=60)

    assert of(visibility_timeout=timedelta(seconds=1.5)) == ["short"]
    assert of(visibility_timeout__gt="0:01:00") == ["long"]
    assert of(timeout__isnull=False) == ["long"]
    assert of(timeout__lt=F("visibility_timeout")) == ["long"]


def test_aggregates_are_datetimes_too() -> None:
    store("a")
    store("b", delay=60)

    found = LiveJob.objects.aggregate(
        first=Min("run_at"), longest=Max("visibility_timeout")
    )

    assert found == {"first": clock.to_instant(NOW), "longest": timedelta(seconds=10)}


def test_an_instant_is_exact_to_the_microsecond() -> None:
    at = datetime(2026, 7, 1, 12, 0, 0, 123_457, tzinfo=ZoneInfo("Asia/Kathmandu"))

    job = q.enqueue("x", run_at=at)

    assert row(job.pk).run_at == at
    (stored,) = run_sql('SELECT run_at FROM "__alkstore_live"')
    assert stored == (clock.from_instant(at, "at"),)


def test_the_models_can_be_cleaned() -> None:
    (job_id,) = store("a", timeout=5)
    job = row(job_id)

    job.full_clean()
    job.run_at = "soon"  # type: ignore[assignment]  # what a form might hand in

    with pytest.raises(ValidationError) as caught:
        job.full_clean()
    assert set(caught.value.message_dict) == {"run_at"}


@override_settings(TIME_ZONE="America/New_York")
def test_a_form_reads_and_writes_local_time() -> None:
    (job_id,) = store("a")
    form_class = modelform_factory(LiveJob, fields=["run_at", "timeout"])

    form = form_class(
        {"run_at": "2026-07-01 12:00:00", "timeout": "0:01:30"}, instance=row(job_id)
    )
    assert form.is_valid(), form.errors
    form.save()

    assert row(job_id).run_at == datetime(2026, 7, 1, 16, tzinfo=UTC)
    assert row(job_id).timeout == timedelta(seconds=90)
    assert "2026-07-01 12:00:00" in str(form_class(instance=row(job_id)))


@pytest.mark.parametrize("kind", ["json", "xml", "jsonl"])
def test_rows_survive_dumpdata_and_loaddata(kind: str, tmp_path: Path) -> None:
    store("scheduled", delay=60, expires=90, timeout=timedelta(days=3, microseconds=7))
    (kept,) = claimed("kept", result_ttl=DAY, at=us(1))
    (failed,) = claimed("failed", dead_letter_retention=DAY, at=us(2))
    with after(3):
        kept.ack({"a": [1.0, 2**70]})
        failed.fail("no")
    models = [LiveJob, DeadJob, Result]
    before = [list(model._default_manager.values()) for model in models]
    file = tmp_path / f"jobs.{kind}"

    call_command(
        "dumpdata", "django_alkstore", format=kind, output=str(file), verbosity=0
    )
    for model in models:
        model._default_manager.all().delete()
    call_command("loaddata", str(file), verbosity=0)

    assert [list(model._default_manager.values()) for model in models] == before


YEARS = [datetime(4000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize("at", YEARS, ids=["4000", "9000"])
def test_a_job_of_a_far_year_is_stored_shown_and_sorted(at: datetime) -> None:
    """B149."""
    job = q.enqueue("far", run_at=at)
    store("near", delay=60)

    assert job.state == "scheduled"
    assert of() == ["near", "far"]
    found = q.get_job(job.pk)
    assert found is not None
    assert found.run_at == at


@pytest.mark.parametrize("at", YEARS, ids=["4000", "9000"])
def test_a_far_job_is_waited_for_and_keeps_no_other_waiting(at: datetime) -> None:
    """B147."""
    q.enqueue("far", run_at=at)
    assert q.next_claim_at() == at
    assert q.claim("w") == []

    q.enqueue("now")

    assert [job.payload for job in q.claim("w", 9)] == ["now"]
    (survey,) = LiveJob.objects.survey()
    assert survey.next_at is not None
    assert survey.wait is not None


def test_a_delay_of_eighty_thousand_years_is_refused() -> None:
    """B149."""
    with pytest.raises(ValueError, match="delay must not be over 7,000 years"):
        q.enqueue("x", delay=12 * 86_400 * 86_400 * 86_400)

    assert not LiveJob.objects.exists()


FAR = [2**63 - 1, -(2**63), clock.MAX_INSTANT + 1]
SPANS = ["visibility_timeout", "dead_letter_retention", "result_ttl", "timeout"]
INSTANTS = ["run_at", "created_at", "expires_at", "claim_expires_at"]


@pytest.mark.parametrize("column", INSTANTS + SPANS)
@pytest.mark.parametrize("far", FAR)
def test_raw_sql_cannot_store_what_a_statement_would_overflow_with(
    column: str, far: int
) -> None:
    store("a", delay=60)

    with pytest.raises(IntegrityError), transaction.atomic():
        run_sql(f'UPDATE "__alkstore_live" SET {column} = %s', [far])


@pytest.mark.parametrize("column", SPANS)
def test_no_length_of_time_is_negative(column: str) -> None:
    store("a")

    with pytest.raises(IntegrityError), transaction.atomic():
        run_sql(f'UPDATE "__alkstore_live" SET {column} = -1')


def test_the_last_instant_there_is_can_be_stored_and_waited_for() -> None:
    (job_id,) = store("a", delay=60)
    run_sql('UPDATE "__alkstore_live" SET run_at = %s', [clock.MAX_INSTANT])

    assert row(job_id).run_at == clock.to_instant(clock.MAX_INSTANT)
    assert q.next_claim_at() == clock.to_instant(clock.MAX_INSTANT)
    assert take() == []


@override_settings(TIME_ZONE="America/Los_Angeles")
def test_a_naive_time_is_refused_and_an_aware_one_is_exact() -> None:
    """B150."""
    with pytest.raises(ValueError, match="run_at is a naive datetime"):
        q.enqueue("x", run_at=datetime.now() + timedelta(minutes=3))
    at = datetime.now(ZoneInfo("Asia/Tokyo")) + timedelta(minutes=3)

    job = q.enqueue("x", run_at=at)

    assert (job.state, job.run_at) == ("scheduled", at)
    assert q.claim("w") == []
