"""Database files for the tests of the watcher, without Django."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def connect(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=0)


def make(path: Path, journal_mode: str = "wal") -> Path:
    with closing(connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal_mode}").fetchall()
        connection.execute("CREATE TABLE t (a)")
    return path


def commit(path: Path | str) -> None:
    with closing(connect(path)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")


def make_rollback(path: Path) -> None:
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = delete").fetchall()
