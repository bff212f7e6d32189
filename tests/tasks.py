"""One task for each behaviour that the tests need. Workers find them as in any app."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from django.db import connection

from django_alkstore import Context, Discard, Retry, constant, task
from tests.models import Effect, Order

# A task that waits for a test gives up in the end, should the test be gone.
MOST_SECONDS = 60.0
STEP = 0.02


class Boom(Exception):
    """What the failing tasks raise."""


@task
def noop() -> None:
    """Do nothing."""


@task(result_ttl=3600)
def add(a: int, b: int) -> int:
    """Return a sum, which is kept."""
    return a + b


@task
def echo(text: str) -> str:
    """Return what it is given."""
    return text


@task
def record(key: str, note: str = "") -> None:
    """Leave a trace."""
    Effect.objects.create(key=key, note=note)


@task(transactional=True)
def record_once(key: str) -> None:
    """Leave a trace in the transaction that acks the job."""
    Effect.objects.create(key=key)


@task(transactional=True)
def notify(order_id: int) -> None:
    """Mark an order as notified, leave a trace, and enqueue a follow-up job."""
    Order.objects.filter(pk=order_id).update(notified=True)
    Effect.objects.create(key=f"notified {order_id}")
    record.enqueue(f"followed {order_id}")


@task(transactional=True)
def record_then_fail(key: str) -> None:
    """Leave a trace and fail, so that the trace must not be there."""
    Effect.objects.create(key=key)
    raise Boom(key)


@task(max_attempts=3, backoff=constant(0))
def fail(message: str = "boom") -> None:
    """Fail at each attempt."""
    raise Boom(message)


@task(max_attempts=10, backoff=constant(0), takes_context=True)
def fail_times(context: Context, times: int, key: str) -> None:
    """Fail at the first ``times`` attempts, then leave a trace."""
    if context.attempt <= times:
        raise Boom(f"attempt {context.attempt}")
    Effect.objects.create(key=key, note=f"attempt {context.attempt}")


@task
def retry_later(delay: float) -> None:
    """Ask to be tried again later."""
    raise Retry(delay=delay)


@task
def discard(reason: str) -> None:
    """Ask to be tried no more."""
    raise Discard(reason)


@task(max_attempts=1)
def leave() -> None:
    """Call for the end of the program, which ends no worker."""
    raise SystemExit(3)


@task(max_attempts=1)
def return_what_is_not_json() -> object:
    """Return a value that no result can hold."""
    return object()


@task(takes_context=True)
def report(context: Context, total: int) -> None:
    """Tell of progress and write log lines."""
    for done in range(1, total + 1):
        context.logger.info("step %s of %s", done, total)
        context.progress(done, total, f"step {done}")


@task(visibility_timeout=2, max_attempts=5, takes_context=True)
def hold(context: Context, started: str, until: str, key: str = "") -> None:
    """
    Say in the file ``started`` that it runs, and run until there is a file ``until``.

    One line a run: the attempt and the process. Leave a trace at the end if ``key`` is
    given; end early, without it, when the job was cancelled or lost.
    """
    _say(started, context)
    deadline = time.monotonic() + MOST_SECONDS
    while not Path(until).exists():
        if context.cancelled or time.monotonic() > deadline:
            return
        time.sleep(STEP)
    if key:
        Effect.objects.create(key=key, note=f"attempt {context.attempt}")


@task(visibility_timeout=2, max_attempts=5, takes_context=True)
def hold_deaf(context: Context, started: str, until: str) -> None:
    """Do as ``hold``, but never look whether the job was cancelled."""
    _say(started, context)
    deadline = time.monotonic() + MOST_SECONDS
    while not Path(until).exists() and time.monotonic() < deadline:
        time.sleep(STEP)


@task(transactional=True, visibility_timeout=2, max_attempts=5, takes_context=True)
def write_then_hold(context: Context, started: str, until: str, key: str) -> None:
    """Leave a trace, uncommitted, and hold the transaction until there is a file."""
    Effect.objects.create(key=key, note=f"attempt {context.attempt}")
    _say(started, context)
    deadline = time.monotonic() + MOST_SECONDS
    while not Path(until).exists() and time.monotonic() < deadline:
        time.sleep(STEP)


@task(timeout=0.5, max_attempts=1)
def outlast(seconds: float) -> None:
    """Sleep, for longer than its timeout allows."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(STEP)


