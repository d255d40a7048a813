"""Graphs as one person may read and write them."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from conspectus.access.graph_reader import AuthorizedGraphs, VisibleGraphs
from conspectus.access.policy import require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.context import EngineContext
from conspectus.engine.graph_writes import Entries
from conspectus.errors import Conflict, InvalidInput, NotFound, TooLarge
from conspectus.ingest.prepare import named
from conspectus.model.graph import Edge, GraphWritten, NewEdge, NewNode
from conspectus.model.ids import is_stable_id
from conspectus.model.records import Source
from conspectus.ports.graphs import Adding
from conspectus.text.analyzer import analyzer_for

PREFIX = "graph/"
"""What the names of the sources that graphs are begin with, so that none takes the name of another source."""


class GraphAccess:
    """Finds graphs, and stores what was checked."""

    def __init__(self, context: EngineContext) -> None:
        self._parts = context.parts
        self._person = context.person
        self._sight = context.sight
        self._writer = context.writer
        self._reader = AuthorizedGraphs(context.sight, context.parts.graphs)

    def of(self, place: SourceRef, graphs: Sequence[Source]) -> VisibleGraphs:
        """What these graphs hold."""
        return self._reader.of(place, graphs)

    async def place(self, graph: str, collection: str) -> tuple[Source, SourceRef]:
        """A graph with its collection, if both can be seen. Raises NotFound."""
        place = await self._sight.place(collection)
        found = await self._reader.find(place, _whole(graph), graph)
        if found is None:
            raise NotFound("graph", graph)
        return found, place

    async def visible(self, place: SourceRef, begins: str | None) -> list[Source]:
        """The graphs of a collection that can be seen, by name: all, or those whose name begins so."""
        return await self._reader.seen(place, begins=begins)

    async def graph(self, graph: str, collection: str) -> VisibleGraphs:
        """A graph that can be seen. Raises NotFound."""
        source, place = await self.place(graph, collection)
        return self._reader.of(place, [source])

    async def made(self, graph: str, collection: str) -> tuple[Source, SourceRef]:
        """A graph with its collection, both made if they are new."""
        place = await self._sight.find(collection)
        found = None if place is None else await self._reader.find(place, _whole(graph), graph)
        if found is None and is_stable_id(graph):
            raise NotFound("graph", graph)
        if place is None or found is None:
            whole = named("graph", _whole(named("graph", graph)))
            found, place = await self._writer.source(whole, collection, None, "graph")
        if found.kind != "graph":
            raise Conflict("source", found.name, "is no graph")
        return found, place

    async def writable(self, graph: str, collection: str) -> tuple[Source, SourceRef]:
        """A graph to write into, made where the person may make it."""
        source, place = await self.made(graph, collection)
        require_scope(self._person, "write", "write")
        place.require("editor", "write into a graph", source=source.id)
        return source, place

    async def edited(self, graph: str, collection: str, action: str) -> Source:
        """A graph whose content the person may change. Raises NotFound or NotAllowed."""
        source, place = await self.place(graph, collection)
        require_scope(self._person, "write", "write")
        place.require("editor", action, source=source.id)
        return source

    async def add_facts(
        self, nodes: Iterable[NewNode], edges: Iterable[NewEdge], *, graph: str, collection: str
    ) -> list[GraphWritten]:
        """Store edges with nodes that are there only for them, all or none; what became of the edges.

        Nodes that are there already stay as they are, and new ones go when the last document goes that speaks
        for one of their edges.
        """
        source, place = await self.writable(graph, collection)
        adding = self.entries(source, place).adding(nodes, edges, passing=True)
        written = await self.store(await self.proved(place, adding))
        return written[len(adding.nodes) :]

    async def edges_by_id(self, graph: str, collection: str, edges: Sequence[str]) -> list[Edge]:
        """The edges of these ids, in the order asked."""
        return await (await self.graph(graph, collection)).edges_by_id(edges)

    def entries(self, source: Source, place: SourceRef) -> Entries:
        """What turns given nodes and edges into stored ones."""
        terms = analyzer_for(place.collection.language).terms
        return Entries(source, self._parts.settings, terms, self._parts.clock())

    async def proved(self, place: SourceRef, adding: Adding) -> Adding:
        """The same, if all evidence can be seen and is of the same collection. Raises NotFound."""
        named = list(dict.fromkeys(each.evidence for each in adding.edges if each.evidence is not None))
        shown = {document.id for document in await self._sight.inside(place, named)} if named else set()
        for each in named:
            if each not in shown:
                raise NotFound("document", each)
        return adding

    async def store(self, adding: Adding) -> list[GraphWritten]:
        """Store nodes and edges that were checked."""
        if not (adding.nodes or adding.edges):
            return []
        return list(await self._parts.graphs.add(adding))

    def bounded_ids(self, field: str, given: Sequence[str]) -> list[str]:
        """The ids, if there are not too many. Raises InvalidInput or TooLarge."""
        if isinstance(given, str):
            raise InvalidInput(field, "must be a sequence of ids")
        most = self._parts.settings.max_graph_batch
        if len(given) > most:
            raise TooLarge(field, size=len(given), limit=most, unit=field)
        return list(given)


def _whole(graph: str) -> str:
    """The name of the source that a graph is."""
    return graph if graph.startswith(PREFIX) else PREFIX + quote(graph, safe="", errors="surrogatepass")
