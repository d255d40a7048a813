"""Merge the hits of several collections."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conspectus.model.query import Query
from conspectus.model.results import Hit, Retrieval
from conspectus.retrieval.fusion import WORDS_ONLY_FUSION, FusionProfile, fuse, fusion_for_model
from conspectus.retrieval.plan import (
    CONFIDENCE_ENTRY,
    FUSION_ENTRY,
    GRAPH_ENTRIES,
    GRAPH_PART,
    REMOTE_CHECK_ENTRY,
)
from conspectus.retrieval.profiles import MultiplicativeProfile, profile_by_name
from conspectus.text.analyzer import Analyzer

RRF_K = 60
"""Constant of reciprocal rank fusion: Cormack, Clarke and Buettcher, SIGIR 2009."""


def merge_retrievals(query: Query, retrievals: Sequence[Retrieval], *, comparable: bool) -> Retrieval:
    """Merge the hits of several collections.

    If all collections use the same embedding model, the raw scores of all hits are fused again. Otherwise
    only ranks are comparable, and the score of a hit is 1 / (60 + its rank).
    """
    scored = _score_by_similarity(query, retrievals) if comparable else _score_by_rank(retrievals)
    hits = tuple(sorted(scored, key=lambda hit: (-hit.score, hit.chunk.id))[: query.limit])
    surest = max(retrievals, key=lambda retrieval: retrieval.confidence, default=Retrieval("no_match", ()))
    return Retrieval(
        outcome="found" if hits else "no_match",
        hits=hits,
        below_min_similarity=tuple(hit for retrieval in retrievals for hit in retrieval.below_min_similarity),
        plan={
            "collections": str(len(retrievals)),
            "merged by": "raw scores" if comparable else "rank",
            **_merge_graph_entries(retrievals),
            **{name: surest.plan[name] for name in (CONFIDENCE_ENTRY,) if name in surest.plan},
            **_merge_remote_checks(retrievals),
        },
        notices=tuple(dict.fromkeys(notice for retrieval in retrievals for notice in retrieval.notices)),
        terms={name: terms for retrieval in retrievals for name, terms in retrieval.terms.items()},
        timings=_sum_timings(retrievals),
        confidence=surest.confidence,
        signals=surest.signals,
    )


def _merge_remote_checks(retrievals: Sequence[Retrieval]) -> dict[str, str]:
    """Return the entry of the checks at remotes: one that failed tells of all."""
    entries = {retrieval.plan.get(REMOTE_CHECK_ENTRY) for retrieval in retrievals} - {None}
    return {REMOTE_CHECK_ENTRY: "failed" if "failed" in entries else "done"} if entries else {}


def _score_by_similarity(query: Query, retrievals: Sequence[Retrieval]) -> list[Hit]:
    """Products of raw similarities are comparable across collections. Sums need a common base."""
    query_context = query.query_context
    if query_context is not None and isinstance(
        profile_by_name(query_context.profile), MultiplicativeProfile
    ):
        return [hit for retrieval in retrievals for hit in retrieval.hits]
    return _fuse_again(query, retrievals)


def _fuse_again(query: Query, retrievals: Sequence[Retrieval]) -> list[Hit]:
    hits = [hit for retrieval in retrievals for hit in retrieval.hits]
    bm25 = np.array([hit.bm25 or 0.0 for hit in hits], dtype=np.float64)
    cosine = np.array([np.nan if hit.similarity is None else hit.similarity for hit in hits])
    terms = len(set(Analyzer(language=None).terms(query.query)))
    fused = fuse(bm25, cosine, terms=terms, profile=_common_fusion(retrievals))
    weight_beside_graph = 1.0 if query.graph is None else 1.0 - query.graph.alpha
    weights = [weight_beside_graph if GRAPH_PART in hit.parts else 1.0 for hit in hits]
    return [
        _with_parts(hit, {**hit.parts, "keyword": weight * float(keyword), "vector": weight * float(vector)})
        for hit, weight, keyword, vector in zip(hits, weights, fused.words, fused.vectors, strict=True)
    ]


def _common_fusion(retrievals: Sequence[Retrieval]) -> FusionProfile:
    """Return the weights of the one embedding model, or those for keywords alone if a plan says so."""
    if any(FUSION_ENTRY in retrieval.plan for retrieval in retrievals):
        return WORDS_ONLY_FUSION
    spaces = {terms.space for retrieval in retrievals for terms in retrieval.terms.values()}
    return fusion_for_model(spaces.pop() if len(spaces) == 1 else None)


def _merge_graph_entries(retrievals: Sequence[Retrieval]) -> dict[str, str]:
    """Return the distinct graph entries of all plans."""
    entries: dict[str, dict[str, None]] = {}
    for retrieval in retrievals:
        for name in GRAPH_ENTRIES:
            if name in retrieval.plan:
                entries.setdefault(name, {})[retrieval.plan[name]] = None
    return {name: "; ".join(texts) for name, texts in entries.items()}


def _sum_timings(retrievals: Sequence[Retrieval]) -> dict[str, float]:
    steps = {step for retrieval in retrievals for step in retrieval.timings}
    return {step: sum(retrieval.timings.get(step, 0.0) for retrieval in retrievals) for step in sorted(steps)}


def _score_by_rank(retrievals: Sequence[Retrieval]) -> list[Hit]:
    return [
        _with_parts(hit, {"rank": 1.0 / (RRF_K + rank)})
        for retrieval in retrievals
        for rank, hit in enumerate(retrieval.hits, start=1)
    ]


def _with_parts(hit: Hit, parts: dict[str, float]) -> Hit:
    return replace(hit, parts=parts, score=sum(parts.values()))
