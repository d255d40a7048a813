"""Jobs: durable background tasks; connections that they sync, and how attempts are repeated."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal, TypedDict, TypeVar, get_args

from conspectus.deferred import dataclass
from conspectus.errors import ProviderUnavailable
from conspectus.model.annotations import Example, Range
from conspectus.model.checks import Checked
from conspectus.model.ids import CollectionId, JobId, SourceId, UserId
from conspectus.model.parameters import PersonName, StoredId, StoredTitle
from conspectus.model.records import Metadata

JobKind = Literal["ingest_url", "ingest_files", "sync", "summary", "retention", "extraction"]
JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
MAX_LISTED_JOBS: Final = 100
JobAction = Literal["cancel", "retry"]
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


def safe_rate(part: int, total: int) -> float:
    """The share in percent, rounded to one decimal; 0.0 of nothing."""
    return round(100.0 * part / total, 1) if total else 0.0


RequestKind = Literal["embed", "rerank", "chat"]


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """One call to a model provider, without any of its content.

    `user_id` is the user of the search; None for documents and chats, and for a call with queries of several
    users.
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


SyncState = Literal["idle", "running", "complete", "error"]
RemoteAccess = Literal["granted", "lost", "unreachable"]
"""Whether the last sync could read the remote: `lost` if it refused, `unreachable` without an answer."""


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """One page of a listing.

    `key` identifies it: a move or a new title does not change it; `space` names its source; `revision`
    changes with its content or location; `parent` is the key of the page above it.
    """

    key: str
    space: str
    revision: str
    title: str = ""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A batch of a listing.

    `entries` were made or changed; `gone` are keys of deleted pages, `spaces_gone` names of deleted spaces.
    `cursor` is where to continue when this batch is stored. `complete` says that the batches of this listing,
    from its first, name everything that exists.
    """

    entries: tuple[ConnectorEntry, ...]
    cursor: str
    gone: tuple[str, ...] = ()
    spaces_gone: tuple[str, ...] = ()
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Connection:
    """A link between a collection and a store of documents. `options` hold no secret.

    `access` tells whether the last syncs could read, since `access_since`. Documents of a connection that has
    lost access are hidden from all but managers until a sync succeeds.
    """

    id: StoredId
    collection: CollectionId
    owner: UserId
    name: Annotated[str, Example("wiki")]
    connector: Annotated[str, Example("git")]
    options: Annotated[Metadata, Example({"url": "https://git.example.org/handbook.git"})] = field(
        default_factory=dict
    )
    cursor: Annotated[str | None, Example("4f1c0de")] = None
    state: SyncState = "idle"
    error: str | None = None
    last_run: datetime | None = None
    access: RemoteAccess = "granted"
    access_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class SyncReport:
    """Counts of pages of one sync, by outcome."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    failures: tuple[tuple[str, str], ...] = ()


T = TypeVar("T")

BUSY: Final = frozenset({429, 503})
"""Statuses that allow a retry. The caller handles missing responses and server errors."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts and waits in seconds; `sleep` and `chance` can be replaced.

    Responses with a status in `busy` are retried, and invalid ones `invalid_attempts` times in all. The wait
    doubles from `first_wait` up to `max_wait` and is shortened randomly to at least half, so that clients
    that were refused together do not return together.
    """

    attempts: int = 5
    first_wait: float = 1.0
    max_wait: float = 30.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    busy: frozenset[int] = BUSY
    invalid_attempts: int = 2

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Return the seconds to wait after a failed attempt (0 is the first).

        `retry_after` overrides them.
        """
        if retry_after is not None:
            return retry_after
        return min(self.max_wait, self.first_wait * 2.0**attempt) * (0.5 + 0.5 * self.chance())

    async def retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call until the provider is no longer busy and answers properly, and return the result.

        If the provider requests more than `max_wait`, its error is raised.
        """
        attempt = 0
        while True:
            try:
                return await ask()
            except ProviderUnavailable as error:
                wait = self.wait(attempt, error.retry_after)
                attempt += 1
                if attempt >= self._attempts_after(error) or wait > self.max_wait:
                    raise
            await self.sleep(wait)

    def _attempts_after(self, error: ProviderUnavailable) -> int:
        """Return how many attempts an error allows."""
        if error.status in self.busy:
            return self.attempts
        return min(self.invalid_attempts, self.attempts) if error.verdict == "answer" else 1
