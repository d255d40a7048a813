"""The blocking API of an agent's context."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, Unpack, overload

from conspectus.bridge.blocking_methods import blocking
from conspectus.facades.agent.arguments import StoredWith
from conspectus.facades.agent.context import CONTEXT_DEFAULTS, AsyncAgentContext, ContextOptions, storage_for
from conspectus.facades.agent.context_graph import DEFAULT_LINK_TYPE, AsyncContextGraph
from conspectus.facades.agent.linker import DEFAULT_SIMILARITY_THRESHOLD, AsyncEntityLinker
from conspectus.facades.agent.memory import MEMORY_DEFAULTS, AsyncAgentMemory, MemoryOptions
from conspectus.facades.agent.memory_items import Document, MemoryItem
from conspectus.facades.agent.named_options import with_named_options
from conspectus.facades.agent.parts import BlockingPart, has_own_storage, storage_of
from conspectus.facades.agent.retriever import EXPANSION_DEFAULTS, AsyncContextRetriever, Expansion
from conspectus.facades.agent.storage import AgentStorage
from conspectus.model.memory import MEMORY
from conspectus.text.name_keys import BASE


class AgentMemory(BlockingPart):
    """The blocking AsyncAgentMemory. It is thread-safe."""

    _inner: AsyncAgentMemory

    @with_named_options(MemoryOptions, MEMORY_DEFAULTS)
    def __init__(self, vector_store: Any = None, **options: Unpack[MemoryOptions]) -> None:
        self.storage = storage_of(vector_store, options.get("collection", MEMORY))
        self.owns = has_own_storage(vector_store)
        self._inner = AsyncAgentMemory(self.storage, **options)

    @property
    def short_term_memory(self) -> list[MemoryItem]:
        """Return the last turns within both limits, oldest first."""
        return list(self.short_term())

    short_term = blocking(AsyncAgentMemory.short_term)
    store = blocking(AsyncAgentMemory.store)
    store_vectors = blocking(AsyncAgentMemory.store_vectors)
    batch_store = blocking(AsyncAgentMemory.batch_store)
    batch_update = blocking(AsyncAgentMemory.batch_update)
    batch_delete = blocking(AsyncAgentMemory.batch_delete)
    retrieve = blocking(AsyncAgentMemory.retrieve)
    search = blocking(AsyncAgentMemory.search)
    find_similar = blocking(AsyncAgentMemory.find_similar)
    find_by_entity = blocking(AsyncAgentMemory.find_by_entity)
    get = blocking(AsyncAgentMemory.get)
    get_memory = get
    exists = blocking(AsyncAgentMemory.exists)
    versions = blocking(AsyncAgentMemory.versions)
    count = blocking(AsyncAgentMemory.count)
    get_recent = blocking(AsyncAgentMemory.get_recent)
    get_by_date = blocking(AsyncAgentMemory.get_by_date)
    conversation = blocking(AsyncAgentMemory.conversation)
    get_conversation_history = blocking(AsyncAgentMemory.get_conversation_history)
    list_conversations = blocking(AsyncAgentMemory.list_conversations)
    conversation_summary = blocking(AsyncAgentMemory.conversation_summary)
    delete_conversation = blocking(AsyncAgentMemory.delete_conversation)
    update = blocking(AsyncAgentMemory.update)
    forget = blocking(AsyncAgentMemory.forget)
    clear = blocking(AsyncAgentMemory.clear)
    prune = blocking(AsyncAgentMemory.prune)
    apply_retention = blocking(AsyncAgentMemory.apply_retention)
    retain = blocking(AsyncAgentMemory.retain)
    export = blocking(AsyncAgentMemory.export)
    export_to = blocking(AsyncAgentMemory.export_to)
    import_memories = blocking(AsyncAgentMemory.import_memories)
    save = blocking(AsyncAgentMemory.save)
    load = blocking(AsyncAgentMemory.load)
    backup = blocking(AsyncAgentMemory.backup)
    flush = blocking(AsyncAgentMemory.flush)
    stats = blocking(AsyncAgentMemory.stats)
    health = blocking(AsyncAgentMemory.health)
    _prune_short_term_memory = blocking(AsyncAgentMemory._prune_short_term_memory)
    list = blocking(AsyncAgentMemory.list)


class ContextGraph(BlockingPart):
    """The blocking AsyncContextGraph."""

    _inner: AsyncContextGraph
    _blocking_graphs: dict[Any, "ContextGraph"]

    @classmethod
    def _around(cls, inner: Any, storage: AgentStorage) -> Self:
        graph = super()._around(inner, storage)
        graph._blocking_graphs = {}
        return graph

    def __init__(
        self, vector_store: Any = None, *, name: str | None = None, collection: str = MEMORY
    ) -> None:
        self._inner = AsyncContextGraph(vector_store, name=name, collection=collection)
        self.storage, self.owns = self._inner.storage, self._inner.owns
        self._blocking_graphs = {}

    @property
    def name(self) -> str:
        """The name of the graph in its store."""
        return self._inner.name

    add_nodes = blocking(AsyncContextGraph.add_nodes)
    add_edges = blocking(AsyncContextGraph.add_edges)
    get_neighbors = blocking(AsyncContextGraph.get_neighbors)
    query = blocking(AsyncContextGraph.query)
    get_node = blocking(AsyncContextGraph.get_node)
    get_nodes = blocking(AsyncContextGraph.get_nodes)
    get_edges = blocking(AsyncContextGraph.get_edges)
    remove_nodes = blocking(AsyncContextGraph.remove_nodes)
    remove_edges = blocking(AsyncContextGraph.remove_edges)
    state_at = blocking(AsyncContextGraph.state_at)
    stats = blocking(AsyncContextGraph.stats)
    to_dict = blocking(AsyncContextGraph.to_dict)
    to_json = blocking(AsyncContextGraph.to_json)
    to_graphml = blocking(AsyncContextGraph.to_graphml)
    to_svg = blocking(AsyncContextGraph.to_svg)
    save = blocking(AsyncContextGraph.save)
    load = blocking(AsyncContextGraph.load)
    clear = blocking(AsyncContextGraph.clear)
    links = blocking(AsyncContextGraph.links)

    def link_graph(
        self,
        other: "ContextGraph",
        source_node_id: str,
        target_node_id: str,
        link_type: str = DEFAULT_LINK_TYPE,
    ) -> str:
        """Link a node of this graph to a node of another one and return the link's id. Raises KeyError."""
        self._blocking_graphs[other._inner] = other
        return self.storage.wait(
            lambda: self._inner.link_graph(other._inner, source_node_id, target_node_id, link_type)
        )

    def navigate_to(self, link_id: str) -> tuple["ContextGraph", str]:
        """Return the graph and the node that a link leads to. Raises KeyError."""
        graph, node = self.storage.wait(lambda: self._inner.navigate_to(link_id))
        if graph in self._blocking_graphs:
            return self._blocking_graphs[graph], node
        return ContextGraph._around(graph, graph.storage), node

    def resolve_links(self, graphs: "Mapping[str, ContextGraph] | Iterable[ContextGraph]") -> int:
        """Register graphs of other stores and return the number of links that can be followed now."""
        graphs_by_name = graphs if isinstance(graphs, Mapping) else {graph.name: graph for graph in graphs}
        inner = {name: graph._inner for name, graph in graphs_by_name.items()}
        self._blocking_graphs |= {graph._inner: graph for graph in graphs_by_name.values()}
        return self.storage.wait(lambda: self._inner.resolve_links(inner))

    def _follow(self, storage: AgentStorage) -> None:
        """Use the store of an agent's memory."""
        if self._inner.storage is not storage:
            self._inner.move(storage)
        self.storage, self.owns = storage, False


