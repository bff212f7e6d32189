"""A clock and a sleep that move only as a test tells them to."""

from __future__ import annotations

import queue
import time

LONGEST_LOOK = 30.0


class Steps:
    """Give ``clock`` and ``sleep`` to a thread, then end its sleeps one by one."""

    def __init__(self) -> None:
        self.now = 0.0
        self._asked: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._free = False

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        if self._free:
            time.sleep(seconds)
            self.now += seconds
        else:
            self._asked.put(seconds)
            self.now += self._ended.get()

    def asleep(self) -> float:
        """Wait until the thread sleeps for the first time; return for how long."""
        return self._asked.get(timeout=LONGEST_LOOK)

    def step(self, seconds: float = 0.0) -> float:
        """
        End the sleep, ``seconds`` later on the clock. Return how long the next one is.

        The thread has done by then whatever it does between the two.
        """
        self.end(seconds)
        return self._asked.get(timeout=LONGEST_LOOK)

    def end(self, seconds: float = 0.0) -> None:
        """End a sleep that may be the last, the present one or one to come."""
        self._ended.put(seconds)

    def free(self) -> None:
        """Let the thread sleep as usual from now on, so that it can end."""
        self._free = True
        self.end()
