"""
Random histories of one queue, each step compared with a model and with the contract.

What is tried is what a crowd of clients could do, receipts of lapsed claims included.
The seed is printed; ``ALKSTORE_SEED`` repeats a run, ``ALKSTORE_HISTORIES`` makes it
longer.
"""

from __future__ import annotations

import os
import secrets
from datetime import timedelta
from random import Random

import pytest
from django.db import transaction

from django_alkstore import clock
from tests.engine.histories import History
from tests.engine.scenes import EARLIER, NOW, claimed, commits, live, options, store

# Fewer where each statement is a message to another process.
HISTORIES = {"sqlite": 300, "postgresql": 40}
STEPS = 25


@pytest.fixture(scope="module")
def seed() -> int:
    return int(os.environ.get("ALKSTORE_SEED") or secrets.randbits(32))


@commits
def test_whatever_happens_the_queue_does_what_the_model_does(
    committing: None, engine: str, seed: int
) -> None:
    print(f"ALKSTORE_SEED={seed}")
    for number in range(int(os.environ.get("ALKSTORE_HISTORIES") or HISTORIES[engine])):
        # A history's own seed, so that one can be repeated without those before it.
        history = History(f"history {number}", Random(f"{seed} {number}"))
        try:
            with transaction.atomic():
                for _ in range(STEPS):
                    history.step()
                history.drain()
                history.forget()
        except Exception as error:
            error.add_note(f"ALKSTORE_SEED={seed}, history {number}:")
            for line in history.told:
                error.add_note(line)
            raise


# What histories have found, once each.


@pytest.mark.parametrize("how", ["replace", "edit"])
def test_a_lapsed_transactional_task_does_not_finish_a_job_that_was_changed(
    db: None, how: str
) -> None:
    (job,) = claimed("old", key="k", at=EARLIER)
    with clock.pretend(NOW):
        reclaimed_by_nobody()
        if how == "replace":
            live.enqueue(options(on_conflict="replace"), '"new"', unique_key="k")
        else:
            assert live.edit(job.id, payload="new")

        done = live.ack(job, lapsed_ok=True)

        assert not done
        assert live.get(pk=job.id).payload == '"new"'


def test_a_lapsed_transactional_task_finishes_a_job_that_nobody_has_touched(
    db: None,
) -> None:
    (job,) = claimed("a", at=EARLIER)
    with clock.pretend(NOW):
        reclaimed_by_nobody()

        assert live.ack(job, lapsed_ok=True)


def test_a_job_that_expires_as_its_claim_lapses_is_never_promised(db: None) -> None:
    (job,) = claimed("a", expires=timedelta(seconds=10, microseconds=1))

    with clock.pretend(NOW):
        promised = live.next_claim_at("q")

    assert promised is None
    with clock.pretend(job.claim_expires_at_us + 1):
        assert live.claim("q", worker_id="w", limit=1, raw=True) == []


def reclaimed_by_nobody() -> None:
    """Make lapsed jobs pending again, by a claim that takes another job."""
    (first,) = store("first", priority=9)
    (taken,) = live.claim("q", worker_id="v", limit=1, raw=True)
    assert taken.id == first
    assert not live.filter(state="processing").exclude(pk=first).exists()
