"""Long work as it stands, and the log of calls to model providers."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response

from conspectus.model.jobs import EmbeddingRequest, IngestReport, Job, JobPage, JobState, RequestTotals
from conspectus.web.deps import After, EngineOf, IdInPath, NamedInQuery
from conspectus.web.logs import API
from conspectus.web.openapi import Section, problems
from conspectus.web.schemas.base import INT64
from conspectus.web.schemas.jobs import (
    JobAnswer,
    JobPageAnswer,
    ReportAnswer,
    RequestAnswer,
    TotalsAnswer,
)

router = Section("jobs")
LONGEST_WAIT = 30
Wait = Annotated[
    float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for its end before answering.")
]
PageSize = Annotated[int, Query(ge=1, le=100, description="Most of them on a page.")]
RequestId = Annotated[int | None, Query(ge=0, lt=INT64, description="The id of the last one before.")]
RequestLimit = Annotated[int, Query(ge=1, le=1_000, description="Most of them on a page.")]
Hours = Annotated[int, Query(ge=1, le=366 * 24, description="How far to look back.")]


@router.get("/jobs", response_model=JobPageAnswer, responses=problems())
async def list_jobs(
    engine: EngineOf,
    collection: NamedInQuery = None,
    *,
    state: JobState | None = None,
    after: After = None,
    limit: PageSize = 100,
) -> JobPage:
    """A page of jobs, newest first."""
    return await engine.jobs.list(collection=collection, state=state, after=after, limit=limit)


@router.get("/jobs/{job}", response_model=JobAnswer, responses=problems())
async def get_job(job: IdInPath, engine: EngineOf, *, wait: Wait = 0.0) -> Job:
    """A job as it is now, or when it has ended meanwhile."""
    return await engine.jobs.wait(job, seconds=wait) if wait else await engine.jobs.get(job)


@router.post("/jobs/{job}/cancel", response_model=JobAnswer, responses=problems())
async def cancel_job(job: IdInPath, engine: EngineOf) -> Job:
    """Stop a job that waits or runs; one that has ended stays as it is."""
    return await engine.jobs.cancel(job)


@router.post("/jobs/{job}/retry", response_model=JobAnswer, responses=problems())
async def retry_job(job: IdInPath, engine: EngineOf) -> Job:
    """Run a job again that failed or was cancelled."""
    return await engine.jobs.retry(job)


@router.get("/ingest/report", response_model=ReportAnswer, responses=problems())
async def ingest_report(engine: EngineOf, collection: NamedInQuery = None) -> IngestReport:
    """Count jobs by state, with failure and retry rates by period and by source."""
    return await engine.jobs.report(collection=collection)


@router.get("/requests", response_model=list[RequestAnswer], responses=problems())
async def list_requests(
    engine: EngineOf, after: RequestId = None, limit: RequestLimit = 100
) -> Sequence[EmbeddingRequest]:
    """Calls to model providers, newest first."""
    return await engine.jobs.requests(after=after, limit=limit)


@router.get("/requests/totals", response_model=list[TotalsAnswer], responses=problems())
async def request_totals(engine: EngineOf, hours: Hours = 24) -> Sequence[RequestTotals]:
    """What the calls to model providers added up to."""
    return await engine.jobs.request_totals(hours=hours)


def told_of(job: Job, response: Response) -> Job:
    """A job just accepted, with the place where it can be watched."""
    response.headers["Location"] = f"{API}/jobs/{job.id}"
    return job
