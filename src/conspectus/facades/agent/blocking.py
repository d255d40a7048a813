"""The blocking API of an agent's context."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

from conspectus.facades.agent.context import AsyncAgentContext, ContextOptions, session_for
from conspectus.facades.agent.graph import LINK, AsyncContextGraph
from conspectus.facades.agent.linker import THRESHOLD, AsyncEntityLinker
from conspectus.facades.agent.mapping import Document, MemoryItem, StoredWith
from conspectus.facades.agent.memory import AsyncAgentMemory, MemoryOptions
from conspectus.facades.agent.retriever import AsyncContextRetriever, Expansion
from conspectus.facades.agent.session import AgentStorage, BlockingPart, is_new, session_of
from conspectus.graph.name_keys import BASE
from conspectus.model.memory import MEMORY

P = ParamSpec("P")
T = TypeVar("T")


def _waited(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    @functools.wraps(method)
    def call(self: BlockingPart, /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Callable[..., Coroutine[Any, Any, T]] = getattr(self._inner, method.__name__)
        return self.session.wait(lambda: work(*args, **kwargs))

    return call


class AgentMemory(BlockingPart):
    """The blocking AsyncAgentMemory. It is thread-safe."""

    _inner: AsyncAgentMemory

    def __init__(self, vector_store: Any = None, **options: Unpack[MemoryOptions]) -> None:
        self.session = session_of(vector_store, options.get("collection", MEMORY)).storage
        self.owns = is_new(vector_store)
        self._inner = AsyncAgentMemory(self.session.inside, **options)

    @property
    def short_term_memory(self) -> list[MemoryItem]:
        """Return the last turns within both limits, oldest first."""
        return list(self.short_term())

    short_term = _waited(AsyncAgentMemory.short_term)
    store = _waited(AsyncAgentMemory.store)
    store_vectors = _waited(AsyncAgentMemory.store_vectors)
    batch_store = _waited(AsyncAgentMemory.batch_store)
    batch_update = _waited(AsyncAgentMemory.batch_update)
    batch_delete = _waited(AsyncAgentMemory.batch_delete)
    retrieve = _waited(AsyncAgentMemory.retrieve)
    search = _waited(AsyncAgentMemory.search)
    find_similar = _waited(AsyncAgentMemory.find_similar)
    find_by_entity = _waited(AsyncAgentMemory.find_by_entity)
    get = _waited(AsyncAgentMemory.get)
    get_memory = get
    exists = _waited(AsyncAgentMemory.exists)
    versions = _waited(AsyncAgentMemory.versions)
    count = _waited(AsyncAgentMemory.count)
    get_recent = _waited(AsyncAgentMemory.get_recent)
    get_by_date = _waited(AsyncAgentMemory.get_by_date)
    conversation = _waited(AsyncAgentMemory.conversation)
    get_conversation_history = _waited(AsyncAgentMemory.get_conversation_history)
    list_conversations = _waited(AsyncAgentMemory.list_conversations)
    conversation_summary = _waited(AsyncAgentMemory.conversation_summary)
    delete_conversation = _waited(AsyncAgentMemory.delete_conversation)
    update = _waited(AsyncAgentMemory.update)
    forget = _waited(AsyncAgentMemory.forget)
    clear = _waited(AsyncAgentMemory.clear)
    prune = _waited(AsyncAgentMemory.prune)
    apply_retention = _waited(AsyncAgentMemory.apply_retention)
    retain = _waited(AsyncAgentMemory.retain)
    export = _waited(AsyncAgentMemory.export)
    export_to = _waited(AsyncAgentMemory.export_to)
    import_memories = _waited(AsyncAgentMemory.import_memories)
    save = _waited(AsyncAgentMemory.save)
    load = _waited(AsyncAgentMemory.load)
    backup = _waited(AsyncAgentMemory.backup)
    flush = _waited(AsyncAgentMemory.flush)
    stats = _waited(AsyncAgentMemory.stats)
    health = _waited(AsyncAgentMemory.health)
    _prune_short_term_memory = _waited(AsyncAgentMemory._prune_short_term_memory)
    list = _waited(AsyncAgentMemory.list)


class ContextGraph(BlockingPart):
    """The blocking AsyncContextGraph."""

    _inner: AsyncContextGraph
    _known: dict[Any, "ContextGraph"]

    @classmethod
    def _around(cls, inner: Any, place: AgentStorage) -> Self:
        made = super()._around(inner, place)
        made._known = {}
        return made

    def __init__(
        self, vector_store: Any = None, *, name: str | None = None, collection: str = MEMORY
    ) -> None:
        self._inner = AsyncContextGraph(vector_store, name=name, collection=collection)
        self.session, self.owns = self._inner.session.storage, self._inner.owns
        self._inner.session = self.session.inside
        self._known = {}

    @property
    def name(self) -> str:
        """The name of the graph in its store."""
        return self._inner.name

    add_nodes = _waited(AsyncContextGraph.add_nodes)
    add_edges = _waited(AsyncContextGraph.add_edges)
    get_neighbors = _waited(AsyncContextGraph.get_neighbors)
    query = _waited(AsyncContextGraph.query)
    get_node = _waited(AsyncContextGraph.get_node)
    get_nodes = _waited(AsyncContextGraph.get_nodes)
    get_edges = _waited(AsyncContextGraph.get_edges)
    remove_nodes = _waited(AsyncContextGraph.remove_nodes)
    remove_edges = _waited(AsyncContextGraph.remove_edges)
    state_at = _waited(AsyncContextGraph.state_at)
    stats = _waited(AsyncContextGraph.stats)
    to_dict = _waited(AsyncContextGraph.to_dict)
    to_json = _waited(AsyncContextGraph.to_json)
    to_graphml = _waited(AsyncContextGraph.to_graphml)
    to_svg = _waited(AsyncContextGraph.to_svg)
    save = _waited(AsyncContextGraph.save)
    load = _waited(AsyncContextGraph.load)
    clear = _waited(AsyncContextGraph.clear)
    links = _waited(AsyncContextGraph.links)

    def link_graph(
        self, other: "ContextGraph", source_node_id: str, target_node_id: str, link_type: str = LINK
    ) -> str:
        """Link a node of this graph to a node of another one and return the link's id. Raises KeyError."""
        self._known[other._inner] = other
        return self.session.wait(
            lambda: self._inner.link_graph(other._inner, source_node_id, target_node_id, link_type)
        )

    def navigate_to(self, link_id: str) -> tuple["ContextGraph", str]:
        """Return the graph and the node that a link leads to. Raises KeyError."""
        graph, node = self.session.wait(lambda: self._inner.navigate_to(link_id))
        if graph in self._known:
            return self._known[graph], node
        return ContextGraph._around(graph, graph.session.storage), node

    def resolve_links(self, graphs: "Mapping[str, ContextGraph] | Iterable[ContextGraph]") -> int:
        """Register graphs of other stores and return the number of links that can be followed now."""
        named = graphs if isinstance(graphs, Mapping) else {each.name: each for each in graphs}
        inner = {name: each._inner for name, each in named.items()}
        self._known |= {each._inner: each for each in named.values()}
        return self.session.wait(lambda: self._inner.resolve_links(inner))

    def _follow(self, place: AgentStorage) -> None:
        """Use the store of an agent's memory."""
        if self._inner.session.storage is not place:
            self._inner.move(place.inside)
        self.session, self.owns = place, False


