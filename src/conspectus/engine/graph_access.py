"""Graph permissions of one user: readable nodes and edges, and permitted writes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.graph_reader import (
    AuthorizedGraphs,
    AuthorizedMentions,
    VisibleGraphs,
    graph_source_name,
)
from conspectus.access.policy import require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.core import EngineCore
from conspectus.engine.graph_entries import Entries
from conspectus.engine.service import Service
from conspectus.errors import Conflict, InvalidInput, NotFound, TooLarge
from conspectus.graph.expansion import GraphCandidates
from conspectus.ingest.document_fields import check_name
from conspectus.model.filter import Filter
from conspectus.model.graph import Edge, GraphWritten, Neighbor, NewEdge, NewNode, Node, Traversal
from conspectus.model.ids import SourceId, is_stable_id
from conspectus.model.records import Document, Source
from conspectus.model.trust import (
    MinTrust,
    least,
    least_trusted,
    levels_from,
)
from conspectus.ports.graphs import Adding
from conspectus.text.analyzer import analyzer_for

EXTRACTION_OFF = "entity extraction is off in this collection"
EXTRACTION_PENDING = "some passages have not been processed by entity extraction yet"
EXTRACTION_STOPPED = (
    "entities of some passages could not be extracted; managers of the collection see the reason"
)


class GraphAccess(Service, checked=False):
    """Finds the graphs that a user may read or write, and stores nodes and edges in them."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = AuthorizedGraphs(context.authorized, context.parts.graphs)

    def of(self, access: CollectionAccess, graphs: Sequence[Source]) -> VisibleGraphs:
        """Return the view of these graphs: their nodes and edges, as far as they are readable."""
        return self._reader.of(access, graphs)

    async def get_readable(self, graph: str, collection: str) -> tuple[Source, CollectionAccess]:
        """Return a graph with its collection, if both are readable. Raises NotFound."""
        access = await self._authorized.collection(collection)
        source = await self._reader.find(access, graph_source_name(graph), graph)
        if source is None:
            raise NotFound("graph", graph)
        return source, access

    async def list_visible(self, access: CollectionAccess) -> list[Source]:
        """Return the readable graphs of a collection by name."""
        return await self._reader.visible(access)

    async def get_visible(self, graph: str, collection: str) -> VisibleGraphs:
        """Return a readable graph. Raises NotFound."""
        source, access = await self.get_readable(graph, collection)
        return self._reader.of(access, [source])

    async def get_or_create(self, graph: str, collection: str) -> tuple[Source, CollectionAccess]:
        """Return a graph with its collection; both are created if they are new."""
        access = await self._authorized.find(collection)
        source = None if access is None else await self._reader.find(access, graph_source_name(graph), graph)
        if source is None and is_stable_id(graph):
            raise NotFound("graph", graph)
        if access is None or source is None:
            source_name = check_name("graph", graph_source_name(check_name("graph", graph)))
            source, access = await self._writer.source(source_name, collection, None, "graph")
        if source.kind != "graph":
            raise Conflict("source", source.name, "is not a graph")
        return source, access

    async def get_writable(self, graph: str, collection: str) -> tuple[Source, CollectionAccess]:
        """Return a graph to write to; it is created if the user may do so."""
        source, access = await self.get_or_create(graph, collection)
        require_scope(self._person, "write", "write")
        access.require("editor", "write into a graph", source=source.id)
        return source, access

    async def get_editable(self, graph: str, collection: str, action: str) -> Source:
        """Return a graph that the user may edit. Raises NotFound or PermissionDenied."""
        source, access = await self.get_readable(graph, collection)
        require_scope(self._person, "write", "write")
        access.require("editor", action, source=source.id)
        return source

    async def add_facts(
        self, nodes: Iterable[NewNode], edges: Iterable[NewEdge], *, graph: str, collection: str
    ) -> list[GraphWritten]:
        """Store edges with the nodes that only they need, all or none; return the outcomes of the edges.

        Existing nodes are unchanged. New ones are deleted with the last document that supports one of their
        edges.
        """
        source, access = await self.get_writable(graph, collection)
        adding = await self.check_evidence(
            access, self.entries(source, access).prepare_adding(nodes, edges, passing=True)
        )
        written = await self.store(replace(adding, nodes=_lower_nodes(adding)))
        return written[len(adding.nodes) :]

    async def withdraw_fact(
        self, edge: str, *, ends: datetime | None, graph: str, collection: str
    ) -> list[tuple[str, str | None]]:
        """Withdraw the effect of a fact on others, and end it at `ends`; with None it stays valid.

        Returns the edges that it had ended, each with the edge that ends it now, if any.
        """
        source, _ = await self.get_writable(graph, collection)
        return list(await self._parts.graphs.withdraw(source.id, edge, ends=ends))

    async def edges_by_id(self, graph: str, collection: str, edges: Sequence[str]) -> list[Edge]:
        """Return the edges of these ids, in that order."""
        return await (await self.get_visible(graph, collection)).edges_by_id(edges)

    def entries(self, source: Source, access: CollectionAccess) -> Entries:
        """Return the converter of new nodes and edges of a graph to stored ones."""
        terms = analyzer_for(access.collection.language).terms
        return Entries(source, self._parts.settings, terms, self._parts.clock(), self._person.origin)

    async def check_evidence(self, access: CollectionAccess, adding: Adding) -> Adding:
        """Return edges lowered to the trust of their evidence, all of which is readable. Raises NotFound.

        An untrusted edge ends no other one. Evidence of another collection is not found.
        """
        ids = list(dict.fromkeys(edge.evidence for edge in adding.edges if edge.evidence is not None))
        documents = {str(document.id): document for document in await self._authorized.inside(access, ids)}
        for id in ids:
            if id not in documents:
                raise NotFound("document", id)
        edges = tuple(
            edge if edge.evidence is None else _lower_edge(edge, documents[edge.evidence])
            for edge in adding.edges
        )
        untrusted = {edge.id for edge in edges if edge.trust == "untrusted"}
        return replace(adding, edges=edges, single=adding.single - untrusted)

    async def store(self, adding: Adding) -> list[GraphWritten]:
        """Store validated nodes and edges."""
        if not (adding.nodes or adding.edges):
            return []
        return list(await self._parts.graphs.add(adding))

    def check_id_count(self, field: str, ids: Sequence[str]) -> list[str]:
        """Return ids as a list. Raises InvalidInput, or TooLarge for more than `max_graph_batch`."""
        if isinstance(ids, str):
            raise InvalidInput(field, "must be a sequence of ids")
        maximum = self._parts.settings.max_graph_batch
        if len(ids) > maximum:
            raise TooLarge(field, size=len(ids), limit=maximum, unit=field)
        return list(ids)


