"""The engine for programs without an event loop: the same methods, blocking.

Imports bootstrap, bridge, client, engine and ports.

with conspectus.open("notes") as engine:
    engine.add("The meeting moved to Thursday.", wait=True)
    print(engine.window("When is the meeting?", 200).text)

`conspectus.connect("http://localhost:8642")` gives the same on a server; `async with` gives both awaited.
"""

from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from conspectus import bootstrap
from conspectus.bridge.engine_thread import EngineThread
from conspectus.bridge.event_loop_thread import EventLoopThread, wait_for
from conspectus.engine import Engine
from conspectus.engine.context import delegate_to
from conspectus.ports import CountTokens, Embedder
from conspectus.ports.chat import ChatModel
from conspectus.ports.web import Reranker
from conspectus.settings import Settings
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


class BlockingProperty(cached_property[S]):
    """The blocking version of a service; its module is loaded when it is first used."""

    def __init__(self, module: str) -> None:
        super().__init__(self._load)
        self._module = f"conspectus.sync.{module}"

    def _load(self, engine: "BlockingEngine") -> S:
        name = str(self.attrname)
        service: S = getattr(import_module(self._module), f"Blocking{name.capitalize()}")(
            getattr(engine._engine, name), engine._loop
        )
        return service


class BlockingEngine:
    """An Engine or RemoteEngine with blocking methods.

    It may be used from many threads. A service is loaded when it is first used.
    """

    collections: "BlockingProperty[BlockingCollections]" = BlockingProperty("documents")
    documents: "BlockingProperty[BlockingDocuments]" = BlockingProperty("documents")
    search: "BlockingProperty[BlockingSearch]" = BlockingProperty("documents")
    channels: "BlockingProperty[BlockingChannels]" = BlockingProperty("channels")
    chat: "BlockingProperty[BlockingChat]" = BlockingProperty("channels")
    tasks: "BlockingProperty[BlockingTasks]" = BlockingProperty("channels")
    streams: "BlockingProperty[BlockingStreams]" = BlockingProperty("streams")
    events: "BlockingProperty[BlockingEvents]" = BlockingProperty("streams")
    summaries: "BlockingProperty[BlockingSummaries]" = BlockingProperty("streams")
    alerts: "BlockingProperty[BlockingAlerts]" = BlockingProperty("streams")
    memory: "BlockingProperty[BlockingMemory]" = BlockingProperty("memory")
    retention: "BlockingProperty[BlockingRetention]" = BlockingProperty("memory")
    graph: "BlockingProperty[BlockingGraph]" = BlockingProperty("memory")
    people: "BlockingProperty[BlockingPeople]" = BlockingProperty("administration")
    jobs: "BlockingProperty[BlockingJobs]" = BlockingProperty("administration")
    connections: "BlockingProperty[BlockingConnections]" = BlockingProperty("administration")
    files: "BlockingProperty[BlockingFiles]" = BlockingProperty("administration")
    maintenance: "BlockingProperty[BlockingMaintenance]" = BlockingProperty("administration")

    def __init__(self, engine: "Engine | RemoteEngine", loop: EventLoopThread) -> None:
        self._engine = engine
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's event loop and wait for it. An interrupt cancels it."""
        return self._loop.run(work)

    @property
    def asynchronous(self) -> "Engine | RemoteEngine":
        """The asynchronous engine, for coroutines that are passed to `run`."""
        return self._engine

    def tokenizer(self, name: str = "o200k_base") -> CountTokens:
        """Return the function that counts tokens with a tokenizer. Raises UnknownTokenizer."""
        return self._engine.tokenizer(name)

    add = delegate_to("documents", BlockingDocuments.add)
    retrieve = delegate_to("search", BlockingSearch.retrieve)
    window = delegate_to("search", BlockingSearch.window)
    explain = delegate_to("search", BlockingSearch.explain)


class Opening(Generic[E]):
    """An engine that a block opens: `with` makes it blocking, `async with` asynchronous."""

    def __init__(self, opened: AbstractAsyncContextManager[E]) -> None:
        self._opened = opened
        self._thread: EngineThread[E] | None = None

    def __enter__(self) -> BlockingEngine:
        thread = EngineThread(lambda: self._opened)
        with ExitStack() as after_failure:
            after_failure.callback(thread.close)
            engine = wait_for(thread.open())
            after_failure.pop_all()
        self._thread = thread
        return BlockingEngine(engine, thread.loop)

    def __exit__(self, *fault: object) -> None:
        if self._thread is not None:
            self._thread.close()

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
