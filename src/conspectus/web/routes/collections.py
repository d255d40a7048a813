"""Collections: the operations of the table, and by hand what they do not cover."""

from contextlib import suppress

from fastapi import Response

from conspectus.errors import Conflict, NotFound
from conspectus.model.records import Collection
from conspectus.operations.collections import COLLECTION_OPERATIONS
from conspectus.web.dependencies import CollectionName, EngineOf, Unhurried
from conspectus.web.openapi import Responses, Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import response_type
from conspectus.web.schemas.base import ResponseModel
from conspectus.web.schemas.documents import CollectionBody

router = Section("collections")


class ReindexedAnswer(ResponseModel):
    """The collection whose index was rebuilt."""

    collection: str


EXISTS: Responses = {200: {"model": response_type(Collection), "description": "It exists already."}}


@router.post("/collections", status_code=201, responses={**EXISTS, **problems(501)})
async def create_collection(body: CollectionBody, engine: EngineOf, response: Response) -> Collection:
    """Make a collection, or with `get` return the one of that name."""
    if body.get:
        with suppress(NotFound):
            collection = await engine.collections.get(body.name)
            response.status_code = 200
            return collection
    try:
        return await engine.collections.create(**body.model_dump(exclude={"get"}))
    except Conflict:
        if not body.get:
            raise
        response.status_code = 200
        return await engine.collections.get(body.name)


@router.post("/collections/{collection:path}/reindex", dependencies=[Unhurried])
async def reindex(collection: CollectionName, engine: EngineOf) -> ReindexedAnswer:
    """Rebuild the index of a collection from the records; queries use the old index until then."""
    await engine.maintenance.reindex(collection=collection)
    return ReindexedAnswer(collection=collection)


add_routes(router, COLLECTION_OPERATIONS)
