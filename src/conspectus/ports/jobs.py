"""The ports of long work: who keeps its rows, who runs it, and who logs calls to providers."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.connections import Connection
from conspectus.model.ids import CollectionId, JobId, SourceId, UserId
from conspectus.model.jobs import (
    EmbeddingRequest,
    IngestReport,
    Job,
    JobOutcome,
    JobPage,
    JobState,
    RequestTotals,
    Upload,
)
from conspectus.model.records import Metadata


class Lock(Protocol):
    """Whether this process holds the lock, for the duration of the block."""

    @property
    def fence(self) -> int:
        """A number that grows from one holder to the next, so that the next one's writes count for more."""

    def __bool__(self) -> bool:
        """Whether this process holds the lock."""

    async def confirm(self) -> None:
        """Raise LockLost if another process may hold the lock by now, as after a pause of this one."""


Turn: TypeAlias = Callable[[], AbstractAsyncContextManager[Lock]]
"""Opens a block with or without the lock, and does not wait for it.

If the lock is lost, work in the block is cancelled and the block raises LockLost. If the holder cannot be
determined, opening raises StorageError.
"""

Turns: TypeAlias = Callable[[str], AbstractAsyncContextManager[Lock]]
"""Opens turns by the names of what is done in them."""


CURRENT_USER: Final[ContextVar[str | None]] = ContextVar("asking", default=None)
"""The id of the user for whom a model provider is called; None for background work."""


@contextmanager
def on_behalf_of(user: str | None) -> Iterator[None]:
    """Calls to model providers within the block are for that user."""
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
    """Which jobs: of any of these places (None: all), in any of these states (None: in any).

    With an `outcome`, only those that ended like this.
    """

    places: tuple[JobPlace, ...] | None = None
    states: tuple[JobState, ...] | None = None
    outcome: JobOutcome | None = None


class JobStore(Protocol):
    """The rows of jobs and of syncs; every method is one transaction."""

    async def add(self, job: Job) -> Job:
        """Store it, or return the stored one of that id."""

    async def job(self, job: JobId) -> Job | None:
        """The job of that id."""

    async def change(
        self, job: JobId, *, unless: Sequence[JobState] = (), attempt: int | None = None, **fields: Any
    ) -> Job:
        """Change fields of a job, unless it is in one of these states, and return it as it is then.

        With `attempt`, only while that is the job's last one. Raises NotFound or LockLost.
        """

    async def jobs(self, scope: JobScope, *, after: str | None = None, limit: int = 100) -> JobPage:
        """Jobs in scope, newest first. Raises InvalidInput for a cursor that is none."""

    async def report(self, scope: JobScope, *, now: datetime) -> IngestReport:
        """Numbers over the jobs in scope."""

    async def put_connection(self, connection: Connection, *, sealed: str | None = None) -> Connection:
        """Store it, or change the stored one of that id; without `sealed`, its credentials stay."""

    async def put_credentials(self, connection: str, sealed: str | None, *, replaced: str | None) -> bool:
        """Replace sealed credentials, None for none; whether these were the ones to be `replaced`."""

    async def credentials(self, connection: str) -> str | None:
        """The sealed credentials of a connection; None without any."""

    async def connections(self, collection: CollectionId) -> Sequence[Connection]:
        """The connections of a collection, by name."""

    async def delete_connection(self, connection: str) -> bool:
        """Forget a connection; whether there was one."""


Run: TypeAlias = Callable[[JobId], Awaitable[None]]
"""Runs a job from its stored state and stores its result; raises only to be run again."""

JobTurn: TypeAlias = Callable[[JobId], AbstractAsyncContextManager[Lock]]
"""Opens a block that runs a job alone, as `Turn` does."""


