"""Jobs, connections, and the log of calls to model providers."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from conspectus.model.connections import SyncState
from conspectus.model.jobs import JobKind, JobState, RequestKind
from conspectus.web.schemas.base import Count, JsonObject, Name, RequestModel, ResponseModel

Url = Annotated[str, Field(min_length=1, max_length=8_192, examples=["https://example.org/page"])]


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


class JobPageAnswer(ResponseModel):
    """Jobs, newest first; `next` is the cursor of the page after this one."""

    jobs: list[JobAnswer]
    next: str | None


class RatesAnswer(ResponseModel):
    """What happened in a span of time; rates in percent."""

    finished: Count
    failed: Count
    retried: Count
    failure_rate: float
    retry_rate: float


class ReportAnswer(ResponseModel):
    """Jobs by state, rates by span (`1h`, `24h`, `7d`), and over 7 days by source."""

    states: dict[JobState, Count]
    rates: dict[str, RatesAnswer]
    sources: dict[str, RatesAnswer]


class UrlBody(RequestModel):
    """A web page to take in."""

    url: Url
    method: str = Field("GET", min_length=1, max_length=20)
    headers: dict[str, Annotated[str, Field(max_length=8_192)]] | None = Field(
        None, max_length=100, description="Sent with the request, and stored nowhere."
    )
    chunk_size: int | None = Field(None, ge=1, le=1_000_000)
    overlap: int | None = Field(None, ge=0, le=1_000_000)
    source: Name | None = Field(None, description="By default one for each domain.")


class ConnectionBody(RequestModel):
    """A store elsewhere to keep the collection in step with."""

    name: Name = Field(examples=["handbook"])
    connector: Name = Field(examples=["mediawiki"])
    options: JsonObject = Field(default={}, description="What the connector needs to know.")


class ConnectionAnswer(ResponseModel):
    """A collection kept in step with a store elsewhere."""

    id: str
    collection: str
    owner: str
    name: str
    connector: str
    options: JsonObject
    cursor: str | None
    state: SyncState
    error: str | None
    ran: datetime | None


class RequestAnswer(ResponseModel):
    """One call to a model provider, without any of its content; `latency` in milliseconds."""

    id: int
    kind: RequestKind
    status: Literal["success", "error"]
    model: str
    latency: float
    inputs: Count
    tokens: Count
    created: datetime
    error: str | None
    user_id: str | None


class TotalsAnswer(ResponseModel):
    """What a kind of request to one model added up to; rates in percent."""

    kind: RequestKind
    model: str
    requests: Count
    errors: Count
    inputs: Count
    tokens: Count
    mean_latency: float
    error_rate: float
