"""SQLite's watcher in trouble: busy files, lost files, and nobody left in silence."""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from pathlib import Path

import pytest

from django_alkstore.exceptions import WatcherDied
from django_alkstore.wake.sqlite import FAST, SqliteWatcher
from django_alkstore.wake.threaded import Life, ThreadedWatcher
from tests.unit.wake.files import commit, connect, make, make_rollback
from tests.unit.wake.steps import Steps
from tests.unit.wake.subscribers import Calls, Failing, io_error, threads
from tests.waiting import wait_until


def test_a_busy_file_is_asked_again_and_hides_no_commit(
    stepped: SqliteWatcher, steps: Steps, path: Path, failing: type[Failing]
) -> None:
    make_rollback(path)
    calls = Calls(stepped)
    steps.asleep()

    with closing(connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("INSERT INTO t VALUES (1)")
        for _ in range(10):
            steps.step(FAST)
        seen_while_busy = calls.count
        writer.execute("COMMIT")
        steps.step(FAST)

    assert (seen_while_busy, calls.count) == (0, 1)
    assert failing.opened == 1


def test_subscribing_waits_for_a_locked_file(path: Path) -> None:
    make_rollback(path)
    trying = threading.Event()
    watcher = SqliteWatcher(str(path), sleep=lambda seconds: trying.set())
    subscribed: list[Calls] = []

    with closing(connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        subscriber = threading.Thread(target=lambda: subscribed.append(Calls(watcher)))
        subscriber.start()
        assert trying.wait(15)
        before = list(subscribed)
        writer.execute("COMMIT")
        subscriber.join(15)

    assert before == []
    assert len(subscribed) == 1
    subscribed[0].subscription.close()


def test_subscribing_to_a_file_that_stays_locked_is_an_error(path: Path) -> None:
    make_rollback(path)
    watcher = SqliteWatcher(str(path), start_timeout=0.01)

    with closing(connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(WatcherDied, match=r"could not be read for 0\.01 s"):
            watcher.subscribe(lambda: None)
        wait_until(lambda: not threads(path))


def test_subscribing_to_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    watcher = SqliteWatcher(str(tmp_path / "absent.sqlite3"))

    with pytest.raises(WatcherDied, match="there is no database file"):
        watcher.subscribe(lambda: None)


def test_subscribing_to_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    path.write_text("no database, " * 100)

    with pytest.raises(WatcherDied, match="SQLITE_NOTADB"):
        SqliteWatcher(str(path)).subscribe(lambda: None)


def test_a_thread_that_cannot_start_is_an_error(
    watcher: SqliteWatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(WatcherDied, match="can't start new thread"):
        watcher.subscribe(lambda: None)

    monkeypatch.undo()
    Calls(watcher).subscription.close()


@pytest.mark.parametrize("calm", [False, True])
def test_a_replaced_file_is_noticed_within_a_tenth_of_a_second(
    stepped: SqliteWatcher, steps: Steps, path: Path, tmp_path: Path, calm: bool
) -> None:
    first, second = Calls(stepped), Calls(stepped)
    length = steps.asleep()
    if calm:
        length = steps.step(100)
    make(tmp_path / "other.sqlite3").rename(path)

    for _ in range(int(0.1 / length)):
        steps.end(length)
    wait_until(lambda: first.error and second.error)

    assert (first.count, second.count) == (1, 1)
    with pytest.raises(WatcherDied, match="was replaced by another one: restart"):
        first.subscription.check()


def test_a_file_that_vanished_is_told_to_everybody(
    watcher: SqliteWatcher, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Calls(watcher), Calls(watcher)

    path.unlink()

    wait_until(lambda: first.count and second.count)
    for calls in (first, second):
        with pytest.raises(WatcherDied, match="there is no database file"):
            calls.subscription.check()
    assert caplog.text.count("event=watcher_died") == 1
    wait_until(lambda: not threads(path))


def test_an_unforeseen_error_of_the_thread_is_told_to_everybody(
    watcher: SqliteWatcher, failing: type[Failing], caplog: pytest.LogCaptureFixture
) -> None:
    calls = Calls(watcher)

    failing.failure = ZeroDivisionError("who would have thought")

    wait_until(lambda: calls.count)
    with pytest.raises(WatcherDied, match="who would have thought"):
        calls.subscription.check()
    assert "event=watcher_failed" in caplog.text


def test_after_its_death_it_can_be_subscribed_to_afresh(
    watcher: SqliteWatcher, path: Path, tmp_path: Path
) -> None:
    old = Calls(watcher)
    make(tmp_path / "other.sqlite3").rename(path)
    wait_until(lambda: old.error)

    new = Calls(watcher)
    commit(path)

    wait_until(lambda: new.count)
    assert new.error is None


def test_a_fatal_error_calls_everybody_once_and_reconnects(
    stepped: SqliteWatcher,
    steps: Steps,
    path: Path,
    failing: type[Failing],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    first, second = Calls(stepped), Calls(stepped)
    steps.asleep()

    failing.failure = io_error()
    pause = steps.step(FAST)
    failing.failure = None
    steps.step(pause)
    after_the_error = (first.count, second.count)
    commit(path)
    steps.step(FAST)

    assert after_the_error == (1, 1)
    assert (first.count, second.count) == (2, 2)
    assert failing.opened == 2
    assert [r.getMessage().partition(" ")[0] for r in caplog.records] == [
        "event=watcher_lost",
        "event=watcher_back",
    ]
    assert "error=SQLITE_IOERR_READ" in caplog.text


def test_a_long_outage_is_logged_once_and_tried_at_bounded_pauses(
    stepped: SqliteWatcher,
    steps: Steps,
    failing: type[Failing],
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = Calls(stepped)
    steps.asleep()

    failing.failure = io_error()
    length = steps.step(FAST)
    tries = failing.opened
    began = steps.now
    while steps.now - began < 60:
        length = steps.step(length)
    during = (failing.opened - tries, calls.count, len(caplog.records))
    failing.failure = None
    while failing.opened == tries + during[0]:
        length = steps.step(length)

    assert 60 <= during[0] <= 75
    assert during[1:] == (1, 1)
    assert (calls.count, len(caplog.records)) == (2, 2)
    assert calls.error is None


def test_a_file_replaced_during_an_outage_is_noticed(
    stepped: SqliteWatcher,
    steps: Steps,
    path: Path,
    tmp_path: Path,
    failing: type[Failing],
) -> None:
    calls = Calls(stepped)
    steps.asleep()
    failing.failure = io_error()
    for _ in range(200):
        length = steps.step(FAST)

    make(tmp_path / "other.sqlite3").rename(path)
    steps.end(length)

    wait_until(lambda: calls.error)
    assert length < 0.1


def test_a_file_that_fails_again_and_again_is_given_longer_and_longer_pauses(
    stepped: SqliteWatcher, steps: Steps, failing: type[Failing]
) -> None:
    Calls(stepped)
    steps.asleep()

    pauses = []
    for _ in range(4):
        failing.failure = io_error()
        pauses.append(steps.step(FAST))
        failing.failure = None
        steps.step(pauses[-1])

    assert pauses == [FAST, 2 * FAST, 4 * FAST, 8 * FAST]


def test_a_death_does_not_concern_those_who_came_after() -> None:
    gate = threading.Event()

    class Late(ThreadedWatcher):
        def watch(self, life: Life) -> None:
            life.ready.set()
            life.ending.wait()
            gate.wait(15)
            raise WatcherDied("too late to matter")

    watcher = Late("late watcher")
    Calls(watcher).subscription.close()
    old = threads(Path("late watcher"))
    calls = Calls(watcher)

    gate.set()
    old[0].join(15)

    assert (calls.count, calls.error) == (0, None)
    calls.subscription.close()
