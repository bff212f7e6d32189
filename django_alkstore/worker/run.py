"""
Call a task's function. Whatever happens there becomes an Outcome; nothing is raised.

Used by the worker's threads, by its event loop and by ``django_alkstore.testing``. No
connection is opened or closed here, nor anything settled, save by a transactional task.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

from django_alkstore import arguments, clock, payload, signals
from django_alkstore.decorator import Discard
from django_alkstore.exceptions import ClaimLost, TaskTimeout
from django_alkstore.jobs import ClaimedJob, Failure
from django_alkstore.worker.delays import asks_function, delay_after
from django_alkstore.worker.outcomes import (
    COMMITTED,
    LOST,
    RELEASED,
    SUCCEEDED,
    Discarded,
    Failed,
    Invalid,
    Outcome,
    Succeeded,
)
from django_alkstore.worker.runs import Run
from django_alkstore.worker.stopping import exit_now

if TYPE_CHECKING:
    from django_alkstore.decorator import Task

logger = logging.getLogger(__name__)

Guard: TypeAlias = Callable[[float], AbstractContextManager[None]]
"""A context that interrupts its block with TaskTimeout after so many seconds."""

Arguments: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]


class UnknownTask(LookupError):
    """No task of this name is known here. Deploy its code, or delete the job."""


class _Refused(Exception):
    """What the function returned cannot be used; the cause says why."""


class _NotOurs(ClaimLost):
    """The row does not carry this attempt any more."""


def run_job(run: Run, *, guard: Guard | None = None, durable: bool = False) -> Outcome:
    """
    Run a job here and now, an async one on a loop of its own. Return what it ended
    with.

    ``guard`` bounds the call of the function, and nothing else, by the job's timeout.
    Without it a run is known to be over its timeout when it returns. ``durable``: a
    transactional task must not be inside another transaction.
    """
    task = run.task
    if task is not None and task.is_async:
        return async_to_sync(arun_job)(run)
    try:
        task, (args, kwargs) = _prepare(run)
    except (ValueError, UnknownTask) as wrong:
        return Invalid(wrong, Failure.of(_bare(wrong)))
    signals.send_started(task, run.job)
    run.started = time.monotonic()
    try:
        if task.transactional:
            outcome = _run_transactional(run, task, args, kwargs, guard, durable)
        else:
            value = _call(run, task, args, kwargs, guard)
            outcome = _succeeded(run.job, value)
    except BaseException as error:
        run.seconds = time.monotonic() - run.started
        return _ended(run, task, error)
    run.seconds = time.monotonic() - run.started
    return outcome


async def arun_job(run: Run) -> Outcome:
    """Run the job of an async task on the running loop. Return what it ended with."""
    try:
        task, (args, kwargs) = _prepare(run)
    except (ValueError, UnknownTask) as wrong:
        return Invalid(wrong, Failure.of(_bare(wrong)))
    signals.send_started(task, run.job)
    run.started = time.monotonic()
    span = run.job.timeout_us
    limit = asyncio.timeout(None if span is None else clock.seconds(span))
    try:
        async with limit:
            value = await task.function(*args, **kwargs)
        if limit.expired():
            raise _timed_out(run.job, None)
        outcome = _succeeded(run.job, value)
    except BaseException as error:
        run.seconds = time.monotonic() - run.started
        return await _aended(run, task, error, limit.expired())
    run.seconds = time.monotonic() - run.started
    return outcome


async def _aended(
    run: Run, task: Task[..., Any], error: BaseException, expired: bool
) -> Outcome:
    if expired:
        # Whatever the function made of its cancellation.
        if not isinstance(error, TaskTimeout):
            error = _timed_out(run.job, error)
    elif isinstance(error, asyncio.CancelledError) and (run.lost or run.giving_up):
        return LOST if run.lost else RELEASED
    if asks_function(run.job, task, error):
        # The function may look into the database.
        return await sync_to_async(_ended)(run, task, error)
    return _ended(run, task, error)


def _prepare(run: Run) -> tuple[Task[..., Any], Arguments]:
    task = run.task
    if task is None:
        raise UnknownTask(
            f"no task is named {run.job.task!r} here: its function was renamed or"
            " removed, or is not in a tasks module of an installed app"
        )
    args, kwargs = arguments.load(run.job.payload)
    if task.takes_context:
        return task, ((run.make_context(), *args), kwargs)
    return task, (args, kwargs)


def _call(
    run: Run,
    task: Task[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    guard: Guard | None,
) -> Any:
    span = run.job.timeout_us
    if span is None:
        return _function(task, args, kwargs)
    start = time.monotonic()
    seconds = clock.seconds(span)
    if guard is None:
        value = _function(task, args, kwargs)
    else:
        with guard(seconds):
            value = _function(task, args, kwargs)
    if time.monotonic() - start > seconds:
        _close(value)
        raise _timed_out(run.job, None)
    return value


def _function(
    task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    process = os.getpid()
    try:
        value = task.function(*args, **kwargs)
    except BaseException as error:
        if os.getpid() != process:
            _end_fork(error)
        raise
    if os.getpid() != process:
        _end_fork(None)
    return value


def _end_fork(error: BaseException | None) -> None:
    """
    End a process that a function has forked, as if it had left its main module.

    It must neither settle the job nor touch the connections that are its parent's.
    """
    status: object = error
    if isinstance(error, SystemExit):
        status = error.code
    elif error is not None:
        traceback.print_exception(error)
    exit_now(status if isinstance(status, int) else int(status is not None))


def _run_transactional(
    run: Run,
    task: Task[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    guard: Guard | None,
    durable: bool,
) -> Outcome:
    from django_alkstore.models import LiveJob

    job = run.job
    manager = LiveJob.objects.db_manager(job.using)
    committed: list[bool] = []
    outermost = not connections[job.using].in_atomic_block
    try:
        with transaction.atomic(using=job.using, durable=durable):
            if outermost:
                # The first hook to run, so it tells whether an error came before the
                # commit or from a later hook.
                transaction.on_commit(lambda: committed.append(True), using=job.using)
            value = _call(run, task, args, kwargs, guard)
            text = _encode(job, value)
            notes = run.notes
            if notes is not None and job.result_ttl_us is not None:
                manager.write_notes([(job, notes)])
            if not manager.ack(job, text, lapsed_ok=True):
                raise _NotOurs
        if outermost and not committed:
            raise TransactionManagementError(
                "the function left a transaction open, so its own was not committed"
            )
    except _NotOurs:
        return LOST
    except BaseException as error:
        if not committed:
            raise
        logger.error(
            "event=on_commit_failed job=%s task=%s exception=%s",
            job.id, job.task, type(error).__qualname__, exc_info=error,
        )  # fmt: skip
    return COMMITTED


def _succeeded(job: ClaimedJob, value: Any) -> Outcome:
    text = _encode(job, value)
    return SUCCEEDED if text is None else Succeeded(text)


def _encode(job: ClaimedJob, value: Any) -> str | None:
    """
    Return the text of a result that is kept. Raise _Refused for what cannot be one.
    """
    if value is not None and inspect.isawaitable(value):
        _close(value)
        raise _Refused from TypeError(
            f"the function of {job.task} is no async function, yet it returned"
            f" {type(value).__name__}, which nobody awaits: make it async def"
        )
    if job.result_ttl_us is None:
        return None
    try:
        return payload.checked_result(value)
    except (TypeError, ValueError) as error:
        raise _Refused from error


def _close(value: Any) -> None:
    if inspect.iscoroutine(value):
        value.close()


def _ended(run: Run, task: Task[..., Any], error: BaseException) -> Outcome:
    if isinstance(error, _Refused) and error.__cause__ is not None:
        return Invalid(error.__cause__, Failure.of(_bare(error.__cause__)))
    failure = Failure.of(_bare(error))
    if isinstance(error, Discard):
        return Discarded(error, failure)
    return Failed(error, failure, delay_after(run, task, error, failure))


def _bare(error: BaseException) -> BaseException:
    """
    Return an exception without this module's frames at the head of its traceback.

    They tell nobody anything, and would keep the job's arguments alive with it.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return error.with_traceback(trace)


def _timed_out(job: ClaimedJob, error: BaseException | None) -> TaskTimeout:
    seconds = clock.seconds(job.timeout_us or 0)
    timeout = TaskTimeout(f"it ran longer than its timeout, {seconds:g} s")
    timeout.__cause__ = None if error is None else _bare(error)
    return timeout
