"""The ports of long work: who keeps its rows, who runs it, and who logs calls to providers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from conspectus.model.ids import CollectionId, JobId, SourceId
from conspectus.model.jobs import EmbeddingRequest, IngestReport, Job, JobPage, JobState, RequestTotals
from conspectus.model.wiki import Connection


@dataclass(frozen=True, slots=True)
class JobScope:
    """Which jobs: of one collection (None: of all), of these sources only (None: of any), in these states."""

    collection: CollectionId | None = None
    sources: tuple[SourceId, ...] | None = None
    states: tuple[JobState, ...] | None = None


class Ledger(Protocol):
    """The rows of jobs and of syncs; every method is one transaction."""

    async def add(self, job: Job) -> Job:
        """Store it, or return the stored one of that id."""
        ...

    async def job(self, job: JobId) -> Job | None:
        """The job of that id."""
        ...

    async def change(self, job: JobId, *, unless: Sequence[JobState] = (), **fields: Any) -> Job:
        """Change fields of a job, unless it is in one of these states, and return it as it is then.

        Raises NotFound.
        """
        ...

    async def jobs(self, scope: JobScope, *, after: str | None = None, limit: int = 100) -> JobPage:
        """Jobs in scope, newest first. Raises InvalidInput for a cursor that is none."""
        ...

    async def report(self, scope: JobScope, *, now: datetime) -> IngestReport:
        """Numbers over the jobs in scope."""
        ...

    async def put_connection(self, connection: Connection) -> Connection:
        """Store it, or change the stored one of that id."""
        ...

    async def connections(self, collection: CollectionId) -> Sequence[Connection]:
        """The connections of a collection, by name."""
        ...

    async def delete_connection(self, connection: str) -> bool:
        """Forget a connection; whether there was one."""
        ...


Run: TypeAlias = Callable[[JobId], Awaitable[None]]
"""Does a job's work from where it stands, and leaves its end in the ledger; raises only to be run again."""


class Jobs(Protocol):
    """Durable execution: what was submitted is run to its end exactly once, whatever is killed meanwhile."""

    async def start(self, run: Run) -> None:
        """Begin to run what is submitted, now and earlier. Called once."""
        ...

    async def submit(self, job: JobId) -> None:
        """Have a job run; when this returns it will be, even if the process dies. Twice is as once."""
        ...

    async def cancel(self, job: JobId) -> None:
        """Stop a job that waits or runs; one that is finished stays so."""
        ...

    async def close(self, *, grace: float) -> None:
        """Let running jobs finish for up to `grace` seconds; the others run again at the next start."""
        ...


class RequestLog(Protocol):
    """The log of calls to model providers."""

    async def add(self, requests: Sequence[EmbeddingRequest]) -> None:
        """Store them."""
        ...

    async def page(self, *, after: int | None = None, limit: int = 100) -> Sequence[EmbeddingRequest]:
        """Requests, newest first, older than the id `after`."""
        ...

    async def totals(self, since: datetime) -> Sequence[RequestTotals]:
        """Sums by kind and model since an instant."""
        ...


class Replays(Protocol):
    """Answers kept for a while, so that a write that is sent twice with the same key is done once."""

    async def begin(
        self, person: str, key: str, fingerprint: str, *, at: datetime
    ) -> Mapping[str, Any] | None:
        """Claim a key (None), or the answer that was kept for it.

        Raises Conflict if the key was used for another request, or if its first request is still running.
        """
        ...

    async def finish(self, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
        """Keep the answer, or with None give the key back."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete what is older; how many."""
        ...