def _lower_edge(edge: Edge, document: Document) -> Edge:
    """Return an edge at most at the level of the document that states it."""
    origin = least_trusted(edge.origin, document.origin)
    return replace(edge, origin=origin, trust=least(edge.trust, document.trust))


def _lower_nodes(adding: Adding) -> tuple[Node, ...]:
    """Return the nodes of facts, each at most at the level of the facts that name it."""
    facts: dict[str, list[Edge]] = {node.id: [] for node in adding.nodes}
    for edge in adding.edges:
        facts[edge.source].append(edge)
        facts[edge.target].append(edge)
    return tuple(
        replace(
            node,
            origin=least_trusted(node.origin, *(edge.origin for edge in facts[node.id])),
            trust=least(node.trust, *(edge.trust for edge in facts[node.id])),
        )
        for node in adding.nodes
    )


async def graph_candidates(
    core: EngineCore,
    access: CollectionAccess,
    graphs: Sequence[SourceId],
    *,
    where: Filter,
    as_of: datetime | None = None,
    min_trust: MinTrust | None = None,
) -> GraphCandidates:
    """Return the entities and graphs of a collection that a filtered query may traverse.

    With `as_of`, they are in the state of that instant, and nodes that changed later are left out. With
    `min_trust`, no path leads over a node or edge below that level.
    """
    levels = levels_from(min_trust)
    parts, collection = core.parts, access.collection
    reader = AuthorizedMentions(parts.names.rows, access, where)
    notices = await _notices(core, access, reader)

    async def nodes_by_name(keys: Sequence[str]) -> Sequence[tuple[str, Node]]:
        named_nodes = await parts.graphs.nodes_by_name(graphs, keys) if graphs and keys else ()
        return [
            (key, node)
            for key, node in named_nodes
            if node.trust in levels and (as_of is None or node.updated <= as_of)
        ]

    async def walk(starts: Sequence[str], traversal: Traversal) -> Sequence[Neighbor]:
        trusted_traversal = replace(traversal, min_trust=min_trust)
        neighbors = await parts.graphs.walk(graphs, starts, trusted_traversal, as_of=as_of)
        return [neighbor for neighbor in neighbors if as_of is None or neighbor.node.updated <= as_of]

    return GraphCandidates(
        names_of=reader.of,
        passages=partial(reader.passages, maximum=parts.settings.max_entity_mentions),
        nodes_by_name=nodes_by_name,
        walk=walk,
        lack=None if collection.names else EXTRACTION_OFF,
        notices=notices,
    )


async def _notices(core: EngineCore, access: CollectionAccess, reader: AuthorizedMentions) -> tuple[str, ...]:
    """Return a notice if entities of some passages are not extracted, with details for managers only."""
    if not access.collection.names:
        return ()
    problem = core.names.problem(access.collection.id)
    if problem is not None:
        reason = f"entities of some passages could not be extracted: {problem}"
        return (reason if access.sees_all else EXTRACTION_STOPPED,)
    return (EXTRACTION_PENDING,) if await reader.has_pending() else ()
