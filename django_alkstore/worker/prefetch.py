"""
How many jobs a process claims ahead of its threads: arithmetic over what it measured.

Ahead, so that short jobs need no transaction each. Never more than the threads can be
expected to begin within ``AIM``, so that no job waits here while another worker is
idle; one that waits longer than ``BOUND`` all the same is given back.
"""

from __future__ import annotations

AIM = 0.2
"""Seconds within which every job claimed ahead should have begun."""

BOUND = 1.0
"""Seconds after which a job that has not begun is given back."""

SHARE = 0.1
"""The share of the newest measurement in the average."""

SUDDENLY = 10
"""A run so many times longer than the average is not averaged but believed."""


class Prefetch:
    """
    Measures how long jobs run and says how many may wait. ``most`` is the setting.
    """

    __slots__ = ("_average", "_most", "_threads")

    def __init__(self, threads: int, most: int) -> None:
        self._threads = threads
        self._most = most
        self._average: float | None = None

    def measure(self, seconds: float) -> None:
        """Take in how long a job ran."""
        average = self._average
        if average is None or seconds > max(AIM, average * SUDDENLY):
            self._average = seconds
        else:
            self._average = average + SHARE * (seconds - average)

    def ahead(self, stuck: int = 0) -> int:
        """
        Return how many jobs may wait beside those that run. 0 until one was measured.

        ``stuck`` threads have been with one job for longer than AIM: they will not take
        another one soon.
        """
        moving = self._threads - stuck
        if self._average is None or moving <= 0:
            return 0
        if self._average * self._most <= moving * AIM:
            return self._most
        return int(moving * AIM / self._average)
