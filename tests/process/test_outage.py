"""A database that does not answer, for a while."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection, transaction

from django_alkstore.models import DeadJob, Worker
from tests import tasks
from tests.models import Effect
from tests.process.conftest import Gate, drained
from tests.process.proxy import Relay
from tests.processes import ROOT, WorkerProcess, WorkerProcesses
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

RunWith = Callable[..., WorkerProcess]


@pytest.fixture
def run_with(run_worker: WorkerProcesses, tmp_path: Path) -> RunWith:
    """Start a worker whose default database has some entries of its own."""

    def run(changes: str, *arguments: str) -> WorkerProcess:
        base = f"tests.settings.{connection.vendor}"
        (tmp_path / "changed_settings.py").write_text(
            f"from {base} import *\nDATABASES['default'].update({changes})\n"
        )
        return run_worker(
            *arguments,
            env={
                "DJANGO_SETTINGS_MODULE": "changed_settings",
                "PYTHONPATH": f"{ROOT}:{tmp_path}",
            },
        )

    return run


@pytest.fixture
def relay() -> Iterator[Relay]:
    settings = connection.settings_dict
    relay = Relay(settings["HOST"], int(settings["PORT"]))
    yield relay
    relay.down()


@pytest.mark.postgresql_only
def test_a_worker_survives_an_outage_and_works_soon_after_it(
    run_with: RunWith, relay: Relay, gate: Gate
) -> None:
    """B033, B034."""
    relay.up()
    worker = run_with(f"HOST='127.0.0.1', PORT={relay.port}")
    tasks.hold.using(visibility_timeout=30).enqueue(*gate.arguments)
    gate.wait()

    relay.down()
    wait_until(lambda: "event=database_failed" in worker.output)
    gate.open()
    tasks.async_record.enqueue("after")
    time.sleep(1.0)
    relay.up()

    # What ended while nothing could be written is settled then, and not run again.
    wait_until(drained, timeout=8)
    assert len(gate.runs) == 1
    assert not DeadJob.objects.exists()
    assert [effect.key for effect in Effect.objects.all()] == ["after"]
    assert worker.output.count("event=database_failed") == 1
    assert worker.output.count("event=database_recovered") == 1
    assert worker.stop() == 0


@pytest.mark.postgresql_only
def test_a_worker_is_stopped_quickly_while_the_database_is_away(
    run_with: RunWith, relay: Relay
) -> None:
    """B034."""
    relay.up()
    worker = run_with(f"HOST='127.0.0.1', PORT={relay.port}")
    wait_until(Worker.objects.exists)
    relay.down()
    wait_until(lambda: "event=database_failed" in worker.output)

    start = time.monotonic()
    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert time.monotonic() - start < 2


@pytest.mark.postgresql_only
def test_a_worker_started_too_early_waits_for_the_database(
    run_with: RunWith, relay: Relay
) -> None:
    """B037."""
    worker = run_with(f"HOST='127.0.0.1', PORT={relay.port}")
    wait_until(lambda: "event=database_failed" in worker.output)
    tasks.record.enqueue("late")
    relay.up()

    wait_until(Effect.objects.exists)
    assert len(worker.output.splitlines()) < 30
    assert worker.stop() == 0


@pytest.mark.postgresql_only
def test_a_batch_that_could_not_look_has_not_found_that_nothing_is_due(
    run_with: RunWith, relay: Relay
) -> None:
    worker = run_with(f"HOST='127.0.0.1', PORT={relay.port}", "--batch")
    wait_until(lambda: "event=database_failed" in worker.output)
    tasks.record.enqueue("late")
    relay.up()

    assert worker.wait() == 0
    assert [effect.key for effect in Effect.objects.all()] == ["late"]


@pytest.mark.postgresql_only
def test_sessions_that_are_terminated_again_and_again_lose_nothing(
    run_worker: WorkerProcesses,
) -> None:
    tasks.record_once.using(max_attempts=100).enqueue_many(
        [(str(n),) for n in range(300)]
    )
    worker = run_worker("--threads", "2")
    wait_until(Effect.objects.exists)

    end = time.monotonic() + 20
    while not drained() and time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        time.sleep(0.2)
        # A terminated task is a failed attempt; its backoff is not what is tested.
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE __alkstore_live SET run_at = 0 WHERE state = 'scheduled'"
            )

    assert worker.is_running
    wait_until(drained)
    assert not DeadJob.objects.exists()
    assert sorted(Effect.objects.values_list("key", flat=True), key=int) == [
        str(n) for n in range(300)
    ]


@pytest.mark.sqlite_only
def test_a_worker_survives_a_storm_of_locks(run_with: RunWith) -> None:
    worker = run_with(
        "OPTIONS={**DATABASES['default']['OPTIONS'], 'timeout': 0.02}", "--threads", "2"
    )
    wait_until(Worker.objects.exists)
    tasks.noop.enqueue_many([()] * 200)
    tasks.record_once.using(max_attempts=100).enqueue_many(
        [(str(n),) for n in range(50)]
    )
    name = str(connection.settings_dict["NAME"])
    storm = sqlite3.connect(name, isolation_level=None, timeout=10)
    try:
        for _ in range(12):
            storm.execute("BEGIN IMMEDIATE")
            time.sleep(0.15)
            storm.execute("COMMIT")
            time.sleep(0.05)
            storm.execute(
                "UPDATE __alkstore_live SET run_at = 0 WHERE state = 'scheduled'"
            )
        wait_until(
            lambda: (
                storm.execute(
                    "UPDATE __alkstore_live SET run_at = 0 WHERE state = 'scheduled'"
                )
                and drained()
            )
        )
    finally:
        storm.close()

    assert worker.is_running
    assert not DeadJob.objects.exists()
    assert Effect.objects.count() == len(set(Effect.objects.values_list("key"))) == 50
    assert worker.stop() == 0


@pytest.mark.sqlite_only
def test_a_database_that_can_be_read_and_not_written_is_one_outage(
    run_with: RunWith,
) -> None:
    worker = run_with("OPTIONS={**DATABASES['default']['OPTIONS'], 'timeout': 0.02}")
    wait_until(Worker.objects.exists)
    tasks.record.using(delay=0.3).enqueue("due")

    with transaction.atomic():
        Effect.objects.create(key="lock")
        wait_until(lambda: "event=database_failed" in worker.output)
        time.sleep(2.0)
    wait_until(lambda: drained() and "event=database_recovered" in worker.output)

    assert worker.output.count("event=database_failed") == 1
    assert worker.output.count("event=database_recovered") == 1
    assert worker.stop() == 0


@pytest.mark.sqlite_only
def test_a_database_file_that_is_replaced_ends_the_worker_with_a_word(
    run_with: RunWith, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.sqlite3"
    name = str(connection.settings_dict["NAME"])
    with (
        closing(sqlite3.connect(name)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
    worker = run_with(f"NAME={str(copy)!r}")

    def rows() -> int:
        with closing(sqlite3.connect(copy)) as reader:
            found = reader.execute("SELECT COUNT(*) FROM __alkstore_workers")
            return int(found.fetchone()[0])

    wait_until(rows)
    copy.rename(tmp_path / "moved.sqlite3")

    assert worker.wait() == 1
    assert "event=watcher_died" in worker.output
    assert str(copy) in worker.output
