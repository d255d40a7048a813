"""The search service: hits, context windows, explanations, and feedback."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated, Unpack
from uuid import uuid4

import numpy as np

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import includes_role, require_own_origin, require_scope
from conspectus.access.reader import AuthorizedReader
from conspectus.deferred import dataclass
from conspectus.engine.answer_parts import (
    documents_of_window,
    options_of_query,
    record_of_window,
)
from conspectus.engine.answer_recorder import AnswerRecorder
from conspectus.engine.context import EngineContext
from conspectus.engine.searcher import Searcher
from conspectus.engine.service import Service
from conspectus.engine.windows import WindowPlan, window_budget
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import AuditEntry, Role
from conspectus.model.annotations import Example, Range
from conspectus.model.answers import AnswerRecord, AnswerSummary
from conspectus.model.filter import EVERYTHING, names_texts
from conspectus.model.ids import CollectionId, UserId
from conspectus.model.parameters import (
    CollectionName,
    Cursor,
    DocumentIdentifier,
    FeedbackIdentifier,
    HitLimit,
    PageLimit,
    QueryText,
    UserName,
)
from conspectus.model.query import (
    DEFAULT_MIN_SIMILARITY,
    DEFAULT_WINDOW_TOKENS,
    EVERYWHERE,
    Budget,
    Query,
    QueryOptions,
    QueryWindowOptions,
    WindowForm,
    WindowTokens,
)
from conspectus.model.records import Document
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
from conspectus.ports.jobs import on_behalf_of
from conspectus.retrieval.feedback import feedback_on
from conspectus.retrieval.query_checks import check_query
from conspectus.retrieval.reranking import rerank_hits
from conspectus.text.counts import format_count
from conspectus.window.build import WindowOptions, window_form
from conspectus.window.stable import Previous

RERANKED_HITS = 5
MAX_FITTED_CANDIDATES = 20
"""Maximum number of candidates for which the necessary budget is computed."""
MAX_JUDGED_CHUNKS = 1_000
"""Maximum number of chunks in a call, and of feedback in a page."""
SEE_AS = "see as another user"


@dataclass(frozen=True, slots=True)
class _ExplainedQuery:
    """A query for all candidates; `has_limit` says that the caller limits the hits of the window."""

    query: Query
    budget: Budget
    requested: Document | None = None
    has_limit: bool = False


class SearchService(Service):
    """Search: hits, context windows, and explanations."""

    def __init__(self, context: EngineContext, searcher: Searcher) -> None:
        super().__init__(context)
        self._searcher = searcher
        self._recorder = AnswerRecorder(context)

    async def __call__(self, /, query: str | Query, **options: Unpack[QueryOptions]) -> Retrieval:
        """Search as `retrieve` does: `engine.search("...")` is short for `engine.search.retrieve("...")`."""
        return await self.retrieve(query, **options)

    async def retrieve(self, /, query: str | Query, **options: Unpack[QueryOptions]) -> Retrieval:
        """Search a collection and return the best chunks, each with the parts of its score.

        The options are the fields of Query; the collection `*` means all that you may read. Raises NotFound
        for an unknown collection.
        """
        return await self._searcher.search(check_query(query, options, self._parts.settings))

    async def window(
        self,
        /,
        query: str | Query,
        max_tokens: WindowTokens = DEFAULT_WINDOW_TOKENS,
        **options: Unpack[QueryWindowOptions],
    ) -> ContextWindow:
        """Build a context window for a query: text within the token budget, with citations and trace.

        The options are the fields of Query and WindowForm. Unless `limit` is given, as many hits are
        retrieved as it takes to fill the budget.
        """
        beginning = self._recorder.begin("window")
        retrieval, window = await self._searcher.window(query, max_tokens, options)
        if beginning is None:
            return window
        record = self._record_of(beginning, window, query, max_tokens, options)
        documents = documents_of_window(window, retrieval.hits)
        return replace(window, answer=await self._recorder.keep(record, documents))

    def _record_of(
        self,
        summary: AnswerSummary,
        window: ContextWindow,
        query: str | Query,
        max_tokens: WindowTokens,
        options: QueryWindowOptions,
    ) -> AnswerRecord:
        """Return the answer record of a window."""
        settings = self._parts.settings
        form, query_options = window_form(options, QueryOptions)
        index_query = check_query(query, query_options, settings)
        summary = replace(
            summary, question=window.query, collection=index_query.collection, outcome=window.outcome
        )
        limit = index_query.limit if "limit" in query_options else None
        budget = window_budget(max_tokens, settings)
        return record_of_window(summary, options_of_query(index_query, budget, form, limit=limit), window)

    async def explain(
        self,
        /,
        query: str | Query,
        max_tokens: WindowTokens = DEFAULT_WINDOW_TOKENS,
        *,
        document: Annotated[DocumentIdentifier, "Document whose chunks are ranked in any case."]
        | None = None,
        fits_from: Annotated[bool, "Compute the budgets that hold candidates left out."] = False,
        previous: Annotated[str | None, "State of the window that this one begins with."] = None,
        **options: Unpack[QueryOptions],
    ) -> ContextWindow:
        """Build a window and explain it: each candidate with its status, reason and score in parts.

        With `document`, the trace also covers the chunks of that document, whether they were found or not.
        The `parts` of the window divide the whole budget. With `fits_from`, the trace names the smallest
        budget that includes a candidate, for the first 20 that are left out or cut, or for those of the
        document. With `previous`, the `state` of an earlier window, the window begins with the passages of
        that one that you may still read.
        """
        budget = window_budget(max_tokens, self._parts.settings)
        stored = None if document is None else (await self._authorized.document(document))[0]
        index_query = self._with_highest_limit(query, options)
        previous_window = await self._searcher.previous(previous, index_query)
        explained = _ExplainedQuery(index_query, budget, stored, has_limit="limit" in options)
        long_work = self._context.core.long_work
        # Searches of explanations that wait for each other would only slow down everybody else.
        turn = long_work.take_turn("explained query", self._person.id) if fits_from else nullcontext()
        async with turn:
            packed, candidates = await self._retrieve_candidates(self._searcher, explained, previous_window)
            retrieval = _with_candidates(packed, candidates)
            if index_query.min_trust is not None:
                any_trust = self._with_highest_limit(query, {**options, "min_trust": None})
                retrieval = await self._searcher.with_below_min_trust(
                    retrieval, any_trust, index_query.min_trust
                )
            if stored is not None:
                notices = (*retrieval.notices, *self._explain_ranking(stored, candidates))
                retrieval = replace(retrieval, notices=notices)
            window_options = replace(
                self._explanation,
                fits_from=MAX_FITTED_CANDIDATES if fits_from else 0,
                document=document,
                previous=previous_window,
                unpacked=_unpacked_hits(packed, candidates),
            )
            return await self._searcher.windows.make(retrieval, budget, "text", window_options)

    async def explain_as(
        self,
        /,
        query: str | Query,
        max_tokens: WindowTokens = DEFAULT_WINDOW_TOKENS,
        *,
        user: UserName,
        **options: Unpack[QueryOptions],
    ) -> ExplanationAs:
        """Explain a query as another user, with the missing grants for what only you can see.

        Only managers of the whole collection may. Each call is noted in the audit log before it is answered.
        Raises NotFound, PermissionDenied, or Conflict for a user who is disabled.
        """
        budget = window_budget(max_tokens, self._parts.settings)
        index_query = self._with_highest_limit(query, options)
        access = await self._authorized.collection(index_query.collection)
        require_scope(self._person, "admin", SEE_AS)
        require_own_origin(self._person, SEE_AS)
        access.require("manager", SEE_AS)
        other = await self._directory.user(user)
        if other.disabled:
            raise Conflict("user", user, "is disabled and sees nothing")
        collection_id, now = access.collection.id, self._parts.clock()
        index_query = replace(index_query, collection=collection_id)
        text = self._context.screen_value("audit.query", index_query.query, collection_id)
        await self._parts.accounts.add_audit(
            AuditEntry(str(uuid4()), self._person.id, other.id, collection_id, text, now)
        )
        explained = _ExplainedQuery(index_query, budget, has_limit="limit" in options)
        own_window = await self._explain_window(self._searcher, explained)
        other_context = self._context.as_person(replace(other.person, seen_by=self._person.id))
        try:
            other_window = await self._explain_window(Searcher(other_context, self._person.id), explained)
        except NotFound as fault:
            retrieval = Retrieval("no_match", (), notices=(str(fault),))
            other_window = await self._searcher.windows.make(retrieval, budget, "text", self._explanation)
        other_access = await other_context.authorized.find(collection_id)
        refused = await self._count_refused(other_context.authorized, other_access, own_window)
        if refused:
            documents = format_count(refused, "document")
            notice = f"the remote does not let {other.name} open {documents} of your candidates now"
            other_window = replace(other_window, notices=(*other_window.notices, notice))
        grants = await self._find_missing_grants(access, other_access, own_window, other.id)
        return ExplanationAs(other.id, other_window, own_window, grants)

    async def feedback(
        self, window: ContextWindow, *, used: Sequence[int] = (), wrong: Sequence[int] = ()
    ) -> Sequence[Feedback]:
        """Judge passages of a window by their numbers, as `add_feedback` does.

        Raises InvalidInput for a number that the window does not have.
        """
        chunks = {citation.number: citation.chunks for citation in window.citations}
        judged_chunks: dict[str, list[int]] = {"used": [], "wrong": []}
        for name, numbers in (("used", used), ("wrong", wrong)):
            for number in numbers:
                if number not in chunks:
                    raise InvalidInput(name, f"the window has no passage [{number}]")
                judged_chunks[name] += chunks[number]
        return await self.add_feedback(window.query, used=judged_chunks["used"], wrong=judged_chunks["wrong"])

    async def add_feedback(
        self,
        query: QueryText,
        *,
        used: Annotated[Sequence[int], "Ids of chunks that were used for the answer."] = (),
        wrong: Annotated[Sequence[int], "Ids of chunks that do not answer the query."] = (),
    ) -> Sequence[Feedback]:
        """Say which chunks were used to answer a query, and which were wrong, to move similar queries.

        The part `feedback` of later scores follows from it, for everyone. It replaces your earlier feedback
        on the same chunk and query. It needs the role editor on the source of each chunk. Raises NotFound for
        a chunk.
        """
        require_scope(self._person, "write", "give feedback")
        require_own_origin(self._person, "give feedback")
        query_text = check_query(query, {}, self._parts.settings).query.strip()
        if not query_text:
            raise InvalidInput("query", "has no text")
        if not 1 <= len({*used, *wrong}) <= MAX_JUDGED_CHUNKS:
            raise InvalidInput(
                "used", f"must name from 1 to {MAX_JUDGED_CHUNKS} chunks, together with `wrong`"
            )
        if both := {*used} & {*wrong}:
            raise InvalidInput("wrong", f"chunk {min(both)} is also in `used`")
        rows = await self._authorized.editable(list(dict.fromkeys((*used, *wrong))), "give feedback")
        user, now = self._person.id, self._parts.clock()
        feedback = [feedback_on(row, query_text, user, used=row.chunk.id in used, now=now) for row in rows]
        for collection in dict.fromkeys(row.collection for row in feedback):
            space, vector = await self._query_vector(query_text, collection)
            text = self._context.screen_value("feedback.query", query_text, collection)
            screened = [replace(row, query=text) for row in feedback if row.collection == collection]
            await self._parts.feedback.add(screened, space=space, vector=vector)
        return feedback

    async def list_feedback(
        self, *, collection: CollectionName = "default", after: Cursor | None = None, limit: PageLimit = 100
    ) -> FeedbackPage:
        """List your feedback in a collection, newest first; managers of all of it see everyone's."""
        access = await self._authorized.collection(collection)
        page = await self._parts.feedback.list(
            access.collection.id,
            user=None if _manages(access) else self._person.id,
            sources=None if access.sees_all else tuple(access.roles.sources),
            after=after,
            limit=limit,
        )
        if not access.roles.verified:
            return page
        judged = list(dict.fromkeys(feedback.document for feedback in page.feedback))
        openable = {document.id for document in await self._authorized.inside(access, judged)}
        feedback = [feedback for feedback in page.feedback if feedback.document in openable]
        return replace(page, feedback=tuple(feedback))

    async def revoke_feedback(self, feedback: FeedbackIdentifier) -> None:
        """Delete your feedback; managers of the whole collection may delete anyone's. Raises NotFound."""
        require_scope(self._person, "write", "revoke feedback")
        require_own_origin(self._person, "revoke feedback")
        stored = await self._parts.feedback.get(feedback)
        access = None if stored is None else await self._authorized.find(stored.collection)
        is_own = stored is not None and stored.user == self._person.id
        if not is_own and (access is None or not _manages(access)):
            raise NotFound("feedback", feedback)
        await self._parts.feedback.delete(feedback)

    async def get_hits(self, chunks: Sequence[int]) -> Sequence[Hit]:
        """Return chunks by id as hits without scores; unknown ids are left out.

        Raises InvalidInput for more ids than `max_limit` of the settings.
        """
        Range(0, "max_limit").require("number of chunks", len(chunks), self._parts.settings)
        rows = await self._authorized.passages(chunks)
        return [Hit(row.chunk, row.document, 0.0, {}, None, None) for row in rows]

    async def rerank(
        self, query: QueryText, hits: Sequence[Hit], *, limit: HitLimit = RERANKED_HITS
    ) -> Reranking:
        """Rerank hits with the reranker of the settings, and return the best with their relevance.

        Without a reranker, or if it fails, returns the first hits in the given order, without relevance and
        with a notice. Raises InvalidInput for a higher limit than `max_limit` of the settings.
        """
        with on_behalf_of(self._person.id):
            return await rerank_hits(query, hits, self._parts.reranker, limit=limit)

    async def search_and_rerank(
        self,
        /,
        query: str | Query,
        *,
        candidates: Annotated[HitLimit, "Number of hits that are reranked.", Example(50)] = 50,
        **options: Unpack[QueryOptions],
    ) -> Reranking:
        """Retrieve candidates and rerank them, by default the best 5; falls back as `rerank` does."""
        limit = options.get("limit", RERANKED_HITS)
        Range(0, "max_limit").require("limit", limit, self._parts.settings)
        candidate_options: QueryOptions = {**options, "limit": candidates, "rerank": False}
        retrieval = await self.retrieve(query, **candidate_options)
        text = query.query if isinstance(query, Query) else query
        return await self.rerank(text, retrieval.hits, limit=limit)

    async def augment(
        self,
        /,
        query: str | Query,
        max_tokens: WindowTokens = DEFAULT_WINDOW_TOKENS,
        **options: Unpack[QueryWindowOptions],
    ) -> ContextWindow:
        """Build a window from all collections, of hits with at least `min_similarity`, by default 0.25.

        A filter that names documents or threads has no default minimum.
        """
        filter = options.get("filter", query.filter if isinstance(query, Query) else EVERYTHING)
        window_options: QueryWindowOptions = {
            "collection": EVERYWHERE,
            "min_similarity": None if names_texts(filter) else DEFAULT_MIN_SIMILARITY,
            **options,
        }
        return await self.window(query, max_tokens, **window_options)

    async def _query_vector(self, query: str, collection: CollectionId) -> tuple[str | None, bytes | None]:
        """Return the space and the vector of a query; None without an embedding model, or if it fails."""
        space = (await self._authorized.collection(collection)).collection.space
        embedded = await self._searcher.embed_query(Query(query), space)
        if space is None or embedded.vector is None:
            return None, None
        return space.name, np.asarray(embedded.vector, dtype="<f2").tobytes()

    def _with_highest_limit(self, query: str | Query, options: QueryOptions) -> Query:
        """Return the query with the highest limit, unless one is given."""
        settings = self._parts.settings
        return check_query(query, {"limit": settings.max_limit, **options}, settings)

    async def _explain_window(self, searcher: Searcher, explained: "_ExplainedQuery") -> ContextWindow:
        packed, candidates = await self._retrieve_candidates(searcher, explained)
        options = replace(self._explanation, unpacked=_unpacked_hits(packed, candidates))
        retrieval = _with_candidates(packed, candidates)
        return await self._searcher.windows.make(retrieval, explained.budget, "text", options)

    async def _retrieve_candidates(
        self, searcher: Searcher, explained: "_ExplainedQuery", previous: Previous | None = None
    ) -> tuple[Retrieval, Retrieval]:
        """Return the hits that `window` takes for the query, and all candidates."""
        query = explained.query

        async def search(limit: int) -> Retrieval:
            return await searcher.search_with_successors(
                query if explained.has_limit else replace(query, limit=limit)
            )

        window_plan = WindowPlan(once=explained.has_limit, options=WindowOptions(previous=previous))
        packed, _ = await searcher.retrieve_and_fill(search, explained.budget, WindowForm(), window_plan)
        if explained.has_limit and explained.requested is None:
            return packed, packed
        # Other requests have their turn between the window and the next search.
        await asyncio.sleep(0)
        return packed, await searcher.search_with_successors(query, requested=explained.requested)

    @property
    def _explanation(self) -> WindowOptions:
        """The options of a window whose trace explains all candidates."""
        return WindowOptions(parts=True, max_fitting_tokens=self._parts.settings.max_window_tokens)

    def _explain_ranking(self, document: Document, retrieval: Retrieval) -> Iterator[str]:
        """Yield why a document to be explained was not ranked, or only some of its chunks."""
        ranked = (
            *retrieval.hits,
            *retrieval.below_min_confidence,
            *retrieval.below_min_similarity,
            *retrieval.below_min_trust,
        )
        if document.id not in {hit.document.id for hit in ranked}:
            why = "the filter leaves it out" if document.chunks else "it has no text"
            yield f"{document.id} was not ranked: {why}"
        maximum = self._parts.settings.max_limit
        if document.chunks > maximum:
            chunks = f"{maximum} of {format_count(document.chunks, 'chunk')} of {document.id}"
            yield f"only the first {chunks} are ranked in any case"

    async def _count_refused(
        self, other: AuthorizedReader, access: CollectionAccess | None, window: ContextWindow
    ) -> int:
        """Return the number of documents of a trace that only their remote refuses to another user."""
        if access is None or not access.roles.verified:
            return 0
        ids = list(dict.fromkeys(candidate.document for candidate in window.trace))
        readable = [
            document
            for document, _ in await self._authorized.documents(ids)
            if access.can_see_document(document)
        ]
        return len(readable) - len(await other.gate.list_openable(readable))

    async def _find_missing_grants(
        self,
        access: CollectionAccess,
        other_access: CollectionAccess | None,
        window: ContextWindow,
        other: UserId,
    ) -> tuple[MissingGrant, ...]:
        """Return the sources with candidates that another user may not read, most passages first."""
        candidates = Counter(candidate.source for candidate in window.trace)
        passages = Counter(
            candidate.source for candidate in window.trace if candidate.status in {"included", "truncated"}
        )
        grants = []
        hidden = await self._authorized.list_hidden_sources(access.collection.id)
        viewers = await self._authorized.list_missing_viewers(access.collection, other)
        for source in await self._authorized.sources_by_name(access, list(candidates)):
            is_visible = other_access is not None and other_access.visible([source])
            if source.id in candidates and not is_visible:
                counts = (candidates[source.id], passages[source.id])
                role: Role = "manager" if source.id in hidden else "viewer"
                grants.append(MissingGrant(source.id, source.name, role, *counts, viewers.get(source.id)))
        grants.sort(key=lambda grant: (-grant.passages, -grant.candidates, grant.source_name))
        return tuple(grants)


def _manages(access: CollectionAccess) -> bool:
    """Return whether the user manages the whole collection."""
    return includes_role(access.roles.collection, "manager")


def _unpacked_hits(packed: Retrieval, candidates: Retrieval) -> tuple[Hit, ...]:
    """Return the candidates that a window does not take."""
    packed_chunks = {hit.chunk.id for hit in packed.hits}
    return tuple(hit for hit in candidates.hits if hit.chunk.id not in packed_chunks)


def _with_candidates(packed: Retrieval, candidates: Retrieval) -> Retrieval:
    """Return the hits of a window with the notices, plan and rejected hits of all candidates."""
    return replace(
        packed,
        below_min_similarity=candidates.below_min_similarity,
        below_min_confidence=candidates.below_min_confidence,
        plan=candidates.plan,
        notices=candidates.notices,
        timings=candidates.timings,
    )