@task(takes_context=True)
def sleep_in_c(context: Context, started: str, until: str, seconds: float) -> None:
    """Say that it runs, and sleep in one call of the system."""
    _say(started, context)
    time.sleep(seconds)


@task(max_attempts=1)
def break_connection() -> None:
    """Make its own connection useless, and fail."""
    Effect.objects.exists()
    connection.connection.close()
    raise ValueError("x")


@task(result_ttl=3600)
async def async_add(a: int, b: int) -> int:
    """Return a sum, from an event loop."""
    await asyncio.sleep(0)
    return a + b


@task
async def async_record(key: str) -> None:
    """Leave a trace through the asynchronous ORM."""
    await Effect.objects.acreate(key=key)


@task(max_attempts=3, backoff=constant(0))
async def async_fail(message: str = "boom") -> None:
    """Fail at each attempt, from an event loop."""
    raise Boom(message)


@task(visibility_timeout=2, max_attempts=5, takes_context=True)
async def async_hold(context: Context, started: str, until: str) -> None:
    """Do as ``hold``; cancellation arrives as an exception."""
    _say(started, context)
    deadline = time.monotonic() + MOST_SECONDS
    while not Path(until).exists() and time.monotonic() < deadline:
        await asyncio.sleep(STEP)


@task(timeout=0.5, max_attempts=1)
async def async_outlast(seconds: float) -> None:
    """Sleep, for longer than its timeout allows."""
    await asyncio.sleep(seconds)


@task(max_attempts=1)
def raise_odd(kind: str) -> None:
    """Raise what a careless handler might: see ``odd``."""
    raise odd(kind)


@task(max_attempts=1)
async def async_raise_odd(kind: str) -> None:
    """Do as ``raise_odd``, from an event loop."""
    raise odd(kind)


class Unprintable(Exception):
    """An exception whose text cannot be made."""

    def __str__(self) -> str:
        raise Boom("no text")


@task
def fork_and_terminate() -> None:
    """Fork a process and end it by SIGTERM, as multiprocessing's pools do."""
    pid = os.fork()
    if pid == 0:
        time.sleep(MOST_SECONDS)
        os._exit(0)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    Effect.objects.create(key="forked", note=str(os.waitstatus_to_exitcode(status)))


@task(transactional=True, max_attempts=1)
def fork_and_leave(how: str) -> None:
    """Fork a process that leaves the function as the main one does, or by sys.exit."""
    Effect.objects.create(key="before")
    pid = os.fork()
    if pid == 0:
        if how == "exit":
            sys.exit(3)
        if how == "raise":
            raise Boom
        return
    _, status = os.waitpid(pid, 0)
    Effect.objects.create(key="forked", note=str(os.waitstatus_to_exitcode(status)))


@task
def fork_and_forget(seconds: float) -> None:
    """Leave a process behind that lives for longer than the job."""
    if os.fork() == 0:
        time.sleep(seconds)
        os._exit(0)


def odd(kind: str) -> BaseException:
    """Return an exception that is not an Exception, or no text for a database."""
    if kind == "its own cause":
        error = Boom("around")
        error.__cause__ = error
        return error
    if kind == "two that cause each other":
        first, second = Boom("first"), Boom("second")
        first.__cause__, second.__cause__ = second, first
        return first
    return {
        "SystemExit": SystemExit(0),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "GeneratorExit": GeneratorExit(),
        "CancelledError": asyncio.CancelledError(),
        "BaseException": BaseException("x"),
        "NUL": Boom("bad \x00 byte"),
        "lone surrogate": Boom("bad \ud800 text"),
        "unprintable": Unprintable(),
    }[kind]


def _say(started: str, context: Context) -> None:
    with Path(started).open("a", encoding="utf-8") as stream:
        stream.write(f"{context.attempt} {os.getpid()}\n")
