"""Build a context window from hits: pack, render, cite, explain, and divide the budget into parts."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import tzinfo
from functools import cache, partial
from typing import Any, TypeVar, cast

from conspectus.deferred import dataclass
from conspectus.model.query import Budget, WindowForm, WindowFormOptions
from conspectus.model.results import (
    ContextWindow,
    Hit,
    Retrieval,
    TraceEntry,
)
from conspectus.text.clean import clean
from conspectus.window.checkpoints import Checkpoint, proceed
from conspectus.window.cost_estimate import Estimator
from conspectus.window.counting import RenderingCounter, count_in_parts
from conspectus.window.fitting import BudgetSearch, FittingTime
from conspectus.window.focus import Focus
from conspectus.window.packed_window import Beginning, Packed, WindowResult
from conspectus.window.packer import Packing
from conspectus.window.parts import parts_of
from conspectus.window.render import Renderer
from conspectus.window.stable import Previous, pack_after
from conspectus.window.threads import Threads
from conspectus.window.trace import citations, rank_key, trace

T = TypeVar("T")


def window_form(options: Mapping[str, object], rest: type[T]) -> tuple[WindowForm, T]:
    """Return the form that options of a window name, and the rest of them as options of its query."""
    names = WindowFormOptions.__annotations__
    form_options = {name: option for name, option in options.items() if name in names}
    query_options = {name: option for name, option in options.items() if name not in names}
    return WindowForm(**cast(dict[str, Any], form_options)), cast(T, query_options)


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """What a window shows besides its hits.

    `labels` are names of streams and channels by source id, shown for captions, events and messages without a
    title; `zones` are time zones of streams by source id (default: UTC). With `parts`, the window is counted
    once more for the parts of the whole budget. `fits_from` is the number of candidates, of those left out or
    cut, for which a budget of up to `max_fitting_tokens` is looked for that holds them, best first, until
    `is_over`; with `document`, only its candidates count. The window begins with those passages of the
    `previous` one that may be shown. `unpacked` are candidates that are not packed: the trace says so.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    zones: Mapping[str, tzinfo] = field(default_factory=dict)
    parts: bool = False
    fits_from: int = 0
    max_fitting_tokens: int = 1_000_000
    is_over: Callable[[], bool] = bool
    document: str | None = None
    previous: Previous | None = None
    unpacked: tuple[Hit, ...] = ()


def build_window(
    retrieval: Retrieval,
    budget: Budget,
    renderer: Renderer,
    count: Callable[[str], int],
    options: WindowOptions | None = None,
    checkpoint: Checkpoint = proceed,
) -> ContextWindow:
    """Build a context window: pack, arrange, render, cite and trace. Deterministic, unless time ends it.

    Args:
        retrieval: the hits, ranked by score; ties by the order of storing and position. Marks state how many
            messages of known threads are omitted.
        budget: the window may use the tokens left after `system`, `query` and `reserved_tokens`.
        renderer: from `renderer_by_name`.
        count: counts tokens with `budget.tokenizer`.
        checkpoint: is called every few milliseconds, and raises an error to end the work.
    """
    options = options or WindowOptions()
    time = FittingTime(checkpoint, options.is_over)
    count = count_in_parts(count, budget.tokenizer, time)
    beside = budget.reserved_tokens
    beside += sum(count(clean(text)) for text in (budget.system, budget.query) if text)
    allowed = max(budget.max_tokens - beside, 0)
    form = renderer.within(allowed)
    hits = sorted(retrieval.hits, key=rank_key)
    unpacked_hits = sorted(options.unpacked, key=rank_key)

    @cache
    def prepare_packing(form: Renderer) -> Packing:
        return _prepare_packing(retrieval, RenderingCounter(form, count, budget.tokenizer), options, time)

    @cache
    def pack(form: Renderer, *, all_candidates: bool) -> Callable[[int], Packed]:
        packed_hits = [*hits, *unpacked_hits] if all_candidates else hits
        return prepare_packing(form).pack(packed_hits, Beginning())

    def pack_candidates(tokens: int) -> Packed:
        return pack(renderer.within(tokens), all_candidates=bool(unpacked_hits))(tokens)

    if options.previous is None:
        window_result = WindowResult(pack(form, all_candidates=False)(allowed), hits)
    else:
        window_result = pack_after(options.previous, hits, prepare_packing(form), allowed)
    window = _window(retrieval, budget, replace(window_result, unpacked_hits=unpacked_hits), allowed)
    if options.parts:
        window = replace(window, parts=parts_of(window_result.packed, budget, form, count))
    if options.fits_from:
        time.is_fitting = True
        search = BudgetSearch(pack_candidates, allowed, options.max_fitting_tokens - beside)
        window = replace(window, trace=_with_budgets(window, search, beside, options))
    return window


def _prepare_packing(
    retrieval: Retrieval, exact: RenderingCounter, options: WindowOptions, checkpoint: Checkpoint
) -> Packing:
    """How the hits are packed."""
    threads = Threads(retrieval.threads, options.labels, options.zones)
    estimator = partial(
        Estimator,
        renderer=exact.renderer,
        exact=exact,
        threads=threads,
        focus=Focus(retrieval.terms, retrieval.nearest),
    )
    return Packing(exact.renderer, exact, estimator, threads, checkpoint)


def _with_budgets(
    window: ContextWindow, search: BudgetSearch, beside: int, options: WindowOptions
) -> tuple[TraceEntry, ...]:
    """The trace with budgets that hold the first of the candidates that were left out or cut."""
    missing = [
        entry.rank
        for entry in window.trace
        if entry.status in {"over_budget", "truncated"} and options.document in {None, entry.document}
    ]
    budgets = search.budgets(rank - 1 for rank in missing[: options.fits_from])

    def with_budget(entry: TraceEntry) -> TraceEntry:
        budget = budgets.get(entry.rank - 1)
        if budget is None:
            return entry
        tokens, above = (None if part is None else part + beside for part in (budget.tokens, budget.above))
        return replace(entry, fits_from=tokens, fits_above=above)

    return tuple(map(with_budget, window.trace))


def _window(retrieval: Retrieval, budget: Budget, window_result: WindowResult, allowed: int) -> ContextWindow:
    packed = window_result.packed
    return ContextWindow(
        outcome=retrieval.outcome if retrieval.hits else "no_match",
        text=packed.rendered.text,
        tokens=packed.tokens,
        max_tokens=allowed,
        tokenizer=budget.tokenizer,
        citations=citations(packed.layout),
        trace=trace(window_result, retrieval),
        messages=packed.rendered.messages,
        notices=retrieval.notices,
        timings=retrieval.timings,
        confidence=retrieval.confidence,
        signals=retrieval.signals,
        state=packed.state,
        cache_plan=window_result.plan,
    )
