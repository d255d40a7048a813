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
from importlib import import_module
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
from conspectus.sync.documents import BlockingDocuments, BlockingSearch

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
    from conspectus.sync.documents import BlockingCollections
    from conspectus.sync.memory import BlockingGraph, BlockingMemory, BlockingRetention
    from conspectus.sync.streams import BlockingAlerts, BlockingEvents, BlockingStreams, BlockingSummaries

E = TypeVar("E", bound="Engine | RemoteEngine")
S = TypeVar("S")
T = TypeVar("T")


class Twin(cached_property[S]):
    """The blocking version of a service; its module is loaded when it is first used."""

    def __init__(self, module: str) -> None:
        super().__init__(self._load)
        self._module = f"conspectus.sync.{module}"

    def _load(self, engine: "BlockingEngine") -> S:
        name = str(self.attrname)
        made: S = getattr(import_module(self._module), f"Blocking{name.capitalize()}")(
            getattr(engine._engine, name), engine._bridge
        )
        return made


class BlockingEngine:
    """An Engine or RemoteEngine with blocking methods.

    It may be used from many threads. A service is loaded when it is first used.
    """

    collections: "Twin[BlockingCollections]" = Twin("documents")
    documents: "Twin[BlockingDocuments]" = Twin("documents")
    search: "Twin[BlockingSearch]" = Twin("documents")
    channels: "Twin[BlockingChannels]" = Twin("channels")
    chat: "Twin[BlockingChat]" = Twin("channels")
    tasks: "Twin[BlockingTasks]" = Twin("channels")
    streams: "Twin[BlockingStreams]" = Twin("streams")
    events: "Twin[BlockingEvents]" = Twin("streams")
    summaries: "Twin[BlockingSummaries]" = Twin("streams")
    alerts: "Twin[BlockingAlerts]" = Twin("streams")
    memory: "Twin[BlockingMemory]" = Twin("memory")
    retention: "Twin[BlockingRetention]" = Twin("memory")
    graph: "Twin[BlockingGraph]" = Twin("memory")
    people: "Twin[BlockingPeople]" = Twin("administration")
    jobs: "Twin[BlockingJobs]" = Twin("administration")
    connections: "Twin[BlockingConnections]" = Twin("administration")
    files: "Twin[BlockingFiles]" = Twin("administration")
    maintenance: "Twin[BlockingMaintenance]" = Twin("administration")

    def __init__(self, engine: "Engine | RemoteEngine", loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._bridge = Bridge(loop)

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
