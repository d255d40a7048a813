"""Graphs as one person may read them: edges without evidence that the person may not read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import bound, role_on
from conspectus.access.reader import AuthorizedReader
from conspectus.deferred import dataclass
from conspectus.errors import NotFound
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.graph import (
    Edge,
    EdgePage,
    EntityCount,
    GraphSummary,
    Neighbor,
    Node,
    NodeEvent,
    NodePage,
    Traversal,
)
from conspectus.model.ids import ChunkId, SourceId
from conspectus.model.pages import pages
from conspectus.model.records import Source
from conspectus.model.trust import MinTrust, levels_from
from conspectus.ports.graphs import Graphs, Mentioned, MentionStore, TextPassage

GRAPH = "graph"
PREFIX = "graph/"
"""The prefix of graph sources, so that no graph takes the name of another source."""


def graph_source_name(graph: str) -> str:
    """Return the source name of a graph, given by its own name or by that of its source."""
    return graph if graph.startswith(PREFIX) else PREFIX + quote(graph, safe="", errors="surrogatepass")


class AuthorizedGraphs:
    """The graphs that one person may read."""

    def __init__(self, authorized: AuthorizedReader, graphs: Graphs) -> None:
        self._authorized = authorized
        self._graphs = graphs

    async def find(self, access: CollectionAccess, *names: str) -> Source | None:
        """Return the first graph with one of these ids or names; None if no readable one exists."""
        for name in names:
            source = await self._authorized.source(access, name)
            if source is not None and source.kind == GRAPH:
                return source
        return None

    async def visible(self, access: CollectionAccess) -> list[Source]:
        """Return the readable graphs of a collection, by name."""
        return [source for source in await self._authorized.sources(access) if source.kind == GRAPH]

    def of(self, access: CollectionAccess, sources: Sequence[Source]) -> "VisibleGraphs":
        """Return these graphs for reading. Raises NotFound for one that is not readable."""
        for source in sources:
            if source.collection != access.collection.id or role_on(access.roles, source.id) is None:
                raise NotFound("graph", source.name)
        return VisibleGraphs(access, tuple(sources), self._authorized, self._graphs)


@dataclass(frozen=True, slots=True)
class VisibleGraphs:
    """Readable graphs. All reads of graphs on behalf of a person use this class."""

    access: CollectionAccess
    sources: tuple[Source, ...]
    authorized: AuthorizedReader
    graphs: Graphs

    @property
    def ids(self) -> tuple[SourceId, ...]:
        """The ids, in the order given."""
        return tuple(source.id for source in self.sources)

    async def nodes_by_id(self, ids: Sequence[str]) -> Sequence[Node]:
        """Return the existing nodes in the order of `ids`; an id may exist in several graphs."""
        return await self.graphs.nodes_by_id(self.ids, ids)

    async def nodes(
        self,
        *,
        type: str | None = None,
        min_trust: MinTrust | None = None,
        after: str | None = None,
        limit: int,
    ) -> NodePage:
        """Return a page of nodes, by id and graph."""
        return await self.graphs.nodes(self.ids, type=type, min_trust=min_trust, after=after, limit=limit)

    async def edges(
        self,
        *,
        node: str | None = None,
        min_trust: MinTrust | None = None,
        after: str | None = None,
        limit: int,
    ) -> EdgePage:
        """Return a page of edges in the order of insertion: all, or those of one node."""
        page = await self.graphs.edges(self.ids, node=node, min_trust=min_trust, after=after, limit=limit)
        return replace(page, edges=tuple(await self._drop_hidden_evidence(page.edges)))

    async def edges_by_id(self, ids: Sequence[str]) -> list[Edge]:
        """Return the existing edges in the order of `ids`."""
        return await self._drop_hidden_evidence(await self.graphs.edges_by_id(self.ids, ids))

    async def nodes_by_name(self, keys: Sequence[str]) -> Sequence[tuple[str, Node]]:
        """Return the nodes with these names or aliases, each with its matching key."""
        return await self.graphs.nodes_by_name(self.ids, keys)

    async def nodes_by_terms(
        self, words: Sequence[str], *, min_trust: MinTrust | None = None, limit: int
    ) -> Sequence[tuple[Node, int]]:
        """Return nodes with any of these terms, and the number of terms that match."""
        return await self.graphs.nodes_by_terms(self.ids, words, min_trust=min_trust, limit=limit)

    async def walk(self, starts: Sequence[str], walk: Traversal) -> Sequence[Neighbor]:
        """Return the neighbors that a traversal reaches from any start, with the levels of the steps."""
        return await self.graphs.walk(self.ids, starts, walk, with_levels=True)

    async def summaries(self) -> list[GraphSummary]:
        """Return a summary of each graph."""
        return [await self.graphs.summary(graph) for graph in self.ids]

    async def read_graph_at(
        self, instant: datetime, min_trust: MinTrust | None = None
    ) -> tuple[list[Node], list[Edge]]:
        """Return the nodes of an instant, and the edges between them."""
        nodes: list[Node] = []
        edges: list[Edge] = []
        for graph in self.ids:
            graph_nodes, graph_edges = await self.graphs.read_at(graph, instant)
            nodes += graph_nodes
            edges += await self._drop_hidden_evidence(graph_edges)
        levels = levels_from(min_trust)
        trusted_nodes = [node for node in nodes if node.trust in levels]
        return trusted_nodes, _select_inner_edges(
            trusted_nodes, [edge for edge in edges if edge.trust in levels]
        )

    async def read_whole_graph(
        self, *, by: int, min_trust: MinTrust | None = None
    ) -> tuple[list[Node], list[Edge]]:
        """Return all nodes and the edges between them, read in pages of `by`."""
        options: dict[str, Any] = {"min_trust": min_trust, "limit": by}
        nodes = [node async for page in pages(self.nodes, **options) for node in page.nodes]
        edges = [edge async for page in pages(self.edges, **options) for edge in page.edges]
        return nodes, _select_inner_edges(nodes, edges)

    async def events(self, node: str | None) -> list[NodeEvent]:
        """Return merges and splits in order, all or those of one node."""
        return [event for graph in self.ids for event in await self.graphs.events(graph, node=node)]

    async def _drop_hidden_evidence(self, edges: Sequence[Edge]) -> list[Edge]:
        evidence = dict.fromkeys(edge.evidence for edge in edges if edge.evidence is not None)
        if not evidence:
            return list(edges)
        documents = await self.authorized.inside(self.access, list(evidence))
        readable = {document.id for document in documents}
        return [edge if edge.evidence in readable else replace(edge, evidence=None) for edge in edges]


def _select_inner_edges(nodes: Sequence[Node], edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges of which both ends are among the nodes."""
    ends = {(node.graph.id, node.id) for node in nodes}
    return [
        edge
        for edge in edges
        if (edge.graph.id, edge.source) in ends and (edge.graph.id, edge.target) in ends
    ]


