"""
A harness that fails every statement of an operation once, and looks at what is left.

Nothing is listed by hand: an operation is run once to see which statements it makes,
then once more for each of them. Transaction control (BEGIN, SAVEPOINT, ...) is left
alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from django.db import OperationalError, connection, transaction

from django_alkstore import clock
from django_alkstore.models import (
    Attempt,
    DeadJob,
    LiveJob,
    QueueState,
    Result,
    Worker,
)
from tests.engine.scenes import NOW
from tests.models import Order

CONTROL = re.compile(r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b", re.IGNORECASE)
# An error that the database itself makes; it aborts a transaction on PostgreSQL.
WRONG = 'SELECT 1 FROM "no_such_table"'

JOB_TABLES = [model._meta.db_table for model in (LiveJob, DeadJob, Result)]
OTHER_TABLES = [model._meta.db_table for model in (Attempt, QueueState, Worker)]
ORDERS = Order._meta.db_table

Rows = frozenset[tuple[Any, ...]]
Picture = dict[str, Rows]


class Injected(OperationalError):
    """What a failed statement raises."""


class How(Enum):
    """When a statement fails, and whether Python or the database says so."""

    BEFORE = "before it runs"
    AFTER = "after it ran"
    WRONG = "after it ran, by an error of the database"


@dataclass(frozen=True, slots=True)
class Operation:
    """
    One way of calling a manager's method that changes rows.

    ``method`` is "Model.method". ``arrange`` makes the rows and returns what ``act``
    takes; ``act`` returns what can be compared between runs, so no ids. Each job has a
    payload of its own, by which it is known. An operation is done as a whole or not at
    all; one that works ``in_parts`` may have done some jobs and not the others, and
    what ``halfway`` makes of them may be left between two of its transactions.
    """

    name: str
    method: str
    arrange: Callable[[], Any]
    act: Callable[[Any], object]
    in_parts: bool = False
    halfway: Callable[[Any], object] | None = None


@dataclass(slots=True)
class Fault:
    """An execute wrapper that counts statements, and fails the one at place ``at``."""

    at: int | None = None
    how: How = How.BEFORE
    seen: list[str] = field(default_factory=list)
    saved: list[bool] = field(default_factory=list)
    """Whether each statement ran in a savepoint or transaction of the operation."""
    error: Exception | None = None
    depth: int = field(default_factory=lambda: _depth())

    def __call__(
        self, execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if CONTROL.match(sql):
            return execute(sql, params, many, context)
        place = len(self.seen)
        self.seen.append(sql)
        self.saved.append(_depth() > self.depth)
        if place != self.at:
            return execute(sql, params, many, context)
        if self.how is not How.BEFORE:
            execute(sql, params, many, context)
        try:
            if self.how is How.WRONG:
                with context["connection"].wrap_database_errors:
                    context["cursor"].cursor.execute(WRONG)
            raise Injected(f"statement {place} failed {self.how.value}")
        except Exception as error:
            self.error = error
            raise


@dataclass(frozen=True, slots=True)
class Run:
    """What an undisturbed run did: the reference for the disturbed ones."""

    value: object
    done: Picture
    halfway: Picture
    saved: list[bool]


def rehearse(operation: Operation) -> Run:
    """Run an operation undisturbed, once from start to end and once halfway."""
    halfway: Picture = {}
    if operation.halfway is not None:
        scene = _scene(operation)
        with clock.pretend(NOW):
            operation.halfway(scene)
        halfway = picture()
    scene = _scene(operation)
    with transaction.atomic():
        fault = Fault()
        with clock.pretend(NOW), connection.execute_wrapper(fault):
            value = operation.act(scene)
    return Run(value, picture(), halfway, fault.saved)


def disturb(operation: Operation, run: Run, at: int, how: How, inside: bool) -> None:
    """
    Fail the statement at place ``at`` and assert what the contract promises.

    The very error reaches the caller; jobs are as they were before or as they are
    after, each in one table; an outer transaction goes on; the operation then works.
    """
    scene = _scene(operation)
    before = picture()
    with _outer(inside):
        fault = Fault(at, how)
        caught = _caught(
            operation, scene, fault, _savepoint_of_caller(run, fault, inside)
        )
        assert fault.error is not None, "the statement was not reached"
        assert caught is fault.error, f"{caught!r} instead of the injected error"
        found = picture()
        if operation.in_parts:
            _assert_each_is(found, before, run.done, run.halfway)
        else:
            assert found in (before, run.done), "it is done by half"

        with clock.pretend(NOW):
            value = operation.act(scene)
        if found == before:
            assert value == run.value, f"repeated, it returned {value!r}"
        if not run.halfway:
            _assert_each_is(picture(), run.done)
    if inside:
        assert set(Order.objects.values_list("number", flat=True)) == {"first", "last"}
    else:
        assert not connection.in_atomic_block


def picture() -> Picture:
    """Return every row of the package by the payload of its job, without the ids."""
    found: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    labels: dict[int | None, str] = {None: "no job"}
    for table in JOB_TABLES:
        for row in _rows(table):
            job_id, label = row.pop("id"), row["payload"]
            assert job_id not in labels, f"job {label} is in two tables"
            labels[job_id] = label
            found[label].add((table, *row.items()))
    for table in OTHER_TABLES:
        for row in _rows(table):
            row.pop("id", None)
            label = labels.get(row.pop("job_id", None), "an orphan")
            found[label].add((table, *row.items()))
    return {label: frozenset(rows) for label, rows in found.items()}


def clean() -> None:
    """Delete every row that a run may have left."""
    with connection.cursor() as cursor:
        for table in (*JOB_TABLES, *OTHER_TABLES, ORDERS):
            cursor.execute(f'DELETE FROM "{table}"')


def _scene(operation: Operation) -> Any:
    with transaction.atomic():
        clean()
        return operation.arrange()


def _caught(
    operation: Operation, scene: Any, fault: Fault, savepoint: bool
) -> Exception | None:
    try:
        with ExitStack() as stack:
            if savepoint:
                stack.enter_context(transaction.atomic())
            stack.enter_context(clock.pretend(NOW))
            stack.enter_context(connection.execute_wrapper(fault))
            operation.act(scene)
    except Exception as error:
        return error
    return None


def _savepoint_of_caller(run: Run, fault: Fault, inside: bool) -> bool:
    # A single statement has no savepoint of ours. When the database itself refuses it,
    # PostgreSQL aborts the transaction, as for any statement of the caller's own.
    return inside and fault.how is How.WRONG and not run.saved[fault.at or 0]


@contextmanager
def _outer(inside: bool) -> Iterator[None]:
    if not inside:
        yield
        return
    with transaction.atomic():
        Order.objects.create(number="first")
        yield
        Order.objects.create(number="last")


def _assert_each_is(found: Picture, *allowed: Picture) -> None:
    nothing: Rows = frozenset()
    for label in {label for state in (found, *allowed) for label in state}:
        rows = found.get(label, nothing)
        if not any(rows == state.get(label, nothing) for state in allowed):
            raise AssertionError(f"{label} is left as {sorted(map(str, rows))}")


def _rows(table: str) -> list[dict[str, Any]]:
    # Not through the models: thousands of pictures are taken.
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{table}"')
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _depth() -> int:
    return len(connection.savepoint_ids) + connection.in_atomic_block
