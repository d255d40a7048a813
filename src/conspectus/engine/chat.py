"""Chat: retrieval for a message, and a model that answers with cited context."""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar
from uuid import uuid4

from conspectus.chat.answer import ModelRequest, stream_answer
from conspectus.chat.citations import answer_metadata
from conspectus.chat.prompt import NOTHING_FOUND
from conspectus.chat.request import PreparedChat, draft_chat
from conspectus.chat.task_lines import TaskLine, render_tasks, snippet
from conspectus.deferred import dataclass
from conspectus.engine.answer_parts import (
    candidates_of_hits,
    candidates_of_trace,
    citations_of_sources,
    documents_of_window,
)
from conspectus.engine.answer_recorder import AnswerRecorder
from conspectus.engine.answered_chat import AnswerContext, AnsweredChat
from conspectus.engine.channels import ChannelService
from conspectus.engine.context import EngineContext
from conspectus.engine.search import SearchService
from conspectus.engine.searcher import Searcher
from conspectus.engine.service import Service
from conspectus.errors import ConspectusError, InvalidInput, NotFound, PermissionDenied, as_field
from conspectus.model.answers import AnswerRecord
from conspectus.model.channels import NewMessage
from conspectus.model.chat import ChatEvent, ChatRequest, ChatSource, Citations, Delta, Failure, Sources
from conspectus.model.filter import And, Eq, Not, names_texts
from conspectus.model.query import DEFAULT_MIN_SIMILARITY, EVERYWHERE, Budget, Query
from conspectus.model.records import Source
from conspectus.model.results import Citation, ContextWindow, Hit, Retrieval
from conspectus.model.trust import least
from conspectus.ports import CountTokens
from conspectus.retrieval.selection import EVERYTHING_BELOW
from conspectus.text.citation_marks import marks
from conspectus.text.clean import clean
from conspectus.text.graphemes import graphemes_prefix
from conspectus.text.prompt_escaping import FRAME, disarm
from conspectus.text.prompt_frame import escape_text, frame_passages, passages

MAX_TASKS = 20
"""Maximum number of hits on tasks in a prompt."""
TASKS = Eq("kind", "task")
MAX_SESSIONS = 1_000
"""Sessions of chats whose last window is known; older ones begin anew."""
SNIPPET_CHARACTERS = 200
SEARCH_FAILED = "The search failed. The answer does not use stored documents."
SEARCH_INCOMPLETE = "Some stored documents could not be searched. The answer may be incomplete."
BELOW_MIN_CONFIDENCE = "The stored documents probably do not contain the answer."
NOT_STORED = "The message and the answer could not be stored in the channel."
NOT_STORED_MIRRORED = (
    "The message and the answer are not stored in the channel: the remote of a connection says who may read"
    " what they are about."
)
NO_CONTEXT_TOKENS = "No tokens are left for context. The answer does not use stored documents."
"""Notices for users, about searches and storage."""

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _PromptContext:
    """The context in the prompt, and what the response reports about it."""

    context: str
    sources: Sources
    window: ContextWindow | None = None
    cached: tuple[int, ...] = ()
    """Lengths in characters of the beginnings that a model provider may cache."""
    best_similarity: float | None = None
    """The highest similarity of a candidate, for the log."""
    hits: tuple[Hit, ...] = ()
    """The hits of the window, or those on tasks."""

    @property
    def answer_context(self) -> AnswerContext:
        """The context as an answer record has it."""
        sources, window = self.sources, self.window
        if window is None:
            candidates = candidates_of_hits(self.hits, sources.sources)
            documents = {candidate.document for candidate in candidates}
        else:
            candidates, documents = candidates_of_trace(window.trace), documents_of_window(window, self.hits)
        return AnswerContext(
            self.context,
            sources.outcome,
            sources.tokens,
            citations_of_sources(sources.sources),
            candidates,
            frozenset(documents),
            0.0 if window is None else window.confidence,
        )


