"""Validate a query with its options."""

from dataclasses import replace

from conspectus.errors import InvalidInput, TooLarge
from conspectus.model.checks import require_settings
from conspectus.model.filter import require_ids, with_min_trust
from conspectus.model.query import RETRIEVERS, Query, QueryContext, QueryOptions
from conspectus.retrieval.profiles import profile_by_name
from conspectus.settings import Settings
from conspectus.text.clean import clean


def check_query(query: str | Query, options: QueryOptions, settings: Settings) -> Query:
    """Return the query with the given options, validated. Raises InvalidInput or TooLarge."""
    if not isinstance(query, Query):
        query = Query(query, **options)
    elif options:
        query = replace(query, **options)
    unknown = set(query.retrievers) - set(RETRIEVERS)
    if unknown:
        raise InvalidInput(
            "retrievers", f"{min(unknown)!r} is unknown; expected one of {', '.join(RETRIEVERS)}"
        )
    require_ids(query.filter)
    require_settings(query, settings)
    if query.graph is not None:
        require_settings(query.graph, settings, of="graph.")
    if query.query_context is not None:
        _check_query_context(query.query_context)
    if len(query.query) > settings.max_query_characters:
        size, limit = len(query.query), settings.max_query_characters
        raise TooLarge("query", size=size, limit=limit, unit="characters")
    if query.min_trust is not None:
        query = replace(query, filter=with_min_trust(query.filter, query.min_trust))
    cleaned = clean(query.query)
    return query if cleaned == query.query else replace(query, query=cleaned)


def _check_query_context(query_context: QueryContext) -> None:
    profile_by_name(query_context.profile)
    if query_context.thread is not None and query_context.channel is None:
        raise InvalidInput("thread", "is a thread of a channel; give the channel too")
