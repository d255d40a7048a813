"""Sources: the operations of the table, and by hand what they do not cover."""

from collections.abc import Sequence

from conspectus.model.filter import And, Eq
from conspectus.model.records import Source, Written
from conspectus.model.reports import Page
from conspectus.operations import SOURCE_OPERATIONS
from conspectus.web.deps import (
    After,
    CollectionName,
    EngineOf,
    Limit,
    NotingOf,
    Selected,
    SourceId,
    Unhurried,
)
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import answered
from conspectus.web.schemas.records import (
    DocumentsOfSource,
    SourceBody,
)

router = Section("sources")


@router.post("/collections/{collection:path}/sources", response_model=answered(Source), responses=problems())
async def get_or_create_source(collection: CollectionName, body: SourceBody, engine: EngineOf) -> Source:
    """The source of that name, made if it is new."""
    home = await engine.collections.get(collection)
    return await engine.collections.get_or_create_source(
        body.name, collection=home.id, metadata=body.metadata, kind=body.kind
    )


@router.get("/sources/{source}/documents", response_model=answered(Page), responses=problems())
async def list_documents_of_source(
    source: SourceId, where: Selected, engine: EngineOf, after: After = None, limit: Limit = 100
) -> Page:
    """A page of the source's documents that match, in order of recording."""
    found = await engine.collections.get_source(source)
    both = And((Eq("source", found.id), where))
    return await engine.documents.list(collection=found.collection, where=both, after=after, limit=limit)


@router.post(
    "/sources/{source}/documents",
    response_model=answered(Sequence[Written]),
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


add_routes(router, SOURCE_OPERATIONS)
