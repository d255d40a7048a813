"""Run coroutines of an engine from blocking code."""

import asyncio
import functools
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing
from queue import SimpleQueue
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from conspectus.errors import ForkedEngine

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Bridge:
    """Runs the event loop of an engine in a thread, for blocking callers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._process = os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's event loop and wait for it. An interrupt cancels it."""
        if os.getpid() != self._process:
            work.close()
            raise ForkedEngine
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def each(self, begin: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
        """Yield the items of an asynchronous generator."""
        if os.getpid() != self._process:
            raise ForkedEngine
        results: SimpleQueue[tuple[T] | None] = SimpleQueue()

        async def tell() -> None:
            try:
                async with aclosing(begin()) as events:
                    async for event in events:
                        results.put((event,))
            finally:
                results.put(None)

        future = asyncio.run_coroutine_threadsafe(tell(), self._loop)
        try:
            while (event := results.get()) is not None:
                yield event[0]
            future.result()
        finally:
            future.cancel()


class BlockingService(Generic[S]):
    """Base class of blocking services."""

    def __init__(self, service: S, bridge: Bridge) -> None:
        self._service = service
        self._bridge = bridge


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return the blocking version of a service's method."""

    @functools.wraps(method)
    def call(self: BlockingService[Any], /, *args: P.args, **named: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self._service, method.__name__)(*args, **named)
        return self._bridge.run(work)

    return call


def generating(
    method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Any, P], Generator[T, None, None]]:
    """Return the blocking version of an asynchronous generator. Closing the iterator closes the generator."""

    @functools.wraps(method)
    def call(self: BlockingService[Any], /, *args: P.args, **named: P.kwargs) -> Generator[T, None, None]:
        return self._bridge.each(lambda: getattr(self._service, method.__name__)(*args, **named))

    return call
