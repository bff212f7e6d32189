"""PostgreSQL's statements."""

from __future__ import annotations

from django.db import connections

from django_alkstore.sql.text import Dialect, statements

DIALECT = Dialect(
    # The server lets nothing in that is not text.
    text="{column}",
    # The server's clock, because machines' clocks differ; clock_timestamp, because
    # now() stands still in a long transaction. It is volatile: only as a subquery is it
    # asked once, before the scan, and so can bound an index.
    now=(
        "(SELECT COALESCE(CAST(%(now)s AS BIGINT),"
        " CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)))"
    ),
    # A planner may run a LIMIT subquery once for each row; an array is built only once.
    among="id = ANY (ARRAY({ids}))",
    # Workers pass over each other's rows instead of queueing up behind them.
    skip_locked=" FOR UPDATE SKIP LOCKED",
    greatest="GREATEST",
    claims=(
        "SELECT CAST(value ->> 0 AS BIGINT) AS id, CAST(value ->> 1 AS INTEGER)"
        " AS attempt FROM json_array_elements(CAST(%(claims)s AS JSON))"
    ),
    ids=(
        "SELECT CAST(value AS BIGINT)"
        " FROM json_array_elements_text(CAST(%(ids)s AS JSON))"
    ),
    # Ids in the rows' order, but inserted in that of the keys: of two callers with the
    # same keys in another order each would wait for the other.
    payloads=(
        "SELECT id, payload, unique_key FROM (SELECT"
        " nextval((SELECT pg_get_serial_sequence('\"__alkstore_live\"', 'id'))) AS id,"
        " value ->> 0 AS payload, value ->> 1 AS unique_key"
        " FROM json_array_elements(CAST(%(rows)s AS JSON)) WITH ORDINALITY"
        " AS listed (value, place) ORDER BY place) AS numbered ORDER BY unique_key"
    ),
)

STATEMENTS = statements(DIALECT)


def raise_counter(alias: str, table: str, least: int) -> None:
    """Let the next id of ``table`` be above ``least``, and never lower the counter."""
    quoted = connections[alias].ops.quote_name(table)
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence(%s, 'id'), GREATEST(%s,"
            f" (SELECT COALESCE(MAX(id), 1) FROM {quoted}),"
            " nextval(pg_get_serial_sequence(%s, 'id'))))",
            [quoted, least, quoted],
        )
