"""The ports of long work in memory: what every adapter of them must agree with."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from conspectus.errors import Conflict, InvalidInput, LockLost, NotFound, WriteOutcomeUnknown
from conspectus.model.connections import Connection
from conspectus.model.ids import CollectionId, JobId
from conspectus.model.jobs import (
    FINISHED,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobPage,
    JobRates,
    JobState,
    RequestTotals,
)
from conspectus.ports.jobs import Commits, JobPlace, JobScope

SPANS = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}


class MemoryLedger:
    """The `Ledger` port."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, Job] = {}
        self._connections: dict[str, Connection] = {}
        self._credentials: dict[str, str] = {}

    async def add(self, job: Job) -> Job:
        """Store it, or return the stored one of that id."""
        return self._jobs.setdefault(job.id, job)

    async def job(self, job: JobId) -> Job | None:
        """The job of that id."""
        return self._jobs.get(job)

    async def change(
        self, job: JobId, *, unless: Sequence[JobState] = (), attempt: int | None = None, **fields: Any
    ) -> Job:
        """Change fields of a job, unless it is in one of these states. Raises NotFound or LockLost."""
        if unknown := fields.keys() - Job.__dataclass_fields__.keys():
            raise InvalidInput(min(unknown), "is not a field of a job")
        if job not in self._jobs:
            raise NotFound("job", job)
        if self._jobs[job].state not in unless:
            if attempt not in {None, self._jobs[job].attempts}:
                raise LockLost(f"job {job}")
            self._jobs[job] = replace(self._jobs[job], **fields)
        return self._jobs[job]

    async def jobs(self, scope: JobScope, *, after: str | None = None, limit: int = 100) -> JobPage:
        """Jobs in scope, newest first. Raises InvalidInput."""
        if not 1 <= limit <= 100:
            raise InvalidInput("limit", "must be from 1 to 100")
        jobs_in_scope = sorted(self._within(scope), key=lambda job: (job.created, job.id), reverse=True)
        if after is not None:
            places = [job.id for job in jobs_in_scope]
            if after not in places:
                raise InvalidInput("after", "is not a cursor; pass the `next` of the page before")
            jobs_in_scope = jobs_in_scope[places.index(JobId(after)) + 1 :]
        return JobPage(
            tuple(jobs_in_scope[:limit]), jobs_in_scope[limit - 1].id if len(jobs_in_scope) > limit else None
        )

    async def report(self, scope: JobScope, *, now: datetime) -> IngestReport:
        """Numbers over the jobs in scope."""
        jobs_in_scope = self._within(scope)
        week = [
            job for job in jobs_in_scope if _ended_since(job, now - SPANS["7d"]) and job.source is not None
        ]
        by_source = groupby(sorted(week, key=lambda job: str(job.source)), key=lambda job: job.source)
        return IngestReport(
            states=dict(Counter(job.state for job in jobs_in_scope)),
            partial=sum(job.outcome == "partial" for job in jobs_in_scope),
            rates={
                name: _rates([job for job in jobs_in_scope if _ended_since(job, now - span)])
                for name, span in SPANS.items()
            },
            sources={source: _rates(list(jobs)) for source, jobs in by_source if source is not None},
        )

    async def put_connection(self, connection: Connection, *, sealed: str | None = None) -> Connection:
        """Store it, or change the stored one of that id. Raises Conflict if its name is taken."""
        for stored in self._connections.values():
            same = (stored.collection, stored.name) == (connection.collection, connection.name)
            if same and stored.id != connection.id:
                raise Conflict("connection", connection.name, "exists already")
        self._connections[connection.id] = connection
        if sealed is not None:
            self._credentials[connection.id] = sealed
        return connection

    async def put_credentials(self, connection: str, sealed: str | None, *, replaced: str | None) -> bool:
        """Replace sealed credentials; whether these were the ones to be `replaced`."""
        if connection not in self._connections or self._credentials.get(connection) != replaced:
            return False
        self._credentials.pop(connection, None)
        if sealed is not None:
            self._credentials[connection] = sealed
        return True

    async def credentials(self, connection: str) -> str | None:
        """The sealed credentials of a connection."""
        return self._credentials.get(connection)

    async def connections(self, collection: CollectionId) -> Sequence[Connection]:
        """The connections of a collection, by name."""
        connections = [
            replace(connection, has_credentials=connection.id in self._credentials)
            for connection in self._connections.values()
            if connection.collection == collection
        ]
        return sorted(connections, key=lambda connection: connection.name)

    async def delete_connection(self, connection: str) -> bool:
        """Forget a connection; whether there was one."""
        self._credentials.pop(connection, None)
        return self._connections.pop(connection, None) is not None

    def _within(self, scope: JobScope) -> list[Job]:
        return [job for job in self._jobs.values() if _in_scope(job, scope)]


class MemoryRequestLog:
    """The `RequestLog` port."""

    def __init__(self) -> None:
        self._requests: list[EmbeddingRequest] = []

    async def add(self, requests: Sequence[EmbeddingRequest]) -> None:
        """Store them; their ids are given here."""
        for request in requests:
            self._requests.append(replace(request, id=len(self._requests) + 1))

    async def page(self, *, after: int | None = None, limit: int = 100) -> Sequence[EmbeddingRequest]:
        """Requests, newest first, older than the id `after`. Raises InvalidInput."""
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        older = [request for request in reversed(self._requests) if after is None or request.id < after]
        return older[:limit]

    async def totals(self, since: datetime) -> Sequence[RequestTotals]:
        """Sums by kind and model since an instant."""
        recent = [request for request in self._requests if request.created >= since]
        ordered = sorted(recent, key=lambda request: (request.kind, request.model))
        return [
            _totals(list(same))
            for _, same in groupby(ordered, key=lambda request: (request.kind, request.model))
        ]


