"""The end of jobs before their time: one of them, or all of a user who may do nothing any more."""

from conspectus.engine.context import EngineContext
from conspectus.engine.job_handlers import note_stored_files
from conspectus.model.access import LOCAL_OWNER
from conspectus.model.ids import UserId
from conspectus.model.jobs import FINISHED, Job
from conspectus.model.pages import pages
from conspectus.ports.jobs import JobScope


async def cancel_job(context: EngineContext, job: Job) -> None:
    """Cancel a job that is queued or runs; one that has ended stays as it is. Raises NotFound.

    Other processes stop it when they next look at its row, in less than a second.
    """
    work, ended = context.parts.work, tuple(sorted(FINISHED))
    cancelled = await work.job_store.change(
        job.id, unless=ended, state="cancelled", finished=context.parts.clock()
    )
    await context.core.jobs.cancel(cancelled.id)
    await work.files.drop(cancelled.id)
    await note_stored_files(context, cancelled)


async def cancel_jobs_of(context: EngineContext, user: UserId) -> int:
    """Cancel all queued and running jobs of a user, and return their number."""
    scope = JobScope(states=("queued", "running"))
    store = context.parts.work.job_store
    own_jobs = [job async for page in pages(store.jobs, scope) for job in page.jobs if job.owner == user]
    for job in own_jobs:
        await cancel_job(context.as_person(LOCAL_OWNER), job)
    return len(own_jobs)
