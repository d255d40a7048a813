"""Functions that a context knows by name, and two of them: what a stream comes to, and what is found."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from conspectus.errors import InvalidInput, NotFound, ProviderError
from conspectus.facades.video.filters import stream_name
from conspectus.facades.video.store import EngineContextStore
from conspectus.model.streams import CaptionRange, SummaryRequest

NO_CAPTIONS = "No captions available for summarization."


class Executable(Protocol):
    """A function in the form of an object."""

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        """Do it, or give an awaitable of it."""
        ...


Function = Callable[..., Any] | Executable


class Functions:
    """Functions by name."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def register_function(self, name: str, function: Function) -> None:
        """Know a callable, or an object with `execute`, by a name, in place of what had it."""
        self._functions[name] = function

    def get_function(self, name: str) -> Function | None:
        """What has that name, None if nothing has."""
        return self._functions.get(name)

    def list_functions(self) -> list[str]:
        """All names, in the order of their registration."""
        return list(self._functions)

    async def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call it; a result that can be awaited is. Raises ValueError for a name that is not known."""
        function: Any = self._functions.get(name)
        if function is None:
            raise ValueError(f"Function {name!r} not found")
        chosen = getattr(function, "execute", function)
        answer = chosen(*args, **kwargs)
        return await answer if inspect.isawaitable(answer) else answer


class SummarizationFunction:
    """`call("summarize", stream_id=...)`: batches of captions summarised, then these together.

    It is the summary of the engine behind the store: see SummaryRequest for what `request` may say.
    """

    def __init__(self, store: EngineContextStore, request: SummaryRequest | None = None) -> None:
        if not isinstance(store, EngineContextStore):
            raise InvalidInput("store", f"is a {type(store).__name__}; only an engine's store has summaries")
        self._store = store
        self._request = request or SummaryRequest(stream="")

    async def execute(
        self, stream_id: str, *, start_time: str | float | None = None, end_time: str | float | None = None
    ) -> dict[str, Any]:
        """The summary as a dict: success, outcome, summary, batch_count, calls, and the failures by batch.

        It is a success where all captions are in it. A stream without any has a message in its place, a model
        that fails its error.
        """
        within = CaptionRange(start=start_time, end=end_time)
        asked = replace(self._request, stream=stream_name(stream_id), range=within)
        try:
            made = await self._store.summarise(asked)
        except NotFound:
            return _nothing("empty", NO_CAPTIONS)
        except ProviderError as fault:
            return _nothing("failed", str(fault))
        if made.outcome == "empty":
            return _nothing("empty", NO_CAPTIONS)
        return {
            "success": made.outcome == "complete",
            "outcome": made.outcome,
            "summary": made.text,
            "batch_count": len(made.batches),
            "calls": made.calls,
            "failures": {each.number: each.error for each in made.failures},
        }


def _nothing(outcome: str, words: str) -> dict[str, Any]:
    return {
        "success": False,
        "outcome": outcome,
        "summary": words,
        "batch_count": 0,
        "calls": 0,
        "failures": {},
    }
