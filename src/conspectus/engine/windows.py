"""Windows of hits: their budget, and the thread in which a long one is made."""

from collections.abc import Sequence
from dataclasses import field, replace

from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext
from conspectus.engine.long_work import Work, WorkKind
from conspectus.errors import InvalidInput
from conspectus.model.ids import UserId
from conspectus.model.query import Budget
from conspectus.model.results import ContextWindow, Hit, Retrieval
from conspectus.settings import Settings
from conspectus.window.build import WindowOptions, build_window
from conspectus.window.counting import CHUNKS_COUNTED_WITH
from conspectus.window.render import renderer_by_name

TOKENS_PER_HIT = 40
"""Tokens of a window per initially retrieved hit; more hits are retrieved if these do not fill it."""
FITTING_SECONDS = 1.8
"""Time of an explanation, after which no more budgets are looked for."""
LONG_SECONDS = 0.005
"""Estimated time of a window from which on it is made beside the event loop."""
HIT_SECONDS = 20e-6
SHOWN_TOKEN_SECONDS = 0.5e-6
COUNTED_TOKEN_SECONDS = 0.4e-6
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class WindowBuilder:
    """The number of hits for a window: one per `tokens_per_hit`, and more until it is full unless `once`."""

    once: bool = False
    tokens_per_hit: int = TOKENS_PER_HIT
    options: WindowOptions = field(default_factory=WindowOptions)


def window_budget(max_tokens: int | Budget, settings: Settings) -> Budget:
    """Return the budget of a window. Raises InvalidInput for more tokens than the settings allow."""
    budget = Budget(max_tokens) if isinstance(max_tokens, int) else max_tokens
    maximum = settings.max_window_tokens
    if budget.max_tokens > maximum:
        raise InvalidInput(
            "max_tokens", f"is {budget.max_tokens}; the maximum is {maximum}, the setting max_window_tokens"
        )
    return budget


def packing_seconds(hits: Sequence[Hit], budget: Budget) -> float:
    """Return about how long it takes to pack hits."""
    tokens = sum(hit.chunk.tokens for hit in hits)
    beside = (len(budget.system) + len(budget.query)) // CHARACTERS_PER_TOKEN
    counted = beside if budget.tokenizer == CHUNKS_COUNTED_WITH else beside + tokens
    window_tokens = min(tokens, budget.max_tokens)
    return len(hits) * HIT_SECONDS + window_tokens * SHOWN_TOKEN_SECONDS + counted * COUNTED_TOKEN_SECONDS


class WindowMaker:
    """Makes windows for a user, beside the event loop unless that takes a few milliseconds only."""

    def __init__(self, context: EngineContext, user: UserId) -> None:
        self._core = context.core
        self._user = user

    async def make(
        self, retrieval: Retrieval, budget: Budget, format: str, options: WindowOptions
    ) -> ContextWindow:
        """Build a window from hits."""
        renderer, count = renderer_by_name(format), self._core.parts.counter(budget.tokenizer)
        earlier = options.previous.hits.values() if options.previous else ()
        is_short = packing_seconds([*retrieval.hits, *earlier], budget) < LONG_SECONDS
        if is_short and not options.fits_from:
            return build_window(retrieval, budget, renderer, count, options)

        def built(work: Work) -> ContextWindow:
            timed = replace(options, is_over=lambda: work.is_over(FITTING_SECONDS))
            return build_window(retrieval, budget, renderer, count, timed, work)

        kind: WorkKind = "explanation" if options.fits_from else "window"
        return await self._core.long_work.run(built, kind=kind, user=self._user)
