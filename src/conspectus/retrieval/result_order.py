"""Reorder results: merge the hits of several collections, and rerank with a cross-encoder."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conspectus.errors import ProviderError
from conspectus.model.index import passage
from conspectus.model.query import Query
from conspectus.model.results import Hit, RankedHit, Reranking, Retrieval
from conspectus.ports.web import Reranker
from conspectus.retrieval.graph_score import GRAPH, GRAPH_PLAN
from conspectus.retrieval.scoring import Product, fuse, profile_named
from conspectus.text.analyzer import Analyzer

MOST = 50
"""How many hits of a question a reranker is shown."""


async def reranked(query: str, hits: Sequence[Hit], reranker: Reranker | None, *, limit: int) -> Reranking:
    """The `limit` hits that answer the question best.

    Where no reranker is set, or it fails, the first ones in the order given, without relevance and with a
    notice that says so. Without hits nobody is asked.
    """
    if not hits or limit < 1:
        return Reranking(())
    if reranker is None:
        return _as_given(hits, limit, "not reranked: no reranker is set")
    texts = [passage(hit.document, hit.chunk.text) for hit in hits]
    try:
        judged = await reranker.rerank(query, texts, limit=limit)
    except ProviderError as fault:
        return _as_given(hits, limit, f"not reranked: {fault}")
    results = tuple(RankedHit(hits[place], relevance) for place, relevance in judged)
    return Reranking(results, model=reranker.model)


async def reordered(query: str, found: Retrieval, reranker: Reranker | None) -> Retrieval:
    """An answer whose best hits stand in the reranker's order: their part `reranked` lifts them above others.

    A reranked hit's score is 1 plus its relevance.
    """
    best = found.hits[:MOST]
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


def _as_given(hits: Sequence[Hit], limit: int, notice: str) -> Reranking:
    return Reranking(tuple(RankedHit(hit, None) for hit in hits[:limit]), notice=notice)


CONSTANT = 60
"""Reciprocal rank fusion as published: Cormack, Clarke and Buettcher, SIGIR 2009."""


def merged(query: Query, answers: Sequence[Retrieval], *, comparable: bool) -> Retrieval:
    """The best hits of all answers.

    Where all collections embed alike, the raw scores of all hits are fused once more as those of one
    collection; otherwise only ranks can be compared, and a hit's score is 1 / (60 + its rank).
    """
    ranked = _compared(query, answers) if comparable else _by_rank(answers)
    hits = tuple(sorted(ranked, key=lambda hit: (-hit.score, hit.chunk.id))[: query.limit])
    steps = {name for answer in answers for name in answer.timings}
    return Retrieval(
        outcome="found" if hits else "no_match",
        hits=hits,
        below_min_similarity=tuple(hit for answer in answers for hit in answer.below_min_similarity),
        plan={
            "collections": str(len(answers)),
            "merged by": "raw scores" if comparable else "rank",
            **_graph_plan(answers),
        },
        notices=tuple(dict.fromkeys(notice for answer in answers for notice in answer.notices)),
        terms={name: terms for answer in answers for name, terms in answer.terms.items()},
        timings={name: sum(answer.timings.get(name, 0.0) for answer in answers) for name in sorted(steps)},
    )


def _compared(query: Query, answers: Sequence[Retrieval]) -> list[Hit]:
    """Products of raw similarity mean the same everywhere; what is added to a base needs one base for all."""
    situation = query.query_context
    if situation is not None and isinstance(profile_named(situation.profile), Product):
        return [hit for answer in answers for hit in answer.hits]
    return _fused(query, answers)


def _fused(query: Query, answers: Sequence[Retrieval]) -> list[Hit]:
    hits = [hit for answer in answers for hit in answer.hits]
    words = np.array([hit.bm25 or 0.0 for hit in hits], dtype=np.float64)
    cosine = np.array([np.nan if hit.similarity is None else hit.similarity for hit in hits])
    again = fuse(words, cosine, terms=len(set(Analyzer(language=None).terms(query.text))))
    shares = [_share(query, hit) for hit in hits]
    return [
        _scored(hit, {**hit.parts, "keyword": share * float(by_words), "vector": share * float(by_vectors)})
        for hit, share, by_words, by_vectors in zip(hits, shares, again.words, again.vectors, strict=True)
    ]


def _share(query: Query, hit: Hit) -> float:
    """What words and vectors weigh beside a graph, where one had a say."""
    return 1.0 if query.graph is None or GRAPH not in hit.parts else 1.0 - query.graph.alpha


def _graph_plan(answers: Sequence[Retrieval]) -> dict[str, str]:
    """What the graph did in each of the collections."""
    told: dict[str, dict[str, None]] = {}
    for answer in answers:
        for name in GRAPH_PLAN:
            if name in answer.plan:
                told.setdefault(name, {})[answer.plan[name]] = None
    return {name: "; ".join(each) for name, each in told.items()}


def _by_rank(answers: Sequence[Retrieval]) -> list[Hit]:
    return [
        _scored(hit, {"rank": 1.0 / (CONSTANT + rank)})
        for answer in answers
        for rank, hit in enumerate(answer.hits, start=1)
    ]


def _scored(hit: Hit, parts: dict[str, float]) -> Hit:
    return replace(hit, parts=parts, score=sum(parts.values()))
