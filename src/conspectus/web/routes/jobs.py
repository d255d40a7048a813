"""Long work as it stands, and the log of calls to model providers."""

from typing import Annotated

from fastapi import Query, Response

from conspectus.model.jobs import Job
from conspectus.operations import JOB_OPERATIONS
from conspectus.web.deps import EngineOf, IdInPath
from conspectus.web.logs import API
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import answered

router = Section("jobs")
LONGEST_WAIT = 30
Wait = Annotated[
    float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for its end before answering.")
]


@router.get("/jobs/{job}", response_model=answered(Job), responses=problems())
async def get_job(job: IdInPath, engine: EngineOf, *, wait: Wait = 0.0) -> Job:
    """A job as it is now, or when it has ended meanwhile."""
    return await engine.jobs.wait(job, seconds=wait) if wait else await engine.jobs.get(job)


def told_of(job: Job, response: Response) -> Job:
    """A job just accepted, with the place where it can be watched."""
    response.headers["Location"] = f"{API}/jobs/{job.id}"
    return job


add_routes(router, JOB_OPERATIONS)
