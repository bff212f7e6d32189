"""Backoff: how long a job waits for its next attempt, from the stamp on its row."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

import pytest

from django_alkstore import constant, exponential
from django_alkstore.backoff import (
    DEFAULT_STAMP,
    FUNCTION_STAMP,
    AnyBackoff,
    delay_of,
    stamp,
)
from django_alkstore.clock import MAX_DURATION, SECOND


def seconds(backoff: AnyBackoff, *attempts: int) -> list[float | None]:
    delays = [delay_of(stamp(backoff), attempt) for attempt in attempts]
    return [None if delay is None else delay / SECOND for delay in delays]


def test_exponential_doubles_from_its_base() -> None:
    assert seconds(exponential(5), 1, 2, 3, 4) == [5, 10, 20, 40]


def test_exponential_takes_another_factor() -> None:
    assert seconds(exponential(2, factor=3), 1, 2, 3) == [2, 6, 18]


def test_exponential_stops_at_its_maximum() -> None:
    assert seconds(exponential(5), 7, 8, 9) == [320, 600, 600]
    assert seconds(exponential(5, maximum=7), 1, 2) == [5, 7]


def test_exponential_below_its_base_is_the_maximum_alone() -> None:
    assert seconds(exponential(50, maximum=7), 1) == [7]


@pytest.mark.parametrize("attempt", [15, 16, 17, 24, 1024, 1025, 2**31 - 1])
def test_a_far_attempt_waits_for_the_maximum_and_never_overflows(attempt: int) -> None:
    """B142."""
    week = 7 * 86_400

    assert seconds(exponential(5, factor=5, maximum=week), attempt) == [week]
    assert seconds(exponential(1e-6, factor=1e300, maximum=week), attempt) == [week]


def test_the_longest_duration_may_be_the_maximum() -> None:
    longest = MAX_DURATION // SECOND

    assert seconds(exponential(5, maximum=longest), 2**31 - 1) == [longest]


def test_a_base_of_zero_never_waits() -> None:
    assert seconds(exponential(0), 1, 2, 5000) == [0, 0, 0]


def test_constant_is_the_same_after_each_attempt() -> None:
    assert seconds(constant(7), 1, 2, 5000) == [7, 7, 7]


@pytest.mark.parametrize("bare", [7, 7.0, timedelta(seconds=7)])
def test_bare_seconds_are_constant(bare: Any) -> None:
    assert stamp(bare) == stamp(constant(7))


def test_timedeltas_are_taken_for_seconds() -> None:
    minute = timedelta(minutes=1)

    assert exponential(minute, maximum=minute) == exponential(60, maximum=60)
    assert constant(minute) == constant(60)


@pytest.mark.parametrize(("drawn", "waited"), [(0.0, 10.0), (0.5, 8.0), (1.0, 6.0)])
def test_jitter_takes_away_up_to_its_share(
    monkeypatch: pytest.MonkeyPatch, drawn: float, waited: float
) -> None:
    monkeypatch.setattr(random, "random", lambda: drawn)

    assert seconds(exponential(10, jitter=0.4), 1) == [waited]


def test_a_function_is_left_to_the_task() -> None:
    assert stamp(lambda error, result: 3.0) == FUNCTION_STAMP
    assert delay_of(FUNCTION_STAMP, 1) is None


def test_a_stamp_is_json_that_tells_its_kind() -> None:
    assert json.loads(stamp(exponential(5)))["kind"] == "exponential"
    assert json.loads(stamp(constant(5))) == {"kind": "constant", "seconds": 5.0}


@pytest.mark.parametrize(
    "text",
    [
        "", "junk", "null", "5", "[]", "{}", '{"kind": "constant"}',
        '{"kind": "constant", "seconds": -1}', '{"kind": "constant", "seconds": "x"}',
        '{"kind": "exponential"}', '{"kind": "exponential", "base": null}',
        '{"kind": "exponential", "base": 1, "other": 2}',
    ],
)  # fmt: skip
def test_a_stamp_that_cannot_be_read_counts_as_the_default(text: str) -> None:
    assert delay_of(text, 3) == delay_of(DEFAULT_STAMP, 3) == 20 * SECOND


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: exponential(-1), "base must not be negative"),
        (lambda: exponential(float("nan")), "base must be finite"),
        (lambda: exponential(1, factor=0.5), "factor must be 1 or more"),
        (lambda: exponential(1, factor=float("inf")), "factor must be 1 or more"),
        (lambda: exponential(1, maximum=-1), "maximum must not be negative"),
        (lambda: exponential(1, maximum=float("inf")), "maximum must be finite"),
        (lambda: exponential(1, jitter=-0.1), "jitter must be from 0 to 1"),
        (lambda: exponential(1, jitter=1.1), "jitter must be from 0 to 1"),
        (lambda: constant(-1), "seconds must not be negative"),
        (lambda: stamp(-1), "seconds must not be negative"),
    ],
)
def test_a_wrong_number_is_refused_by_its_name(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("value", ["5", None, [], True])
def test_what_is_no_backoff_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        stamp(value)
