"""Real worker processes for the tests, which leave none of them behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.db import connections

from tests.settings.base import DATABASES_VARIABLE
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
MARK = "ALKSTORE_TEST_MARK"


class WorkerProcess:
    """One ``alkstore_worker`` command, started by a test."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path):
        self.log = log
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                # A Ctrl-C at the terminal is for the tests, which then stop the worker.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        """What it has printed so far, on both of its streams."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        """Send it a signal. One that has ended already is left alone."""
        self.process.send_signal(number)

    def wait(self, timeout: float = 30.0) -> int:
        """Return its exit status, as Popen has it. Fail the test if it does not end."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the worker still runs after {timeout} s; it printed:\n{self.output}"
            ) from None

    def stop(self, timeout: float = 30.0) -> int:
        """Ask it to stop as an operator does (SIGTERM). Return its exit status."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self) -> None:
        """End it in the middle of whatever it does (SIGKILL)."""
        self.signal(signal.SIGKILL)
        self.process.wait(10)


class WorkerProcesses:
    """
    Start workers on the test databases; call it with the command's arguments.

    ``run_worker("--batch", env={"X": "1"})``. Each finds ``tests/tasks.py`` as any
    site's worker finds its tasks. It sees what is committed and nothing else, so the
    test has to be one that commits (``transaction=True``).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark = secrets.token_hex(8)
        self.started: list[WorkerProcess] = []

    def __call__(
        self, *arguments: str, env: Mapping[str, str] | None = None
    ) -> WorkerProcess:
        command = [sys.executable, "-m", "django", "alkstore_worker", *arguments]
        log = self._folder / f"worker_{len(self.started)}.log"
        worker = WorkerProcess(command, {**self.environment(), **(env or {})}, log)
        self.started.append(worker)
        return worker

    def environment(self) -> dict[str, str]:
        """Return the environment in which a Django process uses the test databases."""
        names = {
            alias: str(connections[alias].settings_dict["NAME"])
            for alias in connections
        }
        return {
            **os.environ,
            DATABASES_VARIABLE: json.dumps(names),
            MARK: self._mark,
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
            ),
            "PYTHONUNBUFFERED": "1",
        }

    def close(self) -> None:
        """Kill every process that still runs, children of workers included."""
        for worker in self.started:
            if worker.is_running:
                worker.kill()
        # A worker's own children are in sessions of their own, and outlive a killed one
        # for a moment; what they inherited tells them from anybody else's.
        for pid in self._marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        wait_until(lambda: not any(self._marked()), message="a worker is left behind")

    def _marked(self) -> Iterator[int]:
        mark = f"{MARK}={self._mark}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes()
            except OSError:
                continue
            if mark in environment.split(b"\0"):
                yield int(folder.name)
