"""
The text of every statement, written once for both engines.

What an engine says otherwise is a fragment that its own module hands in, with the
reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from django_alkstore.sql.statements import JOB_COLUMNS, Statements

LIVE, DEAD, RESULTS = '"__alkstore_live"', '"__alkstore_dead"', '"__alkstore_results"'
ATTEMPTS, QUEUES = '"__alkstore_attempts"', '"__alkstore_queues"'

COLUMNS = ", ".join(JOB_COLUMNS)
INSERT = (
    f"INSERT INTO {LIVE} (queue, task, payload, state, priority, run_at, attempts,"
    " max_attempts, created_at, expires_at, worker_id, visibility_timeout, backoff,"
    " timeout, dead_letter_retention, result_ttl, unique_key)"
)
# Columns that raw SQL may have filled with what is no text.
TEXTS = ("task", "payload", "backoff", "unique_key")
VALUES = ", ".join(f"%({column})s" for column in JOB_COLUMNS)

DUE = "queue = %(queue)s AND state = 'scheduled' AND run_at <= {now}"
LAPSED = "queue = %(queue)s AND state = 'processing' AND claim_expires_at < {now}"
HAS_ATTEMPTS = "attempts < max_attempts"
NO_ATTEMPTS = "attempts >= max_attempts"
EXPIRED = (
    "queue = %(queue)s AND expires_at IS NOT NULL AND expires_at <= {now}"
    " AND (state <> 'processing' OR claim_expires_at < {now})"
)
WAITING = "queue = %(queue)s AND state <> 'processing'"
UNEXPIRED = "(expires_at IS NULL OR expires_at > {now})"
UNCLAIMED = "worker_id = '', claimed_at = NULL, claim_expires_at = NULL"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The fragments in which the engines differ."""

    text: str
    """
    How ``{column}`` is read so that no row, whatever it holds, fails the statement.
    """

    now: str
    """The clock, once for each time it is named, usable as an index bound."""

    among: str
    """``id`` among the ids of a subquery ``{ids}``, which must be run only once."""

    skip_locked: str
    """How a row selection passes over rows that another transaction holds."""

    greatest: str
    """The scalar function for the greater of two numbers."""

    claims: str
    """The rows (id, attempt) of the JSON parameter ``claims``."""

    ids: str
    """The ids of the JSON list in the parameter ``ids``."""

    payloads: str
    """The rows (id, payload, unique_key) of the JSON parameter ``rows``, as they are to
    be inserted. An id of NULL is the next one."""


