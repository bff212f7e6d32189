"""The counter of ids: above all three tables whatever becomes of the live one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, connections, models
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_alkstore import queue, sql
from django_alkstore.counter import after_migrate, raise_counter
from django_alkstore.jobs import ClaimedJob
from django_alkstore.models import DeadJob, LiveJob, Result
from tests.engine.scenes import DAY, claimed
from tests.engine.steps import after, run_sql

pytestmark = pytest.mark.django_db
q = queue("q")


def next_id() -> int:
    return q.enqueue("next").pk


def forget() -> None:
    """Let the live table's counter start anew, as a rebuilt empty table's does."""
    LiveJob.objects.all().delete()
    if connection.vendor == "sqlite":
        run_sql("DELETE FROM sqlite_sequence WHERE name = '__alkstore_live'")
    else:
        run_sql("""ALTER SEQUENCE "__alkstore_live_id_seq" RESTART""")


def in_live() -> int:
    return next_id()


def in_dead() -> int:
    job_id: int = claimed("a")[0].id
    with after(1):
        q.cancel(job_id)
    return job_id


def in_results() -> int:
    jobs: list[ClaimedJob] = claimed("a", result_ttl=DAY)
    with after(1):
        q.ack_many(jobs)
    return jobs[0].id


@pytest.mark.parametrize("make", [in_dead, in_results])
def test_a_counter_that_was_forgotten_is_raised_above_the_ids_in_use(
    make: Callable[[], int],
) -> None:
    used = [make() for _ in range(3)]
    forget()

    assert raise_counter("default") == max(used)

    assert next_id() > max(used)


def test_without_the_helper_an_id_would_be_used_again() -> None:
    used = [in_dead() for _ in range(3)]
    forget()

    assert next_id() <= max(used)


@pytest.mark.parametrize("table", [LiveJob, DeadJob, Result])
def test_the_highest_of_the_three_tables_counts(table: type[models.Model]) -> None:
    top = max(in_dead(), in_results(), in_live()) + 10**6
    columns: dict[type[models.Model], dict[str, Any]] = {
        DeadJob: {"reason": "failed"},
        Result: {"value": "1", "keep_until": 1},
    }
    table._default_manager.create(
        id=top, queue="q", payload="1", **columns.get(table, {})
    )

    assert raise_counter("default") == top

    assert next_id() > top


def test_the_counter_is_never_lowered() -> None:
    last = in_live()
    LiveJob.objects.all().delete()
    in_dead()

    raise_counter("default")
    sql.raise_counter("default", "__alkstore_live", 1)

    assert next_id() > last


def test_empty_tables_have_nothing_to_be_above() -> None:
    forget()

    assert raise_counter("default") == 0

    assert next_id() > 0


def test_a_table_that_never_had_a_row_has_a_counter_to_raise() -> None:
    forget()

    sql.raise_counter("default", "__alkstore_live", 500)

    assert next_id() > 500


@pytest.mark.parametrize("ended", ["acked", "cleared", "rolled into dead and swept"])
def test_an_id_is_not_used_again_after_its_row_is_gone(ended: str) -> None:
    (job,) = claimed("a", dead_letter_retention=1)
    with after(1):
        if ended == "acked":
            job.ack()
        elif ended == "cleared":
            job.release()
            q.clear()
        else:
            job.fail()
    with after(9):
        DeadJob.objects.sweep_retention()

    assert q.get_job(job.id) is None
    assert next_id() > job.id


def test_migrate_and_flush_end_by_raising_it() -> None:
    top = in_dead()
    forget()

    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")

    assert next_id() > top


def test_a_flush_leaves_a_table_that_works(committing: None) -> None:
    in_dead()

    call_command("flush", interactive=False, verbosity=0)

    assert not DeadJob.objects.exists()
    first, second = next_id(), next_id()
    assert second == first + 1


def test_rows_moved_to_another_database_keep_their_ids_to_themselves(
    db: None, tmp_path: Path
) -> None:
    dead, finished = in_dead(), in_results()
    file = tmp_path / "jobs.json"
    call_command("dumpdata", "django_alkstore", output=str(file), verbosity=0)
    for model in (LiveJob, DeadJob, Result):
        model._default_manager.all().delete()
    forget()

    call_command("loaddata", str(file), verbosity=0)
    raise_counter("default")

    assert q.get_job(dead) is not None
    assert next_id() > max(dead, finished)


@pytest.mark.django_db(databases=["default", "other"])
def test_a_database_without_these_tables_is_left_alone() -> None:
    class Nowhere:
        def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
            return app_label != "django_alkstore"

    with (
        override_settings(DATABASE_ROUTERS=[Nowhere()]),
        CaptureQueriesContext(connections["other"]) as asked,
    ):
        after_migrate(sender=apps.get_app_config("django_alkstore"), using="other")

    assert len(asked) == 0
