"""Which PostgreSQL server the tests use, and whether it answers."""

from __future__ import annotations

import os
import sys
from typing import TypedDict


class Server(TypedDict):
    host: str
    port: str
    user: str
    password: str
    dbname: str


def server() -> Server:
    """Return where the server is, from libpq's own environment variables."""
    return {
        "host": os.environ.get("PGHOST", "127.0.0.1"),
        "port": os.environ.get("PGPORT", "5432"),
        "user": os.environ.get("PGUSER", "postgres"),
        "password": os.environ.get("PGPASSWORD", ""),
        "dbname": os.environ.get("PGDATABASE", "postgres"),
    }


def why_not() -> str:
    """Return why the server cannot be used, in one line. Empty when it answers."""
    # Here, and not above: what asks may have to go on without the driver.
    import psycopg

    where = server()
    try:
        psycopg.connect(**where, connect_timeout=3).close()
    except psycopg.OperationalError as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        return f"no PostgreSQL at {where['host']}:{where['port']} ({said[0]})"
    return ""


if __name__ == "__main__":
    sys.exit(why_not() or None)
