"""What kind of function can be a task, what it is called, and whether it is awaited."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction


def check_function(function: object) -> None:
    """Raise TypeError for what cannot be a task: no function, a class, a generator."""
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"@task takes a function, not {function!r}")
    for body in _bodies(function):
        if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
            raise TypeError(
                f"{describe(function)} is a generator: calling it would run none of it"
            )


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call has to be awaited; looks through partials and callable objects."""
    return any(iscoroutinefunction(body) for body in _bodies(function))


def default_name(function: Callable[..., Any]) -> str:
    """Return module.qualname. Raise TypeError for a function that has no name."""
    if hasattr(function, "__qualname__"):
        return describe(function)
    raise TypeError(f"{function!r} has no name: give it one with @task(name=…)")


def is_same(old: Callable[..., Any], new: Callable[..., Any]) -> bool:
    """Whether ``new`` is ``old``, perhaps imported again. A nameless one never is."""
    if old is new:
        return True
    named = hasattr(old, "__qualname__") and hasattr(new, "__qualname__")
    return named and describe(old) == describe(new)


def describe(function: Any) -> str:
    """Return how an error names a function."""
    if hasattr(function, "__qualname__"):
        return f"{function.__module__}.{function.__qualname__}"
    return repr(function)


def _bodies(function: Any) -> list[Any]:
    while isinstance(function, functools.partial):
        function = function.func
    if hasattr(function, "__qualname__"):
        return [function]
    return [function, type(function).__call__]
