"""The survey: what each queue has for a worker, in one look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_alkstore import queue
from django_alkstore.clock import SECOND
from django_alkstore.jobs import QueueSurvey
from tests.engine.scenes import claimed, live, store
from tests.engine.steps import after, take, us

pytestmark = pytest.mark.django_db
q = queue("q")


def survey() -> list[QueueSurvey]:
    with after(0):
        return live.survey()


def found(
    pending: bool = False, upkeep: bool = False, at: float | None = None
) -> list[Any]:
    """Return the survey of the queue ``q`` alone; ``at`` is in seconds from NOW."""
    next_at = None if at is None else us(at)
    wait = None if at is None else round(at * SECOND)
    return [QueueSurvey("q", pending, upkeep, next_at, wait)]


SCENES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "nothing": (lambda: None, []),
    "a task waits": (lambda: store("a", task="t"), found(pending=True)),
    "a raw job waits": (lambda: store("a"), []),
    "a job ahead": (lambda: store("a", task="t", delay=60), found(at=60)),
    "the nearest of two": (
        lambda: (store("a", delay=60), store("b", delay=5)), found(at=5)
    ),
    "a job that is due": (lambda: store("a", at=us(-9), delay=1), found(upkeep=True)),
    "a running job": (lambda: claimed("a"), found(at=10.000_001)),
    "a job on its last attempt": (lambda: claimed("a", max_attempts=1), found(at=10.000_001)),
    "a lapsed job": (lambda: claimed("a", at=us(-11)), found(upkeep=True)),
    "a spent job": (lambda: claimed("a", at=us(-11), max_attempts=1), found(upkeep=True)),
    "a claim at its very end": (lambda: claimed("a", at=us(-10)), found(at=0.000_001)),
    "an expired task": (
        lambda: store("a", task="t", at=us(-9), expires=9), found(upkeep=True)
    ),
    "an expired running job": (
        lambda: claimed("a", at=us(-5), expires=4), found(at=5.000_001)
    ),
    "an expired task before one that waits": (
        lambda: (store("a", task="t", at=us(-9), expires=9), store("b", task="t")),
        found(pending=True, upkeep=True),
    ),
    "a due job beside one ahead": (
        lambda: (store("a", at=us(-9), delay=1), store("b", delay=7)),
        found(upkeep=True, at=None),
    ),
    "a paused queue": (lambda: (store("a", task="t"), q.pause()), []),
    "a resumed queue": (
        lambda: (store("a", task="t"), q.pause(), q.resume()), found(pending=True)
    ),
}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
def test_the_survey_tells_what_there_is(scene: str) -> None:
    arrange, expected = SCENES[scene]

    arrange()

    assert survey() == expected


@pytest.mark.parametrize("scene", [name for name in SCENES if "waits" not in name])
def test_nothing_is_left_to_move_after_a_claim_that_moved_it(scene: str) -> None:
    SCENES[scene][0]()

    take(raw=False)

    assert [queue.name for queue in survey() if queue.upkeep] == []


def test_the_queues_come_by_name_each_with_its_own() -> None:
    names = ["b", "a", "Ü", "", " ", "ab", "a,b", "*", "z" * 100]
    for name in filter(None, names):
        queue(name).enqueue("x", delay=5)
    queue("raw alone").enqueue("x")

    assert [found.name for found in survey()] == sorted(filter(None, names))


def test_a_thousand_jobs_of_a_queue_are_one_line() -> None:
    with after(0):
        q.enqueue_many(range(1000), delay=5)
        live.update(task="t")

    assert survey() == found(at=5)


def test_the_survey_is_one_statement_that_writes_nothing() -> None:
    store("a", at=us(-9), delay=1)

    with CaptureQueriesContext(connection) as queries:
        survey()

    (query,) = queries
    assert query["sql"].startswith("WITH")
    assert not {"INSERT", "UPDATE", "DELETE"} & set(query["sql"].split())
