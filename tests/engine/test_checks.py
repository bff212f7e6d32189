"""System checks: what each one finds, and what it leaves alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from django.core.management import call_command
from django.db import connections
from django.db.utils import ConnectionHandler
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from django_alkstore import checks as ours

SQLITE = "django.db.backends.sqlite3"
GOOD = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}

Databases = Callable[[dict[str, Any]], None]


@pytest.fixture
def use_database(
    monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> Iterator[Databases]:
    """Let the checks see another database, of its own, as the default one."""
    made: list[ConnectionHandler] = []

    def use(settings: dict[str, Any]) -> None:
        handler = ConnectionHandler({"default": settings})
        made.append(handler)
        for module in ("django_alkstore.checks", "django_alkstore.sql"):
            monkeypatch.setattr(f"{module}.connections", handler)
        monkeypatch.setattr("django_alkstore.sql.sqlite.connections", handler)

    with django_db_blocker.unblock():
        yield use
        for handler in made:
            handler.close_all()


def sqlite_file(path: Path, **options: Any) -> dict[str, Any]:
    return {"ENGINE": SQLITE, "NAME": str(path / "shop.sqlite3"), "OPTIONS": options}


def ids(messages: list[checks.CheckMessage]) -> list[str]:
    assert all(message.hint for message in messages)
    return [str(message.id).removeprefix("django_alkstore.") for message in messages]


def test_the_checks_are_registered_and_find_nothing_in_the_tests_settings() -> None:
    found = checks.run_checks(include_deployment_checks=False)

    assert [message for message in found if "alkstore" in str(message.id)] == []
    registered = checks.registry.registry.get_checks()
    assert {ours.check_settings, ours.check_engine} <= set(registered)


def test_every_problem_of_the_setting_is_an_error_of_its_own() -> None:
    with override_settings(ALKSTORE={"THREADS": 0, "TREADS": 4}):
        assert ids(ours.check_settings(None)) == ["E001", "E001"]
    assert ours.check_settings(None) == []


def test_an_unsupported_database_is_an_error_that_names_what_is_supported(
    use_database: Databases,
) -> None:
    use_database({"ENGINE": "django.db.backends.dummy", "NAME": "x"})

    (error,) = ours.check_engine(None)

    assert ids([error]) == ["E002"]
    assert "SQLite" in error.msg
    assert "psycopg 3" in error.msg
    assert ours.check_sqlite_options(None) == []
    assert ours.check_sqlite_file(None, databases=["default"]) == []


def test_psycopg2_is_an_error(
    monkeypatch: pytest.MonkeyPatch, use_database: Databases
) -> None:
    use_database({"ENGINE": "django.db.backends.postgresql", "NAME": "x"})
    assert ours.check_engine(None) == []

    monkeypatch.setattr("django_alkstore.sql._is_psycopg3", lambda: False)

    assert ids(ours.check_engine(None)) == ["E002"]


def test_a_good_sqlite_file_has_no_message(
    tmp_path: Path, use_database: Databases
) -> None:
    use_database(sqlite_file(tmp_path, **GOOD))

    assert ours.check_sqlite_options(None) == []
    assert ours.check_sqlite_file(None, databases=["default"]) == []


def test_djangos_own_defaults_for_sqlite_are_told_of(
    tmp_path: Path, use_database: Databases
) -> None:
    use_database(sqlite_file(tmp_path))

    options = ours.check_sqlite_options(None)

    assert ids(options) == ["W001", "W003"]
    assert '"transaction_mode": "IMMEDIATE"' in str(options[0].hint)
    assert ids(ours.check_sqlite_file(None, databases=["default"])) == ["W005"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"transaction_mode": "immediate"}, []),
        ({"transaction_mode": "EXCLUSIVE"}, []),
        ({"transaction_mode": "DEFERRED"}, ["W001"]),
        ({"transaction_mode": None}, ["W001"]),
        ({"timeout": 5}, []),
        ({"timeout": 4.9}, ["W003"]),
        ({"timeout": 0}, ["W003"]),
        ({"timeout": None}, ["W003"]),
        ({"timeout": 0, "init_command": "PRAGMA busy_timeout=20000"}, []),
    ],
)
def test_how_transactions_begin_and_wait(
    tmp_path: Path, use_database: Databases, options: dict[str, Any], found: list[str]
) -> None:
    use_database(sqlite_file(tmp_path, **{**GOOD, **options}))

    assert ids(ours.check_sqlite_options(None)) == found


def test_what_immediate_does_to_atomic_requests_is_told(
    tmp_path: Path, use_database: Databases
) -> None:
    use_database(sqlite_file(tmp_path, **GOOD) | {"ATOMIC_REQUESTS": True})

    (warning,) = ours.check_sqlite_options(None)

    assert ids([warning]) == ["W002"]
    assert "every request" in warning.msg


def test_synchronous_off_is_told_of(tmp_path: Path, use_database: Databases) -> None:
    pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF"
    use_database(sqlite_file(tmp_path, **{**GOOD, "init_command": pragmas}))

    assert ids(ours.check_sqlite_file(None, databases=["default"])) == ["W006"]


def test_a_file_once_in_wal_mode_needs_no_command_for_it(
    tmp_path: Path, use_database: Databases
) -> None:
    connection = sqlite3.connect(tmp_path / "shop.sqlite3")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    use_database(sqlite_file(tmp_path, transaction_mode="IMMEDIATE", timeout=20))

    assert ours.check_sqlite_file(None, databases=["default"]) == []


def test_a_database_in_memory_has_no_file_to_check(use_database: Databases) -> None:
    use_database({"ENGINE": SQLITE, "NAME": ":memory:"})

    assert ours.check_sqlite_options(None) == []
    assert ours.check_sqlite_file(None, databases=["default"]) == []


def test_no_database_is_opened_unless_django_says_which(
    tmp_path: Path, use_database: Databases
) -> None:
    use_database(sqlite_file(tmp_path))

    for check in (ours.check_sqlite_file, ours.check_migrated):
        assert check(None) == []
        assert check(None, databases=["other"]) == []
    assert list(tmp_path.iterdir()) == []


def test_tables_that_are_missing_are_a_warning_so_that_migrate_can_run(
    tmp_path: Path, use_database: Databases
) -> None:
    use_database(sqlite_file(tmp_path, **GOOD))

    (warning,) = ours.check_migrated(None, databases=["default"])

    assert ids([warning]) == ["W007"]
    assert warning.level == checks.WARNING
    assert "0001_initial" in warning.msg
    assert "migrate" in str(warning.hint)


@pytest.mark.django_db
def test_a_migrated_database_passes_djangos_own_command() -> None:
    assert ours.check_migrated(None, databases=["default"]) == []

    call_command("check", databases=["default"], fail_level="WARNING")


@pytest.mark.parametrize(
    ("pool", "threads", "found"),
    [
        (True, 4, ["W004"]),
        (True, 2, []),
        ({"max_size": 6}, 4, []),
        ({"max_size": 5}, 4, ["W004"]),
        ({"min_size": 8}, 4, []),
        ({"min_size": 2, "max_size": None}, 4, ["W004"]),
        (None, 40, []),
    ],
)
def test_a_pool_too_small_for_the_threads_is_told_of(
    use_database: Databases, pool: object, threads: int, found: list[str]
) -> None:
    use_database(
        {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "x",
            "OPTIONS": {"pool": pool},
        }
    )

    with override_settings(ALKSTORE={"THREADS": threads}):
        assert ids(ours.check_pool(None)) == found


class ToOther:
    """A router that sends everything to the database ``other``."""

    def db_for_write(self, model: object, **hints: object) -> str:
        return "other"


@pytest.mark.sqlite_only
def test_the_database_checked_is_the_one_that_the_router_writes_jobs_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = connections["other"]
    options = {**other.settings_dict["OPTIONS"], "timeout": 1}
    settings = other.settings_dict | {"NAME": "shop.sqlite3", "OPTIONS": options}
    monkeypatch.setattr(other, "settings_dict", settings)
    assert ours.check_sqlite_options(None) == []

    with override_settings(DATABASE_ROUTERS=[ToOther()]):
        (warning,) = ours.check_sqlite_options(None)

    assert "'other'" in warning.msg
