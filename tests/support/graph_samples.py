"""Small graphs to write into a store under test, and what a test may do beside the port."""

from datetime import UTC, datetime
from typing import Any, Protocol

from conspectus.model.graph import Edge, Node, NodeEvent
from conspectus.model.ids import SourceId
from conspectus.model.records import Source
from conspectus.ports.graphs import Adding, Graphs
from conspectus.text.hashing import edge_id
from conspectus.text.name_keys import keys_of
from tests.support.samples import NOON, SHELF

PEOPLE = Source(SourceId("people"), SHELF, "graph/people", {}, "graph")
PLACES = Source(SourceId("places"), SHELF, "graph/places", {}, "graph")
BOTH = (PEOPLE.id, PLACES.id)


class GraphShelf(Protocol):
    """A store with the graphs `people` and `places`, and documents that edges can rest on."""

    @property
    def graphs(self) -> Graphs:
        """The port."""
        ...

    async def write(self, *documents: str) -> None:
        """Store documents of these ids."""
        ...

    async def forget(self, *documents: str) -> None:
        """Delete documents."""
        ...

    async def drop(self, graph: SourceId) -> None:
        """Delete a graph."""
        ...


def year(number: int) -> datetime:
    """The beginning of a year."""
    return datetime(number, 1, 1, tzinfo=UTC)


def node(name: str, /, *, graph: Source = PEOPLE, **fields: Any) -> Node:
    """A node that is called as its id is."""
    plain: dict[str, Any] = {"type": "entity", "name": name, "aliases": (), "properties": {}}
    return Node(id=name, graph=graph, **{**plain, "recorded": NOON, "updated": NOON, **fields})


def edge(source: str, target: str, *, graph: Source = PEOPLE, **fields: Any) -> Edge:
    """An edge with the id that it has to have."""
    properties: dict[str, Any] = {
        "type": "knows",
        "weight": 1.0,
        "properties": {},
        "recorded": NOON,
        **fields,
    }
    name = edge_id(graph.id, source, target, properties["type"], properties.get("valid_from"))
    return Edge(
        id=name,
        graph=graph,
        source=source,
        target=target,
        **{"updated": properties["recorded"], **properties},
    )


def adding(*parts: Node | Edge, single: bool = False, passing: tuple[str, ...] = ()) -> Adding:
    """What is to be stored; with `single` each edge ends others."""
    nodes = tuple(part for part in parts if isinstance(part, Node))
    edges = tuple(part for part in parts if isinstance(part, Edge))
    return Adding(
        nodes,
        edges,
        single=frozenset(edge.id for edge in edges) if single else frozenset(),
        keys={node.id: keys_of(node.name, node.aliases) for node in nodes},
        terms={node.id: tuple(node.name.casefold().split()) for node in nodes},
        passing=frozenset(passing),
    )


def event(kind: Any, before: tuple[str, ...], after: tuple[str, ...]) -> NodeEvent:
    """An event as it is given, without a number."""
    return NodeEvent(0, kind, NOON, "anna", before, after, "said so")


async def filled(graphs: Graphs, names: str, *edges: Edge) -> None:
    """Store a node for each letter, and edges."""
    await graphs.add(adding(*(node(name) for name in names), *edges))


async def every_edge(graphs: Graphs, *of: SourceId) -> list[Edge]:
    """All edges in order of recording."""
    return list((await graphs.edges(of or (PEOPLE.id,), limit=1_000)).edges)


async def every_id(graphs: Graphs, *of: SourceId) -> list[str]:
    """The ids of all nodes."""
    return [node.id for node in (await graphs.nodes(of or (PEOPLE.id,), limit=1_000)).nodes]


async def outcomes(graphs: Graphs, change: Adding) -> list[str]:
    """What becomes of what is stored."""
    return [written.outcome for written in await graphs.add(change)]
