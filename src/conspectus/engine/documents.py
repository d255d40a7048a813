"""The documents service: write, read and delete documents."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias, Unpack

from conspectus.access.policy import can_edit_any, require_own_origin, require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.document_inputs import DocumentInputs
from conspectus.engine.document_lines import DocumentLines
from conspectus.engine.document_relations import RelationReader, RelationWriter
from conspectus.engine.service import Service
from conspectus.errors import (
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    TooLarge,
)
from conspectus.ingest.batch_writes import batches
from conspectus.ingest.document_fields import message_id
from conspectus.ingest.files import Intake, Root, add_files_below, resolve_destination
from conspectus.ingest.open_indexes import IndexTiming
from conspectus.ingest.plain_texts import as_documents
from conspectus.ingest.quarantine import restore_document, to_quarantined
from conspectus.model.annotations import Example, Length
from conspectus.model.captions import CaptionImport
from conspectus.model.filter import EVERYTHING, And, DocumentFilter, Eq, Filter, Or, require_document_fields
from conspectus.model.ids import EXAMPLE_ID
from conspectus.model.jobs import Upload
from conspectus.model.parameters import (
    MAX_LIST,
    CollectionName,
    Cursor,
    DocumentIdentifier,
    DocumentKey,
    ExportLimit,
    Fingerprint,
    PageLimit,
    Purge,
    SourceName,
    StoredText,
    Wait,
)
from conspectus.model.quarantine import QuarantinePage
from conspectus.model.records import (
    Chunk,
    Document,
    DocumentChanges,
    DocumentSort,
    NewDocument,
    Receipt,
    Source,
    Status,
    Written,
)
from conspectus.model.relations import DocumentRelation, RelationKind
from conspectus.model.reports import DocumentExport, FilesReport, Page
from conspectus.ports import Progress

ImportCaptions: TypeAlias = Callable[[Sequence[Upload], str, Progress | None], Awaitable[CaptionImport]]
"""Makes streams of subtitle files in a collection."""
MAX_TEXT_IDS = 1_000
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".mbox")
"""Suffixes of files that are no documents themselves."""
REVIEW_ACTION = "review quarantined documents"


class DocumentService(Service):
    """Documents: write, read, delete, export and import."""

    def __init__(self, context: EngineContext, import_captions: ImportCaptions | None = None) -> None:
        super().__init__(context)
        self._import_captions = import_captions
        self._inputs = DocumentInputs(context)
        self._relations = RelationReader(context.authorized)
        self._relation_writer = RelationWriter(context)
        self._lines = DocumentLines(context, self._inputs, self._relation_writer)

    async def add(
        self,
        documents: str | NewDocument | Iterable[str | NewDocument],
        *,
        source: str = "default",
        collection: CollectionName = "default",
        wait: Wait = False,
        progress: Progress | None = None,
    ) -> Sequence[Written]:
        """Add documents. Keyword search finds them at once, vector search when they are embedded.

        With `wait`, this returns when they are embedded.

        A document with a stored key replaces that document atomically. Documents are written in batches of at
        most 500, one transaction each. Raises InvalidInput, TooLarge or PreconditionFailed; the batch at
        fault is not written. A text that is the path of an existing file, or the address of a page, is
        refused, because its content was probably meant.
        """
        target, access = await self._writer.writable(source, collection)
        embedder = await self._context.embedder(access.collection)
        complete = self._context.completion(access.collection, embedder) if wait else None
        written: list[Written] = []
        index: IndexTiming = "now"
        for batch in batches(as_documents(documents)):
            if written:
                # The previous batch is embedded while this one is prepared.
                self._context.begin_embedding(access.collection, embedder)
                index = "after"
            written += await self._context.write(batch, target, index=index, complete=complete)
            if progress is not None:
                progress("writing", len(written), 0)
        if index == "after":
            await self._core.open_indexes.catch_up(access.collection.id)
        await self._context.embed_in(access, wait=wait, progress=progress)
        return written

    async def add_files(
        self,
        paths: Iterable[str | Path],
        *,
        source: str | None = None,
        collection: CollectionName = "default",
        prune: bool = False,
        wait: Wait = True,
        progress: Progress | None = None,
    ) -> FilesReport:
        """Add files and folders. Unchanged files are skipped; failures are reported at the end.

        A subtitle file or a recording becomes a stream of captions, as in `streams.import_captions`.
        Each folder is a source of its own unless `source` names one. Documents of files that are gone or
        ignored now are counted as `missing`; `prune` deletes them. Raises UnreadableFile for a path that does
        not exist.
        """
        if not self._person.owner:
            raise PermissionDenied("read files of the machine that holds the store", "its owner account")
        stored_collection = await self._writer.collection(collection)
        intake = Intake(self._parts.make_files(), self._context.write, progress)
        roots = []
        sources: dict[str, Source] = {}
        for path in paths:
            absolute_path, name, prefix = resolve_destination(path, source)
            if name not in sources:
                sources[name], _ = await self._writer.writable(name, collection)
            roots.append(Root(absolute_path, sources[name], prefix))
        access = await self._authorized.collection(stored_collection.id)

        async def read_stored(where: Filter) -> AsyncIterator[Document]:
            async for page in self._authorized.iterate_matching(access, where):
                for document in page:
                    yield document

        await add_files_below(intake, roots, read_stored, self.delete, prune=prune)
        stream_files = intake.take_stream_files()
        if stream_files and self._import_captions is not None:
            intake.count_captions(await self._import_captions(stream_files, stored_collection.id, progress))
        await self._context.embed(stored_collection, wait=wait, progress=progress)
        return intake.report

    async def wait_until_embedded(
        self, *, collection: CollectionName = "default", progress: Progress | None = None
    ) -> int:
        """Wait until all chunks are embedded and entities are extracted; return the number of new vectors.

        If you may read only some sources, it returns 0.
        """
        access = await self._authorized.collection(collection)
        embedder = await self._context.embedder(access.collection)
        if embedder is None or not access.sees_all:
            await self._context.embed_in(access, wait=True)
            return 0
        if access.collection.names:
            await self._core.names.wait_until_done(access.collection.id, progress)
        return await self._core.backfill.wait_until_done(access.collection, embedder, progress)

    async def get(self, document: DocumentIdentifier) -> Document:
        """Return a document without its text. Raises NotFound."""
        return (await self._authorized.document(document))[0]

    async def get_by_key(
        self, key: DocumentKey, *, source: SourceName, collection: CollectionName = "default"
    ) -> Document:
        """Return the document of a key in a source, such as a message of a channel. Raises NotFound."""
        access = await self._authorized.collection(collection)
        stored_source = await self._authorized.require_source(access, source)
        documents = await self._authorized.inside(access, [message_id(stored_source.id, key)])
        if not documents:
            raise NotFound("document", key)
        return documents[0]

    async def get_text(self, document: DocumentIdentifier) -> StoredText:
        """Return the full text of a document. Raises NotFound."""
        return await self._authorized.text(await self.get(document))

    async def get_texts(
        self,
        ids: Annotated[
            Sequence[DocumentIdentifier], Length(0, 1_000), "Ids of documents.", Example([EXAMPLE_ID])
        ],
    ) -> Mapping[str, str]:
        """Return the full texts of documents by id, at most 1,000; unknown ids are left out."""
        if len(ids) > MAX_TEXT_IDS:
            raise TooLarge("documents", size=len(ids), limit=MAX_TEXT_IDS, unit="ids")
        readable_documents = await self._authorized.documents(list(dict.fromkeys(ids)))
        texts = await self._authorized.texts([document for document, _ in readable_documents])
        return {str(name): text for name, text in texts.items()}

    async def list_chunks(self, document: DocumentIdentifier) -> Sequence[Chunk]:
        """List the chunks of a document by position. Raises NotFound."""
        return [
            stored_chunk.chunk for stored_chunk in await self._authorized.chunks(await self.get(document))
        ]

    async def list(
        self,
        *,
        collection: CollectionName = "default",
        filter: DocumentFilter = EVERYTHING,
        status: Annotated[Status | None, "Only documents with this status."] = None,
        sort: Annotated[
            DocumentSort, "What documents are sorted by; `-` is from the last.", Example("title")
        ] = ("added"),
        after: Cursor | None = None,
        limit: PageLimit = 100,
    ) -> Page:
        """List a page of documents that match; `after` is the cursor of the page before, in the same order.

        `status` keeps those that are `pending`, `embedded`, or in `error` because they could not be embedded.
        `sort` is when they were added or changed, the title (or else the key), or the number of characters.
        A document that is not changed meanwhile is on exactly one page.
        """
        require_document_fields(filter)
        access = await self._authorized.collection(collection)
        documents, cursor = await self._authorized.list(
            access,
            filter,
            after=after,
            limit=limit,
            status=status,
            sort=sort,
        )
        return Page(tuple(documents), cursor)

    async def count(
        self,
        *,
        collection: CollectionName = "default",
        filter: Annotated[DocumentFilter, Example({"field": "kind", "eq": "page"})] = EVERYTHING,
        status: Annotated[Status | None, "Only documents with this status."] = None,
    ) -> int:
        """Count the documents that match."""
        require_document_fields(filter)
        access = await self._authorized.collection(collection)
        return await self._authorized.count(access, filter, status=status)

    async def export(
        self,
        *,
        collection: CollectionName = "default",
        filter: DocumentFilter = EVERYTHING,
        after: Cursor | None = None,
        limit: ExportLimit | None = None,
    ) -> DocumentExport:
        """Export a page of documents, messages, tasks and events as JSON Lines, as they were added.

        A line has what was added: text, fields, pages and sections, the source with its metadata, and a
        vector unless the embedder makes it. Quarantined documents follow, if you may review them. `after` is
        a cursor; a page has `limit` lines, or as many as the settings allow. Captions and memories have
        exports of their own; they are counted in `left_out` of the last page.
        """
        require_document_fields(filter)
        return await self._lines.page(collection, filter, after=after, limit=limit)

    async def import_lines(
        self,
        lines: Annotated[
            str | Iterable[str],
            Length(0, MAX_LIST),
            "Lines of an export.",
            Example(['{"source": "handbook", "key": "backup.md", "text": "The backup runs at two."}']),
        ],
        *,
        collection: CollectionName = "default",
        progress: Progress | None = None,
    ) -> Sequence[Written]:
        """Import documents, messages, tasks and events from JSON Lines. Importing a line twice has no effect.

        They go into the source that each line names, which is created if it is new. Lines are written in
        batches, one transaction each. Raises InvalidInput with the number of the line at fault, whose batch
        is not written.
        """
        return await self._lines.write(lines, collection, progress=progress)

    async def list_relations(self, document: DocumentIdentifier) -> Sequence[DocumentRelation]:
        """List how a document supersedes, amends or duplicates others that you may read, or they it.

        Claims without effect are among them, with the reason. Raises NotFound.
        """
        stored, access = await self._authorized.document(document)
        relations = (await self._relations.read(access, [stored.id])).relations
        return [relation for relation in relations if stored.id in {relation.document, relation.other}]

    async def relate(
        self,
        document: DocumentIdentifier,
        related: Annotated[DocumentIdentifier, "Id of the other document."],
        *,
        kind: Annotated[RelationKind, "How it is related to the other document."] = "supersedes",
    ) -> DocumentRelation:
        """Set that a page supersedes, amends or duplicates another one of its collection.

        It needs the role editor for both, and has an effect unless the trust level of the first one is lower.
        Setting it again changes nothing. Raises NotFound, PermissionDenied or InvalidInput.
        """
        statement = await self._relation_writer.set(document, related, kind)
        return next(
            relation
            for relation in await self.list_relations(document)
            if (relation.other, relation.kind) == (statement.target, kind)
        )

    async def unrelate(
        self,
        document: DocumentIdentifier,
        related: Annotated[DocumentIdentifier, "Id of the other document."],
        *,
        kind: Annotated[RelationKind, "How it is related to the other document."] = "supersedes",
    ) -> bool:
        """Delete a relation that was set with `relate`; return whether there was one.

        What the texts of the documents state stays. Raises NotFound or PermissionDenied.
        """
        return await self._relation_writer.delete(document, related, kind)

    async def update(
        self,
        /,
        document: DocumentIdentifier,
        *,
        if_match: Fingerprint | None = None,
        **changes: Unpack[DocumentChanges],
    ) -> Written:
        """Change any fields of a document except `key`; a new text replaces the old one atomically.

        With `if_match`, the fingerprint that you read, raises PreconditionFailed if it was changed since.
        """
        while True:
            stored, access = await self._authorized.document(document)
            self._context.require_editor(access, stored, "change a document")
            if if_match not in {None, stored.fingerprint}:
                raise PreconditionFailed("document", document)
            source = Source(stored.source, stored.collection, name="")
            new = replace(
                await self._inputs.read(stored, source, access.collection.space, changes), **changes
            )
            try:
                written = await self._context.write([new], source, if_match=stored.fingerprint)
            except PreconditionFailed:
                # Another writer was quicker: its changes stay, and these are applied to them.
                continue
            await self._context.embed(access.collection, wait=False)
            return written[0]

    async def delete(
        self,
        ids: Annotated[
            str | Iterable[DocumentIdentifier],
            Length(0, 1_000),
            "Ids of documents.",
            Example([EXAMPLE_ID]),
        ],
        *,
        purge: Purge = False,
    ) -> Receipt:
        """Delete documents with their children, chunks and vectors; return how many. Unknown ids count 0.

        When this returns, no result contains them. `purge` also waits until no file holds their text, nor
        that of other deleted documents of their collections. An unknown id may belong to a document that was
        deleted earlier, so it purges all collections that you may edit. The audit log records a deletion of
        quarantined documents.
        """
        require_scope(self._person, "write", "write")
        await self._core.answer_writes.wait_until_written()
        document_ids = [ids] if isinstance(ids, str) else list(ids)
        documents = await self._authorized.documents(document_ids, quarantined=True)
        for document, access in documents:
            self._context.require_editor(access, document, "delete a document")
        await self._context.note_review("delete_quarantined", documents)
        collections = {document.collection for document, _ in documents}
        if purge and len(documents) < len(set(document_ids)):
            accesses = await self._authorized.collections()
            collections |= {access.collection.id for access in accesses if can_edit_any(access.roles)}
        async with self._context.open_deletion(purge and bool(collections), *collections) as erasure:
            receipt = await self._core.records.delete(
                [document.id for document, _ in documents], now=self._parts.clock()
            )
        return replace(receipt, purged=erasure.purged, erasure_pending=erasure.pending)

    async def delete_by_key(
        self,
        key: DocumentKey,
        *,
        source: SourceName,
        collection: CollectionName = "default",
        purge: Purge = False,
    ) -> Receipt:
        """Delete the document of a key in a source, such as a message of a channel. Raises NotFound.

        The attachments of a message are deleted with it. The key of an archive or a mailbox deletes all that
        it holds.
        """
        access = await self._authorized.collection(collection)
        stored_source = await self._authorized.require_source(access, source)
        if key.lower().endswith(ARCHIVE_SUFFIXES):
            of_archive = And((Eq("source", stored_source.id), Or((Eq("key", key), Eq("folder", key)))))
            receipt = await self.delete_by_filter(of_archive, collection=collection, purge=purge)
        else:
            receipt = await self.delete(message_id(stored_source.id, key), purge=purge)
        if not receipt.documents:
            raise NotFound("document", key)
        return receipt

    async def delete_chunks(self, document: DocumentIdentifier) -> int:
        """Delete the chunks of a document, which stays; return how many. Raises NotFound."""
        stored = await self.get(document)
        await self.update(document, text="")
        return stored.chunks

    async def delete_by_filter(
        self, filter: DocumentFilter, *, collection: CollectionName = "default", purge: Purge = False
    ) -> Receipt:
        """Delete every document that matches; quarantined ones are matched by their original fields."""
        require_document_fields(filter)
        access = await self._authorized.collection(collection)
        require_scope(self._person, "write", "write")
        total = Receipt()
        async with self._context.open_deletion(purge, access.collection.id) as erasure:
            async for page in self._authorized.iterate_matching(access, filter):
                total += await self.delete([document.id for document in page])
        return replace(total, purged=erasure.purged, erasure_pending=erasure.pending)

    async def list_quarantined(
        self, *, collection: CollectionName = "default", after: Cursor | None = None, limit: PageLimit = 100
    ) -> QuarantinePage:
        """List the quarantined documents of a collection with their texts, for its managers."""
        require_own_origin(self._person, REVIEW_ACTION)
        access = await self._authorized.collection(collection)
        access.require("manager", REVIEW_ACTION)
        documents, cursor = await self._authorized.list_quarantined(access, after=after, limit=limit)
        return QuarantinePage(tuple(map(to_quarantined, documents)), cursor)

    async def release_quarantined(self, document: DocumentIdentifier) -> Written:
        """Release a quarantined document after review: from now on it is in results, at its own level.

        Only managers may, and no key or request with an origin. It is noted in the audit log. The fact of a
        memory is not added to a graph. Raises NotFound or PermissionDenied.
        """
        require_scope(self._person, "write", REVIEW_ACTION)
        require_own_origin(self._person, REVIEW_ACTION)
        documents = await self._authorized.documents([document], quarantined=True)
        if not documents or documents[0][0].kind != "quarantined":
            raise NotFound("quarantined document", document)
        ((stored, access),) = documents
        access.require("manager", REVIEW_ACTION)
        source = await self._authorized.require_source(access, stored.source)
        await self._context.note_review("release", documents)
        written = await self._context.release(restore_document(stored), source, if_match=stored.fingerprint)
        await self._context.embed(access.collection, wait=False)
        return written
