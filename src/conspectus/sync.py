"""The engine for programs without an event loop: the same methods, blocking.

with conspectus.sync.open("notes") as engine:
    engine.add("The meeting moved to Thursday.", wait=True)
    print(engine.window("When is the meeting?", 200).text)

`conspectus.sync.connect("http://localhost:8642")` gives the same engine on a server.
"""

import asyncio
import functools
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Concatenate, ParamSpec, TypeVar

from conspectus import bootstrap, client
from conspectus.engine import Engine
from conspectus.errors import ForkedEngine
from conspectus.model.chat import ChatEvent, ChatRequest
from conspectus.model.streams import AlertEvent, LiveCaption
from conspectus.ports import Embedder
from conspectus.ports.chat import ChatModel
from conspectus.ports.web import Reranker
from conspectus.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


class BlockingEngine:
    """An Engine, here or on a server, whose methods return when they are done.

    It may be used from many threads.
    """

    def __init__(self, engine: Engine | client.RemoteEngine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
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
        except BaseException:
            future.cancel()
            raise

    @property
    def asynchronous(self) -> Engine | client.RemoteEngine:
        """The engine itself, for what is made of several operations and then given to `run`."""
        return self._engine

    def chat(self, request: ChatRequest) -> Generator[ChatEvent, None, None]:
        """The events of an answer as they come, as those of Engine.chat; closing the iterator ends it."""
        return self._each(lambda: self._engine.chat(request))

    def follow_captions(
        self, *, stream: str, collection: str = "default", after: int | None = None
    ) -> Generator[LiveCaption, None, None]:
        """Captions as they are written, as those of Engine.follow_captions; closing the iterator ends it."""
        return self._each(
            lambda: self._engine.follow_captions(stream=stream, collection=collection, after=after)
        )

    def listen(
        self, *, alert: str | None = None, after: int | None = None
    ) -> Generator[AlertEvent, None, None]:
        """What alerts tell, as Engine.listen does; closing the iterator ends it."""
        return self._each(lambda: self._engine.listen(alert=alert, after=after))

    def _each(self, begin: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
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

    @staticmethod
    def _blocking(
        method: Callable[Concatenate[Engine, P], Coroutine[Any, Any, T]],
    ) -> "Callable[Concatenate[BlockingEngine, P], T]":
        @functools.wraps(method)
        def call(self: "BlockingEngine", /, *args: P.args, **kwargs: P.kwargs) -> T:
            work: Coroutine[Any, Any, T] = getattr(self._engine, method.__name__)(*args, **kwargs)
            return self.run(work)

        return call

    collection = _blocking(Engine.collection)
    create_collection = _blocking(Engine.create_collection)
    collections = _blocking(Engine.collections)
    find_collection = _blocking(Engine.find_collection)
    update_collection = _blocking(Engine.update_collection)
    delete_collection = _blocking(Engine.delete_collection)
    source = _blocking(Engine.source)
    sources = _blocking(Engine.sources)
    find_source = _blocking(Engine.find_source)
    update_source = _blocking(Engine.update_source)
    delete_source = _blocking(Engine.delete_source)
    add = _blocking(Engine.add)
    add_files = _blocking(Engine.add_files)
    settle = _blocking(Engine.settle)
    get = _blocking(Engine.get)
    text = _blocking(Engine.text)
    texts = _blocking(Engine.texts)
    chunks = _blocking(Engine.chunks)
    delete_chunks = _blocking(Engine.delete_chunks)
    list = _blocking(Engine.list)
    count = _blocking(Engine.count)
    update = _blocking(Engine.update)
    delete = _blocking(Engine.delete)
    delete_where = _blocking(Engine.delete_where)
    retrieve = _blocking(Engine.retrieve)
    window = _blocking(Engine.window)
    explain = _blocking(Engine.explain)
    hits = _blocking(Engine.hits)
    rerank = _blocking(Engine.rerank)
    search_and_rerank = _blocking(Engine.search_and_rerank)
    augment = _blocking(Engine.augment)
    post = _blocking(Engine.post)
    find_document = _blocking(Engine.find_document)
    latest = _blocking(Engine.latest)
    chain = _blocking(Engine.chain)
    channel_window = _blocking(Engine.channel_window)
    import_chat = _blocking(Engine.import_chat)
    put_stream = _blocking(Engine.put_stream)
    streams = _blocking(Engine.streams)
    find_stream = _blocking(Engine.find_stream)
    add_captions = _blocking(Engine.add_captions)
    captions = _blocking(Engine.captions)
    summarise = _blocking(Engine.summarise)
    summary = _blocking(Engine.summary)
    start_summary = _blocking(Engine.start_summary)
    keep_summarised = _blocking(Engine.keep_summarised)
    clear_stream = _blocking(Engine.clear_stream)
    import_captions = _blocking(Engine.import_captions)
    find_moments = _blocking(Engine.find_moments)
    video_window = _blocking(Engine.video_window)
    newest_caption = _blocking(Engine.newest_caption)
    add_events = _blocking(Engine.add_events)
    events = _blocking(Engine.events)
    entities = _blocking(Engine.entities)
    entity_timeline = _blocking(Engine.entity_timeline)
    put_alert = _blocking(Engine.put_alert)
    alerts = _blocking(Engine.alerts)
    find_alert = _blocking(Engine.find_alert)
    delete_alert = _blocking(Engine.delete_alert)
    alert_events = _blocking(Engine.alert_events)
    newest_alert_event = _blocking(Engine.newest_alert_event)
    graph = _blocking(Engine.graph)
    graphs = _blocking(Engine.graphs)
    delete_graph = _blocking(Engine.delete_graph)
    add_nodes = _blocking(Engine.add_nodes)
    add_edges = _blocking(Engine.add_edges)
    node = _blocking(Engine.node)
    nodes = _blocking(Engine.nodes)
    edges = _blocking(Engine.edges)
    delete_nodes = _blocking(Engine.delete_nodes)
    delete_edges = _blocking(Engine.delete_edges)
    neighbours = _blocking(Engine.neighbours)
    find_nodes = _blocking(Engine.find_nodes)
    graph_at = _blocking(Engine.graph_at)
    export_graph = _blocking(Engine.export_graph)
    keep_names = _blocking(Engine.keep_names)
    settle_names = _blocking(Engine.settle_names)
    names = _blocking(Engine.names)
    find_names = _blocking(Engine.find_names)
    link = _blocking(Engine.link)
    merge_nodes = _blocking(Engine.merge_nodes)
    split_node = _blocking(Engine.split_node)
    node_history = _blocking(Engine.node_history)
    remember = _blocking(Engine.remember)
    recall = _blocking(Engine.recall)
    memory_window = _blocking(Engine.memory_window)
    recent_memories = _blocking(Engine.recent_memories)
    memory = _blocking(Engine.memory)
    memory_versions = _blocking(Engine.memory_versions)
    memories = _blocking(Engine.memories)
    count_memories = _blocking(Engine.count_memories)
    update_memory = _blocking(Engine.update_memory)
    forget = _blocking(Engine.forget)
    retain = _blocking(Engine.retain)
    retentions = _blocking(Engine.retentions)
    apply_retention = _blocking(Engine.apply_retention)
    start_retention = _blocking(Engine.start_retention)
    start_keeping = _blocking(Engine.start_keeping)
    conversations = _blocking(Engine.conversations)
    memory_stats = _blocking(Engine.memory_stats)
    export_memories = _blocking(Engine.export_memories)
    import_memories = _blocking(Engine.import_memories)
    status = _blocking(Engine.status)
    check = _blocking(Engine.check)
    reindex = _blocking(Engine.reindex)
    reembed = _blocking(Engine.reembed)
    whoami = _blocking(Engine.whoami)
    create_user = _blocking(Engine.create_user)
    users = _blocking(Engine.users)
    find_user = _blocking(Engine.find_user)
    disable_user = _blocking(Engine.disable_user)
    delete_user = _blocking(Engine.delete_user)
    create_group = _blocking(Engine.create_group)
    groups = _blocking(Engine.groups)
    delete_group = _blocking(Engine.delete_group)
    members = _blocking(Engine.members)
    join = _blocking(Engine.join)
    leave = _blocking(Engine.leave)
    create_key = _blocking(Engine.create_key)
    keys = _blocking(Engine.keys)
    revoke_key = _blocking(Engine.revoke_key)
    rotate_key = _blocking(Engine.rotate_key)
    grant = _blocking(Engine.grant)
    revoke = _blocking(Engine.revoke)
    grants = _blocking(Engine.grants)
    authenticate = _blocking(Engine.authenticate)
    found_owner = _blocking(Engine.found_owner)
    ingest_url = _blocking(Engine.ingest_url)
    ingest_files = _blocking(Engine.ingest_files)
    connect = _blocking(Engine.connect)
    connections = _blocking(Engine.connections)
    disconnect = _blocking(Engine.disconnect)
    sync = _blocking(Engine.sync)
    job = _blocking(Engine.job)
    jobs = _blocking(Engine.jobs)
    cancel_job = _blocking(Engine.cancel_job)
    retry_job = _blocking(Engine.retry_job)
    wait_job = _blocking(Engine.wait_job)
    ingest_report = _blocking(Engine.ingest_report)
    embedding_requests = _blocking(Engine.embedding_requests)
    request_totals = _blocking(Engine.request_totals)
    start_jobs = _blocking(Engine.start_jobs)
    start_following = _blocking(Engine.start_following)
    start_alerting = _blocking(Engine.start_alerting)
    follow = _blocking(Engine.follow)


def open(
    path: str | Path | None = None,
    *,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    chat_model: ChatModel | None = None,
) -> AbstractContextManager[BlockingEngine]:
    """Open the store at `path` (made if it does not exist); all is released at the end of the block."""
    opened = bootstrap.open(
        path, settings=settings, embedder=embedder, reranker=reranker, chat_model=chat_model
    )
    return _blocking_until_closed(opened)


def connect(
    url: str | None = None, *, key: str | None = None, settings: Settings | None = None
) -> AbstractContextManager[BlockingEngine]:
    """Ask the server at `url` with an API key; what is not given comes from the settings.

    Nothing is asked yet. Raises InvalidInput for an address or a key that cannot be one.
    """
    return _blocking_until_closed(client.open(url, key=key, settings=settings))


@contextmanager
def _blocking_until_closed(
    opened: AbstractAsyncContextManager[Engine | client.RemoteEngine],
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