class ContextRetriever(BlockingPart):
    """The blocking AsyncContextRetriever. `vector_store` is an alias of `memory`."""

    _inner: AsyncContextRetriever

    @with_named_options(Expansion, EXPANSION_DEFAULTS)
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
        self.storage = storage_for(store, inner, MEMORY)
        self.owns = has_own_storage(store)
        if knowledge_graph is not None:
            knowledge_graph._follow(self.storage)
        memory_or_storage = store._inner if isinstance(store, AgentMemory | AgentContext) else self.storage
        self._inner = AsyncContextRetriever(memory_or_storage, inner, **expansion)

    retrieve = blocking(AsyncContextRetriever.retrieve)


class EntityLinker(BlockingPart):
    """The blocking AsyncEntityLinker."""

    _inner: AsyncEntityLinker

    def __init__(
        self,
        knowledge_graph: Any = None,
        *,
        similarity_threshold: float = DEFAULT_SIMILARITY_THRESHOLD,
        base_uri: str = BASE,
    ) -> None:
        graph = knowledge_graph.graph if isinstance(knowledge_graph, AgentContext) else knowledge_graph
        self.storage, self.owns = storage_of(graph), has_own_storage(graph)
        inner = graph._inner if isinstance(graph, ContextGraph) else self.storage
        self._inner = AsyncEntityLinker(inner, similarity_threshold=similarity_threshold, base_uri=base_uri)

    assign_uri = blocking(AsyncEntityLinker.assign_uri)
    link = blocking(AsyncEntityLinker.link)
    find_similar = blocking(AsyncEntityLinker.find_similar)
    link_entities = blocking(AsyncEntityLinker.link_entities)
    merge = blocking(AsyncEntityLinker.merge)
    split = blocking(AsyncEntityLinker.split)
    history = blocking(AsyncEntityLinker.history)


