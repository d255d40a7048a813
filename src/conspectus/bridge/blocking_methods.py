"""Blocking methods made from asynchronous ones, with their signatures."""

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class BlockingVersion(Protocol):
    """A blocking version of an object with asynchronous methods."""

    _inner: Any

    def _wait(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Call an asynchronous method of the object on the engine's event loop, and wait for it."""


class IteratingVersion(BlockingVersion, Protocol):
    """A blocking version of an object with asynchronous generators."""

    def _iterate(self, begin: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
        """Yield the items of an asynchronous generator of the object."""


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return the blocking version of a method."""

    @functools.wraps(method)
    def call(self: BlockingVersion, /, *args: P.args, **named: P.kwargs) -> T:
        inner_method: Callable[P, Coroutine[Any, Any, T]] = getattr(self._inner, method.__name__)
        return self._wait(lambda: inner_method(*args, **named))

    return call


def generating(
    method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Any, P], Generator[T, None, None]]:
    """Return the blocking version of an asynchronous generator. Closing the iterator closes the generator."""

    @functools.wraps(method)
    def call(self: IteratingVersion, /, *args: P.args, **named: P.kwargs) -> Generator[T, None, None]:
        return self._iterate(lambda: getattr(self._inner, method.__name__)(*args, **named))

    return call
