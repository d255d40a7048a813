"""Embed a query, or plan its search without a vector."""

from dataclasses import replace

from conspectus.errors import InvalidInput, ProviderError
from conspectus.model.filter import Filter
from conspectus.model.query import Query
from conspectus.ports import Embedder, Probe, Vectors
from conspectus.retrieval.plan import QueryPlan, plan
from conspectus.text.vectors import unit


async def prepare_query(
    query: Query, where: Filter, embedder: Embedder | None, unembeddable: str | None
) -> tuple[QueryPlan, Probe]:
    """Plan and embed the query. If embedding fails, use keyword search only, with a notice."""
    decided = plan(query, unembeddable=unembeddable)
    if decided.keyword and decided.vector and embedder is not None:
        decided = _for_language(decided, query.query, embedder)
    try:
        return decided, await probe(query, decided, where, embedder)
    except ProviderError as fault:
        if not decided.keyword:
            raise
        decided = plan(query, unembeddable=f"the query could not be embedded: {fault}")
        return decided, await probe(query, decided, where, None)


def _for_language(decided: QueryPlan, query: str, embedder: Embedder) -> QueryPlan:
    """Use only keyword scores if the embedding model does not support the language of the query."""
    knows = getattr(embedder, "knows", None)
    if knows is None or knows(query):
        return decided
    model = embedder.space.model
    notice = f"ranked by keywords: {model} does not know the language of the query; another embedder may"
    return replace(decided, words_only=True, notices=(*decided.notices, notice))


async def probe(query: Query, plan: QueryPlan, where: Filter, embedder: Embedder | None) -> Probe:
    """Embed the query, unless it has a vector, and return the probe for indexes."""
    return Probe(
        filter=where,
        words=query.query if plan.keyword else None,
        vector=await _vector(query, embedder) if plan.vector else None,
        limit=plan.depth,
    )


async def _vector(query: Query, embedder: Embedder | None) -> Vectors | None:
    if query.vector is None:
        return await embedder.embed_query(query.query) if embedder is not None else None
    vector = unit(query.vector)
    if embedder is not None and len(vector) != embedder.space.dimensions:
        raise InvalidInput("vector", f"has {len(vector)} numbers, the space {embedder.space.dimensions}")
    return vector
