"""What the tests with real workers share."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from django_alkstore.models import LiveJob
from django_alkstore.worker.options import WorkerOptions
from django_alkstore.worker.worker import Worker
from tests.processes import ROOT, WorkerProcess, WorkerProcesses
from tests.waiting import wait_until

StartWorker = Callable[..., Worker]
RunSite = Callable[..., WorkerProcess]
# For tests that would wait for the next poll where a commit wakes nobody.
SOON = ("--poll-interval", "0.1")


@dataclass
class Gate:
    """Two files between a test and a task: it has started, and it may end."""

    started: Path
    until: Path

    @property
    def arguments(self) -> tuple[str, str]:
        return str(self.started), str(self.until)

    @property
    def runs(self) -> list[tuple[int, int]]:
        """The runs that have begun: attempt and process."""
        if not self.started.exists():
            return []
        lines = self.started.read_text(encoding="utf-8").splitlines()
        return [(int(a), int(b)) for a, b in (line.split() for line in lines)]

    def wait(self, runs: int = 1) -> None:
        """Wait until so many runs have begun."""
        wait_until(lambda: len(self.runs) >= runs, message=f"no {runs} runs have begun")

    def open(self) -> None:
        """Let the task come to its end."""
        self.until.touch()


@pytest.fixture
def make_gate(tmp_path: Path) -> Callable[[], Gate]:
    """Make gates of their own."""
    made: list[Gate] = []

    def make() -> Gate:
        number = len(made)
        gate = Gate(tmp_path / f"started_{number}", tmp_path / f"until_{number}")
        made.append(gate)
        return gate

    return make


@pytest.fixture
def gate(make_gate: Callable[[], Gate]) -> Gate:
    """One gate."""
    return make_gate()


def drained() -> bool:
    """Whether no live job is left."""
    return not LiveJob.objects.exists()


@pytest.fixture
def start_worker(own_registry: None) -> Iterator[StartWorker]:
    """
    Start workers in threads, with the given options; they are stopped after the test.
    """
    started: list[tuple[Worker, threading.Thread]] = []

    def start(**options: Any) -> Worker:
        poll = 1.0 if connection.vendor == "sqlite" else 0.1
        given = {
            "threads": 2, "shutdown_timeout": 5.0, "poll_interval": poll, **options
        }  # fmt: skip
        worker = Worker(WorkerOptions(database="default", **given), in_main=False)
        thread = threading.Thread(target=worker.run)
        thread.start()
        started.append((worker, thread))
        return worker

    yield start
    for worker, thread in started:
        worker.stop()
        thread.join(15)
        assert not thread.is_alive()
    gc.unfreeze()


@pytest.fixture
def run_site(run_worker: WorkerProcesses, tmp_path: Path) -> RunSite:
    """Start a worker of a site whose settings have some lines more, and modules too."""

    def run(lines: str, *arguments: str, **modules: str) -> WorkerProcess:
        base = f"from tests.settings.{connection.vendor} import *\n"
        modules["site_settings"] = base + lines
        for name, source in modules.items():
            (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        return run_worker(
            *arguments,
            env={
                "DJANGO_SETTINGS_MODULE": "site_settings",
                "PYTHONPATH": f"{ROOT}:{tmp_path}",
            },
        )

    return run
