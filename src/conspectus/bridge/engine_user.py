"""Objects that use an engine, with blocking and asynchronous methods from one declaration."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from conspectus.bridge.engine_access import EngineAccess
from conspectus.engine.any_engine import AnyEngine

P = ParamSpec("P")
T = TypeVar("T")


class HasEngineAccess(Protocol):
    """An object that uses an engine."""

    _access: EngineAccess


class EngineUser:
    """An object that uses an engine, and can be closed."""

    _access: EngineAccess

    def close(self) -> None:
        """Close the store that was opened at a path. An engine that was passed in stays open."""
        self._access.close()


def on_engine(
    work: Callable[Concatenate[Any, AnyEngine, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return an asynchronous method, which gets the engine of its object as the first argument."""

    @functools.wraps(work)
    async def run(self: HasEngineAccess, /, *args: P.args, **named: P.kwargs) -> T:
        return await self._access.run(lambda engine: work(self, engine, *args, **named))

    _hide_engine_parameter(run, work)
    return run


def blocking_and_async(
    work: Callable[Concatenate[Any, AnyEngine, P], Coroutine[Any, Any, T]],
) -> tuple[Callable[Concatenate[Any, P], T], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """Return a blocking and an asynchronous method, which get the engine of their object."""

    @functools.wraps(work)
    def wait(self: HasEngineAccess, /, *args: P.args, **named: P.kwargs) -> T:
        return self._access.wait(lambda engine: work(self, engine, *args, **named))

    _hide_engine_parameter(wait, work)
    return wait, on_engine(work)


def _hide_engine_parameter(method: Callable[..., Any], work: Callable[..., Any]) -> None:
    signature = inspect.signature(work)
    self_parameter, _engine, *others = signature.parameters.values()
    vars(method)["__signature__"] = signature.replace(parameters=[self_parameter, *others])
