"""What every test may ask for. The rest is in the folders that need it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from django_alkstore.decorator import registry
from tests.processes import WorkerProcesses

ENGINE_MARKS = {"sqlite_only": "sqlite", "postgresql_only": "postgresql"}

# No engine has a part in these, so they are run once: with SQLite.
ENGINE_FREE = (
    "tests/unit/",
    "tests/project/test_all_checks.py",
    "tests/project/test_bootstrap.py",
    "tests/test_cases.py",
    "tests/test_docs.py",
    "tests/test_docs_names.py",
    "tests/test_house_style.py",
    "tests/test_public_names.py",
    "tests/test_reference.py",
)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if connection.vendor == "sqlite":
        return
    once = [item for item in items if item.nodeid.startswith(ENGINE_FREE)]
    config.hook.pytest_deselected(items=once)
    items[:] = [item for item in items if not item.nodeid.startswith(ENGINE_FREE)]


def pytest_configure(config: pytest.Config) -> None:
    # Ended from outside, a run still drops its databases and stops its workers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder: Path | None = getattr(settings, "DATABASE_FOLDER", None)
    if folder is not None:
        folder.mkdir(mode=0o700)
        config.add_cleanup(lambda: shutil.rmtree(folder))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark, engine in ENGINE_MARKS.items():
        if item.get_closest_marker(mark) and connection.vendor != engine:
            pytest.skip(f"{mark}: this is {connection.vendor}")


@pytest.fixture
def engine() -> str:
    """The engine that the tests run on: ``sqlite`` or ``postgresql``."""
    return connection.vendor


@pytest.fixture
def own_registry() -> Iterator[None]:
    """Let a test have tasks of its own, which are forgotten after it."""
    before = dict(registry)
    yield
    registry.clear()
    registry.update(before)


@pytest.fixture
def run_worker(transactional_db: None, tmp_path: Path) -> Iterator[WorkerProcesses]:
    """Start real workers on the test databases; whatever still runs is killed after."""
    workers = WorkerProcesses(tmp_path)
    try:
        yield workers
    finally:
        workers.close()
        # Shown by pytest beside a failure, and only then.
        for worker in workers.started:
            print(f"--- {worker.log.name}\n{worker.output}")
