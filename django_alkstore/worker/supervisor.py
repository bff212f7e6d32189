"""
Several worker processes under one: started afresh, replaced when they die, stopped
together.

    starting --runs--> running --exits--> waiting (backoff) --> starting
                          |
                          +--stop: SIGTERM--> stopping --late: SIGKILL--> gone

A child is a new interpreter with the same command, never a fork: no connection, pool or
thread is inherited. It is in a session of its own, so that Ctrl-C at a terminal reaches
it through here alone; if this process is killed, it notices and stops by itself.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from queue import Empty, SimpleQueue
from types import FrameType

from django.conf import settings

from django_alkstore.worker.options import WorkerOptions
from django_alkstore.worker.stopping import EXIT_FAILED, EXIT_RECYCLE, STOP_SIGNALS

logger = logging.getLogger(__name__)

SUPERVISOR_VARIABLE = "ALKSTORE_SUPERVISOR"
"""Tells a child which process its supervisor is."""

LOOK_EVERY = 0.5
KILL_AFTER = 5.0
"""Seconds beyond the shutdown timeout after which a child is killed."""

QUICK = 10.0
"""A child that dies sooner than this after its start is counted as failing."""

FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
MOST_FAILURES = 5
"""So many quick deaths in a row of one child, and the supervisor gives up."""


class Child:
    """One place for a worker process, with the process that fills it now."""

    def __init__(self, number: int, command: list[str], environment: dict[str, str]):
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.failures = 0
        self.start_at = 0.0
        self.is_finished = False
        self._command = command
        self._environment = environment
        self._started_at = 0.0

    def start(self) -> None:
        """Start a process in this place."""
        self._started_at = time.monotonic()
        self.process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        logger.info(
            "event=child_started child=%s pid=%s", self.number, self.process.pid
        )

    def look(self, *, batch: bool) -> None:
        """Take notice if the process has ended, and decide when the next one starts."""
        if self.process is None or self.process.poll() is None:
            return
        status, pid = self.process.returncode, self.process.pid
        self.process = None
        now = time.monotonic()
        if batch and status == 0:
            self.is_finished = True
            return
        quick = now - self._started_at < QUICK and status not in (0, EXIT_RECYCLE)
        self.failures = self.failures + 1 if quick else 0
        wait = FIRST_WAIT * 2 ** (self.failures - 1) if quick else 0.0
        # A child that ends by itself again and again is not started in a tight loop.
        self.start_at = max(now + min(wait, LONGEST_WAIT), self._started_at + 1.0)
        level = logging.INFO if status in (0, EXIT_RECYCLE) else logging.ERROR
        logger.log(
            level,
            "event=child_ended child=%s pid=%s status=%s",
            self.number, pid, status,
        )  # fmt: skip

    def send(self, number: int) -> None:
        """Send a signal to the process, if there is one."""
        if self.process is not None:
            self.process.send_signal(number)


class Supervisor:
    """Keeps ``options.processes`` children running, until a signal or ``stop``."""

    def __init__(self, options: WorkerOptions, *, verbosity: int = 1) -> None:
        self._options = options
        self._inbox: SimpleQueue[int] = SimpleQueue()
        command = child_command(options, verbosity)
        environment = child_environment()
        self._children = [
            Child(number, command, environment)
            for number in range(1, options.processes + 1)
        ]
        self._stopped = threading.Event()

    def run(self) -> int:
        """Supervise until everything has ended. Return the exit status."""
        main = threading.current_thread() is threading.main_thread()
        try:
            with self._signals() if main else nullcontext():
                return self._run()
        finally:
            # However this ends, no child outlives it.
            for child in self._children:
                if child.process is not None:
                    child.process.kill()
                    child.process.wait()
            self._stopped.set()

    def stop(self, timeout: float) -> None:
        """Have it stop as SIGTERM does, and wait for that. From any thread."""
        self._inbox.put(signal.SIGTERM)
        self._stopped.wait(timeout)

    def _run(self) -> int:
        signalled = 0
        kill_at = float("inf")
        status = 0
        while True:
            now = time.monotonic()
            for child in self._children:
                child.look(batch=self._options.batch)
                if child.failures >= MOST_FAILURES and not signalled:
                    logger.critical("event=giving_up child=%s", child.number)
                    status = EXIT_FAILED
                    self._inbox.put(signal.SIGTERM)
                    child.failures = 0
                waits = child.process is None and not child.is_finished
                if waits and not signalled and now >= child.start_at:
                    child.start()
            running = [child for child in self._children if child.process is not None]
            finished = all(child.is_finished for child in self._children)
            if not running and (signalled or finished):
                return status
            if now >= kill_at:
                for child in running:
                    logger.error("event=child_killed child=%s", child.number)
                    child.send(signal.SIGKILL)
            try:
                number = self._inbox.get(timeout=LOOK_EVERY)
            except Empty:
                continue
            if number not in STOP_SIGNALS:
                continue
            if signalled:
                for child in running:
                    child.send(signal.SIGKILL)
                return 128 + number
            signalled = number
            kill_at = now + self._options.shutdown_timeout + KILL_AFTER
            logger.info("event=stopping reason=signal children=%s", len(running))
            for child in running:
                child.send(signal.SIGTERM)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def receive(number: int, frame: FrameType | None) -> None:
            self._inbox.put(number)

        numbers = (*STOP_SIGNALS, signal.SIGCHLD)
        before = {number: signal.signal(number, receive) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def child_command(options: WorkerOptions, verbosity: int) -> list[str]:
    """
    Return the command of one child: this interpreter, with the options spelled out.
    """
    flags = [f"-W{warning}" for warning in sys.warnoptions]
    for name, value in sys._xoptions.items():
        flags.append(f"-X{name}" if value is True else f"-X{name}={value}")
    return [
        sys.executable, *flags, "-m", "django", "alkstore_worker", "--skip-checks",
        "--verbosity", str(verbosity), *options.arguments(),
    ]  # fmt: skip


def child_environment() -> dict[str, str]:
    """Return the environment in which a child finds the same settings and modules."""
    module = getattr(settings, "SETTINGS_MODULE", None)
    if module is None:
        raise ValueError(
            "several processes need a settings module that each can import;"
            " settings.configure() alone serves one process"
        )
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": module,
        # manage.py's folder is on the path because of manage.py, which they do not run.
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        SUPERVISOR_VARIABLE: str(os.getpid()),
    }
