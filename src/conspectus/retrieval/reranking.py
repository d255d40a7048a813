"""Reorder hits with a reranker."""

from collections.abc import Sequence
from dataclasses import replace

from conspectus.errors import ProviderError
from conspectus.model.index import passage
from conspectus.model.results import Hit, RankedHit, Reranking, Retrieval
from conspectus.ports.web import Reranker

MAX_RERANKED_HITS = 50
"""Maximum number of hits that are passed to a reranker."""


async def rerank_hits(query: str, hits: Sequence[Hit], reranker: Reranker | None, *, limit: int) -> Reranking:
    """Rerank hits and return the best `limit`.

    If no reranker is set or it fails, the first hits are returned in their order, without relevance and with
    a notice. Without hits, the reranker is not called.
    """
    if not hits or limit < 1:
        return Reranking(())
    if reranker is None:
        return _in_input_order(hits, limit, "not reranked: no reranker is set")
    texts = [passage(hit.document, hit.chunk.text_with_header) for hit in hits]
    try:
        ranking = await reranker.rerank(query, texts, limit=limit)
    except ProviderError as fault:
        return _in_input_order(hits, limit, f"not reranked: {fault}")
    ranked_hits = tuple(RankedHit(hits[position], relevance) for position, relevance in ranking)
    return Reranking(ranked_hits, model=reranker.model)


async def rerank_best(query: str, retrieval: Retrieval, reranker: Reranker | None) -> Retrieval:
    """Order the best hits by relevance. The part `reranked` lifts them above the other hits.

    The score of a reranked hit is 1 plus its relevance.
    """
    best = retrieval.hits[:MAX_RERANKED_HITS]
    if reranker is None or not best:
        return retrieval
    reranking = await rerank_hits(query, best, reranker, limit=len(best))
    if reranking.notice is not None:
        return replace(retrieval, notices=(*retrieval.notices, reranking.notice))
    lifted = {ranked.hit.chunk.id: _lift_hit(ranked) for ranked in reranking.results}
    others = [hit for hit in retrieval.hits if hit.chunk.id not in lifted]
    return replace(
        retrieval,
        hits=(*lifted.values(), *others),
        plan={**retrieval.plan, "reranker": reranking.model or ""},
    )


def _lift_hit(ranked: RankedHit) -> Hit:
    hit = ranked.hit
    parts = {**hit.parts, "reranked": 1.0 + (ranked.relevance or 0.0) - hit.score}
    return replace(hit, parts=parts, score=sum(parts.values()))


def _in_input_order(hits: Sequence[Hit], limit: int, notice: str) -> Reranking:
    return Reranking(tuple(RankedHit(hit, None) for hit in hits[:limit]), notice=notice)
