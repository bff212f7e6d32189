"""
Fixtures for pytest, on top of pytest-django.

Put into the top conftest:

    pytest_plugins = ["django_alkstore.testing.pytest_plugin"]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from django_alkstore import testing


class Jobs:
    """The helpers of ``django_alkstore.testing`` as methods of one fixture."""

    run = staticmethod(testing.run_jobs)
    enqueued = staticmethod(testing.enqueued)
    assert_enqueued = staticmethod(testing.assert_enqueued)
    assert_enqueued_count = staticmethod(testing.assert_enqueued_count)
    assert_not_enqueued = staticmethod(testing.assert_not_enqueued)


@pytest.fixture
def alkstore_jobs(db: Any) -> Jobs:
    """The jobs of this test, to look at and to run, in its own transaction."""
    return Jobs()


@pytest.fixture
def alkstore_inline(db: Any) -> Iterator[testing.Report]:
    """Run each job as it is enqueued; the fixture is the report of all that ran."""
    with testing.inline() as report:
        yield report
