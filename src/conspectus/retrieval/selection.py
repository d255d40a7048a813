"""Select the hits of a search from its ranked candidates."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.model.results import Hit, Retrieval
from conspectus.retrieval.confidence import READ, Passage, probability, signals
from conspectus.retrieval.plan import QueryPlan
from conspectus.retrieval.ranking import Ranked, SearchContext
from conspectus.retrieval.ranking_context import kept_by_thread

KEPT_BY_THREAD = "kept_by_thread"
"""A part of 0 that marks a hit below the minimum similarity that its thread keeps."""


def select_hits(
    query: Query,
    plan: QueryPlan,
    ranked: Ranked,
    *,
    context: SearchContext,
    also: Sequence[ChunkId],
    timings: dict[str, float],
) -> Retrieval:
    """Return the best hits above the minimum similarity, and the hits below it."""
    places = _in_order(ranked)
    if plan.min_similarity is None:
        ids = ranked.candidates.ids.tolist()
        places = places[: query.limit] + [each for each in places[query.limit :] if ids[each] in also]
    hits = _hits(ranked, places)
    standing = context.standing
    hits = _with_thread_marks(
        hits, plan.min_similarity, keeps_threads=standing is not None and standing.profile.keeps_threads
    )
    above = [hit for hit in hits if KEPT_BY_THREAD in hit.parts or not _below(hit, plan.min_similarity)]
    best = above[: query.limit] + [hit for hit in above[query.limit :] if hit.chunk.id in also]
    read = [Passage(hit.document.title, hit.chunk.text) for hit in best[:READ]]
    rows = chain([ranked.rows[hit.chunk.id] for hit in best], ranked.rows.values())
    seen = (f"{row.document.title} {row.chunk.text}" for row in rows)
    known = signals(query.query, ranked.candidates, read, seen=seen) if best else {}
    return Retrieval(
        outcome="found" if best else "no_match",
        hits=tuple(best),
        below_min_similarity=tuple(
            hit for hit in hits if KEPT_BY_THREAD not in hit.parts and _below(hit, plan.min_similarity)
        ),
        plan={**plan.described(), "keyword_weight": f"{ranked.words_weight:.2f}", **ranked.plan},
        notices=(*plan.notices, *ranked.notices),
        timings=timings,
        confidence=probability(known) if best else 0.0,
        signals=known,
    )


def _in_order(ranked: Ranked) -> list[int]:
    """Return the positions of the candidates, best first. Only returned candidates become hits."""
    ids = ranked.candidates.ids.tolist()
    columns = [values.tolist() for values in ranked.parts.values()]
    scores = [sum(parts) for parts in zip(*columns, strict=True)]
    return sorted(range(len(ids)), key=lambda place: (-scores[place], ids[place]))


def _with_thread_marks(hits: list[Hit], floor: float | None, *, keeps_threads: bool) -> list[Hit]:
    """Return the hits, with a mark on hits that only their thread keeps."""
    if floor is None or not keeps_threads:
        return hits
    above = [not _below(hit, floor) for hit in hits]
    kept = kept_by_thread([hit.document for hit in hits], above)
    return [
        replace(hit, parts={**hit.parts, KEPT_BY_THREAD: 0.0}) if is_kept else hit
        for hit, is_kept in zip(hits, kept, strict=True)
    ]


def _hits(ranked: Ranked, places: Sequence[int]) -> list[Hit]:
    """Return the hits for these positions of the candidates."""
    union, names = ranked.candidates, list(ranked.parts)
    ids, words, cosine, *columns = (
        values[places].tolist() for values in (union.ids, union.words, union.cosine, *ranked.parts.values())
    )
    rows = [ranked.rows[each] for each in ids]
    return [
        Hit(
            chunk=row.chunk,
            document=row.document,
            score=sum(parts),
            parts=dict(zip(names, parts, strict=True)),
            bm25=by_words or None,
            similarity=None if math.isnan(by_vector) else by_vector,
            through=ranked.through.get(each, ()),
        )
        for row, each, by_words, by_vector, *parts in zip(rows, ids, words, cosine, *columns, strict=True)
    ]


def _below(hit: Hit, floor: float | None) -> bool:
    """Whether a hit is below the minimum similarity. Hits without a vector are never below."""
    return floor is not None and hit.similarity is not None and hit.similarity < floor


def sure_enough(query: Query, found: Retrieval) -> Retrieval:
    """Return the hits if their confidence reaches the minimum; else none, with a notice of both."""
    if not query.min_confidence:
        return found
    plan = {**found.plan, "min_confidence": f"{query.min_confidence:.2f}"}
    if not found.hits or found.confidence >= query.min_confidence:
        return replace(found, plan=plan)
    notice = (
        f"the stored texts probably do not answer the query: the confidence {found.confidence:.2f}"
        f" is below the minimum {query.min_confidence:.2f}"
    )
    notices = (*found.notices, notice)
    return replace(
        found, outcome="no_match", hits=(), below_min_confidence=found.hits, plan=plan, notices=notices
    )


def with_highest(query: Query, found: Retrieval) -> Retrieval:
    """Add a notice of the highest similarity if all hits are below the minimum."""
    known = [hit.similarity for hit in found.below_min_similarity if hit.similarity is not None]
    if found.hits or not known:
        return found
    lowest = found.plan.get("min_similarity", query.min_similarity)
    notice = f"everything is below the minimum similarity {lowest}; the highest is {max(known):.2f}"
    return replace(found, notices=(*found.notices, notice))
