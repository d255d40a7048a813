"""The ways of looking: the question as words and as a vector, and the union of what both find."""

from collections.abc import Sequence

import numpy as np

from conspectus.errors import InvalidInput
from conspectus.model.filter import Filter
from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.ports import Candidates, Embedder, Ids, Index, Probe, Vectors
from conspectus.retrieval.plan import Plan
from conspectus.text.vectors import unit


async def probe(query: Query, plan: Plan, where: Filter, embedder: Embedder | None) -> Probe:
    """The question as an index understands it; the caller's own vector saves embedding it."""
    return Probe(
        where=where,
        words=query.text if plan.words else None,
        vector=await _vector(query, embedder) if plan.vectors else None,
        limit=plan.depth,
    )


async def look(index: Index, asked: Probe, also: Sequence[ChunkId]) -> Candidates:
    """What both arms find, and the chunks of `also` whether they were found or not."""
    found = await index.search(asked)
    missing = np.setdiff1d(np.asarray(also, dtype=np.int64), found.ids)
    return await widened(index, asked, found, missing)


async def widened(index: Index, asked: Probe, found: Candidates, ids: Ids) -> Candidates:
    """The candidates and, of these further chunks, those that the filter allows."""
    if not len(ids):
        return found
    more = await index.score(ids, asked)
    together = np.concatenate([found.ids, more.ids])
    order = np.argsort(together, kind="stable")
    return Candidates(
        ids=together[order],
        words=np.concatenate([found.words, more.words])[order],
        cosine=np.concatenate([found.cosine, more.cosine])[order],
        terms=found.terms,
        total=found.total,
        threads=found.threads,
    )


async def _vector(query: Query, embedder: Embedder | None) -> Vectors | None:
    if query.vector is None:
        return await embedder.embed_query(query.text) if embedder is not None else None
    vector = unit(query.vector)
    if embedder is not None and len(vector) != embedder.space.dimensions:
        raise InvalidInput("vector", f"has {len(vector)} numbers, the space {embedder.space.dimensions}")
    return vector
