"""The port `Graphs` on SQL."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from conspectus.model.graph import GraphWritten, Neighbor, Traversal
from conspectus.model.ids import SourceId
from conspectus.ports.graphs import Adding
from conspectus.records.core.store_methods import MAX_SHORT_WRITE_ROWS, SqlStore, reading, writing
from conspectus.records.core.transactions import Transactions
from conspectus.records.graph import traversal, writes
from conspectus.records.graph.deletion import delete_edges, delete_nodes
from conspectus.records.graph.merges import merge, split
from conspectus.records.graph.reads import (
    edge_page,
    edges_by_id,
    event_list,
    node_page,
    nodes_by_id,
    nodes_by_name,
    nodes_by_terms,
    read_at,
    summary,
)
from conspectus.records.tables.core import sources


class SqlGraphs(SqlStore):
    """The methods of the port `Graphs`, each as one transaction; a traversal reaches `maximum` nodes."""

    def __init__(self, transactions: Transactions, *, maximum: int = 10_000) -> None:
        super().__init__(transactions)
        self._maximum = maximum

    async def add(self, adding: Adding) -> Sequence[GraphWritten]:
        long = len(adding.nodes) + len(adding.edges) > MAX_SHORT_WRITE_ROWS
        graphs = [*(node.graph for node in adding.nodes), *(edge.graph for edge in adding.edges)]
        locks = {graph.collection for graph in graphs}
        return await self.transactions.write(partial(writes.add, adding=adding), locks=locks, long=long)

    nodes_by_id = reading(nodes_by_id)
    nodes = reading(node_page)
    edges = reading(edge_page)
    edges_by_id = reading(edges_by_id)
    nodes_by_name = reading(nodes_by_name)
    nodes_by_terms = reading(nodes_by_terms)

    async def walk(
        self,
        graphs: Sequence[SourceId],
        starts: Sequence[str],
        walk: Traversal,
        *,
        as_of: datetime | None = None,
        with_levels: bool = False,
    ) -> Sequence[Neighbor]:
        bounds = traversal.Bounds(self._maximum, as_of, with_levels)
        return await self.transactions.read(
            partial(traversal.walk, graphs=graphs, starts=starts, traversal=walk, bounds=bounds)
        )

    withdraw = writing(writes.withdraw, rows=sources)
    delete_nodes = writing(delete_nodes, rows=sources, long=True)
    delete_edges = writing(delete_edges, rows=sources)
    summary = reading(summary)
    read_at = reading(read_at)
    merge = writing(merge, rows=sources)
    split = writing(split, rows=sources)
    events = reading(event_list)
