"""The one way in to the writer, from runners, the watcher and signal handlers."""

from __future__ import annotations

from queue import Empty, SimpleQueue

from django_alkstore.worker.runs import Run


class Inbox:
    """
    Runs that are over, and a bell.

    Every method but ``collect`` and ``listen`` may be called from any thread; ``ring``
    from a signal handler too. Rings while the writer is not waiting are remembered as
    one.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Run | None] = SimpleQueue()
        self._listening = False
        self.put = self._queue.put
        """Hand back a run that is over."""
        self.woken = False
        """Whether the database has changed since the writer took this back."""

    def ring(self) -> None:
        """Have the writer look around now."""
        self._queue.put(None)

    def wake(self) -> None:
        """Tell that another connection has committed."""
        self.woken = True
        # A busy site commits more often than a worker that has no room wants to know.
        if self._listening:
            self._listening = False
            self._queue.put(None)

    def listen(self, wanted: bool) -> None:
        """Say whether commits are of interest while the writer waits."""
        self._listening = wanted
        if wanted and self.woken:
            # It came between the last look and now.
            self._listening = False
            self._queue.put(None)

    def collect(self, timeout: float) -> list[Run]:
        """Wait at most ``timeout`` seconds for anything, and return the runs in it."""
        runs = []
        queue = self._queue
        try:
            item = queue.get(timeout=timeout) if timeout > 0 else queue.get_nowait()
            # What comes in meanwhile is for the next round, or there might be no end.
            for _ in range(queue.qsize()):
                if item is not None:
                    runs.append(item)
                item = queue.get_nowait()
        except Empty:
            return runs
        if item is not None:
            runs.append(item)
        return runs
