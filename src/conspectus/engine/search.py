"""Search: the pipeline of one user, and the service that returns hits and context windows."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Unpack
from uuid import uuid4

import numpy as np

from conspectus.access.graph_reader import visible_graphs
from conspectus.access.policy import at_least, require_own_origin, require_scope
from conspectus.access.reader import CollectionAccess
from conspectus.engine.context import STOPPED, EngineContext, Service
from conspectus.engine.graph_access import connections
from conspectus.engine.windows import WindowBuilder, WindowMaker, window_budget
from conspectus.errors import Conflict, InvalidInput, NotFound, ProviderError, require_range
from conspectus.graph.expansion import GraphCandidates
from conspectus.ingest.sensitive import stored_form
from conspectus.memory.documents import as_of_filter
from conspectus.model.access import AuditEntry, User
from conspectus.model.filter import EVERYTHING, And, Filter, Not, document_row, matches, with_min_trust
from conspectus.model.ids import ChunkId, CollectionId, SourceId, UserId
from conspectus.model.query import (
    EVERYWHERE,
    Budget,
    Query,
    QueryContext,
    QueryOptions,
    QueryWindowOptions,
    WindowForm,
)
from conspectus.model.records import Document, EmbeddingSpace, StoredChunk
from conspectus.model.results import (
    ContextWindow,
    ExplanationAs,
    Feedback,
    FeedbackPage,
    Hit,
    MissingGrant,
    Reranking,
    Retrieval,
)
from conspectus.model.trust import MinTrust
from conspectus.ports import Embedder, Index
from conspectus.ports.jobs import on_behalf_of
from conspectus.retrieval.chains import ChainReader, with_chains
from conspectus.retrieval.feedback import feedback_on
from conspectus.retrieval.merge import merge_retrievals
from conspectus.retrieval.pipeline import search
from conspectus.retrieval.profiles import profile_by_name
from conspectus.retrieval.query_checks import checked_query
from conspectus.retrieval.ranking import SearchContext
from conspectus.retrieval.ranking_context import RankingContext
from conspectus.retrieval.reranking import rerank_best, rerank_hits
from conspectus.retrieval.selection import above_min_confidence, with_highest_similarity
from conspectus.text.clean import clean, sentences
from conspectus.window.build import WindowOptions, window_form
from conspectus.window.cost_estimate import Focus
from conspectus.window.stable import Previous, previous_of

MIN_CANDIDATES = 50
RERANKED = 5
FULL = 0.95
MIN_SIMILARITY = 0.25
"""The minimum similarity: unrelated texts rarely have a higher one with the shipped model."""

MAX_SENTENCES = 64
"""Number of sentences of a hit that are compared with the query if they share no term with it."""

FITTED = 20
"""Maximum number of candidates for which the necessary budget is computed."""
MAX_JUDGED = 1_000
"""Maximum number of chunks in a call, and of feedback in a page."""
SEE_AS = "see as another user"
NO_VECTORS = "the collection has no vectors, or no embedder for them"


class Searcher:
    """The search pipeline of one user: retrieve, rerank, add reply chains, fill a context window."""

    def __init__(self, context: EngineContext, asker: UserId | None = None) -> None:
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._asker = asker or context.person.id
        """The user in the log of model provider requests."""
        self._authorized = context.authorized
        self.windows = WindowMaker(context, self._asker)

    async def search(self, query: Query, also: Document | None = None) -> Retrieval:
        """Run a query. The chunks of `also` are ranked even if no retriever returns them."""
        with on_behalf_of(self._asker):
            found = await self._find(query, also)
            return await self.finish(query, with_highest_similarity(query, found))

    async def with_below_min_trust(self, found: Retrieval, query: Query, level: MinTrust) -> Retrieval:
        """Add the hits that only the minimum level excludes."""
        below = And((Not(with_min_trust(EVERYTHING, level)), query.filter))
        hits = (await self._find(replace(query, filter=below), None)).hits
        return replace(found, below_min_trust=hits, plan={**found.plan, "min_trust": level})

    async def finish(self, query: Query, found: Retrieval) -> Retrieval:
        """Apply the minimum confidence, rerank, and add reply chains, as the query asks."""
        found = above_min_confidence(query, found)
        found = await self._rerank(query, found) if query.rerank else found
        return await self._with_chains(query, found) if query.thread_messages else found

    async def search_collection(
        self,
        query: Query,
        access: CollectionAccess,
        also: Document | None = None,
        ranking: RankingContext | None = None,
        *,
        alone: bool = False,
        graphs: Sequence[SourceId] = (),
    ) -> Retrieval:
        """Return the hits of one collection. `graphs` are expanded besides those of the query."""
        start = perf_counter()
        opened = await self._core.open_indexes.current(access.collection)
        updated = {"index_update": (perf_counter() - start) * 1_000}
        filter = await self._version_filter(query, access)
        embedder = await self._embedder(opened.space if "vector" in query.retrievers else None)
        context = SearchContext(
            collection=access.collection,
            index=opened.index,
            refreshed=self._newest_index(access),
            hydrate=self._authorized.rows(access),
            embedder=embedder or NO_VECTORS,
            filter=access.narrowed(filter),
            sources=access.counted_sources(query.filter),
            ranking_context=ranking,
            alone=alone,
            query=query.query,
            graph=query.graph,
            connections=await self._connections(query, access, graphs, where=filter),
            feedback=await self._core.feedback.on(access.collection, opened.space),
        )
        found = await search(query, context, requested=await self._chunks(access, also))
        found = replace(found, timings={**updated, **found.timings})
        return await self._with_notice(found, query, access, opened.space)

    async def fill_window(
        self,
        search: Callable[[int], Awaitable[Retrieval]],
        budget: Budget,
        form: WindowForm,
        how: WindowBuilder,
    ) -> ContextWindow:
        """Build a window with as many hits as fill it, once if it begins with a previous one."""
        options = replace(how.options, parts=form.parts)
        once = how.once or bool(options.previous and options.previous.hits)
        maximum = self._parts.settings.max_limit
        limit = min(max(MIN_CANDIDATES, budget.max_tokens // how.each), maximum)
        while True:
            found = await search(limit)
            start = perf_counter()
            window = await self.windows.make(found, budget, form.format, options)
            took = {"pack_and_render": (perf_counter() - start) * 1_000}
            own = sum(hit.along_with is None for hit in found.hits)
            enough = window.tokens >= FULL * window.max_tokens or own < limit
            if enough or once or limit == maximum:
                near = await self._nearest(found, window)
                if near:
                    found = replace(found, nearest=near)
                    window = await self.windows.make(found, budget, form.format, options)
                return replace(window, timings={**window.timings, **took})
            limit = min(4 * limit, maximum)

    async def previous(self, state: str | None, query: Query) -> Previous | None:
        """Return the window with a state, with those of its chunks that the query allows."""
        if not state:
            return None
        access = (
            None if query.collection == EVERYWHERE else await self._authorized.collection(query.collection)
        )
        filter = with_min_trust(And((as_of_filter(query.as_of), query.filter)), query.min_trust)

        def allowed(found: StoredChunk) -> bool:
            document = found.document
            here = access is None or document.collection == access.collection.id
            return here and matches(filter, document_row(document, found.chunk.position))

        return await self.previous_where(state, allowed)

    async def previous_where(
        self,
        state: str,
        allowed: Callable[[StoredChunk], bool],
        shown: Callable[[Hit], Hit] = lambda hit: hit,
    ) -> Previous:
        """Return the window with a state, with the chunks that are allowed, as they are to be shown."""
        before = previous_of(state)
        found = await self._authorized.passages(before.chunks) if before.groups else []
        return before.with_chunks(found, allowed, shown)

    async def _nearest(self, found: Retrieval, window: ContextWindow) -> dict[int, tuple[float, ...]]:
        """Return similarities of the sentences of truncated hits that share no term with the query."""
        cut = {entry.chunk for entry in window.trace if entry.status == "truncated"}
        near: dict[int, tuple[float, ...]] = {}
        for hit in found.hits:
            asked = found.terms.get(hit.document.collection)
            if hit.chunk.id not in cut or asked is None or asked.vector is None or asked.space is None:
                continue
            spans = list(sentences(hit.chunk.text))[:MAX_SENTENCES]
            embedder = await self._parts.embedder_for(asked.space)
            if embedder is None or len(spans) < 2 or Focus(found.terms).sentences(hit):
                continue
            try:
                vectors = await embedder.embed_documents([hit.chunk.text[slice(*span)] for span in spans])
            except ProviderError:
                continue
            near[hit.chunk.id] = tuple((vectors @ np.asarray(asked.vector, dtype=np.float32)).tolist())
        return near

    async def _rerank(self, query: Query, found: Retrieval) -> Retrieval:
        if self._parts.reranker is None:
            return found
        start = perf_counter()
        found = await rerank_best(query.query, found, self._parts.reranker)
        return replace(found, timings={**found.timings, "rerank": (perf_counter() - start) * 1_000})

    async def _with_chains(self, query: Query, found: Retrieval) -> Retrieval:
        """Add ancestors and replies to hits."""
        authorized, maximum = self._authorized, self._parts.settings.max_thread_chunks
        start = perf_counter()
        reading = ChainReader(
            authorized.threaded, authorized.beginnings, authorized.passages, query.filter, maximum
        )
        found = await with_chains(found, reading, maximum=query.thread_messages)
        return replace(found, timings={**found.timings, "chains": (perf_counter() - start) * 1_000})

    async def _find(self, query: Query, also: Document | None) -> Retrieval:
        if query.collection == EVERYWHERE:
            return await self._find_everywhere(query, also)
        access = await self._authorized.collection(query.collection)
        ranking = await self._ranking(query.query_context, [access])
        return await self.search_collection(query, access, also, ranking)

    async def _find_everywhere(self, query: Query, also: Document | None) -> Retrieval:
        """Return the best hits of all collections. A failed model provider is named in a notice."""
        accesses = await self._authorized.collections()
        ranking = await self._ranking(query.query_context, accesses)
        spaces = {access.collection.space for access in accesses}
        embedded = {space: await self.embed_query(query, space) for space in spaces}
        found: list[Retrieval] = []
        failed: dict[str, ProviderError] = {}
        for access in accesses:
            asked = embedded[access.collection.space]
            try:
                found.append(await self.search_collection(asked, access, also, ranking))
            except ProviderError as fault:
                failed[access.collection.name] = fault
        if failed and not found:
            raise next(iter(failed.values()))
        whole = merge_retrievals(query, found, comparable=len(spaces) == 1)
        notices = (f"collection {name} was not searched: {fault}" for name, fault in failed.items())
        return replace(whole, notices=(*whole.notices, *notices))

    async def embed_query(self, query: Query, space: EmbeddingSpace | None) -> Query:
        """Embed the query for a model, to be used for many collections."""
        embedder = await self._embedder(space)
        if (
            embedder is None
            or query.vector is not None
            or "vector" not in query.retrievers
            or not query.query.strip()
        ):
            return query
        try:
            return replace(query, vector=tuple(map(float, await embedder.embed_query(query.query))))
        except ProviderError:
            return query

    async def _ranking(
        self, query_context: QueryContext | None, accesses: Sequence[CollectionAccess]
    ) -> RankingContext | None:
        """Return the query context with its channel, if the user may read it. Raises NotFound."""
        if query_context is None:
            return None
        profile = profile_by_name(query_context.profile)
        at = query_context.at or self._parts.clock()
        if query_context.channel is None:
            return RankingContext(profile, at)
        sources = [await self._authorized.source(access, query_context.channel) for access in accesses]
        channel = frozenset(source.id for source in sources if source is not None)
        if not channel:
            raise NotFound("channel", query_context.channel)
        thread = query_context.thread
        for access in accesses:
            thread = stored_form(
                self._parts.settings.sensitive, "documents.thread", thread, access.collection.id
            )
        return RankingContext(profile, at, channel, thread)

    async def _embedder(self, space: EmbeddingSpace | None) -> Embedder | None:
        return None if space is None else await self._parts.embedder_for(space)

    def _newest_index(self, access: CollectionAccess) -> Callable[[], Awaitable[Index]]:
        async def newest() -> Index:
            return (await self._core.open_indexes.newest(access.collection.id)).index

        return newest

    async def _chunks(self, access: CollectionAccess, document: Document | None) -> list[ChunkId]:
        if document is None or document.collection != access.collection.id:
            return []
        chunks = await self._authorized.chunks(document)
        return [stored.chunk.id for stored in chunks[: self._parts.settings.max_limit]]

    async def _connections(
        self, query: Query, access: CollectionAccess, graphs: Sequence[SourceId], *, where: Filter
    ) -> GraphCandidates | None:
        if query.graph is None:
            return None
        named = await visible_graphs(self._authorized, access, where, query.graph.graphs)
        all_of_them = list(dict.fromkeys((*graphs, *named)))
        return await connections(
            self._core,
            access,
            all_of_them,
            where=where,
            as_of=query.as_of,
            min_trust=query.min_trust,
        )

    async def _with_notice(
        self, found: Retrieval, query: Query, access: CollectionAccess, space: EmbeddingSpace | None
    ) -> Retrieval:
        """Add a notice if vector search is incomplete among the documents that the query concerns."""
        problem = self._core.backfill.of(access.collection.id).error
        if problem is not None:
            said = str(problem) if access.sees_all else STOPPED
            return replace(found, notices=(*found.notices, said))
        asks = query.vector is not None or bool(query.query.strip())
        if space is None or "vector" not in query.retrievers or not asks:
            return found
        asked = access.narrowed(query.filter)
        notice = await self._core.missing_vectors.notice_among(access.collection, asked)
        return found if notice is None else replace(found, notices=(*found.notices, notice))

    async def _version_filter(self, query: Query, access: CollectionAccess) -> Filter:
        """Return the filter of the query with that of `as_of`; without it, only current versions match."""
        if query.as_of is None and not await self._core.versions.are_in(access.collection):
            return query.filter
        return And((as_of_filter(query.as_of), query.filter))


class SearchService(Service):
    """Search: hits, context windows, and explanations."""

    def __init__(self, context: EngineContext, searcher: Searcher) -> None:
        super().__init__(context)
        self._searcher = searcher

    async def retrieve(self, /, query: str | Query, **options: Unpack[QueryOptions]) -> Retrieval:
        """Search a collection and return the best chunks, each with the parts of its score.

        The options are the fields of Query; the collection `*` means all that you may read. Raises NotFound
        for an unknown collection.
        """
        return await self._searcher.search(checked_query(query, options, self._parts.settings))

    async def window(
        self,
        /,
        query: str | Query,
        max_tokens: int | Budget,
        **options: Unpack[QueryWindowOptions],
    ) -> ContextWindow:
        """Build a context window for a query: text within the token budget, with citations and trace.

        The options are the fields of Query and WindowForm. Unless `limit` is given, as many hits are
        retrieved as it takes to fill the budget.
        """
        budget = window_budget(max_tokens, self._parts.settings)
        form, given = window_form(options, QueryOptions)
        asked = checked_query(query, given, self._parts.settings)
        before = await self._searcher.previous(form.previous, asked)

        async def search(limit: int) -> Retrieval:
            return await self._searcher.search(
                checked_query(query, {"limit": limit, **given}, self._parts.settings)
            )

        how = WindowBuilder(once="limit" in given, options=WindowOptions(previous=before))
        window = await self._searcher.fill_window(search, budget, form, how)
        return replace(window, query=clean(query.query if isinstance(query, Query) else query))

    async def explain(
        self,
        /,
        query: str | Query,
        max_tokens: int | Budget,
        *,
        document: str | None = None,
        fits_from: bool = False,
        previous: str | None = None,
        **options: Unpack[QueryOptions],
    ) -> ContextWindow:
        """Build a window whose trace also covers the chunks of one document, found or not.

        The `parts` of the window divide the whole budget. With `fits_from`, the first 20 candidates that the
        budget leaves out or cuts, or those of the document, say from which budget on they are in it. With
        `previous`, the `state` of an earlier window, it begins with what is still allowed of that window.
        """
        budget = window_budget(max_tokens, self._parts.settings)
        stored = None if document is None else (await self._authorized.document(document))[0]
        asked = self._max_query(query, options)
        found = await self._searcher.search(asked, also=stored)
        if asked.min_trust is not None:
            wide = self._max_query(query, {**options, "min_trust": None})
            found = await self._searcher.with_below_min_trust(found, wide, asked.min_trust)
        below = (*found.below_min_confidence, *found.below_min_similarity, *found.below_min_trust)
        if stored is not None and stored.id not in {hit.document.id for hit in (*found.hits, *below)}:
            why = "the filter leaves it out" if stored.chunks else "it has no text"
            found = replace(found, notices=(*found.notices, f"{stored.id} was not ranked: {why}"))
        maximum = self._parts.settings.max_limit
        if stored is not None and stored.chunks > maximum:
            why = f"only the first {maximum} of {stored.chunks} chunks of {stored.id} are ranked in any case"
            found = replace(found, notices=(*found.notices, why))
        before = await self._searcher.previous(previous, asked)
        shown = replace(self._explanation, fits_from=FITTED * fits_from, document=document, previous=before)
        return await self._searcher.windows.make(found, budget, "text", shown)

    async def explain_as(
        self, /, query: str | Query, max_tokens: int | Budget, *, user: str, **options: Unpack[QueryOptions]
    ) -> ExplanationAs:
        """Explain a query to a collection as another user, with the grants for what only you can see.

        Only managers of the whole collection may. Each call is noted in the audit log before it is answered.
        Raises NotFound, PermissionDenied, or Conflict for a user who is disabled.
        """
        budget = window_budget(max_tokens, self._parts.settings)
        asked = self._max_query(query, options)
        access = await self._authorized.collection(asked.collection)
        require_scope(self._person, "admin", SEE_AS)
        require_own_origin(self._person, SEE_AS)
        access.require("manager", SEE_AS)
        whom = await self._other(user)
        asked = replace(asked, collection=access.collection.id)
        here, now = access.collection.id, self._parts.clock()
        text = self._context.screened("audit.query", asked.query, here)
        await self._parts.accounts.add_audit(
            AuditEntry(str(uuid4()), self._person.id, whom.id, here, text, now)
        )
        found = await self._searcher.search(asked)
        own = await self._searcher.windows.make(found, budget, "text", self._explanation)
        theirs = self._context.as_person(whom.person)
        try:
            found = await Searcher(theirs, self._person.id).search(asked)
        except NotFound as fault:
            found = Retrieval("no_match", (), notices=(str(fault),))
        seen = await theirs.authorized.find(access.collection.id)
        grants = await self._missing_grants(access, seen, own)
        seen_window = await self._searcher.windows.make(found, budget, "text", self._explanation)
        return ExplanationAs(whom.id, seen_window, own, grants)

    async def feedback(
        self, window: ContextWindow, *, used: Sequence[int] = (), wrong: Sequence[int] = ()
    ) -> Sequence[Feedback]:
        """Judge passages of a window by their numbers, as `add_feedback` does.

        Raises InvalidInput for a number that the window does not have.
        """
        chunks = {each.number: each.chunks for each in window.citations}
        judged: dict[str, list[int]] = {"used": [], "wrong": []}
        for name, numbers in (("used", used), ("wrong", wrong)):
            for number in numbers:
                if number not in chunks:
                    raise InvalidInput(name, f"the window has no passage [{number}]")
                judged[name] += chunks[number]
        return await self.add_feedback(window.query, used=judged["used"], wrong=judged["wrong"])

    async def add_feedback(
        self, query: str, *, used: Sequence[int] = (), wrong: Sequence[int] = ()
    ) -> Sequence[Feedback]:
        """Say which chunks were used to answer a query, and which were wrong, to move similar queries.

        The part `feedback` of later scores follows from it, for everyone. It replaces your earlier feedback
        on the same chunk and query. It needs the role editor on the source of each chunk. Raises NotFound for
        a chunk.
        """
        require_scope(self._person, "write", "give feedback")
        require_own_origin(self._person, "give feedback")
        asked = checked_query(query, {}, self._parts.settings).query.strip()
        if not asked:
            raise InvalidInput("query", "has no text")
        if not 1 <= len({*used, *wrong}) <= MAX_JUDGED:
            raise InvalidInput("used", f"must name from 1 to {MAX_JUDGED} chunks, together with `wrong`")
        if both := {*used} & {*wrong}:
            raise InvalidInput("wrong", f"chunk {min(both)} is also in `used`")
        rows = await self._authorized.editable(list(dict.fromkeys((*used, *wrong))), "give feedback")
        user, now = self._person.id, self._parts.clock()
        given = [feedback_on(row, asked, user, used=row.chunk.id in used, now=now) for row in rows]
        for collection in dict.fromkeys(each.collection for each in given):
            space, vector = await self._query_vector(asked, collection)
            text = self._context.screened("feedback.query", asked, collection)
            mine = [replace(row, query=text) for row in given if row.collection == collection]
            await self._parts.feedback.add(mine, space=space, vector=vector)
        return given

    async def list_feedback(
        self, *, collection: str = "default", after: str | None = None, limit: int = 100
    ) -> FeedbackPage:
        """List your feedback in a collection, newest first; managers of all of it see everyone's."""
        require_range("limit", limit, 1, self._parts.settings.max_page_rows)
        access = await self._authorized.collection(collection)
        return await self._parts.feedback.list(
            access.collection.id,
            user=None if _manages(access) else self._person.id,
            sources=None if access.sees_all else tuple(access.roles.sources),
            after=after,
            limit=limit,
        )

    async def revoke_feedback(self, feedback: str) -> None:
        """Delete your feedback; managers of the whole collection may delete anyone's. Raises NotFound."""
        require_scope(self._person, "write", "revoke feedback")
        require_own_origin(self._person, "revoke feedback")
        found = await self._parts.feedback.get(feedback)
        access = None if found is None else await self._authorized.find(found.collection)
        own = found is not None and found.user == self._person.id
        if not own and (access is None or not _manages(access)):
            raise NotFound("feedback", feedback)
        await self._parts.feedback.delete(feedback)

    async def get_hits(self, chunks: Sequence[int]) -> Sequence[Hit]:
        """Return chunks by id as hits without scores; unknown ids are left out."""
        found = await self._authorized.passages(chunks)
        return [Hit(each.chunk, each.document, 0.0, {}, None, None) for each in found]

    async def rerank(self, query: str, hits: Sequence[Hit], *, limit: int = RERANKED) -> Reranking:
        """Rerank hits with the reranker of the settings, and return the best with their relevance.

        Without a reranker, or if it fails, returns the first hits in the given order, without relevance and
        with a notice.
        """
        with on_behalf_of(self._person.id):
            return await rerank_hits(query, hits, self._parts.reranker, limit=limit)

    async def search_and_rerank(
        self, /, query: str | Query, *, candidates: int = 50, **options: Unpack[QueryOptions]
    ) -> Reranking:
        """Retrieve candidates and rerank them, by default the best 5; falls back as `rerank` does."""
        limit = options.get("limit", RERANKED)
        broad: QueryOptions = {**options, "limit": candidates, "rerank": False}
        found = await self.retrieve(query, **broad)
        return await self.rerank(query.query if isinstance(query, Query) else query, found.hits, limit=limit)

    async def augment(
        self, /, query: str | Query, max_tokens: int | Budget, **options: Unpack[QueryWindowOptions]
    ) -> ContextWindow:
        """Build a window from all collections, of hits with at least `min_similarity`, by default 0.25."""
        given: QueryWindowOptions = {"collection": EVERYWHERE, "min_similarity": MIN_SIMILARITY, **options}
        return await self.window(query, max_tokens, **given)

    async def _query_vector(self, query: str, collection: CollectionId) -> tuple[str | None, bytes | None]:
        """Return the space and the vector of a query; None without an embedding model, or if it fails."""
        space = (await self._authorized.collection(collection)).collection.space
        asked = await self._searcher.embed_query(Query(query), space)
        if space is None or asked.vector is None:
            return None, None
        return space.name, np.asarray(asked.vector, dtype="<f2").tobytes()

    def _max_query(self, query: str | Query, options: QueryOptions) -> Query:
        """Return the query with the highest limit, unless one is given."""
        settings = self._parts.settings
        return checked_query(query, {"limit": settings.max_limit, **options}, settings)

    @property
    def _explanation(self) -> WindowOptions:
        return WindowOptions(parts=True, max_fitting_tokens=self._parts.settings.max_window_tokens)

    async def _other(self, user: str) -> User:
        found = await self._parts.accounts.user(user)
        if found is None:
            raise NotFound("user", user)
        if found.disabled:
            raise Conflict("user", user, "is disabled and sees nothing")
        return found

    async def _missing_grants(
        self, access: CollectionAccess, seen: CollectionAccess | None, window: ContextWindow
    ) -> tuple[MissingGrant, ...]:
        """Return the sources with candidates that another user may not read, most passages first."""
        counted = Counter(each.source for each in window.trace)
        shown = Counter(each.source for each in window.trace if each.status in {"included", "truncated"})
        sources = await self._authorized.sources_by_name(access, list(counted))
        hidden = [each for each in sources if each.id in counted and not (seen and seen.visible([each]))]
        grants = (
            MissingGrant(each.id, each.name, "viewer", counted[each.id], shown[each.id]) for each in hidden
        )
        return tuple(
            sorted(grants, key=lambda grant: (-grant.passages, -grant.candidates, grant.source_name))
        )


def _manages(access: CollectionAccess) -> bool:
    """Return whether the user manages the whole collection."""
    return at_least(access.roles.collection, "manager")