class ContextRetriever(BlockingPart):
    """The blocking AsyncContextRetriever. `vector_store` is an alias of `memory`."""

    _inner: AsyncContextRetriever

    def __init__(
        self,
        memory: Any = None,
        knowledge_graph: ContextGraph | None = None,
        *,
        vector_store: Any = None,
        **expansion: Unpack[Expansion],
    ) -> None:
        store = vector_store if memory is None else memory
        inner = None if knowledge_graph is None else knowledge_graph._inner
        self.session = session_for(store, inner, MEMORY).storage
        self.owns = is_new(store)
        if knowledge_graph is not None:
            knowledge_graph._follow(self.session)
        known = store._inner if isinstance(store, AgentMemory | AgentContext) else self.session.inside
        self._inner = AsyncContextRetriever(known, inner, **expansion)

    retrieve = _waited(AsyncContextRetriever.retrieve)


class EntityLinker(BlockingPart):
    """The blocking AsyncEntityLinker."""

    _inner: AsyncEntityLinker

    def __init__(
        self, knowledge_graph: Any = None, *, similarity_threshold: float = THRESHOLD, base_uri: str = BASE
    ) -> None:
        graph = knowledge_graph.graph if isinstance(knowledge_graph, AgentContext) else knowledge_graph
        self.session, self.owns = session_of(graph).storage, is_new(graph)
        inner = graph._inner if isinstance(graph, ContextGraph) else self.session.inside
        self._inner = AsyncEntityLinker(inner, similarity_threshold=similarity_threshold, base_uri=base_uri)

    assign_uri = _waited(AsyncEntityLinker.assign_uri)
    link = _waited(AsyncEntityLinker.link)
    find_similar = _waited(AsyncEntityLinker.find_similar)
    link_entities = _waited(AsyncEntityLinker.link_entities)
    merge = _waited(AsyncEntityLinker.merge)
    split = _waited(AsyncEntityLinker.split)
    history = _waited(AsyncEntityLinker.history)


class AgentContext(AgentMemory):
    """The blocking AsyncAgentContext. It is thread-safe.

    with AgentContext("memory", user_id="ada") as context:
        context.store("Ada likes tea.", conversation_id="monday")
        print(context.retrieve("What does Ada drink?")[0]["content"])
    """

    _inner: AsyncAgentContext

    def __init__(
        self,
        vector_store: Any = None,
        knowledge_graph: ContextGraph | None = None,
        **options: Unpack[ContextOptions],
    ) -> None:
        inner = None if knowledge_graph is None else knowledge_graph._inner
        self.session = session_for(vector_store, inner, options.get("collection", MEMORY)).storage
        self.owns = is_new(vector_store)
        if knowledge_graph is not None:
            knowledge_graph._follow(self.session)
        self._inner = AsyncAgentContext(self.session.inside, inner, **options)
        self.graph = knowledge_graph or ContextGraph._around(self._inner.graph, self.session)
        self.linker = EntityLinker._around(self._inner.linker, self.session)
        self.retriever = ContextRetriever._around(self._inner.retriever, self.session)

    @overload
    def store(self, content: str | Mapping[str, Any] | MemoryItem, **options: Unpack[StoredWith]) -> str: ...

    @overload
    def store(
        self, content: list[Any] | tuple[Any, ...], **options: Unpack[StoredWith]
    ) -> dict[str, Any]: ...

    def store(self, content: Document | Iterable[Document], **options: Unpack[StoredWith]) -> Any:
        """Store one text and return its id, or a list and return its count and the ids in order."""
        work: Any = self._inner.store
        return self.session.wait(lambda: work(content, **options))

    retrieve = _waited(AsyncAgentContext.retrieve)
    query_with_context = _waited(AsyncAgentContext.query_with_context)
    get_neighbors = _waited(AsyncAgentContext.get_neighbors)
    link = _waited(AsyncAgentContext.link)
    build_graph = _waited(AsyncAgentContext.build_graph)
