"""What an agent's memory is asked with, and how far an answer may reach."""

from dataclasses import replace
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.facades.agent.mapping import WHOSE, AgentScope, Instant, instant_of, known, scope_of
from conspectus.model.graph import GraphExpansion
from conspectus.model.memory import MemoryQuery, Scope

MOST_ASKED: Final = 10_000
"""Characters of a question."""


class AgentQuery(AgentScope, total=False):
    """What a question is asked with.

    `as_of` asks for what was known at that time, `max_tokens` is the most that all answers cost together,
    `min_score` the least raw similarity (0 to 1). `use_graph` says whether the graph has a say at all,
    `alpha` (or `hybrid_alpha`) how much, `max_hops` how far it is walked.
    """

    as_of: Instant | None
    max_tokens: int | None
    min_score: float | None
    use_graph: bool
    alpha: float
    hybrid_alpha: float
    max_hops: int


_ASKING: Final = frozenset(AgentQuery.__annotations__)


def question_of(query: str, max_results: int, asking: AgentQuery, default: Scope) -> MemoryQuery:
    """What is asked, without the graph. Raises TypeError for a word that is none of a question."""
    known(asking, _ASKING)
    whose = {name: value for name, value in asking.items() if name in WHOSE}
    return MemoryQuery(
        text=query,
        scope=scope_of(default, whose),
        limit=number("max_results", max_results, 0),
        as_of=instant_of(asking.get("as_of")),
        floor=asking.get("min_score"),
        graph=None,
    )


def graph_of(asking: AgentQuery, usual: GraphExpansion, *, expands: bool) -> GraphExpansion | None:
    """How far the graph has a say in a question; `usual` is what it has where the question says nothing."""
    if not asking.get("use_graph", expands):
        return None
    alpha = asking.get("alpha", asking.get("hybrid_alpha", usual.alpha))
    hops = number("max_hops", asking.get("max_hops"), usual.hops)
    return replace(usual, alpha=weight("alpha", alpha), hops=hops)


def weight(name: str, given: float) -> float:
    """The weight of the graph. Raises InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 <= given <= 1.0:
        raise InvalidInput(name, "must be from 0 (vectors and words) to 1 (the graph)")
    return given


def number(name: str, given: int | None, usual: int) -> int:
    """A number from 0 on; what is usual, where there is none. Raises InvalidInput."""
    if given is None:
        return usual
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InvalidInput(name, "must be a whole number from 0 on")
    return given