class Jobs(Protocol):
    """Durable execution: a submitted job is run to its end exactly once, even if processes are killed."""

    async def start(self, run: Run) -> None:
        """Begin to run what is submitted, now and earlier. Called once."""

    async def submit(self, job: JobId) -> None:
        """Submit a job; a queued or running one is unchanged, one that has ended runs again.

        When this returns the job will run, even if the process dies, provided that unfinished jobs of the
        store are submitted again at each start. Raises StorageError.
        """

    async def cancel(self, job: JobId) -> None:
        """Cancel a queued or running job; one that has ended is unchanged."""

    async def close(self, *, grace: float) -> None:
        """Let running jobs finish for up to `grace` seconds; the others run again at the next start."""


class JobFiles(Protocol):
    """Data of a job besides its row: its files, and values that must not be stored elsewhere."""

    async def store_secret(self, job: JobId, secret: Metadata) -> None:
        """Keep it where only the account of this process can read it."""

    async def secret(self, job: JobId) -> Metadata | None:
        """The stored value; None if there is none, or it was deleted."""

    async def store_files(self, job: JobId, uploads: Sequence[Upload]) -> None:
        """Copy the files; when this returns they outlast a crash. Raises UnreadableFile or StorageError."""

    async def files(self, job: JobId) -> Sequence[Path]:
        """The paths of the files, in the order in which they were stored; empty once they were deleted."""

    async def drop(self, job: JobId) -> None:
        """Delete all that was kept for a job, if there is anything."""

    async def holders(self) -> Mapping[JobId, datetime]:
        """The jobs for which something is kept, and when it last changed."""


class RequestLog(Protocol):
    """The log of calls to model providers."""

    async def add(self, requests: Sequence[EmbeddingRequest]) -> None:
        """Store them."""

    async def page(self, *, after: int | None = None, limit: int = 100) -> Sequence[EmbeddingRequest]:
        """Requests, newest first, older than the id `after`."""

    async def totals(self, since: datetime) -> Sequence[RequestTotals]:
        """Sums by kind and model since an instant."""


@dataclass(slots=True)
class Commits:
    """How many transactions of a block were committed, or may have been."""

    possible: int = 0


class IdempotencyStore(Protocol):
    """Answers kept for a while, so that a write that is sent twice with the same key is done once."""

    renewal_seconds: float
    """How often `renew` has to be called while claims are open."""

    async def begin(
        self, person: str, key: str, fingerprint: str, *, at: datetime
    ) -> Mapping[str, Any] | None:
        """Claim a key (None) for as long as `renew` is called in time, or return the answer kept for it.

        An answer is returned only while the person has every role of then, and while all rows that it names
        are as they were. Raises Conflict if they are not, if the key was used for another request, or if its
        first request is still running; WriteOutcomeUnknown if that ended without an answer to keep, and
        something of it was stored.
        """

    async def renew(self) -> None:
        """Hold on to the open claims of this process for another lease. Does not wait for other writes."""

    def record_claim(self, person: str, key: str, *, at: datetime) -> AbstractContextManager[None]:
        """A block whose writes belong to the request that claimed the key.

        Once another process has taken over the claim, a write there is rolled back and raises LockLost.
        """

    def count_commits(self) -> AbstractContextManager[Commits]:
        """A block that counts the transactions with which it, and the tasks it starts, write."""

    async def finish(self, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
        """Keep the answer; with None give the key back, unless something was stored."""

    async def forget(self, before: datetime) -> int:
        """Delete what is older; how many."""

    async def give_back(self) -> int:
        """Free the claims that are no longer renewed because their process ended; return how many.

        Claims with stored writes are kept as such.
        """


@dataclass(frozen=True, slots=True)
class RateCount:
    """Whether the requested amount was left, and the number of seconds until the next minute."""

    granted: bool
    seconds: float


class RateCounters(Protocol):
    """The counts of a store; the minutes are those of its clock."""

    async def take(self, name: str, count: int, *, maximum: int) -> RateCount:
        """Take so much of what a name may have this minute: all of it, or nothing."""
