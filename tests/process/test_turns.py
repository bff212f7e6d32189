"""Whose turn it is: strict by priority within a queue, in turn between queues."""

from __future__ import annotations

import itertools

import pytest

from django_alkstore import task
from tests import tasks
from tests.engine.scenes import commits
from tests.models import Effect
from tests.process.conftest import StartWorker, drained
from tests.waiting import wait_until

pytestmark = commits

PREFETCH = 4


def order() -> list[str]:
    return list(Effect.objects.order_by("pk").values_list("key", flat=True))


def test_a_low_priority_waits_as_long_as_a_higher_one_is_there(
    start_worker: StartWorker,
) -> None:
    """B138: priority is strict. The bound: it runs as soon as no higher one waits."""

    @task(priority=5)
    def high(left: int) -> None:
        Effect.objects.create(key="high")
        if left:
            # The next one is there before this one has ended.
            high.enqueue(left - 1)

    high.enqueue(29)
    tasks.record.enqueue("low")
    start_worker(threads=1, prefetch=0)
    wait_until(drained)

    assert order() == ["high"] * 30 + ["low"]


@pytest.mark.parametrize("listed", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_a_small_queue_is_served_within_one_round_of_the_others(
    start_worker: StartWorker, listed: str
) -> None:
    """
    B140: queues are served in turn, whatever order they are listed in.

    The bound: while a job is the first of its queue, each other queue has at most one
    turn, and a turn fills the worker at most, its threads and what it holds ahead.
    """
    tasks.record.using(queue="a").enqueue_many([("a",)] * 120)
    tasks.record.using(queue="b").enqueue_many([("b",)] * 10)
    tasks.record.using(queue="c").enqueue("c")
    start_worker(threads=1, prefetch=PREFETCH, queues=tuple(listed))
    wait_until(drained)

    ran = order()
    assert len(ran) == 131
    others = 2 * (1 + PREFETCH)
    assert ran.index("c") <= others
    places = [place for place, key in enumerate(ran) if key == "b"]
    gaps = [after - before for before, after in itertools.pairwise([0, *places])]
    assert max(gaps) <= others + 1