class AgentContext(AgentMemory):
    """The blocking AsyncAgentContext. It is thread-safe.

    with AgentContext("memory", user_id="ada") as context:
        context.store("Ada likes tea.", conversation_id="monday")
        print(context.retrieve("What does Ada drink?")[0]["content"])
    """

    _inner: AsyncAgentContext

    @with_named_options(ContextOptions, CONTEXT_DEFAULTS, MemoryOptions, Expansion)
    def __init__(
        self,
        vector_store: Any = None,
        knowledge_graph: ContextGraph | None = None,
        **options: Unpack[ContextOptions],
    ) -> None:
        inner = None if knowledge_graph is None else knowledge_graph._inner
        self.storage = storage_for(vector_store, inner, options.get("collection", MEMORY))
        self.owns = has_own_storage(vector_store)
        if knowledge_graph is not None:
            knowledge_graph._follow(self.storage)
        self._inner = AsyncAgentContext(self.storage, inner, **options)
        self.graph = knowledge_graph or ContextGraph._around(self._inner.graph, self.storage)
        self.linker = EntityLinker._around(self._inner.linker, self.storage)
        self.retriever = ContextRetriever._around(self._inner.retriever, self.storage)

    @overload
    def store(self, content: str | Mapping[str, Any] | MemoryItem, **options: Unpack[StoredWith]) -> str: ...

    @overload
    def store(
        self, content: list[Any] | tuple[Any, ...], **options: Unpack[StoredWith]
    ) -> dict[str, Any]: ...

    def store(self, content: Document | Iterable[Document], **options: Unpack[StoredWith]) -> Any:
        """Store one text and return its id, or a list and return its count and the ids in order."""
        work: Any = self._inner.store
        return self.storage.wait(lambda: work(content, **options))

    retrieve = blocking(AsyncAgentContext.retrieve)
    query_with_context = blocking(AsyncAgentContext.query_with_context)
    get_neighbors = blocking(AsyncAgentContext.get_neighbors)
    link = blocking(AsyncAgentContext.link)
    build_graph = blocking(AsyncAgentContext.build_graph)
