"""Build a context window from hits: pack, render, cite, explain, and divide the budget into parts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import tzinfo
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeVar, cast

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.query import Budget, WindowForm, WindowFormOptions
from conspectus.model.results import (
    Citation,
    ContextWindow,
    Hit,
    PartKind,
    Retrieval,
    TraceEntry,
    TraceStatus,
    WindowPart,
)
from conspectus.text.clean import clean
from conspectus.window.checkpoints import Checkpoint, proceed
from conspectus.window.cost_estimate import Estimator, Focus
from conspectus.window.counting import BORDER, DIVISIBLE, RenderingCounter, counting_in_parts
from conspectus.window.duplicates import Refusal
from conspectus.window.fitting import BudgetSearch, FittingTime
from conspectus.window.packer import Beginning, Made, Packed, Packing
from conspectus.window.passages import Layout, Threads, WindowPassage
from conspectus.window.render import Renderer
from conspectus.window.stable import Previous, after

T = TypeVar("T")


def window_form(options: Mapping[str, object], rest: type[T]) -> tuple[WindowForm, T]:
    """Return the form that options of a window name, and the rest of them as options of its query."""
    own = WindowFormOptions.__annotations__
    form = {name: value for name, value in options.items() if name in own}
    query = {name: value for name, value in options.items() if name not in own}
    return WindowForm(**cast(dict[str, Any], form)), cast(T, query)


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """What a window shows besides its hits.

    `labels` are names of streams by source id, shown for captions and events without a title; `zones` are
    time zones of streams by source id (default: UTC). With `parts`, the window is counted once more for the
    parts of the whole budget. `fits_from` is the number of candidates, of those left out or cut, for which a
    budget of up to `max_fitting_tokens` is looked for that holds them, best first, until `is_over`; with
    `document`, only its candidates count. The window begins with those passages of the `previous` one that
    may be shown.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    zones: Mapping[str, tzinfo] = field(default_factory=dict)
    parts: bool = False
    fits_from: int = 0
    max_fitting_tokens: int = 1_000_000
    is_over: Callable[[], bool] = bool
    document: str | None = None
    previous: Previous | None = None


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

    Raises:
        InvalidInput: a number of the budget is negative.
    """
    options = options or WindowOptions()
    time = FittingTime(checkpoint, options.is_over)
    count = counting_in_parts(count, budget.tokenizer, time)
    allowed = _allowed(budget, count)
    form = renderer.within(allowed)
    hits = sorted(retrieval.hits, key=_rank)

    @cache
    def packing(form: Renderer) -> Packing:
        return _packing(retrieval, RenderingCounter(form, count, budget.tokenizer), options, time)

    @cache
    def pack(form: Renderer) -> Callable[[int], Packed]:
        return packing(form).pack(hits, Beginning())

    def packed_in(tokens: int) -> Packed:
        return pack(renderer.within(tokens))(tokens)

    if options.previous is None:
        made = Made(packed_in(allowed), hits)
    else:
        made = after(options.previous, hits, packing(form), allowed)
    window = _window(retrieval, budget, made, allowed)
    if options.parts:
        window = replace(window, parts=parts_of(made.packed, budget, form, count))
    if options.fits_from:
        time.is_fitting = True
        beside = _surrounding_tokens(budget, count)
        search = BudgetSearch(packed_in, allowed, options.max_fitting_tokens - beside)
        window = replace(window, trace=_with_budgets(window, search, beside, options))
    return window


def _packing(
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


def _window(retrieval: Retrieval, budget: Budget, made: Made, allowed: int) -> ContextWindow:
    packed = made.packed
    return ContextWindow(
        outcome=retrieval.outcome if retrieval.hits else "no_match",
        text=packed.rendered.text,
        tokens=packed.tokens,
        max_tokens=allowed,
        tokenizer=budget.tokenizer,
        citations=citations(packed.layout),
        trace=trace(packed, made.hits, retrieval),
        messages=packed.rendered.messages,
        notices=retrieval.notices,
        timings=retrieval.timings,
        confidence=retrieval.confidence,
        signals=retrieval.signals,
        state=packed.state,
        cache_plan=made.plan,
    )


def _allowed(budget: Budget, count: Callable[[str], int]) -> int:
    for name, tokens in (("max_tokens", budget.max_tokens), ("reserved_tokens", budget.reserved_tokens)):
        if tokens < 0:
            raise InvalidInput(name, f"is {tokens}; a number of tokens cannot be negative")
    return max(budget.max_tokens - _surrounding_tokens(budget, count), 0)


def _surrounding_tokens(budget: Budget, count: Callable[[str], int]) -> int:
    """The tokens that a budget must cover besides the window."""
    texts = sum(count(clean(text)) for text in (budget.system, budget.query) if text)
    return texts + budget.reserved_tokens


def _rank(hit: Hit) -> tuple[float, int, str, int, int]:
    return (-hit.score, hit.document.number, hit.document.id, hit.chunk.start, hit.chunk.id)


ARROW = " → "
MAX_COUNTED_AGAIN = 100_000


def citations(layout: Layout) -> tuple[Citation, ...]:
    """Return the citation of each numbered passage."""
    return tuple(
        Citation(
            number=passage.number,
            document=passage.document.id,
            source=passage.document.source,
            key=passage.document.key,
            title=passage.document.title,
            start=passage.start,
            end=passage.end,
            chunks=passage.chunks,
            page=passage.page,
            heading=passage.heading,
            location=passage.document.location,
            trust=passage.document.trust,
        )
        for group in layout
        for passage in group
    )


def trace(packed: Packed, hits: Sequence[Hit], retrieval: Retrieval) -> tuple[TraceEntry, ...]:
    """Return the trace entries by rank, from 1. Candidates below a minimum come last."""
    entries = [*_packed_entries(packed, hits), *_unsure_entries(retrieval)]
    entries += _dissimilar_entries(retrieval, len(entries))
    return (*entries, *_distrusted_entries(retrieval, len(entries)))


def _packed_entries(packed: Packed, hits: Sequence[Hit]) -> Iterator[TraceEntry]:
    numbers = {chunk: p.number for group in packed.layout for p in group for chunk in p.chunks}
    plan = packed.plan
    for rank, hit in enumerate(hits):
        piece, cost = plan.pieces.get(rank), plan.costs.get(rank, 0)
        if piece is None:
            status, reason = _refused(plan.refused[rank], hits, numbers)
        elif piece.cut:
            share = f"{piece.stop - piece.start} of {len(hit.chunk.text)} characters"
            status, reason = "truncated", f"in [{numbers[hit.chunk.id]}], cut to the room left: {share}"
        else:
            status, reason = "included", f"in [{numbers[hit.chunk.id]}]"
        kept = ", kept from the previous window" if rank in plan.kept else ""
        yield _entry(rank, hit, status, reason + kept + _along(hit, numbers) + _through(hit), cost)


def _along(hit: Hit, numbers: Mapping[int, int]) -> str:
    """Return the hit that added this candidate, if no retriever found it."""
    if hit.along_with is None:
        return ""
    number = numbers.get(hit.along_with)
    return ", along with a hit that is not shown" if number is None else f", along with the hit in [{number}]"


def _through(hit: Hit) -> str:
    """Return the graph entities that led to the candidate."""
    return f", found through {ARROW.join(hit.through)}" if hit.through else ""


def _refused(refusal: Refusal, hits: Sequence[Hit], numbers: dict[int, int]) -> tuple[TraceStatus, str]:
    if refusal.blank:
        return "duplicate", "has no visible text"
    if refusal.same_as is not None:
        number = numbers.get(hits[refusal.same_as].chunk.id)
        if number is None:
            return "over_budget", "does not fit, like the better hit with the same text"
        return "duplicate", f"same text as [{number}]"
    if refusal.near is not None:
        number = numbers.get(hits[refusal.near].chunk.id)
        return "near_duplicate", f"nearly the same text as [{number}]: {refusal.share:.0%} of it"
    if not refusal.needed:
        return "over_budget", "not among the best hits, and what stands in the window is kept"
    if refusal.swapped:
        return "over_budget", "gave way to what fills the window better"
    if not refusal.needs:
        return "over_budget", "the budget leaves no room"
    return "over_budget", f"does not fit: needs at least {refusal.needs} tokens, {refusal.left} were left"


def _unsure_entries(retrieval: Retrieval) -> Iterator[TraceEntry]:
    least = retrieval.plan.get("min_confidence")
    reason = f"the confidence {retrieval.confidence:.2f} of all candidates is below the minimum {least}"
    for rank, hit in enumerate(sorted(retrieval.below_min_confidence, key=_rank)):
        yield _entry(rank, hit, "below_min_confidence", reason + _through(hit), 0)


def _dissimilar_entries(retrieval: Retrieval, first: int) -> Iterator[TraceEntry]:
    least = retrieval.plan.get("min_similarity")
    bound = f"the minimum similarity {least}" if least else "the minimum similarity"
    for rank, hit in enumerate(sorted(retrieval.below_min_similarity, key=_rank), first):
        known = "has no similarity" if hit.similarity is None else f"similarity {hit.similarity:.2f} is"
        yield _entry(rank, hit, "below_min_similarity", f"{known} below {bound}{_through(hit)}", 0)


def _distrusted_entries(retrieval: Retrieval, first: int) -> Iterator[TraceEntry]:
    for rank, hit in enumerate(sorted(retrieval.below_min_trust, key=_rank), first):
        reason = f"is {hit.document.trust}: below the minimum trust {retrieval.plan.get('min_trust')}"
        yield _entry(rank, hit, "below_min_trust", reason + _through(hit), 0)


def _entry(rank: int, hit: Hit, status: TraceStatus, reason: str, tokens: int) -> TraceEntry:
    return TraceEntry(
        rank=rank + 1,
        chunk=hit.chunk.id,
        document=hit.document.id,
        title=hit.document.title,
        score=hit.score,
        parts=hit.parts,
        status=status,
        reason=reason,
        tokens=tokens,
        source=hit.document.source,
        key=hit.document.key,
        heading=hit.chunk.heading,
        start=hit.chunk.start,
        end=hit.chunk.end,
        origin=hit.document.origin,
        trust=hit.document.trust,
    )


Piece = tuple[PartKind, int | None, int]
"""What a piece of the text is, the number of its passage, and where it ends."""


def parts_of(
    packed: Packed, budget: Budget, renderer: Renderer, count: Callable[[str], int]
) -> tuple[WindowPart, ...]:
    """The parts of a budget: what stands beside the window, the window in reading order, and what is left.

    The tokens add up to `budget.max_tokens`, or to what stands beside the window where that is more. A token
    that reaches over a border counts for the part that it begins in, as far as the counter can tell.
    """
    texts: dict[PartKind, str] = {"system": budget.system, "query": budget.query}
    beside = [WindowPart(kind, count(clean(text))) for kind, text in texts.items() if text]
    inside = list(_inside(packed, renderer, count, divisible=budget.tokenizer in DIVISIBLE))
    used = sum(each.tokens for each in (*beside, *inside)) + budget.reserved_tokens
    free = WindowPart("free", max(budget.max_tokens - used, 0))
    reserved = [WindowPart("reserved", budget.reserved_tokens)] if budget.reserved_tokens else []
    return (*beside, *inside, free, *reserved)


def _inside(
    packed: Packed, renderer: Renderer, count: Callable[[str], int], *, divisible: bool
) -> Iterator[WindowPart]:
    text = packed.rendered.text
    pieces = list(_pieces(packed.layout, renderer, len(text))) if text else []
    ends = [end for _, _, end in pieces]
    start, done = 0, 0
    for (kind, number, end), reached in zip(pieces, _reached(text, ends, count, divisible), strict=True):
        last = packed.tokens if end == len(text) else min(max(reached, done), packed.tokens)
        yield WindowPart(kind, last - done, number, start, end)
        start, done = end, last


def _reached(text: str, ends: list[int], count: Callable[[str], int], divisible: bool) -> Iterator[int]:
    """The tokens of the text up to each end; nothing before a border is counted twice.

    Without borders, nothing is counted again that is MAX_COUNTED_AGAIN characters before an end.
    """
    before, border = 0, 0
    for end in ends:
        reached = before + count(text[border:end])
        yield reached
        is_border = divisible and BORDER.match(text, end)
        if is_border or end - border > MAX_COUNTED_AGAIN:
            before, border = reached, end


def _begins(group: Sequence[WindowPassage], renderer: Renderer) -> Iterator[int]:
    """The characters of a rendered group before each passage, and of all; each depends on the one before."""
    length = len(renderer.group(group[:1]))
    yield from (0, length)
    for before, passage in pairwise(group):
        length += len(renderer.group([before, passage])) - len(renderer.group([before]))
        yield length


def _pieces(layout: Layout, renderer: Renderer, length: int) -> Iterator[Piece]:
    """Headers and texts of passages, and the frame around them, without empty ones."""
    cuts: list[Piece] = [("frame", None, 0)]
    at = len(renderer.before)
    for group in layout:
        cuts.append(("frame", None, at))
        begins = list(_begins(group, renderer))
        whole = renderer.group(group)
        for passage, (first, last) in zip(group, pairwise(begins), strict=True):
            shown = renderer.shown(passage)
            place = whole.rfind(shown, first, last)
            place, end = (last, last) if place < 0 else (place, place + len(shown))
            cuts += [("header", passage.number, at + place), ("passage", passage.number, at + end)]
            cuts.append(("frame", None, at + last))
        at += len(whole) + len(renderer.between)
    cuts.append(("frame", None, length))
    for (*_, start), (kind, number, end) in pairwise(cuts):
        if end > start:
            yield kind, number, end
