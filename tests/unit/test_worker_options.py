"""A worker's options: what is refused, and how they are spelled for a child process."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import pytest
from django.core.management import CommandParser

from django_alkstore.conf import Settings
from django_alkstore.management.commands.alkstore_worker import Command
from django_alkstore.worker.options import WorkerOptions
from django_alkstore.worker.supervisor import child_command, child_environment

OPTIONS = [
    WorkerOptions(database="default"),
    WorkerOptions(
        database="other",
        queues=("a", "-b*", "c d"),
        exclude=("--x",),
        threads=7,
        batch=True,
        max_jobs=5,
        max_memory=300,
        shutdown_timeout=0.25,
        poll_interval=1e-3,
    ),
]


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser: CommandParser = Command().create_parser("manage.py", "alkstore_worker")
    return parser.parse_args(arguments)


def build(**given: Any) -> WorkerOptions:
    return WorkerOptions.build(Settings(), database="default", **given)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_child_is_told_what_its_supervisor_was_told(options: WorkerOptions) -> None:
    found = vars(parsed(options.arguments()))

    names = (
        "database", "queues", "exclude", "threads", "processes", "batch", "max_jobs",
        "max_memory", "shutdown_timeout", "poll_interval",
    )  # fmt: skip
    again = WorkerOptions.build(Settings(), **{name: found[name] for name in names})
    assert again == options


def test_a_child_runs_the_same_interpreter_and_finds_the_same_modules() -> None:
    command = child_command(OPTIONS[0], verbosity=2)
    environment = child_environment()

    assert command[0] == sys.executable
    assert parsed(command[command.index("alkstore_worker") + 1 :]).verbosity == 2
    assert environment["DJANGO_SETTINGS_MODULE"].startswith("tests.settings.")
    assert set(filter(None, sys.path)) <= set(environment["PYTHONPATH"].split(":"))


def test_settings_fill_in_for_what_is_not_given() -> None:
    settings = Settings(threads=3, processes=2, poll_interval=0.5, shutdown_timeout=0.0)

    options = WorkerOptions.build(settings, database="default", shutdown_timeout=4.0)

    assert (options.threads, options.processes, options.poll_interval) == (3, 2, 0.5)
    assert options.shutdown_timeout == 4.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"threads": 0}, "--threads must be 1 or more"),
        ({"processes": -1}, "--processes must be 1 or more"),
        ({"threads": 100_000}, "--threads must be 1000 or fewer"),
        ({"processes": 1_001}, "--processes must be 1000 or fewer"),
        ({"max_jobs": 0}, "--max-jobs must be 1 or more"),
        ({"max_memory": 0}, "--max-memory must be 1 or more"),
        ({"shutdown_timeout": -1.0}, "--shutdown-timeout"),
        ({"shutdown_timeout": float("nan")}, "--shutdown-timeout"),
        ({"poll_interval": 0.0}, "--poll-interval"),
        ({"queues": "a,,b"}, "--queues has an empty name"),
        ({"exclude": ""}, "--exclude has an empty name"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        build(**given)
