"""The engine on a server: its services, as far as they are not derived, and the connection to it."""

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from itertools import islice
from operator import add
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Final, Unpack

import httpx

from conspectus import bootstrap
from conspectus.client.chat import RemoteChat
from conspectus.client.collections import RemoteCollections, in_collection, present
from conspectus.client.documents import RemoteDocuments
from conspectus.client.event_stream import live, read_event
from conspectus.client.operations import derived, request_for
from conspectus.client.request import Request, ask, encoded, get, instant_json, path_of, work
from conspectus.client.transport import RemoteService, Transport, TransportLimits
from conspectus.engine.alerts import AlertService
from conspectus.engine.channels import ChannelService
from conspectus.engine.context import delegate_to
from conspectus.engine.documents import DocumentService
from conspectus.engine.events import EventService
from conspectus.engine.files import FileService
from conspectus.engine.graph import GraphService
from conspectus.engine.jobs import ConnectionService, JobService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.engine.memory import MemoryService
from conspectus.engine.people import PeopleService
from conspectus.engine.retention import RetentionService
from conspectus.engine.search import RERANKED, SearchService
from conspectus.engine.streams import StreamService
from conspectus.engine.summaries import SummaryService
from conspectus.engine.tasks import TaskService
from conspectus.errors import InvalidInput
from conspectus.ingest.captions import CaptionImportOptions
from conspectus.ingest.messages import MessageImportOptions, handed_in, named, take_in
from conspectus.ingest.prepare import batches
from conspectus.memory.jsonl import renumber
from conspectus.model.channels import ArchiveKind, ChannelArchive, ImportReport, NewMessage
from conspectus.model.files import expanded
from conspectus.model.graph import GraphForm
from conspectus.model.jobs import FINISHED, Job, Upload
from conspectus.model.memory import MEMORY, MemoryWritten, NewMemory, Scope
from conspectus.model.pages import portions
from conspectus.model.records import Json, Written
from conspectus.model.reports import Status
from conspectus.model.results import ContextWindow, Feedback, Hit, Reranking
from conspectus.model.streams import AlertEvent, CaptionImport, LiveCaption, NewCaption, NewEvent
from conspectus.model.trust import MinTrust, Origin
from conspectus.model.validation import checked_arguments
from conspectus.ports import Archives, CountTokens, Files, Progress
from conspectus.settings import Settings
from conspectus.text.clean import clean


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
        min_trust: MinTrust | None = None,
    ) -> str:
        path = path_of("graphs", ("graph", graph), "export")
        fields = {"collection": collection, "at": instant_json(at), "min_trust": min_trust}
        request = get(path, format=format, **fields)
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


MAX_LINES: Final = 500
MAX_CHARACTERS: Final = 1_000_000
"""Maximum number of lines, and their approximate total characters, per request."""


