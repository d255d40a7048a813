"""Graphs on the same database as everything else."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from conspectus.model.graph import (
    GraphWritten,
    Neighbor,
    Traversal,
)
from conspectus.model.ids import SourceId
from conspectus.ports.graphs import Adding
from conspectus.records.core.transactions import FEW, SqlStore, Transactions, reading, writing
from conspectus.records.graph import reads, writes
from conspectus.records.graph.merges import merge, split
from conspectus.records.graph.reads import (
    at,
    called,
    edge_page,
    edges_by_id,
    event_list,
    named_like,
    node_page,
    nodes_by_id,
    resting_on,
    summary,
)
from conspectus.records.graph.writes import delete_edges, delete_nodes


class SqlGraphs(SqlStore):
    """Every method of the port `Graphs` as one transaction; a walk reaches at most `most` nodes."""

    def __init__(self, transactions: Transactions, *, most: int = 10_000) -> None:
        super().__init__(transactions)
        self._most = most

    async def add(self, adding: Adding) -> Sequence[GraphWritten]:
        """Store nodes, then edges, all or nothing. Raises NotFound and DanglingEdges."""
        long = len(adding.nodes) + len(adding.edges) > FEW
        return await self.transactions.write(partial(writes.add, adding=adding), long=long)

    nodes_by_id = reading(nodes_by_id)
    nodes = reading(node_page)
    edges = reading(edge_page)
    edges_by_id = reading(edges_by_id)
    called = reading(called)
    named_like = reading(named_like)

    async def walk(
        self,
        graphs: Sequence[SourceId],
        starts: Sequence[str],
        walk: Traversal,
        *,
        known: datetime | None = None,
    ) -> Sequence[Neighbor]:
        """What is reached from any of the starts, nearest first and then by decay."""
        bounds = reads.Bounds(self._most, known)
        return await self.transactions.read(
            partial(reads.walk, graphs=graphs, starts=starts, asked=walk, bounds=bounds)
        )

    delete_nodes = writing(delete_nodes, long=True)
    delete_edges = writing(delete_edges)
    resting_on = reading(resting_on)
    summary = reading(summary)
    at = reading(at)
    merge = writing(merge)
    split = writing(split)
    events = reading(event_list)
