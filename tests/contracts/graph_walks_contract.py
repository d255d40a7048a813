"""How every store of graphs must walk them, and merge nodes. Subclass the classes, give them a `shelf`."""

from dataclasses import replace
from typing import Any

import pytest

from conspectus.errors import Conflict, NotFound
from conspectus.model.graph import Neighbor, Traversal
from conspectus.model.ids import SourceId
from conspectus.model.trust import Trust
from tests.support.graph_samples import (
    BOTH,
    PEOPLE,
    PLACES,
    GraphShelf,
    adding,
    edge,
    event,
    every_edge,
    every_id,
    filled,
    node,
    year,
)

LOW: dict[str, Any] = {"origin": "web", "trust": "untrusted"}


async def levels_of(shelf: GraphShelf) -> dict[str, Trust]:
    """The level of each node by its id, and of each edge by its ends."""
    nodes = (await shelf.graphs.nodes([PEOPLE.id], limit=99)).nodes
    edges = await every_edge(shelf.graphs)
    return {node.id: node.trust for node in nodes} | {edge.source + edge.target: edge.trust for edge in edges}


async def walked(
    shelf: GraphShelf, *starts: str, graphs: tuple[SourceId, ...] = (PEOPLE.id,), **fields: Any
) -> list[Neighbor]:
    """What is reached."""
    return list(await shelf.graphs.walk(graphs, starts, replace(Traversal(hops=2, limit=1_000), **fields)))


def ways(neighbors: list[Neighbor]) -> list[str]:
    """The ways there."""
    return ["".join(neighbor.path) for neighbor in neighbors]