def statements(dialect: Dialect) -> Statements:
    """Return the statements of one engine."""
    now = dialect.now
    skip = dialect.skip_locked
    columns = ", ".join(
        dialect.text.format(column=column) if column in TEXTS else column
        for column in JOB_COLUMNS
    )

    def among(ids: str) -> str:
        return dialect.among.format(ids=ids)

    def pick(where: str, order: str) -> str:
        condition = where.format(now=now)
        return among(
            f"SELECT id FROM {LIVE} WHERE {condition}"
            f" ORDER BY {order} LIMIT %(limit)s{skip}"
        )

    ours = among(f"SELECT id FROM ({dialect.claims}) AS ours")
    held = (
        f"{ours} AND (id, attempts) IN (SELECT id, attempt FROM ({dialect.claims}) AS ours)"
        " AND worker_id = %(worker_id)s"
    )
    claim_is_ours = f"{held} AND state = 'processing' AND claim_expires_at >= {now}"
    later = (
        f"CASE WHEN CAST(%(run_at)s AS BIGINT) > {now}"
        " THEN 'scheduled' ELSE 'pending' END"
    )

    def claim(kind: str) -> str:
        chosen = pick(
            f"queue = %(queue)s AND state = 'pending' AND {kind} AND {UNEXPIRED}"
            f" AND NOT EXISTS (SELECT 1 FROM {QUEUES}"
            " WHERE name = %(queue)s AND paused_at IS NOT NULL)",
            "priority DESC, run_at, id",
        )
        return (
            f"UPDATE {LIVE} SET state = 'processing', worker_id = %(worker_id)s,"
            f" claimed_at = {now}, claim_expires_at = {now} + visibility_timeout,"
            f" attempts = attempts + 1 WHERE {chosen} RETURNING {columns}"
        )

    # An attempt that was found lapsed may have notes to tell yet; they undo no end.
    ended_texts = ", ".join(
        f"{text} = CASE WHEN excluded.ended_at IS NULL THEN {ATTEMPTS}.{text}"
        f" ELSE excluded.{text} END"
        for text in ("exception_class", "message", "traceback")
    )

    return Statements(
        now=f"SELECT {now}",
        enqueue=(
            f"{INSERT} VALUES (%(queue)s, %(task)s, %(payload)s,"
            f" COALESCE(%(state)s, {later}), %(priority)s,"
            f" COALESCE(CAST(%(run_at)s AS BIGINT), {now} + %(delay)s), 0,"
            f" %(max_attempts)s, {now}, {now} + CAST(%(expires)s AS BIGINT), '',"
            " %(visibility_timeout)s, %(backoff)s, %(timeout)s,"
            " %(dead_letter_retention)s, %(result_ttl)s, %(unique_key)s)"
            " ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL DO NOTHING"
            " RETURNING id, state, run_at, created_at, expires_at"
        ),
        enqueue_many=(
            f"INSERT INTO {LIVE} (id, queue, task, payload, state, priority, run_at,"
            " attempts, max_attempts, created_at, expires_at, worker_id,"
            " visibility_timeout, backoff, timeout, dead_letter_retention, result_ttl,"
            " unique_key) SELECT given.id, %(queue)s, %(task)s, given.payload,"
            f" COALESCE(%(state)s, {later}), CAST(%(priority)s AS INTEGER),"
            f" COALESCE(CAST(%(run_at)s AS BIGINT), {now} + %(delay)s), 0,"
            f" CAST(%(max_attempts)s AS INTEGER), {now},"
            f" {now} + CAST(%(expires)s AS BIGINT), '',"
            " CAST(%(visibility_timeout)s AS BIGINT), %(backoff)s,"
            " CAST(%(timeout)s AS BIGINT), CAST(%(dead_letter_retention)s AS BIGINT),"
            " CAST(%(result_ttl)s AS BIGINT), given.unique_key"
            f" FROM ({dialect.payloads}) AS given WHERE true"
            " ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL DO NOTHING"
            " RETURNING id, unique_key"
        ),
        # A lapsed claim's worker is forgotten here and in ``edit``: its transactional
        # task must not commit an ack of what it has not run.
        # A key is the queue's: another task's job must not get our arguments.
        replace=(
            f"UPDATE {LIVE} SET payload = %(payload)s, priority = %(priority)s,"
            " worker_id = '',"
            f" run_at = COALESCE(CAST(%(run_at)s AS BIGINT), {now} + %(delay)s),"
            f" state = COALESCE(%(state)s, {later})"
            " WHERE queue = %(queue)s AND unique_key = %(unique_key)s"
            " AND unique_key IS NOT NULL AND state <> 'processing' AND task = %(task)s"
            f" AND {UNEXPIRED.format(now=now)}"
            f" RETURNING {columns}, state"
        ),
        # MIN rather than EXISTS: PostgreSQL answers it from the index's first entry,
        # where for EXISTS it guessed that a third of the table fits, and read it all.
        probe=(
            "SELECT "
            + ", ".join(
                f"(SELECT MIN({column}) FROM {LIVE} WHERE {where.format(now=now)})"
                for column, where in (
                    ("run_at", DUE),
                    ("claim_expires_at", f"{LAPSED} AND {HAS_ATTEMPTS}"),
                    ("claim_expires_at", f"{LAPSED} AND {NO_ATTEMPTS}"),
                    ("expires_at", EXPIRED),
                )
            )
        ),
        promote=(
            f"UPDATE {LIVE} SET state = 'pending' WHERE {pick(DUE, 'run_at, id')}"
        ),
        # In the order of the index alone: with the id as well PostgreSQL would sort all
        # that have lapsed. The worker's name stays: a transactional task may still
        # commit its own ack as long as nobody has claimed the job anew.
        reclaim=(
            f"UPDATE {LIVE} SET state = 'pending'"
            f" WHERE {pick(f'{LAPSED} AND {HAS_ATTEMPTS}', 'claim_expires_at')}"
            " RETURNING id, attempts, worker_id, claimed_at, claim_expires_at"
        ),
        exhaust=(
            f"DELETE FROM {LIVE}"
            f" WHERE {pick(f'{LAPSED} AND {NO_ATTEMPTS}', 'claim_expires_at')}"
            f" RETURNING {columns}"
        ),
        expire=(
            f"DELETE FROM {LIVE} WHERE {pick(EXPIRED, 'expires_at')}"
            f" RETURNING {columns}"
        ),
        claim_raw=claim("task = ''"),
        claim_task=claim("task > ''"),
        survey=_survey(now),
        heartbeat=(
            f"UPDATE {LIVE} SET claim_expires_at = {dialect.greatest}(claim_expires_at,"
            f" {now} + COALESCE(CAST(%(extend)s AS BIGINT), visibility_timeout))"
            f" WHERE {claim_is_ours} RETURNING id, claim_expires_at"
        ),
        ack=f"DELETE FROM {LIVE} WHERE {claim_is_ours} RETURNING id",
        take=f"DELETE FROM {LIVE} WHERE {claim_is_ours} RETURNING {columns}",
        take_attempt=f"DELETE FROM {LIVE} WHERE {held} RETURNING {columns}",
        retry=(
            f"UPDATE {LIVE} SET state = CASE WHEN %(delay)s > 0 THEN 'scheduled'"
            f" ELSE 'pending' END, run_at = {now} + %(delay)s, {UNCLAIMED}"
            f" WHERE {claim_is_ours} RETURNING id"
        ),
        release=(
            f"UPDATE {LIVE} SET state = CASE WHEN %(delay)s > 0 THEN 'scheduled'"
            " ELSE 'pending' END, run_at = CASE WHEN %(delay)s > 0"
            f" THEN {now} + %(delay)s ELSE run_at END, attempts = attempts - 1,"
            f" {UNCLAIMED} WHERE {claim_is_ours} RETURNING id"
        ),
        cancel=f"DELETE FROM {LIVE} WHERE id = %(id)s RETURNING {columns}",
        edit=(
            f"UPDATE {LIVE} SET worker_id = '',"
            " priority = COALESCE(CAST(%(priority)s AS INTEGER), priority),"
            " payload = COALESCE(%(payload)s, payload),"
            " run_at = COALESCE(CAST(%(run_at)s AS BIGINT), run_at),"
            f" state = CASE WHEN CAST(%(run_at)s AS BIGINT) IS NULL THEN state"
            f" ELSE {later} END WHERE id = %(id)s AND state <> 'processing'"
            " RETURNING id"
        ),
        clear=(f"DELETE FROM {LIVE} WHERE {pick(WAITING, 'id')} RETURNING id"),
        next_claim_at=_next_claim_at(now),
        bury=(
            f"INSERT INTO {DEAD} ({COLUMNS}, reason, last_error, died_at, keep_until)"
            f" VALUES ({VALUES}, %(reason)s, %(last_error)s, {now},"
            f" {now} + CAST(%(dead_letter_retention)s AS BIGINT))"
        ),
        unbury=(
            f"INSERT INTO {DEAD} ({COLUMNS}, reason, last_error, died_at, keep_until)"
            f" VALUES ({VALUES}, %(reason)s, %(last_error)s, %(died_at)s,"
            " %(keep_until)s)"
        ),
        exhume=(
            f"DELETE FROM {DEAD} WHERE id IN ({dialect.ids})"
            f" RETURNING {columns}, reason, last_error, died_at, keep_until"
        ),
        # The time it had to start by counts anew, from now.
        requeue=(
            f"{INSERT} VALUES (%(queue)s, %(task)s, %(payload)s, 'pending',"
            f" %(priority)s, {now}, 0, %(max_attempts)s, {now}, {now} +"
            " (CAST(%(expires_at)s AS BIGINT) - CAST(%(created_at)s AS BIGINT)), '',"
            " %(visibility_timeout)s, %(backoff)s, %(timeout)s,"
            " %(dead_letter_retention)s, %(result_ttl)s, %(unique_key)s)"
            " ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL DO NOTHING"
            " RETURNING id"
        ),
        save_result=(
            f"INSERT INTO {RESULTS} ({COLUMNS}, value, finished_at, keep_until)"
            f" VALUES ({VALUES}, %(value)s, {now},"
            f" {now} + CAST(%(result_ttl)s AS BIGINT))"
        ),
        note_attempt=(
            f"INSERT INTO {ATTEMPTS} (job_id, attempt, worker_id, started_at, ended_at,"
            " exception_class, message, traceback, progress, log) VALUES (%(job_id)s,"
            " %(attempt)s, %(worker_id)s, %(started_at)s,"
            f" CASE WHEN %(ended)s = 1 THEN {now} END, %(exception_class)s,"
            " %(message)s, %(traceback)s, %(progress)s, %(log)s)"
            " ON CONFLICT (job_id, attempt) DO UPDATE SET"
            " worker_id = excluded.worker_id, started_at = excluded.started_at,"
            f" ended_at = COALESCE(excluded.ended_at, {ATTEMPTS}.ended_at),"
            f" {ended_texts},"
            f" progress = COALESCE(excluded.progress, {ATTEMPTS}.progress),"
            f" log = CASE WHEN excluded.log <> '' THEN excluded.log"
            f" ELSE {ATTEMPTS}.log END"
        ),
        end_attempts=(
            f"UPDATE {ATTEMPTS} SET ended_at = {now} WHERE (job_id, attempt) IN"
            f" (SELECT id, attempt FROM ({dialect.claims}) AS ours)"
        ),
        forget_attempts=f"DELETE FROM {ATTEMPTS} WHERE job_id IN ({dialect.ids})",
        trim_attempts=(
            f"DELETE FROM {ATTEMPTS} WHERE job_id = %(job_id)s"
            " AND attempt <= %(attempt)s"
        ),
    )


