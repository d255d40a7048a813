"""Graphs on the same database as everything else."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from conspectus.model.graph import (
    Edge,
    EdgePage,
    GraphReceipt,
    GraphSummary,
    GraphWritten,
    Neighbor,
    Node,
    NodeEvent,
    NodePage,
    Traversal,
)
from conspectus.model.ids import DocumentId, SourceId
from conspectus.ports.graphs import Adding
from conspectus.records.core.transactions import FEW, Transactions
from conspectus.records.graph import deletion, merges, reads, traversal, writes


class SqlGraphs:
    """Every method of the port `Graphs` as one transaction; a walk reaches at most `most` nodes."""

    def __init__(self, transactions: Transactions, *, most: int = 10_000) -> None:
        self._read = transactions.read
        self._write = transactions.write
        self._most = most

    async def add(self, adding: Adding) -> Sequence[GraphWritten]:
        """Store nodes, then edges, all or nothing. Raises NotFound and DanglingEdges."""
        long = len(adding.nodes) + len(adding.edges) > FEW
        return await self._write(partial(writes.add, adding=adding), long=long)

    async def nodes_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Node]:
        """Those nodes that exist, in the order asked; of one id in several graphs each."""
        return await self._read(partial(reads.nodes_by_id, graphs=graphs, ids=ids))

    async def nodes(
        self, graphs: Sequence[SourceId], *, type: str | None = None, after: str | None = None, limit: int
    ) -> NodePage:
        """A page of nodes, by id and graph. Raises InvalidInput."""
        work = partial(reads.node_page, graphs=graphs, type=type, after=after, limit=limit)
        return await self._read(work)

    async def edges(
        self, graphs: Sequence[SourceId], *, node: str | None = None, after: str | None = None, limit: int
    ) -> EdgePage:
        """A page of edges in order of recording, all or those of one node. Raises InvalidInput."""
        work = partial(reads.edge_page, graphs=graphs, node=node, after=after, limit=limit)
        return await self._read(work)

    async def edges_by_id(self, graphs: Sequence[SourceId], ids: Sequence[str]) -> Sequence[Edge]:
        """Those edges that exist, in the order asked."""
        return await self._read(partial(reads.edges_by_id, graphs=graphs, ids=ids))

    async def called(self, graphs: Sequence[SourceId], keys: Sequence[str]) -> Sequence[tuple[str, Node]]:
        """The nodes that have one of these names or aliases, each with the key that it was found by."""
        return await self._read(partial(reads.called, graphs=graphs, keys=keys))

    async def named_like(
        self, graphs: Sequence[SourceId], words: Sequence[str], *, limit: int
    ) -> Sequence[tuple[Node, int]]:
        """Nodes that are found by any of these terms, with how many of them; those with most come first."""
        return await self._read(partial(reads.named_like, graphs=graphs, words=words, limit=limit))

    async def walk(
        self,
        graphs: Sequence[SourceId],
        starts: Sequence[str],
        walk: Traversal,
        *,
        known: datetime | None = None,
    ) -> Sequence[Neighbor]:
        """What is reached from any of the starts, nearest first and then by decay."""
        bounds = traversal.Bounds(self._most, known)
        return await self._read(
            partial(traversal.walk, graphs=graphs, starts=starts, asked=walk, bounds=bounds)
        )

    async def delete_nodes(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        """Delete nodes with their edges; unknown ids count 0."""
        return await self._write(partial(deletion.delete_nodes, graph=graph, ids=ids), long=True)

    async def delete_edges(self, graph: SourceId, ids: Sequence[str]) -> GraphReceipt:
        """Delete edges by id; unknown ids count 0."""
        return await self._write(partial(deletion.delete_edges, graph=graph, ids=ids), long=len(ids) > FEW)

    async def resting_on(self, documents: Sequence[DocumentId]) -> int:
        """How many edges have no evidence but these documents."""
        return await self._read(partial(reads.resting_on, ids=documents))

    async def summary(self, graph: SourceId) -> GraphSummary:
        """A graph in numbers. Raises NotFound."""
        return await self._read(partial(reads.summary, graph=graph))

    async def at(self, graph: SourceId, instant: datetime) -> tuple[Sequence[Node], Sequence[Edge]]:
        """The nodes there were at an instant, and the edges of which both ends were there."""
        return await self._read(partial(reads.at, graph=graph, instant=instant))

    async def merge(self, graph: SourceId, keep: str, others: Sequence[str], event: NodeEvent) -> Node:
        """Make several nodes one. Raises NotFound."""
        work = partial(merges.merge, graph=graph, keep=keep, others=others, event=event)
        return await self._write(work)

    async def split(self, graph: SourceId, merge: int, event: NodeEvent) -> Sequence[Node]:
        """Undo a merge by its number. Raises NotFound or Conflict."""
        return await self._write(partial(merges.split, graph=graph, merge=merge, event=event))

    async def events(self, graph: SourceId, *, node: str | None = None) -> Sequence[NodeEvent]:
        """Merges and splits in order, all or those of one node."""
        return await self._read(partial(reads.event_list, graph=graph, node=node))
