"""Validate a query, and plan its search."""

from dataclasses import replace

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, ProviderError, TooLarge, require_range
from conspectus.model.filter import with_min_trust
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import RETRIEVERS, Query, QueryContext, QueryOptions
from conspectus.retrieval.profiles import profile_by_name
from conspectus.settings import Settings
from conspectus.text.clean import clean

DEPTH = 100
"""Minimum number of candidates per retriever; twice the limit if that is more."""
GRAPH = "graph"
QUESTION_NAMES = "query_entities"
REACHED = "graph_entities"
GRAPH_PLAN = (GRAPH, QUESTION_NAMES, REACHED)
FUSION = "fusion"
"""The entry of a plan that says that only keyword scores are used."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The plan of a search: its retrievers, their depth, and its minimum similarity."""

    keyword: bool
    vector: bool
    depth: int
    min_similarity: float | None = None
    notices: tuple[str, ...] = ()
    profile: str | None = None
    words_only: bool = False

    def described(self) -> dict[str, str]:
        """Return the plan as strings for the trace."""
        used = [name for name in RETRIEVERS if getattr(self, name)]
        lowest = {} if self.min_similarity is None else {"min_similarity": f"{self.min_similarity:.2f}"}
        profile = {} if self.profile is None else {"profile": self.profile}
        fusion = {FUSION: "keyword scores alone"} if self.words_only else {}
        return {
            "retrievers": " and ".join(used) or "none",
            "depth": str(self.depth),
            **(lowest | profile | fusion),
        }


def checked_query(query: str | Query, options: QueryOptions, settings: Settings) -> Query:
    """Return the query with the given options, validated. Raises InvalidInput or TooLarge."""
    whole = query if isinstance(query, Query) else Query(query, **options)
    if whole is query and options:
        whole = replace(whole, **options)
    _check_choices(whole, settings)
    if whole.graph is not None:
        _check_graph(whole.graph, settings)
    if whole.query_context is not None:
        _check_situation(whole.query_context)
    if len(whole.query) > settings.max_query_characters:
        size, limit = len(whole.query), settings.max_query_characters
        raise TooLarge("query", size=size, limit=limit, unit="characters")
    if whole.min_trust is not None:
        whole = replace(whole, filter=with_min_trust(whole.filter, whole.min_trust))
    cleaned = clean(whole.query)
    return whole if cleaned == whole.query else replace(whole, query=cleaned)


def plan(query: Query, *, unembeddable: str | None) -> QueryPlan:
    """Plan the retrievers and their depth.

    `unembeddable` is the reason why queries cannot be embedded (None: they can). A notice reports a retriever
    that cannot be used. Raises ProviderError if it is the only one requested.
    """
    vectors = "vector" in query.retrievers and (unembeddable is None or query.vector is not None)
    if unembeddable is not None and query.retrievers == ("vector",) and not vectors:
        raise ProviderError("embedder", unembeddable)
    notices: tuple[str, ...] = ()
    if unembeddable is not None and not vectors and "vector" in query.retrievers:
        notices = (f"keyword search only: {unembeddable}",)
    return QueryPlan(
        keyword="keyword" in query.retrievers and bool(query.query.strip()),
        vector=vectors and (query.vector is not None or bool(query.query.strip())),
        depth=max(DEPTH, 2 * query.limit),
        min_similarity=_min_similarity(query),
        notices=notices,
        profile=None if query.query_context is None else query.query_context.profile,
    )


def _min_similarity(query: Query) -> float | None:
    """Return the minimum similarity of the query, or else that of its profile."""
    if query.min_similarity is not None or query.query_context is None:
        return query.min_similarity
    return profile_by_name(query.query_context.profile).min_similarity


def _check_situation(situation: QueryContext) -> None:
    profile_by_name(situation.profile)
    if situation.thread is not None and situation.channel is None:
        raise InvalidInput("thread", "is a thread of a channel; give the channel too")


def _check_graph(ask: GraphExpansion, settings: Settings) -> None:
    if not 0.0 <= ask.alpha <= 1.0:
        raise InvalidInput("graph.alpha", "must be a weight from 0 to 1")
    require_range("graph.hops", ask.hops, 0, settings.max_hops)


def _check_choices(whole: Query, settings: Settings) -> None:
    if unknown := set(whole.retrievers) - set(RETRIEVERS):
        raise InvalidInput(
            "retrievers", f"{min(unknown)!r} is unknown; expected one of {', '.join(RETRIEVERS)}"
        )
    require_range("limit", whole.limit, 0, settings.max_limit)
    require_range("thread_messages", whole.thread_messages, 0, settings.max_thread_messages)
    if whole.min_similarity is not None and not -1.0 <= whole.min_similarity <= 1.0:
        raise InvalidInput("min_similarity", "must be a cosine similarity from -1 to 1")
    require_range("min_confidence", whole.min_confidence, 0, 1)
