"""Options of a query of the agent API."""

from dataclasses import replace
from typing import Final

from conspectus.facades.agent.arguments import (
    SCOPE_KEYS,
    AgentScope,
    Instant,
    instant_of,
    number,
    require_known,
    scope_of,
    weight,
)
from conspectus.model.graph import (
    GraphExpansion,
)
from conspectus.model.memory import (
    MemoryQueryOptions,
    Scope,
)

MAX_QUERY_CHARACTERS: Final = 10_000
"""Maximum number of characters of a query."""


class AgentQuery(AgentScope, total=False):
    """Options of a query.

    `as_of` reads the state at that time. `max_tokens` limits all results together. `min_score` is the minimum
    cosine similarity (0 to 1). `use_graph` enables graph scores, `alpha` (or `hybrid_alpha`) is their weight,
    `max_hops` the length of a traversal.
    """

    as_of: Instant | None
    max_tokens: int | None
    min_score: float | None
    use_graph: bool
    alpha: float
    hybrid_alpha: float
    max_hops: int


_QUERY_KEYS: Final = frozenset(AgentQuery.__annotations__)


def query_scope(arguments: AgentQuery, default: Scope) -> Scope:
    """Return the scope of a query. Raises TypeError for an unknown argument."""
    require_known(arguments, _QUERY_KEYS)
    return scope_of(default, {name: argument for name, argument in arguments.items() if name in SCOPE_KEYS})


def query_options(max_results: int, arguments: AgentQuery) -> MemoryQueryOptions:
    """Return the options of a query without the graph. Raises TypeError for an unknown argument."""
    require_known(arguments, _QUERY_KEYS)
    return {
        "limit": number("max_results", max_results, 0),
        "as_of": instant_of(arguments.get("as_of")),
        "min_similarity": arguments.get("min_score"),
        "graph": None,
    }


def graph_of(arguments: AgentQuery, default: GraphExpansion, *, expands: bool) -> GraphExpansion | None:
    """Return how a query uses the graph; options that it does not set are those of `default`."""
    if not arguments.get("use_graph", expands):
        return None
    alpha = arguments.get("alpha", arguments.get("hybrid_alpha", default.alpha))
    hops = number("max_hops", arguments.get("max_hops"), default.hops)
    return replace(default, alpha=weight("alpha", alpha), hops=hops)
