"""The ports of jobs: the job store, execution, locks, idempotency, and the provider log."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from conspectus.model.connections import Connection
from conspectus.model.ids import CollectionId, JobId, SourceId, UserId
from conspectus.model.jobs import (
    EmbeddingRequest,
    IngestReport,
    Job,
    JobPage,
    JobState,
    RequestTotals,
    Upload,
)
from conspectus.model.records import Metadata


class Lock(Protocol):
    """A lock during a block, held or not."""

    @property
    def fence(self) -> int:
        """A number that grows with each holder, so that writes of former holders can be rejected."""
        ...

    def __bool__(self) -> bool:
        """Return whether this process holds the lock."""
        ...

    async def confirm(self) -> None:
        """Raise LockLost if another process may hold the lock by now, as after a pause of this one."""
        ...


Turn: TypeAlias = Callable[[], AbstractAsyncContextManager[Lock]]
"""Opens a block with or without the lock, and does not wait for it.

If the lock is lost, work in the block is cancelled and the block raises LockLost. If the holder cannot be
determined, opening raises StorageError.
"""

Turns: TypeAlias = Callable[[str], AbstractAsyncContextManager[Lock]]
"""Opens locks by name."""


CURRENT_USER: Final[ContextVar[str | None]] = ContextVar("asking", default=None)
"""The id of the user for whom a model provider is called; None for background work."""


@contextmanager
def on_behalf_of(user: str | None) -> Iterator[None]:
    """Attribute calls to model providers within the block to that user."""
    before = CURRENT_USER.set(user)
    try:
        yield
    finally:
        CURRENT_USER.reset(before)


@dataclass(frozen=True, slots=True)
class JobPlace:
    """The jobs of a collection: all of them, or those of these sources and those of this owner."""

    collection: CollectionId
    sources: tuple[SourceId, ...] | None = None
    owner: UserId | None = None


@dataclass(frozen=True, slots=True)
class JobScope:
    """Selects jobs: of any of these places (None: all), in any of these states (None: any)."""

    places: tuple[JobPlace, ...] | None = None
    states: tuple[JobState, ...] | None = None


class JobStore(Protocol):
    """The rows of jobs and connections. Every method is one transaction."""

    async def add(self, job: Job) -> Job:
        """Store a job, or return the stored one of that id."""
        ...

    async def job(self, job: JobId) -> Job | None:
        """Return the job of that id."""
        ...

    async def change(
        self, job: JobId, *, unless: Sequence[JobState] = (), attempt: int | None = None, **fields: Any
    ) -> Job:
        """Change fields of a job, unless it is in one of these states. Returns the resulting job.

        With `attempt`, only while that is the job's last one. Raises NotFound or LockLost.
        """
        ...

    async def jobs(self, scope: JobScope, *, after: str | None = None, limit: int = 100) -> JobPage:
        """Return the jobs in scope, newest first. Raises InvalidInput for an invalid cursor."""
        ...

    async def report(self, scope: JobScope, *, now: datetime) -> IngestReport:
        """Return counts of the jobs in scope."""
        ...

    async def put_connection(self, connection: Connection) -> Connection:
        """Store a connection, or update the one of that id."""
        ...

    async def connections(self, collection: CollectionId) -> Sequence[Connection]:
        """Return the connections of a collection by name."""
        ...

    async def delete_connection(self, connection: str) -> bool:
        """Delete a connection. Returns whether it existed."""
        ...


Run: TypeAlias = Callable[[JobId], Awaitable[None]]
"""Runs a job from its stored state and stores its result. It raises only to be run again."""

JobTurn: TypeAlias = Callable[[JobId], AbstractAsyncContextManager[Lock]]
"""Opens a block that runs a job exclusively, like `Turn`."""


class Jobs(Protocol):
    """Durable execution: a submitted job is run to its end exactly once, even if processes are killed."""

    async def start(self, run: Run) -> None:
        """Start running submitted jobs, including earlier ones. Call it once."""
        ...

    async def submit(self, job: JobId) -> None:
        """Submit a job. Has no effect on a queued or running job; a finished one runs again.

        After the return the job will run, even if the process dies, provided that unfinished jobs of the
        store are submitted again at each start. Raises StorageError.
        """
        ...

    async def cancel(self, job: JobId) -> None:
        """Cancel a queued or running job. Has no effect on a finished one."""
        ...

    async def close(self, *, grace: float) -> None:
        """Let running jobs finish for up to `grace` seconds; the others run again at the next start."""
        ...


class JobFiles(Protocol):
    """Data of a job besides its row: its files, and secrets."""

    async def store_secret(self, job: JobId, secret: Metadata) -> None:
        """Store a secret so that only the account of this process can read it."""
        ...

    async def secret(self, job: JobId) -> Metadata | None:
        """Return the secret of a job; None if it has none, or it was deleted."""
        ...

    async def store_files(self, job: JobId, uploads: Sequence[Upload]) -> None:
        """Copy the files durably. Raises UnreadableFile or StorageError."""
        ...

    async def files(self, job: JobId) -> Sequence[Path]:
        """Return the paths of the files in the order in which they were stored; empty after deletion."""
        ...

    async def drop(self, job: JobId) -> None:
        """Delete everything that is stored for a job."""
        ...

    async def holders(self) -> Mapping[JobId, datetime]:
        """Return the jobs with stored data, and when it last changed."""
        ...


class RequestLog(Protocol):
    """The log of requests to model providers."""

    async def add(self, requests: Sequence[EmbeddingRequest]) -> None:
        """Store requests."""
        ...

    async def page(self, *, after: int | None = None, limit: int = 100) -> Sequence[EmbeddingRequest]:
        """Return requests before the id `after`, newest first."""
        ...

    async def totals(self, since: datetime) -> Sequence[RequestTotals]:
        """Return sums by kind and model since an instant."""
        ...


@dataclass(slots=True)
class Commits:
    """The number of transactions of a block that were committed, or may have been."""

    possible: int = 0


class IdempotencyStore(Protocol):
    """Stored responses, so that a write that is sent twice with the same key is done once."""

    async def begin(
        self, person: str, key: str, fingerprint: str, *, at: datetime
    ) -> Mapping[str, Any] | None:
        """Claim a key (None) for as long as `renew` is called in time, or return its stored response.

        Raises Conflict if the key was used for another request, or if its first request is still running;
        WriteOutcomeUnknown if that ended without a response, and something of it was stored.
        """
        ...

    async def renew(self) -> None:
        """Extend the leases of the open claims of this process."""
        ...

    def recording(self, person: str, key: str, *, at: datetime) -> AbstractContextManager[None]:
        """Return a block whose writes belong to the request that claimed the key.

        If another process has taken over the claim, a write in the block is rolled back and raises LockLost.
        """
        ...

    def watching(self) -> AbstractContextManager[Commits]:
        """Return a block that counts the write transactions of it and of the tasks it starts."""
        ...

    async def finish(self, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
        """Store the response; with None, release the key unless something was stored."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete older responses. Returns their number."""
        ...

    async def give_back(self) -> int:
        """Release claims that are no longer renewed because their process ended. Returns their number.

        Claims with stored writes are marked as such.
        """
        ...


@dataclass(frozen=True, slots=True)
class RateCount:
    """Whether the requested amount was available, and the seconds until the next minute."""

    granted: bool
    seconds: float


class RateCounters(Protocol):
    """The rate counters of a store. Minutes are those of its clock."""

    async def take(self, name: str, count: int, *, maximum: int) -> RateCount:
        """Count an amount against the limit per minute of a name: all of it, or nothing."""
        ...
