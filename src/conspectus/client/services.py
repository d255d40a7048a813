"""The services of a remote engine that have few methods of their own."""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Final

from conspectus.client.collections import in_collection, present
from conspectus.client.encode import encoded, instant_json
from conspectus.client.operations import derived
from conspectus.client.request import Request, ask, get, path_of, work
from conspectus.client.subscriptions import live, read_event
from conspectus.client.transport import RemoteService
from conspectus.engine.alerts import AlertService
from conspectus.engine.connections import ConnectionService
from conspectus.engine.files import FileService
from conspectus.engine.graph import GraphService
from conspectus.engine.jobs import JobService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.engine.people import PeopleService
from conspectus.engine.search import RERANKED, SearchService
from conspectus.errors import InvalidInput
from conspectus.model.graph import GraphForm
from conspectus.model.jobs import FINISHED, Job, Upload
from conspectus.model.reports import Status
from conspectus.model.results import ContextWindow, Feedback, Hit, Reranking
from conspectus.model.streams import AlertEvent
from conspectus.ports import Progress


@derived
class RemoteSearch(RemoteService, SearchService):
    """Search on a server."""

    async def rerank(self, query: str, hits: Sequence[Hit], *, limit: int = RERANKED) -> Reranking:
        given = {hit.chunk.id: hit for hit in hits}
        body = {"query": query, "chunks": list(given), "limit": limit}
        answer = await self._channel.one(Reranking, ask("/rerank", encoded(body)))
        judged = [replace(each, hit=given[each.hit.chunk.id]) for each in answer.results]
        return replace(answer, results=tuple(judged))

    async def feedback(
        self, window: ContextWindow, *, used: Sequence[int] = (), wrong: Sequence[int] = ()
    ) -> Sequence[Feedback]:
        return await SearchService.feedback(self, window, used=used, wrong=wrong)


ALERT: Final = "alert"
"""The name of the server-sent event of an alert match."""


@derived
class RemoteAlerts(RemoteService, AlertService):
    """Alerts of a server."""

    async def subscribe(
        self, *, alert: str | None = None, after: int | None = None
    ) -> AsyncGenerator[AlertEvent, None]:
        query = {} if alert is None else {"alert": alert}
        async with aclosing(live(self._channel, "/alerts/stream", query, after=after)) as events:
            async for event in events:
                if event.name == ALERT:
                    yield read_event(self._channel, AlertEvent, event)


LOOKING: Final = "looking for names"


@derived
class RemoteGraph(RemoteService, GraphService):
    """Graphs of a server."""

    async def export(
        self,
        format: GraphForm = "json",
        *,
        graph: str = "default",
        collection: str = "default",
        at: datetime | None = None,
    ) -> str:
        path = path_of("graphs", ("graph", graph), "export")
        request = get(path, format=format, collection=collection, at=instant_json(at))
        return b"".join([piece async for piece in self._channel.pieces(request)]).decode("utf-8")

    async def wait_until_extracted(
        self, *, collection: str = "default", progress: Progress | None = None
    ) -> int:
        if progress is not None:
            progress(LOOKING, 0, 0)
        return await self._channel.member(int, "read", work(in_collection(collection, "entities", "wait")))


POLL_SECONDS: Final = 20.0
"""Maximum seconds of one request that waits for a job to end."""


@derived
class RemoteJobs(RemoteService, JobService):
    """Jobs of a server. Raises NotFound for a job that is not visible."""

    async def ingest_files(
        self, files: Sequence[Upload], *, collection: str = "default", source: str = "uploads"
    ) -> Job:
        if not files:
            raise InvalidInput("files", "must be at least one")
        path = in_collection(collection, "ingest", "files")
        request = Request("POST", path, present(source=source), uploads=files, writes=True, unhurried=True)
        return await self._channel.one(Job, request)

    async def get(self, job: str) -> Job:
        return await self._channel.one(Job, get(path_of("jobs", ("job", job))))

    async def wait(self, job: str, *, timeout: float | None = None) -> Job:
        path = path_of("jobs", ("job", job))
        give_up = None if timeout is None else time.monotonic() + timeout
        while True:
            left = POLL_SECONDS if give_up is None else max(0.0, give_up - time.monotonic())
            found = await self._channel.one(Job, get(path, wait=min(left, POLL_SECONDS)))
            if found.state in FINISHED or (give_up is not None and time.monotonic() >= give_up):
                return found


@derived
class RemotePeople(RemoteService, PeopleService):
    """Users, groups, API keys and grants of a server."""


@derived
class RemoteConnections(RemoteService, ConnectionService):
    """Connections of a server."""


@derived
class RemoteFiles(RemoteService, FileService):
    """Documents of a server as files."""


@derived
class RemoteMaintenance(RemoteService, MaintenanceService):
    """Maintenance of a server."""

    async def status(self, *, collection: str | None = None) -> Status:
        path = "/status" if collection is None else in_collection(collection, "status")
        return await self._channel.one(Status, get(path))

    async def reindex(self, *, collection: str = "default", progress: Progress | None = None) -> None:
        await self._channel.answer(work(in_collection(collection, "reindex")))
