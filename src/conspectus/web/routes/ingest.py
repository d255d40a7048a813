"""Pages and files to take in, and wikis to keep in step with."""

from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import File, Form, Query, Response, UploadFile

from conspectus.model.connections import Connection
from conspectus.model.jobs import Job
from conspectus.model.records import Receipt
from conspectus.web.bodies import handed_in
from conspectus.web.deps import CollectionName, EngineOf, NamedInPath, Unhurried
from conspectus.web.openapi import Section, accepted, problems
from conspectus.web.routes.jobs import told_of
from conspectus.web.schemas.base import NAME
from conspectus.web.schemas.jobs import ConnectionAnswer, ConnectionBody, JobAnswer, UrlBody
from conspectus.web.schemas.records import ReceiptAnswer

router = Section("ingest", prefix="/collections/{collection:path}")


@router.post("/ingest/url", response_model=JobAnswer, status_code=202, responses=accepted())
async def ingest_url(collection: CollectionName, body: UrlBody, engine: EngineOf, response: Response) -> Job:
    """Take in a web page by a job."""
    given = body.model_dump(exclude={"url"})
    return told_of(await engine.jobs.ingest_url(body.url, collection=collection, **given), response)


@router.post("/ingest/files", response_model=JobAnswer, status_code=202, responses=accepted(415))
async def ingest_files(
    collection: CollectionName,
    files: Annotated[list[UploadFile], File(min_length=1, description="The files, each with its name.")],
    engine: EngineOf,
    response: Response,
    *,
    source: Annotated[str, Form(min_length=1, max_length=NAME)] = "uploads",
) -> Job:
    """Take in files by a job; they are kept on disk when this is answered."""
    with TemporaryDirectory() as folder:
        uploads = await handed_in(files, folder)
        job = await engine.jobs.ingest_files(uploads, collection=collection, source=source)
    return told_of(job, response)


@router.get("/connections", response_model=list[ConnectionAnswer], responses=problems())
async def list_connections(collection: CollectionName, engine: EngineOf) -> Sequence[Connection]:
    """The stores elsewhere that a collection is kept in step with, by name."""
    return await engine.connections.list(collection=collection)


@router.post("/connections", response_model=ConnectionAnswer, status_code=201, responses=problems())
async def connect(collection: CollectionName, body: ConnectionBody, engine: EngineOf) -> Connection:
    """Connect a collection with a store elsewhere; a sync then brings it in step."""
    return await engine.connections.create(body.name, body.connector, body.options, collection=collection)


@router.delete(
    "/connections/{name}", response_model=ReceiptAnswer, responses=problems(), dependencies=[Unhurried]
)
async def disconnect(
    collection: CollectionName,
    name: NamedInPath,
    engine: EngineOf,
    *,
    delete: Annotated[bool, Query(description="Delete what it brought, too.")] = False,
) -> Receipt:
    """End a connection."""
    return await engine.connections.delete(name, collection=collection, delete=delete)


@router.post("/connections/{name}/sync", response_model=JobAnswer, status_code=202, responses=accepted())
async def sync(collection: CollectionName, name: NamedInPath, engine: EngineOf, response: Response) -> Job:
    """Bring a collection in step with what it is connected to, by a job."""
    return told_of(await engine.connections.sync(name, collection=collection), response)
