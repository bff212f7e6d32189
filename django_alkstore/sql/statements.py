"""
The queue's SQL, one named statement for each step of a job's life.

Every statement takes named parameters. ``now`` is one of all of them: None for the real
clock, microseconds in tests. Durations and instants are in microseconds. ``claims`` is
a JSON list of ``[job id, attempt]``: the receipts that a settling statement is fenced
by, with ``worker_id``.
"""

from __future__ import annotations

from dataclasses import dataclass

# What each job row carries, whichever table it is in; the order of every RETURNING.
JOB_COLUMNS = (
    "id",
    "queue",
    "task",
    "payload",
    "priority",
    "run_at",
    "attempts",
    "max_attempts",
    "created_at",
    "expires_at",
    "worker_id",
    "claimed_at",
    "claim_expires_at",
    "visibility_timeout",
    "backoff",
    "timeout",
    "dead_letter_retention",
    "result_ttl",
    "unique_key",
)


@dataclass(frozen=True, slots=True)
class Statements:
    """What the managers execute. "Job columns" means JOB_COLUMNS, in that order."""

    now: str
    """No row changes. Returns the clock, in microseconds."""

    enqueue: str
    """Insert one job. Parameters: the columns, ``delay``, ``expires`` and ``state`` (None
    where run_at decides). Returns (id, state, run_at, created_at, expires_at); nothing
    on a unique conflict."""

    enqueue_many: str
    """Insert jobs that share their options. ``rows`` is a JSON list of [payload, unique
    key]. Returns (id, unique_key) of those stored, ids in the rows' order."""

    replace: str
    """Give the waiting holder of a unique key another payload, priority and run_at.
    Returns job columns and state; nothing when it runs or has gone."""

    probe: str
    """Look whether a queue has rows for ``promote``, ``reclaim``, ``exhaust``, ``expire``.
    Returns one row of four instants, each None where there is none to move."""

    promote: str
    """Make up to ``limit`` due scheduled jobs of a queue pending."""

    reclaim: str
    """Make up to ``limit`` jobs pending whose claim lapsed and that have attempts left.
    Returns (id, attempts, worker_id, claimed_at, claim_expires_at)."""

    exhaust: str
    """
    Delete up to ``limit`` jobs whose last attempt's claim lapsed.

    Returns job columns.
    """

    expire: str
    """Delete up to ``limit`` jobs past expires_at that no valid claim holds. Returns job
    columns."""

    claim_raw: str
    """Claim up to ``limit`` pending raw jobs of an unpaused queue. Returns job columns,
    in no order that could be relied on."""

    claim_task: str
    """Claim up to ``limit`` pending jobs with a task, as ``claim_raw``."""

    survey: str
    """Look at every unpaused queue with work for a worker. Returns (queue, whether a task
    job waits, expires_at of a row to be moved for that, next run_at, next lapse of a
    claim with attempts left, next lapse of one without, now)."""

    heartbeat: str
    """Extend claims by ``extend``, or by their own stamps. Returns (id, claim end)."""

    ack: str
    """Delete finished jobs. Returns ids."""

    take: str
    """Delete jobs to move them to another table. Returns job columns."""

    take_attempt: str
    """As ``take``, for one transactional job: fenced by the attempt, not by expiry."""

    retry: str
    """Put one job back to wait for ``delay``. Returns ids."""

    release: str
    """Put jobs back at once and unspend their attempt, after ``delay``. Returns ids."""

    cancel: str
    """Delete job ``id``, whatever its state. Returns job columns."""

    edit: str
    """Change ``priority``, ``run_at`` and ``payload`` (None leaves one) of a job that
    waits. Returns ids."""

    clear: str
    """Delete up to ``limit`` waiting jobs of a queue. Returns ids."""

    next_claim_at: str
    """
    Returns the instant at which a claim of raw jobs could return something, or None.
    """

    bury: str
    """Insert one dead job: its job columns, ``reason``, ``last_error``."""

    unbury: str
    """Insert one dead job as it was, with ``died_at`` and ``keep_until``."""

    exhume: str
    """Delete the dead jobs of a JSON list ``ids``. Returns job columns, reason,
    last_error, died_at, keep_until."""

    requeue: str
    """Insert a dead job as a pending one with fresh attempts. Returns the new id, or
    nothing while its unique key is held."""

    save_result: str
    """Insert one result: its job columns and ``value``."""

    note_attempt: str
    """Insert an attempt, or add to it: end, error, progress, log."""

    end_attempts: str
    """Set the end of the attempts that ``claims`` name."""

    forget_attempts: str
    """Delete the attempts of the jobs in a JSON list ``ids``."""

    trim_attempts: str
    """Delete a job's attempts up to number ``attempt``."""
