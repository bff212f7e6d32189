"""Pausing a queue: a switch that every process sees."""

from __future__ import annotations

import pytest

from django_alkstore import clock, queue
from django_alkstore.models import QueueState
from tests.engine.scenes import NOW, claimed, labels, store
from tests.engine.steps import after, side_by_side, take

pytestmark = pytest.mark.django_db
q = queue("q")


def test_a_queue_is_not_paused_at_first() -> None:
    assert q.is_paused is False


def test_pause_and_resume_tell_whether_they_changed_anything() -> None:
    assert [q.pause(), q.pause(), q.is_paused] == [True, False, True]
    assert [q.resume(), q.resume(), q.is_paused] == [True, False, False]
    assert [q.pause(), q.is_paused] == [True, True]


def test_resuming_an_unknown_queue_changes_nothing() -> None:
    assert q.resume() is False
    assert not QueueState.objects.exists()


def test_the_row_tells_since_when() -> None:
    with clock.pretend(NOW):
        q.pause()
    with after(5):
        q.pause()

    assert QueueState.objects.get().paused_at == clock.to_instant(NOW)


@pytest.mark.parametrize("name", ["*", "a,b", "Ünï q", "Q"])
def test_a_name_pauses_itself_alone(name: str) -> None:
    store("a")

    queue(name).pause()

    assert queue(name).is_paused
    assert not q.is_paused
    assert labels(take()) == ["a"]


def test_what_runs_may_still_be_settled() -> None:
    kept, retried, acked = claimed("kept", "retried", "acked")
    q.pause()

    with after(1):
        assert kept.heartbeat()
        assert retried.retry(0)
        assert acked.ack()

    assert take(at=2) == []


def test_jobs_are_stored_in_a_paused_queue() -> None:
    q.pause()

    assert q.enqueue("a").state == "pending"
    assert len(q.enqueue_many("bc")) == 2
    q.resume()

    assert [job.payload for job in q.claim("w", 9)] == ["a", "b", "c"]


def test_of_two_who_pause_at_once_one_did_it(committing: None) -> None:
    assert sorted(side_by_side(q.pause, q.pause, q.pause)) == [False, False, True]
    assert sorted(side_by_side(q.resume, q.resume)) == [False, True]
