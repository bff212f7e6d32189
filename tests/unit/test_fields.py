"""The two fields of time, as far as they need no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Field

from django_alkstore import clock
from django_alkstore.models import LiveJob

NOON = datetime(2026, 1, 1, 12, 0, 0, 123_456, tzinfo=UTC)


def field(name: str) -> Field[Any, Any]:
    found = LiveJob._meta.get_field(name)
    assert isinstance(found, Field)
    return found


@pytest.mark.parametrize("name", ["run_at", "visibility_timeout"])
def test_the_column_is_a_bigint(name: str) -> None:
    assert field(name).get_internal_type() == "BigIntegerField"


@pytest.mark.parametrize(
    "value", [NOON, NOON.isoformat(), str(NOON), clock.from_instant(NOON, "x")]
)
def test_an_instant_is_read_from_what_serializers_and_forms_give(value: Any) -> None:
    assert field("run_at").to_python(value) == NOON
    assert field("run_at").get_prep_value(value) == clock.from_instant(NOON, "x")


@pytest.mark.parametrize(
    "value", [timedelta(minutes=90), "1:30:00", "PT1H30M", "5400", 5_400_000_000]
)
def test_a_length_of_time_is_read_from_what_serializers_and_forms_give(
    value: Any,
) -> None:
    assert field("timeout").to_python(value) == timedelta(minutes=90)
    assert field("timeout").get_prep_value(value) == 5_400_000_000


@pytest.mark.parametrize("name", ["expires_at", "timeout"])
def test_none_stays_none(name: str) -> None:
    assert field(name).to_python(None) is None
    assert field(name).get_prep_value(None) is None


@pytest.mark.parametrize("name", ["run_at", "timeout"])
@pytest.mark.parametrize(
    "value", ["tomorrow", "2026-13-01T00:00:00Z", "1:61x", object()]
)
def test_what_is_no_time_is_a_validation_error(name: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        field(name).to_python(value)

    assert caught.value.code == "invalid"


def test_a_naive_instant_is_refused_by_the_fields_name() -> None:
    for value in (NOON.replace(tzinfo=None), "2026-01-01T12:00:00"):
        with pytest.raises(ValueError, match="run_at is a naive datetime"):
            field("run_at").get_prep_value(value)


def test_a_negative_length_of_time_is_refused_by_the_fields_name() -> None:
    with pytest.raises(ValueError, match="timeout must not be negative"):
        field("timeout").get_prep_value(timedelta(-1))


def test_serialized_values_are_read_back_to_the_microsecond() -> None:
    span = timedelta(days=3, hours=1, microseconds=7)
    job = LiveJob(run_at=NOON, timeout=span)

    for name, value in (("run_at", NOON), ("timeout", span)):
        text = field(name).value_to_string(job)
        assert field(name).to_python(text) == value
    assert field("expires_at").value_to_string(job) == ""


def test_forms_ask_for_dates_and_durations() -> None:
    assert isinstance(field("run_at").formfield(), forms.DateTimeField)
    assert isinstance(field("timeout").formfield(), forms.DurationField)


@pytest.mark.parametrize("name", ["run_at", "timeout"])
def test_a_field_can_be_taken_apart_and_built_again(name: str) -> None:
    _, path, args, kwargs = field(name).deconstruct()

    assert path.startswith("django_alkstore.fields.")
    again = type(field(name))(*args, **kwargs)
    assert again.deconstruct()[1:] == (path, args, kwargs)
