"""The summary pipeline: captions in batches, summarized by a chat model or by extraction."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import field, replace
from typing import Final, Protocol

import numpy as np

from conspectus.access.reader import CollectionAccess
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.long_work import Work
from conspectus.engine.stream_reader import StreamReader
from conspectus.errors import (
    ChatBadAnswer,
    ChatError,
    ChatNotConfigured,
    ChatRateLimited,
    ChatTimedOut,
    ChatUnreachable,
    PreconditionFailed,
    TooLarge,
)
from conspectus.ingest.captions import span_of
from conspectus.ingest.job_execution import Outcome, Tell
from conspectus.model.chat import Delta, Usage
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.jobs import Job, RetryPolicy
from conspectus.model.records import Json, Metadata, Source
from conspectus.model.streams import BatchSummary, Caption, Summary, SummaryRequest
from conspectus.model.trust import Trust, least
from conspectus.ports import CountTokens, Progress, Vectors
from conspectus.ports.chat import ChatModel
from conspectus.ports.streams import NewSummary, Span, Summaries
from conspectus.settings import Settings
from conspectus.streams.caption_format import format_time
from conspectus.streams.summarizer import (
    Batch,
    CaptionText,
    JsonSchemaOutput,
    Style,
    Summarizer,
    SummaryPrompt,
    Unsatisfied,
    batches,
    between,
    by_index,
    extracted,
)
from conspectus.streams.summary_runner import (
    Finished,
    NotStored,
    checked,
    in_batches,
    in_turn,
    recipe,
    request_from_json,
)
from conspectus.text.analyzer import Analyzer
from conspectus.text.clean import clean
from conspectus.text.hashing import stable_id
from conspectus.text.prompt_frame import escaped
from conspectus.text.stream_clocks import StreamClock, clock_of
from conspectus.text.tokens import TOKENS_PER_MESSAGE

SILENT: Final = (ChatRateLimited, ChatUnreachable, ChatTimedOut)
PASSING: Final = (*SILENT, ChatBadAnswer)
"""Errors after which the same prompt is retried."""
MAX_FAILURES: Final = 3
"""Consecutive calls without an answer before the model is given up."""
RETRY_PROMPT: Final = (
    "Your last answer could not be used: {reason}. Answer again, in the form that is asked for."
)


@dataclass(frozen=True, slots=True)
class SummaryBatch:
    """Summaries of one stream and recipe, with the fingerprints of its captions."""

    store: Summaries
    source: SourceId
    recipe: str
    fingerprints: Mapping[DocumentId, str]


class BudgetSpent(Exception):
    """A call might use more tokens than are left."""


@dataclass(slots=True)
class TokenBudget:
    """The tokens of prompts and answers that calls may use. What a running call may use counts as used."""

    limit: int
    count: CountTokens
    used: int = 0

    def reserve(self, prompt: SummaryPrompt) -> int:
        """Reserve the tokens of a call; return those of its prompt. Raises BudgetSpent."""
        size = sum(self.count(message.content) + TOKENS_PER_MESSAGE for message in prompt.messages)
        if self.used + size + prompt.max_tokens > self.limit:
            raise BudgetSpent
        self.used += size + prompt.max_tokens
        return size


class AnswerForm(Protocol):
    """The form of answers."""

    def read(self, answer: str) -> Metadata:
        """Parse an answer. Raises Unsatisfied."""


@dataclass(slots=True)
class SummaryModel:
    """Answers the prompts of one request; `calls` counts calls, `used` are the names of the answers.

    With `reading`, the model is not called. With a `budget`, calls beyond it raise BudgetSpent.
    """

    model: ChatModel
    batch: SummaryBatch
    form: AnswerForm | None
    patience: RetryPolicy
    turns: asyncio.Semaphore
    reading: bool = False
    budget: TokenBudget | None = None
    calls: int = 0
    used: set[str] = field(default_factory=set)
    silence: list[ChatError] = field(default_factory=list)

    async def ask(self, question: SummaryPrompt) -> CaptionText:
        """Return the stored answer, or a new one. Raises ChatError, PreconditionFailed, or NotKept."""
        name = self.name_of(question)
        text = await self.batch.store.text(name)
        if text is None:
            if self.reading:
                raise NotStored
            async with self.turns:
                text = await self._ask_with_retries(question, question)
                captions = tuple((caption, self.batch.fingerprints[caption]) for caption in question.captions)
                new = NewSummary(name, self.batch.recipe, text, captions, question.parts)
                await self.batch.store.add(self.batch.source, new)
        self.used.add(name)
        return CaptionText(name, text)

    async def _ask_with_retries(
        self, question: SummaryPrompt, request: SummaryPrompt, attempt: int = 1
    ) -> str:
        """Return a usable answer, retrying as long as that may help."""
        if len(self.silence) >= MAX_FAILURES:
            raise self.silence[-1]
        try:
            text = await self._call_model(request)
        except PASSING as fault:
            await self.patience.sleep(self._wait(attempt, fault))
            again = _with_reason(question, fault)
        else:
            self.silence.clear()
            return text
        return await self._ask_with_retries(question, again, attempt + 1)

    def _wait(self, attempt: int, fault: ChatError) -> float:
        """Return the seconds until the next attempt; raise the error if there is to be none."""
        wait = self.patience.wait(attempt - 1, getattr(fault, "retry_after", None))
        if attempt >= self.patience.attempts or wait > self.patience.max_wait:
            if isinstance(fault, SILENT):
                self.silence.append(fault)
            raise fault
        return wait

    async def _call_model(self, question: SummaryPrompt) -> str:
        size = self.budget.reserve(question) if self.budget is not None else 0
        self.calls += 1
        answer, usage = "", None
        try:
            stream = self.model.stream(question.messages, max_tokens=question.max_tokens)
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    answer += piece.text if isinstance(piece, Delta) else ""
                    usage = piece if isinstance(piece, Usage) else usage
        finally:
            if self.budget is not None:
                spent = size + self.budget.count(answer) if usage is None else usage.input + usage.output
                self.budget.used += spent - size - question.max_tokens
        text = clean(answer).strip()
        if not text:
            raise ChatBadAnswer(self.model.name, "the answer is empty")
        if self.form is None:
            return text
        try:
            return json.dumps(dict(self.form.read(text)), ensure_ascii=False)
        except Unsatisfied as fault:
            raise ChatBadAnswer(self.model.name, str(fault)) from fault

    def name_of(self, question: SummaryPrompt) -> str:
        """Return a name that is equal for equal prompts about equal captions to the same model."""
        messages = [(message.role, message.content) for message in question.messages]
        value = [self.batch.source, self.model.name, messages, question.captions, question.parts]
        return stable_id("summary", json.dumps(value))


def _with_reason(question: SummaryPrompt, fault: ChatError) -> SummaryPrompt:
    """Add the error of the last answer to the prompt."""
    if not isinstance(fault, ChatBadAnswer):
        return question
    last = question.messages[-1]
    reason = RETRY_PROMPT.format(reason=escaped(fault.reason))
    return replace(
        question, messages=(*question.messages[:-1], replace(last, content=f"{last.content}\n\n{reason}"))
    )


MAX_ROUNDS = 3
"""Number of attempts if captions change while a summary is made."""
EXTRACTIVE = "extractive"


@dataclass(frozen=True, slots=True)
class ResolvedSummaryRequest:
    """A validated request with its captions."""

    request: SummaryRequest
    source: Source
    access: CollectionAccess
    span: Span
    form: JsonSchemaOutput | None

    def named(self, model: str) -> str:
        """Return the recipe of summaries by a model."""
        return recipe(self.request, self.span, model)


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """Whether to read stored summaries only, whether to use full batches only, and a progress callback."""

    reading: bool = False
    filling: bool = False
    progress: Progress | None = None

    def done(self, count: int, total: int) -> None:
        """Report how many batches are done."""
        if self.progress is not None:
            self.progress("summarizing", count, total)


class SummaryPipeline(Service, checked=False):
    """Makes and reads summaries."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = StreamReader(context)

    async def perform(self, job: Job, tell: Tell) -> Outcome:
        """Run a summary job."""
        if job.arguments.get("standing") is True and self._parts.chat_model is None:
            raise ChatNotConfigured
        value = job.arguments.get("request")
        request = await self.resolved(request_from_json(value if isinstance(value, dict) else {}))
        filling = job.arguments.get("filling") is True
        how = SummaryOptions(filling=filling, progress=lambda _, done, total: tell(done, total))
        return Outcome(_counts(await self.summarize(request, how)))

    async def resolved(self, request: SummaryRequest) -> ResolvedSummaryRequest:
        """Resolve a request. Raises InvalidInput, TooLarge or NotFound."""
        settings = self._parts.settings
        ready = checked(request, max_characters=settings.max_chat_characters)
        form = None if ready.schema is None else JsonSchemaOutput(ready.schema)
        access, source = await self._reader.source(ready.stream, ready.collection)
        column, here = "standing_summaries.request", source.collection
        ready = replace(
            ready,
            instructions=self._context.screened(column, ready.instructions, here, field="instructions"),
            schema=self._context.screened(column, ready.schema, here, field="schema"),
        )
        span = span_of(ready.range, clock_of(source))
        return ResolvedSummaryRequest(ready, source, access, span, form)

    async def summarize(self, request: ResolvedSummaryRequest, how: SummaryOptions) -> Summary:
        """Make the summaries, with the model if there is one; one task at a time per request."""
        model = None if request.request.extractive else self._parts.chat_model
        if model is None:
            return await self._extract(request)
        name = request.named(model.name)
        lock = self._core.summary_locks.setdefault(f"{request.source.id} {name}", asyncio.Lock())
        if how.reading:
            return await self._summarize_once(request, model, how)
        async with lock:
            for _ in range(MAX_ROUNDS - 1):
                with suppress(PreconditionFailed):
                    return await self._summarize_once(request, model, how)
            return await self._summarize_once(request, model, how)

    async def _summarize_once(
        self, request: ResolvedSummaryRequest, model: ChatModel, how: SummaryOptions
    ) -> Summary:
        """Make one attempt with the current captions."""
        name, store = request.named(model.name), self._parts.summaries
        captions = await self._read_captions(request)
        parts = await self._batches(request, name, captions, how)
        if not parts:
            return Summary("empty", "", model.name, ())
        summary_model = self._summary_model(request, model, captions, reading=how.reading)
        writer = Summarizer(self._style(request, model), summary_model.ask, model.name)
        how.done(0, len(parts))

        def done(count: int) -> None:
            how.done(count, len(parts))

        if request.request.mode == "refine":
            finished = await in_turn(writer, parts, done)
        else:
            workers = 2 * max(1, self._parts.settings.summary_concurrency)
            finished = await in_batches(writer, parts, done, workers=workers, together=not how.filling)
        if not how.reading and not how.filling and finished.fault is None:
            await store.tidy(request.source.id, name, summary_model.used)
        summary = reported(finished, model.name, request.form, calls=summary_model.calls)
        summary = replace(summary, trust=_lowest_trust(captions, "standard"))
        return replace(
            summary, batches=tuple(timed(batch, clock_of(request.source)) for batch in summary.batches)
        )

    async def _batches(
        self, request: ResolvedSummaryRequest, name: str, captions: Sequence[Caption], how: SummaryOptions
    ) -> list[Batch]:
        """Return the batches. Boundaries by time are stored before any model call."""
        source, size = request.source.id, request.request.batch_size
        if by_index(captions):
            parts = batches(captions, size)
        else:
            stored_borders = await self._parts.summaries.borders(source, name)
            parts = batches(captions, size, stored_borders)
            borders = [part.border for part in parts if part.full or not how.filling]
            if not how.reading and borders != list(stored_borders):
                await self._parts.summaries.set_boundaries(source, name, borders)
        return [part for part in parts if part.full] if how.filling else parts

    async def _read_captions(self, request: ResolvedSummaryRequest) -> list[Caption]:
        maximum = self._parts.settings.max_summary_captions
        captions = await self._reader.timeline(request.access, request.source, request.span)
        if len(captions) > maximum:
            raise TooLarge("range", size=len(captions), limit=maximum, unit="captions")
        return [caption for caption in captions if caption.text.strip()]

    def _summary_model(
        self, request: ResolvedSummaryRequest, model: ChatModel, captions: Sequence[Caption], *, reading: bool
    ) -> SummaryModel:
        fingerprints = {caption.document.id: caption.document.fingerprint for caption in captions}
        batch = SummaryBatch(
            self._parts.summaries, request.source.id, request.named(model.name), fingerprints
        )
        patience, turns = summary_patience(self._parts.settings), self._core.summary_turns
        return SummaryModel(model, batch, request.form, patience, turns, reading)

    def _style(self, request: ResolvedSummaryRequest, model: ChatModel) -> Style:
        clock = clock_of(request.source)
        return Style(
            instructions=request.request.instructions,
            form=None if request.form is None else request.form.text,
            window=model.window,
            count=self._parts.counter(model.tokenizer),
            format_time=lambda seconds: format_time(seconds, clock),
        )

    async def _extract(self, request: ResolvedSummaryRequest) -> Summary:
        captions = await self._read_captions(request)
        if not captions:
            return Summary("empty", "", EXTRACTIVE, ())
        clock, language = clock_of(request.source), request.access.collection.language
        vectors = await self._caption_vectors(request.access, captions)
        analyzer, number = Analyzer(language), request.request.sentences

        def selected(work: Work) -> list[tuple[Caption, str]]:
            return extracted(captions, number, terms=analyzer.terms, vectors=vectors, checkpoint=work)

        sentences = await self._core.long_work.run(selected, user=self._person.id)
        lines = [
            f"{between(caption.start, caption.end, lambda at: format_time(at, clock))}{sentence}"
            for caption, sentence in sentences
        ]
        text = "\n".join(lines)
        start, end = Batch(0, tuple(captions), full=True).times
        only = BatchSummary(0, start, end, len(captions), "done", text)
        return Summary("complete", text, EXTRACTIVE, (timed(only, clock),), trust=_lowest_trust(captions))

    async def _caption_vectors(self, access: CollectionAccess, captions: Sequence[Caption]) -> Vectors | None:
        """Return one row per caption; None if any has no vector."""
        space = access.collection.space
        if space is None:
            return None
        ids = [caption.document.id for caption in captions]
        vectors = await self._parts.summaries.vectors(ids, space)
        if len(vectors) < len(ids):
            return None
        joined = b"".join(vectors[caption_id] for caption_id in ids)
        return np.frombuffer(joined, "<f2").astype(np.float32).reshape(len(ids), -1)


