"""Validate a query with its options."""

from dataclasses import replace

from conspectus.errors import InvalidInput, TooLarge, require_range
from conspectus.model.filter import with_min_trust
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import RETRIEVERS, Query, QueryContext, QueryOptions
from conspectus.retrieval.profiles import profile_by_name
from conspectus.settings import Settings
from conspectus.text.clean import clean


def checked_query(query: str | Query, options: QueryOptions, settings: Settings) -> Query:
    """Return the query with the given options, validated. Raises InvalidInput or TooLarge."""
    if not isinstance(query, Query):
        query = Query(query, **options)
    elif options:
        query = replace(query, **options)
    _check_options(query, settings)
    if query.graph is not None:
        _check_graph(query.graph, settings)
    if query.query_context is not None:
        _check_query_context(query.query_context)
    if len(query.query) > settings.max_query_characters:
        size, limit = len(query.query), settings.max_query_characters
        raise TooLarge("query", size=size, limit=limit, unit="characters")
    if query.min_trust is not None:
        query = replace(query, filter=with_min_trust(query.filter, query.min_trust))
    cleaned = clean(query.query)
    return query if cleaned == query.query else replace(query, query=cleaned)


def _check_options(query: Query, settings: Settings) -> None:
    if unknown := set(query.retrievers) - set(RETRIEVERS):
        raise InvalidInput(
            "retrievers", f"{min(unknown)!r} is unknown; expected one of {', '.join(RETRIEVERS)}"
        )
    require_range("limit", query.limit, 0, settings.max_limit)
    require_range("thread_messages", query.thread_messages, 0, settings.max_thread_messages)
    if query.min_similarity is not None and not -1.0 <= query.min_similarity <= 1.0:
        raise InvalidInput("min_similarity", "must be a cosine similarity from -1 to 1")
    require_range("min_confidence", query.min_confidence, 0, 1)


def _check_graph(expansion: GraphExpansion, settings: Settings) -> None:
    if not 0.0 <= expansion.alpha <= 1.0:
        raise InvalidInput("graph.alpha", "must be a weight from 0 to 1")
    require_range("graph.hops", expansion.hops, 0, settings.max_hops)


def _check_query_context(query_context: QueryContext) -> None:
    profile_by_name(query_context.profile)
    if query_context.thread is not None and query_context.channel is None:
        raise InvalidInput("thread", "is a thread of a channel; give the channel too")
