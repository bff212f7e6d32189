"""The reference names all that is public, and nothing that is not there."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.dispatch import Signal

import django_alkstore
from django_alkstore import (
    checks,
    conf,
    exceptions,
    jobs,
    keywords,
    options,
    results,
    signals,
    testing,
)
from django_alkstore.context import Context
from django_alkstore.decorator import Task
from django_alkstore.queues import Queue
from django_alkstore.testing.pytest_plugin import Jobs
from tests.commands import COMMANDS, flags_of
from tests.pages import DOCS, Page, Section, all_pages, page

PAGES = [each for each in all_pages() if each.path.is_relative_to(DOCS)]
MODELS = list(apps.get_app_config("django_alkstore").get_models())
WORKER = "alkstore_worker"

# Section of a page -> the class whose public names it lists, all of them.
DESCRIBED = {
    ("queue.md", "A claimed job"): [jobs.ClaimedJob],
    ("queue.md", "A job at rest"): [jobs.JobSnapshot, jobs.AttemptSnapshot],
    ("queue.md", "QueueStats"): [jobs.QueueStats],
    ("task.md", "Task"): [Task],
    ("task.md", "Context"): [Context],
    ("task.md", "TaskResult"): [results.TaskResult, results.TaskError],
    ("testing.md", "Running jobs"): [testing.Report],
    ("testing.md", "pytest"): [Jobs],
}


def test_settings() -> None:
    settings = page("reference/settings.md")
    retention = set(conf.Retention.__dataclass_fields__)

    listed = {key for section in settings.sections for key in section.keys}

    assert listed == {*conf.SETTING_NAMES, *retention}


def test_defaults_of_settings() -> None:
    rows = [row for each in page("reference/settings.md").sections for row in each.rows]
    defaults = conf.Settings()

    wrong = [
        row
        for row in rows
        if (name := row[0].strip("`").lower()) in conf.Settings.__dataclass_fields__
        and (said := re.match(r"`(.+?)`", row[1]))
        and ast.literal_eval(said[1]) != getattr(defaults, name)
        and said[1] != "{}"
    ]

    assert not wrong


def test_options() -> None:
    known = {
        *options._CONVERTERS,
        *_hints(keywords.TaskOptions),
        *_hints(keywords.CallOptions),
        *_keywords(Queue.enqueue),
        *_keywords(Task.__init__),
    } - {"function", "options", "payload"}
    reference = page("reference/options.md")

    listed = {
        key
        for title in ("Options of every job", "Options of a task")
        for key in reference.section(title).keys
    }

    assert listed == known


def test_where_options_may_be_given() -> None:
    reference = page("reference/options.md")
    task = {*_hints(keywords.TaskOptions), "takes_context"}
    call = set(_hints(keywords.CallOptions))
    enqueue = {*_keywords(Queue.enqueue), "queue"}

    for name, _, *places, _ in reference.section("Options of every job").rows:
        name = name.strip("`")
        assert [place != "no" for place in places] == [
            name in task, name in call, name in enqueue,
        ], name  # fmt: skip
    for name, _, *places, _ in reference.section("Options of a task").rows:
        name = name.strip("`")
        assert [place != "no" for place in places] == [name in task, name in call], name


def test_signals() -> None:
    known = {name for name, value in vars(signals).items() if isinstance(value, Signal)}

    [table] = [each for each in page("reference/signals.md").sections if each.rows][:1]

    assert set(table.keys) == known


def test_log_lines() -> None:
    known = set(re.findall(r"event=(\w+)", inspect.getsource(signals)))

    assert known <= page("reference/signals.md").whole.names


def test_errors() -> None:
    known = {
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and issubclass(value, exceptions.AlkstoreError)
    }
    first = page("reference/errors.md").sections[1]

    listed = [key.partition("(")[0] for key in first.keys]

    assert set(listed) == known | {"Retry", "Discard"}


def test_checks() -> None:
    known = {
        f"django_alkstore.{number}"
        for number in re.findall(r"[EW]\d{3}\b", inspect.getsource(checks))
    }

    assert set(page("reference/checks.md").sections[1].keys) == known


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str) -> None:
    section = page("reference/commands.md").section(name)

    listed = {flag for key in section.keys for flag in re.findall(r"--[\w-]+", key)}

    assert listed == flags_of(name)


def test_every_command_has_a_section_and_none_else() -> None:
    titles = [each.title for each in page("reference/commands.md").sections]

    assert [title for title in titles if title.startswith("alkstore_")] == [
        WORKER,
        *(name for name in COMMANDS if name != WORKER),
    ]


@pytest.mark.parametrize(("place", "classes"), DESCRIBED.items(), ids=str)
def test_classes(place: tuple[str, str], classes: list[type]) -> None:
    section = page(f"reference/{place[0]}").section(place[1])
    known = {name for each in classes for name in _public(each)}

    _assert_named(known, section)
    listed = _listed(section)
    if place[1] == "pytest":
        known |= {"alkstore_jobs", "alkstore_inline"}
    if place[1] == "Running jobs":
        known |= _keywords(testing.run_jobs)
    assert not listed - known


def test_queue() -> None:
    reference = page("reference/queue.md")
    titles = ("Storing", "Taking", "Jobs by id", "The whole queue")

    listed = set().union(*(_listed(reference.section(title)) for title in titles))

    assert listed == _public(Queue)


def test_testing() -> None:
    _assert_named(testing.__all__, page("reference/testing.md").whole)


def test_public_names() -> None:
    pages = [each for each in PAGES if each.path.parent.name == "reference"]

    named = set().union(*(each.whole.names for each in pages), _imports(pages))

    assert not set(django_alkstore.__all__) - named


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_models(model: type[models.Model]) -> None:
    section = page("reference/models.md").section(model.__name__)
    manager = model._default_manager
    ours = {
        name
        for base in type(manager).__mro__
        if base.__module__.startswith("django_alkstore.managers")
        for name in vars(base)
        if not name.startswith("_")
    } - {"using_alias", "now", "database"}
    methods = {
        name
        for base in model.__mro__
        if base.__module__.startswith("django_alkstore")
        for name, value in vars(base).items()
        if inspect.isfunction(value) and not name.startswith(("_", "get_"))
    }

    _assert_named(ours | methods, section)
    fields = {field.name for field in model._meta.get_fields()}
    for name in _listed(section) - fields - methods - ours:
        assert hasattr(manager, name.removeprefix("objects.")), name


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_schema(model: type[models.Model]) -> None:
    schema = page("reference/schema.md")
    section = schema.section(f"`{model._meta.db_table}`")
    columns = {str(field.column) for field in model._meta.concrete_fields}
    common = {field.name for field in _job_row()._meta.get_fields()} | {"id"}
    if issubclass(model, _job_row()):
        columns -= common
    names = {str(each.name) for each in model._meta.indexes}
    names |= {str(each.name) for each in model._meta.constraints}

    _assert_named(columns | names, section)
    assert not set(section.keys) - columns - names


def test_schema_of_every_job() -> None:
    listed = set(page("reference/schema.md").section("Columns of every job").keys)

    assert listed == {field.name for field in _job_row()._meta.get_fields()} | {"id"}


def _imports(pages: Iterable[Page]) -> set[str]:
    return {
        name
        for each in pages
        for line in re.findall(r"from django_alkstore import (.+)", each.text)
        for name in re.findall(r"\w+", line)
    }


def _hints(options: Any) -> set[str]:
    # Its annotations name types that are only there for a checker.
    return {*options.__required_keys__, *options.__optional_keys__}


def _keywords(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self"}


def _public(described: type) -> set[str]:
    """Return the public names that our own classes give an object."""
    names = {
        name
        for base in described.__mro__
        if base.__module__.startswith("django_alkstore")
        for name in {*vars(base), *getattr(base, "__annotations__", {})}
    }
    if described is Queue:
        names |= {"name", "using"}
    if described is Context:
        names |= {"job", "attempt", "logger", "notes"}
    return {name for name in names if not name.startswith("_")}


def _listed(section: Section) -> set[str]:
    return {re.split(r"[(,]", key)[0] for key in section.keys if key[0].isalpha()} - {
        "task"
    }


def _assert_named(names: Iterable[str], section: Section) -> None:
    assert not set(names) - section.names


def _job_row() -> Any:
    from django_alkstore.models.job import JobRow

    return JobRow
