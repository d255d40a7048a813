"""Sources."""

from collections.abc import Sequence

from fastapi import Response

from conspectus.model.filter import And, Eq
from conspectus.model.records import Receipt, Source, Written
from conspectus.model.reports import Page
from conspectus.web.deps import (
    After,
    CollectionName,
    EngineOf,
    IfMatch,
    IfNoneMatch,
    Limit,
    NotingOf,
    Purge,
    Selected,
    SourceId,
    Unhurried,
    require_match,
    tagged,
    unless_held,
)
from conspectus.web.openapi import Section, problems, with_tag
from conspectus.web.schemas.records import (
    DocumentPage,
    DocumentsOfSource,
    ReceiptAnswer,
    SourceAnswer,
    SourceBody,
    SourceChange,
    WrittenAnswer,
)

router = Section("sources")


@router.get("/collections/{collection:path}/sources", response_model=list[SourceAnswer], responses=problems())
async def list_sources(collection: CollectionName, engine: EngineOf) -> Sequence[Source]:
    """The sources of a collection that can be seen, by name."""
    return await engine.collections.sources(collection=collection)


@router.post("/collections/{collection:path}/sources", response_model=SourceAnswer, responses=problems())
async def get_or_create_source(collection: CollectionName, body: SourceBody, engine: EngineOf) -> Source:
    """The source of that name, made if it is new."""
    home = await engine.collections.get(collection)
    return await engine.collections.get_or_create_source(
        body.name, collection=home.id, metadata=body.metadata, kind=body.kind
    )


@router.get("/sources/{source}", response_model=SourceAnswer, responses=with_tag())
async def get_source(source: SourceId, engine: EngineOf, if_none_match: IfNoneMatch = None) -> Response:
    """The source of that id."""
    shown = SourceAnswer.model_validate(await engine.collections.get_source(source))
    return unless_held(shown, tagged(shown), if_none_match)


@router.patch("/sources/{source}", response_model=SourceAnswer, responses=problems(412))
async def update_source(
    source: SourceId, body: SourceChange, engine: EngineOf, if_match: IfMatch = None
) -> Source:
    """Change what is given."""
    shown = SourceAnswer.model_validate(await engine.collections.get_source(source))
    require_match(tagged(shown), if_match, kind="source", name=source)
    return await engine.collections.update_source(source, rename=body.rename, metadata=body.metadata)


@router.delete(
    "/sources/{source}", response_model=ReceiptAnswer, responses=problems(), dependencies=[Unhurried]
)
async def delete_source(source: SourceId, engine: EngineOf, *, purge: Purge = False) -> Receipt:
    """Delete a source with its documents."""
    return await engine.collections.delete_source(source, purge=purge)


@router.get("/sources/{source}/documents", response_model=DocumentPage, responses=problems())
async def list_documents_of_source(
    source: SourceId, where: Selected, engine: EngineOf, after: After = None, limit: Limit = 100
) -> Page:
    """A page of the source's documents that match, in order of recording."""
    found = await engine.collections.get_source(source)
    both = And((Eq("source", found.id), where))
    return await engine.documents.list(collection=found.collection, where=both, after=after, limit=limit)


@router.post(
    "/sources/{source}/documents",
    response_model=list[WrittenAnswer],
    status_code=201,
    responses=problems(412),
    dependencies=[Unhurried],
)
async def add_documents_to_source(
    source: SourceId, body: DocumentsOfSource, engine: EngineOf, noting: NotingOf
) -> Sequence[Written]:
    """Store documents in the source, in order."""
    found = await engine.collections.get_source(source)
    documents = [each.document() for each in body.documents]
    with noting(each.key for each in documents):
        return await engine.add(documents, source=found.id, collection=found.collection, wait=body.wait)