class GraphWalksContract:
    """Who is reached, how far away, and by which way."""

    async def test_weights_are_multiplied_along_the_way(self, shelf: GraphShelf) -> None:
        """The case of the published design: A to B with .9, B to C with .7."""
        links = (edge("a", "b", weight=0.9), edge("b", "c", weight=0.7, type="likes"))
        await filled(shelf.graphs, "abc", *links)
        b, c = await walked(shelf, "a")
        assert (b.hop, b.decay, b.path) == (1, 0.9, ("a", "b"))
        assert (c.hop, c.path) == (2, ("a", "b", "c"))
        assert c.decay == pytest.approx(0.63)
        assert [(step.type, step.backwards) for step in c.steps] == [("knows", False), ("likes", False)]
        assert ways(await walked(shelf, "a", hops=1)) == ["ab"]
        assert ways(await walked(shelf, "a", min_weight=0.8)) == ["ab"]
        assert ways(await walked(shelf, "a", types=("knows",))) == ["ab"]
        assert ways(await walked(shelf, "b", types=("likes", "none"))) == ["bc"]
        assert await walked(shelf, "a", hops=0) == []
        assert await walked(shelf, "none") == await walked(shelf) == []
        assert await walked(shelf, "a", graphs=()) == await walked(shelf, "a", graphs=(PLACES.id,)) == []

    async def test_only_what_was_recorded_by_then_is_walked_over(self, shelf: GraphShelf) -> None:
        """Neither an edge that came later nor one that leads to a node that did."""
        await filled(shelf.graphs, "abc", edge("a", "b"), edge("b", "c", weight=0.1))
        short, on = edge("a", "c"), edge("c", "d")
        late = [replace(edge, recorded=year(2030), updated=year(2030)) for edge in (short, on)]
        nodes = [node(name, recorded=year(2030), updated=year(2030)) for name in "de"]
        await shelf.graphs.add(adding(*nodes, *late))
        traversal = Traversal(hops=3)
        then = await shelf.graphs.walk([PEOPLE.id], ["a", "e"], traversal, as_of=year(2029))
        assert ways(list(then)) == ["ab", "abc"]
        now = await shelf.graphs.walk([PEOPLE.id], ["a"], traversal, as_of=year(2030))
        assert sorted(ways(list(now))) == ["ab", "ac", "acd"]

    async def test_no_way_leads_over_what_is_below_a_level(self, shelf: GraphShelf) -> None:
        """Neither over an edge nor over a node; steps have the levels of their edges if that is asked for."""
        low: dict[str, Any] = {"origin": "web", "trust": "untrusted"}
        await filled(shelf.graphs, "ab", edge("a", "b", type="sees", **low))
        await shelf.graphs.add(adding(node("c", **low), node("d"), edge("b", "c"), edge("a", "d")))
        assert sorted(ways(await walked(shelf, "a"))) == ["ab", "abc", "ad"]
        assert ways(await walked(shelf, "a", min_trust="standard")) == ["ad"]
        assert ways(await walked(shelf, "b", min_trust="trusted")) == []
        assert await walked(shelf, "c", min_trust="standard") == []
        neighbors = await shelf.graphs.walk([PEOPLE.id], ["a"], Traversal(hops=2), with_levels=True)
        steps = {neighbor.path: [step.trust for step in neighbor.steps] for neighbor in neighbors}
        assert steps["a", "b", "c"] == ["untrusted", "trusted"]
        names = (await shelf.graphs.nodes([PEOPLE.id], min_trust="standard", limit=9)).nodes
        assert [entity.id for entity in names] == ["a", "b", "d"]
        for name, count in (("a", 1), (None, 2)):
            page = await shelf.graphs.edges([PEOPLE.id], node=name, min_trust="standard", limit=9)
            assert len(page.edges) == count
        assert await shelf.graphs.nodes_by_terms([PEOPLE.id], ["c"], min_trust="standard", limit=9) == []

    async def test_edges_are_walked_in_the_direction_asked(self, shelf: GraphShelf) -> None:
        """Both by default; a step against an edge says so."""
        await filled(shelf.graphs, "abc", edge("a", "b", weight=0.5), edge("c", "b"))
        assert ways(await walked(shelf, "b")) == ["bc", "ba"]
        assert ways(await walked(shelf, "b", direction="out")) == []
        assert ways(await walked(shelf, "a", direction="out")) == ["ab"]
        assert ways(await walked(shelf, "b", direction="in")) == ["bc", "ba"]
        there, back = (await walked(shelf, "a"))[1].steps
        assert (there.backwards, back.backwards, back.source, back.target) == (False, True, "b", "c")

    async def test_fewest_steps_come_first_and_of_these_the_heaviest(self, shelf: GraphShelf) -> None:
        """A long way never beats a short one; equal ones go by the id before, then by the type."""
        links = [
            edge("a", "d", weight=0.1),
            *(edge("a", name, weight=weight) for name, weight in (("b", 0.5), ("c", 0.8))),
            *(edge(name, "d") for name in "bc"),
            *(edge(name, "e", weight=weight) for name, weight in (("b", 0.8), ("c", 0.5), ("d", 1.0))),
            edge("b", "e", weight=0.8, type="a"),
        ]
        await filled(shelf.graphs, "abcde", *links)
        neighbors = await walked(shelf, "a", hops=3, direction="out")
        assert ways(neighbors) == ["ac", "ab", "ad", "abe"]
        assert [neighbor.hop for neighbor in neighbors] == [1, 1, 1, 2]
        assert neighbors[3].steps[1].type == "a"

    async def test_cycles_loops_and_hubs_end(self, shelf: GraphShelf) -> None:
        """Everyone is reached once, and never a start."""
        await filled(shelf.graphs, "abc", edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("a", "a"))
        rim = [f"n{number:03}" for number in range(120)]
        heavy = [edge("b", name, weight=1 / (1 + number % 7)) for number, name in enumerate(rim)]
        await shelf.graphs.add(adding(*map(node, rim), *heavy, *(edge(name, "b") for name in rim)))
        from_both = await walked(shelf, "a", "c", hops=5)
        assert from_both[0].node.id == "b"
        assert sorted(neighbor.node.id for neighbor in from_both[1:]) == rim
        pages = [await walked(shelf, "a", hops=5, offset=start, limit=40) for start in range(0, 160, 40)]
        neighbors = await walked(shelf, "a", hops=5)
        assert [neighbor for page in pages for neighbor in page] == neighbors
        assert [neighbor.decay for neighbor in neighbors] == sorted(
            (neighbor.decay for neighbor in neighbors), reverse=True
        )

    async def test_an_instant_leaves_out_what_was_not_there(self, shelf: GraphShelf) -> None:
        """Edges and nodes, expired and future ones; both ends of a span are included."""
        await shelf.graphs.add(
            adding(
                node("a"),
                node("b", valid_from=year(2000), valid_until=year(2010)),
                node("c"),
                edge("a", "b"),
                edge("b", "c", valid_from=year(2005), valid_until=year(2006)),
                edge("a", "c", weight=0.5, valid_from=year(2020)),
            )
        )
        paths = {
            number: ways(await walked(shelf, "a", at=year(number)))
            for number in (1999, 2000, 2004, 2005, 2006, 2007, 2010, 2011, 2020)
        }
        early: dict[int, list[str]] = {1999: [], 2000: ["ab"], 2004: ["ab"], 2005: ["ab", "abc"]}
        late = {2006: ["ab", "abc"], 2007: ["ab"], 2010: ["ab"], 2011: [], 2020: ["ac"]}
        assert paths == early | late
        assert ways(await walked(shelf, "a")) == ["ab", "ac"]
        assert await walked(shelf, "b", at=year(2020)) == []

    async def test_nodes_of_one_id_in_two_graphs_are_walked_as_one(self, shelf: GraphShelf) -> None:
        """The node is that of the graph that was named first."""
        await filled(shelf.graphs, "ab", edge("a", "b", weight=0.5))
        more = (node("b", graph=PLACES), node("c", graph=PLACES), edge("b", "c", graph=PLACES, weight=0.5))
        await shelf.graphs.add(adding(*more))
        neighbors = await walked(shelf, "a", graphs=BOTH)
        assert ways(neighbors) == ["ab", "abc"]
        assert [neighbor.node.graph for neighbor in neighbors] == [PEOPLE, PLACES]
        other = await walked(shelf, "c", graphs=(PLACES.id, PEOPLE.id))
        assert [neighbor.node.graph for neighbor in other] == [PLACES, PEOPLE]
        assert ways(await walked(shelf, "a")) == ["ab"]

    async def test_of_very_many_graphs_the_same_is_found(self, shelf: GraphShelf) -> None:
        """Wherever else there are nodes of the same ids and names."""
        await filled(shelf.graphs, "abc", edge("a", "b", weight=0.5), edge("b", "c"))
        await shelf.graphs.add(adding(node("b", graph=PLACES), node("d", graph=PLACES)))
        await shelf.graphs.add(adding(edge("b", "d", graph=PLACES)))
        others = tuple(SourceId(f"none {number}") for number in range(60))
        assert ways(await walked(shelf, "a", graphs=(*others, PEOPLE.id))) == ["ab", "abc"]
        assert ways(await walked(shelf, "a", graphs=(*BOTH, *others))) == ["ab", "abc", "abd"]
        assert await walked(shelf, "a", graphs=others) == []
        matches = await shelf.graphs.nodes_by_name((*others, PLACES.id), ["a", "b", "d"])
        assert [(key, neighbor.id, neighbor.graph.id) for key, neighbor in matches] == [
            (key, key, PLACES.id) for key in "bd"
        ]


