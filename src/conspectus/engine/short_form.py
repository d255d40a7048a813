"""Methods of a service as methods of the engine itself."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def short(service: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The same method, of the service that the engine holds under that name."""
    name = method.__name__

    @functools.wraps(method)
    def call(engine: Any, *args: P.args, **named: P.kwargs) -> T:
        return cast(T, getattr(getattr(engine, service), name)(*args, **named))

    return cast(Callable[Concatenate[Any, P], T], call)
