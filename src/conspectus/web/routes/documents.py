"""Sources, documents and messages: the operations of the table, and by hand what they do not cover."""

from collections.abc import Iterable, Sequence
from functools import partial
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import File, Form, Request, Response, UploadFile

from conspectus.errors import InvalidInput
from conspectus.ingest.messages import GrantMembers
from conspectus.memory.jsonl_reader import renumber
from conspectus.model import parameters
from conspectus.model.channels import ArchiveKind, ImportReport
from conspectus.model.filter import And, Eq, in_documents
from conspectus.model.filter_json import filter_from_json
from conspectus.model.records import Receipt, Source, Written
from conspectus.model.reports import Page
from conspectus.operations.channels import CHANNEL_OPERATIONS
from conspectus.operations.collections import SOURCE_OPERATIONS
from conspectus.operations.declared import facts_of
from conspectus.operations.documents import DOCUMENT_OPERATIONS
from conspectus.web.bodies import save_uploads
from conspectus.web.dependencies import (
    After,
    CollectionName,
    DocumentIdentifier,
    EngineOf,
    IfMatch,
    Limit,
    Purge,
    RecordingOf,
    Selected,
    SourceIdentifier,
    Unhurried,
)
from conspectus.web.etags import fingerprint_in
from conspectus.web.ndjson import LineBatches, LinesRoute, decode_line, read_pieces, send_as_lines
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.problem_details import Refused, problem_of
from conspectus.web.schemas.base import ImportedAnswer
from conspectus.web.schemas.documents import (
    DeletionBody,
    DocumentChange,
    DocumentsBody,
    DocumentsOfSource,
    SourceBody,
)

sources = Section("sources")
router = Section("documents")
as_lines = Section("documents", route_class=LinesRoute)
IN_COLLECTION = "/collections/{collection:path}/documents"


@sources.post("/collections/{collection:path}/sources")
async def get_or_create_source(collection: CollectionName, body: SourceBody, engine: EngineOf) -> Source:
    """Return the source of that name, which is created if it is new."""
    existing_collection = await engine.collections.get(collection)
    return await engine.collections.get_or_create_source(
        body.name, collection=existing_collection.id, metadata=body.metadata, kind=body.kind
    )


@sources.get("/sources/{source}/documents")
async def list_documents_of_source(
    source: SourceIdentifier, where: Selected, engine: EngineOf, after: After = None, limit: Limit = 100
) -> Page:
    """Return a page of the source's documents that match, in order of recording."""
    existing_source = await engine.collections.get_source(source)
    both = And((Eq("source", existing_source.id), where))
    return await engine.documents.list(
        collection=existing_source.collection, filter=both, after=after, limit=limit
    )


@sources.post(
    "/sources/{source}/documents", status_code=201, responses=problems(412), dependencies=[Unhurried]
)
async def add_documents_to_source(
    source: SourceIdentifier, body: DocumentsOfSource, engine: EngineOf, recording: RecordingOf
) -> Sequence[Written]:
    """Store documents in the source, in order."""
    existing_source = await engine.collections.get_source(source)
    documents = [document.document() for document in body.documents]
    with recording(document.key for document in documents):
        return await engine.add(
            documents, source=existing_source.id, collection=existing_source.collection, wait=body.wait
        )


@router.post(IN_COLLECTION, status_code=201, responses=problems(412), dependencies=[Unhurried])
async def add_documents(
    collection: CollectionName, body: DocumentsBody, engine: EngineOf, recording: RecordingOf
) -> Sequence[Written]:
    """Store documents in order, in batches that are each written whole or not at all."""
    existing_collection = await engine.collections.get(collection)
    documents = [document.document() for document in body.documents]
    with recording(document.key for document in documents):
        return await engine.add(
            documents, source=body.source, collection=existing_collection.id, wait=body.wait
        )


@router.post(f"{IN_COLLECTION}/delete", dependencies=[Unhurried])
async def delete_documents_of_collection(
    collection: CollectionName, body: DeletionBody, engine: EngineOf
) -> Receipt:
    """Delete the documents of a collection that are named, or that match."""
    if (body.ids is None) is (body.filter is None):
        raise InvalidInput("filter", "give either ids or filter")
    where = in_documents(body.ids or ()) if body.filter is None else filter_from_json(body.filter)
    return await engine.documents.delete_by_filter(where, collection=collection, purge=body.purge)


@router.patch("/documents/{document}", responses=problems(412), dependencies=[Unhurried])
async def update_document(
    document: DocumentIdentifier, body: DocumentChange, engine: EngineOf, if_match: IfMatch = None
) -> Written:
    """Change the fields that are named; with If-Match, only if the document is what was read."""
    read = await fingerprint_in(if_match, document, engine)
    return await engine.documents.update(document, if_match=read, **body.named_fields())


@router.delete("/documents/{document}", dependencies=[Unhurried])
async def delete_document(document: DocumentIdentifier, engine: EngineOf, *, purge: Purge = False) -> Receipt:
    """Delete a document with its children and chunks; one that is unknown counts as nothing."""
    return await engine.documents.delete(document, purge=purge)


add_routes(sources, SOURCE_OPERATIONS)


@as_lines.post(f"{IN_COLLECTION}/import", include_in_schema=False, dependencies=[Unhurried])
async def import_document_lines(
    collection: CollectionName, request: Request, engine: EngineOf
) -> ImportedAnswer:
    """Import lines, batch by batch."""
    settings = request.app.state.listeners.settings
    pieces = read_pieces(request.stream(), settings.request_timeout_seconds)

    async def write(numbers: Sequence[int], lines: Sequence[str]) -> Iterable[str]:
        try:
            written = await engine.documents.import_lines(lines, collection=collection)
        except InvalidInput as fault:
            renumber(fault, lambda number: numbers[number - 1])
            raise Refused(problem_of(fault)) from fault
        return [document.outcome for document in written]

    batches = LineBatches(decode_line, write, ImportedAnswer.model_fields)
    return ImportedAnswer(**await batches.take(pieces, settings.max_request_bytes))


@as_lines.get(f"{IN_COLLECTION}/export", include_in_schema=False, dependencies=[Unhurried])
async def export_document_lines(collection: CollectionName, where: Selected, engine: EngineOf) -> Response:
    """Export all documents of a collection that match."""
    read = partial(engine.documents.export, collection=collection, filter=where)
    return await send_as_lines(read, lambda page: page.lines)


router.routes.extend(as_lines.routes)
add_routes(router, DOCUMENT_OPERATIONS)


messages = Section("conversations")


@messages.post("/messages/import", responses=problems(415), dependencies=[Unhurried])
async def import_messages(
    file: Annotated[
        UploadFile, File(description="The export, as the platform makes it.", examples=["export.zip"])
    ],
    engine: EngineOf,
    *,
    collection: Annotated[str, Form(**facts_of(parameters.CollectionName))] = "default",
    kind: Annotated[ArchiveKind | None, Form()] = None,
    link: Annotated[bool, Form()] = True,
    grant_members: Annotated[bool, Form(**facts_of(GrantMembers))] = False,
) -> ImportReport:
    """Import an export of Slack, Discord or IRC, or messages as JSON lines."""
    with TemporaryDirectory() as folder:
        [upload] = await save_uploads([file], folder)
        return await engine.channels.import_archive(
            upload, kind=kind, collection=collection, link=link, grant_members=grant_members
        )


add_routes(messages, CHANNEL_OPERATIONS)


router.routes[:0] = (*messages.routes, *sources.routes)
