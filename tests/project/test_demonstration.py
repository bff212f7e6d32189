"""``python3 -m example_project``, as the tutorial and the README have it run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from example_project import bootstrap
from tests.postgresql import server
from tests.settings.base import DATABASES_VARIABLE, RUN

MOST_SECONDS = 90.0


@pytest.fixture
def environment(engine: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A database of its own for the shop, empty, on the engine of this run."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DJANGO_SETTINGS_MODULE", DATABASES_VARIABLE)
    }
    if engine == "sqlite":
        file = str(tmp_path / "shop.sqlite3")
        yield {**inherited, "EXAMPLE_SQLITE": file, "EXAMPLE_POSTGRESQL": ""}
        return
    name = f"alkstore_test_{RUN}_example"
    with psycopg.connect(**server(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield {**inherited, "EXAMPLE_POSTGRESQL": name}
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def demonstrate(environment: dict[str, str]) -> str:
    """Run it in this very environment, and return what it told."""
    done = subprocess.run(
        [sys.executable, "-m", "example_project.demo"],
        cwd=bootstrap.ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=MOST_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_it_tells_of_every_fate_and_may_be_run_again(
    engine: str, environment: dict[str, str]
) -> None:
    # Whether there was a run before is the same to either engine; once is enough.
    for _ in range(2 if engine == "sqlite" else 1):
        told = demonstrate(environment)

        assert re.search(r"after: 0 such orders; job \d+ does not exist", told)
        assert "attempt 2: WarehouseBusy" in told
        assert "is finished after 3 attempts" in told
        assert "is dead (exhausted) after 2 attempts" in told
        assert "packed at attempt 2" in told
        assert "exits with status 0" in told
        assert "receipt: 3" in told
        assert "parcel: 1" in told
        assert "jobs: 5 finished, 1 dead, 0 waiting or running" in told
