"""Why and how a worker ends: the reasons, the exit statuses, and the signals."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import FrameType

logger = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
LOOK_EVERY = 0.05

EXIT_FAILED = 1
EXIT_RECYCLE = 75
"""The process has to be replaced by a fresh one (EX_TEMPFAIL: try again)."""


class Reason(Enum):
    """Why a worker stops. The value is the word in its log line."""

    SIGNAL = "signal"
    BATCH = "nothing_due"
    MAX_JOBS = "max_jobs"
    MAX_MEMORY = "max_memory"
    TIMEOUT = "job_past_its_timeout"
    ORPHANED = "supervisor_gone"
    FATAL = "fatal_error"

    def status(self, *, supervised: bool) -> int:
        """Return the exit status. ``supervised``: a supervisor of ours waits for it."""
        if self is Reason.FATAL:
            return EXIT_FAILED
        if self is Reason.TIMEOUT:
            return EXIT_RECYCLE
        if self in (Reason.MAX_JOBS, Reason.MAX_MEMORY) and supervised:
            return EXIT_RECYCLE
        return 0


class StopSignals:
    """
    Turns SIGTERM and SIGINT into calls, whatever the main thread is doing.

    The first signal calls ``first``, the second ends the process at once. From the
    first one on ``is_late`` is asked again and again; once it says so, ``late`` is
    called.

    A thread listens for them, because the main thread may be inside a task, or in a
    statement that does not return.
    """

    def __init__(
        self,
        first: Callable[[], None],
        *,
        is_late: Callable[[], bool],
        late: Callable[[], None],
    ) -> None:
        self._first = first
        self._is_late = is_late
        self._late = late

    @contextmanager
    def install(self) -> Iterator[None]:
        """Handle the signals in the block. For the main thread."""
        receiver, sender = socket.socketpair()
        sender.setblocking(False)
        before = {number: signal.signal(number, _ignore) for number in STOP_SIGNALS}
        wakeup = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        _forks.register()
        _forks.is_active = True
        thread = threading.Thread(
            target=self._listen, args=[receiver], name="alkstore-signals", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            _forks.is_active = False
            # Closing alone would end nothing while a process lives that a task has
            # forked: it has the socket, too.
            sender.shutdown(socket.SHUT_RDWR)
            sender.close()
            thread.join()
            receiver.close()

    def _listen(self, receiver: socket.socket) -> None:
        stopping = False
        while True:
            try:
                data = receiver.recv(64)
            except TimeoutError:
                if self._is_late():
                    self._late()
                continue
            if not data:
                return
            for number in data:
                if number not in STOP_SIGNALS:
                    continue
                if stopping:
                    exit_now(128 + number)
                stopping = True
                receiver.settimeout(LOOK_EVERY)
                self._first()


class Lateness:
    """
    Tells when a stop takes longer than it may: the writer is stuck in the database.

    ``grace`` seconds after the last job has ended, or after ``timeout`` and ``grace``.
    """

    def __init__(
        self, timeout: float, is_busy: Callable[[], bool], grace: float
    ) -> None:
        self._timeout = timeout
        self._is_busy = is_busy
        self._grace = grace
        self._since: float | None = None
        self._idle_since: float | None = None

    def __call__(self) -> bool:
        """Return whether it is late. The first call starts the time."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if self._is_busy():
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        if now - self._since > self._timeout + 2 * self._grace:
            return True
        return self._idle_since is not None and now - self._idle_since > self._grace


def exit_now(status: int) -> None:
    """End the process without waiting for any thread."""

    def flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue

    # A thread that hangs may hold a stream's lock for ever.
    thread = threading.Thread(target=flush, daemon=True)
    thread.start()
    thread.join(0.2)
    os._exit(status)


def _ignore(number: int, frame: FrameType | None) -> None:
    """
    Do nothing here: the byte that the signal wrote is read by the listening thread.
    """


class _Forks:
    """
    Keeps the signals to processes that a task forks apart from those to the worker.

    A forked process has the worker's handlers and its end of the socket: ended by
    SIGTERM, as multiprocessing's pools are, it would stop the worker and not itself.
    """

    def __init__(self) -> None:
        self.is_active = False
        self._is_registered = False
        self._masks = threading.local()

    def register(self) -> None:
        """Watch forks from now on. There is no way to end that, so it is done once."""
        if not self._is_registered:
            self._is_registered = True
            os.register_at_fork(
                before=self._before,
                after_in_parent=self._restore,
                after_in_child=self._in_child,
            )

    def _before(self) -> None:
        # A signal may come before the new process has done anything at all.
        if self.is_active:
            self._masks.old = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)

    def _restore(self) -> None:
        old = getattr(self._masks, "old", None)
        if old is not None:
            self._masks.old = None
            signal.pthread_sigmask(signal.SIG_SETMASK, old)

    def _in_child(self) -> None:
        if self.is_active:
            self.is_active = False
            signal.set_wakeup_fd(-1)
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
        self._restore()


_forks = _Forks()
