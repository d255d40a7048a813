"""Documents and chunks: the operations of the table, and by hand what they do not cover."""

from collections.abc import Sequence

from conspectus.errors import InvalidInput
from conspectus.model.filter import In, filter_from_json
from conspectus.model.records import Receipt, Written
from conspectus.operations import DOCUMENT_OPERATIONS
from conspectus.web.deps import (
    CollectionName,
    DocumentId,
    EngineOf,
    IfMatch,
    NotingOf,
    Purge,
    Unhurried,
    fingerprint_in,
)
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import answered
from conspectus.web.schemas.records import (
    DeletionBody,
    DocumentChange,
    DocumentsBody,
)

router = Section("documents")
IN_COLLECTION = "/collections/{collection:path}/documents"


@router.post(
    IN_COLLECTION,
    response_model=answered(Sequence[Written]),
    status_code=201,
    responses=problems(412),
    dependencies=[Unhurried],
)
async def add_documents(
    collection: CollectionName, body: DocumentsBody, engine: EngineOf, noting: NotingOf
) -> Sequence[Written]:
    """Store documents in order, in batches that are each written whole or not at all."""
    home = await engine.collections.get(collection)
    documents = [each.document() for each in body.documents]
    with noting(each.key for each in documents):
        return await engine.add(documents, source=body.source, collection=home.id, wait=body.wait)


@router.post(
    f"{IN_COLLECTION}/delete",
    response_model=answered(Receipt),
    responses=problems(),
    dependencies=[Unhurried],
)
async def delete_documents_of_collection(
    collection: CollectionName, body: DeletionBody, engine: EngineOf
) -> Receipt:
    """Delete the documents of a collection that are named, or that match."""
    if (body.ids is None) is (body.where is None):
        raise InvalidInput("where", "give either ids or where")
    named = In("document", tuple(body.ids or ()))
    where = named if body.where is None else filter_from_json(body.where)
    return await engine.documents.delete_where(where, collection=collection, purge=body.purge)


@router.patch(
    "/documents/{document}",
    response_model=answered(Written),
    responses=problems(412),
    dependencies=[Unhurried],
)
async def update_document(
    document: DocumentId, body: DocumentChange, engine: EngineOf, if_match: IfMatch = None
) -> Written:
    """Change the fields that are named; with If-Match, only if the document is what was read."""
    expected = await fingerprint_in(if_match, document, engine)
    return await engine.documents.update(document, expected=expected, **body.given())


@router.delete(
    "/documents/{document}", response_model=answered(Receipt), responses=problems(), dependencies=[Unhurried]
)
async def delete_document(document: DocumentId, engine: EngineOf, *, purge: Purge = False) -> Receipt:
    """Delete a document with its children and chunks; one that is unknown counts as nothing."""
    return await engine.documents.delete(document, purge=purge)


add_routes(router, DOCUMENT_OPERATIONS)
