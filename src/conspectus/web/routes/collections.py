"""Collections, and the upkeep of one."""

from collections.abc import Sequence
from contextlib import suppress

from fastapi import Response

from conspectus.engine import Engine
from conspectus.errors import Conflict, NotAllowed, NotFound
from conspectus.model.records import Collection, Receipt
from conspectus.model.reports import Status
from conspectus.web.deps import (
    CollectionName,
    EngineOf,
    IfMatch,
    IfNoneMatch,
    Purge,
    Unhurried,
    require_match,
    tagged,
    unless_held,
)
from conspectus.web.openapi import Section, problems, with_tag
from conspectus.web.schemas.maintenance import ReindexedAnswer, StatusAnswer
from conspectus.web.schemas.records import (
    CollectionAnswer,
    CollectionBody,
    CollectionChange,
    EmbeddedAnswer,
    EmbedderBody,
    ReceiptAnswer,
)

router = Section("collections", prefix="/collections")


@router.get("", response_model=list[CollectionAnswer], responses=problems())
async def list_collections(engine: EngineOf) -> Sequence[Collection]:
    """Every collection of which anything can be seen, by name."""
    return await engine.collections.list()


@router.post(
    "",
    response_model=CollectionAnswer,
    status_code=201,
    responses={200: {"model": CollectionAnswer, "description": "It exists already."}, **problems(501)},
)
async def create_collection(body: CollectionBody, engine: EngineOf, response: Response) -> Collection:
    """Make a collection, or with `get` return the one of that name."""
    if body.get:
        with suppress(NotFound):
            found = await engine.collections.get(body.name)
            response.status_code = 200
            return found
    await _require_usable(body.embedder, engine)
    try:
        return await engine.collections.create(**body.model_dump(exclude={"get"}))
    except Conflict:
        if not body.get:
            raise
        response.status_code = 200
        return await engine.collections.get(body.name)


@router.post(
    "/{collection:path}/settle",
    response_model=EmbeddedAnswer,
    responses=problems(),
    dependencies=[Unhurried],
)
async def settle(collection: CollectionName, engine: EngineOf) -> EmbeddedAnswer:
    """Wait until every chunk has its vector."""
    return EmbeddedAnswer(embedded=await engine.documents.settle(collection=collection))


@router.get("/{collection:path}/status", response_model=StatusAnswer, responses=problems())
async def collection_status(collection: CollectionName, engine: EngineOf) -> Status:
    """Sizes and counts of one collection."""
    return await engine.maintenance.status(collection=collection)


@router.post(
    "/{collection:path}/reindex",
    response_model=ReindexedAnswer,
    responses=problems(),
    dependencies=[Unhurried],
)
async def reindex(collection: CollectionName, engine: EngineOf) -> ReindexedAnswer:
    """Build the collection's index anew from the records; the old one answers meanwhile."""
    await engine.maintenance.reindex(collection=collection)
    return ReindexedAnswer(collection=collection)


@router.post(
    "/{collection:path}/reembed",
    response_model=EmbeddedAnswer,
    responses=problems(501),
    dependencies=[Unhurried],
)
async def reembed(collection: CollectionName, body: EmbedderBody, engine: EngineOf) -> EmbeddedAnswer:
    """Move a collection to another embedder; the old one answers until all is done."""
    await _require_usable(body.embedder, engine)
    return EmbeddedAnswer(embedded=await engine.maintenance.reembed(body.embedder, collection=collection))


@router.get("/{collection:path}", response_model=CollectionAnswer, responses=with_tag())
async def get_collection(
    collection: CollectionName, engine: EngineOf, if_none_match: IfNoneMatch = None
) -> Response:
    """The collection of that id or name."""
    shown = CollectionAnswer.model_validate(await engine.collections.get(collection))
    return unless_held(shown, tagged(shown), if_none_match)


@router.patch("/{collection:path}", response_model=CollectionAnswer, responses=problems(412))
async def update_collection(
    collection: CollectionName, body: CollectionChange, engine: EngineOf, if_match: IfMatch = None
) -> Collection:
    """Change what is given."""
    shown = CollectionAnswer.model_validate(await engine.collections.get(collection))
    require_match(tagged(shown), if_match, kind="collection", name=collection)
    return await engine.collections.update(shown.id, rename=body.rename, description=body.description)


@router.delete(
    "/{collection:path}", response_model=ReceiptAnswer, responses=problems(), dependencies=[Unhurried]
)
async def delete_collection(collection: CollectionName, engine: EngineOf, *, purge: Purge = False) -> Receipt:
    """Delete a collection with everything in it."""
    return await engine.collections.delete(collection, purge=purge)


async def _require_usable(embedder: str | None, engine: Engine) -> None:
    """Only the owner of the store may have it read a model from a folder of its machine."""
    if (embedder or "").startswith("static:") and not (await engine.people.whoami()).owner:
        raise NotAllowed("use an embedder from a folder of the server", "the owner account")
