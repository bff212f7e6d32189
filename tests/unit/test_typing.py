"""
What a type checker knows of a task.

The checker is the judge here: each ignore below stands for an error that it must find,
because an ignore that is not needed is an error too.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, assert_type

from django_alkstore import Context, TaskResult, task
from django_alkstore.decorator import Task, registry
from tests import tasks

if TYPE_CHECKING:
    from django_alkstore.models import LiveJob


@task(queue="typed", takes_context=True)
def typed(context: Context, order_id: int, *, note: str = "") -> list[int]:
    """Take a context that callers do not give."""
    return [order_id]


def calls() -> None:
    """Never called."""
    assert_type(tasks.add(1, 2), int)
    assert_type(tasks.add.using(delay=60).enqueue(1, b=2), "LiveJob")
    assert_type(tasks.add.get_result(1), TaskResult[int])
    assert_type(tasks.add.get_result(1).wait(timeout=1), int)
    _ = assert_type(tasks.async_add(1, 2), Coroutine[Any, Any, int])
    assert_type(tasks.async_add.get_result(1), TaskResult[int])
    assert_type(typed(1, note="a"), list[int])
    assert_type(typed.get_result(1).return_value, list[int])

    tasks.add.enqueue("1", 2)  # type: ignore[arg-type]  # a string is no number
    tasks.add.enqueue(1)  # type: ignore[call-arg]  # one is missing
    tasks.add.enqueue(1, 2, delay=3)  # type: ignore[call-arg]  # options go to using
    tasks.add.using(dely=3)  # type: ignore[call-arg]  # a slip of the pen
    tasks.add.using(delay="3")  # type: ignore[arg-type]  # no duration
    typed.enqueue(order_id="1")  # type: ignore[arg-type]  # a string is no number
    task(max_atempts=3)  # type: ignore[call-overload]  # a slip of the pen


def test_a_typed_task_is_a_task_like_any_other() -> None:
    assert isinstance(typed, Task)
    assert registry[typed.name] is typed