MERGE = event("merge", ("a", "b"), ("a",))
SPLIT = event("split", ("a",), ("a", "b"))


class GraphLevelsContract:
    """A level only falls: by changes, by evidence, by what ends an edge, and by merges."""

    async def test_a_change_takes_the_lower_level_and_a_repeat_changes_none(self, shelf: GraphShelf) -> None:
        await filled(shelf.graphs, "ab", edge("a", "b"))
        same, other = (node("a", **LOW), node("a", type="city", **LOW))
        await shelf.graphs.add(adding(same, edge("a", "b", **LOW)))
        assert await levels_of(shelf) == {"a": "trusted", "b": "trusted", "ab": "trusted"}
        await shelf.graphs.add(adding(other, edge("a", "b", weight=0.5, **LOW)))
        await shelf.graphs.add(adding(node("a", type="town"), edge("a", "b", weight=0.7)))
        assert await levels_of(shelf) == {"a": "untrusted", "b": "trusted", "ab": "untrusted"}
        [stored] = await shelf.graphs.nodes_by_id([PEOPLE.id], ["a"])
        assert (stored.origin, stored.type) == ("web", "town")

    async def test_more_evidence_takes_the_lower_level(self, shelf: GraphShelf) -> None:
        await shelf.write("d1", "d2", "d3")
        await filled(shelf.graphs, "ab", edge("a", "b", evidence="d1", **LOW))
        await shelf.graphs.add(adding(edge("a", "b", evidence="d2")))
        assert (await levels_of(shelf))["ab"] == "untrusted"
        await filled(shelf.graphs, "ac", edge("a", "c", evidence="d1"))
        await shelf.graphs.add(adding(edge("a", "c", evidence="d3", origin="agent", trust="standard")))
        assert (await levels_of(shelf))["ac"] == "standard"

    async def test_an_edge_has_at_most_the_level_of_what_ended_it(self, shelf: GraphShelf) -> None:
        agent: dict[str, Any] = {"origin": "agent", "trust": "standard"}
        await filled(shelf.graphs, "abcd", edge("a", "b", valid_from=year(2000)))
        await shelf.graphs.add(adding(edge("a", "c", valid_from=year(2010), **agent), single=True))
        await shelf.graphs.add(adding(edge("a", "d", valid_from=year(2005)), single=True))
        assert {**await levels_of(shelf)}.items() >= {
            "ab": "standard",
            "ac": "standard",
            "ad": "standard",
        }.items()

    async def test_a_merged_node_has_the_lowest_level(self, shelf: GraphShelf) -> None:
        """Of the nodes, and of who merges them; undoing it raises nothing."""
        await filled(shelf.graphs, "abcx", edge("b", "x"), edge("c", "x"))
        await shelf.graphs.add(adding(node("d", **LOW), node("e")))
        await shelf.graphs.merge(PEOPLE.id, "a", ["b"], event("merge", ("a", "b"), ("a",)), origin="agent")
        await shelf.graphs.merge(PEOPLE.id, "c", ["d"], event("merge", ("c", "d"), ("c",)))
        await shelf.graphs.merge(PEOPLE.id, "e", ["c"], event("merge", ("e", "c"), ("e",)))
        levels = await levels_of(shelf)
        assert levels == {
            "a": "standard", "e": "untrusted", "x": "trusted", "ax": "standard", "ex": "trusted"
        }  # fmt: skip
        await shelf.graphs.split(PEOPLE.id, 1, event("split", ("a",), ("a", "b")))
        levels = await levels_of(shelf)
        assert (levels["a"], levels["b"], levels["bx"]) == ("standard", "trusted", "standard")


