"""
Helpers for the tests of a project that has tasks.

``run_jobs()`` runs what is due, in the calling process and transaction; ``enqueued``
and its companions look at what is stored; ``inline()`` runs each job as it is enqueued.
The fixtures for pytest are in ``django_alkstore.testing.pytest_plugin``.
"""

from __future__ import annotations

from django_alkstore.testing.assertions import (
    assert_enqueued,
    assert_enqueued_count,
    assert_not_enqueued,
    enqueued,
)
from django_alkstore.testing.draining import Report, arun_jobs, run_jobs
from django_alkstore.testing.inlining import inline

__all__ = [
    "Report",
    "arun_jobs",
    "assert_enqueued",
    "assert_enqueued_count",
    "assert_not_enqueued",
    "enqueued",
    "inline",
    "run_jobs",
]