def _survey(now: str) -> str:
    # A queue's name is found by stepping: the smallest, then the smallest above it.
    # So a million rows of one queue cost one look, not a million.
    kinds = {
        "waiting": "state = 'pending' AND task > ''",
        "scheduled": "state = 'scheduled'",
        "running": f"state = 'processing' AND {HAS_ATTEMPTS}",
        "ending": f"state = 'processing' AND {NO_ATTEMPTS}",
    }
    steps = ", ".join(
        f"{name} (queue) AS (SELECT MIN(queue) FROM {LIVE} WHERE {where} UNION ALL"
        f" SELECT (SELECT MIN(queue) FROM {LIVE} WHERE {where}"
        f" AND queue > {name}.queue) FROM {name} WHERE {name}.queue IS NOT NULL)"
        for name, where in kinds.items()
    )
    names = " UNION ".join(f"SELECT queue FROM {name}" for name in kinds)
    of = f"FROM {LIVE} WHERE queue = names.queue AND"
    unexpired = UNEXPIRED.format(now=now)
    scheduled = f"(SELECT MIN(run_at) {of} {kinds['scheduled']})"
    running = f"(SELECT MIN(claim_expires_at) + 1 {of} {kinds['running']})"
    ending = f"(SELECT MIN(claim_expires_at) + 1 {of} {kinds['ending']})"
    expired = EXPIRED.format(now=now).replace("%(queue)s", "names.queue")
    return (
        f"WITH RECURSIVE {steps}, names (queue) AS ({names})"
        f" SELECT queue, EXISTS (SELECT 1 {of} {kinds['waiting']} AND {unexpired}),"
        f" (SELECT MIN(expires_at) FROM {LIVE} WHERE {expired}),"
        f" {scheduled}, {running}, {ending}, {now}"
        " FROM names WHERE queue IS NOT NULL AND NOT EXISTS (SELECT 1"
        f" FROM {QUEUES} WHERE name = names.queue AND paused_at IS NOT NULL)"
    )


def _next_claim_at(now: str) -> str:
    raw = f"FROM {LIVE} WHERE queue = %(queue)s AND task = '' AND"
    unexpired = UNEXPIRED.format(now=now)
    return (
        "SELECT MIN(at) FROM ("
        f"SELECT MIN(run_at) AS at {raw} state = 'pending' AND {unexpired}"
        f" UNION ALL SELECT MIN(run_at) {raw} state = 'scheduled' AND {unexpired}"
        " AND (expires_at IS NULL OR expires_at > run_at)"
        f" UNION ALL SELECT MIN(claim_expires_at) + 1 {raw} state = 'processing'"
        f" AND {HAS_ATTEMPTS} AND {unexpired}"
        " AND (expires_at IS NULL OR expires_at > claim_expires_at + 1)"
        f") AS times WHERE NOT EXISTS (SELECT 1 FROM {QUEUES}"
        " WHERE name = %(queue)s AND paused_at IS NOT NULL)"
    )
