"""
The arguments of a task call on their way into a row, and out of it again.

They are checked against the function's signature before anything is stored, so that a
call that cannot run fails where it is made, and not in a worker an hour later.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django_alkstore import payload
from django_alkstore.exceptions import InvalidPayload
from django_alkstore.keywords import CallOptions


class Arguments:
    """What one function takes. ``context``: the worker gives its first argument."""

    __slots__ = ("_context", "_name", "_required", "_signature")

    def __init__(
        self, function: Callable[..., Any], name: str, *, context: bool
    ) -> None:
        self._name = name
        self._signature = inspect.signature(function)
        self._required = tuple(
            parameter.name
            for parameter in self._signature.parameters.values()
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
            and parameter.default is inspect.Parameter.empty
        )
        self._context: tuple[None, ...] = (None,) if context else ()
        if context and not _takes_positional(self._signature):
            raise TypeError(
                f"the task {name} takes_context, so its function needs a first"
                " positional argument for it"
            )

    def bind(
        self, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> inspect.BoundArguments:
        """Return arguments by name. Raise TypeError when they do not fit."""
        try:
            bound = self._signature.bind(*self._context, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}: {error}{_hint(error, kwargs)}") from None
        for name in self._required:
            # Python 3.13.0 overlooks one that is missing if a keyword has its name.
            if name not in bound.arguments:
                raise TypeError(f"{self._name}: missing a required argument: {name!r}")
        return bound

    def dump(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """
        Return the JSON text that a row holds for one call.

        Raise TypeError when the arguments do not fit the signature, InvalidPayload,
        naming the argument, when one is not JSON or all are too big.
        """
        bound = self.bind(args, kwargs)
        try:
            return payload.checked({"args": list(args), "kwargs": dict(kwargs)})
        except InvalidPayload as error:
            self._name_the_culprit(bound)
            raise InvalidPayload(f"{self._name}: {error}") from None

    def _name_the_culprit(self, bound: inspect.BoundArguments) -> None:
        parameters = bound.signature.parameters
        for place, (name, value) in enumerate(bound.arguments.items()):
            if place < len(self._context):
                continue
            kind = parameters[name].kind
            each = {name: value}
            if kind is inspect.Parameter.VAR_POSITIONAL:
                each = {f"{name}[{index}]": item for index, item in enumerate(value)}
            elif kind is inspect.Parameter.VAR_KEYWORD:
                each = value
            for argument, item in each.items():
                payload.dumps(item, f"{self._name}: argument {argument}")


def load(value: object) -> tuple[list[Any], dict[str, Any]]:
    """
    Return the positional and keyword arguments that a row's decoded payload holds.

    Raise ValueError for any other shape than ``{"args": […], "kwargs": {…}}``.
    """
    if isinstance(value, dict) and value.keys() == {"args", "kwargs"}:
        args, kwargs = value["args"], value["kwargs"]
        if isinstance(args, list) and isinstance(kwargs, dict):
            return args, kwargs
    raise ValueError('the payload of a task must be {"args": […], "kwargs": {…}}')


def _hint(error: TypeError, kwargs: Mapping[str, Any]) -> str:
    """Return what to do about a keyword that no function takes, but ``using`` does."""
    for name in kwargs.keys() & CallOptions.__optional_keys__:
        if str(error).endswith(f"unexpected keyword argument {name!r}"):
            return f"; it is an option, to be given with using({name}=…)"
    return ""


def _takes_positional(signature: inspect.Signature) -> bool:
    first = next(iter(signature.parameters.values()), None)
    return first is not None and first.kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
