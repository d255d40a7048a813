"""Makes context windows of hits, in a thread if that takes long, and checks their budgets."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext
from conspectus.engine.long_work import Work, WorkKind
from conspectus.errors import InvalidInput
from conspectus.model.ids import CollectionId, SourceId, UserId
from conspectus.model.query import Budget
from conspectus.model.results import ContextWindow, Hit, Retrieval
from conspectus.settings import Settings
from conspectus.window.build import WindowOptions, build_window
from conspectus.window.counting import CHUNKS_COUNTED_WITH
from conspectus.window.render import renderer_by_name

TOKENS_PER_HIT = 40
"""Tokens of a window per initially retrieved hit; more hits are retrieved if these do not fill it."""
FITTING_SECONDS = 1.8
"""Seconds after which an explanation computes no further budgets for candidates left out."""
LONG_SECONDS = 0.005
"""A window is made in a thread if it takes at least this estimated time."""
HIT_SECONDS = 20e-6
SHOWN_TOKEN_SECONDS = 0.5e-6
COUNTED_TOKEN_SECONDS = 0.4e-6
"""Estimated seconds of a window for each hit, each token shown, and each token counted."""
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """How a window is filled: with a hit per `tokens_per_hit`, and, unless `once`, more until it is full."""

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


def estimate_packing_seconds(hits: Sequence[Hit], budget: Budget) -> float:
    """Estimate how long it takes to pack hits."""
    hit_tokens = sum(hit.chunk.tokens for hit in hits)
    counted_tokens = (len(budget.system) + len(budget.query)) // CHARACTERS_PER_TOKEN
    if budget.tokenizer != CHUNKS_COUNTED_WITH:
        counted_tokens += hit_tokens
    window_tokens = min(hit_tokens, budget.max_tokens)
    return (
        len(hits) * HIT_SECONDS + window_tokens * SHOWN_TOKEN_SECONDS + counted_tokens * COUNTED_TOKEN_SECONDS
    )


class WindowMaker:
    """Makes windows for a user, in a thread unless that takes a few milliseconds only."""

    def __init__(self, context: EngineContext, user: UserId) -> None:
        self._core = context.core
        self._authorized = context.authorized
        self._user = user

    async def make(
        self, retrieval: Retrieval, budget: Budget, format: str, options: WindowOptions
    ) -> ContextWindow:
        """Build a window from hits."""
        renderer, count = renderer_by_name(format), self._core.parts.counter(budget.tokenizer)
        if not options.labels:
            options = replace(options, labels=await self._name_channels(retrieval))
        previous_hits = options.previous.hits.values() if options.previous else ()
        seconds = estimate_packing_seconds([*retrieval.hits, *previous_hits], budget)
        if seconds < LONG_SECONDS and not options.fits_from:
            return build_window(retrieval, budget, renderer, count, options)

        def build(work: Work) -> ContextWindow:
            timed = replace(options, is_over=lambda: work.is_over(FITTING_SECONDS))
            return build_window(retrieval, budget, renderer, count, timed, work)

        kind: WorkKind = "explanation" if options.fits_from else "window"
        return await self._core.long_work.run(build, kind=kind, user=self._user)

    async def _name_channels(self, retrieval: Retrieval) -> Mapping[str, str]:
        """Return the names of the channels of messages by source id, if there are several."""
        messages = [hit.document for hit in retrieval.hits if hit.document.kind == "message"]
        collections: dict[SourceId, CollectionId] = {
            message.source: message.collection for message in messages
        }
        if len(collections) < 2:
            return {}
        names: dict[str, str] = {}
        for collection in set(collections.values()):
            ids = [source for source, owner in collections.items() if owner == collection]
            access = await self._authorized.find(collection)
            if access is not None:
                sources = await self._authorized.sources_by_name(access, ids)
                names |= {source.id: source.name for source in sources}
        return names
