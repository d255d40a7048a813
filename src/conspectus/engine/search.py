"""Questions: hits, windows, and why."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from time import perf_counter
from typing import Any

import numpy as np

from conspectus.access.graph_reader import graphs_seen
from conspectus.access.reader import SourceRef
from conspectus.engine.context import STOPPED, EngineContext, Service
from conspectus.engine.graph_access import connections
from conspectus.errors import InvalidInput, NotFound, ProviderError
from conspectus.graph.expansion import GraphCandidates
from conspectus.memory.documents import known_at
from conspectus.model.filter import And, Filter
from conspectus.model.ids import SourceId
from conspectus.model.query import EVERYWHERE, Budget, Query, QueryContext
from conspectus.model.records import Document, EmbeddingSpace
from conspectus.model.results import ContextWindow, Hit, Reranking, Retrieval
from conspectus.ports import Index
from conspectus.ports.jobs import asking
from conspectus.retrieval.chains import ChainReader, with_chains
from conspectus.retrieval.pipeline import asked, search
from conspectus.retrieval.ranking import SearchContext
from conspectus.retrieval.result_order import merged, reordered, reranked
from conspectus.retrieval.scoring import RankingContext, profile_named
from conspectus.text.clean import sentences
from conspectus.window.build import build_window
from conspectus.window.cost_estimate import Focus
from conspectus.window.render import renderer_named

FEWEST = 50
SHORT = 40
"""A window asks for one hit per so many tokens, and for more only where that does not fill it."""
FULL = 0.95
MIN_SIMILARITY = 0.25
"""Texts of the shipped model that have nothing in common are rarely more similar than this."""

MOST_SENTENCES = 64
"""So many sentences of a hit are compared with the question, where none of its words occurs in them."""

WAITING = "not all texts can be found by meaning yet: some wait for their vectors"


@dataclass(frozen=True, slots=True)
class WindowBuilder:
    """How a window is filled: at first with one hit for `each` tokens, with `once` not with more.

    `labels` and `zones` are those of streams.
    """

    once: bool = False
    each: int = SHORT
    labels: Mapping[str, str] | None = None
    zones: Mapping[str, tzinfo] | None = None


class Searcher:
    """Searches collections as one person may see them, and fills windows with what is found."""

    def __init__(self, context: EngineContext) -> None:
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._sight = context.sight

    async def filled(
        self,
        search: Callable[[int], Awaitable[Retrieval]],
        budget: Budget,
        format: str,
        how: WindowBuilder,
    ) -> ContextWindow:
        """The window of as many hits as it takes to fill it."""
        count, chosen = self._parts.counter(budget.tokenizer), renderer_named(format)
        most = self._parts.settings.max_limit
        limit = min(max(FEWEST, budget.max_tokens // how.each), most)
        while True:
            found = await search(limit)
            start = perf_counter()
            window = build_window(found, budget, chosen, count, labels=how.labels, zones=how.zones)
            took = {"pack_and_render": (perf_counter() - start) * 1_000}
            own = sum(hit.along_with is None for hit in found.hits)
            enough = window.tokens >= FULL * window.max_tokens or own < limit
            if enough or how.once or limit == most:
                near = await self._nearest(found, window)
                if near:
                    found = replace(found, nearest=near)
                    window = build_window(found, budget, chosen, count, labels=how.labels, zones=how.zones)
                return replace(window, timings={**window.timings, **took})
            limit = min(4 * limit, most)

    async def _nearest(self, found: Retrieval, window: ContextWindow) -> dict[int, tuple[float, ...]]:
        """How similar the sentences are of a hit that was cut although no word of the question is in it."""
        cut = {entry.chunk for entry in window.trace if entry.status == "truncated"}
        near: dict[int, tuple[float, ...]] = {}
        for hit in found.hits:
            asked = found.terms.get(hit.document.collection)
            if hit.chunk.id not in cut or asked is None or asked.vector is None or asked.space is None:
                continue
            spans = list(sentences(hit.chunk.text))[:MOST_SENTENCES]
            embedder = self._parts.embedder_for(asked.space)
            if embedder is None or len(spans) < 2 or Focus(found.terms).sentences(hit):
                continue
            try:
                vectors = await embedder.embed_documents([hit.chunk.text[slice(*span)] for span in spans])
            except ProviderError:
                continue
            near[hit.chunk.id] = tuple((vectors @ np.asarray(asked.vector, dtype=np.float32)).tolist())
        return near

    async def search(self, query: Query, also: Document | None = None) -> Retrieval:
        """What a query finds, reranked and with its chains where that is asked for."""
        with asking(self._person.id):
            return await self.finished(query, _with_highest(query, await self._find(query, also)))

    async def finished(self, query: Query, found: Retrieval) -> Retrieval:
        """What was found, in the order of the reranker and with its chains, where they are asked for."""
        if query.rerank and self._parts.reranker is not None:
            start = perf_counter()
            found = await reordered(query.text, found, self._parts.reranker)
            found = replace(found, timings={**found.timings, "rerank": (perf_counter() - start) * 1_000})
        return await self._chained(query, found) if query.thread_messages else found

    async def _chained(self, query: Query, found: Retrieval) -> Retrieval:
        """The hits with what it takes to understand them."""
        sight, most = self._sight, self._parts.settings.max_thread_chunks
        start = perf_counter()
        reading = ChainReader(sight.threaded, sight.beginnings, sight.passages, query.filter, most)
        found = await with_chains(found, reading, most=query.thread_messages)
        return replace(found, timings={**found.timings, "chains": (perf_counter() - start) * 1_000})

    async def _find(self, query: Query, also: Document | None) -> Retrieval:
        if query.collection != EVERYWHERE:
            place = await self._sight.place(query.collection)
            return await self.look(query, place, also, await self._standing(query.query_context, [place]))
        places = await self._sight.places()
        standing = await self._standing(query.query_context, places)
        by_space = {
            space: await self.embedded(query, space) for space in {p.collection.space for p in places}
        }
        found: list[Retrieval] = []
        unasked: dict[str, ProviderError] = {}
        for place in places:
            try:
                found.append(await self.look(by_space[place.collection.space], place, also, standing))
            except ProviderError as fault:
                unasked[place.collection.name] = fault
        if unasked and not found:
            raise next(iter(unasked.values()))
        whole = merged(query, found, comparable=len(by_space) == 1)
        notices = (f"collection {name} was not asked: {fault}" for name, fault in unasked.items())
        return replace(whole, notices=(*whole.notices, *notices))

    async def embedded(self, query: Query, space: EmbeddingSpace | None) -> Query:
        """The question with its vector in a space, so that many collections cost one; else as it was."""
        embedder = self._parts.embedder_for(space) if space else None
        if (
            embedder is None
            or query.vector is not None
            or "vector" not in query.retrievers
            or not query.text.strip()
        ):
            return query
        try:
            return replace(query, vector=tuple(map(float, await embedder.embed_query(query.text))))
        except ProviderError:
            return query

    async def _standing(
        self, situation: QueryContext | None, places: Sequence[SourceRef]
    ) -> RankingContext | None:
        """The situation with its channel looked up among what the person may see. Raises NotFound."""
        if situation is None:
            return None
        profile = profile_named(situation.profile)
        at = situation.at or self._parts.clock()
        if situation.channel is None:
            return RankingContext(profile, at)
        sources = [await self._sight.source(place, situation.channel) for place in places]
        channel = frozenset(source.id for source in sources if source is not None)
        if not channel:
            raise NotFound("channel", situation.channel)
        return RankingContext(profile, at, channel, situation.thread)

    async def look(
        self,
        query: Query,
        place: SourceRef,
        also: Document | None = None,
        standing: RankingContext | None = None,
        *,
        alone: bool = False,
        graphs: Sequence[SourceId] = (),
    ) -> Retrieval:
        """The hits of one collection; `graphs` are walked over beside those that the question names."""
        core, home = self._core, place.collection
        start = perf_counter()
        shelf = await core.shelves.current(home)
        followed = {"index_update": (perf_counter() - start) * 1_000}
        embedder = self._parts.embedder_for(shelf.space) if shelf.space else None

        async def refreshed() -> Index:
            return (await core.shelves.newest(home.id)).index

        beside = also if also is not None and also.collection == home.id else None
        extra = await self._sight.chunks(beside) if beside else ()
        where = await self._known(query, place)
        looking = SearchContext(
            collection=home,
            index=shelf.index,
            refreshed=refreshed,
            hydrate=self._sight.rows(place),
            embedder=embedder or "the collection has no vectors, or no embedder for them is set here",
            where=place.narrowed(where),
            standing=standing,
            alone=alone,
            question=query.text,
            graph=query.graph,
            connections=await self._connections(query, place, graphs, where=where),
        )
        found = await search(query, looking, also=[each.chunk.id for each in extra])
        found = replace(found, timings={**followed, **found.timings})
        return await self._with_notice(found, query, place, shelf.space)

    async def _connections(
        self, query: Query, place: SourceRef, graphs: Sequence[SourceId], *, where: Filter
    ) -> GraphCandidates | None:
        if query.graph is None:
            return None
        named = await graphs_seen(self._sight, place, where, query.graph.graphs)
        all_of_them = list(dict.fromkeys((*graphs, *named)))
        return await connections(self._core, place, all_of_them, where=where, as_of=query.as_of)

    async def _with_notice(
        self, found: Retrieval, query: Query, place: SourceRef, space: EmbeddingSpace | None
    ) -> Retrieval:
        """What was found, saying so where texts could not be found by meaning."""
        problem = self._core.backfill.problem(place.collection)
        if problem is not None:
            said = str(problem) if place.whole else STOPPED
            return replace(found, notices=(*found.notices, said))
        if found.hits or space is None or "vector" not in query.retrievers or not query.text.strip():
            return found
        waits = await self._sight.waits(place, space, query.filter)
        return replace(found, notices=(*found.notices, WAITING)) if waits else found

    async def _known(self, query: Query, place: SourceRef) -> Filter:
        """What was asked for, of what was known at the time; earlier versions only as of their own time."""
        if query.as_of is not None and query.as_of.utcoffset() is None:
            raise InvalidInput("as_of", "must have a zone")
        if query.as_of is None and not await self._core.versions.are_in(place.collection):
            return query.filter
        return And((known_at(query.as_of), query.filter))


class SearchService(Service):
    """Search: hits, windows, and why."""

    def __init__(self, context: EngineContext, searcher: Searcher) -> None:
        super().__init__(context)
        self._searcher = searcher

    async def retrieve(self, /, query: str | Query, **fields: Any) -> Retrieval:
        """The best chunks for a question, best first, each with the parts of its score.

        `fields` are those of Query; the collection `*` stands for all that can be seen. Raises NotFound for
        an unknown collection.
        """
        return await self._searcher.search(asked(query, fields, self._parts.settings))

    async def window(
        self, /, query: str | Query, max_tokens: int | Budget, *, format: str = "text", **fields: Any
    ) -> ContextWindow:
        """The right context for a question, rendered, never over the budget, with a reason for everything.

        `format` is text, xml, json, messages or guarded. Unless `limit` is given, as many hits are looked
        at as it takes to fill the budget.
        """
        budget = Budget(max_tokens) if isinstance(max_tokens, int) else max_tokens

        async def search(limit: int) -> Retrieval:
            """What a query finds, reranked and with its chains where that is asked for."""
            return await self._searcher.search(asked(query, {"limit": limit, **fields}, self._parts.settings))

        return await self._searcher.filled(search, budget, format, WindowBuilder(once="limit" in fields))

    async def explain(
        self, /, query: str | Query, max_tokens: int | Budget, *, document: str | None = None, **fields: Any
    ) -> ContextWindow:
        """A window whose trace also has the chunks of one document, whether they were found or not."""
        stored = None if document is None else (await self._sight.document(document))[0]
        budget = Budget(max_tokens) if isinstance(max_tokens, int) else max_tokens
        everything = {"limit": self._parts.settings.max_limit, **fields}
        found = await self._searcher.search(asked(query, everything, self._parts.settings), also=stored)
        ranked = {hit.document.id for hit in (*found.hits, *found.below_min_similarity)}
        if stored is not None and stored.id not in ranked:
            why = "the filter leaves it out" if stored.chunks else "it has no text"
            found = replace(found, notices=(*found.notices, f"{stored.id} was not ranked: {why}"))
        return build_window(found, budget, renderer_named("text"), self._parts.counter(budget.tokenizer))

    async def hits(self, chunks: Sequence[int]) -> Sequence[Hit]:
        """Chunks found before, by their ids, as hits without scores; what is gone or hidden is left out."""
        found = await self._sight.passages(chunks)
        return [Hit(each.chunk, each.document, 0.0, {}, None, None) for each in found]

    async def rerank(self, query: str, hits: Sequence[Hit], *, limit: int = 5) -> Reranking:
        """The hits that answer the question best by the reranker of the settings, with their relevance.

        Without one, or where it fails, the first in the order given, without relevance and with a notice.
        """
        with asking(self._person.id):
            return await reranked(query, hits, self._parts.reranker, limit=limit)

    async def search_and_rerank(
        self, /, query: str | Query, *, candidates: int = 50, limit: int = 5, **fields: Any
    ) -> Reranking:
        """Look broadly, then let the reranker choose; falls back as `rerank` does."""
        found = await self.retrieve(query, **{"limit": candidates, **fields, "rerank": False})
        return await self.rerank(_text(query), found.hits, limit=limit)

    async def augment(
        self,
        /,
        query: str | Query,
        max_tokens: int | Budget,
        *,
        min_similarity: float = MIN_SIMILARITY,
        **fields: Any,
    ) -> ContextWindow:
        """The window over everything that can be seen, without what is less similar than `min_similarity`."""
        given = {"collection": EVERYWHERE, "min_similarity": min_similarity, **fields}
        return await self.window(query, max_tokens, **given)


def _text(query: str | Query) -> str:
    return query.text if isinstance(query, Query) else query


def _with_highest(query: Query, found: Retrieval) -> Retrieval:
    """What was found, with a notice of the highest similarity if all of it is below the minimum."""
    known = [hit.similarity for hit in found.below_min_similarity if hit.similarity is not None]
    if found.hits or not known:
        return found
    lowest = found.plan.get("min_similarity", query.min_similarity)
    notice = f"everything is below the minimum similarity {lowest}; the highest is {max(known):.2f}"
    return replace(found, notices=(*found.notices, notice))
