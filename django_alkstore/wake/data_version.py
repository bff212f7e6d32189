"""
The number that SQLite changes with every commit to a file.

``PRAGMA data_version`` differs from its last value when another connection, of this or
any process, has committed; the number is the connection's own. So the connection is one
of our own, and read only. The file is never opened but through SQLite: closing any
other descriptor of it would drop the locks that the process holds through SQLite's.
"""

from __future__ import annotations

import os
import sqlite3
from urllib.parse import quote, unquote_to_bytes

from django_alkstore.exceptions import WatcherDied

# A reader meets these while others write, recover or checkpoint the file. They pass,
# and reconnecting would begin from the number of that moment: it would hide a commit.
PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}

# A URI's words that would change what is watched: another mode, a cache shared with
# others, a file that is promised not to change.
OVERRIDDEN = {"mode", "cache", "immutable"}


class DataVersion:
    """
    Reads the number of one database file. For one thread.

    ``name`` is Django's ``NAME``: a path, or a URI that begins with ``file:``. Raise
    WatcherDied if there is no such file.
    """

    def __init__(self, name: str) -> None:
        self.path, self._words = locate(name)
        self._connection: sqlite3.Connection | None = None
        self._identity = self._identify()

    def read(self) -> int:
        """
        Return the number, connecting first if need be. Raise sqlite3.Error otherwise.

        A file in WAL mode without its ``-wal`` and ``-shm`` is no obstacle: SQLite
        makes them, for a read-only connection too, in any folder it may write to.
        """
        if self._connection is None:
            self._connection = self._connect("ro")
        try:
            return _query(self._connection)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
        # A writer crashed and left its journal. Only who may write can undo it, and
        # perhaps nobody else will come: whoever subscribes waits for this number.
        writer = self._connect("rw")
        try:
            _query(writer)
        finally:
            writer.close()
        return _query(self._connection)

    def check_identity(self) -> None:
        """Raise WatcherDied if the path leads to another file by now, or to none."""
        if self._identify() != self._identity:
            raise WatcherDied(
                f"the database file {self.path} was replaced by another one: restart"
                " this process, whose connections still have the old one open"
            )

    def close(self) -> None:
        """Close the connection; the next read opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self, mode: str) -> sqlite3.Connection:
        words = "&".join([*self._words, f"mode={mode}"])
        uri = f"file://{quote(os.fsencode(self.path))}?{words}"
        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)

    def _identify(self) -> tuple[int, int]:
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise WatcherDied(
                f"there is no database file {self.path} ({error.strerror}): make it"
                " with migrate, or put it back, and restart this process"
            ) from error
        return found.st_dev, found.st_ino


def locate(name: str) -> tuple[str, list[str]]:
    """Return the path of Django's ``NAME``, and the words of its URI that are kept."""
    words: list[str] = []
    if name.startswith("file:"):
        # By SQLite's rules, which are not quite those of urllib: "+" is a plus.
        rest, _, query = name.removeprefix("file:").partition("#")[0].partition("?")
        words = [w for w in query.split("&") if w and _key(w) not in OVERRIDDEN]
        if rest.startswith("//"):
            _, slash, rest = rest.removeprefix("//").partition("/")
            rest = slash + rest
        name = os.fsdecode(unquote_to_bytes(rest))
    if not os.path.isabs(name):
        # Not normalised: "link/.." is not what is left without it.
        name = os.path.join(os.getcwd(), name)
    return name, words


def is_passing(error: sqlite3.Error) -> bool:
    """Whether the same connection can be asked again, as the file is only busy."""
    # The low byte is the kind; the rest tells which kind of busy it is.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in PASSING


def error_name(error: sqlite3.Error) -> str:
    """Return the error's name for a log line, such as ``SQLITE_IOERR_READ``."""
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _key(word: str) -> str:
    return os.fsdecode(unquote_to_bytes(word.partition("=")[0]))


def _query(connection: sqlite3.Connection) -> int:
    # To its end: an unread statement would keep its read lock.
    version: int = connection.execute("PRAGMA data_version").fetchall()[0][0]
    return version
