"""Collect the candidates of a search from an index."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from conspectus.deferred import dataclass
from conspectus.model.filter import And
from conspectus.model.ids import ChunkId
from conspectus.ports import Candidates, Floats, Index, Probe
from conspectus.retrieval.named_periods import NamedPeriod
from conspectus.retrieval.plan import MIN_DEPTH
from conspectus.text.analyzer import analyzer_for

MIN_IDF_SHARE = 0.3
"""Minimum share of an identifier in the summed inverse document frequency of a query for an exact match."""
PERIOD_CANDIDATES = 50
"""Candidates of each retriever from the period that a query names."""
MIN_IDENTIFIER_DIGITS = 5
"""Number of digits from which an identifier is matched exactly in any query."""


async def collect_candidates(
    index: Index, probe: Probe, requested: Sequence[ChunkId], *, language: str | None = None
) -> Candidates:
    """Return the candidates of all retrievers, chunks with a rare identifier, and the requested chunks."""
    candidates = await index.search(probe)
    identifiers = _rare_identifiers(probe, candidates, language)
    if identifiers:
        exact = await index.search(replace(probe, terms=identifiers, vector=None))
        candidates = replace(candidates, exact=exact.ids)
    extra = (*candidates.exact.tolist(), *requested)
    if extra:
        return await with_extra_candidates(index, probe, candidates, extra)
    return candidates


async def best_of_period(index: Index, probe: Probe, period: NamedPeriod) -> list[int]:
    """Return the best candidates of the period."""
    filter = And((probe.filter, period.condition))
    inside = await index.search(replace(probe, filter=filter, limit=PERIOD_CANDIDATES))
    ids: list[int] = inside.ids.tolist()
    return ids


async def with_extra_candidates(
    index: Index, probe: Probe, candidates: Candidates, ids: Iterable[int]
) -> Candidates:
    """Return the candidates with more chunks, of those that match the filter."""
    new = sorted({*ids} - {*candidates.ids.tolist()})
    if not new:
        return candidates
    scored = await index.score(np.array(new, dtype=np.int64), probe)
    all_ids = np.concatenate([candidates.ids, scored.ids])
    order = np.argsort(all_ids, kind="stable")
    return replace(
        candidates,
        ids=all_ids[order],
        words=np.concatenate([candidates.words, scored.words])[order],
        cosine=np.concatenate([candidates.cosine, scored.cosine])[order],
    )


def _rare_identifiers(probe: Probe, candidates: Candidates, language: str | None) -> tuple[str, ...]:
    """Return the identifiers of the query that are rare and carry much of its weight."""
    identifiers = analyzer_for(language).identifiers(probe.words or "")
    max_documents = min(MIN_DEPTH, math.isqrt(candidates.total))
    rare = {
        term.term: term.idf
        for term in candidates.terms
        if term.term in identifiers and 0 < term.documents <= max_documents
    }

    def has_weight(identifier: str, idf: float) -> bool:
        if sum(map(str.isdigit, identifier)) >= MIN_IDENTIFIER_DIGITS:
            return True
        other_terms = (
            term for term in candidates.terms if term.documents and term.term not in identifiers[identifier]
        )
        return idf >= MIN_IDF_SHARE * (idf + sum(term.idf for term in other_terms))

    return tuple(identifier for identifier, idf in rare.items() if has_weight(identifier, idf))


@dataclass(frozen=True, slots=True)
class CandidateSelection:
    """Selects the candidates whose rows are read: the best ones and the `requested` ones.

    With `reorders`, later parts of the scores can change the order of candidates.
    """

    limit: int
    requested: tuple[ChunkId, ...]
    reorders: bool

    def ids_to_rank(self, candidates: Candidates, scores: Floats) -> set[int]:
        """Return the ids to rank further: more than the limit only if the order can still change."""
        depth = max(self.limit, MIN_DEPTH) if candidates.threads or self.reorders else self.limit
        best = set(candidates.ids[np.argsort(-scores, kind="stable")[:depth]].tolist())
        if self.requested:
            return best | ({*self.requested} & {*candidates.ids.tolist()})
        return best

    def with_requested(self, ids: Iterable[int]) -> "CandidateSelection":
        """Return the selection with more requested ids."""
        return replace(self, requested=tuple(dict.fromkeys((*self.requested, *map(ChunkId, ids)))))
