"""Merge the hits of several collections."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conspectus.model.query import Query
from conspectus.model.results import Hit, Retrieval
from conspectus.retrieval.fusion import WORDS_ONLY, fuse, learnt_for
from conspectus.retrieval.plan import FUSION, GRAPH, GRAPH_PLAN
from conspectus.retrieval.profiles import Product, profile_by_name
from conspectus.text.analyzer import Analyzer

CONSTANT = 60
"""Constant of reciprocal rank fusion: Cormack, Clarke and Buettcher, SIGIR 2009."""


def merged(query: Query, answers: Sequence[Retrieval], *, comparable: bool) -> Retrieval:
    """Merge the hits of several collections.

    If all collections use the same embedding model, the raw scores of all hits are fused again. Otherwise
    only ranks are comparable, and the score of a hit is 1 / (60 + its rank).
    """
    ranked = _compared(query, answers) if comparable else _by_rank(answers)
    hits = tuple(sorted(ranked, key=lambda hit: (-hit.score, hit.chunk.id))[: query.limit])
    steps = {name for answer in answers for name in answer.timings}
    surest = max(answers, key=lambda answer: answer.confidence, default=Retrieval("no_match", ()))
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
        confidence=surest.confidence,
        signals=surest.signals,
    )


def _compared(query: Query, answers: Sequence[Retrieval]) -> list[Hit]:
    """Products of raw similarities are comparable across collections. Sums need a common base."""
    situation = query.query_context
    if situation is not None and isinstance(profile_by_name(situation.profile), Product):
        return [hit for answer in answers for hit in answer.hits]
    return _fused(query, answers)


def _fused(query: Query, answers: Sequence[Retrieval]) -> list[Hit]:
    hits = [hit for answer in answers for hit in answer.hits]
    words = np.array([hit.bm25 or 0.0 for hit in hits], dtype=np.float64)
    cosine = np.array([np.nan if hit.similarity is None else hit.similarity for hit in hits])
    words_only = any(FUSION in answer.plan for answer in answers)
    terms = len(set(Analyzer(language=None).terms(query.query)))
    spaces = {each.space for answer in answers for each in answer.terms.values()}
    profile = WORDS_ONLY if words_only else learnt_for(spaces.pop() if len(spaces) == 1 else None)
    again = fuse(words, cosine, terms=terms, profile=profile)
    shares = [_share(query, hit) for hit in hits]
    return [
        _scored(hit, {**hit.parts, "keyword": share * float(by_words), "vector": share * float(by_vectors)})
        for hit, share, by_words, by_vectors in zip(hits, shares, again.words, again.vectors, strict=True)
    ]


def _share(query: Query, hit: Hit) -> float:
    """Return the weight of keyword and vector scores, which is lower if a graph was used."""
    return 1.0 if query.graph is None or GRAPH not in hit.parts else 1.0 - query.graph.alpha


def _graph_plan(answers: Sequence[Retrieval]) -> dict[str, str]:
    """Return the graph entries of the plans of all collections."""
    plans: dict[str, dict[str, None]] = {}
    for answer in answers:
        for name in GRAPH_PLAN:
            if name in answer.plan:
                plans.setdefault(name, {})[answer.plan[name]] = None
    return {name: "; ".join(each) for name, each in plans.items()}


def _by_rank(answers: Sequence[Retrieval]) -> list[Hit]:
    return [
        _scored(hit, {"rank": 1.0 / (CONSTANT + rank)})
        for answer in answers
        for rank, hit in enumerate(answer.hits, start=1)
    ]


def _scored(hit: Hit, parts: dict[str, float]) -> Hit:
    return replace(hit, parts=parts, score=sum(parts.values()))
