"""SQLite's own account of commits: whose file it is read from, and in what state."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from django_alkstore.exceptions import AlkstoreError, WatcherDied
from django_alkstore.wake.data_version import (
    DataVersion,
    error_name,
    is_passing,
    locate,
)
from tests.unit.wake.files import commit, connect, make

# Leaves a transaction half written to the file, as a power cut or kill -9 does.
CRASH = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 5")
connection.execute("BEGIN IMMEDIATE")
for _ in range(500):
    connection.execute("INSERT INTO t VALUES (randomblob(500))")
os._exit(0)
"""


@contextmanager
def watching(name: object) -> Iterator[DataVersion]:
    version = DataVersion(str(name))
    try:
        yield version
    finally:
        version.close()


@pytest.mark.parametrize("journal_mode", ["wal", "delete", "truncate", "persist"])
def test_a_commit_changes_the_number(tmp_path: Path, journal_mode: str) -> None:
    path = make(tmp_path / "db.sqlite3", journal_mode)
    with watching(path) as version:
        before = version.read()

        commit(path)

        assert version.read() != before


def test_without_a_commit_the_number_stays(tmp_path: Path) -> None:
    path = make(tmp_path / "db.sqlite3")
    with watching(path) as version:
        before = version.read()

        with closing(connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("ROLLBACK")

        assert version.read() == before


def test_a_wal_file_is_read_when_its_companions_are_absent(tmp_path: Path) -> None:
    path = make(tmp_path / "db.sqlite3")
    assert os.listdir(tmp_path) == ["db.sqlite3"]
    with watching(path) as version:
        before = version.read()

        commit(path)

        assert version.read() != before


def test_the_journal_of_a_crashed_writer_is_rolled_back(tmp_path: Path) -> None:
    path = make(tmp_path / "db.sqlite3", "delete")
    subprocess.run([sys.executable, "-c", CRASH, str(path)], check=True, timeout=60)
    assert Path(f"{path}-journal").exists()
    with watching(path) as version:
        before = version.read()

        commit(path)

        assert version.read() != before
    assert not Path(f"{path}-journal").exists()


def test_its_connection_cannot_write(tmp_path: Path) -> None:
    with watching(make(tmp_path / "db.sqlite3")) as version:
        version.read()

        connection = version._connection
        assert connection is not None
        with pytest.raises(sqlite3.OperationalError) as refused:
            connection.execute("INSERT INTO t VALUES (1)")

    assert refused.value.sqlite_errorcode == sqlite3.SQLITE_READONLY


def test_a_busy_file_is_a_passing_error(tmp_path: Path) -> None:
    path = make(tmp_path / "db.sqlite3", "delete")
    with watching(path) as version, closing(connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")

        with pytest.raises(sqlite3.OperationalError) as busy:
            version.read()

    assert is_passing(busy.value)
    assert error_name(busy.value) == "SQLITE_BUSY"


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_BUSY_SNAPSHOT]
)
def test_every_kind_of_busy_passes(code: int) -> None:
    error = sqlite3.OperationalError("whatever the message is")
    error.sqlite_errorcode = code

    assert is_passing(error)


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB]
)
def test_other_errors_do_not_pass(code: int) -> None:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = code

    assert not is_passing(error)


def test_an_error_of_python_itself_does_not_pass() -> None:
    error = sqlite3.ProgrammingError("Cannot operate on a closed database.")

    assert not is_passing(error)
    assert error_name(error) == "ProgrammingError"


def test_a_file_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "absent.sqlite3"

    with pytest.raises(WatcherDied, match="there is no database file /") as died:
        DataVersion(str(path))

    assert isinstance(died.value, AlkstoreError)
    assert os.listdir(tmp_path) == []


def test_a_replaced_file_is_told(tmp_path: Path) -> None:
    path, other = make(tmp_path / "db.sqlite3"), make(tmp_path / "other.sqlite3")
    with watching(path) as version:
        version.read()
        version.check_identity()

        other.rename(path)

        with pytest.raises(WatcherDied, match="was replaced by another one: restart"):
            version.check_identity()


def test_a_link_that_leads_elsewhere_is_told(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(make(tmp_path / "db.sqlite3"))
    other = make(tmp_path / "other.sqlite3")
    with watching(link) as version:
        version.read()

        link.unlink()
        link.symlink_to(other)

        with pytest.raises(WatcherDied, match="was replaced"):
            version.check_identity()


@pytest.mark.parametrize(
    "name",
    ["a b.db", "a+b.db", "100%.db", "%41.db", "a?mode=memory", "a#b", "ü ☃.db", "a&b"],
)
def test_a_path_is_taken_letter_by_letter(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / name)
    with watching(path) as version:
        before = version.read()

        commit(path)

        assert version.read() != before


def test_a_path_that_is_no_unicode_is_taken_too(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.db"))
    make(tmp_path / "db.sqlite3").rename(path)

    with watching(path) as version:
        assert version.read() > 0


@pytest.mark.parametrize(
    "uri",
    [
        "file:{}", "file://{}", "file://localhost{}", "file:{}?mode=rwc", "file:{}#a",
        "file:{}?cache=shared&mode=rw", "file:{}?immutable=1", "file:{}?psow=1",
    ],
)  # fmt: skip
def test_a_uri_is_read_by_the_rules_of_sqlite(tmp_path: Path, uri: str) -> None:
    path = make(tmp_path / "a+b c.db")
    with watching(uri.format(str(path).replace(" ", "%20"))) as version:
        before = version.read()

        commit(path)

        assert version.path == str(path)
        assert version.read() != before


def test_what_a_uri_says_of_the_file_system_is_kept() -> None:
    path, words = locate("file:/a%3Fb?vfs=unix-dotfile&mode=rwc&m%6Fde=rw&nolock=1#end")

    assert path == "/a?b"
    assert words == ["vfs=unix-dotfile", "nolock=1"]


def test_a_relative_path_is_that_of_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "db.sqlite3")
    monkeypatch.chdir(tmp_path)
    with watching("db.sqlite3") as version:
        monkeypatch.chdir("/")

        assert version.read() > 0
        version.check_identity()


def test_two_slashes_at_its_beginning_are_no_host(tmp_path: Path) -> None:
    path = make(tmp_path / "db.sqlite3")

    with watching(f"/{path}") as version:
        assert version.read() > 0
