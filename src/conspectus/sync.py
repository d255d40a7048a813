"""The engine for programs without an event loop: the same methods, blocking.

with conspectus.open("notes") as engine:
    engine.add("The meeting moved to Thursday.", wait=True)
    print(engine.window("When is the meeting?", 200).text)

`conspectus.connect("http://localhost:8642")` gives the same on a server; `async with` gives both awaited.
"""

import asyncio
import functools
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.engine.alerts import AlertService
from conspectus.engine.channels import ChannelService
from conspectus.engine.chat import ChatService
from conspectus.engine.collections import CollectionService
from conspectus.engine.connections import ConnectionService
from conspectus.engine.context import short
from conspectus.engine.documents import DocumentService
from conspectus.engine.events import EventService
from conspectus.engine.graph import GraphService
from conspectus.engine.jobs import JobService
from conspectus.engine.maintenance import MaintenanceService
from conspectus.engine.memory import MemoryService
from conspectus.engine.people import PeopleService
from conspectus.engine.retention import RetentionService
from conspectus.engine.search import SearchService
from conspectus.engine.streams import StreamService
from conspectus.engine.summaries import SummaryService
from conspectus.engine.tasks import TaskService
from conspectus.errors import ForkedEngine
from conspectus.ports import CountTokens, Embedder
from conspectus.ports.chat import ChatModel
from conspectus.ports.web import Reranker
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.client import RemoteEngine

P = ParamSpec("P")
S = TypeVar("S")
E = TypeVar("E", bound="Engine | RemoteEngine")
T = TypeVar("T")


