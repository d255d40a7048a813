"""Pages and files to take in, and wikis to keep in step with."""

from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import File, Form, Response, UploadFile

from conspectus.model.jobs import Job
from conspectus.operations import INGEST_OPERATIONS
from conspectus.web.bodies import handed_in
from conspectus.web.deps import CollectionName, EngineOf
from conspectus.web.openapi import Section, accepted
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import answered
from conspectus.web.routes.jobs import told_of
from conspectus.web.schemas.base import NAME

router = Section("ingest")


@router.post(
    "/collections/{collection:path}/ingest/files",
    response_model=answered(Job),
    status_code=202,
    responses=accepted(415),
)
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


add_routes(router, INGEST_OPERATIONS)
