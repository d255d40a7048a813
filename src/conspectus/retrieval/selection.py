"""Select the hits of a search from its ranked candidates."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.model.results import Hit, Retrieval
from conspectus.retrieval.confidence import (
    MAX_WEIGHED_HITS,
    Passage,
    author_of,
    confidence_of,
    confidence_signals,
    describe_confidence,
)
from conspectus.retrieval.plan import CONFIDENCE_ENTRY, QueryPlan
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.retrieval.ranking_context import RankingContext, mark_kept_by_thread

EVERYTHING_BELOW: Final = "everything is below the minimum similarity"
"""The start of the notice that a complete search found nothing similar enough."""
KEPT_BY_THREAD: Final = "kept_by_thread"
"""A part of 0 that marks a hit below the minimum similarity that its thread keeps."""


def select_hits(
    query: Query,
    plan: QueryPlan,
    ranked: RankedCandidates,
    *,
    ranking_context: RankingContext | None,
    requested: Sequence[ChunkId],
) -> Retrieval:
    """Return the best hits above the minimum similarity with the requested ones, and the hits below it.

    Messages of the thread that the query names are never below it.
    """
    positions = _positions_by_score(ranked)
    if plan.min_similarity is None:
        ids = ranked.ids.tolist()
        further = [position for position in positions[query.limit :] if ids[position] in requested]
        positions = positions[: query.limit] + further
    hits = _hits_at(ranked, positions)
    if plan.min_similarity is not None and ranking_context is not None:
        hits = _with_thread_marks(hits, plan.min_similarity, ranking_context)
    above = [hit for hit in hits if not _is_dropped(hit, plan.min_similarity)]
    best = above[: query.limit] + [hit for hit in above[query.limit :] if hit.chunk.id in requested]
    signals = _signals(query, ranked, best) if best else {}
    described = {CONFIDENCE_ENTRY: describe_confidence(signals)} if best else {}
    return Retrieval(
        outcome="found" if best else "no_match",
        hits=tuple(best),
        below_min_similarity=tuple(hit for hit in hits if _is_dropped(hit, plan.min_similarity)),
        plan={
            **plan.describe(),
            "keyword_weight": f"{ranked.keyword_weight:.2f}",
            **ranked.plan,
            **described,
        },
        notices=(*plan.notices, *ranked.notices),
        confidence=confidence_of(signals) if best else 0.0,
        signals=signals,
    )


def above_min_confidence(query: Query, retrieval: Retrieval) -> Retrieval:
    """Return the hits if their confidence reaches the minimum; else none, with a notice of both."""
    if not query.min_confidence:
        return retrieval
    plan = {**retrieval.plan, "min_confidence": f"{query.min_confidence:.2f}"}
    if not retrieval.hits or retrieval.confidence >= query.min_confidence:
        return replace(retrieval, plan=plan)
    notice = (
        f"the stored texts probably do not answer the query: the confidence {retrieval.confidence:.2f}"
        f" is below the minimum {query.min_confidence:.2f} ({describe_confidence(retrieval.signals)})"
    )
    return replace(
        retrieval,
        outcome="no_match",
        hits=(),
        below_min_confidence=retrieval.hits,
        plan=plan,
        notices=(*retrieval.notices, notice),
    )


def with_highest_similarity(query: Query, retrieval: Retrieval) -> Retrieval:
    """Add a notice of the highest similarity if all hits are below the minimum."""
    similarities = [hit.similarity for hit in retrieval.below_min_similarity if hit.similarity is not None]
    if retrieval.hits or not similarities:
        return retrieval
    minimum = retrieval.plan.get("min_similarity", query.min_similarity)
    notice = f"{EVERYTHING_BELOW} {minimum}; the highest is {max(similarities):.2f}"
    return replace(retrieval, notices=(*retrieval.notices, notice))


def _positions_by_score(ranked: RankedCandidates) -> list[int]:
    """Return the positions of the candidates, best first. Only returned candidates become hits."""
    ids = ranked.ids.tolist()
    columns = [part.tolist() for part in ranked.parts.values()]
    scores = [sum(parts) for parts in zip(*columns, strict=True)]
    return sorted(range(len(ids)), key=lambda position: (-scores[position], ids[position]))


def _hits_at(ranked: RankedCandidates, positions: Sequence[int]) -> list[Hit]:
    """Return the hits for these positions of the candidates."""
    names = list(ranked.parts)
    ids, bm25, cosine, *columns = (
        column[positions].tolist()
        for column in (ranked.ids, ranked.bm25, ranked.cosine, *ranked.parts.values())
    )
    rows = [ranked.rows[chunk] for chunk in ids]
    return [
        Hit(
            chunk=row.chunk,
            document=row.document,
            score=sum(parts),
            parts=dict(zip(names, parts, strict=True)),
            bm25=bm25_score or None,
            similarity=None if math.isnan(similarity) else similarity,
            through=ranked.through.get(chunk, ()),
        )
        for row, chunk, bm25_score, similarity, *parts in zip(rows, ids, bm25, cosine, *columns, strict=True)
    ]


def _with_thread_marks(
    hits: Sequence[Hit], min_similarity: float, ranking_context: RankingContext
) -> list[Hit]:
    """Return the hits, with a mark on hits that only their thread keeps."""
    above = [not _is_below(hit, min_similarity) for hit in hits]
    are_kept = mark_kept_by_thread(ranking_context, [hit.document for hit in hits], above)
    return [
        replace(hit, parts={**hit.parts, KEPT_BY_THREAD: 0.0}) if is_kept else hit
        for hit, is_kept in zip(hits, are_kept, strict=True)
    ]


def _is_dropped(hit: Hit, min_similarity: float | None) -> bool:
    return KEPT_BY_THREAD not in hit.parts and _is_below(hit, min_similarity)


def _is_below(hit: Hit, min_similarity: float | None) -> bool:
    """Return whether a hit is below the minimum similarity. Hits without a vector are never below."""
    return min_similarity is not None and hit.similarity is not None and hit.similarity < min_similarity


def _signals(query: Query, ranked: RankedCandidates, best: Sequence[Hit]) -> dict[str, float]:
    """Return the signals of the confidence; all rows that were read are texts that the user may read."""
    passages = [
        Passage(hit.document.title, hit.chunk.text_with_header, author_of(hit.document), hit.score)
        for hit in best[:MAX_WEIGHED_HITS]
    ]
    rows = chain([ranked.rows[hit.chunk.id] for hit in best], ranked.rows.values())
    readable_texts = (f"{row.document.title} {row.chunk.text}" for row in rows)
    return confidence_signals(query.query, ranked, passages, readable_texts=readable_texts)
