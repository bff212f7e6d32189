"""Options: validated once, before any SQL, by the name of the argument at fault."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from django_alkstore import constant, queue
from django_alkstore.clock import SECOND, from_instant
from django_alkstore.options import JobOptions, check_limit, check_unique_key

build = JobOptions.build
SOON = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_defaults_are_those_of_the_contract() -> None:
    options = build("q")

    assert (options.priority, options.max_attempts, options.delay) == (0, 3, 0)
    assert options.visibility_timeout == 300 * SECOND
    assert options.on_conflict == "return"
    assert options.run_at is options.expires is options.timeout is None
    assert options.result_ttl is options.dead_letter_retention is None


@pytest.mark.parametrize(
    "name", ["delay", "expires", "visibility_timeout", "timeout", "result_ttl",
             "dead_letter_retention"],
)  # fmt: skip
def test_durations_are_seconds_or_timedeltas(name: str) -> None:
    values: list[Any] = [90, 90.0, timedelta(minutes=1.5)]

    assert {getattr(build("q", **{name: value}), name) for value in values} == {
        90 * SECOND
    }


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"delay": 1, "run_at": SOON}, ValueError, "delay or run_at, not both"),
        ({"delay": 0, "run_at": SOON}, ValueError, "delay or run_at, not both"),
        ({"delay": -1}, ValueError, "delay must not be negative"),
        ({"delay": -1e-6}, ValueError, "delay must not be negative"),
        ({"delay": timedelta(-1)}, ValueError, "delay must not be negative"),
        ({"delay": float("nan")}, ValueError, "delay must be finite"),
        ({"delay": float("inf")}, ValueError, "delay must be finite"),
        ({"delay": float("-inf")}, ValueError, "delay must be finite"),
        ({"delay": 10**400}, ValueError, "delay must not be over 7,000 years"),
        ({"delay": -(10**400)}, ValueError, "delay must not be negative"),
        ({"delay": timedelta.max}, ValueError, "delay must not be over 7,000 years"),
        ({"delay": 12 * 86_400**3}, ValueError, "delay must not be over 7,000 years"),
        ({"delay": "1"}, TypeError, "delay must be seconds or a timedelta, not str"),
        ({"delay": True}, TypeError, "delay must be seconds or a timedelta, not bool"),
        ({"delay": SOON}, TypeError, "delay must be seconds or a timedelta"),
        ({"expires": -1}, ValueError, "expires must not be negative"),
        ({"dead_letter_retention": -1}, ValueError, "must not be negative"),
        ({"visibility_timeout": 0}, ValueError, "visibility_timeout must be more than"),
        ({"timeout": 0}, ValueError, "timeout must be more than zero"),
        ({"result_ttl": 0}, ValueError, "result_ttl must be more than zero"),
        ({"run_at": SOON.replace(tzinfo=None)}, ValueError, "naive datetime"),
        (
            {"run_at": date(2030, 1, 1)},
            TypeError,
            "run_at must be a datetime, not date",
        ),
        ({"run_at": 5}, TypeError, "run_at must be a datetime, not int"),
        ({"priority": 2**31}, ValueError, "priority must fit 32 bits"),
        ({"priority": -(2**31) - 1}, ValueError, "priority must fit 32 bits"),
        ({"priority": 1.0}, TypeError, "priority must be an integer, not float"),
        ({"priority": True}, TypeError, "priority must be an integer, not bool"),
        ({"priority": None}, TypeError, "priority must be an integer, not NoneType"),
        ({"max_attempts": 0}, ValueError, "max_attempts must be 1 or more, not 0"),
        ({"max_attempts": -1}, ValueError, "max_attempts must be 1 or more, not -1"),
        ({"max_attempts": 2**31}, ValueError, "max_attempts"),
        ({"max_attempts": 1.5}, TypeError, "max_attempts must be an integer"),
        ({"on_conflict": "ignore"}, ValueError, "on_conflict must be 'return'"),
        ({"on_conflict": None}, ValueError, "on_conflict must be 'return'"),
        ({"backoff": "5"}, TypeError, "backoff must be seconds"),
        ({"colour": "red"}, TypeError, "unknown option 'colour'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_option_is_refused(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        build("q", **given)
    with pytest.raises(error, match=words):
        build("q").change(**given)


@pytest.mark.parametrize("priority", [-(2**31), 0, 2**31 - 1])
def test_a_priority_may_use_all_of_its_32_bits(priority: int) -> None:
    assert build("q", priority=priority).priority == priority


def test_no_number_of_attempts_is_the_default_of_three() -> None:
    """B145."""
    assert build("q", max_attempts=None).max_attempts == 3


@pytest.mark.parametrize(("make", "attribute"), [(build, "queue"), (queue, "name")])
@pytest.mark.parametrize(
    "name",
    ["a b", "a-b", "a.b", 'a"b', "a'b", "Ünï", "A", "*", "a,b", "%s %(x)s", "\\", " ",
     "\n", "🎈" * 100, "x" * 100],
)  # fmt: skip
def test_a_name_of_up_to_a_hundred_characters_is_taken_as_it_is(
    make: Any, attribute: str, name: str
) -> None:
    """B129."""
    assert getattr(make(name), attribute) == name


@pytest.mark.parametrize("make", [build, queue], ids=["options", "handle"])
@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("", ValueError, "queue must not be empty"),
        ("x" * 101, ValueError, "queue is over 100 characters"),
        ("a\x00", ValueError, "queue holds a NUL"),
        ("\ud800", ValueError, "queue holds a lone surrogate"),
        (None, TypeError, "queue must be a string, not NoneType"),
        (5, TypeError, "queue must be a string, not int"),
        (b"q", TypeError, "queue must be a string, not bytes"),
    ],
)
def test_a_bad_queue_name_is_refused(
    make: Any, name: Any, error: type[Exception], words: str
) -> None:
    """B129, B131."""
    with pytest.raises(error, match=words):
        make(name)


def test_a_unique_key_is_at_most_200_characters_or_none() -> None:
    assert check_unique_key(None) is None
    assert check_unique_key("k" * 200) == "k" * 200
    for key, error in (
        ("", ValueError),
        ("k" * 201, ValueError),
        ("k\x00", ValueError),
    ):
        with pytest.raises(error, match="unique_key"):
            check_unique_key(key)
    with pytest.raises(TypeError, match="unique_key must be a string, not int"):
        check_unique_key(5)


@pytest.mark.parametrize(
    ("limit", "error"),
    [(0, ValueError), (-1, ValueError), (1.0, TypeError), ("1", TypeError)],
)
def test_a_limit_is_an_integer_of_one_or_more(
    limit: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="limit must be"):
        check_limit(limit)


def test_change_leaves_the_other_options_and_the_original_alone() -> None:
    options = build("q", priority=1, timeout=5)

    changed = options.change(priority=2, queue="r")

    assert (changed.queue, changed.priority, changed.timeout) == ("r", 2, 5 * SECOND)
    assert (options.queue, options.priority) == ("q", 1)


def test_change_validates_the_queue_too() -> None:
    with pytest.raises(ValueError, match="queue must not be empty"):
        build("q").change(queue="")


@pytest.mark.parametrize("delay", [0, 60])
def test_a_later_delay_takes_the_place_of_an_instant(delay: int) -> None:
    options = build("q", run_at=SOON).change(delay=delay)

    assert (options.delay, options.run_at) == (delay * SECOND, None)


def test_a_later_instant_takes_the_place_of_a_delay() -> None:
    options = build("q", delay=60).change(run_at=SOON)

    assert (options.delay, options.run_at) == (0, from_instant(SOON, "run_at"))


def test_a_change_of_something_else_keeps_delay_and_instant() -> None:
    assert build("q", delay=60).change(priority=1).delay == 60 * SECOND
    assert build("q", run_at=SOON).change(delay=None, priority=1).run_at is not None


def test_the_backoff_is_stamped_as_text() -> None:
    assert build("q", backoff=7).backoff == build("q", backoff=constant(7)).backoff
