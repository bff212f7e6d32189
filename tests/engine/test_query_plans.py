"""
The plans of the statements that run all the time: each by its own index, none by a
scan.

On 20,000 jobs of two queues in every state, with and without the planner's statistics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import pytest_django
from django.db import connection, transaction

from django_alkstore import sql
from django_alkstore.clock import SECOND
from tests.engine.scenes import NOW
from tests.engine.steps import run_sql

pytestmark = pytest.mark.django_db

PENDING_RAW, PENDING_TASK = "alkstore_live_pending_raw", "alkstore_live_pending_task"
SCHEDULED, EXPIRES = "alkstore_live_scheduled", "alkstore_live_expires"
RUNNING, LAST_ATTEMPT = "alkstore_live_running", "alkstore_live_last_attempt"

INDEXES: dict[str, set[str]] = {
    "claim_raw": {PENDING_RAW},
    "claim_task": {PENDING_TASK},
    "promote": {SCHEDULED},
    "reclaim": {RUNNING},
    "exhaust": {LAST_ATTEMPT},
    "expire": {EXPIRES},
    "probe": {SCHEDULED, RUNNING, LAST_ATTEMPT, EXPIRES},
    "survey": {PENDING_TASK, SCHEDULED, RUNNING, LAST_ATTEMPT, EXPIRES},
}
BY_ID = [
    "ack",
    "take",
    "take_attempt",
    "retry",
    "release",
    "heartbeat",
    "cancel",
    "edit",
]

PARAMETERS: dict[str, str | int | None] = {
    "now": NOW, "queue": "q", "worker_id": "w", "limit": 32, "claims": "[[1, 1], [2, 1]]",
    "delay": 0, "extend": None, "id": 1, "priority": 1, "run_at": None, "payload": None,
}  # fmt: skip

# Of sixteen jobs each queue gets eight: three pending, two scheduled, three running.
# Half of the times are past.
AHEAD = f"(n - 10000) * CAST({SECOND} AS BIGINT)"
FILL = f"""
INSERT INTO "__alkstore_live" (queue, task, payload, state, priority, run_at, attempts,
    worker_id, claimed_at, claim_expires_at, expires_at)
WITH RECURSIVE numbers (n) AS
    (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 19999)
SELECT CASE WHEN n / 8 % 2 = 0 THEN 'q' ELSE 'r' END,
    CASE WHEN n % 8 = 1 THEN 't' ELSE '' END, '1',
    CASE WHEN n % 8 < 3 THEN 'pending' WHEN n % 8 < 5 THEN 'scheduled'
        ELSE 'processing' END,
    n % 10, {NOW} + {AHEAD},
    CASE n % 8 WHEN 7 THEN 3 WHEN 6 THEN 1 WHEN 5 THEN 1 ELSE 0 END, 'w',
    {NOW - SECOND}, {NOW} + {AHEAD},
    CASE WHEN n % 8 IN (2, 6) THEN {NOW} + {AHEAD} END
FROM numbers
"""


@pytest.fixture(scope="module", params=[False, True], ids=["unknown", "analyzed"])
def filled(
    request: pytest.FixtureRequest,
    django_db_setup: None,
    django_db_blocker: pytest_django.DjangoDbBlocker,
) -> Iterator[bool]:
    """Return whether the planner has statistics."""
    with django_db_blocker.unblock():
        with transaction.atomic():
            run_sql(FILL)
            if request.param:
                run_sql("ANALYZE")
            yield request.param
            transaction.set_rollback(True)
        # SQLite keeps the statistics in the connection.
        connection.close()


def plan(name: str) -> str:
    statement = getattr(sql.statements_for("default"), name)
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {statement}", PARAMETERS)
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def indexes(text: str) -> set[str]:
    return set(re.findall(r"\b(alkstore_live_\w+)", text))


def scans(text: str) -> list[str]:
    """Return the lines that tell of a walk over all jobs, or of a sort."""
    walk = r"(Seq Scan on|SCAN) __alkstore_live\b|\bSort  |TEMP B-TREE FOR ORDER BY"
    return [line for line in text.splitlines() if re.search(walk, line)]


@pytest.mark.parametrize("name", INDEXES)
def test_a_statement_finds_its_rows_by_its_own_indexes(filled: bool, name: str) -> None:
    text = plan(name)

    assert indexes(text) == INDEXES[name], text
    # Without statistics PostgreSQL expects a handful of expired jobs, and sorts them.
    if filled or name != "expire":
        assert scans(text) == [], text


@pytest.mark.parametrize("name", BY_ID)
def test_a_settling_statement_finds_its_row_by_the_id(filled: bool, name: str) -> None:
    text = plan(name)

    key = "__alkstore_live_pkey" if connection.vendor == "postgresql" else "PRIMARY KEY"
    assert key in text, text
    assert indexes(text) == set(), text
    assert scans(text) == [], text


def test_a_held_key_is_found_by_its_index(filled: bool) -> None:
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    rows = run_sql(
        f'{explain} SELECT * FROM "__alkstore_live" WHERE queue = %s AND unique_key = %s'
        " ORDER BY id LIMIT 1",
        ["q", "k"],
    )

    text = "\n".join(str(row[-1]) for row in rows)
    assert "alkstore_live_unique_key" in text


def test_the_rows_are_of_every_kind(filled: bool) -> None:
    rows = run_sql(
        "SELECT queue, state, task, attempts >= max_attempts, expires_at IS NULL, count(*)"
        ' FROM "__alkstore_live" GROUP BY 1, 2, 3, 4, 5'
    )

    assert sum(row[-1] for row in rows) == 20_000
    assert len(rows) == 14
