"""Functions by name, and the one that summarizes captions."""

import inspect
from collections.abc import Callable
from typing import Any, Protocol, Unpack

from conspectus.errors import InvalidInput, NotFound, ProviderError
from conspectus.facades.video.metadata import stream_name
from conspectus.facades.video.store import EngineContextStore
from conspectus.model.captions import CaptionRange
from conspectus.model.stream_summaries import SummaryRequestOptions

NO_CAPTIONS = "No captions available for summarization."


class Executable(Protocol):
    """A function as an object."""

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result or an awaitable of it."""


Function = Callable[..., Any] | Executable


class Functions:
    """A registry of functions by name."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def register_function(self, name: str, function: Function) -> None:
        """Register a callable, or an object with `execute`. It replaces a function of the same name."""
        self._functions[name] = function

    def get_function(self, name: str) -> Function | None:
        """Return the function of that name, or None."""
        return self._functions.get(name)

    def list_functions(self) -> list[str]:
        """Return all names in the order of registration."""
        return list(self._functions)

    async def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function and await its result if needed. Raises ValueError for an unknown name."""
        function: Any = self._functions.get(name)
        if function is None:
            raise ValueError(f"Function {name!r} not found")
        implementation = getattr(function, "execute", function)
        answer = implementation(*args, **kwargs)
        return await answer if inspect.isawaitable(answer) else answer


class SummarizationFunction:
    """`call("summarize", stream_id=...)`: summarizes batches of captions, then their summaries.

    It uses the summaries of the engine behind the store, with the options of `engine.summaries.summarize`.
    """

    def __init__(self, store: EngineContextStore, **options: Unpack[SummaryRequestOptions]) -> None:
        if not isinstance(store, EngineContextStore):
            raise InvalidInput("store", f"is a {type(store).__name__}; only an engine's store has summaries")
        self._store = store
        self._options: SummaryRequestOptions = options

    async def execute(
        self, stream_id: str, *, start_time: str | float | None = None, end_time: str | float | None = None
    ) -> dict[str, Any]:
        """Return the summary as a dict: success, outcome, summary, batch_count, calls, failures by batch.

        `success` means that all captions are summarized. An empty stream has `message` instead of a summary,
        a failing model `error`.
        """
        within = CaptionRange(start=start_time, end=end_time)
        options: SummaryRequestOptions = {**self._options, "range": within}
        try:
            summary = await self._store.summarise(stream_name(stream_id), **options)
        except NotFound:
            return _answer_nothing("empty", NO_CAPTIONS)
        except ProviderError as fault:
            return _answer_nothing("failed", str(fault))
        if summary.outcome == "empty":
            return _answer_nothing("empty", NO_CAPTIONS)
        return {
            "success": summary.outcome == "complete",
            "outcome": summary.outcome,
            "summary": summary.text,
            "batch_count": len(summary.batches),
            "calls": summary.calls,
            "failures": {failure.number: failure.error for failure in summary.failures},
        }


def _answer_nothing(outcome: str, words: str) -> dict[str, Any]:
    return {
        "success": False,
        "outcome": outcome,
        "summary": words,
        "batch_count": 0,
        "calls": 0,
        "failures": {},
    }
