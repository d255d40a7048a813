"""The summaries service: on request, and live while streams grow."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace as changed
from typing import Unpack

from conspectus.access.policy import require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.job_queue import JobQueue
from conspectus.engine.service import Service
from conspectus.engine.stream_reader import StreamReader
from conspectus.engine.summary_pipeline import ResolvedSummaryRequest, SummaryOptions, SummaryPipeline
from conspectus.errors import ChatNotConfigured, InvalidInput, NotFound
from conspectus.model.jobs import Job
from conspectus.model.parameters import CollectionName, StreamName
from conspectus.model.records import Json, Source
from conspectus.model.stream_summaries import Summary, SummaryRequest, SummaryRequestOptions
from conspectus.model.streams import Stream
from conspectus.ports import Progress
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.ports.streams import SavedSummary, Span
from conspectus.streams.caption_batches import time_key
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
        live = await self._parts.summaries.get_live_summary(source.id)
        if live is None or self._parts.chat_model is None:
            return
        request = await self._pipeline.resolve(request_from_json(live.request))
        if await self._has_full_batch(request, indexes):
            await self.fill(request, live)

    async def _has_full_batch(self, request: ResolvedSummaryRequest, indexes: Collection[int | None]) -> bool:
        """Return whether new captions may have filled a batch.

        Captions with an index belong to the batches of their indexes; without one, only the last batch by
        time is checked.
        """
        size, model = request.request.batch_size, self._parts.chat_model
        source = request.source
        batch_numbers = {index // size for index in indexes if index is not None}
        if None not in indexes:
            for number in sorted(batch_numbers):
                span = Span(first=number * size, last=number * size + size - 1)
                if len(await self._reader.timeline(request.access, source, span)) == size:
                    return True
            return False
        recipe = request.recipe_for(model.name if model else "")
        borders = await self._parts.summaries.borders(source.id, recipe)
        if not borders:
            return len(await self._reader.timeline(request.access, source, Span())) >= size
        last_batch = borders[-1]
        begin = last_batch.last if last_batch.full else last_batch.first
        has_time = begin[0] < float("inf")
        span = Span(start=clock_of(source).instant(begin[0])) if has_time else Span()
        captions = await self._reader.timeline(request.access, source, span)
        later_count = sum(time_key(caption) >= begin for caption in captions)
        # The last caption of a full batch is counted too.
        return later_count - last_batch.full >= size

    async def fill(self, request: ResolvedSummaryRequest, live: SavedSummary) -> None:
        """Start a job that summarizes the full batches, unless one is queued."""
        source = request.source
        scope = JobScope((JobPlace(source.collection),), ("queued",))
        for job in (await self._parts.work.job_store.jobs(scope)).jobs:
            if job.kind == "summary" and job.source == source.id and job.arguments.get("filling") is True:
                return
        await self._queue.submit(self.new_job(request, live, filling=True))

    async def stream_ended(self, stream: Stream) -> None:
        """Summarize the remaining captions, then everything together."""
        live = await self._parts.summaries.get_live_summary(stream.source.id)
        if live is None:
            return
        request = await self._pipeline.resolve(request_from_json(live.request))
        await self._queue.submit(self.new_job(request, live))
        await self._parts.summaries.set_live_summary(stream.source.id, None)

    def new_job(
        self, request: ResolvedSummaryRequest, live: SavedSummary | None = None, *, filling: bool = False
    ) -> Job:
        """Return a job for a request; that of a live summary belongs to its owner and needs a model."""
        source = request.source
        owned_request = changed(request.request, stream=source.id, collection=source.collection)
        arguments: dict[str, Json] = {
            "request": request_to_json(owned_request),
            "filling": filling,
            "standing": live is not None,
        }
        job = self._queue.new_job(
            "summary", request.access, source.id, title=source.name, arguments=arguments
        )
        return job if live is None else changed(job, owner=live.owner)


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
        request = await self._pipeline.resolve(SummaryRequest(stream, **options))
        return await self._pipeline.summarize(request, SummaryOptions(progress=progress))

    async def get(self, stream: StreamName, **options: Unpack[SummaryRequestOptions]) -> Summary:
        """Return a stored summary without calling a model.

        The options are those of `summarize`. A batch that is not stored is in `failures`. Raises NotFound if
        there is none, or it is outdated.
        """
        request = await self._pipeline.resolve(SummaryRequest(stream, **options))
        with suppress(NotStored):
            summary = await self._pipeline.summarize(request, SummaryOptions(reading=True))
            if summary.text or summary.outcome == "empty":
                return summary
        raise NotFound("summary", request.source.name)

    async def start_job(self, stream: StreamName, **options: Unpack[SummaryRequestOptions]) -> Job:
        """Summarize in a background job, which is returned at once; `get` then returns the summary."""
        require_scope(self._person, "write", "start a summary job")
        request = await self._pipeline.resolve(SummaryRequest(stream, **options))
        return await self._queue.submit(self._live.new_job(request))

    async def set_live(self, stream: StreamName, **options: Unpack[SummaryRequestOptions]) -> None:
        """Summarize each batch of a live stream when it is full, and the last one when the stream ends.

        This ends when `put` of streams ends the live stream, or with `stop_live`.
        """
        request = SummaryRequest(stream, **options)
        source = await self._require_editable_stream(stream, request.collection)
        if self._parts.chat_model is None:
            raise ChatNotConfigured
        if request.extractive:
            raise InvalidInput("extractive", "cannot be live: extractive summaries are made on request")
        resolved = await self._pipeline.resolve(
            changed(request, stream=source.id, collection=source.collection)
        )
        live = SavedSummary(self._person.id, request_to_json(resolved.request), self._parts.clock())
        await self._parts.summaries.set_live_summary(source.id, live)
        await self._live.fill(resolved, live)

    async def stop_live(self, stream: StreamName, *, collection: CollectionName = "default") -> None:
        """Stop summarizing a live stream; stored summaries stay."""
        source = await self._require_editable_stream(stream, collection)
        await self._parts.summaries.set_live_summary(source.id, None)

    async def _require_editable_stream(self, stream: str, collection: str) -> Source:
        require_scope(self._person, "write", "write")
        access, source = await self._reader.source(stream, collection)
        access.require("editor", "set a live summary", source=source.id)
        return source
