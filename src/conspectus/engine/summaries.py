"""The summaries service: on request, and live while streams grow."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace as changed
from typing import Unpack

from conspectus.access.policy import require_scope
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.job_queue import JobQueue
from conspectus.engine.stream_reader import StreamReader
from conspectus.engine.summary_pipeline import ResolvedSummaryRequest, SummaryOptions, SummaryPipeline
from conspectus.errors import ChatNotConfigured, InvalidInput, NotFound
from conspectus.model.jobs import Job
from conspectus.model.parameters import CollectionName, StreamName
from conspectus.model.records import Json, Source
from conspectus.model.streams import Stream, Summary, SummaryRequest, SummaryRequestOptions
from conspectus.ports import Progress
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.ports.streams import SavedSummary, Span
from conspectus.streams.summarizer import spot
from conspectus.streams.summary_runner import NotStored, request_from_json, request_to_json
from conspectus.text.stream_clocks import clock_of


class LiveSummaries(Service, checked=False):
    """Live summaries of growing streams."""

    def __init__(self, context: EngineContext, queue: JobQueue) -> None:
        super().__init__(context)
        self._reader = StreamReader(context)
        self._pipeline = SummaryPipeline(context)
        self._queue = queue

    async def captions_added(self, stream: str, collection: str, indexes: Collection[int | None]) -> None:
        """Start summaries of the batches that new captions with these indexes filled."""
        _, source = await self._reader.source(stream, collection)
        standing = await self._parts.summaries.standing(source.id)
        if standing is None or self._parts.chat_model is None:
            return
        request = await self._pipeline.resolved(request_from_json(standing.request))
        if await self._is_due(request, indexes):
            await self.fill(request, standing)

    async def _is_due(self, request: ResolvedSummaryRequest, indexes: Collection[int | None]) -> bool:
        """Return whether a batch may have become full; only the end and the given indexes are checked."""
        size, model = request.request.batch_size, self._parts.chat_model
        source = request.source
        numbers = {index // size for index in indexes if index is not None}
        if None not in indexes:
            for number in sorted(numbers):
                span = Span(first=number * size, last=number * size + size - 1)
                if len(await self._reader.timeline(request.access, source, span)) == size:
                    return True
            return False
        borders = await self._parts.summaries.borders(source.id, request.named(model.name if model else ""))
        if not borders:
            return len(await self._reader.timeline(request.access, source, Span())) >= size
        last = borders[-1]
        begin = last.last if last.full else last.first
        timed = begin[0] < float("inf")
        span = Span(start=clock_of(source).instant(begin[0])) if timed else Span()
        after = [
            caption
            for caption in await self._reader.timeline(request.access, source, span)
            if spot(caption) >= begin
        ]
        return len(after) - last.full >= size

    async def fill(self, request: ResolvedSummaryRequest, standing: SavedSummary) -> None:
        """Summarize the full batches, unless a queued job will."""
        source = request.source
        scope = JobScope((JobPlace(source.collection),), ("queued",))
        for job in (await self._parts.work.job_store.jobs(scope)).jobs:
            if job.kind == "summary" and job.source == source.id and job.arguments.get("filling") is True:
                return
        await self._queue.submit(self.job(request, standing, filling=True))

    async def stream_ended(self, stream: Stream) -> None:
        """Summarize the remaining captions, then everything together."""
        standing = await self._parts.summaries.standing(stream.source.id)
        if standing is None:
            return
        request = await self._pipeline.resolved(request_from_json(standing.request))
        await self._queue.submit(self.job(request, standing))
        await self._parts.summaries.stand(stream.source.id, None)

    def job(
        self, request: ResolvedSummaryRequest, standing: SavedSummary | None = None, *, filling: bool = False
    ) -> Job:
        """Return the job of a request; for a live summary, as its owner and with a model."""
        source = request.source
        owned_request = changed(request.request, stream=source.id, collection=source.collection)
        arguments: dict[str, Json] = {
            "request": request_to_json(owned_request),
            "filling": filling,
            "standing": standing is not None,
        }
        job = self._queue.new_job(
            "summary", request.access, source.id, title=source.name, arguments=arguments
        )
        return job if standing is None else changed(job, owner=standing.owner)


class SummaryService(Service):
    """Summaries of streams and of parts of them."""

    def __init__(self, context: EngineContext, queue: JobQueue) -> None:
        super().__init__(context)
        self._reader = StreamReader(context)
        self._pipeline = SummaryPipeline(context)
        self._queue = queue
        self._live = LiveSummaries(context, queue)

    async def summarize(
        self,
        stream: StreamName,
        *,
        progress: Progress | None = None,
        **options: Unpack[SummaryRequestOptions],
    ) -> Summary:
        """Summarize the captions of a range; batches that are summarized already are not requested again.

        A batch that fails is in `failures` and left out of the summary. Without a chat model, or if asked to,
        captions are chosen as the summary (extraction). The options are the fields of SummaryRequest. Raises
        the error of the model if no batch could be summarized, or not all of them together; InvalidInput,
        TooLarge or NotFound.
        """
        request = await self._pipeline.resolved(SummaryRequest(stream, **options))
        return await self._pipeline.summarize(request, SummaryOptions(progress=progress))

    async def get(self, stream: StreamName, **options: Unpack[SummaryRequestOptions]) -> Summary:
        """Return a stored summary without calling a model.

        The options are those of `summarize`. A batch that is not stored is in `failures`. Raises NotFound if
        there is none, or it is outdated.
        """
        request = await self._pipeline.resolved(SummaryRequest(stream, **options))
        with suppress(NotStored):
            summary = await self._pipeline.summarize(request, SummaryOptions(reading=True))
            if summary.text or summary.outcome == "empty":
                return summary
        raise NotFound("summary", request.source.name)

    async def start_job(self, stream: StreamName, **options: Unpack[SummaryRequestOptions]) -> Job:
        """Summarize in a background job, which is returned at once; `get` then returns the summary."""
        require_scope(self._person, "write", "start a summary job")
        request = await self._pipeline.resolved(SummaryRequest(stream, **options))
        return await self._queue.submit(self._live.job(request))

    async def set_live(self, stream: StreamName, **options: Unpack[SummaryRequestOptions]) -> None:
        """Summarize each batch of a live stream when it is full, and the last one when the stream ends.

        This ends when `put` of streams ends the live stream, or with `stop_live`.
        """
        request = SummaryRequest(stream, **options)
        source = await self._live_stream(stream, request.collection)
        if self._parts.chat_model is None:
            raise ChatNotConfigured
        if request.extractive:
            raise InvalidInput("extractive", "cannot be live: extractive summaries are made on request")
        resolved = await self._pipeline.resolved(
            changed(request, stream=source.id, collection=source.collection)
        )
        standing = SavedSummary(self._person.id, request_to_json(resolved.request), self._parts.clock())
        await self._parts.summaries.stand(source.id, standing)
        await self._live.fill(resolved, standing)

    async def stop_live(self, stream: StreamName, *, collection: CollectionName = "default") -> None:
        """Stop summarizing a live stream; stored summaries stay."""
        source = await self._live_stream(stream, collection)
        await self._parts.summaries.stand(source.id, None)

    async def _live_stream(self, stream: str, collection: str) -> Source:
        require_scope(self._person, "write", "write")
        access, source = await self._reader.source(stream, collection)
        access.require("editor", "set a live summary", source=source.id)
        return source
