"""A database file, its watcher, and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from django_alkstore.wake import sqlite
from django_alkstore.wake.sqlite import SqliteWatcher
from tests.unit.wake.files import make
from tests.unit.wake.steps import Steps
from tests.unit.wake.subscribers import Failing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database file in WAL mode."""
    return make(tmp_path / "db.sqlite3")


@pytest.fixture
def watcher(path: Path) -> Iterator[SqliteWatcher]:
    """Its watcher, which sleeps as in real life."""
    watcher = SqliteWatcher(str(path))
    yield watcher
    close_all(watcher)


@pytest.fixture
def steps() -> Iterator[Steps]:
    """What moves the clock of ``stepped``."""
    steps = Steps()
    yield steps
    steps.free()


@pytest.fixture
def stepped(path: Path, steps: Steps) -> Iterator[SqliteWatcher]:
    """A watcher whose sleeps end when the test says so."""
    watcher = SqliteWatcher(str(path), clock=steps.clock, sleep=steps.sleep)
    yield watcher
    close_all(watcher)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> type[Failing]:
    """Let the watcher's reads fail at will; ``opened`` and ``closed`` count."""
    monkeypatch.setattr(Failing, "failure", None)
    monkeypatch.setattr(Failing, "opened", 0)
    monkeypatch.setattr(Failing, "closed", 0)
    monkeypatch.setattr(sqlite, "DataVersion", Failing)
    return Failing


def close_all(watcher: SqliteWatcher) -> None:
    for subscription in list(watcher._subscriptions):
        subscription.close()
