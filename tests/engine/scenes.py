"""Scenes for the tests: a few rows each, and what can be done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

import pytest

from django_alkstore import clock
from django_alkstore.exceptions import DuplicateJob
from django_alkstore.jobs import ClaimedJob, Failure, Notes
from django_alkstore.models import Attempt, DeadJob, LiveJob, Worker
from django_alkstore.options import JobOptions

# Few apps: a flush of all of them would take longer than a test.
commits = pytest.mark.django_db(
    transaction=True, available_apps=["django_alkstore", "tests"]
)
NOW = 1_800_000_000 * clock.SECOND
EARLIER = NOW - 1_000 * clock.SECOND
LATER = clock.to_instant(NOW + 60 * clock.SECOND)
DAY = 24 * 3_600
live = LiveJob.objects


def options(**given: Any) -> JobOptions:
    """Return the options of jobs of the queue ``q``, held for 10 s, kept for a day."""
    return JobOptions.build("q", **{"visibility_timeout": 10, **given})


def store(
    *labels: str, key: str | None = None, at: int = NOW, **given: Any
) -> list[int]:
    """Enqueue a job for each label, which is its payload."""
    with clock.pretend(at):
        return [
            live.enqueue(options(**given), f'"{label}"', unique_key=key).pk
            for label in labels
        ]


def claimed(*labels: str, worker: str = "w", at: int = NOW, **given: Any) -> Any:
    """Enqueue jobs and claim them; with ``at=EARLIER`` their claims have lapsed."""
    ids = store(*labels, at=at, **given)
    with clock.pretend(at):
        jobs = live.claim(
            "q", worker_id=worker, limit=len(ids), raw="task" not in given, upkeep=False
        )
    assert [job.id for job in jobs] == ids
    return jobs


def tried(label: str, **given: Any) -> ClaimedJob:
    """Return a claimed job at its second attempt, with a first one in its history."""
    (job,) = claimed(label, **given)
    with clock.pretend(NOW):
        live.retry(job, delay=0, failure=Failure.said("first"))
        (job,) = live.claim("q", worker_id="w", limit=1, raw=True, upkeep=False)
    return job


def dead(*labels: str, **given: Any) -> list[int]:
    """Make dead jobs with an attempt in their history."""
    jobs = claimed(*labels, at=EARLIER, **given)
    with clock.pretend(EARLIER):
        assert all(live.fail(job, failure=Failure.said("no")) for job in jobs)
    return [job.id for job in jobs]


def finished(*labels: str) -> None:
    """Make results whose lifetime is over."""
    jobs = claimed(*labels, at=EARLIER, result_ttl=1)
    with clock.pretend(EARLIER):
        live.ack_many(jobs, notes={job.id: Notes(log="x") for job in jobs})


def labels(jobs: Iterable[ClaimedJob]) -> list[str]:
    return [job.payload for job in jobs]


def claim(**given: Any) -> Callable[[Any], object]:
    given = {"worker_id": "w", "limit": 9, "raw": True, **given}
    return lambda scene: labels(live.claim("q", **given))


def enqueue(key: str | None = None, **given: Any) -> Callable[[Any], object]:
    def act(scene: Any) -> object:
        try:
            job = live.enqueue(options(**given), '"new"', unique_key=key)
        except DuplicateJob:
            return "duplicate"
        return (job.created, job.payload)

    return act


def enqueue_many(*keys: str | None, **given: Any) -> Callable[[Any], object]:
    def act(scene: Any) -> object:
        texts = [f'"new {place}"' for place in range(len(keys))]
        try:
            ids = live.enqueue_many(options(**given), texts, unique_keys=keys)
        except DuplicateJob:
            return "duplicate"
        return list(live.filter(pk__in=ids).order_by("pk").values_list("payload"))

    return act


def every_kind_of_upkeep() -> None:
    claimed("exhausted", at=EARLIER, max_attempts=1)
    claimed("lapsed", at=EARLIER)
    claimed("lapsed and expired", at=EARLIER, expires=20)
    store("expired", at=EARLIER, expires=1)
    store("due", at=EARLIER, delay=1)
    store("pending")


def mixed() -> list[ClaimedJob]:
    return [
        *claimed("plain"),
        tried("tried"),
        *claimed("kept", result_ttl=DAY),
        tried("kept and tried", result_ttl=DAY),
        *claimed("of another worker", worker="v"),
    ]


def ack_mixed(jobs: list[ClaimedJob]) -> object:
    results = {job.id: '"value"' for job in jobs}
    noted = {job.id: Notes(log="x") for job in jobs if job.payload.startswith("kept")}
    done = live.ack_many(jobs, results=results, notes=noted)
    return sorted(job.payload for job in jobs if job.id in done)


def at_attempt_21() -> ClaimedJob:
    (job_id,) = store("tried often", max_attempts=50)
    live.filter(pk=job_id).update(attempts=20)
    Attempt.objects.bulk_create(
        Attempt(job_id=job_id, attempt=number, worker_id="w") for number in range(1, 21)
    )
    with clock.pretend(NOW):
        (job,) = live.claim("q", worker_id="w", limit=1, raw=True, upkeep=False)
    return job


def retry(job: ClaimedJob) -> object:
    notes = Notes(progress='{"done": 1}', log="line")
    return live.retry(job, delay=1, failure=Failure.said("no"), notes=notes)


def requeue(ids: list[int]) -> object:
    new, refused = DeadJob.objects.requeue(ids)
    return (len(new), len(refused))


def two_retentions() -> None:
    dead("its own", dead_letter_retention=1)
    long_ago = clock.to_instant(NOW - 31 * DAY * clock.SECOND)
    DeadJob.objects.filter(pk__in=dead("the common one")).update(died_at=long_ago)
    dead("to be kept")


def orphan() -> None:
    Attempt.objects.create(job_id=max(store("not an orphan")) + 1, attempt=1)


def beat(scene: Any) -> None:
    Worker.objects.beat(
        "w", host="h", pid=1, queues="*", threads=1, running="[]", stopping=False
    )


def gone() -> None:
    with clock.pretend(NOW - 2 * DAY * clock.SECOND):
        beat(None)


def two_broken_rows() -> None:
    store("good")
    for label in ("{", "["):
        live.filter(pk__in=store("broken")).update(payload=label)


def only_claim(scene: Any) -> None:
    with mock.patch.object(type(live), "_refuse"):
        claim()(scene)


def keyed(make: Callable[..., Any], **given: Any) -> Callable[[], Any]:
    """Return an arrangement of one job that ``make`` makes, labelled ``old``."""
    return lambda: make("old", **given)


def only_id(make: Callable[..., Any]) -> Callable[[], int]:
    """Return an arrangement of one job that ``make`` makes; it returns the id."""

    def arrange() -> int:
        make("a")
        return live.get().pk

    return arrange


def of_two_workers() -> list[ClaimedJob]:
    return [*claimed("a", "b"), *claimed("c", worker="v")]
