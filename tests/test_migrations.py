"""The migrations make the tables that the models describe, and can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, connections, models

from django_alkstore import clock, queue
from django_alkstore.backoff import DEFAULT_STAMP
from django_alkstore.models import DeadJob, LiveJob
from django_alkstore.models.job import JobRow

MODELS = list(apps.get_app_config("django_alkstore").get_models())
# What a plain INSERT of queue and payload gets from the database itself.
CONSTANTS = {
    "task": "", "priority": 0, "attempts": 0, "max_attempts": 3, "worker_id": "",
    "expires_at": None, "claimed_at": None, "claim_expires_at": None,
    "visibility_timeout": 300 * clock.SECOND, "backoff": DEFAULT_STAMP, "timeout": None,
    "dead_letter_retention": None, "result_ttl": None, "unique_key": None,
}  # fmt: skip


def test_the_models_have_no_change_without_a_migration(db: None) -> None:
    """B118."""
    output = StringIO()

    call_command("makemigrations", check=True, dry_run=True, stdout=output)

    assert "No changes detected" in output.getvalue()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_table_has_the_columns_of_the_model(
    db: None, model: type[models.Model]
) -> None:
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(
            cursor, model._meta.db_table
        )

    found = {column.name: bool(column.null_ok) for column in described}
    assert found == {field.column: field.null for field in model._meta.concrete_fields}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_table_has_the_indexes_and_constraints_of_the_model(
    db: None, model: type[models.Model]
) -> None:
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, model._meta.db_table)

    named = {name for name in found if name.startswith("alkstore_")}
    declared = {index.name for index in model._meta.indexes}
    assert named == declared | {each.name for each in model._meta.constraints}
    primary = [each["columns"] for each in found.values() if each["primary_key"]]
    assert primary == [[model._meta.pk.column if model._meta.pk else ""]]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_database_has_a_default_where_the_model_says_so(
    db: None, model: type[models.Model], engine: str
) -> None:
    declared = {
        field.column for field in model._meta.concrete_fields if field.has_db_default()
    }

    assert _columns_with_default(model._meta.db_table, engine) == declared


def test_a_job_row_needs_a_queue_and_a_payload_and_nothing_else() -> None:
    required = {
        field.name
        for field in JobRow._meta.concrete_fields
        if not field.null and not field.has_db_default()
    }

    assert required == {"queue", "payload"}


def test_a_plain_insert_of_queue_and_payload_is_a_job(db: None, engine: str) -> None:
    before = clock.host_now()
    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT INTO "__alkstore_live" (queue, payload) VALUES (%s, %s)',
            ["q", '{"a": 1}'],
        )
        names = ", ".join(CONSTANTS)
        cursor.execute(
            f'SELECT state, run_at, created_at, {names} FROM "__alkstore_live"'
        )
        ((state, run_at, created_at, *values),) = cursor.fetchall()

    assert dict(zip(CONSTANTS, values, strict=True)) == CONSTANTS
    assert state == "scheduled"
    # Up to a millisecond back: SQLite before 3.42 counts no finer.
    assert before - 1_000 <= run_at <= clock.host_now()
    assert before - 1_000 <= created_at <= clock.host_now()
    (job,) = queue("q").claim("w")
    assert (job.payload, job.attempts, job.max_attempts) == ({"a": 1}, 1, 3)


def test_a_plain_insert_with_a_run_at_ahead_waits(db: None) -> None:
    ahead = clock.host_now() + 60 * clock.SECOND
    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT INTO "__alkstore_live" (queue, payload, run_at)'
            " VALUES (%s, %s, %s)",
            ["q", "1", ahead],
        )

    assert queue("q").claim("w") == []
    assert queue("q").next_claim_at() == clock.to_instant(ahead)


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_the_migrations_can_be_taken_back_and_made_again(taken_back: str) -> None:
    tables = {model._meta.db_table for model in MODELS}
    assert not tables & set(connections[taken_back].introspection.table_names())

    call_command("migrate", "django_alkstore", database=taken_back, verbosity=0)

    assert tables <= set(connections[taken_back].introspection.table_names())
    q = queue("q", using=taken_back)
    job = q.enqueue({"a": 1})
    assert [claimed.id for claimed in q.claim("w")] == [job.pk]


@pytest.mark.django_db(transaction=True)
def test_no_id_is_used_again_when_a_migration_rebuilds_the_emptied_table() -> None:
    q = queue("q")
    q.enqueue_many(range(5))
    for job in q.claim("w", limit=5):
        job.fail()
    last = max(DeadJob.objects.values_list("pk", flat=True))

    _rebuild(LiveJob)
    call_command("migrate", verbosity=0)

    assert q.enqueue("next").pk > last


@pytest.mark.django_db(transaction=True)
def test_no_id_is_used_again_when_rows_come_from_another_database() -> None:
    top = 1_000_000 + (
        LiveJob.objects.order_by("pk").values_list("pk", flat=True).last() or 0
    )
    DeadJob.objects.create(id=top, queue="q", payload="1", reason="failed")

    call_command("migrate", verbosity=0)

    assert queue("q").enqueue("next").pk > top


@pytest.fixture
def taken_back(transactional_db: None) -> Iterator[str]:
    """A database whose tables are taken back; whatever happens, it has them again."""
    call_command("migrate", "django_alkstore", "zero", database="other", verbosity=0)
    yield "other"
    call_command("migrate", database="other", verbosity=0)


def _rebuild(model: type[models.Model]) -> None:
    """Do as a migration that SQLite has no ALTER TABLE for; elsewhere nothing."""
    with connection.schema_editor() as editor:
        remake: Any = getattr(editor, "_remake_table", None)
        if remake is not None:
            remake(model)


def _columns_with_default(table: str, engine: str) -> set[str]:
    with connection.cursor() as cursor:
        if engine == "sqlite":
            cursor.execute(f'PRAGMA table_info("{table}")')
            return {row[1] for row in cursor.fetchall() if row[4] is not None}
        cursor.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_name = %s AND column_default IS NOT NULL",
            [table],
        )
        return {name for (name,) in cursor.fetchall()}
