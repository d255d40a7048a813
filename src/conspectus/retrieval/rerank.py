"""Letting a reranker judge hits; a failing one never costs the answer."""

from collections.abc import Sequence
from dataclasses import replace

from conspectus.errors import ProviderError
from conspectus.model.index import passage
from conspectus.model.results import Hit, RankedHit, Reranking, Retrieval
from conspectus.ports.web import Reranker

MOST = 50
"""How many hits of a question a reranker is shown."""


async def reranked(query: str, hits: Sequence[Hit], reranker: Reranker | None, *, top_n: int) -> Reranking:
    """The `top_n` hits that answer the question best.

    Where no reranker is set, or it fails, the first ones in the order given, without relevance and with a
    notice that says so. Without hits nobody is asked.
    """
    if not hits or top_n < 1:
        return Reranking(())
    if reranker is None:
        return _as_given(hits, top_n, "not reranked: no reranker is set")
    texts = [passage(hit.document, hit.chunk.text) for hit in hits]
    try:
        judged = await reranker.rerank(query, texts, top_n=top_n)
    except ProviderError as fault:
        return _as_given(hits, top_n, f"not reranked: {fault}")
    results = tuple(RankedHit(hits[place], relevance) for place, relevance in judged)
    return Reranking(results, model=reranker.model)


async def reordered(query: str, found: Retrieval, reranker: Reranker | None) -> Retrieval:
    """An answer whose best hits stand in the reranker's order: their part `reranked` lifts them above others.

    A reranked hit's score is 1 plus its relevance.
    """
    best = found.hits[:MOST]
    if reranker is None or not best:
        return found
    answer = await reranked(query, best, reranker, top_n=len(best))
    if answer.notice is not None:
        return replace(found, notices=(*found.notices, answer.notice))
    lifted = {each.hit.chunk.id: _lifted(each) for each in answer.results}
    rest = [hit for hit in found.hits if hit.chunk.id not in lifted]
    return replace(
        found,
        hits=(*lifted.values(), *rest),
        plan={**found.plan, "reranked by": answer.model or ""},
    )


def _lifted(judged: RankedHit) -> Hit:
    hit = judged.hit
    parts = {**hit.parts, "reranked": 1.0 + (judged.relevance or 0.0) - hit.score}
    return replace(hit, parts=parts, score=sum(parts.values()))


def _as_given(hits: Sequence[Hit], top_n: int, notice: str) -> Reranking:
    return Reranking(tuple(RankedHit(hit, None) for hit in hits[:top_n]), notice=notice)
