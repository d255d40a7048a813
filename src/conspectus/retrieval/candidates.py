"""The ways of looking: the question as words and as a vector, and the union of what both find."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conspectus.errors import InvalidInput
from conspectus.model.filter import Filter
from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.ports import Candidates, Embedder, Ids, Index, Probe, Vectors
from conspectus.retrieval.query_plan import DEPTH, QueryPlan
from conspectus.text.analyzer import analyzer_for
from conspectus.text.vectors import unit

SHARE = 0.3
"""Least share of an identifier in the summed inverse document frequencies of a query for an exact match."""
DIGITS = 5
"""An identifier with this many digits is matched exactly in any query."""


async def probe(query: Query, plan: QueryPlan, where: Filter, embedder: Embedder | None) -> Probe:
    """The question as an index understands it; the caller's own vector saves embedding it."""
    return Probe(
        where=where,
        words=query.text if plan.words else None,
        vector=await _vector(query, embedder) if plan.vectors else None,
        limit=plan.depth,
    )


async def look(
    index: Index, asked: Probe, also: Sequence[ChunkId], *, language: str | None = None
) -> Candidates:
    """What both arms find, the chunks that hold a rare identifier of the query, and those of `also`."""
    found = await index.search(asked)
    identifiers = _rare_identifiers(asked, found, language)
    if identifiers:
        exact = await index.search(replace(asked, terms=identifiers, vector=None))
        found = replace(found, exact=exact.ids)
    wanted = np.union1d(found.exact, np.asarray(also, dtype=np.int64))
    return await widened(index, asked, found, np.setdiff1d(wanted, found.ids))


def _rare_identifiers(asked: Probe, found: Candidates, language: str | None) -> tuple[str, ...]:
    """Identifiers of the query that few chunks hold and that are not just one word among many."""
    known = analyzer_for(language).identifiers(asked.words or "")
    most = min(DEPTH, math.isqrt(found.total))
    rare = {term.term: term.idf for term in found.terms if term.term in known and 0 < term.documents <= most}

    def counts(each: str, idf: float) -> bool:
        rest = sum(term.idf for term in found.terms if term.documents and term.term not in known[each])
        return idf >= SHARE * (idf + rest) or sum(map(str.isdigit, each)) >= DIGITS

    return tuple(each for each, idf in rare.items() if counts(each, idf))


async def widened(index: Index, asked: Probe, found: Candidates, ids: Ids) -> Candidates:
    """The candidates and, of these further chunks, those that the filter allows."""
    if not len(ids):
        return found
    more = await index.score(ids, asked)
    together = np.concatenate([found.ids, more.ids])
    order = np.argsort(together, kind="stable")
    return replace(
        found,
        ids=together[order],
        words=np.concatenate([found.words, more.words])[order],
        cosine=np.concatenate([found.cosine, more.cosine])[order],
    )


async def _vector(query: Query, embedder: Embedder | None) -> Vectors | None:
    if query.vector is None:
        return await embedder.embed_query(query.text) if embedder is not None else None
    vector = unit(query.vector)
    if embedder is not None and len(vector) != embedder.space.dimensions:
        raise InvalidInput("vector", f"has {len(vector)} numbers, the space {embedder.space.dimensions}")
    return vector
