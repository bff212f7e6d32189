"""
The first step of a job's life: it is stored, and may be edited until it is claimed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from django.db import transaction

from django_alkstore import clock, sql
from django_alkstore import options as option_rules
from django_alkstore import payload as payloads
from django_alkstore.exceptions import DuplicateJob
from django_alkstore.managers.base import ModelT, Row, columns, fetch
from django_alkstore.managers.claiming import Claiming
from django_alkstore.options import JobOptions

if TYPE_CHECKING:
    from django_alkstore.models import LiveJob

# How many rows one INSERT takes: enough that its cost is spread, few enough that the
# JSON text of them stays small in memory.
BULK = 2_000
# A holder of a unique key may go between the INSERT that met it and the look at it.
# Each round needs another one to come and go, so these are more than any that was seen.
ROUNDS = 100


class Storing(Claiming[ModelT]):
    """enqueue, enqueue_many, edit, clear."""

    def enqueue(
        self, options: JobOptions, payload: str, *, unique_key: str | None = None
    ) -> LiveJob:
        """
        Store one job in the caller's transaction. ``payload`` is JSON text.

        One INSERT and no savepoint. Where a live job of the queue holds ``unique_key``,
        do as ``options.on_conflict`` says; raise DuplicateJob for "raise", and for
        "replace" when the holder runs or is another task's.
        """
        alias = self.database
        statements = sql.statements_for(alias)
        parameters = _parameters(options) | {
            "payload": payload,
            "unique_key": unique_key,
        }
        for _ in range(ROUNDS):
            rows = fetch(alias, statements.enqueue, parameters)
            if rows:
                return self._built(alias, parameters, rows[0])
            if options.on_conflict == "replace":
                # Not looked up afterwards: by then it may have been claimed and be
                # gone.
                replaced = fetch(alias, statements.replace, parameters)
                if replaced:
                    return self._found(self._loaded(alias, replaced[0]))
            holder = (
                self._live(alias)
                .filter(queue=options.queue, unique_key=unique_key)
                .first()
            )
            if holder is None:
                continue
            # One that has expired will never run: to return it would lose this job.
            if self._has_expired(holder) and self.sweep_expired(options.queue):
                continue
            if options.on_conflict == "return":
                return self._found(holder)
            if (
                options.on_conflict == "raise"
                or holder.state == holder.State.PROCESSING
                or holder.task != options.task
            ):
                raise _duplicate(options, unique_key, holder)
        raise DuplicateJob(
            f"the key {unique_key!r} of the queue {options.queue!r} was taken and freed"
            f" {ROUNDS} times while this job waited for it"
        )

    def enqueue_many(
        self,
        options: JobOptions,
        payloads: Sequence[str],
        *,
        unique_keys: Sequence[str | None] | None = None,
    ) -> list[int]:
        """
        Store jobs that share their options, in few statements under one savepoint.

        Return their ids position by position: for a key that is held, the holder's id.
        The first of equal keys in the list wins. Raise as ``enqueue`` does; then none
        of them is stored.
        """
        keys = [None] * len(payloads) if unique_keys is None else unique_keys
        if len(keys) != len(payloads):
            raise ValueError("unique_key must give one key for each payload")
        ids: list[int] = []
        # Of equal keys only the first is stored, so a replacement may not come later.
        first: dict[str, int] = {}
        with transaction.atomic(using=self.database):
            for start in range(0, len(payloads), BULK):
                part = slice(start, start + BULK)
                ids += self._enqueue_part(options, payloads[part], keys[part], first)
        return ids

    def _enqueue_part(
        self,
        options: JobOptions,
        payloads: Sequence[str],
        keys: Sequence[str | None],
        first: dict[str, int],
    ) -> list[int]:
        rows = [
            [payload, key]
            for payload, key in zip(payloads, keys, strict=True)
            if key is None or key not in first
        ]
        parameters = _parameters(options) | {"rows": json.dumps(rows)}
        statement = sql.statements_for(self.database).enqueue_many
        stored = fetch(self.database, statement, parameters)
        plain = iter(sorted(job_id for job_id, key in stored if key is None))
        first |= {key: job_id for job_id, key in stored if key is not None}
        held: dict[str, str] = {}
        for payload, key in zip(payloads, keys, strict=True):
            if key is not None and key not in first:  # held by a job from before
                held.setdefault(key, payload)
        # In one order for all callers: else two that replace could wait for each other.
        for key in sorted(held):
            first[key] = self.enqueue(options, held[key], unique_key=key).pk
        return [next(plain) if key is None else first[key] for key in keys]

    def edit(
        self,
        job_id: int,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        payload: object = ...,
    ) -> bool:
        """
        Change a job that is not yet claimed. ``...`` leaves the payload as it is.

        False when it has been claimed, or is not live. Raise as enqueue does for bad
        values.
        """
        parameters = {
            "id": job_id,
            "priority": None
            if priority is None
            else option_rules.check_priority(priority),
            "run_at": None if run_at is None else clock.from_instant(run_at, "run_at"),
            "payload": None if payload is ... else payloads.checked(payload),
        }
        statement = sql.statements_for(self.database).edit
        return bool(fetch(self.database, statement, parameters))

    def clear(self, queue: str) -> int:
        """Delete the jobs of a queue that wait, in batches. Return how many."""
        statement = sql.statements_for(self.database).clear
        total = 0
        while deleted := fetch(
            self.database, statement, {"queue": queue, "limit": BULK}
        ):
            total += len(deleted)
        return total

    def _live(self, alias: str) -> Any:
        return self.model._default_manager.using(alias)

    @staticmethod
    def _found(holder: LiveJob) -> LiveJob:
        holder.created = False
        return holder

    def _has_expired(self, holder: LiveJob) -> bool:
        if holder.expires_at is None:
            return False
        return clock.from_instant(holder.expires_at, "expires_at") <= self.now()

    def _loaded(self, alias: str, row: Row) -> LiveJob:
        values = {**columns(row), "state": row[-1]}
        fields = self.model._meta.concrete_fields
        job = self.model.from_db(
            alias,
            [field.attname for field in fields],
            [field.to_python(values[field.attname]) for field in fields],
        )
        return cast("LiveJob", job)

    def _built(self, alias: str, parameters: dict[str, Any], row: Row) -> LiveJob:
        job_id, state, run_at, created_at, expires_at = row
        values = {
            **parameters,
            "id": job_id,
            "state": state,
            "attempts": 0,
            "worker_id": "",
            "run_at": clock.to_instant(run_at),
            "created_at": clock.to_instant(created_at),
            "expires_at": _instant(expires_at),
            "visibility_timeout": _span(parameters["visibility_timeout"]),
            "timeout": _span(parameters["timeout"]),
            "dead_letter_retention": _span(parameters["dead_letter_retention"]),
            "result_ttl": _span(parameters["result_ttl"]),
        }
        names = [field.attname for field in self.model._meta.concrete_fields]
        job = self.model.from_db(alias, names, [values.get(name) for name in names])
        return cast("LiveJob", job)


def _parameters(options: JobOptions) -> dict[str, Any]:
    return {
        "queue": options.queue,
        "task": options.task,
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        "delay": options.delay,
        "run_at": options.run_at,
        "expires": options.expires,
        "visibility_timeout": options.visibility_timeout,
        "backoff": options.backoff,
        "timeout": options.timeout,
        "dead_letter_retention": options.dead_letter_retention,
        "result_ttl": options.result_ttl,
        "state": _state(options),
    }


def _instant(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else clock.to_instant(microseconds)


def _span(microseconds: int | None) -> timedelta | None:
    return None if microseconds is None else timedelta(microseconds=microseconds)


def _duplicate(
    options: JobOptions, unique_key: str | None, holder: LiveJob
) -> DuplicateJob:
    return DuplicateJob(
        f"job {holder.pk} of the queue {options.queue!r} holds the key {unique_key!r}"
        f" and is {holder.state}",
        job_id=holder.pk,
    )


def _state(options: JobOptions) -> str | None:
    # An instant is compared on the database's clock, a delay needs no comparing.
    if options.run_at is not None:
        return None
    return "scheduled" if options.delay else "pending"
