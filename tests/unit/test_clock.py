"""Instants and durations: integers in the tables, datetimes and seconds in Python."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings

from django_alkstore import clock

SHANGHAI = override_settings(USE_TZ=False, TIME_ZONE="Asia/Shanghai")
NEW_YEAR = 1_767_225_600 * clock.SECOND  # 2026-01-01 00:00 UTC


def test_an_instant_is_microseconds_since_the_epoch() -> None:
    value = datetime(2026, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)

    assert clock.from_instant(value, "x") == NEW_YEAR + 123_456
    assert clock.to_instant(NEW_YEAR + 123_456) == value


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 1, 8, tzinfo=ZoneInfo("Asia/Shanghai")),
        datetime(2025, 12, 31, 16, tzinfo=ZoneInfo("America/Los_Angeles")),
        datetime(2026, 1, 1, 5, 45, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    ],
    ids=str,
)
def test_an_aware_datetime_of_any_zone_is_the_same_instant(value: datetime) -> None:
    assert clock.from_instant(value, "x") == NEW_YEAR


def test_both_of_two_equal_wall_times_are_told_apart() -> None:
    first = datetime(2025, 11, 2, 1, 30, tzinfo=ZoneInfo("America/New_York"))

    hour = clock.from_instant(first.replace(fold=1), "x") - clock.from_instant(
        first, "x"
    )

    assert hour == 3600 * clock.SECOND


def test_an_instant_before_the_epoch_is_negative() -> None:
    value = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

    assert clock.from_instant(value, "x") == -1
    assert clock.to_instant(-1) == value


@override_settings(TIME_ZONE="America/Los_Angeles")
def test_a_naive_datetime_is_refused_when_time_zones_are_on() -> None:
    with pytest.raises(ValueError, match="run_at is a naive datetime"):
        clock.from_instant(datetime.now() + timedelta(minutes=3), "run_at")


@SHANGHAI
def test_a_naive_datetime_is_local_time_when_time_zones_are_off() -> None:
    assert clock.from_instant(datetime(2026, 1, 1, 8), "x") == NEW_YEAR
    assert clock.to_instant(NEW_YEAR) == datetime(2026, 1, 1, 8)


@SHANGHAI
def test_an_aware_datetime_is_exact_when_time_zones_are_off() -> None:
    assert clock.from_instant(datetime(2026, 1, 1, tzinfo=UTC), "x") == NEW_YEAR


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/Los_Angeles"])
@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize(
    "far", [2**63 - 1, -(2**63), clock.MAX_INSTANT, clock.MIN_INSTANT]
)
def test_what_is_beyond_datetimes_is_shown_as_the_nearest_one(
    far: int, use_tz: bool, zone: str
) -> None:
    with override_settings(USE_TZ=use_tz, TIME_ZONE=zone):
        shown = clock.to_instant(far)

        assert shown.year >= 9999 if far > 0 else shown.year == 1
        assert clock.to_instant(clock.from_instant(shown, "x")) == shown


@pytest.mark.parametrize(
    "value", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_the_very_ends_of_time_are_refused(value: datetime) -> None:
    with pytest.raises(ValueError, match="x is outside the years 1 to 9999"):
        clock.from_instant(value, "x")


def test_the_longest_duration_from_now_is_an_instant_yet() -> None:
    assert clock.host_now() + clock.MAX_DURATION < clock.MAX_INSTANT


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        (0, 0), (1, 1_000_000), (0.5, 500_000), (1e-6, 1), (4e-7, 0), (0.1 + 0.2,
        300_000), (timedelta(microseconds=1), 1), (timedelta(days=1), 86_400_000_000),
    ],
)  # fmt: skip
def test_a_duration_is_rounded_to_the_microsecond(
    value: float | timedelta, microseconds: int
) -> None:
    assert clock.duration(value, "x") == microseconds


def test_seven_thousand_years_are_the_longest_duration() -> None:
    longest = timedelta(days=365 * 7_000)

    assert clock.duration(longest, "x") == clock.MAX_DURATION
    with pytest.raises(ValueError, match="x must not be over 7,000 years"):
        clock.duration(longest + timedelta(microseconds=1), "x")


def test_the_hosts_clock_is_the_hosts_clock() -> None:
    before = int(time.time() * clock.SECOND) - 1

    now = clock.host_now()

    assert before <= now <= int(time.time() * clock.SECOND) + 1


def test_pretend_ends_with_its_block_and_may_be_nested() -> None:
    assert clock.pretended() is None
    with clock.pretend(1):
        with pytest.raises(RuntimeError), clock.pretend(2):
            assert clock.pretended() == 2
            raise RuntimeError
        assert clock.pretended() == 1
    assert clock.pretended() is None


def test_pretend_is_about_the_thread_that_pretends_alone() -> None:
    seen: list[int | None] = []

    with clock.pretend(1):
        thread = threading.Thread(target=lambda: seen.append(clock.pretended()))
        thread.start()
        thread.join()

    assert seen == [None]