class Bridge:
    """The loop of an engine in a thread of its own, for callers that block."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._process = os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's own loop and wait for it; an interrupt cancels it."""
        if os.getpid() != self._process:
            work.close()
            raise ForkedEngine
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def each(self, begin: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
        """What an asynchronous generator gives, one after the other."""
        if os.getpid() != self._process:
            raise ForkedEngine
        told: SimpleQueue[tuple[T] | None] = SimpleQueue()

        async def tell() -> None:
            try:
                async with aclosing(begin()) as events:
                    async for event in events:
                        told.put((event,))
            finally:
                told.put(None)

        future = asyncio.run_coroutine_threadsafe(tell(), self._loop)
        try:
            while (event := told.get()) is not None:
                yield event[0]
            future.result()
        finally:
            future.cancel()


class BlockingService(Generic[S]):
    """A service whose methods return when they are done."""

    def __init__(self, service: S, bridge: Bridge) -> None:
        self._service = service
        self._bridge = bridge


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The same method of a service, which returns when it is done."""

    @functools.wraps(method)
    def call(self: BlockingService[Any], /, *args: P.args, **named: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self._service, method.__name__)(*args, **named)
        return self._bridge.run(work)

    return call


def generating(
    method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Any, P], Generator[T, None, None]]:
    """The same method, giving one thing after the other; closing the iterator ends it."""

    @functools.wraps(method)
    def call(self: BlockingService[Any], /, *args: P.args, **named: P.kwargs) -> Generator[T, None, None]:
        return self._bridge.each(lambda: getattr(self._service, method.__name__)(*args, **named))

    return call


class BlockingCollections(BlockingService[CollectionService]):
    """Collections and their sources."""

    get_or_create = blocking(CollectionService.get_or_create)
    create = blocking(CollectionService.create)
    list = blocking(CollectionService.list)
    get = blocking(CollectionService.get)
    update = blocking(CollectionService.update)
    delete = blocking(CollectionService.delete)
    get_or_create_source = blocking(CollectionService.get_or_create_source)
    list_sources = blocking(CollectionService.list_sources)
    get_source = blocking(CollectionService.get_source)
    update_source = blocking(CollectionService.update_source)
    delete_source = blocking(CollectionService.delete_source)


class BlockingDocuments(BlockingService[DocumentService]):
    """Documents: written, read and deleted."""

    add = blocking(DocumentService.add)
    add_files = blocking(DocumentService.add_files)
    wait_until_embedded = blocking(DocumentService.wait_until_embedded)
    get = blocking(DocumentService.get)
    get_by_key = blocking(DocumentService.get_by_key)
    get_text = blocking(DocumentService.get_text)
    get_texts = blocking(DocumentService.get_texts)
    list_chunks = blocking(DocumentService.list_chunks)
    list = blocking(DocumentService.list)
    count = blocking(DocumentService.count)
    update = blocking(DocumentService.update)
    delete = blocking(DocumentService.delete)
    delete_chunks = blocking(DocumentService.delete_chunks)
    delete_by_filter = blocking(DocumentService.delete_by_filter)


class BlockingSearch(BlockingService[SearchService]):
    """Search: hits, windows, and why."""

    retrieve = blocking(SearchService.retrieve)
    window = blocking(SearchService.window)
    explain = blocking(SearchService.explain)
    get_hits = blocking(SearchService.get_hits)
    rerank = blocking(SearchService.rerank)
    search_and_rerank = blocking(SearchService.search_and_rerank)
    augment = blocking(SearchService.augment)


class BlockingChannels(BlockingService[ChannelService]):
    """Channels: messages, threads and reply chains, and windows for questions in a channel."""

    add_messages = blocking(ChannelService.add_messages)
    list_messages = blocking(ChannelService.list_messages)
    get_reply_chain = blocking(ChannelService.get_reply_chain)
    window = blocking(ChannelService.window)
    import_archive = blocking(ChannelService.import_archive)


class BlockingChat(BlockingService[ChatService]):
    """Chat: answers of a model with what is stored as their context."""

    stream = generating(ChatService.stream)


class BlockingTasks(BlockingService[TaskService]):
    """Tasks and attachments."""

    put = blocking(TaskService.put)
    put_many = blocking(TaskService.put_many)
    get = blocking(TaskService.get)
    list = blocking(TaskService.list)
    update = blocking(TaskService.update)
    delete = blocking(TaskService.delete)
    attach = blocking(TaskService.attach)
    detach = blocking(TaskService.detach)
    attachment = blocking(TaskService.attachment)
    attachments = blocking(TaskService.attachments)
    search = blocking(TaskService.search)
    build_context = blocking(TaskService.build_context)

    def using(
        self, *, collection: str = "tasks", source: str = "tasks", tokenizer: str = "o200k_base"
    ) -> "BlockingTasks":
        """The tasks of another source, or counted with another tokenizer."""
        other = self._service.using(collection=collection, source=source, tokenizer=tokenizer)
        return BlockingTasks(other, self._bridge)


class BlockingStreams(BlockingService[StreamService]):
    """Streams: captions by time, moments that answer a question, and new captions as they come."""

    put = blocking(StreamService.put)
    list = blocking(StreamService.list)
    get = blocking(StreamService.get)
    delete = blocking(StreamService.delete)
    add_captions = blocking(StreamService.add_captions)
    list_captions = blocking(StreamService.list_captions)
    delete_captions = blocking(StreamService.delete_captions)
    import_captions = blocking(StreamService.import_captions)
    search = blocking(StreamService.search)
    window = blocking(StreamService.window)
    subscribe = generating(StreamService.subscribe)
    last_sequence = blocking(StreamService.last_sequence)


class BlockingEvents(BlockingService[EventService]):
    """Events of streams, and the people and things in them."""

    add = blocking(EventService.add)
    list = blocking(EventService.list)
    count_entities = blocking(EventService.count_entities)
    entity_timeline = blocking(EventService.entity_timeline)


class BlockingSummaries(BlockingService[SummaryService]):
    """Summaries of streams and of parts of them."""

    summarize = blocking(SummaryService.summarize)
    get = blocking(SummaryService.get)
    start_job = blocking(SummaryService.start_job)
    set_live = blocking(SummaryService.set_live)
    stop_live = blocking(SummaryService.stop_live)


class BlockingAlerts(BlockingService[AlertService]):
    """Alerts: saved queries that every new caption is matched with."""

    put = blocking(AlertService.put)
    list = blocking(AlertService.list)
    get = blocking(AlertService.get)
    delete = blocking(AlertService.delete)
    list_matches = blocking(AlertService.list_matches)
    subscribe = generating(AlertService.subscribe)
    last_match = blocking(AlertService.last_match)
    start = blocking(AlertService.start)


class BlockingMemory(BlockingService[MemoryService]):
    """Memories of users, agents and conversations."""

    add = blocking(MemoryService.add)
    update = blocking(MemoryService.update)
    get = blocking(MemoryService.get)
    list_versions = blocking(MemoryService.list_versions)
    list = blocking(MemoryService.list)
    count = blocking(MemoryService.count)
    list_recent = blocking(MemoryService.list_recent)
    recall = blocking(MemoryService.recall)
    window = blocking(MemoryService.window)
    forget = blocking(MemoryService.forget)
    list_conversations = blocking(MemoryService.list_conversations)
    stats = blocking(MemoryService.stats)
    export = blocking(MemoryService.export)
    import_lines = blocking(MemoryService.import_lines)


class BlockingRetention(BlockingService[RetentionService]):
    """Rules that delete old memories."""

    set = blocking(RetentionService.set)
    delete = blocking(RetentionService.delete)
    list = blocking(RetentionService.list)
    apply = blocking(RetentionService.apply)
    start_job = blocking(RetentionService.start_job)
    start = blocking(RetentionService.start)


class BlockingGraph(BlockingService[GraphService]):
    """Graphs: nodes, edges, traversals, and the entities that passages and texts mention."""

    get_or_create = blocking(GraphService.get_or_create)
    list = blocking(GraphService.list)
    delete = blocking(GraphService.delete)
    add_nodes = blocking(GraphService.add_nodes)
    add_edges = blocking(GraphService.add_edges)
    get_node = blocking(GraphService.get_node)
    list_nodes = blocking(GraphService.list_nodes)
    list_edges = blocking(GraphService.list_edges)
    delete_nodes = blocking(GraphService.delete_nodes)
    delete_edges = blocking(GraphService.delete_edges)
    neighbors = blocking(GraphService.neighbors)
    search_nodes = blocking(GraphService.search_nodes)
    snapshot = blocking(GraphService.snapshot)
    export = blocking(GraphService.export)
    set_entity_extraction = blocking(GraphService.set_entity_extraction)
    wait_until_extracted = blocking(GraphService.wait_until_extracted)
    list_entities = blocking(GraphService.list_entities)
    extract_entities = blocking(GraphService.extract_entities)
    link_entities = blocking(GraphService.link_entities)
    merge_nodes = blocking(GraphService.merge_nodes)
    undo_merge = blocking(GraphService.undo_merge)
    list_merges = blocking(GraphService.list_merges)


class BlockingPeople(BlockingService[PeopleService]):
    """Users, groups, API keys and grants."""

    whoami = blocking(PeopleService.whoami)
    create_user = blocking(PeopleService.create_user)
    list_users = blocking(PeopleService.list_users)
    get_user = blocking(PeopleService.get_user)
    set_user_disabled = blocking(PeopleService.set_user_disabled)
    delete_user = blocking(PeopleService.delete_user)
    create_group = blocking(PeopleService.create_group)
    list_groups = blocking(PeopleService.list_groups)
    delete_group = blocking(PeopleService.delete_group)
    list_members = blocking(PeopleService.list_members)
    add_member = blocking(PeopleService.add_member)
    remove_member = blocking(PeopleService.remove_member)
    create_key = blocking(PeopleService.create_key)
    list_keys = blocking(PeopleService.list_keys)
    revoke_key = blocking(PeopleService.revoke_key)
    rotate_key = blocking(PeopleService.rotate_key)
    authenticate = blocking(PeopleService.authenticate)
    create_owner = blocking(PeopleService.create_owner)
    grant = blocking(PeopleService.grant)
    revoke = blocking(PeopleService.revoke)
    list_grants = blocking(PeopleService.list_grants)


class BlockingJobs(BlockingService[JobService]):
    """Jobs: pages and files that are added in the background, and jobs as they stand."""

    ingest_url = blocking(JobService.ingest_url)
    ingest_files = blocking(JobService.ingest_files)
    get = blocking(JobService.get)
    list = blocking(JobService.list)
    cancel = blocking(JobService.cancel)
    retry = blocking(JobService.retry)
    wait = blocking(JobService.wait)
    report = blocking(JobService.report)
    list_requests = blocking(JobService.list_requests)
    request_totals = blocking(JobService.request_totals)
    start = blocking(JobService.start)


class BlockingConnections(BlockingService[ConnectionService]):
    """Connections of collections with wikis, repositories and folders."""

    create = blocking(ConnectionService.create)
    list = blocking(ConnectionService.list)
    delete = blocking(ConnectionService.delete)
    sync = blocking(ConnectionService.sync)
    watch = blocking(ConnectionService.watch)
    start = blocking(ConnectionService.start)


class BlockingMaintenance(BlockingService[MaintenanceService]):
    """Numbers, checks, and building anew."""

    status = blocking(MaintenanceService.status)
    check = blocking(MaintenanceService.check)
    reindex = blocking(MaintenanceService.reindex)
    reembed = blocking(MaintenanceService.reembed)
    resume = blocking(MaintenanceService.resume)
    finish_purges = blocking(MaintenanceService.finish_purges)


class BlockingEngine:
    """An Engine, here or on a server, whose methods return when they are done.

    It may be used from many threads.
    """

    def __init__(self, engine: "Engine | RemoteEngine", loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._bridge = bridge = Bridge(loop)
        self.collections = BlockingCollections(engine.collections, bridge)
        self.documents = BlockingDocuments(engine.documents, bridge)
        self.search = BlockingSearch(engine.search, bridge)
        self.channels = BlockingChannels(engine.channels, bridge)
        self.chat = BlockingChat(engine.chat, bridge)
        self.tasks = BlockingTasks(engine.tasks, bridge)
        self.streams = BlockingStreams(engine.streams, bridge)
        self.events = BlockingEvents(engine.events, bridge)
        self.summaries = BlockingSummaries(engine.summaries, bridge)
        self.alerts = BlockingAlerts(engine.alerts, bridge)
        self.memory = BlockingMemory(engine.memory, bridge)
        self.retention = BlockingRetention(engine.retention, bridge)
        self.graph = BlockingGraph(engine.graph, bridge)
        self.people = BlockingPeople(engine.people, bridge)
        self.jobs = BlockingJobs(engine.jobs, bridge)
        self.connections = BlockingConnections(engine.connections, bridge)
        self.maintenance = BlockingMaintenance(engine.maintenance, bridge)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's own loop and wait for it; an interrupt cancels it."""
        return self._bridge.run(work)

    @property
    def asynchronous(self) -> "Engine | RemoteEngine":
        """The engine itself, for what is made of several operations and then given to `run`."""
        return self._engine

    def counter(self, tokenizer: str = "o200k_base") -> CountTokens:
        """What counts tokens as that tokenizer does. Raises UnknownTokenizer."""
        return self._engine.counter(tokenizer)

    add = short("documents", BlockingDocuments.add)
    retrieve = short("search", BlockingSearch.retrieve)
    window = short("search", BlockingSearch.window)
    explain = short("search", BlockingSearch.explain)


class Opening(Generic[E]):
    """An engine that is opened by a block: `with` gives it blocking, `async with` as it is."""

    def __init__(self, opened: AbstractAsyncContextManager[E]) -> None:
        self._opened = opened
        self._blocking = _blocking_until_closed(opened)

    def __enter__(self) -> BlockingEngine:
        return self._blocking.__enter__()

    def __exit__(self, *fault: Any) -> bool | None:
        return self._blocking.__exit__(*fault)

    async def __aenter__(self) -> E:
        return await self._opened.__aenter__()

    async def __aexit__(self, *fault: Any) -> bool | None:
        return await self._opened.__aexit__(*fault)


def open(
    path: str | Path | None = None,
    *,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    chat_model: ChatModel | None = None,
) -> Opening[Engine]:
    """Open the store at `path` (made if it does not exist); all is released at the end of the block.

    `path` is a folder, or the `postgresql://` URL of a database that many processes and machines share. What
    is not given comes from the settings, and they from the environment. `embedder` is any object of that
    protocol, used for its own space and for new collections; `reranker` and `chat_model` likewise. Raises
    StorageTooNew, StorageError, or MissingExtra for a model whose library is not installed.
    """
    return Opening(
        bootstrap.open(path, settings=settings, embedder=embedder, reranker=reranker, chat_model=chat_model)
    )


def connect(
    url: str | None = None, *, api_key: str | None = None, settings: Settings | None = None
) -> "Opening[RemoteEngine]":
    """Use the server at `url` with an API key; what is not given comes from the settings.

    Nothing is asked yet. Raises InvalidInput for an address or a key that cannot be one.
    """
    from conspectus import client

    return Opening(client.open(url, api_key=api_key, settings=settings))


@contextmanager
def _blocking_until_closed(
    opened: "AbstractAsyncContextManager[Engine | RemoteEngine]",
) -> Iterator[BlockingEngine]:
    loop, process = asyncio.new_event_loop(), os.getpid()
    thread = threading.Thread(target=loop.run_forever, name="conspectus", daemon=True)
    thread.start()
    try:
        engine = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result()
        try:
            yield BlockingEngine(engine, loop)
        finally:
            # The thread of the loop is not in a forked child, where nothing would ever be done.
            if os.getpid() == process:
                asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result()
    finally:
        if os.getpid() == process:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
