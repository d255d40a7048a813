"""What every engine must do with graphs: the same, whoever is asked."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from lxml import etree

from conspectus.errors import DanglingEdges, InvalidInput, NotFound
from conspectus.model.graph import Edge, GraphForm, NewEdge, NewNode, Node, Traversal
from conspectus.text.times import parse_instant
from tests.support.engine_samples import AnyEngine

GRAPH = "people/röhre 1%"
NODES = [
    NewNode("ann", "person", "Ann Lee", ("Annie", "A. Lee"), {"age": 30, "tags": ["a", None]}),
    NewNode("bo/x?#", "person", "Bo"),
    NewNode("köln 🎉", "city", valid_from="2020-01-01T00:00:00.5Z", valid_until="2021-01-01T00:00:00Z"),
    NewNode("far", "city", "Far away"),
]
EDGES = [
    NewEdge("ann", "bo/x?#", "knows", 0.9, {"since": 2019}),
    NewEdge("bo/x?#", "köln 🎉", "lives in", 0.7, valid_from="2020-02-02T00:00:00Z"),
    NewEdge("far", "ann", "near", 0.5),
]


class GraphContract:
    """Nodes, edges, ways between them, and what was when."""

    async def drawn(self, engine: AnyEngine) -> None:
        """A small graph with a slash in its name."""
        await engine.graph.add_nodes(NODES, graph=GRAPH)
        await engine.graph.add_edges(EDGES, graph=GRAPH)

    async def test_nodes_and_edges_keep_what_was_said(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Whatever is in their ids, with exact times; the same again is unchanged."""
        nodes = await engine.graph.add_nodes(iter(NODES), graph=GRAPH)
        edges = await engine.graph.add_edges(iter(EDGES), graph=GRAPH)
        assert {written.outcome for written in (*nodes, *edges)} == {"added"}
        assert [node.id for node in nodes] == [node.id for node in NODES]
        for again in (
            await engine.graph.add_nodes(NODES, graph=GRAPH),
            await engine.graph.add_edges(EDGES, graph=GRAPH),
        ):
            assert {written.outcome for written in again} == {"unchanged"}
        ann = await engine.graph.get_node("ann", graph=GRAPH)
        assert (ann.name, ann.aliases, ann.properties) == (
            "Ann Lee",
            ("Annie", "A. Lee"),
            NODES[0].properties,
        )
        city = await engine.graph.get_node("köln 🎉", graph=GRAPH)
        assert city.valid_from == parse_instant("2020-01-01T00:00:00.5Z")
        for stored_node in NODES:
            assert await engine.graph.get_node(stored_node.id, graph=GRAPH) == await local.graph.get_node(
                stored_node.id, graph=GRAPH
            )
        changed = await engine.graph.add_nodes([replace(NODES[0], name="Ann")], graph=GRAPH)
        assert [written.outcome for written in changed] == ["updated"]
        assert (await engine.graph.get_node("ann", graph=GRAPH)).name == "Ann"

    async def test_graphs_are_made_listed_and_deleted(self, engine: AnyEngine, local: AnyEngine) -> None:
        """By id or by name, each in its collection."""
        new_graph = await engine.graph.get_or_create("empty", collection="wïki/1")
        assert await engine.graph.get_or_create("empty", collection="wïki/1") == new_graph
        await self.drawn(engine)
        [summary] = await engine.graph.list()
        assert (summary.nodes, summary.edges) == (4, 3)
        assert summary.types == {"person": 2, "city": 2}
        assert summary.relations == {"knows": 1, "lives in": 1, "near": 1}
        assert [summary] == await local.graph.list()
        name = summary.source.name
        assert await engine.graph.get_node("ann", graph=name) == await engine.graph.get_node(
            "ann", graph=summary.source.id
        )
        gone = await engine.graph.delete(summary.source.id)
        assert (gone.nodes, gone.edges) == (4, 3)
        for work in (
            engine.graph.get_node("ann", graph=GRAPH),
            engine.graph.delete(GRAPH),
            engine.graph.list(collection="x"),
        ):
            with pytest.raises(NotFound):
                await work
        assert [graph.source for graph in await engine.graph.list(collection="wïki/1")] == [new_graph]

    async def test_edges_that_lead_nowhere_are_named(self, engine: AnyEngine) -> None:
        """And none of the call is written."""
        await engine.graph.add_nodes(NODES[:1], graph=GRAPH)
        wrong = [NewEdge("ann", "ann"), NewEdge("ann", "nobody"), NewEdge("nowhere", "nobody")]
        with pytest.raises(DanglingEdges) as caught:
            await engine.graph.add_edges(wrong, graph=GRAPH)
        assert set(caught.value.missing) == {"nobody", "nowhere"}
        assert (await engine.graph.list_edges(graph=GRAPH)).edges == ()

    async def test_pages_of_a_graph_go_on_where_they_ended(self, engine: AnyEngine) -> None:
        """And hold everything once; of one type, or of one node."""
        await self.drawn(engine)
        nodes: list[Node] = []
        edges: list[Edge] = []
        after: str | None = None
        while page := await engine.graph.list_nodes(graph=GRAPH, after=after, limit=1):
            nodes += page.nodes
            after = page.next
            if after is None:
                break
        while part := await engine.graph.list_edges(graph=GRAPH, after=after, limit=2):
            edges += part.edges
            after = part.next
            if after is None:
                break
        assert sorted(node.id for node in nodes) == sorted(node.id for node in NODES)
        assert [(edge.source, edge.target) for edge in edges] == [(e.source, e.target) for e in EDGES]
        people = (await engine.graph.list_nodes(graph=GRAPH, type="person")).nodes
        assert {node.id for node in people} == {"ann", "bo/x?#"}
        assert len((await engine.graph.list_edges(graph=GRAPH, node="ann")).edges) == 2

    async def test_ways_are_walked(self, engine: AnyEngine, local: AnyEngine) -> None:
        """As far as is asked, over the edges that are asked for, each with its path and its decay."""
        await self.drawn(engine)
        [near, *_] = await engine.graph.neighbors("ann", Traversal(1, direction="out"), graph=GRAPH)
        assert (near.node.id, near.hop, near.decay, near.path) == ("bo/x?#", 1, 0.9, ("ann", "bo/x?#"))
        walks = [
            (Traversal(2, direction="out"), {"bo/x?#": 0.9, "köln 🎉": 0.63}),
            (Traversal(1), {"bo/x?#": 0.9, "far": 0.5}),
            (Traversal(3, ("knows",)), {"bo/x?#": 0.9}),
            (Traversal(3, ("knows", "near")), {"bo/x?#": 0.9, "far": 0.5}),
            (Traversal(2, min_weight=0.8), {"bo/x?#": 0.9}),
            (Traversal(2, direction="in"), {"far": 0.5}),
            (Traversal(2, at=parse_instant("2019-01-01")), {"bo/x?#": 0.9, "far": 0.5}),
            (Traversal(2, offset=1, limit=1), {"far": 0.5}),
        ]
        for walk, reached in walks:
            there, here = [await one.graph.neighbors("ann", walk, graph=GRAPH) for one in (engine, local)]
            assert there == here
            assert {neighbor.node.id: neighbor.decay for neighbor in there} == pytest.approx(reached)
        [against] = await engine.graph.neighbors("ann", Traversal(1, direction="in"), graph=GRAPH)
        assert against.steps[0].backwards

    async def test_nodes_are_found_by_whole_words(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Never by a part of one."""
        await self.drawn(engine)
        hits = await engine.graph.search_nodes("annie", graph=GRAPH)
        assert [hit.node.id for hit in hits] == ["ann"]
        assert hits == await local.graph.search_nodes("annie", graph=GRAPH)
        assert await engine.graph.search_nodes("an nn", graph=GRAPH) == []

    async def test_a_graph_shows_what_it_was(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Both ends of a span included; edges that lost an end are left out."""
        await self.drawn(engine)
        end = parse_instant("2021-01-01T00:00:00Z")
        for at, nodes, edges in ((end, 4, 3), (end + timedelta(microseconds=1), 3, 2)):
            state = await engine.graph.snapshot(at, graph=GRAPH)
            assert (state.at, len(state.nodes), len(state.edges)) == (at, nodes, edges)
            assert state == await local.graph.snapshot(at, graph=GRAPH)

    async def test_a_newer_single_edge_ends_the_older_one(self, engine: AnyEngine) -> None:
        """Which stays, with what ended it."""
        await self.drawn(engine)
        first = NewEdge("ann", "far", "lives in", valid_from="2019-01-01", single=True)
        [old] = await engine.graph.add_edges([first], graph=GRAPH)
        [new] = await engine.graph.add_edges(
            [replace(first, target="köln 🎉", valid_from="2020-06-01")], graph=GRAPH
        )
        assert new.closed == (old.id,)
        ended = {edge.id: edge for edge in (await engine.graph.list_edges(graph=GRAPH, node="ann")).edges}[
            old.id
        ]
        assert (ended.closed_by, ended.valid_until is None) == (new.id, False)

    async def test_parts_are_deleted(self, engine: AnyEngine) -> None:
        """Nodes with their edges; what is not there counts as nothing."""
        await self.drawn(engine)
        [first, *_] = (await engine.graph.list_edges(graph=GRAPH)).edges
        gone = await engine.graph.delete_edges([first.id, "nothing"], graph=GRAPH)
        assert (gone.nodes, gone.edges) == (0, 1)
        gone = await engine.graph.delete_nodes(["bo/x?#", "nobody"], graph=GRAPH)
        assert (gone.nodes, gone.edges) == (1, 1)
        assert (await engine.graph.delete_nodes(["bo/x?#"], graph=GRAPH)).nodes == 0

    async def test_a_graph_is_carried_elsewhere(self, engine: AnyEngine, local: AnyEngine) -> None:
        """In each form the same text, whoever is asked; of an instant too."""
        await self.drawn(engine)
        forms: Sequence[GraphForm] = ("json", "graphml", "svg")
        when = parse_instant("2022-01-01")
        for form in forms:
            for at in (None, when):
                there, here = [await one.graph.export(form, graph=GRAPH, at=at) for one in (engine, local)]
                assert there == here
                assert ("köln 🎉" in there) == (at is None) or form == "svg"
        json.loads(await engine.graph.export(graph=GRAPH))
        etree.fromstring((await engine.graph.export("graphml", graph=GRAPH)).encode())

    async def test_invalid_nodes_and_edges_are_refused(self, engine: AnyEngine) -> None:
        """With what is wrong about it."""
        await self.drawn(engine)
        for node in (NewNode(""), NewNode("x", valid_from="noon"), NewNode("x", properties={"a": {1}})):
            with pytest.raises(InvalidInput):
                await engine.graph.add_nodes([node], graph=GRAPH)
        for walk in (Traversal(100), Traversal(limit=0), Traversal(offset=-1)):
            with pytest.raises(InvalidInput):
                await engine.graph.neighbors("ann", walk, graph=GRAPH)
        for letters in (
            engine.graph.delete_nodes("ann", graph=GRAPH),
            engine.graph.delete_edges("ann", graph=GRAPH),
            engine.graph.merge_nodes("ann", "far", graph=GRAPH),
        ):
            with pytest.raises(InvalidInput):
                await letters
        for limited in (
            engine.graph.list_nodes(graph=GRAPH, limit=0),
            engine.graph.search_nodes("x", graph=GRAPH, limit=0),
        ):
            with pytest.raises(InvalidInput):
                await limited
        for work in (
            engine.graph.neighbors("nobody", graph=GRAPH),
            engine.graph.get_node("nobody", graph=GRAPH),
        ):
            with pytest.raises(NotFound) as caught:
                await work
            assert (caught.value.kind, caught.value.name) == ("node", "nobody")