class ChatService(Service):
    """Chat: answers of a model that cites stored documents."""

    def __init__(
        self,
        context: EngineContext,
        search: SearchService,
        channels: ChannelService,
    ) -> None:
        super().__init__(context)
        self._search = search
        self._channels = channels
        self._searcher = Searcher(context)
        self._recorder = AnswerRecorder(context)

    @property
    def model(self) -> str | None:
        """The name of the chat model, `vendor:model`; None if none is set."""
        model = self._parts.chat_model
        return None if model is None else model.name

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Search for a message, and stream the answer of the chat model, which cites what was found.

        Sources come first, before the model is called; a failed search never ends a chat. Then Delta,
        Citations and Usage; or a Failure with a code, if no model is set or it fails. Closing the generator
        ends the call of the model at once.

        Raises InvalidInput, TooLarge, NotFound or PermissionDenied before the first event.
        """
        model, settings = self._parts.chat_model, self._parts.settings
        count = self._parts.counter(self._tokenizer)
        window = model.window if model else settings.chat_context_tokens
        draft = await self._run_counting(
            lambda count: draft_chat(request, settings, window=window, count=count),
            count,
            characters=sum(len(turn.content) for turn in (*request.history, *request.since)),
        )
        # The counter of a thread sleeps at its checkpoints, which would block the event loop.
        draft = replace(draft, count=count)
        channel = None
        if request.store_in is not None:
            collection = request.collection
            if collection == EVERYWHERE:
                collection = settings.default_collection
            with as_field("store_in", was="source"):
                channel, _ = await self._writer.writable(request.store_in, collection, kind="channel")
        began = self._parts.clock()
        prompt_context = await self._find_context(request, draft)
        _log_context(prompt_context)
        yield prompt_context.sources
        call = ModelRequest(
            messages=draft.prompt.with_context(prompt_context.context, prompt_context.cached),
            sources=prompt_context.sources.sources,
            max_tokens=request.allocation.answer,
            temperature=request.temperature,
            store=partial(self._store_exchange, channel, request, prompt_context.sources.sources, began),
            options=request.options,
            max_characters=settings.max_answer_characters,
        )
        answered = AnsweredChat(request, began, call.messages, prompt_context.answer_context)
        async with aclosing(stream_answer(model, call, count)) as events:
            async for event in events:
                if isinstance(event, Citations) and settings.chat_feedback == "on":
                    await self._give_feedback(prompt_context.window, event)
                yield await self._with_record(answered, event)

    async def _with_record(self, answered: AnsweredChat, event: ChatEvent) -> ChatEvent:
        """Return an event of an answer; the one that ends it keeps an answer record and has its id."""
        match event:
            case Delta():
                answered.pieces.append(event.text)
            case Citations() if beginning := self._recorder.begin("chat"):
                record = answered.record(beginning, self.model or "", self._tokenizer, event)
                return replace(event, answer=await self._keep_record(answered, record))
            case Failure() if not answered.has_ended and (beginning := self._recorder.begin("chat")):
                record = answered.record(beginning, self.model or "", self._tokenizer, event)
                await self._keep_record(answered, record)
        return event

    async def _keep_record(self, answered: AnsweredChat, record: AnswerRecord) -> str:
        return await self._recorder.keep(
            record,
            answered.context.documents,
            earlier_answers=answered.earlier_answers,
            has_unknown_texts=answered.has_results_of_tools,
        )

    @property
    def _tokenizer(self) -> str:
        model = self._parts.chat_model
        return model.tokenizer if model else self._parts.settings.chat_tokenizer

    async def _run_counting(
        self, function: Callable[[CountTokens], T], count: CountTokens, *, characters: int
    ) -> T:
        """Run a function that counts tokens, in a thread if the texts are long."""
        return await self._core.long_work.run_counting(
            function, count, characters=characters, user=self._person.id, tokenizer=self._tokenizer
        )

    async def _give_feedback(self, window: ContextWindow | None, citations: Citations) -> None:
        """Give feedback on the cited passages of an answer whose citations all exist."""
        numbers = [citation.number for citation in citations.cited]
        if window is None or not numbers or citations.unknown:
            return
        try:
            await self._search.feedback(window, used=numbers)
        except ConspectusError as fault:
            logger.info("chat_feedback_failed code=%(code)s", {"code": fault.code})

    async def _store_exchange(
        self,
        channel: Source | None,
        request: ChatRequest,
        sources: Sequence[ChatSource],
        began: datetime,
        answer: str,
    ) -> Failure | None:
        """Store message and answer in the channel, if it is still readable, with the answer's citations.

        Nothing is stored that comes from mirrored documents: readers of the channel need not be their
        viewers, and the person may not stay one.
        """
        if channel is None or not answer.strip():
            return None
        if await self._authorized.are_mirrored([source.document for source in sources]):
            return Failure(PermissionDenied.code, NOT_STORED_MIRRORED)
        model = self._parts.chat_model
        user_message = NewMessage(
            clean(request.message), key=str(uuid4()), author=self._person.name, at=began
        )
        answer_message = NewMessage(
            clean(answer),
            author=model.name if model else None,
            at=max(self._parts.clock(), began + timedelta(microseconds=1)),
            role="assistant",
            reply_to=user_message.key,
            metadata=answer_metadata(answer, sources),
            trust=least(*(source.trust for source in sources)),
        )
        try:
            access = await self._authorized.collection(channel.collection)
            await self._authorized.require_source(access, channel.id)
            await self._channels.add_messages(
                (user_message, answer_message), channel=channel.id, collection=channel.collection, link=False
            )
        except ConspectusError as fault:
            logger.warning("chat_store_failed error=%(error)s", {"error": fault})
            return Failure(fault.code, NOT_STORED)
        return None

    async def _find_context(self, request: ChatRequest, draft: PreparedChat) -> _PromptContext:
        """Search for the context of a prompt, unless the request needs none or no tokens are left for it."""
        if not draft.question:
            return _PromptContext("", Sources("off", notice=draft.room.notice))
        if draft.room.context <= draft.frame:
            notice = _join_notices(draft.room.notice, NO_CONTEXT_TOKENS)
            return _PromptContext("", Sources("off", notice=notice))
        try:
            if await self._context_format(request) == "tasks":
                return await self._retrieve_tasks(request, draft)
            return await self._retrieve_passages(request, draft)
        except (InvalidInput, NotFound, PermissionDenied):
            raise
        except ConspectusError as fault:
            logger.warning("chat_context_failed error=%(error)s", {"error": fault})
            notice = _join_notices(draft.room.notice, SEARCH_FAILED)
            return _PromptContext("", Sources("failed", question=draft.question, notice=notice))

    def _min_similarity_for(self, request: ChatRequest, default: float | None) -> float | None:
        """Return the minimum similarity: that of the request, else of the settings, else the default.

        A filter that names documents or threads has none unless the request names one.
        """
        if request.min_similarity != "default":
            return request.min_similarity
        if names_texts(request.filter):
            return None
        min_similarity = self._parts.settings.chat_floor
        return default if min_similarity is None else min_similarity

    async def _context_format(self, request: ChatRequest) -> str:
        """Return the format of the context: by default that of tasks if nothing else is stored."""
        form = request.format or self._parts.settings.chat_form
        if form != "auto":
            return form
        if request.collection == EVERYWHERE:
            accesses = await self._authorized.collections()
        else:
            accesses = [await self._authorized.collection(request.collection)]
        has_tasks = False
        for access in accesses:
            others, _ = await self._authorized.list(access, Not(TASKS), after=None, limit=1)
            if others:
                return "passages"
            tasks, _ = await self._authorized.list(access, TASKS, after=None, limit=1)
            has_tasks = has_tasks or bool(tasks)
        return "tasks" if has_tasks else "passages"

    async def _retrieve_passages(self, request: ChatRequest, draft: PreparedChat) -> _PromptContext:
        query = _query_of(
            request, draft, min_similarity=self._min_similarity_for(request, DEFAULT_MIN_SIMILARITY)
        )
        maximum = self._parts.settings.max_window_tokens
        tokens = min(draft.room.context - draft.frame, maximum)
        previous = self._previous_state(request)
        while True:
            budget = Budget(max(tokens, 0), self._tokenizer)
            retrieval, window = await self._searcher.window(
                query, budget, {"format": "guarded", "previous": previous}
            )
            added_tokens = await self._count_added_tokens(draft, window.text)
            if added_tokens <= draft.room.context:
                break
            tokens -= added_tokens - draft.room.context
        texts = dict(passages(window.text))
        sources = tuple(_passage_source(citation, texts[citation.number]) for citation in window.citations)
        prompt_context = _build_prompt_context(
            draft,
            window.text,
            sources,
            has_hits=window.outcome == "found",
            search_notice=_search_notice(request, window),
            added_tokens=added_tokens,
        )
        prompt_context = replace(
            prompt_context,
            window=window,
            best_similarity=window.signals.get("best_cosine"),
            hits=retrieval.hits,
        )
        if request.session is None:
            return prompt_context
        return self._remember_window(request.session, prompt_context, window)

    async def _count_added_tokens(self, draft: PreparedChat, context: str) -> int:
        """Return the tokens that a context adds to the prompt."""
        return await self._run_counting(
            lambda count: replace(draft, count=count).count_added(context),
            draft.count,
            characters=len(context),
        )

    def _previous_state(self, request: ChatRequest) -> str | None:
        """Return the state of the previous window of the session."""
        if request.session is None:
            return None
        return self._context.core.chat_states.get((self._person.id, request.session))

    def _remember_window(
        self, session: str, prompt_context: _PromptContext, window: ContextWindow
    ) -> _PromptContext:
        """Store the window for the next message; return the context with its cacheable lengths."""
        states = self._context.core.chat_states
        states.pop((self._person.id, session), None)
        states[self._person.id, session] = window.state
        if len(states) > MAX_SESSIONS:
            del states[next(iter(states))]
        if not window.citations:
            return prompt_context
        plan, end = window.cache_plan, len(window.text) - len(FRAME[1])
        stable_characters = min(plan.stable_characters, end) if plan else 0
        sources = replace(prompt_context.sources, stable_tokens=plan.stable_tokens if plan else 0)
        return replace(prompt_context, sources=sources, cached=tuple(sorted({stable_characters, end} - {0})))

    async def _retrieve_tasks(self, request: ChatRequest, draft: PreparedChat) -> _PromptContext:
        query = _query_of(request, draft, min_similarity=self._min_similarity_for(request, None))
        retrieval = await self._search.retrieve(query, filter=And((query.filter, TASKS)), limit=MAX_TASKS)
        best_hits: dict[str, Hit] = {}
        for hit in retrieval.hits:
            best_hits.setdefault(hit.document.id, hit)
        lines = [_task_line(number, hit) for number, hit in enumerate(best_hits.values(), 1)]
        tokens = draft.room.context - draft.frame
        while True:
            text, rendered_lines = render_tasks(lines, draft.count, max(tokens, 0))
            context = frame_passages([text]) if text else ""
            if draft.fits(context):
                break
            tokens -= draft.count_added(context) - draft.room.context
        sources = tuple(_task_source(line, best_hits[line.document]) for line in rendered_lines)
        prompt_context = _build_prompt_context(
            draft, context, sources, has_hits=bool(lines), search_notice=_search_notice(request, retrieval)
        )
        similarities = [hit.similarity for hit in best_hits.values() if hit.similarity is not None]
        return replace(
            prompt_context, best_similarity=max(similarities, default=None), hits=tuple(best_hits.values())
        )


def _log_context(context: _PromptContext) -> None:
    """Log the outcome of the search and the number of sources, without any text."""
    best = context.best_similarity
    logger.info(
        "chat_context outcome=%(outcome)s sources=%(sources)s best_similarity=%(best_similarity)s",
        {
            "outcome": context.sources.outcome,
            "sources": len(context.sources.sources),
            "best_similarity": None if best is None else round(best, 2),
        },
    )


def _search_notice(request: ChatRequest, retrieval: Retrieval | ContextWindow) -> str | None:
    """Return the notice about hits below the minimum confidence, or about an incomplete search."""
    if retrieval.outcome == "no_match" and 0.0 < retrieval.confidence < request.min_confidence:
        return BELOW_MIN_CONFIDENCE
    is_incomplete = any(not notice.startswith(EVERYTHING_BELOW) for notice in retrieval.notices)
    return SEARCH_INCOMPLETE if is_incomplete else None


def _query_of(request: ChatRequest, draft: PreparedChat, *, min_similarity: float | None) -> Query:
    return Query(
        draft.question,
        collection=request.collection,
        filter=request.filter,
        min_similarity=min_similarity,
        min_confidence=request.min_confidence,
        query_context=request.query_context,
        min_trust=request.min_trust,
    )


def _build_prompt_context(
    draft: PreparedChat,
    context: str,
    sources: tuple[ChatSource, ...],
    *,
    has_hits: bool,
    search_notice: str | None,
    added_tokens: int | None = None,
) -> _PromptContext:
    """Return a context with its sources; `added_tokens` are those of the context, if they were counted."""
    if not has_hits and not sources and draft.fits(NOTHING_FOUND):
        context, added_tokens = NOTHING_FOUND, None
    if added_tokens is None:
        added_tokens = draft.count_added(context)
    budget_notice = NO_CONTEXT_TOKENS if has_hits and not sources else None
    report = Sources(
        outcome="found" if has_hits else "no_match",
        sources=sources,
        question=draft.question,
        tokens=added_tokens,
        notice=_join_notices(draft.room.notice, search_notice, budget_notice),
    )
    return _PromptContext(context, report)


def _join_notices(*notices: str | None) -> str | None:
    return " ".join(filter(None, notices)) or None


def _passage_source(citation: Citation, text: str) -> ChatSource:
    return ChatSource(
        number=citation.number,
        document=citation.document,
        source=citation.source,
        key=citation.key,
        title=citation.title,
        start=citation.start,
        end=citation.end,
        snippet=graphemes_prefix(text, SNIPPET_CHARACTERS),
        page=citation.page,
        heading=citation.heading,
        location=citation.location,
        trust=citation.trust,
        read_by=citation.read_by,
        table_header=citation.table_header,
    )


def _task_line(number: int, hit: Hit) -> TaskLine:
    metadata = hit.document.metadata
    priority, key = metadata.get("priority"), hit.document.key
    return TaskLine(
        number=number,
        # A key in brackets must not look like a number of a citation.
        task=escape_text(f"#{key}" if any(marks(f"[{key}]")) else key),
        status=escape_text(str(metadata.get("status", "none"))),
        priority=None if priority is None else escape_text(str(priority)),
        snippet=escape_text(snippet(hit.chunk.text)),
        similarity=hit.similarity,
        document=hit.document.id,
        trust=hit.document.trust,
    )


def _task_source(line: TaskLine, hit: Hit) -> ChatSource:
    return ChatSource(
        number=line.number,
        document=hit.document.id,
        source=hit.document.source,
        key=hit.document.key,
        title=hit.document.title,
        start=hit.chunk.start,
        end=hit.chunk.end,
        snippet=graphemes_prefix(disarm(hit.chunk.text), SNIPPET_CHARACTERS),
        location=hit.document.location,
        trust=hit.document.trust,
    )
