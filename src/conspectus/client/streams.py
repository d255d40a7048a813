"""Streams of captions of a server."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Final, Unpack

from conspectus.client.documents import RemoteDocuments
from conspectus.client.encode import encoded, metadata_json
from conspectus.client.operations import derived
from conspectus.client.request import Request, path_of
from conspectus.client.service import RemoteService
from conspectus.client.subscriptions import live, read_event
from conspectus.engine.streams import StreamService
from conspectus.ingest.captions import CaptionImportOptions
from conspectus.ingest.prepare import batches
from conspectus.model.jobs import Upload
from conspectus.model.records import Json, Written
from conspectus.model.streams import (
    CaptionImport,
    CaptionRange,
    LiveCaption,
    NewCaption,
)
from conspectus.ports import Progress
from conspectus.text.clean import clean

CAPTION: Final = "caption"


@derived
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
        given = [captions] if isinstance(captions, NewCaption) else captions
        path, query = in_stream(stream, "captions"), {"collection": clean(collection)}
        written: list[Written] = []
        for batch in batches(given):
            body: Json = {"captions": [_caption_json(each) for each in batch], "replace": replace}
            request = Request("POST", path, body, query=query, writes=True, unhurried=True)
            written += await self._channel.member(tuple[Written, ...], "written", request)
            if progress is not None:
                progress("writing", len(written), 0)
        if wait:
            await self._beside(RemoteDocuments).wait_until_embedded(collection=collection, progress=progress)
        return written

    async def import_captions(
        self,
        files: Sequence[str | Path | Upload],
        *,
        stream: str | None = None,
        collection: str = "default",
        **how: Unpack[CaptionImportOptions],
    ) -> CaptionImport:
        given, inside = await asyncio.to_thread(self._uploads, files)
        progress = how.get("progress")
        form: dict[str, Json] = {"collection": clean(collection)}
        form |= {name: str(how.get(name, True)).lower() for name in ("sentences", "replace")}
        form |= {} if stream is None else {"stream": clean(stream)}
        reports = []
        for number, each in enumerate(given):
            if progress is not None:
                progress(f"sending {each.name}", number, len(given))
            skips = how.get("skip_unsupported", False) or number in inside
            told = {**form, "skip_unsupported": str(skips).lower()}
            request = Request("POST", "/streams/import", told, uploads=[each], writes=True, unhurried=True)
            reports.append(await self._channel.one(CaptionImport, request))
        if how.get("wait", False) and any(each.streams for each in reports):
            await self._beside(RemoteDocuments).wait_until_embedded(collection=collection, progress=progress)
        return _together(reports)

    async def subscribe(
        self, *, stream: str, collection: str = "default", after: int | None = None
    ) -> AsyncGenerator[LiveCaption, None]:
        query = {"collection": clean(collection)}
        async with aclosing(live(self._channel, in_stream(stream, "stream"), query, after=after)) as events:
            async for event in events:
                if event.name == CAPTION:
                    yield read_event(self._channel, LiveCaption, event)

    def _uploads(self, files: Sequence[str | Path | Upload]) -> tuple[Sequence[Upload], set[int]]:
        """All files with their names, and the places of those that were found in a folder.

        A server knows a file by the last part of its name: where several have the same, it is by all of it.
        """
        found: list[Upload] = []
        inside: set[int] = set()
        for each in files:
            if isinstance(each, Upload):
                found.append(each)
                continue
            for one in self._files.discover([Path(each).expanduser()]):
                inside |= set() if one.is_named else {len(found)}
                found.append(Upload(one.name, one.path))
        often = Counter(PurePath(each.name).name for each in found)
        named = [
            replace(each, name=each.name.replace("/", " - ")) if often[PurePath(each.name).name] > 1 else each
            for each in found
        ]
        return named, inside


def in_stream(stream: str, *parts: str) -> str:
    """The path of something in a stream. Raises NotFound for what no name of a stream is."""
    return path_of("streams", ("stream", stream), *parts)


def range_query(within: CaptionRange) -> dict[str, Json]:
    """A range as parameters of an address."""
    told = {name: encoded(getattr(within, name)) for name in ("start", "end", "first", "last")}
    return {**told, "contains": within.contains or None}


def _together(reports: Iterable[CaptionImport]) -> CaptionImport:
    """What became of all files."""
    streams: Counter[str] = Counter()
    total = CaptionImport({}, 0, 0, 0)
    for each in reports:
        streams.update(each.streams)
        total = CaptionImport(
            dict(streams),
            total.added + each.added,
            total.replaced + each.replaced,
            total.unchanged + each.unchanged,
            total.failures + each.failures,
            total.notices + each.notices,
            total.skipped + each.skipped,
        )
    return total


def _caption_json(caption: NewCaption) -> Json:
    return {
        "text": encoded(caption.text),
        "start": encoded(caption.start),
        "end": encoded(caption.end),
        "index": caption.index,
        "key": encoded(caption.key),
        "speaker": encoded(caption.speaker),
        "entities": encoded(caption.entities),
        "metadata": dict(metadata_json(caption.metadata)),
        "vector": encoded(caption.vector),
    }
