"""Hits for a window: before those of a superseded document stands one of its successor."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from conspectus.model.ids import DocumentId
from conspectus.model.results import Hit, Retrieval

SUPERSEDES: Final = "supersedes"
"""The part of a score that puts a successor before what it supersedes."""
MAX_SUPERSEDED: Final = 20
"""Most superseded documents whose successors are looked for; less similar ones are in few windows."""


def missing_successors(hits: Sequence[Hit]) -> list[DocumentId]:
    """Return the successors of the best superseded documents none of whose successors is among the hits."""
    present = {hit.document.id for hit in hits}
    missing: dict[DocumentId, None] = {}
    superseded = {hit.document.id: hit.superseded_by for hit in hits if hit.superseded_by}
    for successors in list(superseded.values())[:MAX_SUPERSEDED]:
        ids = [successor.document for successor in successors]
        if present.isdisjoint(ids):
            missing |= dict.fromkeys(ids)
    return list(missing)


def with_successors_first(retrieval: Retrieval, more: Mapping[DocumentId, Hit]) -> Retrieval:
    """Return hits in which the best hit of a successor stands just before what it supersedes.

    `more` has hits of successors that are not among them. A hit that moves up has the part `supersedes`.
    """
    superseded = [hit for hit in retrieval.hits if hit.superseded_by]
    if not superseded:
        return retrieval
    best: dict[DocumentId, Hit] = {}
    for hit in sorted(retrieval.hits, key=lambda hit: -hit.score):
        best.setdefault(hit.document.id, hit)
    moved: dict[int, Hit] = {}
    for old in superseded:
        candidates = [successor.document for successor in old.superseded_by]
        listed = [best[document] for document in candidates if document in best]
        added = [more[document] for document in candidates if document in more]
        if not listed and not added:
            continue
        hit = listed[0] if listed else replace(added[0], along_with=old.chunk.id)
        hit = moved.get(hit.chunk.id, hit)
        if hit.score <= old.score:
            hit = _raise_score(hit, math.nextafter(old.score, math.inf))
        moved[hit.chunk.id] = hit
    hits = {hit.chunk.id: hit for hit in retrieval.hits} | moved
    return replace(
        retrieval,
        hits=tuple(sorted(hits.values(), key=lambda hit: -hit.score)),
        below_min_similarity=tuple(
            hit for hit in retrieval.below_min_similarity if hit.chunk.id not in moved
        ),
    )


def _raise_score(hit: Hit, score: float) -> Hit:
    raised_by = hit.parts.get(SUPERSEDES, 0.0) + score - hit.score
    return replace(hit, score=score, parts={**hit.parts, SUPERSEDES: raised_by})
