"""The base class of blocking services."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from conspectus.bridge.owned_engine import OwnedEngine
from conspectus.sync.other_names import OtherNames

S = TypeVar("S")
T = TypeVar("T")


class BlockingService(OtherNames, Generic[S]):
    """The blocking version of a service of an engine. The engine stays open while the service is used."""

    def __init__(self, service: S, owner: OwnedEngine[Any]) -> None:
        self._inner = service
        self._owner = owner

    def _wait(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._owner.loop.run(call())

    def _iterate(self, begin: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
        return self._owner.loop.iterate(begin)
