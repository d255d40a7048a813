"""The ports of the graph: nodes and edges, names that passages mention, and what finds names in texts."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Protocol

from conspectus.deferred import dataclass
from conspectus.model.graph import (
    Edge,
    EdgePage,
    EntityCount,
    GraphReceipt,
    GraphSummary,
    GraphWritten,
    Neighbor,
    Node,
    NodeEvent,
    NodePage,
    Traversal,
)
from conspectus.model.ids import ChunkId, CollectionId, SourceId
from conspectus.model.records import Mention
from conspectus.model.trust import MinTrust, Origin

SUBJECT = "subject"
"""The type of a name that is the title of a document, or in its fact: what its first passage is about."""


@dataclass(frozen=True, slots=True)
class Adding:
    """Nodes or edges that are ready to be stored: their final form, and which of them end others.

    Ids and times are those given here; `single` are the ids of edges that end the open edges of the same
    source and type that began no later and lead to another node. `keys` are the names of each node as names
    are compared, `terms` the words by which it is found. `passing` are the ids of nodes that are only added
    if they are missing, and that are deleted with their last edge when its document is deleted.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    single: frozenset[str] = frozenset()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    passing: frozenset[str] = frozenset()


class Graphs(Protocol):
    """Part of the system of record: a graph is a source of the kind `graph`. Each method is one transaction.

    Readers take the graphs that may be seen; nodes of the same id in several of them are walked as one.
    """

    async def add(self, adding: Adding) -> Sequence[GraphWritten]:
        """Store nodes, then edges, all or nothing, in the order given.

        An edge is identified by its id. If it is given again, it keeps the time when it was recorded, and
        stays ended if another edge ended it. A single one also is ended by the next single one that began
        later, so that facts may come in any order. Each new `evidence` is added to the earlier ones; the edge
        is deleted with the last of them, unless it was also given without evidence. Raises NotFound for a
        deleted graph, and DanglingEdges with every end that is not a node of its graph.
        """

    async def nodes_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Node]:
        """Those nodes that exist, in the order asked; of one id in several graphs each."""

    async def nodes(
        self,
        graphs: Sequence[SourceId],
        *,
        type: str | None = None,
        min_trust: MinTrust | None = None,
        after: str | None = None,
        limit: int,
    ) -> NodePage:
        """A page of nodes, by id and graph."""

    async def edges(
        self,
        graphs: Sequence[SourceId],
        *,
        node: str | None = None,
        min_trust: MinTrust | None = None,
        after: str | None = None,
        limit: int,
    ) -> EdgePage:
        """List a page of edges in the order in which they were added: all, or those of one node."""

    async def edges_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Edge]:
        """Those edges that exist, in the order asked."""

    async def nodes_by_name(
        self, graphs: Sequence[SourceId], keys: Sequence[str]
    ) -> Sequence[tuple[str, Node]]:
        """The nodes that have one of these names or aliases, each with the key that it was found by."""

    async def nodes_by_terms(
        self,
        graphs: Sequence[SourceId],
        words: Sequence[str],
        *,
        min_trust: MinTrust | None = None,
        limit: int,
    ) -> Sequence[tuple[Node, int]]:
        """Nodes whose names, aliases or text properties have any of these terms, with how many of them.

        Terms are whole words as the word index has them; those with most come first.
        """

    async def walk(
        self,
        graphs: Sequence[SourceId],
        starts: Sequence[str],
        walk: Traversal,
        *,
        as_of: datetime | None = None,
        with_levels: bool = False,
    ) -> Sequence[Neighbor]:
        """The nodes reachable from any of the starts, nearest first and then by decay, without the starts.

        Each node occurs once, with the path of the fewest hops and of these the highest decay. With `as_of`,
        only nodes and edges that were recorded by then. With `with_levels`, steps have the levels of their
        edges.
        """

    async def withdraw(
        self, graph: SourceId, edge: str, *, ends: datetime | None
    ) -> Sequence[tuple[str, str | None]]:
        """Have an edge supersede nothing any more, and end it unless it has an end (None: leave it open).

        What it had ended is valid again, or until the next single edge of its relation begins. Returns the
        ids of these edges, each with the one that ends it now.
        """

    async def delete_nodes(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        """Delete nodes with their edges; unknown ids count 0."""

    async def delete_edges(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        """Delete edges by id; unknown ids count 0."""

    async def summary(self, graph: SourceId) -> GraphSummary:
        """A graph in numbers. Raises NotFound."""

    async def read_at(self, graph: SourceId, instant: datetime) -> tuple[Sequence[Node], Sequence[Edge]]:
        """The nodes there were at an instant, and the edges of which both ends were there."""

    async def merge(
        self,
        graph: SourceId,
        keep: str,
        others: Sequence[str],
        event: NodeEvent,
        *,
        origin: Origin = "user",
    ) -> Node:
        """Make several nodes one: the others' names become aliases, their edges are the kept one's.

        The kept one has the lowest level of all of them and of texts of the writer's `origin`, and its edges
        at most that of the writer.

        What there was before is kept with the event, so that `split` can bring it back. Raises NotFound.
        """

    async def split(self, graph: SourceId, merge: int, event: NodeEvent) -> Sequence[Node]:
        """Undo a merge by its number: the nodes as they were, with their edges.

        Raises NotFound, or Conflict where one of them is there again.
        """

    async def events(self, graph: SourceId, *, node: str | None = None) -> Sequence[NodeEvent]:
        """Merges and splits in order, all or those of one node."""


@dataclass(frozen=True, slots=True)
class TextPassage:
    """A passage that mentions names, each with how it spells it; `about` are those that are its title."""

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
    """A passage whose entities are not extracted yet; the first of a document comes with its title.

    The first of a memory comes with the entities that its fact is `about`, and those that it was `told` to
    mention.
    """

    chunk: ChunkId
    title: str
    text: str
    about: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


class MentionStore(Protocol):
    """Mentions of entities in passages: rows that are deleted with their chunks."""

    async def of(self, chunks: Sequence[ChunkId]) -> Sequence[TextPassage]:
        """The names in these passages; those without any are left out."""

    async def passages(
        self,
        sources: Sequence[SourceId] | None,
        collection: CollectionId,
        keys: Mapping[str, int],
        *,
        maximum: int,
    ) -> Mapping[str, Mentioned]:
        """For each name the passages of these sources (None: of the whole collection) that mention it.

        `keys` gives each name a number of passages. A name with more than `maximum` passages is left out; for
        one with more than its number, only the passages that have it as their title are returned.
        """

    async def counts(
        self, sources: Sequence[SourceId] | None, collection: CollectionId, *, begins: str, limit: int
    ) -> Sequence[EntityCount]:
        """The names that most passages mention, those whose key begins so."""

    async def put(self, collection: CollectionId, mentions: Mapping[ChunkId, Sequence[Mention]]) -> int:
        """Replace the mentions of passages, and return their number.

        The first mention of a name in a passage is stored; mentions of the type `subject` are what it is
        about. Deleted chunks, and those of collections without entity extraction, are ignored. All up to the
        last count as processed.
        """

    async def unread(self, collection: CollectionId, *, limit: int) -> Sequence[Unread]:
        """Passages of a collection that keeps names in which no name was looked for yet, oldest first."""

    async def has_unread(self, collection: CollectionId) -> bool:
        """Whether `unread` has any to give."""

    async def count_unread(self, collection: CollectionId) -> int:
        """How many passages `unread` has still to give."""

    async def enable(self, collection: CollectionId, on: bool) -> None:
        """Turn entity extraction of a collection on, from its first passage on, or off. Raises NotFound.

        Turning it off deletes the mentions.
        """


class EntityExtractor(Protocol):
    """Finds names in texts."""

    @property
    def name(self) -> str:
        """Its name in settings and reports."""

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        """For each text its names, in order and without overlaps. Raises ProviderError."""

    async def close(self) -> None:
        """Release what it holds."""
