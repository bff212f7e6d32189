"""
Many clients at once: threads of this process, and what other processes run.

``python -m tests.engine.crowd ROLE [ARGUMENT]`` is one such process, on the databases
of the tests that started it. What it has to tell it prints as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import django

T = TypeVar("T")

LONGEST = 60.0
CLAIMERS_EACH = 2
ORDERS_EACH = 200


def at_once(count: int, act: Callable[[int], T]) -> list[T | Exception]:
    """
    Call ``act`` with 0, 1, ... in as many threads, all in the same moment.

    Return what each returned or raised. Each has connections of its own, closed after.
    """
    from django.db import connection, connections

    start = threading.Barrier(count, timeout=LONGEST)

    def run(number: int) -> T | Exception:
        try:
            connection.ensure_connection()
            start.wait()
            return act(number)
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count), timeout=LONGEST))


def good(outcomes: Sequence[T | Exception]) -> list[T]:
    """Return what the threads returned. Raise what one of them raised."""
    returned: list[T] = []
    for each in outcomes:
        if isinstance(each, Exception):
            raise each
        returned.append(each)
    return returned


def claim_all(queue: str, worker_id: str) -> list[int]:
    """Claim and finish jobs until the queue has none left; return their ids."""
    from django_alkstore.models import LiveJob

    found: list[int] = []
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        jobs = LiveJob.objects.claim(queue, worker_id=worker_id, limit=5, raw=True)
        if not jobs and not LiveJob.objects.filter(queue=queue).exists():
            break
        found += [job.id for job in jobs]
        assert LiveJob.objects.ack_many(jobs) == {job.id for job in jobs}
    return found


def claim(name: str) -> list[list[int]]:
    """Claim with some threads side by side; return the ids that each of them got."""
    return good(
        at_once(CLAIMERS_EACH, lambda number: claim_all("crowd", f"{name}.{number}"))
    )


def order(number: str) -> int:
    """Read, think, write and enqueue, as views do; return how often it went well."""
    from django.db import transaction

    from django_alkstore import queue
    from tests.models import Order

    for _ in range(ORDERS_EACH):
        with transaction.atomic():
            row = Order.objects.get(number=number)
            time.sleep(0.005)
            Order.objects.filter(pk=row.pk).update(notified=not row.notified)
            queue("crowd").enqueue(number)
    return ORDERS_EACH


def notify_and_die(number: str) -> str:
    """Notify an order and enqueue, at once; be killed at statement ``number``."""
    from django.db import connection, transaction

    from django_alkstore import queue
    from tests.models import Order

    left = int(number)

    def count(execute: Any, *arguments: Any) -> Any:
        nonlocal left
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return execute(*arguments)

    with transaction.atomic(), connection.execute_wrapper(count):
        Order.objects.filter(number=number).update(notified=True)
        queue("crowd").enqueue(number)
        if not left:  # only the COMMIT is missing
            os.kill(os.getpid(), signal.SIGKILL)
    return "committed"


ROLES: dict[str, Callable[[str], object]] = {
    "claim": claim,
    "order": order,
    "notify_and_die": notify_and_die,
}

if __name__ == "__main__":
    django.setup()
    print(json.dumps(ROLES[sys.argv[1]](sys.argv[2])))
