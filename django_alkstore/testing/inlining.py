"""Inline mode: every job of a task runs in the call that enqueues it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.conf import settings
from django.test.utils import override_settings

from django_alkstore.testing.draining import Report, run_jobs

_report: ContextVar[Report | None] = ContextVar("inline_report", default=None)
_running: ContextVar[bool] = ContextVar("inline_running", default=False)


@contextmanager
def inline(*, raise_errors: bool = False) -> Iterator[Report]:
    """
    Run each job as it is enqueued: what ``ALKSTORE["INLINE"]`` does, for a while.

    Arguments are checked and the row is stored as ever; then all that is due runs
    before ``enqueue`` returns. Jobs that a task enqueues run after it, in the outermost
    call. A job for later waits for ``run_jobs(until=…)``, and so does one that failed
    and has attempts left. Yields a Report of all that ran. An exception of a task stays
    in it, and with ``raise_errors`` comes out of the call that enqueued the job.
    """
    report = Report(raise_errors=raise_errors)
    token = _report.set(report)
    try:
        with override_settings(
            ALKSTORE={**getattr(settings, "ALKSTORE", {}), "INLINE": True}
        ):
            yield report
    finally:
        _report.reset(token)


def run_inline(using: str) -> None:
    """Run what is due in a database, unless a task that runs inline has enqueued it."""
    if _running.get():
        return
    token = _running.set(True)
    try:
        run_jobs(using=using, report=_report.get())
    finally:
        _running.reset(token)
