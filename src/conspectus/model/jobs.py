"""Jobs: durable background tasks, and their numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TypedDict, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Range
from conspectus.model.checks import Checked
from conspectus.model.ids import CollectionId, JobId, SourceId, UserId
from conspectus.model.parameters import PersonName, StoredTitle
from conspectus.model.records import Metadata

JobKind = Literal["ingest_url", "ingest_files", "sync", "summary", "retention", "extraction", "evaluation"]
JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
JobAction = Literal["cancel", "retry"]
JobOutcome = Literal["complete", "partial", "failed", "cancelled"]
FINISHED: frozenset[JobState] = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Job:
    """A durable background task. `arguments` never hold a secret; `title` describes it in a line.

    `attempts` counts starts; `total` is 0 while it is not known; `code` is that of the last error, `error`
    its message; `result` is what a finished job reports, and a cancelled upload names the files that stayed
    under `stored`. `actions` are those that the server would carry out for the caller.
    """

    id: JobId
    kind: JobKind
    owner: UserId
    collection: CollectionId
    source: SourceId | None
    title: StoredTitle
    created: datetime
    arguments: Metadata = field(default_factory=dict)
    state: JobState = "queued"
    done: int = 0
    total: int = 0
    attempts: int = 0
    code: str | None = None
    error: str | None = None
    result: Metadata | None = None
    started: datetime | None = None
    finished: datetime | None = None
    actions: tuple[JobAction, ...] = ()

    @property
    def outcome(self) -> JobOutcome | None:
        """How the job ended: `partial` if it succeeded but names `failures`; None until it ends."""
        if self.state not in FINISHED:
            return None
        if self.state != "succeeded":
            return "cancelled" if self.state == "cancelled" else "failed"
        failures = (self.result or {}).get("failures")
        return "partial" if isinstance(failures, Sequence) and failures else "complete"

    @property
    def possible_actions(self) -> tuple[JobAction, ...]:
        """The actions that its state and its input allow, to those who may change it."""
        if self.state not in FINISHED:
            return ("cancel",)
        is_repeatable = self.state != "succeeded" and self.arguments.get("repeatable", True)
        return ("retry",) if is_repeatable else ()


Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
METHODS: tuple[Method, ...] = get_args(Method)


class ChunkOptions(TypedDict, total=False):
    """Sizes for splitting a page, in characters; the settings give the defaults."""

    chunk_size: Annotated[
        int | None, Range(1, 1_000_000), "Maximum characters of a chunk; by default as set."
    ]
    overlap: Annotated[
        int | None, Range(0, 1_000_000), "Characters that a chunk may repeat; by default as set."
    ]


@dataclass(frozen=True, slots=True)
class Upload(Checked):
    """A file to upload: its name, and its bytes or its path."""

    name: str
    data: bytes | Path


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first; `next` is the cursor of the page after this one, if any."""

    jobs: tuple[Job, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class JobRates:
    """Numbers of jobs in a span of time. Rates are in percent with one decimal, 0.0 without jobs."""

    finished: int
    failed: int
    retried: int

    @property
    def failure_rate(self) -> float:
        """Failed among finished jobs."""
        return safe_rate(self.failed, self.finished)

    @property
    def retry_rate(self) -> float:
        """Jobs that took more than one attempt among finished ones."""
        return safe_rate(self.retried, self.finished)


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The ingest report: jobs by state, rates by span (`1h`, `24h`, `7d`), and over 7 days by source."""

    states: Annotated[Mapping[JobState, int], Example({"succeeded": 12, "failed": 1})]
    rates: Mapping[str, JobRates]
    sources: Mapping[SourceId, JobRates]
    partial: Annotated[int, "Succeeded jobs that name what failed."] = 0


def safe_rate(part: int, total: int) -> float:
    """The share in percent, rounded to one decimal; 0.0 of nothing."""
    return round(100.0 * part / total, 1) if total else 0.0


RequestKind = Literal["embed", "rerank", "chat"]


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """One call to a model provider, without any of its content.

    `user_id` is the user of the search, or of texts that a client of OpenAI has embedded; None for documents
    and chats, and for a call with queries of several users.
    `latency` is in milliseconds, `tokens` what the provider counted or else an estimate (4/3 of its words),
    `error` is `HTTP n` or a stable code.
    """

    kind: RequestKind
    status: Literal["success", "error"]
    model: Annotated[str, Example("minilm")]
    latency: float
    inputs: int
    tokens: int
    created: datetime
    error: str | None = None
    user_id: PersonName | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class RequestTotals:
    """Totals of a kind of request to one model."""

    kind: RequestKind
    model: Annotated[str, Example("minilm")]
    requests: int
    errors: int
    inputs: int
    tokens: int
    mean_latency: float

    @property
    def error_rate(self) -> float:
        """Failed requests in percent."""
        return safe_rate(self.errors, self.requests)