def summary_patience(settings: Settings) -> RetryPolicy:
    """Return how calls of the chat model are retried in the background."""
    longest = float(settings.embed_max_backoff_seconds)
    first = settings.job_backoff_ms / 1_000
    return RetryPolicy(max(1, settings.summary_max_attempts), first_wait=first, max_wait=longest)


def _lowest_trust(captions: Sequence[Caption], *levels: Trust) -> Trust:
    return least(*levels, *(caption.document.trust for caption in captions))


def timed(batch: BatchSummary, clock: StreamClock) -> BatchSummary:
    """Return a batch with formatted times."""
    start, end = (
        None if seconds is None else format_time(seconds, clock) for seconds in (batch.start, batch.end)
    )
    return replace(batch, start_text=start, end_text=end)


def reported(finished: Finished, model: str, form: JsonSchemaOutput | None, *, calls: int) -> Summary:
    """Return the outcome. Raises the first error if nothing was made."""
    full_text = finished.full_text
    done = [batch for batch in finished.batches if batch.state == "done"]
    if finished.fault is not None and not done and isinstance(finished.fault, ChatError):
        raise finished.fault
    text = "" if full_text is None else full_text.text
    return Summary(
        outcome="complete" if finished.fault is None else "partial",
        text=text,
        by=model,
        batches=finished.batches,
        data=form.read(text) if form is not None and text else None,
        calls=calls,
    )


def _counts(summary: Summary) -> Mapping[str, Json]:
    """Return the report of a job, without text, which is deleted with its captions."""
    failures: list[Json] = [{"batch": failure.number, "code": failure.code} for failure in summary.failures]
    return {
        "outcome": summary.outcome,
        "by": summary.by,
        "captions": sum(batch.captions for batch in summary.batches),
        "batches": len(summary.batches),
        "calls": summary.calls,
        "failures": failures,
    }
