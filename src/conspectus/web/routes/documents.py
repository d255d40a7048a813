"""Documents and their chunks."""

from collections.abc import Sequence

from fastapi import Response

from conspectus.errors import InvalidInput
from conspectus.model.filter import In
from conspectus.model.filter_json import filter_from_json
from conspectus.model.records import Chunk, Receipt, Written
from conspectus.model.reports import Page
from conspectus.web.deps import (
    After,
    CollectionName,
    DocumentId,
    EngineOf,
    IfMatch,
    IfNoneMatch,
    Limit,
    NotingOf,
    Purge,
    Selected,
    Unhurried,
    fingerprint_in,
    quoted,
    unless_held,
)
from conspectus.web.openapi import Section, problems, with_tag
from conspectus.web.schemas.records import (
    ChunkAnswer,
    CountAnswer,
    CountBody,
    DeletedAnswer,
    DeletionBody,
    DocumentAnswer,
    DocumentChange,
    DocumentPage,
    DocumentsBody,
    IdsBody,
    NamedDocuments,
    ReceiptAnswer,
    TextAnswer,
    TextsAnswer,
    WrittenAnswer,
)

router = Section("documents")
IN_COLLECTION = "/collections/{collection:path}/documents"


@router.get(IN_COLLECTION, response_model=DocumentPage, responses=problems())
async def list_documents(
    collection: CollectionName, where: Selected, engine: EngineOf, after: After = None, limit: Limit = 100
) -> Page:
    """A page of the documents that match, in order of recording."""
    return await engine.documents.list(collection=collection, where=where, after=after, limit=limit)


@router.post(
    IN_COLLECTION,
    response_model=list[WrittenAnswer],
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


@router.post(f"{IN_COLLECTION}/count", response_model=CountAnswer, responses=problems())
async def count_documents(collection: CollectionName, body: CountBody, engine: EngineOf) -> CountAnswer:
    """How many documents match."""
    where = filter_from_json(body.where or {"and": []})
    return CountAnswer(count=await engine.documents.count(collection=collection, where=where))


@router.post(
    f"{IN_COLLECTION}/delete",
    response_model=ReceiptAnswer,
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


@router.post(
    "/documents/delete", response_model=ReceiptAnswer, responses=problems(), dependencies=[Unhurried]
)
async def delete_documents(body: IdsBody, engine: EngineOf) -> Receipt:
    """Delete documents by their ids; unknown ids count as nothing."""
    return await engine.documents.delete(body.ids, purge=body.purge)


@router.get("/documents/{document}", response_model=DocumentAnswer, responses=with_tag())
async def get_document(document: DocumentId, engine: EngineOf, if_none_match: IfNoneMatch = None) -> Response:
    """A document's fields, with its fingerprint as ETag."""
    shown = DocumentAnswer.model_validate(await engine.documents.get(document))
    return unless_held(shown, quoted(shown.fingerprint), if_none_match)


@router.patch(
    "/documents/{document}",
    response_model=WrittenAnswer,
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
    "/documents/{document}", response_model=ReceiptAnswer, responses=problems(), dependencies=[Unhurried]
)
async def delete_document(document: DocumentId, engine: EngineOf, *, purge: Purge = False) -> Receipt:
    """Delete a document with its children and chunks; one that is unknown counts as nothing."""
    return await engine.documents.delete(document, purge=purge)


@router.get("/documents/{document}/text", response_model=TextAnswer, responses=problems())
async def get_text(document: DocumentId, engine: EngineOf) -> TextAnswer:
    """A document's whole text."""
    return TextAnswer(text=await engine.documents.text(document))


@router.post("/documents/texts", response_model=TextsAnswer, responses=problems())
async def get_texts(body: NamedDocuments, engine: EngineOf) -> TextsAnswer:
    """The whole texts of documents."""
    return TextsAnswer(texts=dict(await engine.documents.texts(body.ids)))


@router.get("/documents/{document}/chunks", response_model=list[ChunkAnswer], responses=problems())
async def list_chunks(document: DocumentId, engine: EngineOf) -> Sequence[Chunk]:
    """A document's chunks, by position."""
    return await engine.documents.chunks(document)


@router.delete("/documents/{document}/chunks", response_model=DeletedAnswer, responses=problems())
async def delete_chunks(document: DocumentId, engine: EngineOf) -> DeletedAnswer:
    """Delete a document's chunks and keep its fields."""
    return DeletedAnswer(deleted=await engine.documents.delete_chunks(document))
