"""Summaries of streams: asked for, kept, and for live streams made as they grow."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace as changed

from conspectus.access.policy import require_scope
from conspectus.engine.summary_pipeline import ResolvedSummaryRequest, SummaryOptions, SummaryPipeline
from conspectus.errors import ChatNotConfigured, InvalidInput
from conspectus.ingest.job_execution import Outcome, Tell
from conspectus.model.jobs import Job
from conspectus.model.records import Json, Written
from conspectus.model.streams import NewCaption, NewStream, Stream, Summary, SummaryRequest
from conspectus.ports import Progress
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.ports.summaries import SavedSummary
from conspectus.ports.timelines import Span
from conspectus.streams.summary_batches import spot
from conspectus.streams.summary_requests import request_from_json, request_to_json
from conspectus.streams.summary_runner import NotKept
from conspectus.text.clocks import clock_of


class Summarising(SummaryPipeline):
    """What a stream, or a stretch of one, comes to."""

    async def summarise(self, request: SummaryRequest, *, progress: Progress | None = None) -> Summary:
        """The summary of the captions of a range; what was summarised before is not asked for again.

        A batch that fails is among the `failures` of the result, and left out of it. Without a chat model, or
        if asked to, captions are chosen instead of sentences written. Raises the error of the model where no
        batch could be summarised, or all of them together; InvalidInput, TooLarge or NotFound.
        """
        return await self._summed(await self._asked(request), SummaryOptions(progress=progress))

    async def summary(self, request: SummaryRequest) -> Summary | None:
        """The same as far as it is kept, without asking a model; None if it was not made, or not lately.

        A batch that is not kept is among the failures.
        """
        try:
            made = await self._summed(await self._asked(request), SummaryOptions(reading=True))
        except NotKept:
            return None
        return made if made.text or made.outcome == "empty" else None

    async def start_summary(self, request: SummaryRequest) -> Job:
        """Have a summary made by a job, which is returned at once; `summary` then gives it."""
        require_scope(self._person, "write", "have a summary made by a job")
        return await self._submit(self._summary_job(await self._asked(request)))

    async def keep_summarised(
        self, request: SummaryRequest | None, *, stream: str, collection: str = "default"
    ) -> None:
        """Summarise each batch of a live stream as soon as it is full, and the last when the stream ends.

        It ends when `put_stream` says that the stream is not live any more, or with None.
        """
        require_scope(self._person, "write", "write")
        place, source = await self._stream_source(stream, collection)
        place.require("editor", "have a stream summarised", source=source.id)
        store = self._parts.summaries
        if request is None:
            await store.stand(source.id, None)
            return
        if self._parts.chat_model is None:
            raise ChatNotConfigured
        if request.extractive:
            raise InvalidInput(
                "extractive", "needs no model, so there is nothing to do before it is asked for"
            )
        asked = await self._asked(changed(request, stream=source.id, collection=source.collection))
        standing = SavedSummary(self._person.id, request_to_json(asked.request), self._parts.clock())
        await store.stand(source.id, standing)
        await self._fill(asked, standing)

    async def add_captions(
        self,
        captions: NewCaption | Iterable[NewCaption],
        *,
        stream: str,
        collection: str = "default",
        replace: bool = False,
        wait: bool = False,
        progress: Progress | None = None,
    ) -> list[Written]:
        """Store captions in any order, any number of times; the stream is made if it is new.

        The same again is `unchanged`; the same key or index with other content is a Conflict unless
        `replace`.
        """
        indexes: set[int | None] = set()
        given = [captions] if isinstance(captions, NewCaption) else captions
        written = await super().add_captions(
            _noted(given, indexes),
            stream=stream,
            collection=collection,
            replace=replace,
            wait=wait,
            progress=progress,
        )
        if any(each.outcome != "unchanged" for each in written):
            await self._after_adding(stream, collection, indexes)
        return written

    async def put_stream(self, stream: NewStream | str) -> Stream:
        """Make a stream, or describe one anew. Raises Conflict for another origin when there are captions."""
        made = await super().put_stream(stream)
        if isinstance(stream, NewStream) and stream.live is False:
            await self._at_the_end(made)
        return made

    async def _perform(self, job: Job, tell: Tell) -> Outcome:
        if job.kind != "summary":
            return await super()._perform(job, tell)
        if job.arguments.get("standing") is True and self._parts.chat_model is None:
            raise ChatNotConfigured
        told = job.arguments.get("request")
        asked = await self._asked(request_from_json(told if isinstance(told, dict) else {}))
        filling = job.arguments.get("filling") is True
        how = SummaryOptions(filling=filling, progress=lambda _, done, total: tell(done, total))
        return Outcome(_counts(await self._summed(asked, how)))

    async def _after_adding(self, stream: str, collection: str, indexes: Collection[int | None]) -> None:
        _, source = await self._stream_source(stream, collection)
        standing = await self._parts.summaries.standing(source.id)
        if standing is None or self._parts.chat_model is None:
            return
        asked = await self._asked(request_from_json(standing.request))
        if await self._is_due(asked, indexes):
            await self._fill(asked, standing)

    async def _is_due(self, asked: ResolvedSummaryRequest, indexes: Collection[int | None]) -> bool:
        """Whether a batch may be full that was not before; looks only at the end, or where indexes point."""
        size, model = asked.request.batch_size, self._parts.chat_model
        source = asked.source
        numbers = {each // size for each in indexes if each is not None}
        if None not in indexes:
            for number in sorted(numbers):
                span = Span(first=number * size, last=number * size + size - 1)
                if len(await self._timeline(asked.place, source, span)) == size:
                    return True
            return False
        borders = await self._parts.summaries.borders(source.id, asked.named(model.name if model else ""))
        if not borders:
            return len(await self._timeline(asked.place, source, Span())) >= size
        last = borders[-1]
        begin = last.last if last.full else last.first
        timed = begin[0] < float("inf")
        span = Span(start=clock_of(source).instant(begin[0])) if timed else Span()
        after = [each for each in await self._timeline(asked.place, source, span) if spot(each) >= begin]
        return len(after) - last.full >= size

    async def _fill(self, asked: ResolvedSummaryRequest, standing: SavedSummary) -> None:
        """Have the full batches summarised, unless a job that waits will."""
        source = asked.source
        scope = JobScope((JobPlace(source.collection),), ("queued",))
        for job in (await self._parts.work.ledger.jobs(scope)).jobs:
            if job.kind == "summary" and job.source == source.id and job.arguments.get("filling") is True:
                return
        await self._submit(self._summary_job(asked, standing, filling=True))

    async def _at_the_end(self, stream: Stream) -> None:
        """Have all that is left summarised, and everything together."""
        standing = await self._parts.summaries.standing(stream.source.id)
        if standing is None:
            return
        asked = await self._asked(request_from_json(standing.request))
        await self._submit(self._summary_job(asked, standing))
        await self._parts.summaries.stand(stream.source.id, None)

    def _summary_job(
        self, asked: ResolvedSummaryRequest, standing: SavedSummary | None = None, *, filling: bool = False
    ) -> Job:
        """A job for what is asked for; for a standing request as whoever made that, and by a model."""
        source = asked.source
        own = changed(asked.request, stream=source.id, collection=source.collection)
        arguments: dict[str, Json] = {
            "request": request_to_json(own),
            "filling": filling,
            "standing": standing is not None,
        }
        job = self._new_job("summary", asked.place, source.id, title=source.name, arguments=arguments)
        return job if standing is None else changed(job, owner=standing.owner)


def _noted(captions: Iterable[NewCaption], indexes: set[int | None]) -> Iterator[NewCaption]:
    for each in captions:
        indexes.add(each.index)
        yield each


def _counts(summary: Summary) -> Mapping[str, Json]:
    """What a job reports: never the text, which has to go with its captions."""
    failures: list[Json] = [{"batch": each.number, "code": each.code} for each in summary.failures]
    return {
        "outcome": summary.outcome,
        "by": summary.by,
        "captions": sum(each.captions for each in summary.batches),
        "batches": len(summary.batches),
        "calls": summary.calls,
        "failures": failures,
    }
