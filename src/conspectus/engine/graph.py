"""Graphs: nodes, edges, walks."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from urllib.parse import quote

from conspectus.access.graph_reader import AuthorizedGraphs, VisibleGraphs
from conspectus.access.policy import require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.alerts import Alerting
from conspectus.engine.graph_writes import Entries, checked, page
from conspectus.errors import Conflict, InvalidInput, NotFound, TooLarge
from conspectus.graph.graphml import to_graphml
from conspectus.graph.json_export import to_json
from conspectus.graph.name_keys import key_of
from conspectus.graph.svg import to_svg
from conspectus.ingest.prepare import named
from conspectus.model.graph import (
    GRAPH_FORMS,
    Edge,
    EdgePage,
    GraphForm,
    GraphReceipt,
    GraphState,
    GraphSummary,
    GraphWritten,
    Neighbor,
    NewEdge,
    NewNode,
    Node,
    NodeHit,
    NodePage,
    Traversal,
)
from conspectus.model.ids import is_stable_id
from conspectus.model.records import Source
from conspectus.ports.graphs import Adding
from conspectus.text.analyzer import analyzer_for
from conspectus.text.times import parse_instant

PREFIX = "graph/"
"""What the names of the sources that graphs are begin with, so that none takes the name of another source."""
ONE_HOP = Traversal()


class Graphing(Alerting):
    """What is connected with what."""

    async def graph(self, name: str = "default", *, collection: str = "default") -> Source:
        """The graph of that name, made if it is new; its source is called `graph/` and the name."""
        return (await self._graph_made(name, collection))[0]

    async def graphs(self, *, collection: str = "default") -> list[GraphSummary]:
        """Every graph of a collection that can be seen, in numbers, by name."""
        place = await self._sight.place(collection)
        return await self._graph_sight.of(place, await self._graphs_seen(place, None)).summaries()

    async def delete_graph(self, graph: str, *, collection: str = "default") -> GraphReceipt:
        """Delete a graph with everything in it, and say how many nodes and edges that were."""
        source, place = await self._graph_place(graph, collection)
        require_scope(self._person, "write", "write")
        place.require("manager", "delete a graph", source=source.id)
        summary = await self._parts.graphs.summary(source.id)
        await self._core.records.delete_source(source.id)
        return GraphReceipt(summary.nodes, summary.edges)

    async def add_nodes(
        self, nodes: Iterable[NewNode], *, graph: str = "default", collection: str = "default"
    ) -> list[GraphWritten]:
        """Store nodes, all or none, into a graph that is made if it is new; a stored id is changed.

        Raises InvalidInput or TooLarge.
        """
        source, place = await self._graph_writable(graph, collection)
        return await self._store(self._entries(source, place).adding(nodes))

    async def add_edges(
        self, edges: Iterable[NewEdge], *, graph: str = "default", collection: str = "default"
    ) -> list[GraphWritten]:
        """Store edges, all or none; the same again is `unchanged`.

        A single one ends the open ones of its source and type that lead elsewhere and began no later, and is
        ended by one that began later. Raises DanglingEdges naming every end that is no node, NotFound for
        evidence that cannot be seen, InvalidInput or TooLarge.
        """
        source, place = await self._graph_writable(graph, collection)
        return await self._store(await self._proved(place, self._entries(source, place).adding(edges=edges)))

    async def node(self, node: str, *, graph: str = "default", collection: str = "default") -> Node:
        """The node of that id. Raises NotFound."""
        return await _one(await self._graph_seen(graph, collection), node)

    async def nodes(
        self,
        *,
        graph: str = "default",
        collection: str = "default",
        type: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> NodePage:
        """A page of nodes by id; `after` is the page before's `next`."""
        page("limit", limit, self._parts.settings.max_limit)
        return await (await self._graph_seen(graph, collection)).nodes(type=type, after=after, limit=limit)

    async def edges(
        self,
        *,
        graph: str = "default",
        collection: str = "default",
        node: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> EdgePage:
        """A page of edges in order of recording, all or those of one node."""
        page("limit", limit, self._parts.settings.max_limit)
        seen = await self._graph_seen(graph, collection)
        if node is not None:
            await _one(seen, node)
        return await seen.edges(node=node, after=after, limit=limit)

    async def delete_nodes(
        self, nodes: Sequence[str], *, graph: str = "default", collection: str = "default"
    ) -> GraphReceipt:
        """Delete nodes with their edges, and say how many; unknown ids count 0."""
        source = await self._graph_edited(graph, collection, "delete nodes")
        return await self._parts.graphs.delete_nodes(source.id, self._bounded_ids("nodes", nodes))

    async def delete_edges(
        self, edges: Sequence[str], *, graph: str = "default", collection: str = "default"
    ) -> GraphReceipt:
        """Delete edges by their ids; unknown ids count 0. What one of them had ended stays ended."""
        source = await self._graph_edited(graph, collection, "delete edges")
        return await self._parts.graphs.delete_edges(source.id, self._bounded_ids("edges", edges))

    async def neighbours(
        self,
        node: str,
        walk: Traversal = ONE_HOP,
        *,
        graph: str = "default",
        collection: str = "default",
    ) -> list[Neighbor]:
        """What is reached from a node, nearest first and then by the product of the weights on the way.

        Raises NotFound or InvalidInput.
        """
        seen = await self._graph_seen(graph, collection)
        asked = checked(walk, self._parts.settings)
        found = await seen.walk([node], asked)
        if not found:
            await _one(seen, node)
        return list(found)

    async def find_nodes(
        self, query: str, *, graph: str = "default", collection: str = "default", limit: int = 10
    ) -> list[NodeHit]:
        """Nodes whose names, aliases or text properties have words of the query, those with most first.

        The score is the share of the query's words; a node that is called just so comes first with 1.
        """
        settings = self._parts.settings
        page("limit", limit, settings.max_limit)
        if not query.strip():
            raise InvalidInput("query", "is empty")
        if len(query) > settings.max_query_characters:
            limited = settings.max_query_characters
            raise TooLarge("query", size=len(query), limit=limited, unit="characters")
        seen = await self._graph_seen(graph, collection)
        words = list(dict.fromkeys(analyzer_for(seen.place.collection.language).terms(query)))
        found = {each.id: NodeHit(each, 1.0) for _, each in await seen.called([key_of(query)])}
        for each, count in await seen.named_like(words, limit=limit) if words else ():
            found.setdefault(each.id, NodeHit(each, count / len(words)))
        return list(found.values())[:limit]

    async def graph_at(
        self, at: datetime, *, graph: str = "default", collection: str = "default"
    ) -> GraphState:
        """What was there at an instant: nodes and edges that were true then, both ends of a span included."""
        instant = parse_instant(at)
        nodes, edges = await (await self._graph_seen(graph, collection)).at(instant)
        return GraphState(instant, tuple(nodes), tuple(edges))

    async def export_graph(
        self,
        form: GraphForm = "json",
        *,
        graph: str = "default",
        collection: str = "default",
        at: datetime | None = None,
    ) -> str:
        """The whole graph, or what was there at an instant, as JSON, as GraphML, or drawn as SVG."""
        if form not in GRAPH_FORMS:
            raise InvalidInput("form", f"must be one of {', '.join(GRAPH_FORMS)}")
        seen = await self._graph_seen(graph, collection)
        name = seen.sources[0].name
        if at is None:
            nodes, edges = await seen.everything(by=self._parts.settings.max_limit)
        else:
            nodes, edges = await seen.at(parse_instant(at))
        return await asyncio.to_thread(_written, form, name, nodes, edges)

    @property
    def _graph_sight(self) -> AuthorizedGraphs:
        return AuthorizedGraphs(self._sight, self._parts.graphs)

    async def _graph_place(self, graph: str, collection: str) -> tuple[Source, SourceRef]:
        """A graph with its collection, if both can be seen. Raises NotFound."""
        place = await self._sight.place(collection)
        found = await self._graph_sight.find(place, _whole(graph), graph)
        if found is None:
            raise NotFound("graph", graph)
        return found, place

    async def _graphs_seen(self, place: SourceRef, begins: str | None) -> list[Source]:
        """The graphs of a collection that can be seen, by name: all, or those whose name begins so."""
        return await self._graph_sight.seen(place, begins=begins)

    async def _graph_seen(self, graph: str, collection: str) -> VisibleGraphs:
        source, place = await self._graph_place(graph, collection)
        return self._graph_sight.of(place, [source])

    async def _graph_made(self, graph: str, collection: str) -> tuple[Source, SourceRef]:
        place = await self._sight.find(collection)
        found = None if place is None else await self._graph_sight.find(place, _whole(graph), graph)
        if found is None and is_stable_id(graph):
            raise NotFound("graph", graph)
        if place is None or found is None:
            whole = named("graph", _whole(named("graph", graph)))
            found, place = await self._shelved(whole, collection, None, "graph")
        if found.kind != "graph":
            raise Conflict("source", found.name, "is no graph")
        return found, place

    async def _graph_writable(self, graph: str, collection: str) -> tuple[Source, SourceRef]:
        """A graph to write into, made where the person may make it."""
        source, place = await self._graph_made(graph, collection)
        require_scope(self._person, "write", "write")
        place.require("editor", "write into a graph", source=source.id)
        return source, place

    async def _graph_edited(self, graph: str, collection: str, action: str) -> Source:
        source, place = await self._graph_place(graph, collection)
        require_scope(self._person, "write", "write")
        place.require("editor", action, source=source.id)
        return source

    async def _add_facts(
        self, nodes: Iterable[NewNode], edges: Iterable[NewEdge], *, graph: str, collection: str
    ) -> list[GraphWritten]:
        """Store edges with nodes that are there only for them, all or none; what became of the edges.

        Nodes that are there already stay as they are, and new ones go when the last document goes that speaks
        for one of their edges.
        """
        source, place = await self._graph_writable(graph, collection)
        adding = self._entries(source, place).adding(nodes, edges, passing=True)
        written = await self._store(await self._proved(place, adding))
        return written[len(adding.nodes) :]

    async def _edges_called(self, graph: str, collection: str, edges: Sequence[str]) -> list[Edge]:
        """The edges of these ids, in the order asked."""
        return await (await self._graph_seen(graph, collection)).edges_by_id(edges)

    def _entries(self, source: Source, place: SourceRef) -> Entries:
        terms = analyzer_for(place.collection.language).terms
        return Entries(source, self._parts.settings, terms, self._parts.clock())

    async def _proved(self, place: SourceRef, adding: Adding) -> Adding:
        """The same, if all evidence can be seen and is of the same collection. Raises NotFound."""
        named = list(dict.fromkeys(each.evidence for each in adding.edges if each.evidence is not None))
        shown = {document.id for document in await self._sight.inside(place, named)} if named else set()
        for each in named:
            if each not in shown:
                raise NotFound("document", each)
        return adding

    async def _store(self, adding: Adding) -> list[GraphWritten]:
        if not (adding.nodes or adding.edges):
            return []
        return list(await self._parts.graphs.add(adding))

    def _bounded_ids(self, field: str, given: Sequence[str]) -> list[str]:
        if isinstance(given, str):
            raise InvalidInput(field, "must be a sequence of ids")
        most = self._parts.settings.max_graph_batch
        if len(given) > most:
            raise TooLarge(field, size=len(given), limit=most, unit=field)
        return list(given)


def _whole(graph: str) -> str:
    """The name of the source that a graph is."""
    return graph if graph.startswith(PREFIX) else PREFIX + quote(graph, safe="", errors="surrogatepass")


def _written(form: GraphForm, name: str, nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    match form:
        case "json":
            return to_json(name, nodes, edges)
        case "graphml":
            return to_graphml(name, nodes, edges)
        case "svg":
            return to_svg(name, nodes, edges)


async def _one(seen: VisibleGraphs, node: str) -> Node:
    found = await seen.nodes_by_id([node])
    if not found:
        raise NotFound("node", node)
    return found[0]