class GraphMergesContract:
    """Making several nodes one, and taking that back."""

    async def test_a_merge_leads_edges_and_names_to_the_one(self, shelf: GraphShelf) -> None:
        """An edge that is there already, and one between the two, are put aside."""
        await shelf.graphs.add(adding(node("a"), node("b", name="Bob", aliases=("Bobby",)), *map(node, "xy")))
        links = [edge("a", "x"), edge("b", "x"), edge("y", "b", weight=0.5), edge("a", "b"), edge("b", "b")]
        await shelf.graphs.add(adding(*links))
        merged = await shelf.graphs.merge(PEOPLE.id, "a", ["b"], MERGE)
        assert (merged.id, merged.name, merged.aliases) == ("a", "a", ("Bob", "Bobby"))
        assert await every_id(shelf.graphs) == ["a", "x", "y"]
        assert await every_edge(shelf.graphs) == [links[0], edge("y", "a", weight=0.5), edge("a", "a")]
        assert [match.id for _, match in await shelf.graphs.nodes_by_name([PEOPLE.id], ["bob", "bobby"])] == [
            "a",
            "a",
        ]
        assert [
            match.id for match, _ in await shelf.graphs.nodes_by_terms([PEOPLE.id], ["bob"], limit=2)
        ] == ["a"]
        assert ways(await walked(shelf, "x")) == ["xa", "xay"]
        assert (await shelf.graphs.summary(PEOPLE.id)).edges == 3
        again = await shelf.graphs.add(adding(node("a"), edge("y", "a", weight=0.5)))
        assert [written.outcome for written in again] == ["unchanged", "unchanged"]
        assert (await shelf.graphs.nodes_by_id([PEOPLE.id], ["a"]))[0].aliases == ("Bob", "Bobby")

    async def test_a_split_brings_all_of_it_back(self, shelf: GraphShelf) -> None:
        """Nodes, names and edges as they were, and what was added since stays with the one."""
        await shelf.write("d", "e")
        nodes = [node("a"), node("b", name="Bob", properties={"x": 1}), *map(node, "xy")]
        links = [edge("a", "x", evidence="d"), edge("b", "x", evidence="e"), edge("y", "b"), edge("a", "b")]
        await shelf.graphs.add(adding(*nodes, *links))
        await shelf.graphs.merge(PEOPLE.id, "a", ["b"], MERGE)
        await shelf.graphs.add(adding(edge("a", "y", type="likes")))
        number = (await shelf.graphs.events(PEOPLE.id))[0].number
        assert await shelf.graphs.split(PEOPLE.id, number, SPLIT) == nodes[:2]
        stored = await every_edge(shelf.graphs)
        assert sorted(stored, key=lambda stored_edge: stored_edge.id) == sorted(
            [*links, edge("a", "y", type="likes")], key=lambda expected_edge: expected_edge.id
        )
        assert [match.id for _, match in await shelf.graphs.nodes_by_name([PEOPLE.id], ["bob"])] == ["b"]
        events = await shelf.graphs.events(PEOPLE.id)
        assert [(merge.kind, merge.before, merge.after, merge.by) for merge in events] == [
            ("merge", ("a", "b"), ("a",), "anna"),
            ("split", ("a",), ("a", "b"), "anna"),
        ]
        assert len(await shelf.graphs.events(PEOPLE.id, node="b")) == 2
        assert await shelf.graphs.events(PEOPLE.id, node="x") == await shelf.graphs.events(PLACES.id) == []

    async def test_what_cannot_be_merged_or_split_is_said(self, shelf: GraphShelf) -> None:
        """Unknown nodes and merges, twice the same, a node that is there again; nothing is half done."""
        await filled(shelf.graphs, "abc", edge("b", "c"))
        with pytest.raises(NotFound):
            await shelf.graphs.merge(PEOPLE.id, "a", ["b", "none"], MERGE)
        assert await every_id(shelf.graphs) == ["a", "b", "c"]
        await shelf.graphs.merge(PEOPLE.id, "a", ["b"], MERGE)
        number = (await shelf.graphs.events(PEOPLE.id))[0].number
        for graph, wrong in ((PEOPLE.id, number + 9), (PLACES.id, number)):
            with pytest.raises(NotFound):
                await shelf.graphs.split(graph, wrong, SPLIT)
        await shelf.graphs.add(adding(node("b")))
        with pytest.raises(Conflict, match="again"):
            await shelf.graphs.split(PEOPLE.id, number, SPLIT)
        await shelf.graphs.delete_nodes(PEOPLE.id, ["b"])
        await shelf.graphs.split(PEOPLE.id, number, SPLIT)
        with pytest.raises(Conflict, match="undone"):
            await shelf.graphs.split(PEOPLE.id, number, SPLIT)
        assert await every_edge(shelf.graphs) == [edge("b", "c")]

    async def test_merges_that_build_on_each_other_are_undone_last_first(self, shelf: GraphShelf) -> None:
        """Also where the second one is about the other end of an edge."""
        links = [edge("b", "x"), edge("b", "y"), edge("z", "b")]
        await filled(shelf.graphs, "abxyz", *links)
        await shelf.graphs.merge(PEOPLE.id, "a", ["b"], MERGE)
        await shelf.graphs.merge(PEOPLE.id, "x", ["y"], event("merge", ("x", "y"), ("x",)))
        first, second = [event.number for event in await shelf.graphs.events(PEOPLE.id)]
        assert [edge.id for edge in await every_edge(shelf.graphs)] == [edge("a", "x").id, edge("z", "a").id]
        with pytest.raises(Conflict, match="depends on it"):
            await shelf.graphs.split(PEOPLE.id, first, SPLIT)
        await shelf.graphs.split(PEOPLE.id, second, event("split", ("x",), ("x", "y")))
        await shelf.graphs.split(PEOPLE.id, first, SPLIT)
        assert await every_edge(shelf.graphs) == links

    async def test_what_is_forgotten_meanwhile_does_not_come_back(self, shelf: GraphShelf) -> None:
        """Neither an edge that was led elsewhere or put aside, nor a node that only it led to."""
        await shelf.write("d", "e")
        mine = [edge("b", "x", evidence="d"), edge("b", "y", evidence="d")]
        await shelf.graphs.add(adding(*map(node, "abxy"), *mine, passing=("b",)))
        await shelf.graphs.add(adding(edge("a", "x", evidence="e")))
        await shelf.graphs.merge(PEOPLE.id, "a", ["b"], MERGE)
        await shelf.forget("d")
        assert await every_edge(shelf.graphs) == [edge("a", "x", evidence="e")]
        number = (await shelf.graphs.events(PEOPLE.id))[0].number
        await shelf.graphs.split(PEOPLE.id, number, SPLIT)
        assert await every_edge(shelf.graphs) == [edge("a", "x", evidence="e")]
        assert await every_id(shelf.graphs) == ["a", "x", "y"]

    async def test_what_was_merged_goes_with_the_one(self, shelf: GraphShelf) -> None:
        """And then cannot be split off any more."""
        await filled(shelf.graphs, "abcx", edge("b", "x"), edge("c", "x"))
        await shelf.graphs.merge(PEOPLE.id, "b", ["c"], event("merge", ("b", "c"), ("b",)))
        await shelf.graphs.merge(PEOPLE.id, "a", ["b"], MERGE)
        await shelf.graphs.delete_nodes(PEOPLE.id, ["a"])
        await shelf.graphs.add(adding(node("a"), node("b")))
        for stored_event in await shelf.graphs.events(PEOPLE.id):
            with pytest.raises(Conflict):
                await shelf.graphs.split(PEOPLE.id, stored_event.number, SPLIT)
        assert await every_edge(shelf.graphs) == []
