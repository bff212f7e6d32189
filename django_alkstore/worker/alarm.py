"""Interrupting a function that runs in the process's main thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from django_alkstore.exceptions import TaskTimeout

# A task that catches the exception and goes on is interrupted again.
AGAIN = 1.0


class Alarm:
    """
    Raises TaskTimeout in the main thread once a block has run for too long.

    ``with alarm.guard(seconds): ...``. Only the main thread can be interrupted, by a
    signal (SIGALRM). One that comes while the block is being left still comes out of
    the block, and then ``disarm`` has a second's time: call it when the outcome is
    known.
    """

    def __init__(self) -> None:
        self._armed = False
        self._seconds = 0.0

    @staticmethod
    def is_possible() -> bool:
        """
        Whether this thread can be interrupted: the main one, where there is SIGALRM.
        """
        main = threading.current_thread() is threading.main_thread()
        return main and hasattr(signal, "setitimer")

    @contextmanager
    def install(self) -> Iterator[None]:
        """Handle SIGALRM for as long as the block lasts."""
        before = signal.signal(signal.SIGALRM, self._ring)
        try:
            yield
        finally:
            signal.signal(signal.SIGALRM, before)

    def guard(self, seconds: float) -> Alarm:
        """Return a context that is interrupted after ``seconds``, then each second."""
        self._seconds = seconds
        return self

    def disarm(self) -> None:
        """Interrupt nothing from now on."""
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def __enter__(self) -> None:
        self._armed = True
        # Zero would be no alarm at all.
        signal.setitimer(signal.ITIMER_REAL, max(self._seconds, 1e-6), AGAIN)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.disarm()

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        if self._armed:
            raise TaskTimeout(f"it ran longer than its timeout, {self._seconds:g} s")
