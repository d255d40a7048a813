"""Jobs, connections, and the log of calls to model providers."""

from datetime import datetime

from conspectus.model.jobs import JobKind, JobState
from conspectus.web.schemas.base import Count, JsonObject, ResponseModel


class JobAnswer(ResponseModel):
    """One piece of long work; `total` is 0 while it is not known."""

    id: str
    kind: JobKind
    owner: str
    collection: str
    source: str | None
    title: str
    created: datetime
    arguments: JsonObject
    state: JobState
    done: Count
    total: Count
    attempts: Count
    code: str | None
    error: str | None
    result: JsonObject | None
    started: datetime | None
    finished: datetime | None
