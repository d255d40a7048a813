"""What an agent's memory needs of an engine, be it in this process or on a server."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol, Unpack

from conspectus.model.filter import Filter
from conspectus.model.graph import (
    EdgePage,
    EntityLink,
    GraphForm,
    GraphReceipt,
    GraphState,
    GraphSummary,
    GraphWritten,
    Mention,
    Neighbor,
    NewEdge,
    NewNode,
    Node,
    NodeEvent,
    NodeHit,
    NodePage,
    Traversal,
)
from conspectus.model.memory import (
    ConversationSummary,
    Memory,
    MemoryClass,
    MemoryExport,
    MemoryPage,
    MemoryQuery,
    MemoryReceipt,
    MemoryRetrieval,
    MemorySelection,
    MemoryStats,
    MemoryWindow,
    MemoryWritten,
    NewMemory,
    Paging,
    RecentMemory,
    Retention,
    Scope,
)
from conspectus.model.query import Budget
from conspectus.model.records import Collection, Source, Written
from conspectus.ports import CountTokens


class GraphEngine(Protocol):
    """The methods of Engine and of RemoteEngine that graphs are made of."""

    async def graph(self, name: str = ..., *, collection: str = ...) -> Source:
        """The graph of that name, made if it is new."""
        ...

    async def graphs(self, *, collection: str = ...) -> Sequence[GraphSummary]:
        """All graphs that may be seen, in numbers."""
        ...

    async def delete_graph(self, graph: str, *, collection: str = ...) -> GraphReceipt:
        """Delete a graph."""
        ...

    async def add_nodes(
        self, nodes: Iterable[NewNode], *, graph: str = ..., collection: str = ...
    ) -> list[GraphWritten]:
        """Store nodes."""
        ...

    async def add_edges(
        self, edges: Iterable[NewEdge], *, graph: str = ..., collection: str = ...
    ) -> list[GraphWritten]:
        """Store edges."""
        ...

    async def node(self, node: str, *, graph: str = ..., collection: str = ...) -> Node:
        """A node."""
        ...

    async def nodes(
        self,
        *,
        graph: str = ...,
        collection: str = ...,
        type: str | None = ...,
        after: str | None = ...,
        limit: int = ...,
    ) -> NodePage:
        """A page of nodes."""
        ...

    async def edges(
        self,
        *,
        graph: str = ...,
        collection: str = ...,
        node: str | None = ...,
        after: str | None = ...,
        limit: int = ...,
    ) -> EdgePage:
        """A page of edges."""
        ...

    async def delete_nodes(
        self, nodes: Sequence[str], *, graph: str = ..., collection: str = ...
    ) -> GraphReceipt:
        """Delete nodes with their edges."""
        ...

    async def delete_edges(
        self, edges: Sequence[str], *, graph: str = ..., collection: str = ...
    ) -> GraphReceipt:
        """Delete edges."""
        ...

    async def neighbours(
        self, node: str, walk: Traversal = ..., *, graph: str = ..., collection: str = ...
    ) -> list[Neighbor]:
        """What is reached from a node."""
        ...

    async def find_nodes(
        self, query: str, *, graph: str = ..., collection: str = ..., limit: int = ...
    ) -> list[NodeHit]:
        """The nodes that a question is about."""
        ...

    async def graph_at(self, at: datetime, *, graph: str = ..., collection: str = ...) -> GraphState:
        """What a graph was at an instant."""
        ...

    async def export_graph(
        self, form: GraphForm = ..., *, graph: str = ..., collection: str = ..., at: datetime | None = ...
    ) -> str:
        """A graph as a text."""
        ...

    async def find_names(self, text: str, *, collection: str = ...) -> list[Mention]:
        """The names in a text."""
        ...

    async def link(
        self,
        text: str,
        *,
        graph: str = ...,
        collection: str = ...,
        mention: tuple[int, int] | None = ...,
        threshold: float | None = ...,
    ) -> list[EntityLink]:
        """What the names in a text mean."""
        ...

    async def merge_nodes(
        self, keep: str, others: Sequence[str], *, graph: str = ..., collection: str = ..., reason: str = ...
    ) -> Node:
        """Make several nodes one."""
        ...

    async def split_node(
        self, merge: int, *, graph: str = ..., collection: str = ..., reason: str = ...
    ) -> list[Node]:
        """Undo a merge."""
        ...

    async def node_history(
        self, node: str | None = ..., *, graph: str = ..., collection: str = ...
    ) -> list[NodeEvent]:
        """Merges and splits in order."""
        ...


class AgentEngine(GraphEngine, Protocol):
    """Those that an agent's memory is made of."""

    async def collection(self, name: str = ..., *, words_only: bool = ...) -> Collection:
        """The collection of that name, made if it is new."""
        ...

    async def find_collection(self, name: str) -> Collection:
        """The collection of that name."""
        ...

    async def keep_names(self, on: bool = ..., *, collection: str = ...) -> Collection:
        """Look through passages for names."""
        ...

    async def settle_names(self, *, collection: str = ...) -> int:
        """Wait until all passages are looked through."""
        ...

    async def settle(self, *, collection: str = ...) -> int:
        """Wait until every passage has its vector."""
        ...

    async def remember(
        self, memories: Iterable[NewMemory], *, scope: Scope, collection: str = ..., wait: bool = ...
    ) -> list[MemoryWritten]:
        """Keep memories."""
        ...

    async def recall(self, question: MemoryQuery) -> MemoryRetrieval:
        """The memories that answer a question."""
        ...

    async def memory_window(self, question: MemoryQuery, budget: int | Budget) -> MemoryWindow:
        """Context from memory."""
        ...

    async def recent_memories(
        self,
        *,
        scope: Scope,
        collection: str = ...,
        turns: int | None = ...,
        tokens: int | None = ...,
        tokenizer: str = ...,
    ) -> list[RecentMemory]:
        """The last turns, oldest first."""
        ...

    async def memory(self, memory: str, *, scope: Scope, collection: str = ...) -> Memory:
        """A memory."""
        ...

    async def memory_versions(self, memory: str, *, scope: Scope, collection: str = ...) -> list[Memory]:
        """What a memory was, oldest first."""
        ...

    async def memories(
        self,
        *,
        scope: Scope,
        collection: str = ...,
        kind: MemoryClass | None = ...,
        entity: str | None = ...,
        **paging: Unpack[Paging],
    ) -> MemoryPage:
        """A page of memories in the order of time."""
        ...

    async def count_memories(self, *, scope: Scope, collection: str = ..., where: Filter = ...) -> int:
        """How many memories match."""
        ...

    async def update_memory(
        self, memory: str, *, scope: Scope, collection: str = ..., **changes: Any
    ) -> Written:
        """Change a memory."""
        ...

    async def forget(
        self,
        what: MemorySelection,
        *,
        scope: Scope,
        collection: str = ...,
        preview: bool = ...,
        purge: bool = ...,
    ) -> MemoryReceipt:
        """Delete memories."""
        ...

    async def retain(self, retention: Retention | None, *, scope: Scope, collection: str = ...) -> None:
        """Keep a retention for a scope."""
        ...

    async def apply_retention(
        self, *, collection: str = ..., scope: Scope | None = ..., preview: bool = ...
    ) -> MemoryReceipt:
        """Delete what retentions say."""
        ...

    async def conversations(self, *, scope: Scope, collection: str = ...) -> Sequence[ConversationSummary]:
        """The conversations of a scope."""
        ...

    async def memory_stats(self, *, scope: Scope, collection: str = ...) -> MemoryStats:
        """A scope in numbers."""
        ...

    async def export_memories(
        self, *, scope: Scope, collection: str = ..., after: str | None = ..., limit: int | None = ...
    ) -> MemoryExport:
        """Memories as lines of JSON."""
        ...

    async def import_memories(
        self, lines: str | Iterable[str], *, collection: str = ..., scope: Scope | None = ...
    ) -> list[MemoryWritten]:
        """Take in such lines."""
        ...

    def counter(self, tokenizer: str = ...) -> CountTokens:
        """What counts tokens."""
        ...
