"""Reorder hits with a reranker."""

from collections.abc import Sequence
from dataclasses import replace

from conspectus.errors import ProviderError
from conspectus.model.index import passage
from conspectus.model.results import Hit, RankedHit, Reranking, Retrieval
from conspectus.ports.web import Reranker

MAX_RERANKED = 50
"""Maximum number of hits that are passed to a reranker."""


async def reranked(query: str, hits: Sequence[Hit], reranker: Reranker | None, *, limit: int) -> Reranking:
    """Rerank hits and return the best `limit`.

    If no reranker is set or it fails, the first hits are returned in their order, without relevance and with
    a notice. Without hits, the reranker is not called.
    """
    if not hits or limit < 1:
        return Reranking(())
    if reranker is None:
        return _in_input_order(hits, limit, "not reranked: no reranker is set")
    texts = [passage(hit.document, hit.chunk.text) for hit in hits]
    try:
        judged = await reranker.rerank(query, texts, limit=limit)
    except ProviderError as fault:
        return _in_input_order(hits, limit, f"not reranked: {fault}")
    results = tuple(RankedHit(hits[place], relevance) for place, relevance in judged)
    return Reranking(results, model=reranker.model)


async def reordered(query: str, found: Retrieval, reranker: Reranker | None) -> Retrieval:
    """Order the best hits by relevance. The part `reranked` lifts them above the other hits.

    The score of a reranked hit is 1 plus its relevance.
    """
    best = found.hits[:MAX_RERANKED]
    if reranker is None or not best:
        return found
    answer = await reranked(query, best, reranker, limit=len(best))
    if answer.notice is not None:
        return replace(found, notices=(*found.notices, answer.notice))
    lifted = {each.hit.chunk.id: _lifted(each) for each in answer.results}
    rest = [hit for hit in found.hits if hit.chunk.id not in lifted]
    return replace(
        found,
        hits=(*lifted.values(), *rest),
        plan={**found.plan, "reranker": answer.model or ""},
    )


def _lifted(judged: RankedHit) -> Hit:
    hit = judged.hit
    parts = {**hit.parts, "reranked": 1.0 + (judged.relevance or 0.0) - hit.score}
    return replace(hit, parts=parts, score=sum(parts.values()))


def _in_input_order(hits: Sequence[Hit], limit: int, notice: str) -> Reranking:
    return Reranking(tuple(RankedHit(hit, None) for hit in hits[:limit]), notice=notice)
