"""Collect the candidates of a search from an index."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from conspectus.deferred import dataclass
from conspectus.model.ids import ChunkId
from conspectus.ports import Candidates, Floats, Index, Probe
from conspectus.retrieval.plan import DEPTH
from conspectus.text.analyzer import analyzer_for

SHARE = 0.3
"""Minimum share of an identifier in the summed inverse document frequency of a query for an exact match."""
DIGITS = 5
"""Number of digits from which an identifier is matched exactly in any query."""


async def collect(
    index: Index, request: Probe, also: Sequence[ChunkId], *, language: str | None = None
) -> Candidates:
    """Collect the candidates of all retrievers, chunks with a rare identifier, and the chunks in `also`."""
    found = await index.search(request)
    identifiers = _rare_identifiers(request, found, language)
    if identifiers:
        exact = await index.search(replace(request, terms=identifiers, vector=None))
        found = replace(found, exact=exact.ids)
    if not also and not len(found.exact):
        return found
    return await widened(index, request, found, (*found.exact.tolist(), *also))


def _rare_identifiers(request: Probe, found: Candidates, language: str | None) -> tuple[str, ...]:
    """Return the identifiers of the query that are rare and carry much of its weight."""
    known = analyzer_for(language).identifiers(request.words or "")
    maximum = min(DEPTH, math.isqrt(found.total))
    rare = {
        term.term: term.idf for term in found.terms if term.term in known and 0 < term.documents <= maximum
    }

    def counts(each: str, idf: float) -> bool:
        rest = sum(term.idf for term in found.terms if term.documents and term.term not in known[each])
        return idf >= SHARE * (idf + rest) or sum(map(str.isdigit, each)) >= DIGITS

    return tuple(each for each, idf in rare.items() if counts(each, idf))


@dataclass(frozen=True, slots=True)
class CandidateSelection:
    """Selects the candidates whose rows are read: the best ones and those requested by id."""

    limit: int
    also: tuple[ChunkId, ...]
    more: bool

    def of(self, union: Candidates, scores: Floats) -> set[int]:
        """Return the ids to rank further: more than the limit only if later parts can change the order."""
        number = max(self.limit, DEPTH) if union.threads or self.more else self.limit
        best = set(union.ids[np.argsort(-scores, kind="stable")[:number]].tolist())
        return best | ({*self.also} & {*union.ids.tolist()}) if self.also else best

    def with_those(self, ids: Iterable[int]) -> "CandidateSelection":
        """Also keep these ids."""
        return replace(self, also=(*self.also, *map(ChunkId, ids)))


async def widened(index: Index, probe: Probe, found: Candidates, ids: Iterable[int]) -> Candidates:
    """Add chunks that match the filter to the candidates."""
    new = sorted({*ids} - {*found.ids.tolist()})
    if not new:
        return found
    more = await index.score(np.array(new, dtype=np.int64), probe)
    together = np.concatenate([found.ids, more.ids])
    order = np.argsort(together, kind="stable")
    return replace(
        found,
        ids=together[order],
        words=np.concatenate([found.words, more.words])[order],
        cosine=np.concatenate([found.cosine, more.cosine])[order],
    )
