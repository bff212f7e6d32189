"""
Payloads: what comes back equals what went in, and the rest is refused by its place.
"""

from __future__ import annotations

import sys
import uuid
from collections import OrderedDict
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.test import override_settings

from django_alkstore.exceptions import AlkstoreError, InvalidPayload
from django_alkstore.payload import checked, checked_result, dumps, escape, loads

MOST_DIGITS = sys.get_int_max_str_digits()


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, 1, -1, 1.0, 1.5, -0.0, 1e16, 1e-7, 5e-324, 2**53 + 1,
        3889108265204450030, 899999999999999990, 999999999999999990,
        -9223372036854775808, 10**100, 10 ** (MOST_DIGITS - 1), "", "Ünï ☃ 🎈",
        "</script>", "\\u0000", "\x7f\u2028", [], {}, [[], {}, ""], {"": None},
        {"z": 1, "a": [True, 1, 1.0], "é": {"ü": "\\"}},
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_a_value_comes_back_equal_and_of_the_same_type(value: object) -> None:
    back = loads(dumps(value))

    assert back == value
    assert repr(back) == repr(value)


def test_the_order_of_keys_is_kept() -> None:
    assert list(loads(dumps({"z": 1, "a": 2, "m": 3}))) == ["z", "a", "m"]


def test_a_subclass_of_dict_is_taken_for_the_dict_it_is() -> None:
    assert loads(dumps(OrderedDict(b=1, a=2))) == {"b": 1, "a": 2}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "payload: object is not JSON"),
        (b"bytes", "payload: bytes is not JSON"),
        ((1, 2), "payload: tuple is not JSON; use a list"),
        ({1, 2}, "payload: set is not JSON; use a list"),
        (Decimal("1.10"), "payload: Decimal is not JSON"),
        (uuid.UUID(int=1), "payload: UUID is not JSON"),
        (date(2026, 1, 1), "payload: date is not JSON"),
        (datetime(2026, 1, 1), "payload: datetime is not JSON"),
        (datetime(2026, 1, 1, tzinfo=UTC), "payload: datetime is not JSON"),
        (1j, "payload: complex is not JSON"),
        (float("nan"), "payload: nan is not JSON"),
        (float("inf"), "payload: inf is not JSON"),
        ({"a": [1, float("-inf")]}, "payload['a'][1]: -inf is not JSON"),
        ({"a": [1, 2, date.today()]}, "payload['a'][2]: date is not JSON"),
        ([[(1,)]], "payload[0][0]: tuple is not JSON"),
        ({1: 2}, "payload: the key 1 is int; JSON keys are str"),
        ({"a": {None: 2}}, "payload['a']: the key None is NoneType"),
        ({True: 2}, "payload: the key True is bool"),
        ({("a",): 2}, "payload: the key ('a',) is tuple"),
        ("a\x00b", "payload: text with a NUL character"),
        (["a", {"note": "\x00"}], "payload[1]['note']: text with a NUL"),
        ({"k\x00": 1}, "payload: the key 'k\\x00': text with a NUL"),
        ("\ud800", "payload: text with a lone surrogate"),
        ({"\udfff": 1}, "payload: the key '\\udfff': text with a lone surrogate"),
        ([10**MOST_DIGITS], "payload[0]: Exceeds the limit"),
        (nested(100_000), "nested too deep"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_json_cannot_carry_is_refused_by_its_place(
    value: object, words: str
) -> None:
    with pytest.raises(InvalidPayload) as caught:
        dumps(value)

    assert words in str(caught.value)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: dict[str, Any] = {"a": [1]}
    value["a"].append(value)

    with pytest.raises(InvalidPayload, match=r"payload\['a'\]\[1\]: contains itself"):
        dumps(value)


def test_a_value_that_is_there_twice_does_not_contain_itself() -> None:
    part = [1]

    assert loads(dumps([part, part])) == [[1], [1]]


@pytest.mark.parametrize("parent", [TypeError, ValueError, AlkstoreError])
def test_the_error_is_both_of_the_builtin_ones(parent: type[Exception]) -> None:
    with pytest.raises(parent):
        dumps(object())


def test_the_error_names_the_argument_that_is_at_fault() -> None:
    with pytest.raises(InvalidPayload, match=r"^kwargs\['when'\]: date is not JSON$"):
        dumps({"when": date.today()}, "kwargs")


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_text_of_as_many_bytes_as_the_limit_is_taken(size: int) -> None:
    value = "é" * size
    limit = 2 * size + 2

    with override_settings(ALKSTORE={"MAX_PAYLOAD_BYTES": limit}):
        assert loads(checked(value)) == value
        with pytest.raises(InvalidPayload, match=f"{limit + 1:,} bytes .* {limit:,}$"):
            checked(value + "a")


def test_a_mebibyte_is_the_limit_by_default() -> None:
    checked("a" * (2**20 - 2))
    with pytest.raises(InvalidPayload, match="over MAX_PAYLOAD_BYTES"):
        checked("a" * (2**20 - 1))


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"a":',
        "hello",
        "[1,]",
        "'a'",
        '"a\nb"',
        "1 2",
        "NaN",
        '{"a": [-Infinity]}',
        "[" * 100_000,
        b"1",
        None,
        5,
    ],
    ids=lambda text: repr(text)[:12],
)
def test_a_text_that_cannot_be_decoded_is_a_value_error(text: Any) -> None:
    with pytest.raises(ValueError):
        loads(text)


def test_escape_leaves_plain_text_alone() -> None:
    assert escape("Ünï ☃ \t\n", 100) == "Ünï ☃ \t\n"


def test_escape_writes_out_what_a_database_refuses() -> None:
    assert escape("a\x00b\ud800c", 100) == "a\\x00b\\ud800c"


@pytest.mark.parametrize("limit", [0, 1, 17, 18, 19, 100, 1000])
def test_escape_never_exceeds_its_limit(limit: int) -> None:
    assert len(escape("\x00" * 500, limit)) == limit


def test_escape_cuts_the_middle_and_keeps_head_and_tail() -> None:
    text = escape("began here" + "x" * 1000 + "went wrong there", 100)

    assert text.startswith("began here")
    assert text.endswith("went wrong there")
    assert "[…]" in text


@pytest.mark.parametrize(
    "value", ["a\x00b", {"k\x00": ["\ud800"]}, "plain", [1e16, -0.0]]
)
def test_a_result_keeps_text_that_an_argument_may_not_hold(value: object) -> None:
    text = checked_result(value)

    assert "\x00" not in text
    assert text.encode()
    assert loads(text) == value


@pytest.mark.parametrize("value", [object(), float("nan"), (1,), {1: "\x00"}])
def test_a_result_that_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(InvalidPayload, match="^result"):
        checked_result(value)


@override_settings(ALKSTORE={"MAX_PAYLOAD_BYTES": 100})
@pytest.mark.parametrize("value", ["a" * 99, "\x00" * 20])
def test_a_result_is_bounded_like_a_payload(value: str) -> None:
    with pytest.raises(InvalidPayload, match="MAX_PAYLOAD_BYTES"):
        checked_result(value)
