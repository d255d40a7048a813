"""Ingestion, connections, jobs, and the store as a whole."""

from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import File, Form, Path, Query, Response, UploadFile

from conspectus.model import parameters
from conspectus.model.jobs import Job
from conspectus.model.reports import FilesPreview
from conspectus.operations.declared import facts_of
from conspectus.operations.jobs import INGEST_OPERATIONS, JOB_OPERATIONS
from conspectus.operations.maintenance import MAINTENANCE_OPERATIONS
from conspectus.web.bodies import save_uploads
from conspectus.web.dependencies import CollectionName, EngineOf, Unhurried
from conspectus.web.logs import API
from conspectus.web.openapi import Section, describe_accepted, problems
from conspectus.web.operation_routes import add_routes

ingest = Section("ingest")
router = Section("jobs")
upkeep = Section("upkeep")
MAX_WAIT_SECONDS = 30
JobIdentifier = Annotated[str, Path(**facts_of(parameters.JobIdentifier))]
UploadedFiles = Annotated[
    list[UploadFile],
    File(min_length=1, description="The files, each with its name.", examples=[["backup.md"]]),
]
SourceOfFiles = Annotated[str, Form(**facts_of(parameters.SourceName))]
MAX_PREVIEWED_CHUNKS = 1_000
Wait = Annotated[
    float, Query(ge=0, le=MAX_WAIT_SECONDS, description="Seconds to wait for its end before answering.")
]


@router.get("/jobs/{job}")
async def get_job(job: JobIdentifier, engine: EngineOf, *, wait: Wait = 0.0) -> Job:
    """Return a job, at once or when it has ended, after at most `wait` seconds."""
    return await engine.jobs.wait(job, timeout=wait) if wait else await engine.jobs.get(job)


@ingest.post("/collections/{collection:path}/ingest/files", status_code=202, responses=describe_accepted(415))
async def ingest_files(
    collection: CollectionName,
    files: UploadedFiles,
    engine: EngineOf,
    response: Response,
    *,
    source: SourceOfFiles = "uploads",
) -> Job:
    """Ingest files with a job; they are on disk when this is answered."""
    with TemporaryDirectory() as folder:
        uploads = await save_uploads(files, folder)
        job = await engine.jobs.ingest_files(uploads, collection=collection, source=source)
    response.headers["Location"] = f"{API}/jobs/{job.id}"
    return job


@ingest.post(
    "/collections/{collection:path}/ingest/preview", responses=problems(415), dependencies=[Unhurried]
)
async def preview_files(
    collection: CollectionName,
    files: UploadedFiles,
    engine: EngineOf,
    *,
    source: SourceOfFiles = "uploads",
    limit: Annotated[int, Form(ge=1, le=MAX_PREVIEWED_CHUNKS, description="Maximum number of chunks.")] = 100,
) -> FilesPreview:
    """Read and split files as ingesting them would; nothing is stored.

    The chunks of all files together are limited; each document has the number of all its chunks.
    """
    with TemporaryDirectory() as folder:
        uploads = await save_uploads(files, folder)
        return await engine.jobs.preview_files(uploads, collection=collection, source=source, limit=limit)


add_routes(ingest, INGEST_OPERATIONS)
add_routes(router, JOB_OPERATIONS)
add_routes(upkeep, MAINTENANCE_OPERATIONS)
router.routes[:0] = ingest.routes
router.routes.extend(upkeep.routes)
