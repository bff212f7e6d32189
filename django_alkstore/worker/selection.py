"""Which queues a worker serves, and whose turn it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django_alkstore.jobs import QueueSurvey


class Selection:
    """
    Names of queues, or beginnings of names that end in ``*``; none means every queue.

    ``exclude`` takes the same, and wins. The queues are served in turn: each round
    begins after the queue that the last one began with, so a full queue keeps none
    waiting.
    """

    def __init__(self, queues: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._queues = tuple(queues)
        self._exclude = tuple(exclude)
        self._last = ""

    def __str__(self) -> str:
        chosen = ",".join(self._queues) or "*"
        excluded = ",".join(self._exclude)
        return f"{chosen} without {excluded}" if excluded else chosen

    def serves(self, name: str) -> bool:
        """Tell whether a queue is one of ours."""
        chosen = not self._queues or _matches(name, self._queues)
        return chosen and not _matches(name, self._exclude)

    def ours(self, found: Iterable[QueueSurvey]) -> dict[str, QueueSurvey]:
        """Return those that we serve, by name."""
        return {each.name: each for each in found if self.serves(each.name)}

    def in_turn(self, names: Iterable[str]) -> list[str]:
        """Return names in the order of this round."""
        # By name and not by place, because queues come and go between rounds.
        return sorted(names, key=lambda name: (name <= self._last, name))

    def begun_with(self, name: str) -> None:
        """Let the next round begin after this queue."""
        self._last = name


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        for pattern in patterns
    )
