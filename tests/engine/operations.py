"""
Every way in which the managers change rows, for the faults to be tried on.

A new method of a manager without an entry here fails a test (``test_faults.py``).
"""

from __future__ import annotations

from django_alkstore import clock
from django_alkstore.jobs import Failure, Notes
from django_alkstore.models import Attempt, DeadJob, QueueState, Result, Worker
from tests.engine.faults import Operation
from tests.engine.scenes import (
    DAY,
    EARLIER,
    LATER,
    ack_mixed,
    at_attempt_21,
    beat,
    claim,
    claimed,
    dead,
    enqueue,
    enqueue_many,
    every_kind_of_upkeep,
    finished,
    gone,
    keyed,
    live,
    mixed,
    of_two_workers,
    only_claim,
    only_id,
    orphan,
    requeue,
    retry,
    store,
    tried,
    two_broken_rows,
    two_retentions,
)  # fmt: skip

OPERATIONS = [
    Operation("enqueue", "LiveJob.enqueue", store, enqueue()),
    Operation("enqueue later", "LiveJob.enqueue", store, enqueue(run_at=LATER)),
    Operation("enqueue a free key", "LiveJob.enqueue", store, enqueue("k")),
    *(
        Operation(
            f"enqueue a key of a {state} job, {rule}",
            "LiveJob.enqueue",
            keyed(make, key="k"),
            enqueue("k", on_conflict=rule),
        )
        for rule in ("return", "raise", "replace")
        for state, make in (("waiting", store), ("running", claimed))
    ),
    Operation("enqueue many", "LiveJob.enqueue_many", store, enqueue_many(*[None] * 3)),
    *(
        Operation(
            f"enqueue many, one key held, {rule}",
            "LiveJob.enqueue_many",
            lambda: store("old", key="k"),
            enqueue_many("j", "k", None, "j", "k", on_conflict=rule),
        )
        for rule in ("return", "raise", "replace")
    ),
    Operation("claim", "LiveJob.claim", lambda: store("a", "b"), claim()),
    Operation(
        "claim jobs with a task",
        "LiveJob.claim",
        lambda: store("a", "b", task="t"),
        claim(raw=False, upkeep=False),
    ),
    Operation(
        "claim a due job",
        "LiveJob.claim",
        lambda: store("a", at=EARLIER, delay=1),
        claim(),
    ),
    Operation(
        "claim a lapsed job", "LiveJob.claim", lambda: claimed("a", at=EARLIER), claim()
    ),
    Operation(
        "claim beside a spent job",
        "LiveJob.claim",
        lambda: claimed("a", "b", at=EARLIER, max_attempts=1),
        claim(),
    ),
    Operation(
        "claim beside expired jobs",
        "LiveJob.claim",
        lambda: store("a", "b", at=EARLIER, expires=1),
        claim(),
    ),
    Operation(
        "claim after every kind of upkeep",
        "LiveJob.claim",
        every_kind_of_upkeep,
        claim(worker_id="v"),
    ),
    Operation(
        "claim broken rows beside a good one",
        "LiveJob.claim",
        two_broken_rows,
        claim(),
        in_parts=True,
        halfway=only_claim,
    ),
    Operation(
        "claim last attempts for a slot",
        "LiveJob.claim",
        lambda: store("a", "b", "c", max_attempts=1),
        claim(slots=1),
    ),
    Operation(
        "ack", "LiveJob.ack", lambda: claimed("a"), lambda jobs: live.ack(jobs[0])
    ),
    Operation(
        "ack with a result",
        "LiveJob.ack",
        lambda: tried("a", result_ttl=DAY),
        lambda job: live.ack(job, "1"),
    ),
    Operation(
        "ack a transactional job",
        "LiveJob.ack",
        lambda: claimed("a", at=EARLIER),
        lambda jobs: live.ack(jobs[0], lapsed_ok=True),
    ),
    Operation(
        "ack a transactional job with a result",
        "LiveJob.ack",
        lambda: tried("a", result_ttl=DAY),
        lambda job: live.ack(job, "1", lapsed_ok=True),
    ),
    Operation("ack many of each kind", "LiveJob.ack_many", mixed, ack_mixed),
    Operation("retry", "LiveJob.retry", lambda: claimed("a")[0], retry),
    Operation("retry after 20 attempts", "LiveJob.retry", at_attempt_21, retry),
    Operation(
        "retry a spent job",
        "LiveJob.retry",
        lambda: claimed("a", max_attempts=1)[0],
        retry,
    ),
    Operation(
        "fail",
        "LiveJob.fail",
        lambda: tried("a", dead_letter_retention=DAY),
        lambda job: live.fail(job, failure=Failure.said("no")),
    ),
    Operation(
        "snooze",
        "LiveJob.snooze",
        lambda: claimed("a"),
        lambda jobs: live.snooze(jobs[0], clock.SECOND),
    ),
    Operation(
        "release jobs of two workers",
        "LiveJob.release_many",
        of_two_workers,
        lambda jobs: len(live.release_many(jobs)),
        in_parts=True,
    ),
    Operation(
        "heartbeat",
        "LiveJob.heartbeat",
        lambda: claimed("a"),
        lambda jobs: live.heartbeat(jobs[0], 99 * clock.SECOND),
    ),
    Operation(
        "heartbeat of two workers",
        "LiveJob.heartbeat_many",
        of_two_workers,
        lambda jobs: len(live.heartbeat_many(jobs, 99 * clock.SECOND)),
        in_parts=True,
    ),
    Operation(
        "write notes",
        "LiveJob.write_notes",
        lambda: [at_attempt_21(), *claimed("a")],
        lambda jobs: live.write_notes([(job, Notes(log="x")) for job in jobs]),
    ),
    *(
        Operation(
            f"cancel a {state} job",
            "LiveJob.cancel",
            only_id(make),
            lambda job_id: live.cancel(job_id),
        )
        for state, make in (("waiting", store), ("running", claimed))
    ),
    Operation(
        "edit",
        "LiveJob.edit",
        lambda: store("a")[0],
        lambda job_id: live.edit(job_id, priority=9, run_at=LATER),
    ),
    Operation(
        "sweep expired jobs",
        "LiveJob.sweep_expired",
        every_kind_of_upkeep,
        lambda scene: live.sweep_expired("q"),
    ),
    Operation(
        "clear",
        "LiveJob.clear",
        lambda: (store("a", "b"), claimed("runs", priority=1)),
        lambda scene: live.clear("q"),
    ),
    Operation(
        "requeue",
        "DeadJob.requeue",
        lambda: dead("a", "b", expires=DAY),
        requeue,
    ),
    Operation(
        "requeue beside a refused one",
        "DeadJob.requeue",
        lambda: [*dead("a"), *dead("b", key="k"), *(store("c", key="k"))],
        requeue,
    ),
    Operation(
        "sweep dead jobs",
        "DeadJob.sweep_retention",
        two_retentions,
        lambda scene: DeadJob.objects.sweep_retention(),
        in_parts=True,
    ),
    Operation(
        "sweep results",
        "Result.sweep",
        lambda: finished("a", "b"),
        lambda scene: Result.objects.sweep(),
    ),
    Operation(
        "sweep orphans",
        "Attempt.sweep_orphans",
        orphan,
        lambda scene: Attempt.objects.sweep_orphans(),
    ),
    Operation(
        "pause a new queue",
        "QueueState.pause",
        store,
        lambda scene: QueueState.objects.pause("q"),
    ),
    Operation(
        "pause a known queue",
        "QueueState.pause",
        lambda: QueueState.objects.create(name="q"),
        lambda scene: QueueState.objects.pause("q"),
    ),
    Operation(
        "resume",
        "QueueState.resume",
        lambda: QueueState.objects.pause("q"),
        lambda scene: QueueState.objects.resume("q"),
    ),
    Operation("beat for the first time", "Worker.beat", store, beat),
    Operation("beat again", "Worker.beat", gone, beat),
    Operation(
        "remove", "Worker.remove", gone, lambda scene: Worker.objects.remove("w")
    ),
    Operation(
        "sweep workers", "Worker.sweep", gone, lambda scene: Worker.objects.sweep()
    ),
]
