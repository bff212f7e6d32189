"""One attempt in this process, from its claim until it is settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django_alkstore.context import Context
from django_alkstore.decorator import registry
from django_alkstore.jobs import ClaimedJob, Notes
from django_alkstore.worker.outcomes import Outcome

if TYPE_CHECKING:
    from django_alkstore.decorator import Task

NEVER = float("inf")


class Run:
    """
    A claimed job, and what this process knows of its run.

    The writer makes it and settles it; in between one runner has it. ``started``,
    ``valid_until``, ``beat_at`` and ``handed_at`` are on the monotonic clock, in
    seconds.
    """

    __slots__ = (
        "job", "task", "is_async", "context", "outcome", "started", "seconds", "lost",
        "giving_up", "overdue", "handed_at", "valid_until", "beat_at", "beaten_at",
        "stored", "cancel_task", "ask", "refused",
    )  # fmt: skip

    def __init__(
        self, job: ClaimedJob, *, ask: Callable[[Run], None] | None = None
    ) -> None:
        """
        ``ask`` asks the writer for a heartbeat; without it the context does its own.
        """
        self.job = job
        self.task: Task[..., Any] | None = registry.get(job.task)
        self.is_async = self.task is not None and self.task.is_async
        """Whether it runs on the event loop. An unknown task does not."""
        self.context: Context | None = None
        self.outcome: Outcome | None = None
        self.started: float | None = None
        self.seconds = 0.0
        self.lost = False
        self.giving_up = False
        self.overdue = False
        self.refused = False
        self.handed_at = 0.0
        self.valid_until = NEVER
        self.beat_at = NEVER
        self.beaten_at = 0.0
        self.stored: tuple[str | None, str] = (None, "")
        self.cancel_task: Callable[[], object] | None = None
        self.ask = ask

    def __repr__(self) -> str:
        return f"<Run of {self.job!r}>"

    @property
    def notes(self) -> Notes | None:
        """What the task has told of itself; None when that is nothing."""
        if self.context is None:
            return None
        notes = self.context.notes
        return notes if notes.progress is not None or notes.log else None

    def make_context(self) -> Context:
        """Return the context that its task is called with."""
        context = Context(
            self.job, heartbeat=None if self.ask is None else self._heartbeat
        )
        self.context = context
        # The writer sets lost first and looks for a context then; here it is the other
        # way round, so one of the two tells the task.
        if self.lost:
            context.cancel()
        return context

    def lose(self) -> None:
        """Tell whoever runs it that the claim is no longer ours."""
        self.lost = True
        if self.context is not None:
            self.context.cancel()
        if self.cancel_task is not None:
            self.cancel_task()

    def give_up(self) -> None:
        """Cancel it on the event loop, to be given back: this process is stopping."""
        self.giving_up = True
        if self.cancel_task is not None:
            self.cancel_task()

    def _heartbeat(self) -> bool:
        if self.ask is not None:
            self.ask(self)
        return not self.lost
