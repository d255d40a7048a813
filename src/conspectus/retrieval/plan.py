"""Plan a search: its retrievers, their depth, and its minimum similarity."""

from typing import Final

from conspectus.deferred import dataclass
from conspectus.errors import ProviderError
from conspectus.model.query import RETRIEVERS, Query
from conspectus.retrieval.first_mention import (
    FIRST_MENTION_CANDIDATES,
    FIRST_MENTION_PART,
    FirstMentionQuestion,
    first_mention_question,
)
from conspectus.retrieval.profiles import profile_by_name

MIN_DEPTH: Final = 100
"""Minimum number of candidates per retriever; twice the limit if that is more."""
FUSION_ENTRY: Final = "fusion"
"""The entry of a plan that says that only keyword scores are used."""
CONFIDENCE_ENTRY: Final = "confidence"
"""The entry of a plan that says what the confidence rests on."""
GRAPH_PART: Final = "graph"
"""The part of a score from a graph, and the entry of a plan that says how the graph was used."""
REMOTE_CHECK_ENTRY: Final = "remote_check"
"""The entry of a plan that says whether remotes have said what the person may open now."""
QUERY_ENTITIES_ENTRY: Final = "query_entities"
GRAPH_ENTITIES_ENTRY: Final = "graph_entities"
GRAPH_ENTRIES: Final = (GRAPH_PART, QUERY_ENTITIES_ENTRY, GRAPH_ENTITIES_ENTRY)
"""The entries of a plan that describe how a graph was used."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The retrievers of a search, their depth, and its minimum similarity.

    With `words_only`, only keyword scores are used. `profile` is the name of the scoring profile, if any.
    `first_mention` is what a question for a first mention asks for.
    """

    keyword: bool
    vector: bool
    depth: int
    min_similarity: float | None = None
    notices: tuple[str, ...] = ()
    profile: str | None = None
    words_only: bool = False
    first_mention: FirstMentionQuestion | None = None

    def describe(self) -> dict[str, str]:
        """Return the plan as strings for the trace."""
        retrievers = [name for name in RETRIEVERS if getattr(self, name)]
        entries = {"retrievers": " and ".join(retrievers) or "none", "depth": str(self.depth)}
        if self.min_similarity is not None:
            entries["min_similarity"] = f"{self.min_similarity:.2f}"
        if self.profile is not None:
            entries["profile"] = self.profile
        if self.first_mention:
            entries[FIRST_MENTION_PART] = self.first_mention.subject
        if self.words_only:
            entries[FUSION_ENTRY] = "keyword scores alone"
        return entries


def plan_query(query: Query, *, unembeddable: str | None) -> QueryPlan:
    """Plan the retrievers and their depth.

    `unembeddable` is the reason why queries cannot be embedded (None: they can). A notice reports a retriever
    that cannot be used. Raises ProviderError if it is the only one requested.
    """
    has_text = bool(query.query.strip())
    first_mention = first_mention_question(query.query)
    asks_vector = "vector" in query.retrievers
    can_vector = asks_vector and (unembeddable is None or query.vector is not None)
    if unembeddable is not None and query.retrievers == ("vector",) and not can_vector:
        raise ProviderError("embedder", unembeddable)
    notices: tuple[str, ...] = ()
    if unembeddable is not None and asks_vector and not can_vector:
        notices = (f"keyword search only: {unembeddable}",)
    return QueryPlan(
        keyword="keyword" in query.retrievers and has_text,
        vector=can_vector and (query.vector is not None or has_text),
        depth=max(FIRST_MENTION_CANDIDATES if first_mention else MIN_DEPTH, 2 * query.limit),
        min_similarity=_min_similarity(query),
        notices=notices,
        profile=None if query.query_context is None else query.query_context.profile,
        first_mention=first_mention,
    )


def _min_similarity(query: Query) -> float | None:
    """Return the minimum similarity of the query, or else that of its profile."""
    if query.min_similarity is not None or query.query_context is None:
        return query.min_similarity
    return profile_by_name(query.query_context.profile).min_similarity
