"""The way of a call's arguments into a row and out of it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from django_alkstore import InvalidPayload, payload
from django_alkstore.arguments import Arguments, load

NAIVE = datetime(2026, 1, 1)


def sends(order_id: Any, /, *more: Any, note: Any = "", **rest: Any) -> None: ...


def taker(context: object, order_id: int, **rest: Any) -> None: ...


@pytest.fixture
def arguments() -> Arguments:
    return Arguments(sends, "shop.send", context=False)


def test_a_call_is_stored_as_args_and_kwargs(arguments: Arguments) -> None:
    assert arguments.dump((1, "a"), {"note": None}) == (
        '{"args": [1, "a"], "kwargs": {"note": null}}'
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "missing a required"),
        ((), {"order_id": 1}, "order_id"),
    ],
)
def test_arguments_that_do_not_fit_are_a_type_error_that_names_the_task(
    arguments: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any], words: str
) -> None:
    with pytest.raises(TypeError, match=rf"shop\.send: .*{words}"):
        arguments.dump(args, kwargs)


@pytest.mark.parametrize("name", ["delay", "priority"])
def test_an_option_among_the_arguments_is_told_where_it_belongs(name: str) -> None:
    def plain(order_id: int) -> None: ...

    with pytest.raises(TypeError, match=rf"it is an option.* using\({name}=…\)"):
        Arguments(plain, "shop.send", context=False).dump((1,), {name: 60})


@pytest.mark.parametrize(
    "value",
    [
        NAIVE,
        datetime(2026, 1, 1, tzinfo=UTC),
        date(2026, 1, 1),
        UUID(int=1),
        Decimal("1.10"),
        object(),
        {1, 2},
        (1, 2),
        b"bytes",
        math.nan,
        math.inf,
        {1: "key"},
        "a\x00b",
        "\ud800",
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_argument_that_is_not_json_is_refused_by_name(
    arguments: Arguments, value: object
) -> None:
    calls: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((value,), {}, "order_id"),
        (([1, {"deep": value}],), {}, r"order_id\[1\]\['deep'\]"),
        ((1, 2, value), {}, r"more\[1\]"),
        ((1,), {"note": value}, "note"),
        ((1,), {"other": [value]}, r"other\[0\]"),
    ]
    for args, kwargs, name in calls:
        with pytest.raises(InvalidPayload, match=rf"^shop\.send: argument {name}:"):
            arguments.dump(args, kwargs)


def test_the_refusal_is_a_type_error_and_a_value_error(arguments: Arguments) -> None:
    with pytest.raises(TypeError):
        arguments.dump((NAIVE,), {})
    with pytest.raises(ValueError, match="datetime is not JSON"):
        arguments.dump((NAIVE,), {})


def test_numbers_of_any_size_are_stored_digit_by_digit(arguments: Arguments) -> None:
    numbers = [3889108265204450030, 9007199254740993, -(2**63), 10**100, -0.0, 1e16]

    args, _ = load_text(arguments.dump((numbers,), {}))

    assert [repr(number) for number in args[0]] == [repr(number) for number in numbers]


def test_a_context_takes_the_first_argument_and_nothing_else() -> None:
    arguments = Arguments(taker, "shop.take", context=True)

    assert arguments.dump((1,), {"self": 2}) == '{"args": [1], "kwargs": {"self": 2}}'
    with pytest.raises(TypeError, match="order_id"):
        arguments.dump((), {})
    with pytest.raises(TypeError, match="context"):
        arguments.dump((1,), {"context": 2})


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"args": []},
        {"kwargs": {}},
        {"args": {}, "kwargs": {}},
        {"args": [], "kwargs": []},
        {"args": [], "kwargs": {}, "more": 1},
        "text",
    ],
)
def test_any_other_shape_is_no_call(value: object) -> None:
    with pytest.raises(ValueError, match="args"):
        load(value)


def load_text(text: str) -> tuple[list[Any], dict[str, Any]]:
    return load(payload.loads(text))