@derived
class RemoteMemory(RemoteService, MemoryService):
    """Memories on a server."""

    async def add(
        self,
        memories: str | NewMemory | Iterable[str | NewMemory],
        *,
        scope: Scope,
        collection: str = MEMORY,
        wait: bool = False,
        progress: Progress | None = None,
    ) -> Sequence[MemoryWritten]:
        given = [memories] if isinstance(memories, str | NewMemory) else memories
        where = {"scope": scope, "collection": collection, "wait": False}
        sent = batches(NewMemory(each) if isinstance(each, str) else each for each in given)
        requests = (request_for(MemoryService.add, memories=batch, **where) for batch in sent)
        done = await self._in_batches(MemoryWritten, requests, "remembering", progress)
        if not done:
            await self._channel.answer(request_for(MemoryService.add, memories=(), **where))
        if wait:
            await self._sibling(RemoteDocuments).wait_until_embedded(collection=collection, progress=progress)
        return done

    async def import_lines(
        self,
        lines: str | Iterable[str],
        *,
        collection: str = MEMORY,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> Sequence[MemoryWritten]:
        where = {"collection": collection, "scope": scope}
        done: list[MemoryWritten] = []
        before = 0
        given = lines.split("\n") if isinstance(lines, str) else lines
        for batch in portions(given, len, most=MAX_LINES, room=MAX_CHARACTERS):
            request = request_for(MemoryService.import_lines, lines=batch, **where)
            try:
                done += await self._channel.several(MemoryWritten, request)
            except InvalidInput as fault:
                renumber(fault, partial(add, before))
                raise
            before += len(batch)
            if progress is not None:
                progress("importing", len(done), 0)
        return done


@derived
class RemoteRetention(RemoteService, RetentionService):
    """Retention rules of a server."""


@derived
class RemoteChannels(RemoteService, ChannelService):
    """Channels of a server."""

    async def add_messages(
        self,
        messages: NewMessage | Iterable[NewMessage],
        *,
        channel: str,
        collection: str = "default",
        **options: Unpack[MessageImportOptions],
    ) -> list[Written]:
        given = [messages] if isinstance(messages, NewMessage) else messages
        progress = options.get("progress")
        target = await self._sibling(RemoteCollections).get_or_create_source(
            channel, collection=collection, kind="channel"
        )
        where = {"channel": target.id, "collection": target.collection, "link": options.get("link", True)}
        requests = (
            request_for(ChannelService.add_messages, messages=batch, **where) for batch in batches(given)
        )
        written = await self._in_batches(Written, requests, "writing", progress)
        if options.get("wait", False):
            await self._sibling(RemoteDocuments).wait_until_embedded(
                collection=target.collection, progress=progress
            )
        return written

    async def import_archive(
        self,
        archive: str | Path | Upload,
        *,
        kind: ArchiveKind | None = None,
        collection: str = "default",
        **options: Unpack[MessageImportOptions],
    ) -> ImportReport:
        found = await self._sibling(RemoteCollections).get_or_create(collection)
        with TemporaryDirectory() as folder:
            path = handed_in(archive, Path(folder)) if isinstance(archive, Upload) else Path(archive)
            with named(archive):
                read = await asyncio.to_thread(self._archives.read, expanded(path), kind=kind)

        async def put(channel: ChannelArchive, messages: Iterable[NewMessage]) -> Sequence[Written]:
            target = await self._sibling(RemoteCollections).get_or_create_source(
                channel.name, collection=found.id, metadata=channel.metadata or None, kind="channel"
            )
            return await self.add_messages(
                messages,
                channel=target.id,
                collection=found.id,
                link=options.get("link", True),
                progress=options.get("progress"),
            )

        report = await take_in(read, put, options.get("progress"))
        if options.get("wait", False):
            await self._sibling(RemoteDocuments).wait_until_embedded(
                collection=found.id, progress=options.get("progress")
            )
        return report


CAPTION: Final = "caption"
BATCH: Final = 500
"""Number of events per request."""


@derived
class RemoteStreams(RemoteService, StreamService):
    """Streams of a server."""

    async def add_captions(
        self,
        captions: NewCaption | Iterable[NewCaption],
        *,
        stream: str,
        collection: str = "default",
        replace: bool = False,
        wait: bool = False,
        progress: Progress | None = None,
    ) -> Sequence[Written]:
        given = [captions] if isinstance(captions, NewCaption) else captions
        where = {"stream": stream, "collection": collection, "replace": replace}
        requests = (
            request_for(StreamService.add_captions, captions=batch, **where) for batch in batches(given)
        )
        written = await self._in_batches(Written, requests, "writing", progress)
        if wait:
            await self._sibling(RemoteDocuments).wait_until_embedded(collection=collection, progress=progress)
        return written

    async def import_captions(
        self,
        files: Sequence[str | Path | Upload],
        *,
        stream: str | None = None,
        collection: str = "default",
        **options: Unpack[CaptionImportOptions],
    ) -> CaptionImport:
        given, inside = await asyncio.to_thread(self._uploads, files)
        progress = options.get("progress")
        form: dict[str, Json] = {"collection": clean(collection)}
        form |= {name: str(options.get(name, True)).lower() for name in ("sentences", "replace")}
        form |= {} if stream is None else {"stream": clean(stream)}
        reports = []
        for number, each in enumerate(given):
            if progress is not None:
                progress(f"sending {each.name}", number, len(given))
            skips = options.get("skip_unsupported", False) or number in inside
            parameters = {**form, "skip_unsupported": str(skips).lower()}
            request = Request(
                "POST", "/streams/import", parameters, uploads=[each], writes=True, unhurried=True
            )
            reports.append(await self._channel.one(CaptionImport, request))
        if options.get("wait", False) and any(each.streams for each in reports):
            await self._sibling(RemoteDocuments).wait_until_embedded(collection=collection, progress=progress)
        return _together(reports)

    async def subscribe(
        self, *, stream: str, collection: str = "default", after: int | None = None
    ) -> AsyncGenerator[LiveCaption, None]:
        path, query = path_of("streams", ("stream", stream), "stream"), {"collection": clean(collection)}
        async with aclosing(live(self._channel, path, query, after=after)) as events:
            async for event in events:
                if event.name == CAPTION:
                    yield read_event(self._channel, LiveCaption, event)

    def _uploads(self, files: Sequence[str | Path | Upload]) -> tuple[Sequence[Upload], set[int]]:
        """Return all files with their names for the server, and the paths of those found in a folder.

        A server knows a file by the last part of its name. Files with equal last parts get their whole path.
        """
        found: list[Upload] = []
        inside: set[int] = set()
        for each in files:
            if isinstance(each, Upload):
                found.append(each)
                continue
            for one in self._files.discover([expanded(each)]):
                inside |= set() if one.is_named else {len(found)}
                found.append(Upload(one.name, one.path))
        often = Counter(PurePath(each.name).name for each in found)
        named = [
            replace(each, name=each.name.replace("/", " - ")) if often[PurePath(each.name).name] > 1 else each
            for each in found
        ]
        return named, inside


def _together(reports: Iterable[CaptionImport]) -> CaptionImport:
    """Combine the reports of all files."""
    streams: Counter[str] = Counter()
    total = CaptionImport({}, 0, 0, 0)
    for each in reports:
        streams.update(each.streams)
        names = ("added", "replaced", "unchanged", "failures", "notices", "skipped")
        total = replace(total, **{name: getattr(total, name) + getattr(each, name) for name in names})
    return replace(total, streams=dict(streams))


@derived
class RemoteEvents(RemoteService, EventService):
    """Events of streams of a server."""

    async def add(
        self, events: NewEvent | Iterable[NewEvent], *, stream: str, collection: str = "default"
    ) -> Sequence[Written]:
        given = iter([events] if isinstance(events, NewEvent) else events)
        requests = (
            request_for(EventService.add, events=batch, stream=stream, collection=collection)
            for batch in iter(lambda: list(islice(given, BATCH)), [])
        )
        return await self._in_batches(Written, requests, "writing")


@derived
class RemoteSummaries(RemoteService, SummaryService):
    """Summaries of streams of a server."""


class RemoteEngine:
    """The services of Engine on a server. Opened with `conspectus.connect`; safe to use from many tasks.

    Results and errors are those of Engine. Raises PermissionDenied if the key does not permit an operation,
    and ServerUnavailable if the server cannot be reached.
    """

    def __init__(self, channel: Transport, files: Files, archives: Archives) -> None:
        given = self._given = (channel, files, archives)
        self.collections = RemoteCollections(*given)
        self.documents = RemoteDocuments(*given)
        self.search = RemoteSearch(*given)
        self.channels = RemoteChannels(*given)
        self.chat = RemoteChat(*given)
        self.tasks = TaskService(self)
        self.streams = RemoteStreams(*given)
        self.events = RemoteEvents(*given)
        self.summaries = RemoteSummaries(*given)
        self.alerts = RemoteAlerts(*given)
        self.memory = RemoteMemory(*given)
        self.retention = RemoteRetention(*given)
        self.graph = RemoteGraph(*given)
        self.people = RemotePeople(*given)
        self.jobs = RemoteJobs(*given)
        self.connections = RemoteConnections(*given)
        self.files = RemoteFiles(*given)
        self.maintenance = RemoteMaintenance(*given)

    add = delegate_to("documents", DocumentService.add)
    retrieve = delegate_to("search", SearchService.retrieve)
    window = delegate_to("search", SearchService.window)
    explain = delegate_to("search", SearchService.explain)

    def with_origin(self, origin: Origin) -> "RemoteEngine":
        """Return an engine whose writes have at most the level of texts of an origin, as `agent`."""
        channel, files, archives = self._given
        return RemoteEngine(channel.with_origin(origin), files, archives)

    def tokenizer(self, name: str = "o200k_base") -> CountTokens:
        """Return the local function that counts tokens with a tokenizer. Raises UnknownTokenizer."""
        return bootstrap.local_counter(name)


@asynccontextmanager
@checked_arguments
async def open(
    url: str | None = None, *, api_key: str | None = None, settings: Settings | None = None
) -> AsyncIterator[RemoteEngine]:
    """Use the server at `url` with an API key, and disconnect at the end of the block.

    Defaults come from the settings and the environment (CONSPECTUS_URL and CONSPECTUS_API_KEY). No request is
    sent yet. Raises InvalidInput for an invalid address or key.
    """
    chosen = Settings.from_environment() if settings is None else settings
    address = checked(url or chosen.url)
    limits = TransportLimits(seconds=chosen.client_timeout_seconds, answer_bytes=chosen.max_response_bytes)
    headers = authorization(chosen.api_key if api_key is None else api_key)
    hooks = {"request": [_traced(current)] if (current := bootstrap.start_telemetry(chosen)) else []}
    async with httpx.AsyncClient(
        headers=headers, timeout=chosen.client_timeout_seconds, verify=_trusted(), event_hooks=hooks
    ) as http:
        channel = Transport(http, address, limits)
        yield RemoteEngine(channel, bootstrap.local_files(chosen), bootstrap.local_archives(chosen))


def _traced(current: Callable[[], dict[str, str]]) -> Callable[[httpx.Request], Awaitable[None]]:
    """Have a request continue the trace of the caller."""

    async def carry(request: httpx.Request) -> None:
        request.headers.update(current())

    return carry


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificate authorities of this machine, loaded once for all clients."""
    return httpx.create_ssl_context()


def checked(url: str) -> str:
    """Return the base address. Raises InvalidInput."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as fault:
        raise InvalidInput("url", f"{url!r:.200} is not a valid address: {fault}") from fault
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise InvalidInput("url", f"{url!r:.200} does not begin with http:// or https:// and a name")
    if parts.userinfo or parts.query or parts.fragment:
        raise InvalidInput("url", "must be a server and a path only; pass the key as `api_key`")
    return str(parts).rstrip("/")


def authorization(api_key: str) -> dict[str, str]:
    """Return the Authorization header, if there is a key. Raises InvalidInput."""
    if not api_key:
        return {}
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        raise InvalidInput("api_key", "contains characters that are not allowed in a key")
    return {"Authorization": f"Bearer {api_key}"}
