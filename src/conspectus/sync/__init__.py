"""The engine for programs without an event loop: the same methods, blocking.

Imports bootstrap, bridge, client, engine and ports.

engine = conspectus.open("notes")
engine.add("The meeting moved to Thursday.", wait=True)
print(engine.window("When is the meeting?", 200).text)
engine.close()

`with` closes it at the end of a block. `conspectus.connect("http://localhost:8642")` gives the same on a
server; `async with` gives both awaited.
"""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from conspectus import bootstrap
from conspectus.bridge.event_loop_thread import is_called_by_coroutine
from conspectus.bridge.owned_engine import OwnedEngine
from conspectus.engine import Engine
from conspectus.engine.delegation import delegate_to
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.model.trust import Origin
from conspectus.ports import CountTokens, Embedder
from conspectus.ports.chat import ChatModel
from conspectus.ports.web import Reranker
from conspectus.settings import Settings
from conspectus.sync.documents import BlockingDocuments, BlockingSearch
from conspectus.sync.other_names import OtherNames

if TYPE_CHECKING:
    from conspectus.client import RemoteEngine
    from conspectus.sync.administration import (
        BlockingAccess,
        BlockingConnections,
        BlockingFiles,
        BlockingIdentities,
        BlockingJobs,
        BlockingKeys,
        BlockingLogins,
        BlockingMaintenance,
        BlockingPeople,
    )
    from conspectus.sync.answers import BlockingAnswers
    from conspectus.sync.channels import BlockingChannels, BlockingChat, BlockingTasks
    from conspectus.sync.collections import BlockingCollections
    from conspectus.sync.experiments import BlockingExperiments
    from conspectus.sync.memory import BlockingGraph, BlockingMemory, BlockingRetention
    from conspectus.sync.streams import BlockingAlerts, BlockingEvents, BlockingStreams, BlockingSummaries

E = TypeVar("E", bound="Engine | RemoteEngine")
S = TypeVar("S")
T = TypeVar("T")

AWAITED = (
    "blocks, and this is a coroutine; write `async with conspectus.open(...) as engine:` (or connect) and"
    " await its methods, or `with` for a blocking engine"
)
BELONGS_TO_ASYNC_BLOCK = "is in use by `async with`; use the engine that `as` names, and await its methods"
IS_OPEN = "is open for blocking calls; open another one for `async with`"


class BlockingProperty(cached_property[S]):
    """The blocking version of a service; its module is loaded when it is first used."""

    def __init__(self, module: str) -> None:
        super().__init__(self._load)
        self._module = f"conspectus.sync.{module}"

    def _load(self, engine: "BlockingEngine") -> S:
        name = str(self.attrname)
        service: S = getattr(import_module(self._module), f"Blocking{name.capitalize()}")(
            getattr(engine.asynchronous, name), engine._owner
        )
        return service


