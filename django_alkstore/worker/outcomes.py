"""What an attempt can end with. ``run`` makes them, ``settle`` acts on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from django_alkstore.jobs import Failure


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The function returned. ``result`` is its JSON text, None where none is kept."""

    result: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A transactional task: its own transaction has acked the job."""


@dataclass(frozen=True, slots=True)
class Failed:
    """
    The function raised, or ran for longer than its timeout.

    ``delay`` is how long to wait before the next attempt, in microseconds; None when
    the task's backoff said that there is to be none.
    """

    exception: BaseException
    failure: Failure
    delay: int | None


@dataclass(frozen=True, slots=True)
class Discarded:
    """The task said that it need not be tried again."""

    exception: BaseException
    failure: Failure


@dataclass(frozen=True, slots=True)
class Invalid:
    """
    What no further attempt could mend.

    No such task, arguments that cannot be read, or a return value that no result holds.
    """

    exception: BaseException
    failure: Failure


@dataclass(frozen=True, slots=True)
class Released:
    """It did not run to its end and is to be given back, the attempt unspent."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The claim is no longer ours, so there is nothing to settle."""


Outcome: TypeAlias = (
    Succeeded | Committed | Failed | Discarded | Invalid | Released | Lost
)

# Most jobs end like this; one object serves them all.
SUCCEEDED = Succeeded()
COMMITTED = Committed()
RELEASED = Released()
LOST = Lost()
