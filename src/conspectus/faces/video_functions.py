"""Functions that a context knows by name, and two of them: what a stream comes to, and what is found."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from conspectus.faces.video_store import EngineContextStore
from conspectus.model.video import CaptionRange, SummaryRequest

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
        self._store = store
        self._request = request or SummaryRequest(stream="")

    async def execute(
        self, stream_id: str, *, start_time: str | float | None = None, end_time: str | float | None = None
    ) -> dict[str, Any]:
        """The summary as a dict: success, summary, batch_count, by, and the failures by batch.

        Raises NotFound for an unknown stream, and the error of the model where nothing could be summarised.
        """
        within = CaptionRange(start=start_time, end=end_time)
        made = await self._store.summarise(replace(self._request, stream=stream_id, range=within))
        return {
            "success": made.outcome != "partial",
            "summary": made.text if made.outcome != "empty" else NO_CAPTIONS,
            "batch_count": len(made.batches),
            "by": made.by,
            "failures": {each.number: each.error for each in made.failures},
        }
