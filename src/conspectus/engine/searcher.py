"""The search pipeline of one user: from a query to hits, and to a context window."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.graph_reader import visible_graphs
from conspectus.engine.context import EMBEDDING_STOPPED, EngineContext
from conspectus.engine.document_relations import RelationReader
from conspectus.engine.graph_access import graph_candidates
from conspectus.engine.windows import WindowMaker, WindowPlan, window_budget
from conspectus.errors import NotFound, ProviderError
from conspectus.graph.expansion import GraphCandidates
from conspectus.ingest.document_fields import message_id
from conspectus.ingest.sensitive import mask_for_lookup
from conspectus.memory.documents import as_of_filter
from conspectus.model.experiments import with_default_options
from conspectus.model.filter import EVERYTHING, And, Filter, In, Not, document_row, matches, with_min_trust
from conspectus.model.ids import ChunkId, DocumentId, SourceId, UserId
from conspectus.model.query import (
    EVERYWHERE,
    Budget,
    Query,
    QueryContext,
    QueryOptions,
    QueryWindowOptions,
    WindowForm,
    WindowTokens,
)
from conspectus.model.records import Document, EmbeddingSpace, StoredChunk
from conspectus.model.results import (
    ContextWindow,
    Hit,
    Retrieval,
)
from conspectus.model.trust import MinTrust
from conspectus.ports import Embedder, Index
from conspectus.ports.jobs import on_behalf_of
from conspectus.retrieval.chains import ChainReader, with_chains
from conspectus.retrieval.merge import merge_retrievals
from conspectus.retrieval.pipeline import search
from conspectus.retrieval.plan import REMOTE_CHECK_ENTRY
from conspectus.retrieval.profiles import profile_by_name
from conspectus.retrieval.query_checks import check_query
from conspectus.retrieval.ranking import SearchContext
from conspectus.retrieval.ranking_context import RankingContext
from conspectus.retrieval.requests import request_subject
from conspectus.retrieval.reranking import rerank_best
from conspectus.retrieval.selection import above_min_confidence, with_highest_similarity
from conspectus.retrieval.successor_hits import missing_successors, with_successors_first
from conspectus.text.clean import clean
from conspectus.text.tables import sentences_and_rows, tables_in
from conspectus.window.build import WindowOptions, window_form
from conspectus.window.focus import Focus
from conspectus.window.stable import Previous, previous_of

MIN_CANDIDATES = 50
"""Minimum number of hits that are retrieved for a window."""
FULL_SHARE = 0.95
"""A window is full if it has at least this fraction of its tokens."""
MAX_SENTENCES = 64
"""Number of sentences of a hit that are compared with the query if they share no term with it."""
MAX_NAMED_MESSAGES = 100
"""Maximum number of messages of the thread that a query names that are candidates in any case."""
DEFAULT_COLLECTION = "default"
"""The collection of a query that names none; the first document that is added makes it."""
NOTHING_ADDED = "nothing that you may read has been added yet"
ONLY_ELSEWHERE = "nothing that you may read is in the collection 'default'; other collections: {}"
MAX_NAMED_COLLECTIONS = 5
NO_HITS_WANTED = "limit is 0: no hit is returned"
NO_VECTORS = "the collection has no vectors, or no embedder for them"


class Searcher:
    """The search pipeline of one user: retrieve, rerank, add reply chains, fill a context window."""

    def __init__(
        self, context: EngineContext, billed_user: UserId | None = None, *, uses_defaults: bool = True
    ) -> None:
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._billed_user = billed_user or context.person.id
        """The user in the log of model provider requests."""
        self._uses_defaults = uses_defaults
        """Whether the defaults of a collection apply to its queries."""
        self._authorized = context.authorized
        self.windows = WindowMaker(context, self._billed_user)
        self._relations = RelationReader(context.authorized)

    async def search(self, query: Query, requested: Document | None = None) -> Retrieval:
        """Run a query. The chunks of a `requested` document are ranked even if no retriever returns them."""
        with on_behalf_of(self._billed_user):
            access = await self._find_access(query)
            if access is not None and access.collection.retrieval is not None and self._uses_defaults:
                query = with_default_options(query, access.collection.retrieval.options)
            retrieval = await self._retrieve(query, requested, access)
            if query.limit == 0:
                retrieval = replace(retrieval, notices=(*retrieval.notices, NO_HITS_WANTED))
            retrieval = await self.finish(query, with_highest_similarity(query, retrieval))
            return await self._relations.mark_hits(retrieval)

    async def search_with_successors(self, query: Query, requested: Document | None = None) -> Retrieval:
        """Run a query for a window: before the hits of a superseded document, one of its successor."""
        retrieval = await self.search(query, requested)
        if not any(hit.superseded_by for hit in retrieval.hits):
            return retrieval
        missing = missing_successors(retrieval.hits)
        if not missing:
            return with_successors_first(retrieval, {})
        start = perf_counter()
        with on_behalf_of(self._billed_user):
            hits = await self._hits_of(query, missing)
        retrieval = with_successors_first(retrieval, {hit.document.id: hit for hit in reversed(hits)})
        took = (perf_counter() - start) * 1_000
        return replace(retrieval, timings={**retrieval.timings, "successors": took})

    async def _hits_of(self, query: Query, documents: Sequence[DocumentId]) -> Sequence[Hit]:
        """Return hits of documents, best first, as far as the filters of a query allow them."""
        only = replace(
            query,
            filter=And((query.filter, In("document", tuple(documents)))),
            limit=MIN_CANDIDATES,
            min_similarity=None,
            graph=None,
            query_context=None,
        )
        ranked = (await self._retrieve(only, None, await self._find_access(query))).hits
        ranked_documents = {hit.document.id for hit in ranked}
        allowed = with_min_trust(And((as_of_filter(query.as_of), query.filter)), query.min_trust)
        beginnings = [
            Hit(row.chunk, row.document, 0.0, {}, None, None)
            for row in await self._authorized.beginnings(documents)
            if row.document.id not in ranked_documents
            and matches(allowed, document_row(row.document, row.chunk.position))
        ]
        marked = await self._relations.mark([*ranked, *beginnings])
        return [marked.get(hit.chunk.id, hit) for hit in (*ranked, *beginnings)]

    async def with_below_min_trust(self, retrieval: Retrieval, query: Query, level: MinTrust) -> Retrieval:
        """Add the hits that only the minimum level excludes."""
        below = And((Not(with_min_trust(EVERYTHING, level)), query.filter))
        below_query = replace(query, filter=below)
        hits = (await self._retrieve(below_query, None, await self._find_access(query))).hits
        return replace(retrieval, below_min_trust=hits, plan={**retrieval.plan, "min_trust": level})

    async def finish(self, query: Query, retrieval: Retrieval) -> Retrieval:
        """Apply the minimum confidence, rerank, and add reply chains, as the query asks."""
        retrieval = above_min_confidence(query, retrieval)
        if query.rerank:
            retrieval = await self._rerank(query, retrieval)
        if query.thread_messages:
            retrieval = await self._with_chains(query, retrieval)
        return retrieval

    async def search_collection(
        self,
        query: Query,
        access: CollectionAccess,
        requested: Document | None = None,
        ranking: RankingContext | None = None,
        *,
        alone: bool = False,
        graphs: Sequence[SourceId] = (),
    ) -> Retrieval:
        """Return the hits of one collection. `graphs` are expanded besides those of the query.

        Where remotes are asked, a first search finds the best documents, and a second one leaves out all that
        the person may not open now: no count, score or path of it tells of them.
        """
        if not access.roles.verified:
            return await self._search_readable(query, access, requested, ranking, alone=alone, graphs=graphs)
        embedded = await self.embed_query(query, access.collection.space)
        limit = max(query.limit, self._authorized.gate.max_documents)
        candidates = await self._search_readable(
            replace(embedded, limit=limit), access, requested, ranking, alone=alone, graphs=graphs
        )
        start = perf_counter()
        best = [hit.document for hit in candidates.hits]
        answer = await self._authorized.gate.check_best([*([] if requested is None else [requested]), *best])
        took = (perf_counter() - start) * 1_000
        openable = access.restrict_to_unverified(answer.documents)
        embedded = replace(embedded, filter=And((embedded.filter, openable)))
        retrieval = await self._search_readable(
            embedded, access, requested, ranking, alone=alone, graphs=graphs
        )
        return replace(
            retrieval,
            plan={**retrieval.plan, REMOTE_CHECK_ENTRY: "failed" if answer.failure else "done"},
            notices=(*retrieval.notices, *([answer.failure] if answer.failure else [])),
            timings={**retrieval.timings, "verify": took},
        )

    async def _search_readable(
        self,
        query: Query,
        access: CollectionAccess,
        requested: Document | None,
        ranking: RankingContext | None,
        *,
        alone: bool,
        graphs: Sequence[SourceId],
    ) -> Retrieval:
        """Return the hits of one collection; no remote is asked."""
        start = perf_counter()
        opened = await self._core.open_indexes.current(access.collection)
        update_timing = {"index_update": (perf_counter() - start) * 1_000}
        filter = await self._version_filter(query, access)
        if query.current:
            filter = await self._relations.restrict_to_current(access, filter)
        embedder = await self._embedder(opened.space if "vector" in query.retrievers else None)
        context = SearchContext(
            collection=access.collection,
            index=opened.index,
            refreshed=self._newest_index_reader(access),
            hydrate=self._authorized.rows(access),
            embedder=embedder or NO_VECTORS,
            filter=access.restrict_filter(filter),
            at=self._parts.clock() if ranking is None else ranking.at,
            sources=access.select_counted_sources(query.filter),
            ranking_context=ranking,
            thread_chunks=await self._thread_chunks(access, ranking),
            alone=alone,
            query=query.query,
            graph=query.graph,
            connections=await self._graph_candidates(query, access, graphs, where=filter),
            feedback=await self._core.feedback.on(access.collection, opened.space),
        )
        retrieval = await search(query, context, requested=await self._requested_chunks(access, requested))
        retrieval = replace(retrieval, timings={**update_timing, **retrieval.timings})
        return await self._with_coverage_notice(retrieval, query, access, opened.space)

    async def window(
        self, query: str | Query, max_tokens: WindowTokens, options: QueryWindowOptions
    ) -> tuple[Retrieval, ContextWindow]:
        """Return the hits of a query that fill a window, and the window.

        Unless `limit` is given, as many hits are retrieved as it takes to fill the budget.
        """
        settings = self._parts.settings
        budget = window_budget(max_tokens, settings)
        form, query_options = window_form(options, QueryOptions)
        index_query = check_query(query, query_options, settings)
        previous = await self.previous(form.previous, index_query)

        async def search(limit: int) -> Retrieval:
            return await self.search_with_successors(
                check_query(query, {"limit": limit, **query_options}, settings)
            )

        window_plan = WindowPlan(once="limit" in query_options, options=WindowOptions(previous=previous))
        retrieval, window = await self.retrieve_and_fill(search, budget, form, window_plan)
        return retrieval, replace(window, query=clean(query.query if isinstance(query, Query) else query))

    async def fill_window(
        self,
        search: Callable[[int], Awaitable[Retrieval]],
        budget: Budget,
        form: WindowForm,
        window_plan: WindowPlan,
    ) -> ContextWindow:
        """Build a window with as many hits as fill it, in one search if it begins with a previous window."""
        return (await self.retrieve_and_fill(search, budget, form, window_plan))[1]

    async def retrieve_and_fill(
        self,
        search: Callable[[int], Awaitable[Retrieval]],
        budget: Budget,
        form: WindowForm,
        window_plan: WindowPlan,
    ) -> tuple[Retrieval, ContextWindow]:
        """Return the hits that fill a window, and the window."""
        options = replace(window_plan.options, parts=form.parts)
        once = window_plan.once or bool(options.previous and options.previous.hits)
        maximum = self._parts.settings.max_limit
        limit = min(max(MIN_CANDIDATES, budget.max_tokens // window_plan.tokens_per_hit), maximum)
        while True:
            retrieval = await search(limit)
            start = perf_counter()
            window = await self.windows.make(retrieval, budget, form.format, options)
            packing_timing = {"pack_and_render": (perf_counter() - start) * 1_000}
            hit_count = sum(hit.along_with is None for hit in retrieval.hits)
            is_full = window.tokens >= FULL_SHARE * window.max_tokens
            if is_full or hit_count < limit or once or limit == maximum:
                similarities = await self._sentence_similarities(retrieval, window)
                if similarities:
                    retrieval = replace(retrieval, nearest=similarities)
                    window = await self.windows.make(retrieval, budget, form.format, options)
                return retrieval, replace(window, timings={**window.timings, **packing_timing})
            limit = min(4 * limit, maximum)

    async def previous(self, state: str | None, query: Query) -> Previous | None:
        """Return the window of a `state`, with those of its chunks that the query allows now."""
        if not state:
            return None
        access = None
        if query.collection != EVERYWHERE:
            access = await self._authorized.collection(query.collection)
        filter = with_min_trust(And((as_of_filter(query.as_of), query.filter)), query.min_trust)

        def is_allowed(row: StoredChunk) -> bool:
            document = row.document
            is_inside = access is None or document.collection == access.collection.id
            return is_inside and matches(filter, document_row(document, row.chunk.position))

        return await self.previous_where(state, is_allowed)

    async def previous_where(
        self,
        state: str,
        is_allowed: Callable[[StoredChunk], bool],
        prepare_hit: Callable[[Hit], Hit] = lambda hit: hit,
    ) -> Previous:
        """Return the window of a `state`, with the chunks that are allowed, each prepared as a hit.

        Chunks of documents that others supersede by now are left out; the query may add them again.
        """
        previous = previous_of(state)
        rows = await self._authorized.passages(previous.chunks) if previous.groups else []
        hits = [Hit(row.chunk, row.document, 0.0, {}, None, None) for row in rows]
        marked = await self._relations.mark(hits)
        superseded = {chunk for chunk, hit in marked.items() if hit.superseded_by}

        def is_kept(row: StoredChunk) -> bool:
            return row.chunk.id not in superseded and is_allowed(row)

        return previous.with_chunks(rows, is_kept, prepare_hit)

    async def _sentence_similarities(
        self, retrieval: Retrieval, window: ContextWindow
    ) -> dict[int, tuple[float, ...]]:
        """Return the similarities to the query of the sentences of truncated hits, by chunk.

        Only hits that share no term with the query need them: others are truncated around their terms.
        """
        truncated_chunks = {candidate.chunk for candidate in window.trace if candidate.status == "truncated"}
        similarities: dict[int, tuple[float, ...]] = {}
        for hit in retrieval.hits:
            query_terms = retrieval.terms.get(hit.document.collection)
            if hit.chunk.id not in truncated_chunks or query_terms is None:
                continue
            if query_terms.vector is None or query_terms.space is None:
                continue
            tables = tables_in(hit.chunk, hit.document.syntax)
            spans = list(sentences_and_rows(hit.chunk.text, tables))[:MAX_SENTENCES]
            embedder = await self._parts.embedder_for(query_terms.space)
            if embedder is None or len(spans) < 2 or Focus(retrieval.terms).sentences(hit):
                continue
            try:
                vectors = await embedder.embed_documents([hit.chunk.text[slice(*span)] for span in spans])
            except ProviderError:
                continue
            query_vector = np.asarray(query_terms.vector, dtype=np.float32)
            similarities[hit.chunk.id] = tuple((vectors @ query_vector).tolist())
        return similarities

    async def _rerank(self, query: Query, retrieval: Retrieval) -> Retrieval:
        if self._parts.reranker is None:
            return retrieval
        start = perf_counter()
        retrieval = await rerank_best(query.query, retrieval, self._parts.reranker)
        return replace(retrieval, timings={**retrieval.timings, "rerank": (perf_counter() - start) * 1_000})

    async def _with_chains(self, query: Query, retrieval: Retrieval) -> Retrieval:
        """Add ancestors and replies to hits."""
        authorized, maximum = self._authorized, self._parts.settings.max_thread_chunks
        start = perf_counter()
        reader = ChainReader(
            authorized.read_thread_of, authorized.beginnings, authorized.passages, query.filter, maximum
        )
        retrieval = await with_chains(retrieval, reader, maximum=query.thread_messages)
        return replace(retrieval, timings={**retrieval.timings, "chains": (perf_counter() - start) * 1_000})

    async def _find_access(self, query: Query) -> CollectionAccess | None:
        """Return the access to the collection of a query; None for all, and for one that is not readable."""
        return None if query.collection == EVERYWHERE else await self._authorized.find(query.collection)

    async def _retrieve(
        self, query: Query, requested: Document | None, access: CollectionAccess | None
    ) -> Retrieval:
        if query.collection == EVERYWHERE:
            return await self._retrieve_everywhere(query, requested)
        if access is None:
            if query.collection == DEFAULT_COLLECTION:
                return Retrieval("no_match", (), notices=(await self._explain_missing_default(),))
            raise NotFound("collection", query.collection)
        ranking = await self._make_ranking_context(query.query_context, [access])
        return await self.search_collection(query, access, requested, ranking)

    async def _explain_missing_default(self) -> str:
        """Return the notice of a search where there is no default collection, as where only tasks are."""
        names = sorted(access.collection.name for access in await self._authorized.collections())
        if not names:
            return NOTHING_ADDED
        more = ["…"] if len(names) > MAX_NAMED_COLLECTIONS else []
        return ONLY_ELSEWHERE.format(", ".join(names[:MAX_NAMED_COLLECTIONS] + more))

    async def _retrieve_everywhere(self, query: Query, requested: Document | None) -> Retrieval:
        """Return the best hits of all collections. A failed model provider is named in a notice."""
        accesses = await self._authorized.collections()
        ranking = await self._make_ranking_context(query.query_context, accesses)
        spaces = {access.collection.space for access in accesses}
        queries = {space: await self.embed_query(query, space) for space in spaces}
        retrievals: list[Retrieval] = []
        failed: dict[str, ProviderError] = {}
        for access in accesses:
            collection_query = queries[access.collection.space]
            try:
                retrievals.append(await self.search_collection(collection_query, access, requested, ranking))
            except ProviderError as fault:
                failed[access.collection.name] = fault
        if failed and not retrievals:
            raise next(iter(failed.values()))
        merged = merge_retrievals(query, retrievals, comparable=len(spaces) == 1)
        notices = (f"collection {name} was not searched: {fault}" for name, fault in failed.items())
        return replace(merged, notices=(*merged.notices, *notices))

    async def embed_query(self, query: Query, space: EmbeddingSpace | None) -> Query:
        """Return the query with its vector; without one if it needs none, or if the model provider fails."""
        embedder = await self._embedder(space)
        needs_vector = query.vector is None and "vector" in query.retrievers and bool(query.query.strip())
        if embedder is None or not needs_vector:
            return query
        try:
            vector = await embedder.embed_query(request_subject(query.query))
            return replace(query, vector=tuple(map(float, vector)))
        except ProviderError:
            return query

    async def _make_ranking_context(
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
            thread = mask_for_lookup(
                self._parts.settings.sensitive, "documents.thread", thread, access.collection.id
            )
        if thread is not None:
            thread = await self._resolve_thread(accesses, channel, thread)
        return RankingContext(profile, at, channel, thread)

    async def _resolve_thread(
        self, accesses: Sequence[CollectionAccess], channel: frozenset[SourceId], name: str
    ) -> str:
        """Return the name if it is that of a thread; else the thread of the message whose key it is.

        Platforms name a thread by its first message, which may itself answer a message of another thread.
        """
        message_ids = [message_id(source, name) for source in sorted(channel)]
        for access in accesses:
            if await self._authorized.read_thread(access, channel, name, limit=1):
                return name
        for access in accesses:
            for document in await self._authorized.inside(access, message_ids):
                if document.thread is not None:
                    return document.thread
        return name

    async def _embedder(self, space: EmbeddingSpace | None) -> Embedder | None:
        return None if space is None else await self._parts.embedder_for(space)

    def _newest_index_reader(self, access: CollectionAccess) -> Callable[[], Awaitable[Index]]:
        async def newest() -> Index:
            return (await self._core.open_indexes.newest(access.collection.id)).index

        return newest

    async def _requested_chunks(self, access: CollectionAccess, document: Document | None) -> list[ChunkId]:
        if document is None or document.collection != access.collection.id:
            return []
        chunks = await self._authorized.chunks(document)
        return [stored.chunk.id for stored in chunks[: self._parts.settings.max_limit]]

    async def _thread_chunks(
        self, access: CollectionAccess, ranking: RankingContext | None
    ) -> tuple[ChunkId, ...]:
        """Return chunks of the thread that a query names."""
        if ranking is None or ranking.channel is None or ranking.thread is None:
            return ()
        rows = await self._authorized.read_thread(
            access, ranking.channel, ranking.thread, limit=MAX_NAMED_MESSAGES
        )
        return tuple(row.chunk.id for row in rows)

    async def _graph_candidates(
        self, query: Query, access: CollectionAccess, graphs: Sequence[SourceId], *, where: Filter
    ) -> GraphCandidates | None:
        if query.graph is None:
            return None
        query_graphs = await visible_graphs(self._authorized, access, where, query.graph.graphs)
        return await graph_candidates(
            self._core,
            access,
            list(dict.fromkeys((*graphs, *query_graphs))),
            where=where,
            as_of=query.as_of,
            min_trust=query.min_trust,
        )

    async def _with_coverage_notice(
        self, retrieval: Retrieval, query: Query, access: CollectionAccess, space: EmbeddingSpace | None
    ) -> Retrieval:
        """Add a notice if vector search is incomplete among the documents that the query concerns."""
        problem = self._core.backfill.of(access.collection.id).error
        if problem is not None:
            problem_notice = (
                f"some chunks are not embedded yet: {problem}" if access.sees_all else EMBEDDING_STOPPED
            )
            return replace(retrieval, notices=(*retrieval.notices, problem_notice))
        has_query = query.vector is not None or bool(query.query.strip())
        if space is None or "vector" not in query.retrievers or not has_query:
            return retrieval
        readable = access.restrict_filter(query.filter)
        notice = await self._core.missing_vectors.notice_among(access.collection, readable)
        if notice is None:
            return retrieval
        return replace(retrieval, notices=(*retrieval.notices, notice))

    async def _version_filter(self, query: Query, access: CollectionAccess) -> Filter:
        """Return the filter of the query with that of `as_of`; without it, only current versions match."""
        if query.as_of is None and not await self._core.versions.are_in(access.collection):
            return query.filter
        return And((as_of_filter(query.as_of), query.filter))
