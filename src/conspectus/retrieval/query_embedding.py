"""Embed a query, or plan its search without a vector."""

from dataclasses import replace

from conspectus.errors import InvalidInput, ProviderError
from conspectus.model.filter import Filter
from conspectus.model.query import Query
from conspectus.ports import Embedder, Probe, Vectors
from conspectus.retrieval.plan import QueryPlan, plan_query
from conspectus.retrieval.requests import request_subject
from conspectus.text.analyzer import analyzer_for
from conspectus.text.vectors import unit


async def prepare_query(
    query: Query, where: Filter, embedder: Embedder | str, *, language: str | None = None
) -> tuple[QueryPlan, Probe]:
    """Plan and embed the query. If embedding fails, use keyword search only, with a notice.

    `embedder` may be the reason why queries cannot be embedded. `language` is that of the collection. Of a
    request or a question for a first mention, only its subject is searched for.
    """
    plan, probe = await _prepare_whole_query(query, where, embedder)
    subject = _subject_of(query.query, plan)
    if probe.words is None or subject == query.query:
        return plan, probe
    return plan, replace(probe, terms=tuple(analyzer_for(language).terms(subject)))


def _subject_of(text: str, plan: QueryPlan) -> str:
    """Return what a text asks about; the whole text if it is no request and asks for no first mention."""
    return request_subject(text) if plan.first_mention is None else plan.first_mention.subject


async def _prepare_whole_query(
    query: Query, where: Filter, embedder: Embedder | str
) -> tuple[QueryPlan, Probe]:
    if isinstance(embedder, str):
        plan = plan_query(query, unembeddable=embedder)
        return plan, await _new_probe(query, plan, where, None)
    plan = plan_query(query, unembeddable=None)
    if plan.keyword and plan.vector:
        plan = _plan_for_language(plan, query.query, embedder)
    try:
        return plan, await _new_probe(query, plan, where, embedder)
    except ProviderError as fault:
        if not plan.keyword:
            raise
        plan = plan_query(query, unembeddable=f"the query could not be embedded: {fault}")
        return plan, await _new_probe(query, plan, where, None)


def _plan_for_language(plan: QueryPlan, query: str, embedder: Embedder) -> QueryPlan:
    """Use only keyword scores if the embedding model does not support the language of the query."""
    knows = getattr(embedder, "knows", None)
    if knows is None or knows(query):
        return plan
    model = embedder.space.model
    notice = f"ranked by keywords: {model} does not know the language of the query; another embedder may"
    return replace(plan, words_only=True, notices=(*plan.notices, notice))


async def _new_probe(query: Query, plan: QueryPlan, where: Filter, embedder: Embedder | None) -> Probe:
    """Embed the query, unless it has a vector, and return the probe for indexes."""
    return Probe(
        filter=where,
        words=query.query if plan.keyword else None,
        vector=await _query_vector(query, plan, embedder) if plan.vector else None,
        limit=plan.depth,
    )


async def _query_vector(query: Query, plan: QueryPlan, embedder: Embedder | None) -> Vectors | None:
    if query.vector is None:
        if embedder is not None:
            return await embedder.embed_query(_subject_of(query.query, plan))
        return None
    vector = unit(query.vector)
    if embedder is not None and len(vector) != embedder.space.dimensions:
        raise InvalidInput(
            "vector", f"has {len(vector)} numbers, but the embedding model makes {embedder.space.dimensions}"
        )
    return vector
