"""How many jobs are claimed ahead of the threads."""

from __future__ import annotations

import pytest

from django_alkstore.worker.prefetch import AIM, Prefetch


def measured(*seconds: float, threads: int = 4, most: int = 64) -> Prefetch:
    prefetch = Prefetch(threads, most)
    for each in seconds:
        prefetch.measure(each)
    return prefetch


def test_nothing_is_held_ahead_while_nothing_is_known() -> None:
    assert Prefetch(4, 64).ahead() == 0


def test_short_jobs_are_held_up_to_the_setting() -> None:
    assert measured(0.0001).ahead() == 64
    assert measured(0.0, most=7).ahead() == 7


def test_longer_jobs_are_held_as_far_as_the_threads_begin_them_soon() -> None:
    assert measured(0.05).ahead() == 4 * AIM / 0.05
    assert measured(0.2).ahead() == 4
    assert measured(5.0).ahead() == 0


def test_a_setting_of_zero_holds_nothing() -> None:
    assert measured(0.0001, most=0).ahead() == 0


def test_threads_that_are_stuck_do_not_count() -> None:
    prefetch = measured(0.05)

    assert prefetch.ahead(stuck=3) == 4
    assert prefetch.ahead(stuck=4) == 0


def test_a_sudden_long_job_is_believed_at_once_and_a_short_one_bit_by_bit() -> None:
    prefetch = measured(*[0.0001] * 100)

    prefetch.measure(3.0)
    assert prefetch.ahead() == 0

    prefetch.measure(0.0001)
    assert prefetch.ahead() == 0
    for _ in range(100):
        prefetch.measure(0.0001)
    assert prefetch.ahead() == 64


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_what_is_held_begins_within_the_aim(threads: int) -> None:
    for seconds in (0.001, 0.01, 0.03, 0.1, 0.15, 1.0):
        ahead = measured(seconds, threads=threads, most=10_000).ahead()
        assert ahead * seconds / threads <= AIM + 1e-9