class BlockingEngine(OtherNames):
    """An Engine or RemoteEngine with blocking methods.

    It is opened on first use, and closed by `close`, at the end of its `with` block, or when the program has
    no reference to it any more. Afterwards every method raises StoreClosed. It may be used from many threads.
    """

    collections: "BlockingProperty[BlockingCollections]" = BlockingProperty("collections")
    documents: "BlockingProperty[BlockingDocuments]" = BlockingProperty("documents")
    search: "BlockingProperty[BlockingSearch]" = BlockingProperty("documents")
    answers: "BlockingProperty[BlockingAnswers]" = BlockingProperty("answers")
    experiments: "BlockingProperty[BlockingExperiments]" = BlockingProperty("experiments")
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
    keys: "BlockingProperty[BlockingKeys]" = BlockingProperty("administration")
    identities: "BlockingProperty[BlockingIdentities]" = BlockingProperty("administration")
    logins: "BlockingProperty[BlockingLogins]" = BlockingProperty("administration")
    access: "BlockingProperty[BlockingAccess]" = BlockingProperty("administration")
    jobs: "BlockingProperty[BlockingJobs]" = BlockingProperty("administration")
    connections: "BlockingProperty[BlockingConnections]" = BlockingProperty("administration")
    files: "BlockingProperty[BlockingFiles]" = BlockingProperty("administration")
    maintenance: "BlockingProperty[BlockingMaintenance]" = BlockingProperty("administration")

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._owner: OwnedEngine[Any] = OwnedEngine(opening)
        self._is_in_block = False
        self._limited_engine: Engine | RemoteEngine | None = None

    def __enter__(self) -> Self:
        self._require_no_async_block()
        with ExitStack() as after_failure:
            after_failure.callback(self._owner.close)
            self._owner.open()
            after_failure.pop_all()
        self._is_in_block = True
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, or the connection to the server. Closing twice has no effect.

        What was stored stays stored; unfinished background work continues when the store is next opened.
        """
        self._owner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's event loop and wait for it. An interrupt cancels it."""
        try:
            loop = self._opened().loop
        except ConspectusError:
            work.close()
            raise
        return loop.run(work)

    @property
    def asynchronous(self) -> "Engine | RemoteEngine":
        """The asynchronous engine, for coroutines that are passed to `run`."""
        engine: Engine | RemoteEngine = self._opened().open()
        return self._limited_engine or engine

    def with_origin(self, origin: Origin) -> "BlockingEngine":
        """Return an engine whose writes are trusted no more than texts of an origin, such as `agent`.

        Both use the same store: closing one closes the other.
        """
        limited = BlockingEngine.__new__(BlockingEngine)
        limited._limited_engine = self.asynchronous.with_origin(origin)
        limited._owner, limited._is_in_block = self._owner, self._is_in_block
        return limited

    def tokenizer(self, name: str = "o200k_base") -> CountTokens:
        """Return the function that counts tokens with a tokenizer. Raises UnknownTokenizer."""
        return self.asynchronous.tokenizer(name)

    add = delegate_to("documents", BlockingDocuments.add)
    retrieve = delegate_to("search", BlockingSearch.retrieve)
    window = delegate_to("search", BlockingSearch.window)
    explain = delegate_to("search", BlockingSearch.explain)

    def _opened(self) -> OwnedEngine[Any]:
        """Return the owner of the engine, which is open.

        Raises StoreClosed, or InvalidInput in a coroutine that has not entered a block: `await` is its way.
        """
        if not self._owner.is_open:
            self._owner.require_not_closed()
            self._require_no_async_block()
            if not self._is_in_block and is_called_by_coroutine():
                raise InvalidInput("engine", AWAITED)
            self._owner.open()
        return self._owner

    def _require_no_async_block(self) -> None:
        """Raise InvalidInput if the engine is open for `async with`."""


class Opening(BlockingEngine, Generic[E]):
    """A blocking engine. `async with` gives an asynchronous one in its place, on the loop of the program."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[E]]) -> None:
        super().__init__(opening)
        self._opening = opening
        self._block: AbstractAsyncContextManager[E] | None = None

    async def __aenter__(self) -> E:
        self._require_no_async_block()
        if self._owner.is_open:
            raise InvalidInput("engine", IS_OPEN)
        self._owner.require_not_closed()
        self._block = self._opening()
        return await self._block.__aenter__()

    async def __aexit__(self, *fault: Any) -> bool | None:
        block, self._block = self._block, None
        self._owner.close()
        return None if block is None else await block.__aexit__(*fault)

    def _require_no_async_block(self) -> None:
        if self._block is not None:
            raise InvalidInput("engine", BELONGS_TO_ASYNC_BLOCK)


def open(
    path: str | Path | None = None,
    *,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    chat_model: ChatModel | None = None,
) -> Opening[Engine]:
    """Return the engine of the store at `path`, which is created if it is missing.

    It is opened on first use, and closed by `close()`, at the end of a `with` or `async with` block, or when
    it is no longer referenced. `path` is a folder, or the `postgresql://` URL of a database that many
    processes and machines share. Defaults come from the settings and the environment. `embedder` is any
    object of that protocol, used for its own embedding model and for new collections; `reranker` and
    `chat_model` likewise. Opening raises StorageTooNew, StorageError, or MissingExtra for a model whose
    library is not installed.
    """
    return _lazily(
        partial(
            bootstrap.open,
            bootstrap.absolute(path) if path and isinstance(path, str | Path) else path,
            settings=settings,
            embedder=embedder,
            reranker=reranker,
            chat_model=chat_model,
        )
    )


def connect(
    url: str | None = None, *, api_key: str | None = None, settings: Settings | None = None
) -> "Opening[RemoteEngine]":
    """Return the engine of the server at `url`, with an API key. Defaults come from the settings.

    It is used and closed like that of `open`. No request is sent yet. The first use raises InvalidInput for
    an invalid address or key.
    """
    from conspectus import client

    return _lazily(partial(client.open, url, api_key=api_key, settings=settings))


def _lazily(opening: Callable[[], AbstractAsyncContextManager[E]]) -> Opening[E]:
    """Return an engine that is opened on first use. Raises InvalidInput for arguments of another type."""
    opening()
    return Opening(opening)
