"""The worker under Django's reloader: one at a time, and the code as it is now."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from django_alkstore.models import LiveJob, Worker
from django_alkstore.options import JobOptions
from tests.engine.scenes import commits
from tests.models import Effect
from tests.process.conftest import SOON, RunSite
from tests.waiting import wait_until

# The engine has no part in it, and two starts of a worker take their time.
pytestmark = [commits, pytest.mark.sqlite_only]

CODE = """
from django_alkstore import task
from tests.engine.scenes import commits
from tests.models import Effect

@task(name="shown")
def show() -> None:
    Effect.objects.create(key="{word}")
"""
APP = "INSTALLED_APPS = [*INSTALLED_APPS, 'reloaded']\n"


def shows(word: str) -> bool:
    """Enqueue the task that only the worker has; return whether it has shown a word."""
    options = JobOptions.build("default", task="shown")
    LiveJob.objects.enqueue(options, '{"args": [], "kwargs": {}}', unique_key="shown")
    return Effect.objects.filter(key=word).exists()


def test_changed_code_is_loaded_and_one_worker_runs_it(
    run_site: RunSite, tmp_path: Path
) -> None:
    """B161: the reloader's two processes are not two workers."""
    app = tmp_path / "reloaded"
    app.mkdir()
    (app / "__init__.py").touch()
    code = app / "tasks.py"
    code.write_text(CODE.format(word="old"), encoding="utf-8")
    worker = run_site(APP, *SOON, "--reload", "--threads", "1")
    wait_until(lambda: shows("old"))
    assert Worker.objects.count() == 1

    code.write_text(CODE.format(word="new"), encoding="utf-8")
    # The reloader looks at the time of a change, to the second on some file systems.
    later = time.time() + 5
    os.utime(code, (later, later))
    wait_until(lambda: shows("new"))

    wait_until(lambda: Worker.objects.count() == 1)
    worker.stop()
