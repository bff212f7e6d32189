"""
Payloads and results: strict JSON, so that what comes back equals what went in.

The column is text on both engines and no JSON function of a database ever touches it:
a number of any size, the order of keys and -0.0 come back as they were.
"""

from __future__ import annotations

import json
import math
from typing import Any

from django_alkstore.conf import get_settings
from django_alkstore.exceptions import InvalidPayload

_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(", ", ": ")
).encode

_encode_ascii = json.JSONEncoder(allow_nan=False).encode


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_no_constant).decode


def dumps(value: object, name: str = "payload") -> str:
    """
    Return the JSON text of ``value``.

    Raise InvalidPayload, naming the place within ``name``, for what JSON cannot carry
    unchanged: other types, tuples, keys that are not strings, NaN and the infinities,
    NUL and lone surrogates in text, integers beyond Python's limit of digits, and what
    is nested too deep or within itself.
    """
    try:
        text = _encode(value)
        # json.dumps turns tuples into lists and the keys 1 and None into strings;
        # comparing catches every such change with no walk in Python.
        if "\\u0000" not in text and _decode(text) == value:
            text.encode()
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    _refuse(value, name, ())
    return _encode(value)


def checked(value: object, name: str = "payload") -> str:
    """
    Return ``dumps`` of ``value``, within the setting ``MAX_PAYLOAD_BYTES``.

    Raise InvalidPayload as ``dumps`` does, and when the text is too long.
    """
    return _within_limit(dumps(value, name), name)


def checked_result(value: object) -> str:
    """
    Return the JSON text of what a job returned, within ``MAX_PAYLOAD_BYTES``.

    Raise InvalidPayload as ``checked`` does, save that NUL and lone surrogates are
    kept, as JSON's own escapes: the work was done, and nothing would be won by losing
    it.
    """
    try:
        return checked(value, "result")
    except InvalidPayload:
        try:
            text = _encode_ascii(value)
            same = _decode(text) == value
        except (TypeError, ValueError, RecursionError):
            same = False
        if not same:
            raise
    return _within_limit(text, "result")


def _within_limit(text: str, name: str) -> str:
    limit = get_settings().max_payload_bytes
    if len(text) * 4 > limit and (size := len(text.encode())) > limit:
        raise InvalidPayload(
            f"{name}: {size:,} bytes of JSON are over MAX_PAYLOAD_BYTES, {limit:,}"
        )
    return text


def loads(text: str) -> Any:
    """Return the value of a JSON text. Raise ValueError when it cannot be decoded."""
    try:
        return _decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    except TypeError:
        raise ValueError(f"a column of {type(text).__name__}, not text") from None


def escape(text: str, limit: int) -> str:
    """
    Return text that any database can store: NUL and lone surrogates escaped, cut.

    What is over ``limit`` characters loses its middle, because a traceback says where
    it began at its head and what went wrong at its tail.
    """
    clean = text.replace("\x00", "\\x00")
    clean = clean.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(clean) <= limit:
        return clean
    mark = "\n[…]\n"
    if limit <= len(mark) * 3:
        return clean[:limit]
    head = (limit - len(mark)) // 3
    return clean[:head] + mark + clean[len(clean) - (limit - len(mark) - head) :]


def _refuse(value: object, place: str, parents: tuple[int, ...]) -> None:
    """Raise InvalidPayload for the first thing in ``value`` that is not JSON."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _refuse_text(value, place)
    elif isinstance(value, int):
        try:
            int.__repr__(value)
        except ValueError as error:
            raise InvalidPayload(f"{place}: {error}") from None
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidPayload(f"{place}: {value} is not JSON")
    elif isinstance(value, (dict, list)):
        if id(value) in parents:
            raise InvalidPayload(f"{place}: contains itself")
        if len(parents) > 200:
            raise InvalidPayload(f"{place}: nested too deep")
        _refuse_within(value, place, (*parents, id(value)))
    else:
        hint = "; use a list" if isinstance(value, (tuple, set, frozenset)) else ""
        raise InvalidPayload(f"{place}: {type(value).__name__} is not JSON{hint}")


def _refuse_within(
    value: dict[Any, Any] | list[Any], place: str, parents: tuple[int, ...]
) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _refuse(item, f"{place}[{index}]", parents)
        return
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidPayload(
                f"{place}: the key {key!r} is {type(key).__name__}; JSON keys are str"
            )
        _refuse_text(key, f"{place}: the key {key!r}")
        _refuse(item, f"{place}[{key!r}]", parents)


def _refuse_text(value: str, place: str) -> None:
    if "\x00" in value:
        raise InvalidPayload(f"{place}: text with a NUL character cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidPayload(f"{place}: text with a lone surrogate") from None
