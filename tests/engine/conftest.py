"""What the tests of the engine share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

# The helpers' assertions tell what they compared, as those of the tests do.
pytest.register_assert_rewrite(
    "tests.engine.faults", "tests.engine.histories", "tests.engine.invariants"
)


@pytest.fixture
def committing(transactional_db: None, engine: str) -> Iterator[None]:
    """Let a test commit, and not wait for the disk: power cuts are not at issue."""
    if engine == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit TO off")
    yield
    if engine == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("RESET synchronous_commit")
