"""
``@task``: a Python function that runs jobs, and the registry that workers look into.

Calling a task runs it here and now. ``enqueue`` stores a job in the caller's
transaction; a worker finds the function by the name in the row. Only what is registered
here ever runs.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured

from django_alkstore import clock, functions, signals
from django_alkstore.arguments import Arguments
from django_alkstore.backoff import BackoffFunction
from django_alkstore.conf import get_settings
from django_alkstore.context import Context
from django_alkstore.keywords import CallOptions, TaskOptions, Unique
from django_alkstore.options import (
    MAX_TASK_LENGTH,
    JobOptions,
    Seconds,
    check_name,
    check_unique_key,
)
from django_alkstore.results import TaskResult

if TYPE_CHECKING:
    from django_alkstore.managers.live_job import LiveJobManager
    from django_alkstore.models import LiveJob

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

DEFAULT_QUEUE = "default"
CALL_ONLY = {"delay", "run_at"}


class Retry(Exception):
    """
    Raise it in a task to be tried again later.

    After ``delay`` seconds, or as the task's backoff says. It spends the attempt: a job
    without attempts left goes dead as exhausted.
    """

    def __init__(self, delay: Seconds | None = None, message: str = "") -> None:
        super().__init__(message)
        self.delay = delay
        self.delay_us = None if delay is None else clock.duration(delay, "delay")

    def __reduce__(self) -> tuple[type[Retry], tuple[Seconds | None, str]]:
        return type(self), (self.delay, str(self))


class Discard(Exception):
    """Raise it in a task to let its job die now, as failed; ``reason`` says why."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Task(Generic[P, R]):
    """
    A function that runs jobs, with the options that they are stored with.

    Made by ``@task``. ``function`` is the function itself, ``options`` what enqueue
    copies onto the row.
    """

    name: str
    function: Callable[..., Any]
    options: JobOptions
    unique: Unique | None
    is_async: bool
    transactional: bool
    takes_context: bool
    backoff_function: BackoffFunction | None
    database: str | None
    arguments: Arguments

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        transactional: bool = False,
        takes_context: bool = False,
        unique: Unique | None = None,
        **options: Any,
    ) -> None:
        if isinstance(function, Task):
            raise TypeError(f"{function.name} is a task already")
        functions.check_function(function)
        for option in CALL_ONLY & options.keys():
            raise TypeError(f"{option} is an option of a call: give it to using()")
        name = functions.default_name(function) if name is None else name
        self.name = check_name(name, "name", MAX_TASK_LENGTH)
        self.function = function
        self.options = JobOptions.build(queue, task=self.name, **options)
        self.unique = _check_unique(unique)
        self.is_async = functions.is_async(function)
        self.transactional = transactional
        self.takes_context = takes_context
        self.backoff_function = _function_of(options.get("backoff"))
        self.database = None
        self.arguments = Arguments(function, self.name, context=takes_context)
        if transactional and self.is_async:
            raise TypeError(
                f"the task {self.name} is async and cannot be transactional: Django has"
                " no async transactions. Make its function a plain one."
            )
        functools.update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function here and now, with no job. An async one is to be awaited."""
        if self.takes_context:
            context = Context.detached(self.options, self._manager().database)
            return cast(R, self.function(context, *args, **kwargs))
        return cast(R, self.function(*args, **kwargs))

    def using(self, /, **options: Unpack[CallOptions]) -> Task[P, R]:
        """
        Return this task with other options, for some calls.

        Takes the options of ``queue.enqueue``, and those of ``@task`` that are stored
        with a job. ``using`` names the database. ``unique_key`` is the key itself.
        """
        given: dict[str, Any] = dict(options)
        changed = copy.copy(self)
        changed.database = given.pop("using", self.database)
        if "unique" in given and "unique_key" in given:
            raise TypeError("give unique or unique_key, not both")
        if "unique" in given:
            changed.unique = _check_unique(given.pop("unique"))
        elif "unique_key" in given:
            changed.unique = check_unique_key(given.pop("unique_key"))
        function = _function_of(given.get("backoff"))
        if function not in (None, self.backoff_function):
            raise ValueError(
                "a backoff function belongs to the task, where the worker finds it:"
                " give it to @task"
            )
        changed.options = self.options.change(**given)
        return changed

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> LiveJob:
        """
        Store one job in the caller's transaction, and return it.

        ``.created`` of it is False where a live job held the unique key. Raise
        TypeError when the arguments do not fit the function, InvalidPayload when one
        is not JSON.
        """
        text = self.arguments.dump(args, kwargs)
        key = self._key(args, kwargs)
        manager = self._manager()
        job = manager.enqueue(self.options, text, unique_key=key)
        if job.created:
            signals.send_enqueued(self._registered, job)
        _run_inline(manager.database)
        return job

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> LiveJob:
        """Do as ``enqueue``, from async code."""
        # sync_to_async's own call would eat a keyword named self.
        return await sync_to_async(lambda: self.enqueue(*args, **kwargs))()

    def enqueue_many(
        self, calls: Iterable[tuple[Any, ...] | Mapping[str, Any]], /
    ) -> list[int]:
        """
        Store many jobs in a few statements; return their ids, position by position.

        Each call is a tuple of arguments or a dict of keywords. Where a live job holds
        a unique key the id is that job's; of equal keys in the list the first wins.
        Raise as ``enqueue`` does; then nothing is stored.
        """
        pairs = [_call(call, place) for place, call in enumerate(calls)]
        texts = [self.arguments.dump(args, kwargs) for args, kwargs in pairs]
        keys = (
            None
            if self.unique is None
            else [self._key(args, kwargs) for args, kwargs in pairs]
        )
        manager = self._manager()
        ids = manager.enqueue_many(self.options, texts, unique_keys=keys)
        signals.send_enqueued_many(
            self._registered,
            self.options.queue,
            ids,
            lambda: _load(manager, ids),
        )
        _run_inline(manager.database)
        return ids

    async def aenqueue_many(
        self, calls: Iterable[tuple[Any, ...] | Mapping[str, Any]], /
    ) -> list[int]:
        """Do as ``enqueue_many``, from async code."""
        return await sync_to_async(self.enqueue_many)(calls)

    @overload
    def get_result(
        self: Task[P, Coroutine[Any, Any, V]], job_id: int, /
    ) -> TaskResult[V]: ...
    @overload
    def get_result(self, job_id: int, /) -> TaskResult[R]: ...
    def get_result(self, job_id: int, /) -> TaskResult[Any]:
        """Return what became of a job. Raise ResultDoesNotExist if it is unknown."""
        return TaskResult[Any].read(job_id, using=self.database, task=self.name)

    @overload
    async def aget_result(
        self: Task[P, Coroutine[Any, Any, V]], job_id: int, /
    ) -> TaskResult[V]: ...
    @overload
    async def aget_result(self, job_id: int, /) -> TaskResult[R]: ...
    async def aget_result(self, job_id: int, /) -> TaskResult[Any]:
        """Do as ``get_result``, from async code."""
        return await sync_to_async(self.get_result)(job_id)

    def _key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        if callable(self.unique):
            return check_unique_key(self.unique(*args, **kwargs))
        return self.unique

    def _manager(self) -> LiveJobManager:
        # Models cannot be imported before the apps are loaded; task modules can.
        from django_alkstore.models import LiveJob

        manager: LiveJobManager = LiveJob.objects.using_alias(self.database)
        return manager

    @property
    def _registered(self) -> Task[..., Any]:
        # Receivers name the task as their sender, not a copy that ``using`` made.
        return registry.get(self.name, self)


registry: dict[str, Task[..., Any]] = {}
"""Every task by its name. A worker runs what it finds here, and nothing else."""


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(
    *, takes_context: Literal[True], **options: Unpack[TaskOptions]
) -> Callable[[Callable[Concatenate[Context, P], R]], Task[P, R]]: ...
@overload
def task(
    *, takes_context: Literal[False] = False, **options: Unpack[TaskOptions]
) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """
    Make a function a task, and register it under its name, by default module.qualname.

    Bare or with options. Raise TypeError or ValueError for a bad option or a function
    that cannot be a task, ImproperlyConfigured when another function has the name.
    """
    if function is None:
        return lambda function: register(Task(function, **options))
    return register(Task(function, **options))


def register(new: Task[P, R]) -> Task[P, R]:
    """Enter a task into the registry; the same function imported again replaces it."""
    old = registry.get(new.name)
    if old is not None and not functions.is_same(old.function, new.function):
        raise ImproperlyConfigured(
            f"the task name {new.name!r} belongs to"
            f" {functions.describe(old.function)} already; give"
            f" {functions.describe(new.function)} another one with @task(name=…)"
        )
    registry[new.name] = new
    return new


def _run_inline(alias: str) -> None:
    if get_settings().inline:
        from django_alkstore.testing.inlining import run_inline

        run_inline(alias)


def _load(manager: LiveJobManager, ids: list[int]) -> list[LiveJob]:
    jobs = manager.using(manager.database).in_bulk(ids)
    return [jobs[job_id] for job_id in dict.fromkeys(ids) if job_id in jobs]


def _call(call: object, place: int) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if isinstance(call, tuple):
        return call, {}
    if isinstance(call, Mapping):
        return (), call
    raise TypeError(
        f"call {place} is {type(call).__name__}: give a tuple of arguments, as in (1,),"
        " or a dict of keywords"
    )


def _function_of(backoff: object) -> BackoffFunction | None:
    return cast(BackoffFunction, backoff) if callable(backoff) else None


def _check_unique(unique: Unique | None) -> Unique | None:
    return unique if callable(unique) else check_unique_key(unique)
