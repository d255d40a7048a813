"""The base class of blocking services."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from conspectus.bridge.event_loop_thread import EventLoopThread

S = TypeVar("S")
T = TypeVar("T")


class BlockingService(Generic[S]):
    """The blocking version of a service of an engine."""

    def __init__(self, service: S, loop: EventLoopThread) -> None:
        self._inner = service
        self._loop = loop

    def _wait(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._loop.run(call())

    def _iterate(self, begin: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
        return self._loop.iterate(begin)
