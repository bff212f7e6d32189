"""The tests on SQLite: files in a temporary folder, as workers are processes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.settings.base import *  # noqa: F403
from tests.settings.base import MADE_ALREADY, RUN

# Only named here; whoever makes the test databases makes and removes it (conftest).
DATABASE_FOLDER = Path(tempfile.gettempdir(), f"alkstore_tests_{RUN}")


def database(alias: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        # Without a test database there is nothing to keep, so nothing is left behind.
        "NAME": MADE_ALREADY.get(alias, ":memory:"),
        "TEST": {"NAME": str(DATABASE_FOLDER / f"{alias}.sqlite3")},
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    }


DATABASES = {alias: database(alias) for alias in ("default", "other")}
