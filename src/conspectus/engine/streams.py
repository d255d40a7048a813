"""The streams service: write, import, read and subscribe to captions."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import replace as changed
from pathlib import Path
from time import monotonic
from typing import Annotated, Unpack

from conspectus.access.collection_access import CollectionAccess
from conspectus.engine.collections import CollectionService
from conspectus.engine.context import EngineContext
from conspectus.engine.documents import DocumentService
from conspectus.engine.job_queue import JobQueue
from conspectus.engine.long_work import Work
from conspectus.engine.searcher import Searcher
from conspectus.engine.service import Service
from conspectus.engine.stream_reader import StreamReader, as_caption
from conspectus.engine.summaries import LiveSummaries
from conspectus.engine.video_query import range_filters
from conspectus.engine.video_search import VideoSearch
from conspectus.errors import (
    Conflict,
    ConspectusError,
    NotFound,
    PermissionDenied,
    as_field,
)
from conspectus.ingest.batch_writes import batches
from conspectus.ingest.captions import (
    FILE,
    HAS_CAPTIONS,
    CaptionCounts,
    CaptionImportOptions,
    by_video,
    caption_document,
    caption_id,
    merge_repeated,
    origin_of,
    path_within,
    recordings_with_captions,
    span_of,
    stream_metadata,
)
from conspectus.model.annotations import Length
from conspectus.model.captions import (
    LIVE,
    ORIGIN,
    TITLE,
    WHOLE,
    ZONE,
    CaptionImport,
    CaptionPage,
    CaptionRange,
    CaptionTrack,
    LiveCaption,
    NewCaption,
    is_recording,
)
from conspectus.model.files import expand_home
from conspectus.model.filter import And, Eq
from conspectus.model.jobs import Upload
from conspectus.model.parameters import (
    MAX_LIST,
    CollectionName,
    Cursor,
    PageLimit,
    Purge,
    QueryText,
    StreamName,
    Wait,
)
from conspectus.model.query import WindowTokens
from conspectus.model.records import NewDocument, Receipt, Source, Written
from conspectus.model.reports import READING
from conspectus.model.streams import (
    Moments,
    NewStream,
    Stream,
    StreamQuery,
    StreamQueryOptions,
    StreamWindow,
    StreamWindowOptions,
)
from conspectus.ports import Progress
from conspectus.text.stream_clocks import StreamClock, clock_of, zone_by_name
from conspectus.window.build import window_form

CAPTIONS_PER_PAGE = 1_000
MAX_CHANGES = 100
"""Maximum number of changes read for a subscriber at once."""
SAME_NAME = "another file of that name was imported: give the folder above both, or rename one"


class StreamService(Service):
    """Streams: captions by time, moments for a query, and subscriptions to new captions."""

    def __init__(
        self,
        context: EngineContext,
        collections: CollectionService,
        documents: DocumentService,
        searcher: Searcher,
        queue: JobQueue,
    ) -> None:
        super().__init__(context)
        self._collections = collections
        self._documents = documents
        self._reader = StreamReader(context)
        self._videos = VideoSearch(context, searcher)
        self._live = LiveSummaries(context, queue)

    async def put(self, stream: Annotated[NewStream | str, "The stream."]) -> Stream:
        """Create a stream, or change the given fields of a stored one.

        Raises Conflict for a source of another kind, and for another start time once there are captions, as
        their times would change.
        """
        new = NewStream(stream) if isinstance(stream, str) else stream
        if await self._authorized.find(new.collection) is None:
            await self._writer.collection(new.collection)
        access = await self._authorized.collection(new.collection)
        source = await self._authorized.source(access, new.name)
        if source is not None and source.kind != "stream":
            raise Conflict("stream", new.name, f"is the name of a source of the kind {source.kind}")
        stored = {} if source is None else source.metadata
        if new.time_zone is not None:
            zone_by_name(new.time_zone)
        zone = new.time_zone or stored.get(ZONE)
        origin = origin_of(new.start_time, zone if isinstance(zone, str) else None)
        moves = origin is not None and origin != stored.get(ORIGIN)
        if source is not None and moves and (await self._authorized.captions.extent(access, source)).captions:
            raise Conflict("stream", source.name, "has captions; another start time would change their times")
        fields = {TITLE: new.title, ORIGIN: origin, ZONE: new.time_zone, LIVE: new.live}
        merged = stream_metadata(stored, fields, new.metadata)
        if source is None or merged != stored:
            with as_field("name", was="source"):
                source = (await self._writer.source(new.name, new.collection, merged, "stream"))[0]
        written = await self._reader.stream(access, source)
        if new.live is False:
            await self._live.stream_ended(written)
        return written

    async def list(self, *, collection: CollectionName = "default") -> Sequence[Stream]:
        """List the streams of a collection that you may read, by name."""
        access = await self._authorized.collection(collection)
        sources = [source for source in await self._authorized.sources(access) if source.kind == "stream"]
        return [await self._reader.stream(access, source) for source in sources]

    async def get(self, stream: StreamName, *, collection: CollectionName = "default") -> Stream:
        """Return the stream of that id or name. Raises NotFound."""
        access, source = await self._reader.source(stream, collection)
        return await self._reader.stream(access, source)

    async def delete(
        self, stream: StreamName, *, collection: CollectionName = "default", purge: Purge = False
    ) -> Receipt:
        """Delete a stream with its captions and events. Raises NotFound."""
        access, source = await self._reader.source(stream, collection)
        return await self._collections.delete_source(source.id, collection=access.collection.id, purge=purge)

    async def add_captions(
        self,
        captions: Annotated[NewCaption | Iterable[NewCaption], Length(0, MAX_LIST), "Captions to write."],
        *,
        stream: StreamName,
        collection: CollectionName = "default",
        replace: Annotated[bool, "Delete the captions that the range of these had before."] = False,
        wait: Wait = False,
        progress: Progress | None = None,
    ) -> Sequence[Written]:
        """Add captions to a stream in any order, in batches of one transaction each.

        A new stream is created. Adding a caption twice has no effect; without `replace`, a stored key or
        index with another text or time is Conflict. Raises InvalidInput or TooLarge; the batch at fault is
        not written.
        """
        indexes: set[int | None] = set()
        numbered = _with_indexes([captions] if isinstance(captions, NewCaption) else captions, indexes)
        target, access = await self._writer.writable(stream, collection, kind="stream")
        if target.kind != "stream":
            raise Conflict("stream", stream, f"is the name of a source of the kind {target.kind}")
        embedder, clock = await self._context.embedder(access.collection), clock_of(target)
        written: list[Written] = []
        for batch in batches(numbered):
            documents = await asyncio.to_thread(_caption_documents, batch, target, clock)
            written += await self._write_captions(access, target, documents, replacing=replace)
            self._context.begin_embedding(access.collection, embedder)
            if progress is not None:
                progress("writing", len(written), 0)
        await self._context.embed_in(access, wait=wait, progress=progress)
        if any(caption.outcome != "unchanged" for caption in written):
            await self._live.captions_added(stream, collection, indexes)
        return written

    async def list_captions(
        self,
        stream: StreamName,
        *,
        collection: CollectionName = "default",
        range: Annotated[CaptionRange, "Range of captions."] = WHOLE,
        after: Cursor | None = None,
        limit: PageLimit = CAPTIONS_PER_PAGE,
    ) -> CaptionPage:
        """List a page of the captions of a stream by time; `after` is a cursor."""
        access, source = await self._reader.source(stream, collection)
        clock = clock_of(source)
        span = span_of(range, clock)
        page = await self._authorized.captions.timeline(
            access, source, span, kind="caption", after=after, limit=limit
        )
        return CaptionPage(tuple(as_caption(*row, clock) for row in page.documents), page.next)

    async def delete_captions(
        self,
        stream: StreamName,
        *,
        collection: CollectionName = "default",
        range: Annotated[CaptionRange, "Range of captions."] = WHOLE,
        purge: Purge = False,
    ) -> Receipt:
        """Delete the captions and events of a range, or all; the stream itself stays."""
        access, source = await self._reader.source(stream, collection)
        within = range_filters(span_of(range, clock_of(source)))
        return await self._documents.delete_by_filter(
            And((Eq("source", source.id), *within)), collection=access.collection.id, purge=purge
        )

    async def import_captions(
        self,
        files: Sequence[str | Path | Upload],
        *,
        stream: str | None = None,
        collection: CollectionName = "default",
        **options: Unpack[CaptionImportOptions],
    ) -> CaptionImport:
        """Import subtitle and caption files, each as a stream of its own unless `stream` names one.

        A stream is named by its file, relative to the given folder and without the extension; a file with
        captions of several videos makes a stream for each. Importing a file again applies its changes. A file
        that fails is named in the report and does not stop the others. Only the owner may
        give a path. Raises PermissionDenied.
        """
        counts = CaptionCounts()
        progress = options.get("progress")
        caption_files = await asyncio.to_thread(self._list_files, files)
        captioned = recordings_with_captions(name for name, _, _ in caption_files)
        for name, data, is_named in _with_progress(caption_files, progress):
            if name in counts.names:
                counts.failures.append((name if isinstance(data, bytes) else str(data), SAME_NAME))
                continue
            counts.names.add(name)
            if name in captioned:
                counts.skipped[name] = HAS_CAPTIONS
                continue
            try:
                await self._import_file(counts, name, data, stream, collection=collection, options=options)
            except (PermissionDenied, NotFound):
                raise
            except ConspectusError as fault:
                counts.fail(name, fault, skips=not is_named or options.get("skip_unsupported", False))
        if counts.streams:
            access = await self._authorized.collection(collection)
            await self._context.embed_in(access, wait=options.get("wait", False), progress=progress)
        return counts.report()

    async def search(self, query: QueryText, **options: Unpack[StreamQueryOptions]) -> Moments:
        """Find the moments of streams that answer a query, best first.

        The options are the fields of StreamQuery. A query that only names a time returns what is in it.
        Raises NotFound for a stream that cannot be read, InvalidInput for an invalid range.
        """
        return await self._videos.search(StreamQuery(query, **options))

    async def window(
        self,
        query: QueryText,
        max_tokens: WindowTokens = 4_000,
        **options: Unpack[StreamWindowOptions],
    ) -> StreamWindow:
        """Build a context window for a query to streams: its moments in the order of time.

        The options are those of `search`, which also says what is raised, and the fields of WindowForm.
        """
        form, query_options = window_form(options, StreamQueryOptions)
        return await self._videos.window(StreamQuery(query, **query_options), max_tokens, form)

    async def subscribe(
        self, *, stream: StreamName, collection: CollectionName = "default", after: int | None = None
    ) -> AsyncGenerator[LiveCaption, None]:
        """Receive new captions as they are written: those after the change `after`, or from now on.

        Runs until it is closed. Raises NotFound, also when the stream cannot be read any more. After a lost
        connection some captions may come twice; none is left out.
        """
        access, source = await self._reader.source(stream, collection)
        sequence = await self._authorized.newest_change(access) if after is None else after
        pause = self._parts.settings.alert_poll_interval_ms / 1_000
        while True:
            newest, changes = await self._authorized.list_written_since(
                access, source, sequence, limit=MAX_CHANGES
            )
            captions = [(change, document) for change, document in changes if document.kind == "caption"]
            texts = await self._authorized.texts([document for _, document in captions])
            access_checked = monotonic()
            for change, document in captions:
                # The receiver may be slow, and lose its access meanwhile.
                if monotonic() - access_checked > pause:
                    access, source = await self._reader.source(source.id, access.collection.id)
                    access_checked = monotonic()
                if document.id in texts:
                    yield LiveCaption(change, as_caption(document, texts[document.id], clock_of(source)))
            if newest == sequence:
                await asyncio.sleep(pause)
            sequence = newest
            access, source = await self._reader.source(source.id, access.collection.id)

    async def last_sequence(self, *, stream: StreamName, collection: CollectionName = "default") -> int:
        """Return the number of a stream's newest change, to subscribe from now on. Raises NotFound."""
        access, _ = await self._reader.source(stream, collection)
        return await self._authorized.newest_change(access)

    async def _import_file(
        self,
        counts: CaptionCounts,
        name: str,
        data: bytes | Path,
        stream: str | None,
        *,
        collection: str,
        options: CaptionImportOptions,
    ) -> None:
        """Replace the captions of one file."""
        track = await self._read_track(name, data, options)
        if track.notice:
            counts.notices.append(f"{name}: {track.notice}")
        for stream_name, captions in by_video(track, name, stream).items():
            if track.title and stream is None:
                await self.put(NewStream(stream_name, collection=collection, title=track.title))
            written = await self.add_captions(
                captions,
                stream=stream_name,
                collection=collection,
                replace=options.get("replace", True),
                progress=options.get("progress"),
            )
            counts.count(stream_name, written)
            await self._delete_others(stream_name, collection, name, {str(caption.id) for caption in written})

    async def _read_track(self, name: str, data: bytes | Path, options: CaptionImportOptions) -> CaptionTrack:
        """Return the captions of a file. A recording waits for its turn, and ends when its caller is gone."""
        loop, progress = asyncio.get_running_loop(), options.get("progress")
        by_sentence = options.get("sentences", True)
        told_seconds = 0

        def read(work: Work) -> CaptionTrack:
            def watch(seconds: float, total: float) -> None:
                nonlocal told_seconds
                work()
                if progress is not None and int(seconds) > told_seconds:
                    told_seconds = int(seconds)
                    loop.call_soon_threadsafe(progress, f"transcribing {name}", told_seconds, round(total))

            return self._parts.make_captions().read(data, name, sentences=by_sentence, watch=watch)

        if is_recording(name):
            return await self._context.core.long_work.run(read, kind="recording", user=self._person.id)
        return await asyncio.to_thread(read, Work())

    async def _delete_others(self, stream: str, collection: str, name: str, current_ids: set[str]) -> None:
        """Delete the stored captions of a file that it no longer contains."""
        access, source = await self._reader.source(stream, collection)
        where = And((Eq("source", source.id), Eq("kind", "caption"), Eq((FILE,), name)))
        stored = self._authorized.iterate_matching(access, where)
        outdated = [
            document.id async for page in stored for document in page if document.id not in current_ids
        ]
        if outdated:
            await self._documents.delete(outdated)

    def _list_files(self, files: Sequence[str | Path | Upload]) -> Sequence[tuple[str, bytes | Path, bool]]:
        """Return the names of all files, their bytes or paths, and whether each was named by the caller."""
        caption_files: list[tuple[str, bytes | Path, bool]] = []
        for file in files:
            if isinstance(file, Upload):
                caption_files.append((path_within(file.name), file.data, True))
            elif not self._person.owner:
                raise PermissionDenied("read files of the machine that holds the store", "its owner account")
            else:
                discovered = self._parts.make_files().discover([expand_home(file)])
                caption_files += [
                    (found_file.name, found_file.path, found_file.is_named) for found_file in discovered
                ]
        return caption_files

    async def _write_captions(
        self, access: CollectionAccess, stream: Source, documents: Sequence[NewDocument], *, replacing: bool
    ) -> Sequence[Written]:
        """Write a batch, and return the outcome of each caption in order; a repeated one is `unchanged`."""
        ids = [caption_id(stream.id, document.key or "") for document in documents]
        stored = {
            str(document.id): document
            for document in await self._authorized.inside(access, list(dict.fromkeys(ids)))
        }
        new_documents = merge_repeated(documents, stored, stream, replacing=replacing)
        written = await self._context.write(new_documents, stream)
        by_id = {str(document.id): document for document in written}
        outcomes: list[Written] = []
        reported: set[str] = set()
        for id in ids:
            is_repeated = id in reported
            outcomes.append(changed(by_id[id], outcome="unchanged") if is_repeated else by_id[id])
            reported.add(id)
        return outcomes


def _with_progress(
    files: Sequence[tuple[str, bytes | Path, bool]], progress: Progress | None
) -> Iterator[tuple[str, bytes | Path, bool]]:
    """Yield files, and report how many were read."""
    for number, file in enumerate(files):
        if progress is not None:
            progress(READING, number, len(files))
        yield file
    if progress is not None:
        progress(READING, len(files), len(files))


def _with_indexes(captions: Iterable[NewCaption], indexes: set[int | None]) -> Iterator[NewCaption]:
    for caption in captions:
        indexes.add(caption.index)
        yield caption


def _caption_documents(batch: Sequence[NewCaption], stream: Source, clock: StreamClock) -> list[NewDocument]:
    documents: list[NewDocument] = []
    for number, caption in enumerate(batch, start=1):
        try:
            documents.append(caption_document(caption, stream, clock))
        except ConspectusError as fault:
            fault.add_note(f"caption {number} of {len(batch)}")
            raise
    return documents
