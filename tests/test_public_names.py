"""The names that a project imports: all there, early enough, in nobody's way."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Manager
from django.db.models.query import QuerySet

import django_alkstore
from django_alkstore import exceptions
from django_alkstore.managers.base import SqlManager
from tests.processes import ROOT

# Section 3 of the contract, as far as it is built, and WatcherDied, which a consumer's
# loop raises. Schedules, locks, rate limits, streams and channels are to come.
NAMES = {
    "queue", "task", "exponential", "constant", "Retry", "Discard",
    "ClaimedJob", "JobSnapshot", "TaskResult", "Context",
    "AlkstoreError", "DuplicateJob", "InvalidPayload", "ClaimLost", "JobFailed",
    "ResultDoesNotExist", "TaskTimeout", "UnsupportedDatabase", "WatcherDied",
}  # fmt: skip
LATER = {
    "schedule", "lock", "rate_limit", "stream", "notify", "listen", "alisten",
    "LockHeld", "InvalidSchedule", "LeadershipLost",
}  # fmt: skip
MODELS = {"Attempt", "DeadJob", "LiveJob", "QueueState", "Result", "Worker"}
PARENTS = {
    "InvalidPayload": (TypeError, ValueError),
    "TaskTimeout": (TimeoutError,),
    "UnsupportedDatabase": (ImproperlyConfigured,),
}


def submodules() -> list[str]:
    path, prefix = django_alkstore.__path__, "django_alkstore."
    return sorted(module.name for module in pkgutil.walk_packages(path, prefix))


def test_the_public_names_are_exactly_these() -> None:
    assert set(django_alkstore.__all__) == NAMES
    assert len(django_alkstore.__all__) == len(NAMES)
    assert set(dir(django_alkstore)) >= NAMES
    for name in NAMES:
        assert not isinstance(getattr(django_alkstore, name), ModuleType)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = django_alkstore.no_such_name


def test_no_module_bears_a_public_name() -> None:
    last_names = {name.rpartition(".")[2] for name in submodules()}

    assert not last_names & (NAMES | LATER)


def test_importing_every_submodule_shadows_no_public_name() -> None:
    # In a process of its own, where no public name has been asked for before.
    code = f"""
import django, json, sys
from importlib import import_module
django.setup()
for name in {submodules()!r}:
    import_module(name)
import django_alkstore
values = {{name: getattr(django_alkstore, name) for name in {sorted(NAMES)!r}}}
kinds = {{name: type(value).__name__ for name, value in values.items()}}
print(json.dumps([name for name, kind in kinds.items() if kind == "module"]))
"""

    assert json.loads(run(code)) == []


def test_the_package_is_importable_before_the_apps_are_ready() -> None:
    names = sorted(NAMES - {"queue"})
    code = f"""
import django_alkstore
from django.apps import apps
from django_alkstore import {", ".join(sorted(NAMES))}
from django_alkstore import signals
queue("emails")

@task(queue="emails", max_attempts=5, backoff=exponential(2, maximum=600))
def send(order_id: int) -> None: ...

assert not apps.ready and not apps.app_configs
print(len({names!r}))
"""

    assert run(code).strip() == str(len(names))


def test_the_package_is_importable_without_settings() -> None:
    code = "import django_alkstore, django_alkstore.exceptions; print('imported')"

    assert run(code, settings="").strip() == "imported"


def test_the_models_are_where_the_contract_says() -> None:
    models = import_module("django_alkstore.models")

    assert set(models.__all__) == MODELS
    for name in MODELS:
        assert getattr(models, name).__name__ == name


def test_every_error_has_the_base_and_the_parents_that_the_contract_names() -> None:
    errors = {
        name: value
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and value.__module__ == exceptions.__name__
    }

    assert set(errors) <= NAMES
    for name, error in errors.items():
        assert issubclass(error, exceptions.AlkstoreError)
        assert issubclass(error, PARENTS.get(name, Exception))
        assert error.__doc__


@pytest.mark.parametrize("name", sorted(MODELS))
def test_no_manager_method_redefines_one_of_a_queryset(name: str) -> None:
    manager = getattr(import_module("django_alkstore.models"), name).objects
    ours = {
        method
        for kind in type(manager).mro()
        if kind.__module__.startswith("django_alkstore")
        for method in vars(kind)
        if not method.startswith("_")
    }

    assert isinstance(manager, SqlManager)
    assert not ours & (set(dir(QuerySet)) | set(dir(Manager)))


def run(code: str, settings: str = "tests.settings.sqlite") -> str:
    """Run Python code in a fresh process; return what it prints."""
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    if settings:
        environment["DJANGO_SETTINGS_MODULE"] = settings
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
