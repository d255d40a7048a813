"""Streams of a server."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Final, Unpack

from conspectus.client.event_stream import follow, read_event
from conspectus.client.operations import derive_client, request_for
from conspectus.client.request import Request, path_of
from conspectus.client.transport import RemoteService
from conspectus.engine.documents import DocumentService
from conspectus.engine.streams import StreamService
from conspectus.ingest.batch_writes import batches
from conspectus.ingest.captions import CaptionImportOptions
from conspectus.model.captions import CaptionImport, LiveCaption, NewCaption
from conspectus.model.files import expand_home
from conspectus.model.jobs import Upload
from conspectus.model.records import Json, Written
from conspectus.ports import Progress
from conspectus.text.clean import clean

CAPTION_EVENT: Final = "caption"


@derive_client
class RemoteEmbedding(RemoteService, DocumentService):
    """The documents of a server, of which only the wait for their vectors is used."""


@derive_client
class RemoteStreams(RemoteService, StreamService):
    """Streams of a server."""

    async def add_captions(
        self,
        captions: NewCaption | Iterable[NewCaption],
        *,
        stream: str,
        collection: str = "default",
        replace: bool = False,
        wait: bool = False,
        progress: Progress | None = None,
    ) -> Sequence[Written]:
        all_captions = [captions] if isinstance(captions, NewCaption) else captions
        where = {"stream": stream, "collection": collection, "replace": replace}
        requests = (
            request_for(StreamService.add_captions, captions=batch, **where)
            for batch in batches(all_captions)
        )
        written = await self._in_batches(Written, requests, "writing", progress)
        if wait:
            await self._open_sibling(RemoteEmbedding).wait_until_embedded(
                collection=collection, progress=progress
            )
        return written

    async def import_captions(
        self,
        files: Sequence[str | Path | Upload],
        *,
        stream: str | None = None,
        collection: str = "default",
        **options: Unpack[CaptionImportOptions],
    ) -> CaptionImport:
        uploads, inside = await asyncio.to_thread(self._uploads, files)
        progress = options.get("progress")
        form: dict[str, Json] = {"collection": clean(collection)}
        form |= {name: str(options.get(name, True)).lower() for name in ("sentences", "replace")}
        form |= {} if stream is None else {"stream": clean(stream)}
        reports = []
        for number, upload in enumerate(uploads):
            if progress is not None:
                progress(f"sending {upload.name}", number, len(uploads))
            skips = options.get("skip_unsupported", False) or number in inside
            parameters = {**form, "skip_unsupported": str(skips).lower()}
            request = Request(
                "POST", "/streams/import", parameters, uploads=[upload], writes=True, unhurried=True
            )
            reports.append(await self._channel.one(CaptionImport, request))
        if options.get("wait", False) and any(report.streams for report in reports):
            await self._open_sibling(RemoteEmbedding).wait_until_embedded(
                collection=collection, progress=progress
            )
        return _combine_reports(reports)

    async def subscribe(
        self, *, stream: str, collection: str = "default", after: int | None = None
    ) -> AsyncGenerator[LiveCaption, None]:
        path, query = path_of("streams", ("stream", stream), "stream"), {"collection": clean(collection)}
        async with aclosing(follow(self._channel, path, query, after=after)) as events:
            async for event in events:
                if event.name == CAPTION_EVENT:
                    yield read_event(self._channel, LiveCaption, event)

    def _uploads(self, files: Sequence[str | Path | Upload]) -> tuple[Sequence[Upload], set[int]]:
        """Return all files with their names for the server, and the paths of those found in a folder.

        A server knows a file by the last part of its name. Files with equal last parts get their whole path.
        """
        uploads: list[Upload] = []
        inside: set[int] = set()
        for file in files:
            if isinstance(file, Upload):
                uploads.append(file)
                continue
            for one in self._files.discover([expand_home(file)]):
                inside |= set() if one.is_named else {len(uploads)}
                uploads.append(Upload(one.name, one.path))
        often = Counter(PurePath(upload.name).name for upload in uploads)
        named = [
            replace(upload, name=upload.name.replace("/", " - "))
            if often[PurePath(upload.name).name] > 1
            else upload
            for upload in uploads
        ]
        return named, inside


def _combine_reports(reports: Sequence[CaptionImport]) -> CaptionImport:
    """Combine the reports of all files."""
    streams: Counter[str] = Counter()
    total = CaptionImport({}, 0, 0, 0)
    for report in reports:
        streams.update(report.streams)
        names = ("added", "replaced", "unchanged", "failures", "notices", "skipped", "chunks")
        total = replace(total, **{name: getattr(total, name) + getattr(report, name) for name in names})
    skipped_files = {name: reason for report in reports for name, reason in report.skipped_files.items()}
    return replace(total, streams=dict(streams), skipped_files=skipped_files)
