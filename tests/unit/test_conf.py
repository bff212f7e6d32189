"""The ``ALKSTORE`` setting: defaults, conversion, refusals."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_alkstore.conf import (
    SETTING_NAMES,
    Retention,
    Settings,
    get_settings,
    setting_problems,
)


def test_every_setting_has_a_field_and_every_field_a_setting() -> None:
    assert {field.name.upper() for field in fields(Settings)} == set(SETTING_NAMES)


def test_defaults_are_those_of_the_contract() -> None:
    found = get_settings()

    assert (found.threads, found.processes, found.prefetch) == (4, 1, 64)
    assert (found.poll_interval, found.shutdown_timeout) == (1.0, 30.0)
    assert (found.worker_ttl, found.leader_ttl) == (60.0, 60.0)
    assert found.max_payload_bytes == 1_048_576
    assert found.retention.dead == timedelta(days=30).total_seconds()
    assert found.retention.metrics == timedelta(days=14).total_seconds()
    assert found.retention.notifications == timedelta(days=1).total_seconds()
    assert found.retention.notification_rows == 10_000
    assert (found.inline, found.mask, found.task_modules) == (False, (), ())
    assert dict(found.schedules) == {}


def test_durations_are_seconds_or_timedeltas() -> None:
    with override_settings(
        ALKSTORE={"POLL_INTERVAL": timedelta(milliseconds=250), "SHUTDOWN_TIMEOUT": 5}
    ):
        found = get_settings()

    assert (found.poll_interval, found.shutdown_timeout) == (0.25, 5.0)


def test_settings_are_read_once_and_again_after_they_changed() -> None:
    first = get_settings()

    assert get_settings() is first
    with override_settings(ALKSTORE={"THREADS": 9}):
        assert get_settings().threads == 9
    assert get_settings() == first


def test_settings_cannot_be_assigned_to() -> None:
    with pytest.raises(FrozenInstanceError):
        get_settings().threads = 5  # type: ignore[misc]  # what the test is about


def test_one_part_of_the_retention_leaves_the_others_at_their_defaults() -> None:
    with override_settings(ALKSTORE={"RETENTION": {"dead": None, "metrics": 60}}):
        found = get_settings().retention

    assert found == Retention(dead=None, metrics=60.0)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ({"TREADS": 4}, "THREADS"),
        ({"threads": 4}, "THREADS"),
        ({"PULL_INTERVAL": 1}, "POLL_INTERVAL"),
        ({"RETENTION": {"ded": 1}}, "dead"),
        ({3: 4}, None),
    ],
)
def test_an_unknown_key_names_the_nearest_known_one(
    given: dict[Any, Any], nearest: str | None
) -> None:
    with override_settings(ALKSTORE=given):
        (problem,) = setting_problems()

    assert "unknown key" in problem
    if nearest is not None:
        assert f"the nearest known one is {nearest!r}" in problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("THREADS", 0),
        ("THREADS", True),
        ("THREADS", "4"),
        ("PROCESSES", 0),
        ("PREFETCH", -1),
        ("POLL_INTERVAL", 0),
        ("POLL_INTERVAL", float("nan")),
        ("SHUTDOWN_TIMEOUT", -1),
        ("SHUTDOWN_TIMEOUT", timedelta(seconds=-1)),
        ("MAX_PAYLOAD_BYTES", 0),
        ("MAX_PAYLOAD_BYTES", 1.5),
        ("WORKER_TTL", None),
        ("LEADER_TTL", 0),
        ("RETENTION", 30),
        ("RETENTION", {"dead": "30"}),
        ("RETENTION", {"notification_rows": -1}),
        ("INLINE", 1),
        ("MASK", "password"),
        ("MASK", [1]),
        ("SCHEDULES", []),
        ("SCHEDULES", {"": {}}),
        ("SCHEDULES", {"nightly": "0 3 * * *"}),
        ("TASK_MODULES", "shop.jobs"),
        ("TASK_MODULES", [""]),
    ],
)
def test_a_bad_value_is_refused_and_its_setting_named(name: str, value: object) -> None:
    with override_settings(ALKSTORE={name: value}):
        problems = setting_problems()

        assert len(problems) == 1
        assert problems[0].startswith(f"ALKSTORE['{name}']")
        with pytest.raises(ImproperlyConfigured, match=name):
            get_settings()


def test_the_error_lists_every_problem() -> None:
    with (
        override_settings(ALKSTORE={"THREADS": 0, "NOPE": 1, "RETENTION": {"x": 1}}),
        pytest.raises(ImproperlyConfigured, match=r"(?s)THREADS.*NOPE.*RETENTION"),
    ):
        get_settings()


def test_a_setting_that_is_no_dict_is_refused() -> None:
    with override_settings(ALKSTORE=["THREADS"]):
        assert setting_problems() == ["ALKSTORE must be a dict of settings, not list."]
