"""Jobs as tasks of the protocol."""

from collections.abc import Mapping
from typing import Any

from conspectus.mcp.lines import shorten
from conspectus.model.jobs import Job, JobState

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
TASK_STATES: Mapping[JobState, str] = {
    "queued": "working",
    "running": "working",
    "succeeded": "completed",
    "failed": "completed",
    "cancelled": "cancelled",
}
"""A tool that failed has completed, with an error as its result."""
POLL_MS = 1_000


def task_of(job: Job) -> dict[str, Any]:
    """Return a job as a task of the protocol."""
    changed = job.finished or job.started or job.created
    return {
        "taskId": job.id,
        "status": TASK_STATES[job.state],
        "statusMessage": f"{shorten(job.title)}: {job.state}, {job.done} of {job.total}",
        "createdAt": job.created.isoformat(),
        "lastUpdatedAt": changed.isoformat(),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }
