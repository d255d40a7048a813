"""The engine for programs without an event loop: the same methods, blocking.

Imports bootstrap, client, engine and ports.

with conspectus.open("notes") as engine:
    engine.add("The meeting moved to Thursday.", wait=True)
    print(engine.window("When is the meeting?", 200).text)

`conspectus.connect("http://localhost:8642")` gives the same on a server; `async with` gives both awaited.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.engine.context import short
from conspectus.ports import CountTokens, Embedder
from conspectus.ports.chat import ChatModel
from conspectus.ports.web import Reranker
from conspectus.settings import Settings
from conspectus.sync.bridge import Bridge
from conspectus.sync.documents import BlockingCollections, BlockingDocuments, BlockingSearch

if TYPE_CHECKING:
    from conspectus.client import RemoteEngine
    from conspectus.sync.administration import (
        BlockingConnections,
        BlockingFiles,
        BlockingJobs,
        BlockingMaintenance,
        BlockingPeople,
    )
    from conspectus.sync.channels import BlockingChannels, BlockingChat, BlockingTasks
    from conspectus.sync.memory import BlockingGraph, BlockingMemory, BlockingRetention
    from conspectus.sync.streams import BlockingAlerts, BlockingEvents, BlockingStreams, BlockingSummaries

E = TypeVar("E", bound="Engine | RemoteEngine")
T = TypeVar("T")


class BlockingEngine:
    """An Engine or RemoteEngine with blocking methods.

    It may be used from many threads. A service is loaded when it is first used.
    """

    def __init__(self, engine: "Engine | RemoteEngine", loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._bridge = Bridge(loop)

    @cached_property
    def collections(self) -> BlockingCollections:
        """Collections and their sources."""
        return BlockingCollections(self._engine.collections, self._bridge)

    @cached_property
    def documents(self) -> BlockingDocuments:
        """Documents: write, read and delete."""
        return BlockingDocuments(self._engine.documents, self._bridge)

    @cached_property
    def search(self) -> BlockingSearch:
        """Search: hits, context windows and explanations."""
        return BlockingSearch(self._engine.search, self._bridge)

    @cached_property
    def channels(self) -> "BlockingChannels":
        """Channels: messages, threads and reply chains, and windows for questions in a channel."""
        from conspectus.sync.channels import BlockingChannels

        return BlockingChannels(self._engine.channels, self._bridge)

    @cached_property
    def chat(self) -> "BlockingChat":
        """Chat: answers of a model that cites stored documents."""
        from conspectus.sync.channels import BlockingChat

        return BlockingChat(self._engine.chat, self._bridge)

    @cached_property
    def tasks(self) -> "BlockingTasks":
        """Tasks and attachments."""
        from conspectus.sync.channels import BlockingTasks

        return BlockingTasks(self._engine.tasks, self._bridge)

    @cached_property
    def streams(self) -> "BlockingStreams":
        """Streams: captions, moments that answer a query, and live captions."""
        from conspectus.sync.streams import BlockingStreams

        return BlockingStreams(self._engine.streams, self._bridge)

    @cached_property
    def events(self) -> "BlockingEvents":
        """Events of streams, and the entities in them."""
        from conspectus.sync.streams import BlockingEvents

        return BlockingEvents(self._engine.events, self._bridge)

    @cached_property
    def summaries(self) -> "BlockingSummaries":
        """Summaries of streams and of time ranges."""
        from conspectus.sync.streams import BlockingSummaries

        return BlockingSummaries(self._engine.summaries, self._bridge)

    @cached_property
    def alerts(self) -> "BlockingAlerts":
        """Alerts: saved queries that are matched with new captions."""
        from conspectus.sync.streams import BlockingAlerts

        return BlockingAlerts(self._engine.alerts, self._bridge)

    @cached_property
    def memory(self) -> "BlockingMemory":
        """Memories of users, agents and conversations."""
        from conspectus.sync.memory import BlockingMemory

        return BlockingMemory(self._engine.memory, self._bridge)

    @cached_property
    def retention(self) -> "BlockingRetention":
        """Retention rules, which delete old memories."""
        from conspectus.sync.memory import BlockingRetention

        return BlockingRetention(self._engine.retention, self._bridge)

    @cached_property
    def graph(self) -> "BlockingGraph":
        """Graphs: nodes, edges, traversal, and entity mentions in passages and texts."""
        from conspectus.sync.memory import BlockingGraph

        return BlockingGraph(self._engine.graph, self._bridge)

    @cached_property
    def people(self) -> "BlockingPeople":
        """Users, groups, API keys and grants."""
        from conspectus.sync.administration import BlockingPeople

        return BlockingPeople(self._engine.people, self._bridge)

    @cached_property
    def jobs(self) -> "BlockingJobs":
        """Jobs: ingestion of pages and files in the background, and job status."""
        from conspectus.sync.administration import BlockingJobs

        return BlockingJobs(self._engine.jobs, self._bridge)

    @cached_property
    def connections(self) -> "BlockingConnections":
        """Connections of collections to wikis, repositories and folders."""
        from conspectus.sync.administration import BlockingConnections

        return BlockingConnections(self._engine.connections, self._bridge)

    @cached_property
    def files(self) -> "BlockingFiles":
        """Documents as files: list, read, find, and search lines for a pattern."""
        from conspectus.sync.administration import BlockingFiles

        return BlockingFiles(self._engine.files, self._bridge)

    @cached_property
    def maintenance(self) -> "BlockingMaintenance":
        """Status, consistency checks, and rebuilding."""
        from conspectus.sync.administration import BlockingMaintenance

        return BlockingMaintenance(self._engine.maintenance, self._bridge)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's event loop and wait for it. An interrupt cancels it."""
        return self._bridge.run(work)

    @property
    def asynchronous(self) -> "Engine | RemoteEngine":
        """The asynchronous engine, for coroutines that are passed to `run`."""
        return self._engine

    def tokenizer(self, name: str = "o200k_base") -> CountTokens:
        """Return the function that counts tokens with a tokenizer. Raises UnknownTokenizer."""
        return self._engine.tokenizer(name)

    add = short("documents", BlockingDocuments.add)
    retrieve = short("search", BlockingSearch.retrieve)
    window = short("search", BlockingSearch.window)
    explain = short("search", BlockingSearch.explain)


class Opening(Generic[E]):
    """An engine that a block opens: `with` makes it blocking, `async with` asynchronous."""

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
    """Open the store at `path`, which is created if it is missing, and close it at the end of the block.

    `path` is a folder, or the `postgresql://` URL of a database that many processes and machines share.
    Defaults come from the settings and the environment. `embedder` is any object of that protocol, used for
    its own embedding model and for new collections; `reranker` and `chat_model` likewise. Raises
    StorageTooNew, StorageError, or MissingExtra for a model whose library is not installed.
    """
    return Opening(
        bootstrap.open(path, settings=settings, embedder=embedder, reranker=reranker, chat_model=chat_model)
    )


def connect(
    url: str | None = None, *, api_key: str | None = None, settings: Settings | None = None
) -> "Opening[RemoteEngine]":
    """Use the server at `url` with an API key. Defaults come from the settings.

    No request is sent yet. Raises InvalidInput for an invalid address or key.
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
            # A forked child has no thread for the loop, so nothing would ever run.
            if os.getpid() == process:
                asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result()
    finally:
        if os.getpid() == process:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
