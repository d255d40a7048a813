"""Methods of the engine that call those of a service."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def delegate_to(service: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method of the engine that calls the same method of one of its services."""
    name = method.__name__

    @functools.wraps(method)
    def call(engine: Any, *args: P.args, **named: P.kwargs) -> T:
        return cast(T, getattr(getattr(engine, service), name)(*args, **named))

    return cast(Callable[Concatenate[Any, P], T], call)
