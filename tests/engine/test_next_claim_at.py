"""next_claim_at: when a claim of raw jobs could return something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_alkstore import clock, queue
from tests.engine.scenes import claimed, store
from tests.engine.steps import after, take, us

pytestmark = pytest.mark.django_db
q = queue("q")


def next_at() -> float | None:
    """Return the seconds from NOW to the next claim, asked at NOW."""
    with after(0):
        at = q.next_claim_at()
    return None if at is None else (clock.from_instant(at, "at") - us(0)) / clock.SECOND


SCENES: dict[str, tuple[Callable[[], Any], float | None]] = {
    "nothing": (lambda: None, None),
    "a pending job": (lambda: store("a", at=us(-5)), -5),
    "a job ahead": (lambda: store("a", delay=60), 60),
    "a job that is due": (lambda: store("a", at=us(-5), delay=3), -2),
    "the earliest of several": (
        lambda: (store("a", delay=60), store("b", delay=30), claimed("c", at=us(0))),
        10.000_001,
    ),
    "a running job": (lambda: claimed("a"), 10.000_001),
    "a lapsed job": (lambda: claimed("a", at=us(-15)), -4.999_999),
    "a job on its last attempt": (lambda: claimed("a", max_attempts=1), None),
    "an expired job": (lambda: store("a", at=us(-5), expires=5), None),
    "a job that expires before it is due": (
        lambda: store("a", delay=60, expires=60),
        None,
    ),
    "a job that expires after it is due": (
        lambda: store("a", delay=60, expires=61),
        60,
    ),
    "a running job that expires first": (lambda: claimed("a", expires=10), None),
    "a running job that expires later": (lambda: claimed("a", expires=11), 10.000_001),
    "a job with a task": (lambda: store("a", task="t"), None),
    "a job with a task ahead": (lambda: store("a", task="t", delay=5), None),
    "a paused queue": (lambda: (store("a"), q.pause()), None),
    "a resumed queue": (lambda: (store("a"), q.pause(), q.resume()), 0),
}


@pytest.mark.parametrize("scene", SCENES)
def test_the_next_claim_is_told(scene: str) -> None:
    arrange, expected = SCENES[scene]

    arrange()

    assert next_at() == expected


@pytest.mark.parametrize("scene", SCENES)
def test_a_claim_returns_something_then_and_nothing_before(scene: str) -> None:
    arrange, at = SCENES[scene]
    arrange()

    if at is None:
        assert take(at=0) == take(at=10**6) == []
        return
    if at > 0:
        assert take(at=at - 0.000_001) == []
    assert take(at=max(at, 0)) != []


def test_another_queue_has_its_own() -> None:
    store("a")

    assert queue("other").next_claim_at() is None
