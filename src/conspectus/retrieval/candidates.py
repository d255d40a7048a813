"""Plan a query and collect its candidates: checked fields, the probe, and what an index finds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conspectus.errors import InvalidInput, ProviderError, TooLarge
from conspectus.model.filter import Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import ChunkId
from conspectus.model.query import ARMS, Query, QueryContext
from conspectus.ports import Candidates, Embedder, Ids, Index, Probe, Vectors
from conspectus.retrieval.scoring_profiles import profile_named
from conspectus.settings import Settings
from conspectus.text.analyzer import analyzer_for
from conspectus.text.clean import clean
from conspectus.text.vectors import unit

DEPTH = 100


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What one search will do: the arms it uses, how deep each looks, how many rows are read whole."""

    words: bool
    vectors: bool
    depth: int
    floor: float | None = None
    notices: tuple[str, ...] = ()
    profile: str | None = None

    def described(self) -> dict[str, str]:
        """The plan in words, for the trace."""
        arms = [name for name, used in (("words", self.words), ("vectors", self.vectors)) if used]
        floor = {} if self.floor is None else {"floor": f"{self.floor:.2f}"}
        profile = {} if self.profile is None else {"profile": self.profile}
        return {"arms": " and ".join(arms) or "none", "depth": str(self.depth), **floor, **profile}


def asked(query: str | Query, fields: Mapping[str, Any], settings: Settings) -> Query:
    """The query with the given fields, checked. Raises InvalidInput or TooLarge."""
    known = Query.__dataclass_fields__.keys()
    for name in fields:
        if name not in known:
            raise InvalidInput(name, f"is not a part of a query; there are {', '.join(known)}")
    if "text" in fields and not isinstance(query, Query):
        raise InvalidInput("text", "is given twice; give it once, as the query")
    whole = replace(query, **fields) if isinstance(query, Query) else Query(text=query, **fields)
    _check_choices(whole, settings)
    if whole.graph is not None:
        _check_graph(whole.graph, settings)
    if whole.situation is not None:
        _check_situation(whole.situation)
    if len(whole.text) > settings.max_query_characters:
        size, limit = len(whole.text), settings.max_query_characters
        raise TooLarge("question", size=size, limit=limit, unit="characters")
    return replace(whole, text=clean(whole.text))


def plan(query: Query, *, blind: str | None) -> QueryPlan:
    """Which arms look, and how deep. `blind` says why questions cannot be embedded, None if they can.

    What cannot be used is said in a notice; raises ProviderError where nothing else was asked for.
    """
    vectors = "vectors" in query.arms and (blind is None or query.vector is not None)
    if blind is not None and query.arms == ("vectors",) and not vectors:
        raise ProviderError("embedder", blind)
    notices = () if vectors or blind is None or "vectors" not in query.arms else (f"words only: {blind}",)
    return QueryPlan(
        words="words" in query.arms and bool(query.text.strip()),
        vectors=vectors and (query.vector is not None or bool(query.text.strip())),
        depth=max(DEPTH, 2 * query.limit),
        floor=_floor(query),
        notices=notices,
        profile=None if query.situation is None else query.situation.profile,
    )


def _floor(query: Query) -> float | None:
    """What the question names, or else what its profile has."""
    if query.floor is not None or query.situation is None:
        return query.floor
    return profile_named(query.situation.profile).floor


def _check_situation(situation: QueryContext) -> None:
    profile_named(situation.profile)
    if situation.at is not None and situation.at.utcoffset() is None:
        raise InvalidInput("at", "must have a zone")
    if situation.thread is not None and situation.channel is None:
        raise InvalidInput("thread", "is the name of one in a channel; name the channel too")


def _check_graph(ask: GraphExpansion, settings: Settings) -> None:
    if not 0.0 <= ask.alpha <= 1.0:
        raise InvalidInput("graph.alpha", "is a weight, from 0 to 1")
    if not 0 <= ask.hops <= settings.max_hops:
        raise InvalidInput("graph.hops", f"must be from 0 to {settings.max_hops}")


def _check_choices(whole: Query, settings: Settings) -> None:
    if unknown := set(whole.arms) - set(ARMS):
        raise InvalidInput("arms", f"{min(unknown)!r} is none; there are {' and '.join(ARMS)}")
    if not 0 <= whole.limit <= settings.max_limit:
        raise InvalidInput("limit", f"must be from 0 to {settings.max_limit}")
    if not 0 <= whole.chain <= settings.max_thread_messages:
        raise InvalidInput("chain", f"must be from 0 to {settings.max_thread_messages}")
    if whole.floor is not None and not -1.0 <= whole.floor <= 1.0:
        raise InvalidInput("floor", "is a cosine similarity, from -1 to 1")


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