@dataclass(slots=True)
class _Claim:
    """What is known of a request with a key."""

    fingerprint: str
    at: datetime
    owner: "MemoryReplays"
    answer: Mapping[str, Any] | None = None
    stored: bool = False
    over: bool = False


class MemoryReplays:
    """The `Replays` port. `store` stands for whatever requests store.

    With `beside` it is another process on the same claims, whose own end at once.
    """

    def __init__(self, beside: "MemoryReplays | None" = None) -> None:
        self.renewal_seconds = 1.0
        self._claims: dict[tuple[str, str], _Claim] = {} if beside is None else beside._claims
        self._own: dict[tuple[str, str], _Claim] = {}
        self._watched: ContextVar[Commits | None] = ContextVar("watched", default=None)
        self._ends_at_once = beside is not None
        self._noted: ContextVar[_Claim | None] = ContextVar("noted", default=None)

    async def begin(
        self, person: str, key: str, fingerprint: str, *, at: datetime
    ) -> Mapping[str, Any] | None:
        """Claim a key (None), or return the answer kept for it. Raises Conflict, WriteOutcomeUnknown."""
        stored = self._claims.get((person, key))
        if stored is not None and stored.owner._ends_at_once and not stored.over:
            self._end(person, key, None)
            stored = self._claims.get((person, key))
        if stored is None:
            self._own[person, key] = self._claims[person, key] = _Claim(fingerprint, at, self)
            return None
        if stored.fingerprint != fingerprint:
            raise Conflict("idempotency key", key, "was used for another request")
        if stored.over and stored.answer is None:
            raise WriteOutcomeUnknown("something of this request was stored")
        if stored.answer is None:
            raise Conflict("idempotency key", key, "belongs to a request that is still being answered")
        return stored.answer

    async def renew(self) -> None:
        """Nothing: claims end at once or never."""

    @contextmanager
    def record_claim(self, person: str, key: str, *, at: datetime) -> Iterator[None]:
        """A block in which whatever is stored counts as stored for the request that claimed the key then."""
        claim = self._own.get((person, key))
        token = self._noted.set(claim if claim is not None and claim.at == at else None)
        try:
            yield
        finally:
            self._noted.reset(token)

    @contextmanager
    def count_commits(self) -> Iterator[Commits]:
        """A block that counts how often it stores."""
        token = self._watched.set(Commits())
        try:
            yield self._watched.get() or Commits()
        finally:
            self._watched.reset(token)

    async def store(self) -> None:
        """Store something. Raises LockLost where another process took the claim over."""
        claim = self._noted.get()
        if claim is not None:
            if not claim.over and not any(claim is current for current in self._claims.values()):
                raise LockLost("an idempotency key")
            claim.stored = True
        if (commits := self._watched.get()) is not None:
            commits.possible += 1

    async def finish(self, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
        """Keep the answer; with None give the key back, unless something was stored."""
        claim = self._claims.get((person, key))
        if claim is not None and claim.owner is self:
            claim.over = True
            self._end(person, key, answer)

    def _end(self, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
        claim = self._claims[person, key]
        claim.answer = answer
        if answer is None and claim.stored:
            claim.over = True
        elif answer is None:
            del self._claims[person, key]

    async def forget(self, before: datetime) -> int:
        """Delete what is older; how many."""
        old = [name for name, claim in self._claims.items() if claim.at < before]
        for name in old:
            del self._claims[name]
        return len(old)

    async def give_back(self) -> int:
        """Free the claims that nobody renews any more; how many."""
        open_claims = [name for name, claim in self._claims.items() if not claim.over]
        ended = [name for name in open_claims if self._claims[name].owner._ends_at_once]
        for name in ended:
            self._end(*name, None)
        return sum(name not in self._claims for name in ended)


def _in_scope(job: Job, scope: JobScope) -> bool:
    placed = scope.places is None or any(_at(job, job_place) for job_place in scope.places)
    ended = scope.outcome in {None, job.outcome}
    return placed and ended and (scope.states is None or job.state in scope.states)


def _at(job: Job, job_place: JobPlace) -> bool:
    if job.collection != job_place.collection:
        return False
    if job_place.sources is None and job_place.owner is None:
        return True
    return job.owner == job_place.owner or (
        job.source is not None and job.source in (job_place.sources or ())
    )


def _ended_since(job: Job, since: datetime) -> bool:
    return job.state in FINISHED and job.finished is not None and job.finished >= since


def _rates(jobs: Sequence[Job]) -> JobRates:
    failed = sum(job.state == "failed" for job in jobs)
    return JobRates(len(jobs), failed, sum(job.attempts > 1 for job in jobs))


def _totals(requests: Sequence[EmbeddingRequest]) -> RequestTotals:
    return RequestTotals(
        kind=requests[0].kind,
        model=requests[0].model,
        requests=len(requests),
        errors=sum(request.status == "error" for request in requests),
        inputs=sum(request.inputs for request in requests),
        tokens=sum(request.tokens for request in requests),
        mean_latency=sum(request.latency for request in requests) / len(requests),
    )
