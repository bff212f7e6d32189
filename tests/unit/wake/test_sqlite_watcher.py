"""SQLite's watcher: one thread for all who subscribe, called after each commit."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from django_alkstore.wake.sqlite import FAST, MANY, SLOW, SqliteWatcher
from tests.unit.wake.files import commit, connect
from tests.unit.wake.steps import Steps
from tests.unit.wake.subscribers import Calls, Failing, threads
from tests.waiting import wait_until


def test_a_commit_calls_every_subscriber(watcher: SqliteWatcher, path: Path) -> None:
    first, second = Calls(watcher), Calls(watcher)

    commit(path)

    wait_until(lambda: first.count and second.count)


def test_a_subscriber_misses_no_commit_after_subscribing(
    watcher: SqliteWatcher, path: Path
) -> None:
    with closing(connect(path)) as writer:
        for number in range(20):
            calls = Calls(watcher)

            writer.execute("INSERT INTO t VALUES (?)", [number])

            wait_until(lambda: calls.count)
            calls.subscription.close()


def test_nobody_is_called_without_a_commit(
    stepped: SqliteWatcher, steps: Steps
) -> None:
    calls = Calls(stepped)
    steps.asleep()

    for _ in range(5):
        steps.step(FAST)

    assert calls.count == 0


def test_commits_between_two_looks_are_one_call(
    stepped: SqliteWatcher, steps: Steps, path: Path
) -> None:
    calls = Calls(stepped)
    steps.asleep()
    commit(path)
    commit(path)

    steps.step(FAST)
    steps.step(FAST)

    assert calls.count == 1


def test_a_closed_subscription_is_not_called(
    stepped: SqliteWatcher, steps: Steps, path: Path
) -> None:
    gone, there = Calls(stepped), Calls(stepped)
    steps.asleep()

    gone.subscription.close()
    commit(path)
    steps.step(FAST)

    assert (gone.count, there.count) == (0, 1)


def test_one_thread_serves_all_and_ends_with_the_last(
    watcher: SqliteWatcher, path: Path
) -> None:
    subscribers = [Calls(watcher) for _ in range(5)]
    assert len(threads(path)) == 1

    for calls in subscribers:
        calls.subscription.close()
        calls.subscription.close()

    wait_until(lambda: not threads(path))


def test_a_thread_that_ends_closes_its_connection(
    watcher: SqliteWatcher, path: Path, failing: type[Failing]
) -> None:
    calls = Calls(watcher)
    during = failing.opened - failing.closed

    calls.subscription.close()
    wait_until(lambda: not threads(path))

    assert (during, failing.opened - failing.closed) == (1, 0)


def test_it_can_be_subscribed_to_again(watcher: SqliteWatcher, path: Path) -> None:
    Calls(watcher).subscription.close()

    calls = Calls(watcher)
    commit(path)

    wait_until(lambda: calls.count)


def test_its_thread_does_not_keep_the_process_alive(
    watcher: SqliteWatcher, path: Path
) -> None:
    Calls(watcher)

    assert all(thread.daemon for thread in threads(path))


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_a_callback_that_raises_stops_nobody(
    watcher: SqliteWatcher,
    path: Path,
    error: BaseException,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise error

    watcher.subscribe(fail)
    calls = Calls(watcher)

    commit(path)
    wait_until(lambda: calls.count == 1)
    commit(path)

    wait_until(lambda: calls.count == 2)
    assert "event=wake_callback_failed" in caplog.text


def test_a_callback_may_close_its_own_subscription(
    stepped: SqliteWatcher, steps: Steps, path: Path
) -> None:
    subscription = stepped.subscribe(lambda: subscription.close())
    calls = Calls(stepped)
    steps.asleep()

    commit(path)
    steps.step(FAST)

    assert calls.count == 1
    assert stepped._subscriptions == [calls.subscription]


def test_it_looks_less_often_after_a_calm_minute(
    stepped: SqliteWatcher, steps: Steps, path: Path
) -> None:
    calls = Calls(stepped)

    lengths = [steps.asleep(), steps.step(59.9), steps.step(0.2), steps.step(SLOW)]
    commit(path)
    lengths += [steps.step(SLOW), steps.step(SLOW)]

    assert lengths == [FAST, FAST, SLOW, SLOW, SLOW, SLOW]
    assert calls.count == 1


def test_it_looks_often_again_for_a_subscriber_that_had_work(
    stepped: SqliteWatcher, steps: Steps
) -> None:
    calls = Calls(stepped)
    steps.asleep()
    steps.step(61)

    calls.subscription.stay_alert()
    lengths = [steps.step(SLOW), steps.step(59), steps.step(2)]

    assert lengths == [FAST, FAST, SLOW]


def test_it_looks_often_again_when_much_is_committed(
    stepped: SqliteWatcher, steps: Steps, path: Path
) -> None:
    Calls(stepped)
    steps.asleep()
    lengths = [steps.step(61)]

    for _ in range(MANY):
        commit(path)
        lengths.append(steps.step(SLOW))

    assert lengths == [SLOW] * MANY + [FAST]
