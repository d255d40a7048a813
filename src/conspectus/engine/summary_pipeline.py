"""The summary pipeline: captions in batches, summarized by a chat model or by extraction."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from conspectus.access.collection_access import CollectionAccess
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext
from conspectus.engine.long_work import Work
from conspectus.engine.service import Service
from conspectus.engine.stream_reader import StreamReader
from conspectus.engine.summary_model import AnswerStore, SummaryModel, summary_retries
from conspectus.errors import (
    ChatError,
    ChatNotConfigured,
    PreconditionFailed,
    TooLarge,
)
from conspectus.ingest.captions import span_of
from conspectus.ingest.job_execution import Outcome, Tell
from conspectus.model.captions import Caption
from conspectus.model.jobs import Job
from conspectus.model.records import Json, Source
from conspectus.model.stream_summaries import BatchSummary, Summary, SummaryRequest
from conspectus.model.trust import Trust, least
from conspectus.ports import Progress, Vectors
from conspectus.ports.chat import ChatModel
from conspectus.ports.streams import Span
from conspectus.streams.caption_batches import Batch, batches, by_index
from conspectus.streams.caption_format import format_time
from conspectus.streams.extractive_summary import select_captions
from conspectus.streams.json_schema_output import JsonSchemaOutput
from conspectus.streams.summarizer import Style, Summarizer, format_range
from conspectus.streams.summary_runner import (
    Finished,
    check_request,
    in_batches,
    in_turn,
    recipe,
    request_from_json,
)
from conspectus.text.analyzer import Analyzer
from conspectus.text.stream_clocks import StreamClock, clock_of

MAX_ROUNDS = 3
"""Number of attempts if captions change while a summary is made."""
EXTRACTIVE = "extractive"


@dataclass(frozen=True, slots=True)
class ResolvedSummaryRequest:
    """A validated request with its stream and range."""

    request: SummaryRequest
    source: Source
    access: CollectionAccess
    span: Span
    form: JsonSchemaOutput | None

    def recipe_for(self, model: str) -> str:
        """Return the recipe of summaries by a model: equal recipes give comparable summaries."""
        return recipe(self.request, self.span, model)


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """Options of a run: with `reading`, no model is called; with `filling`, only full batches are used."""

    reading: bool = False
    filling: bool = False
    progress: Progress | None = None

    def report(self, count: int, total: int) -> None:
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
        as_json = job.arguments.get("request")
        request = await self.resolve(request_from_json(as_json if isinstance(as_json, dict) else {}))
        filling = job.arguments.get("filling") is True
        options = SummaryOptions(filling=filling, progress=lambda _, done, total: tell(done, total))
        return Outcome(_counts(await self.summarize(request, options)))

    async def resolve(self, request: SummaryRequest) -> ResolvedSummaryRequest:
        """Resolve a request. Raises InvalidInput, TooLarge or NotFound."""
        request = check_request(request, max_characters=self._parts.settings.max_chat_characters)
        form = None if request.schema is None else JsonSchemaOutput(request.schema)
        access, source = await self._reader.source(request.stream, request.collection)
        column, collection = "standing_summaries.request", source.collection
        instructions, schema = request.instructions, request.schema
        request = replace(
            request,
            instructions=self._context.screen_value(column, instructions, collection, field="instructions"),
            schema=self._context.screen_value(column, schema, collection, field="schema"),
        )
        span = span_of(request.range, clock_of(source))
        return ResolvedSummaryRequest(request, source, access, span, form)

    async def summarize(self, request: ResolvedSummaryRequest, options: SummaryOptions) -> Summary:
        """Return the summary of a request, made by the model if there is one, else by extraction.

        Requests with the same recipe wait for each other.
        """
        model = None if request.request.extractive else self._parts.chat_model
        if model is None:
            return await self._extract(request)
        recipe = request.recipe_for(model.name)
        lock = self._core.summary_locks.setdefault(f"{request.source.id} {recipe}", asyncio.Lock())
        if options.reading:
            return await self._summarize_once(request, model, options)
        async with lock:
            for _ in range(MAX_ROUNDS - 1):
                with suppress(PreconditionFailed):
                    return await self._summarize_once(request, model, options)
            return await self._summarize_once(request, model, options)

    async def _summarize_once(
        self, request: ResolvedSummaryRequest, model: ChatModel, options: SummaryOptions
    ) -> Summary:
        """Make one attempt with the current captions."""
        recipe = request.recipe_for(model.name)
        captions = await self._read_captions(request)
        to_summarize = await self._split_captions(request, recipe, captions, options)
        if not to_summarize:
            return Summary("empty", "", model.name, ())
        summary_model = self._make_model(request, model, captions, reading=options.reading)
        writer = Summarizer(self._style(request, model), summary_model.ask, model.name)
        options.report(0, len(to_summarize))

        def report(count: int) -> None:
            options.report(count, len(to_summarize))

        if request.request.mode == "refine":
            finished = await in_turn(writer, to_summarize, report)
        else:
            workers = 2 * max(1, self._parts.settings.summary_concurrency)
            finished = await in_batches(
                writer, to_summarize, report, workers=workers, together=not options.filling
            )
        if not options.reading and not options.filling and finished.fault is None:
            await self._parts.summaries.tidy(request.source.id, recipe, summary_model.used)
        summary = summary_of(finished, model.name, request.form, calls=summary_model.calls)
        clock = clock_of(request.source)
        return replace(
            summary,
            trust=_lowest_trust(captions, "standard"),
            batches=tuple(with_formatted_times(batch, clock) for batch in summary.batches),
        )

    async def _split_captions(
        self,
        request: ResolvedSummaryRequest,
        recipe: str,
        captions: Sequence[Caption],
        options: SummaryOptions,
    ) -> list[Batch]:
        """Split captions into batches. The borders of batches by time are stored before any model call."""
        source, size = request.source.id, request.request.batch_size
        if by_index(captions):
            all_batches = batches(captions, size)
        else:
            stored_borders = await self._parts.summaries.borders(source, recipe)
            all_batches = batches(captions, size, stored_borders)
            borders = [batch.border for batch in all_batches if batch.full or not options.filling]
            if not options.reading and borders != list(stored_borders):
                await self._parts.summaries.set_boundaries(source, recipe, borders)
        if options.filling:
            return [batch for batch in all_batches if batch.full]
        return all_batches

    async def _read_captions(self, request: ResolvedSummaryRequest) -> list[Caption]:
        maximum = self._parts.settings.max_summary_captions
        captions = await self._reader.timeline(request.access, request.source, request.span)
        if len(captions) > maximum:
            raise TooLarge("range", size=len(captions), limit=maximum, unit="captions")
        return [caption for caption in captions if caption.text.strip()]

    def _make_model(
        self, request: ResolvedSummaryRequest, model: ChatModel, captions: Sequence[Caption], *, reading: bool
    ) -> SummaryModel:
        fingerprints = {caption.document.id: caption.document.fingerprint for caption in captions}
        answers = AnswerStore(
            self._parts.summaries, request.source.id, request.recipe_for(model.name), fingerprints
        )
        retries, turns = summary_retries(self._parts.settings), self._core.summary_turns
        return SummaryModel(model, answers, request.form, retries, turns, reading)

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

        def select_sentences(work: Work) -> list[tuple[Caption, str]]:
            return select_captions(captions, number, terms=analyzer.terms, vectors=vectors, checkpoint=work)

        sentences = await self._core.long_work.run(select_sentences, user=self._person.id)
        lines = [
            f"{format_range(caption.start, caption.end, lambda at: format_time(at, clock))}{sentence}"
            for caption, sentence in sentences
        ]
        text = "\n".join(lines)
        start, end = Batch(0, tuple(captions), full=True).times
        batch = BatchSummary(0, start, end, len(captions), "done", text)
        return Summary(
            "complete", text, EXTRACTIVE, (with_formatted_times(batch, clock),), trust=_lowest_trust(captions)
        )

    async def _caption_vectors(self, access: CollectionAccess, captions: Sequence[Caption]) -> Vectors | None:
        """Return one row per caption; None if any has no vector."""
        space = access.collection.space
        if space is None:
            return None
        ids = [caption.document.id for caption in captions]
        vectors = await self._parts.summaries.vectors(ids, space)
        if len(vectors) < len(ids):
            return None
        rows = b"".join(vectors[caption_id] for caption_id in ids)
        return np.frombuffer(rows, "<f2").astype(np.float32).reshape(len(ids), -1)


def _lowest_trust(captions: Sequence[Caption], *levels: Trust) -> Trust:
    return least(*levels, *(caption.document.trust for caption in captions))


def with_formatted_times(batch: BatchSummary, clock: StreamClock) -> BatchSummary:
    """Return a batch with formatted times."""
    start, end = (
        None if seconds is None else format_time(seconds, clock) for seconds in (batch.start, batch.end)
    )
    return replace(batch, start_text=start, end_text=end)


def summary_of(finished: Finished, model: str, form: JsonSchemaOutput | None, *, calls: int) -> Summary:
    """Return the summary of finished batches. Raises the first error if no batch could be summarized."""
    full_text = finished.full_text
    has_summaries = any(batch.state == "done" for batch in finished.batches)
    if isinstance(finished.fault, ChatError) and not has_summaries:
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
    """Return the result of a job. It has no text, as texts have to be deleted with their captions."""
    failures: list[Json] = [{"batch": failure.number, "code": failure.code} for failure in summary.failures]
    return {
        "outcome": summary.outcome,
        "by": summary.by,
        "captions": sum(batch.captions for batch in summary.batches),
        "batches": len(summary.batches),
        "calls": summary.calls,
        "failures": failures,
    }