class AuthorizedMentions:
    """The entity mentions of passages that one person may read and a filter admits."""

    def __init__(self, names: MentionStore, access: CollectionAccess, where: Filter = EVERYTHING) -> None:
        self._names = names
        self._access = access
        within = bound(access.restrict_filter(where))
        self._sources = None if within is None else sorted(within)
        self._counted = self._sources
        if within is not None and access.roles.verified:
            self._counted = sorted(within - access.roles.verified.keys())

    async def of(self, chunks: Sequence[ChunkId]) -> Sequence[TextPassage]:
        """Return the mentions of passages that were read before."""
        return await self._names.of(chunks)

    async def passages(self, keys: Mapping[str, int], *, maximum: int) -> Mapping[str, Mentioned]:
        """Return the passages that mention these names, except names with more than `maximum` passages.

        Of a name with more passages than its number, only those about it are returned.
        """
        return await self._names.passages(self._sources, self._access.collection.id, keys, maximum=maximum)

    async def counts(self, *, begins: str, limit: int) -> Sequence[EntityCount]:
        """Return the entities with the most passages among those whose key has a prefix.

        Passages that a remote would have to be asked for do not count.
        """
        return await self._names.counts(self._counted, self._access.collection.id, begins=begins, limit=limit)

    async def has_pending(self) -> bool:
        """Return whether any passage is pending; False unless the person may read all of the collection."""
        return self._access.sees_all and await self._names.has_unread(self._access.collection.id)


async def visible_graphs(
    authorized: AuthorizedReader, access: CollectionAccess, where: Filter, named: Sequence[str] | None
) -> list[SourceId]:
    """Return the graphs that may be traversed: the named ones, or by default all that the filter admits.

    Raises NotFound for a name without a readable graph.
    """
    if named is not None:
        return await _find_sources(authorized, access, named)
    within = bound(access.restrict_filter(where))
    graphs = [source.id for source in await authorized.sources(access) if source.kind == GRAPH]
    return [graph for graph in graphs if within is None or graph in within]


async def _find_sources(
    authorized: AuthorizedReader, access: CollectionAccess, names: Sequence[str]
) -> list[SourceId]:
    if not names:
        return []
    source_names = {name: graph_source_name(name) for name in names}
    sources = await authorized.sources_by_name(access, [*names, *source_names.values()])
    graphs = [source for source in sources if source.kind == GRAPH]
    readable = {graph.id for graph in graphs} | {graph.name for graph in graphs}
    for name, source_name in source_names.items():
        if readable.isdisjoint({name, source_name}):
            raise NotFound("graph", name)
    return [graph.id for graph in graphs]
