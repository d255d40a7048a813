"""Citations and the trace of a context window: every candidate with its status and reason."""

from collections.abc import Iterator, Mapping, Sequence

from conspectus.model.results import (
    Citation,
    Hit,
    Retrieval,
    TraceEntry,
    TraceStatus,
)
from conspectus.text.counts import format_count
from conspectus.window.duplicates import Refusal
from conspectus.window.packed_window import Packed, WindowResult
from conspectus.window.passages import Layout

ARROW = " → "


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
            read_by=passage.document.read_by,
            box=passage.box,
            table_header=passage.table_header or None,
        )
        for group in layout
        for passage in group
    )


def trace(window_result: WindowResult, retrieval: Retrieval) -> tuple[TraceEntry, ...]:
    """Return the trace entries by rank, from 1. Candidates below a minimum come last."""
    packed, hits, unpacked_hits = window_result.packed, window_result.hits, window_result.unpacked_hits
    entries = [*_trace_packed(packed, hits), *_unsure_entries(retrieval)]
    entries += _unpacked_entries(unpacked_hits, len(hits))
    entries += _dissimilar_entries(retrieval, len(entries))
    return (*entries, *_trace_distrusted(retrieval, len(entries)))


def _trace_packed(packed: Packed, hits: Sequence[Hit]) -> Iterator[TraceEntry]:
    numbers = {chunk: p.number for group in packed.layout for p in group for chunk in p.chunks}
    plan = packed.plan
    for rank, hit in enumerate(hits):
        piece, cost = plan.pieces.get(rank), plan.costs.get(rank, 0)
        if piece is None:
            status, reason = _describe_refusal(plan.refused[rank], hits, numbers)
        elif piece.cut:
            share = f"{piece.stop - piece.start:,} of {format_count(len(hit.chunk.text), 'character')}"
            status, reason = "truncated", f"in [{numbers[hit.chunk.id]}], cut to the room left: {share}"
        else:
            status, reason = "included", f"in [{numbers[hit.chunk.id]}]"
        unmoved = ", kept from the previous window" if rank in plan.unmoved else ""
        path = _along(hit, numbers) + _through(hit) + _relations(hit)
        yield _entry(rank, hit, status, reason + unmoved + path, cost)


def _along(hit: Hit, numbers: Mapping[int, int]) -> str:
    """Return the hit that added this candidate, if no retriever found it."""
    if hit.along_with is None:
        return ""
    number = numbers.get(hit.along_with)
    if number is None:
        return ", along with a hit that is not shown"
    return f", along with the hit in [{number}]"


def _through(hit: Hit) -> str:
    """Return the graph entities that led to the candidate."""
    return f", found through {ARROW.join(hit.through)}" if hit.through else ""


def _relations(hit: Hit) -> str:
    """Return how the document of a candidate is related to others."""
    return "".join(f", {relation}" for relation in hit.relations)


def _describe_refusal(
    refusal: Refusal, hits: Sequence[Hit], numbers: dict[int, int]
) -> tuple[TraceStatus, str]:
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
    return "over_budget", _describe_missing_room(refusal)


def _describe_missing_room(refusal: Refusal) -> str:
    if refusal.without:
        return f"not shown without {refusal.without}, which supersedes it and does not fit"
    if not refusal.needed:
        return "not among the best hits, and what stands in the window is kept"
    if refusal.swapped:
        return "gave way to what fills the window better"
    if not refusal.needs:
        return "the budget leaves no room"
    return f"does not fit: needs at least {format_count(refusal.needs, 'token')}, {refusal.left} left"


def _unpacked_entries(hits: Sequence[Hit], first: int) -> Iterator[TraceEntry]:
    reason = f"not among the {format_count(first, 'hit')} that the window takes"
    for rank, hit in enumerate(hits, first):
        yield _entry(rank, hit, "over_budget", reason + _through(hit), 0)


def _unsure_entries(retrieval: Retrieval) -> Iterator[TraceEntry]:
    minimum = retrieval.plan.get("min_confidence")
    reason = f"the confidence {retrieval.confidence:.2f} of all candidates is below the minimum {minimum}"
    for rank, hit in enumerate(sorted(retrieval.below_min_confidence, key=rank_key)):
        yield _entry(rank, hit, "below_min_confidence", reason + _through(hit) + _relations(hit), 0)


def _dissimilar_entries(retrieval: Retrieval, first: int) -> Iterator[TraceEntry]:
    minimum = retrieval.plan.get("min_similarity")
    bound = f"the minimum similarity {minimum}" if minimum else "the minimum similarity"
    for rank, hit in enumerate(sorted(retrieval.below_min_similarity, key=rank_key), first):
        subject = "has no similarity" if hit.similarity is None else f"similarity {hit.similarity:.2f} is"
        yield _entry(
            rank, hit, "below_min_similarity", f"{subject} below {bound}{_through(hit)}{_relations(hit)}", 0
        )


def _trace_distrusted(retrieval: Retrieval, first: int) -> Iterator[TraceEntry]:
    for rank, hit in enumerate(sorted(retrieval.below_min_trust, key=rank_key), first):
        reason = f"is {hit.document.trust}: below the minimum trust {retrieval.plan.get('min_trust')}"
        yield _entry(rank, hit, "below_min_trust", reason + _through(hit) + _relations(hit), 0)


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


def rank_key(hit: Hit) -> tuple[float, int, str, int, int]:
    return (-hit.score, hit.document.number, hit.document.id, hit.chunk.start, hit.chunk.id)
