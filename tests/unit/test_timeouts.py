"""Noticing what runs for too long, and interrupting what can be."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from django_alkstore import Context, TaskTimeout
from django_alkstore.options import JobOptions
from django_alkstore.worker.alarm import Alarm
from django_alkstore.worker.runs import NEVER, Run
from django_alkstore.worker.timeouts import GRACE, Timeouts


def a_run(timeout: float | None) -> Run:
    options = JobOptions.build("default", task="no.such.task", timeout=timeout)
    return Run(Context.detached(options, "default").job)


def test_a_run_without_a_timeout_is_never_looked_at() -> None:
    timeouts = Timeouts(interrupts=False)

    timeouts.add(a_run(None), now=5.0)

    assert timeouts.next_at == NEVER


def test_a_run_is_overdue_once_and_counts_from_its_start() -> None:
    timeouts = Timeouts(interrupts=False)
    run = a_run(2.0)
    timeouts.add(run, now=10.0)
    run.started = 11.0

    assert timeouts.next_at == 12.0
    assert timeouts.overdue([run], now=12.0) == []
    assert timeouts.next_at == 13.0
    assert timeouts.overdue([run], now=13.0) == [run]
    assert timeouts.overdue([run], now=14.0) == []
    assert timeouts.next_at == NEVER


def test_a_run_that_has_not_begun_is_not_overdue() -> None:
    timeouts = Timeouts(interrupts=False)
    run = a_run(2.0)

    assert timeouts.overdue([run], now=100.0) == []
    assert timeouts.next_at == 102.0


def test_a_function_that_is_interrupted_has_a_moment_to_end() -> None:
    timeouts = Timeouts(interrupts=True)
    run = a_run(2.0)
    run.started = 10.0

    assert timeouts.overdue([run], now=12.5) == []
    assert timeouts.overdue([run], now=12.0 + GRACE) == [run]


def test_the_alarm_interrupts_its_block() -> None:
    alarm = Alarm()
    start = time.monotonic()

    with alarm.install(), pytest.raises(TaskTimeout, match="0.05 s"), alarm.guard(0.05):
        time.sleep(10)

    assert time.monotonic() - start < 5
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_alarm_rings_again_for_who_does_not_listen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("django_alkstore.worker.alarm.AGAIN", 0.05)
    alarm = Alarm()
    heard = 0

    with alarm.install(), pytest.raises(TaskTimeout), alarm.guard(0.02):
        try:
            time.sleep(10)
        except TaskTimeout:
            heard += 1
        time.sleep(10)

    assert heard == 1


def test_a_late_signal_raises_nothing_outside_the_block() -> None:
    alarm = Alarm()

    with alarm.install():
        with alarm.guard(5):
            pass
        signal.raise_signal(signal.SIGALRM)


def test_only_the_main_thread_can_be_interrupted() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(Alarm.is_possible()))
    thread.start()
    thread.join()

    assert found == [False]
    assert Alarm.is_possible()
