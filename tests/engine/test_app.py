"""What starting Django does with this app in its list, and what it must not do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from django.apps import apps

from django_alkstore.decorator import registry

ROOT = Path(__file__).resolve().parents[2]

START = """
import threading
import django
from django.db import connections
django.setup()
from django_alkstore.decorator import registry
opened = [each.alias for each in connections.all() if each.connection is not None]
print(threading.active_count(), opened, "tests.tasks.add" in registry)
"""

BARE = """
import importlib, pkgutil, sys
import django_alkstore
for name in ("exponential", "queue", "task", "Retry", "TaskResult", "Context"):
    getattr(django_alkstore, name)
import django_alkstore.testing.pytest_plugin
print("django_alkstore.models" in sys.modules)
"""


def python(code: str, settings: str = "tests.settings.sqlite") -> str:
    environment = {"DJANGO_SETTINGS_MODULE": settings, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_start_finds_tasks_opens_no_connection_and_starts_no_thread() -> None:
    """B161."""
    assert python(START) == "1 [] True"


def test_the_public_names_and_the_fixtures_load_before_any_settings_are_there() -> None:
    assert python(BARE, settings="") == "False"


def test_the_app_brings_its_own_kind_of_primary_key() -> None:
    config = apps.get_app_config("django_alkstore")

    assert config.default_auto_field == "django.db.models.BigAutoField"


def test_tasks_of_installed_apps_are_registered_under_their_names() -> None:
    assert registry["tests.tasks.record"].name == "tests.tasks.record"
