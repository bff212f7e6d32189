"""The one way in which a test waits for something to happen elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

STEP = 0.02


def wait_until(
    condition: Callable[[], T | None], timeout: float = 15.0, message: str = ""
) -> T:
    """
    Return what ``condition`` returns, as soon as that is true.

    Fail the test when it is not true after ``timeout`` seconds. The last look is made
    when the time is up, so that a slow machine alone does not make a test fail.
    """
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() >= deadline
        found = condition()
        if found:
            return found
        if late:
            raise AssertionError(
                f"{message or 'nothing came'} (waited {timeout} s, last saw {found!r})"
            )
        time.sleep(STEP)
