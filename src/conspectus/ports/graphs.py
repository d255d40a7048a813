"""The ports of the graph: nodes and edges, entity mentions, and entity extraction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from conspectus.model.graph import (
    Edge,
    EdgePage,
    EntityCount,
    GraphReceipt,
    GraphSummary,
    GraphWritten,
    Mention,
    Neighbor,
    Node,
    NodeEvent,
    NodePage,
    Traversal,
)
from conspectus.model.ids import ChunkId, CollectionId, SourceId

SUBJECT = "subject"
"""The type of a mention in a document's title or fact: the subject of its first passage."""


@dataclass(frozen=True, slots=True)
class Adding:
    """Nodes or edges ready to be stored: their final form, and which of them end others.

    Ids and times are assigned already. `single` are the ids of edges that end the open edges of the same
    source and type that began no later and lead to another node. `keys` are the normalized names of each
    node, `terms` its searchable words. `passing` are the ids of nodes that are only added if they are
    missing, and that are deleted with their last edge when its document is deleted.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    single: frozenset[str] = frozenset()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    passing: frozenset[str] = frozenset()


class Graphs(Protocol):
    """Part of the system of record. A graph is a source of the kind `graph`. Each method is one transaction.

    Reads take the readable graphs; nodes of the same id in several of them are traversed as one.
    """

    async def add(self, adding: Adding) -> Sequence[GraphWritten]:
        """Store nodes, then edges, all or none, in order.

        An edge is identified by its id. If it is given again, it keeps its recording time, and stays ended if
        another edge ended it. A single-valued edge is also ended by the next one that began later, so that
        facts may come in any order. Each new `evidence` is added to the earlier ones; the edge is deleted
        with the last of them, unless it was also given without evidence. Raises NotFound for a deleted graph,
        and DanglingEdges with every end that is not a node of its graph.
        """
        ...

    async def nodes_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Node]:
        """Return the nodes that exist, in the given order; an id may be in several graphs."""
        ...

    async def nodes(
        self, graphs: Sequence[SourceId], *, type: str | None = None, after: str | None = None, limit: int
    ) -> NodePage:
        """Return a page of nodes, by id and graph."""
        ...

    async def edges(
        self, graphs: Sequence[SourceId], *, node: str | None = None, after: str | None = None, limit: int
    ) -> EdgePage:
        """List a page of edges in the order in which they were added: all, or those of one node."""
        ...

    async def edges_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Edge]:
        """Return the edges that exist, in the given order."""
        ...

    async def nodes_by_name(
        self, graphs: Sequence[SourceId], keys: Sequence[str]
    ) -> Sequence[tuple[str, Node]]:
        """Return the nodes with one of these names or aliases, each with the matched key."""
        ...

    async def nodes_by_terms(
        self, graphs: Sequence[SourceId], words: Sequence[str], *, limit: int
    ) -> Sequence[tuple[Node, int]]:
        """Return nodes with any of these terms in names, aliases or text properties, with the count.

        Terms are whole words as in the keyword index; nodes with most terms come first.
        """
        ...

    async def walk(
        self,
        graphs: Sequence[SourceId],
        starts: Sequence[str],
        walk: Traversal,
        *,
        known: datetime | None = None,
    ) -> Sequence[Neighbor]:
        """Return the nodes reachable from any start, nearest first and then by decay, without the starts.

        Each node occurs once, with the path of the fewest hops and of these the highest decay. With `known`,
        only nodes and edges that were recorded by then.
        """
        ...

    async def delete_nodes(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        """Delete nodes with their edges. Unknown ids count 0."""
        ...

    async def delete_edges(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        """Delete edges by id. Unknown ids count 0."""
        ...

    async def summary(self, graph: SourceId) -> GraphSummary:
        """Return the counts of a graph. Raises NotFound."""
        ...

    async def at(self, graph: SourceId, instant: datetime) -> tuple[Sequence[Node], Sequence[Edge]]:
        """Return the nodes valid at an instant, and the edges with both ends valid."""
        ...

    async def merge(self, graph: SourceId, keep: str, others: Sequence[str], event: NodeEvent) -> Node:
        """Merge nodes into one: the names of the others become aliases, and their edges are moved to it.

        The former state is stored with the event, so that `split` can restore it. Raises NotFound.
        """
        ...

    async def split(self, graph: SourceId, merge: int, event: NodeEvent) -> Sequence[Node]:
        """Undo a merge by its number: restore the nodes and their edges.

        Raises NotFound, or Conflict if one of them exists again.
        """
        ...

    async def events(self, graph: SourceId, *, node: str | None = None) -> Sequence[NodeEvent]:
        """Return merges and splits in order: all, or those of one node."""
        ...


@dataclass(frozen=True, slots=True)
class TextPassage:
    """A passage with mentions, each with its spelling; `about` are those that are its title."""

    chunk: ChunkId
    names: Mapping[str, str]
    about: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Mentioned:
    """The passages that mention a name, ascending, and those among them that have it as their title."""

    chunks: tuple[ChunkId, ...]
    about: frozenset[ChunkId] = frozenset()


@dataclass(frozen=True, slots=True)
class Unread:
    """A passage without extracted entities; the first one of a document comes with its title.

    The first of a memory comes with the entities that its fact is `about`, and its given `entities`.
    """

    chunk: ChunkId
    title: str
    text: str
    about: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


class MentionStore(Protocol):
    """Mentions of entities in passages. They are deleted with their chunks."""

    async def of(self, chunks: Sequence[ChunkId]) -> Sequence[TextPassage]:
        """Return the mentions in these passages, without passages that have none."""
        ...

    async def passages(
        self,
        sources: Sequence[SourceId] | None,
        collection: CollectionId,
        keys: Sequence[str],
        *,
        maximum: int,
        few: int,
    ) -> Mapping[str, Mentioned]:
        """Return for each name the passages of these sources (None: of the collection) that mention it.

        A name in more than `maximum` passages is skipped, since it is not distinctive. For a name in more
        than `few`, only passages with it as their title are returned.
        """
        ...

    async def counts(
        self, sources: Sequence[SourceId] | None, collection: CollectionId, *, begins: str, limit: int
    ) -> Sequence[EntityCount]:
        """Return the names with the most passages, optionally with a key prefix."""
        ...

    async def put(self, collection: CollectionId, found: Mapping[ChunkId, Sequence[Mention]]) -> int:
        """Replace the mentions of passages. Returns their number.

        The first mention of a name in a passage is stored; mentions of the type `subject` are what it is
        about. Deleted chunks, and those of collections without entity extraction, are ignored. All chunks up
        to the last one count as processed.
        """
        ...

    async def unread(self, collection: CollectionId, *, limit: int) -> Sequence[Unread]:
        """Return passages without extracted entities of a collection with extraction, oldest first."""
        ...

    async def has_unread(self, collection: CollectionId) -> bool:
        """Return whether `unread` would return any."""
        ...

    async def count_unread(self, collection: CollectionId) -> int:
        """Return how many passages `unread` would return."""
        ...

    async def enable(self, collection: CollectionId, on: bool) -> None:
        """Enable entity extraction of a collection, from its first passage on, or disable it. Raises
        NotFound.

        Disabling it deletes the mentions.
        """
        ...


class EntityExtractor(Protocol):
    """Finds mentions of entities in texts."""

    @property
    def name(self) -> str:
        """The name in settings and reports."""
        ...

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        """Return the mentions in each text, in order and without overlaps. Raises ProviderError."""
        ...

    async def close(self) -> None:
        """Close open resources."""
        ...
