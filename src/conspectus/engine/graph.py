"""The graph service: nodes, edges, traversal, entity linking and export."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.graph_reader import AuthorizedMentions, VisibleGraphs
from conspectus.access.policy import among, require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.entity_linking import EntityLinker
from conspectus.engine.graph_access import EXTRACTION_STOPPED, GraphAccess
from conspectus.engine.graph_entries import check_traversal
from conspectus.engine.service import Service
from conspectus.errors import (
    InvalidInput,
    NotFound,
    ProviderError,
    ProviderUnavailable,
    TooLarge,
    as_field,
)
from conspectus.graph.export import to_json
from conspectus.graph.graphml import to_graphml
from conspectus.graph.svg import to_svg
from conspectus.model.annotations import Example, Range
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.graph import (
    GRAPH_FORMS,
    Edge,
    EdgePage,
    EntityCount,
    EntityLink,
    GraphForm,
    GraphReceipt,
    GraphState,
    GraphSummary,
    GraphWritten,
    Neighbor,
    NewEdge,
    NewNode,
    Node,
    NodeEvent,
    NodeHit,
    NodePage,
    Traversal,
)
from conspectus.model.parameters import (
    CollectionName,
    GraphLimit,
    GraphName,
    LowestTrust,
    Name,
    NodeName,
    QueryText,
)
from conspectus.model.records import Collection, Mention, Source
from conspectus.model.trust import levels_from
from conspectus.ports import Progress
from conspectus.text.analyzer import analyzer_for
from conspectus.text.name_keys import key_of
from conspectus.text.times import parse_instant

ONE_HOP = Traversal()


class GraphService(Service):
    """Graphs: nodes, edges, traversals, and the entities that passages and texts mention."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._access = GraphAccess(context)
        self._linker = EntityLinker(context)

    async def get_or_create(
        self,
        name: Annotated[Name, "Name of the graph.", Example("default")] = "default",
        *,
        collection: CollectionName = "default",
    ) -> Source:
        """Return the graph of that name; create it if it is new. Its source is `graph/` and the name."""
        with as_field("name", was="graph"):
            return (await self._access.get_or_create(name, collection))[0]

    async def list(self, *, collection: CollectionName = "default") -> Sequence[GraphSummary]:
        """List the graphs of a collection that you may read, by name, with their sizes."""
        access = await self._authorized.collection(collection)
        return await self._access.of(access, await self._access.list_visible(access)).summaries()

    async def delete(self, graph: GraphName, *, collection: CollectionName = "default") -> GraphReceipt:
        """Delete a graph with everything in it; return the number of nodes and edges."""
        source, access = await self._access.get_readable(graph, collection)
        require_scope(self._person, "write", "write")
        access.require("manager", "delete a graph", source=source.id)
        summary = await self._parts.graphs.summary(source.id)
        await self._core.records.delete_source(source.id)
        await self._context.note_change("delete_graph", source.id, access.collection.id)
        return GraphReceipt(summary.nodes, summary.edges)

    async def add_nodes(
        self,
        nodes: Annotated[Iterable[NewNode], "Nodes to write."],
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
    ) -> Sequence[GraphWritten]:
        """Add nodes to a graph, all or none; a node with a stored id is updated. A new graph is created.

        Raises InvalidInput or TooLarge.
        """
        source, access = await self._access.get_writable(graph, collection)
        return await self._access.store(self._access.entries(source, access).prepare_adding(nodes))

    async def add_edges(
        self,
        edges: Annotated[Iterable[NewEdge], "Edges to write."],
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
    ) -> Sequence[GraphWritten]:
        """Add edges to a graph, all or none; an edge that is stored already is `unchanged`.

        An edge of a single-valued type ends the open edges of its source and type that point elsewhere and
        began no later; one that began later ends it. Raises DanglingEdges that names every end without a
        node, NotFound for evidence that cannot be read, InvalidInput or TooLarge.
        """
        source, access = await self._access.get_writable(graph, collection)
        return await self._access.store(
            await self._access.check_evidence(
                access, self._access.entries(source, access).prepare_adding(edges=edges)
            )
        )

    async def get_node(
        self, node: NodeName, *, graph: GraphName = "default", collection: CollectionName = "default"
    ) -> Node:
        """Return the node of that id. Raises NotFound."""
        return await _require_node(await self._access.get_visible(graph, collection), node)

    async def list_nodes(
        self,
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
        type: Annotated[str | None, "Only nodes of this type.", Example("process")] = None,
        min_trust: LowestTrust | None = None,
        after: Annotated[str | None, "The `next` of the page before.", Example("bmV4dA")] = None,
        limit: GraphLimit = 100,
    ) -> NodePage:
        """List a page of nodes by id, those from a level on; `after` is a cursor."""
        graphs = await self._access.get_visible(graph, collection)
        return await graphs.nodes(type=type, min_trust=min_trust, after=after, limit=limit)

    async def list_edges(
        self,
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
        node: Annotated[NodeName, "Only edges of this node."] | None = None,
        min_trust: LowestTrust | None = None,
        after: Annotated[str | None, "The `next` of the page before.", Example("bmV4dA")] = None,
        limit: GraphLimit = 100,
    ) -> EdgePage:
        """List a page of edges in the order in which they were added: all, or those of one node.

        With `min_trust`, only those from that level on.
        """
        graphs = await self._access.get_visible(graph, collection)
        if node is not None:
            await _require_node(graphs, node)
        return await graphs.edges(node=node, min_trust=min_trust, after=after, limit=limit)

    async def delete_nodes(
        self,
        nodes: Annotated[Sequence[str], "Ids of nodes.", Example(["backups"])],
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
    ) -> GraphReceipt:
        """Delete nodes with their edges; return how many. Unknown ids count 0."""
        source = await self._access.get_editable(graph, collection, "delete nodes")
        return await self._parts.graphs.delete_nodes(source.id, self._access.check_id_count("nodes", nodes))

    async def delete_edges(
        self,
        edges: Annotated[Sequence[str], "Ids of edges.", Example(["0195f3a1c2d47e80b6a4c1d2e3f40e0e"])],
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
    ) -> GraphReceipt:
        """Delete edges by id; unknown ids count 0. Edges that a deleted edge had ended stay ended."""
        source = await self._access.get_editable(graph, collection, "delete edges")
        return await self._parts.graphs.delete_edges(source.id, self._access.check_id_count("edges", edges))

    async def neighbors(
        self,
        node: NodeName,
        walk: Annotated[Traversal, "Depth of the traversal, and its edges."] = ONE_HOP,
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
    ) -> Sequence[Neighbor]:
        """Traverse the graph from a node: nearest nodes first, then by the product of weights.

        Raises NotFound or InvalidInput.
        """
        graphs = await self._access.get_visible(graph, collection)
        checked_walk = check_traversal(walk, self._parts.settings)
        neighbors = await graphs.walk([node], checked_walk)
        if not neighbors:
            await _require_node(graphs, node)
        return list(neighbors)

    async def search_nodes(
        self,
        query: QueryText,
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
        limit: GraphLimit = 10,
        min_trust: LowestTrust | None = None,
    ) -> Sequence[NodeHit]:
        """Find nodes whose names, aliases or text properties contain terms of the query, best first.

        The score is the share of the query's terms; a node with exactly that name comes first with 1. With
        `min_trust`, only nodes from that level on.
        """
        settings = self._parts.settings
        if not query.strip():
            raise InvalidInput("query", "is empty; give a word of a name, an alias or a property")
        if len(query) > settings.max_query_characters:
            maximum = settings.max_query_characters
            raise TooLarge("query", size=len(query), limit=maximum, unit="characters")
        graphs = await self._access.get_visible(graph, collection)
        terms = list(dict.fromkeys(analyzer_for(graphs.access.collection.language).terms(query)))
        exact_matches, levels = await graphs.nodes_by_name([key_of(query)]), levels_from(min_trust)
        hits = {node.id: NodeHit(node, 1.0) for _, node in exact_matches if node.trust in levels}
        rows = await graphs.nodes_by_terms(terms, min_trust=min_trust, limit=limit) if terms else ()
        for node, term_count in rows:
            hits.setdefault(node.id, NodeHit(node, term_count / len(terms)))
        return list(hits.values())[:limit]

    async def snapshot(
        self,
        at: Annotated[datetime, "Instant of the state."],
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
        min_trust: LowestTrust | None = None,
    ) -> GraphState:
        """Return the graph at an instant: the nodes and edges that were valid then, from a level on."""
        instant = parse_instant(at)
        nodes, edges = await (await self._access.get_visible(graph, collection)).read_graph_at(
            instant, min_trust
        )
        return GraphState(instant, tuple(nodes), tuple(edges))

    async def export(
        self,
        format: Annotated[GraphForm, "Format of the export."] = "json",
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
        at: Annotated[datetime | None, "Instant of the state; by default the whole graph."] = None,
        min_trust: LowestTrust | None = None,
    ) -> str:
        """Export a graph, or its state at an instant, as JSON, GraphML or SVG, from a level on."""
        if format not in GRAPH_FORMS:
            raise InvalidInput("format", f"must be one of {', '.join(GRAPH_FORMS)}")
        graphs = await self._access.get_visible(graph, collection)
        name = graphs.sources[0].name
        if at is None:
            nodes, edges = await graphs.read_whole_graph(
                by=self._parts.settings.max_limit, min_trust=min_trust
            )
        else:
            nodes, edges = await graphs.read_graph_at(parse_instant(at), min_trust)
        return await asyncio.to_thread(_serialize_graph, format, name, nodes, edges)

    async def set_entity_extraction(
        self, enabled: Annotated[bool, "Extract entities."] = True, *, collection: CollectionName = "default"
    ) -> Collection:
        """Enable or disable entity extraction for a collection; extraction runs in the background.

        Disabling it deletes the mentions that were found. Raises NotFound or PermissionDenied.
        """
        changed = await self._context.set_entity_extraction(collection, enabled=enabled)
        detail = "enabled" if enabled else "disabled"
        await self._context.note_change("set_entity_extraction", changed.id, changed.id, detail)
        return changed

    async def wait_until_extracted(
        self, *, collection: CollectionName = "default", progress: Progress | None = None
    ) -> int:
        """Wait until entities are extracted from all passages; return the number of new passages.

        If you may read only some sources, it returns 0. Raises the error that stopped extraction.
        """
        access = await self._authorized.collection(collection)
        return await self._wait_for_entities(access, progress) if access.collection.names else 0

    async def list_entities(
        self,
        *,
        collection: CollectionName = "default",
        prefix: Annotated[str, "Beginning of the names.", Example("back")] = "",
        limit: Annotated[int, Range(0, "max_page_rows"), "Maximum number of results.", Example(10)] = 100,
        source: Annotated[str | None, "Name or id of a source; none: all.", Example("handbook")] = None,
    ) -> Sequence[EntityCount]:
        """List the most mentioned entities, of a collection or of one of its sources.

        Raises NotFound, or InvalidInput for a limit.
        """
        access = await self._authorized.collection(collection)
        where: Filter = EVERYTHING
        if source is not None:
            where = among([(await self._authorized.require_source(access, source)).id])
        graphs = AuthorizedMentions(self._parts.names.rows, access, where)
        return list(await graphs.counts(begins=key_of(prefix), limit=limit))

    async def extract_entities(
        self,
        text: Annotated[str, "Text in which entities are found.", Example("The nightly backup failed.")],
        *,
        collection: CollectionName = "default",
    ) -> Sequence[Mention]:
        """Find the mentions of entities in a text, in order: names of known nodes, and names found by rules.

        Raises TooLarge, or the errors of the entity extractor of the settings.
        """
        access = await self._authorized.collection(collection)
        graphs = await self._access.list_visible(access)
        return (await self._linker.names_in(text, self._access.of(access, graphs)))[0]

    async def link_entities(
        self,
        text: Annotated[str, "Text in which entities are linked.", Example("The nightly backup failed.")],
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
        mention: Annotated[
            tuple[int, int] | None, "Characters of one mention; none: all that are found."
        ] = None,
        min_score: Annotated[float | None, Range(0, 1), "Lowest score of a link; by default as set."] = None,
    ) -> Sequence[EntityLink]:
        """Link entities in a text, or one mention, to nodes of a graph.

        Each mention has its candidates with the parts of their scores; it is linked from `min_score` on.
        Raises NotFound, TooLarge, or InvalidInput for a mention outside the text.
        """
        threshold = self._parts.settings.entity_link_min_percent / 100 if min_score is None else min_score
        graphs = await self._access.get_visible(graph, collection)
        return await self._linker.link_mentions(text, graphs, span=mention, threshold=threshold)

    async def merge_nodes(
        self,
        into: Annotated[NodeName, "Node that remains."],
        nodes: Annotated[
            Sequence[str], "Ids of the nodes that are merged into it.", Example(["backups", "nightly-backup"])
        ],
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
        reason: Annotated[str, "Reason, for the history.", Example("Both mean the nightly backup.")] = "",
    ) -> Node:
        """Merge nodes into one, which keeps its id and gets the names and edges of the others.

        Its level is the lowest of all of them and of the writer.

        Raises NotFound, PermissionDenied, or InvalidInput if no other node is given.
        """
        source = await self._access.get_editable(graph, collection, "merge nodes")
        merged_ids = [
            node for node in dict.fromkeys(self._access.check_id_count("nodes", nodes)) if node != into
        ]
        if not merged_ids:
            raise InvalidInput("nodes", "must name a node other than `into`")
        before = (into, *merged_ids)
        reason = self._context.screen_value("graph_events.reason", reason, source.collection)
        event = NodeEvent(0, "merge", self._parts.clock(), self._person.name, before, (into,), reason)
        origin = self._person.origin or "user"
        return await self._parts.graphs.merge(source.id, into, merged_ids, event, origin=origin)

    async def undo_merge(
        self,
        merge: Annotated[int, Range(0), "Number of the merge."],
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
        reason: Annotated[str, "Reason, for the history."] = "",
    ) -> Sequence[Node]:
        """Undo the merge of that number (see `list_merges`): restore the nodes and their edges.

        Raises NotFound, PermissionDenied, or Conflict if one of the nodes exists again.
        """
        source = await self._access.get_editable(graph, collection, "split a node")
        events = await self._parts.graphs.events(source.id)
        merged = next((event for event in events if event.number == merge and event.kind == "merge"), None)
        if merged is None:
            raise NotFound("merge", str(merge))
        reason = self._context.screen_value("graph_events.reason", reason, source.collection)
        by = self._person.name
        event = NodeEvent(0, "split", self._parts.clock(), by, merged.after, merged.before, reason)
        return list(await self._parts.graphs.split(source.id, merge, event))

    async def list_merges(
        self,
        node: Annotated[NodeName, "Only merges of this node."] | None = None,
        *,
        graph: GraphName = "default",
        collection: CollectionName = "default",
    ) -> Sequence[NodeEvent]:
        """List the merges and splits of a graph in order: all, or those of one node."""
        return await (await self._access.get_visible(graph, collection)).events(node)

    async def _wait_for_entities(self, access: CollectionAccess, progress: Progress | None) -> int:
        if access.sees_all:
            return await self._core.names.wait_until_done(access.collection.id, progress)
        try:
            await self._core.names.wait_until_done(access.collection.id)
        except ProviderError as fault:
            raise ProviderUnavailable(fault.provider, EXTRACTION_STOPPED) from fault
        return 0


def _serialize_graph(form: GraphForm, name: str, nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    match form:
        case "json":
            return to_json(name, nodes, edges)
        case "graphml":
            return to_graphml(name, nodes, edges)
        case "svg":
            return to_svg(name, nodes, edges)


async def _require_node(graphs: VisibleGraphs, node: str) -> Node:
    nodes = await graphs.nodes_by_id([node])
    if not nodes:
        raise NotFound("node", node)
    return nodes[0]
