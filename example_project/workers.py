"""The worker processes that the demonstration starts, kills and never leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import TypeVar

from django_alkstore.models import Worker

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
MOST_SECONDS = 20.0
LOG_LINES = 20


class DemonstrationFailed(Exception):
    """What was to be shown did not happen."""


class Workers:
    """A context in which one worker at a time runs. All are gone when it is left."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="alkstore_example_")
        self._log = Path(self._folder.name, "worker.log")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Workers:
        # Ended from outside, this process still takes its worker along.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._folder.cleanup()

    def start(self) -> int:
        """Start the command that any site starts. Return its process id."""
        command = [sys.executable, "-m", "django", "alkstore_worker", "--threads", "2"]
        settings = {"DJANGO_SETTINGS_MODULE": "example_project.settings"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self._process.pid

    def kill(self) -> None:
        """End the worker in the middle of whatever it does, as ``kill -9`` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        """Ask the worker to stop, as a deployment does. Return its exit status."""
        if self._process is None:
            return 0
        self._process.terminate()
        try:
            return self._process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemonstrationFailed(self._said("the worker does not stop")) from None

    def until(self, condition: Callable[[], T | None], what: str) -> T:
        """Return what ``condition`` returns once it is true, while the worker runs."""
        end = time.monotonic() + MOST_SECONDS
        while True:
            # In this order: a worker that has just ended may have done it before.
            ended = self._process is None or self._process.poll() is not None
            late = time.monotonic() > end
            found = condition()
            if found:
                return found
            if ended:
                raise DemonstrationFailed(self._said(f"no worker is left for: {what}"))
            if late:
                raise DemonstrationFailed(
                    self._said(f"after {MOST_SECONDS:g} s still not: {what}")
                )
            time.sleep(0.05)

    def _said(self, problem: str) -> str:
        try:
            lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        except FileNotFoundError:
            lines = []
        return "\n".join([problem, "the worker's last lines:", *lines])


def somebody_elses() -> Worker | None:
    """Return a worker that runs on this database already, if one does."""
    for worker in Worker.objects.alive():
        # A killed worker's row stays for a while. On this machine there is a surer way.
        if worker.host != socket.gethostname() or _is_running(worker.pid):
            return worker
    return None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
