"""Writing, reading and deleting documents of a server."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Unpack
from urllib.parse import quote
from uuid import uuid4

from conspectus.client.collections import RemoteCollections, in_collection
from conspectus.client.operations import derive_client, request_for
from conspectus.client.request import (
    Request,
    changes_json,
    document_json,
    long_write_request,
    path_of,
    to_json,
    write_request,
)
from conspectus.client.streams import RemoteStreams
from conspectus.client.transport import RemoteService
from conspectus.engine.documents import DocumentService
from conspectus.engine.line_order import NumberedLine, parents_first
from conspectus.errors import InvalidInput, PermissionDenied
from conspectus.ingest.batch_writes import batches
from conspectus.ingest.files import Intake, Root, add_files_below, resolve_destination
from conspectus.ingest.plain_texts import as_documents
from conspectus.memory.jsonl_reader import renumber
from conspectus.model.filter import Filter, matches
from conspectus.model.filter_json import filter_to_json
from conspectus.model.pages import pages, portions
from conspectus.model.quarantine import Quarantined
from conspectus.model.records import Document, DocumentChanges, Json, NewDocument, Receipt, Source, Written
from conspectus.model.reports import FilesReport
from conspectus.ports import Progress

LIST_LIMIT = 1_000
LINES_PER_REQUEST = 500
CHARACTERS_PER_REQUEST = 1_000_000
"""Maximum number of lines of an import, and their approximate total characters, per request."""


@derive_client
class RemoteDocuments(RemoteService, DocumentService):
    """Documents of a server: write, read and delete."""

    async def add(
        self,
        documents: str | NewDocument | Iterable[str | NewDocument],
        *,
        source: str = "default",
        collection: str = "default",
        wait: bool = False,
        progress: Progress | None = None,
    ) -> Sequence[Written]:
        target = await self._open_sibling(RemoteCollections).get_or_create_source(
            source, collection=collection
        )
        requests = (_make_write(batch, target) for batch in batches(as_documents(documents)))
        written = await self._in_batches(Written, requests, "writing", progress)
        if wait:
            await self.wait_until_embedded(collection=target.collection, progress=progress)
        return written

    async def add_files(
        self,
        paths: Iterable[str | Path],
        *,
        source: str | None = None,
        collection: str = "default",
        prune: bool = False,
        wait: bool = True,
        progress: Progress | None = None,
    ) -> FilesReport:
        target = await self._open_sibling(RemoteCollections).get_or_create(collection)
        roots = []
        targets: dict[str, Source] = {}
        for path in paths:
            full_path, name, prefix = resolve_destination(path, source)
            if name not in targets:
                targets[name] = await self._open_sibling(RemoteCollections).get_or_create_source(
                    name, collection=collection
                )
            roots.append(Root(full_path, targets[name], prefix))
        intake = Intake(self._files, self._write, progress)
        quarantined = await self._list_quarantined(target.id)

        async def iterate_matching(where: Filter) -> AsyncIterator[Document | Quarantined]:
            async for page in pages(self.list, collection=collection, filter=where, limit=LIST_LIMIT):
                for document in page.documents:
                    yield document
            for one in _select_matching(quarantined, where):
                yield one

        await add_files_below(intake, roots, iterate_matching, self.delete, prune=prune)
        await self._import_subtitles(intake, target.id)
        if wait:
            await self.wait_until_embedded(collection=target.id, progress=progress)
        return intake.report

    async def _import_subtitles(self, intake: Intake, collection: str) -> None:
        """Make streams of the subtitle files and recordings among the files."""
        stream_files = intake.take_stream_files()
        if stream_files:
            imported = await self._open_sibling(RemoteStreams).import_captions(
                stream_files, collection=collection, progress=intake.progress, skip_unsupported=True
            )
            intake.count_captions(imported)

    async def import_lines(
        self,
        lines: str | Iterable[str],
        *,
        collection: str = "default",
        progress: Progress | None = None,
    ) -> Sequence[Written]:
        written: dict[int, Written] = {}
        numbered = (line for line in parents_first(lines) if line.text.strip())
        requests = portions(
            numbered, lambda line: len(line.text), most=LINES_PER_REQUEST, room=CHARACTERS_PER_REQUEST
        )
        for batch in requests:
            texts = [line.text for line in batch]
            request = request_for(DocumentService.import_lines, lines=texts, collection=collection)
            try:
                outcomes = await self._channel.several(Written, request)
            except InvalidInput as fault:
                renumber(fault, partial(_number_of, batch))
                raise
            written |= {line.number: outcome for line, outcome in zip(batch, outcomes, strict=True)}
            if progress is not None:
                progress("importing", len(written), 0)
        return [outcome for _, outcome in sorted(written.items())]

    async def _list_quarantined(self, collection: str) -> Sequence[Quarantined]:
        """Return the quarantined documents of a collection, which only its managers may see."""
        try:
            return [
                document
                async for page in pages(self.list_quarantined, collection=collection, limit=LIST_LIMIT)
                for document in page.documents
            ]
        except PermissionDenied:
            return ()

    async def update(
        self, /, document: str, *, if_match: str | None = None, **changes: Unpack[DocumentChanges]
    ) -> Written:
        path = path_of("documents", ("document", document))
        headers = {} if if_match is None else {"If-Match": f'"{quote(if_match, errors="surrogatepass")}"'}
        request = Request("PATCH", path, changes_json(changes), headers=headers, writes=True)
        return await self._channel.one(Written, request)

    async def delete(self, ids: str | Iterable[str], *, purge: bool = False) -> Receipt:
        all_ids = [ids] if isinstance(ids, str) else [*ids]
        total = Receipt(purged=purge)
        for start in range(0, max(1, len(all_ids)), LIST_LIMIT):
            batch = all_ids[start : start + LIST_LIMIT]
            request = long_write_request("/documents/delete", to_json({"ids": batch, "purge": purge}))
            total += await self._channel.one(Receipt, request)
        return total

    async def delete_by_filter(
        self, filter: Filter, *, collection: str = "default", purge: bool = False
    ) -> Receipt:
        body = {"filter": filter_to_json(filter), "purge": purge}
        return await self._channel.one(
            Receipt, long_write_request(in_collection(collection, "documents", "delete"), body)
        )

    async def _write(self, batch: Sequence[NewDocument], source: Source) -> Sequence[Written]:
        return await self._channel.several(Written, _make_write(batch, source))


def _number_of(batch: Sequence[NumberedLine], position: int) -> int:
    """Return the number in the file of a line of a request, counted from 1."""
    return batch[position - 1].number


def _select_matching(quarantined: Sequence[Quarantined], where: Filter) -> list[Quarantined]:
    """Return the quarantined documents of a source, or of some keys in it."""
    return [
        document
        for document in quarantined
        if matches(where, {"source": document.source, "key": document.key})
    ]


def _make_write(batch: Sequence[NewDocument], source: Source) -> Request:
    """Return the request that writes documents. With keys, sending it twice has no effect."""
    keyed = [
        document if document.key is not None else replace(document, key=str(uuid4())) for document in batch
    ]
    body: Json = {"documents": [document_json(document) for document in keyed]}
    return replace(
        write_request(path_of("sources", ("source", source.id), "documents"), body), repeatable=True
    )
