"""What every store of graphs must do when it is written. Subclass `GraphsContract`, give it a `shelf`."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from conspectus.errors import DanglingEdges, InvalidInput, NotFound
from conspectus.model.graph import Edge, GraphReceipt
from conspectus.model.ids import SourceId
from conspectus.model.records import Source
from conspectus.text.hashing import edge_id, edge_id_as_spelled
from tests.support.graph_samples import (
    BOTH,
    PEOPLE,
    PLACES,
    GraphShelf,
    adding,
    edge,
    every_edge,
    every_id,
    filled,
    node,
    outcomes,
    year,
)
from tests.support.samples import NOON, SHELF

HOSTILE = ['a"b', "a'b;--", "😀\u200d", "\u2028", "%", "a_b", "<&>", "\\", "A", "a", " x", "\u202e"]


def lives(town: str, since: int | None, **fields: Any) -> Edge:
    """Where x lives since the beginning of a year."""
    return edge("x", town, type="lives", valid_from=None if since is None else year(since), **fields)


async def spans(shelf: GraphShelf) -> dict[str, tuple[int | None, int | None, str | None]]:
    """From which year until which year x lives where, and what is said to have ended that."""
    edges = await every_edge(shelf.graphs)
    names = {edge.id: edge.target for edge in edges}
    return {
        edge.target: (
            None if edge.valid_from is None else edge.valid_from.year,
            None if edge.valid_until is None else edge.valid_until.year,
            None if edge.closed_by is None else names[edge.closed_by],
        )
        for edge in edges
    }


class GraphsContract:
    """Nodes and edges as they come and go."""

    async def test_an_empty_graph_has_nothing(self, shelf: GraphShelf) -> None:
        """And neither has no graph at all; a graph that is gone is an error."""
        assert (await shelf.graphs.nodes([PEOPLE.id], limit=5)).nodes == ()
        assert (await shelf.graphs.edges([], limit=5)).edges == ()
        assert await shelf.graphs.nodes_by_id([PEOPLE.id], []) == []
        assert (await shelf.graphs.summary(PEOPLE.id)).nodes == 0
        assert await shelf.graphs.read_at(PEOPLE.id, NOON) == ([], [])
        with pytest.raises(NotFound):
            await shelf.graphs.summary(SourceId("gone"))
        with pytest.raises(NotFound):
            gone = Source(SourceId("gone"), SHELF, "graph/gone", {}, "graph")
            await shelf.graphs.add(adding(node("a", graph=gone)))

    async def test_nodes_come_back_as_they_were_given(self, shelf: GraphShelf) -> None:
        """Every field, and whatever the id is made of."""
        full = node(
            "full",
            type="person",
            name="Ada Ü",
            aliases=("Countess", 'The \u2028 "first"'),
            properties={"content": "x", "deep": [{"a": None, "b": [1, 2.5, True]}]},
            valid_from=year(1815),
            valid_until=year(1852),
        )
        nodes = [full, *map(node, HOSTILE)]
        written = await shelf.graphs.add(adding(*nodes))
        assert [(outcome.id, outcome.outcome) for outcome in written] == [
            (part.id, "added") for part in nodes
        ]
        assert await shelf.graphs.nodes_by_id([PEOPLE.id], [part.id for part in nodes]) == nodes
        assert await shelf.graphs.nodes_by_id([PLACES.id], HOSTILE) == []
        assert sorted(await every_id(shelf.graphs)) == sorted(part.id for part in nodes)

    async def test_a_node_given_again_is_changed_or_not(self, shelf: GraphShelf) -> None:
        """It keeps when it was recorded; within one go the last one counts."""
        later = NOON + timedelta(days=1)
        await shelf.graphs.add(adding(node("a")))
        again = node("a", recorded=later, updated=later)
        typed = replace(again, type="person", aliases=("A.",))
        outcomes = [
            written.outcome
            for written in await shelf.graphs.add(adding(again, typed, typed, node("b"), node("b")))
        ]
        assert outcomes == ["unchanged", "updated", "unchanged", "added", "unchanged"]
        assert await shelf.graphs.nodes_by_id([PEOPLE.id], ["a"]) == [replace(typed, recorded=NOON)]
        assert await shelf.graphs.nodes_by_name([PEOPLE.id], ["a."]) == []
        assert [key for key, _ in await shelf.graphs.nodes_by_name([PEOPLE.id], ["a"])] == ["a"]

    async def test_edges_come_back_as_they_were_given_in_order(self, shelf: GraphShelf) -> None:
        """Parallel ones, loops and opposite ones too; the same again is unchanged."""
        await shelf.write("d")
        edges = [
            edge("b", "a", weight=0.3, properties={"x": [1]}, valid_from=year(2001), valid_until=year(2002)),
            edge("a", "b", type="likes", evidence="d"),
            edge("a", "b"),
            edge("a", "b", valid_from=year(2000)),
            edge("a", "a"),
        ]
        await filled(shelf.graphs, "ab", *edges)
        assert await every_edge(shelf.graphs) == edges
        again = await shelf.graphs.add(adding(*(replace(part, recorded=year(2030)) for part in edges)))
        assert {written.outcome for written in again} == {"unchanged"}
        changed = replace(edges[2], weight=0.5, updated=year(2030))
        assert [written.outcome for written in await shelf.graphs.add(adding(changed, changed))] == [
            "updated",
            "unchanged",
        ]
        assert await shelf.graphs.edges_by_id(BOTH, [changed.id, "no", edges[0].id]) == [changed, edges[0]]
        assert await shelf.graphs.edges_by_id([PLACES.id], [changed.id]) == []

    async def test_edges_without_ends_are_refused_with_all_that_comes_with_them(
        self, shelf: GraphShelf
    ) -> None:
        """All ends are named, each once; a node of another graph is none."""
        await shelf.graphs.add(adding(node("b"), node("p", graph=PLACES)))
        with pytest.raises(DanglingEdges) as refused:
            await shelf.graphs.add(adding(node("n"), edge("n", "b"), edge("x", "b"), edge("p", "x")))
        assert set(refused.value.missing) == {"x", "p"}
        assert await every_id(shelf.graphs) == ["b"]
        with pytest.raises(NotFound):
            await shelf.graphs.add(adding(node("n"), edge("n", "b", evidence="never")))
        assert await every_id(shelf.graphs) == ["b"]
        assert await every_edge(shelf.graphs) == []

    async def test_pages_hold_everything_once(self, shelf: GraphShelf) -> None:
        """Nodes by id over several graphs, edges in order of recording, those of one node too."""
        names = [f"n{number:02}" for number in range(25)]
        for graph in (PLACES, PEOPLE):
            await shelf.graphs.add(adding(*(node(name, graph=graph, type=name[-1]) for name in names)))
        rim = [edge("n00", name, type=f"t{number}") for number in (1, 2) for name in names[1:]]
        await shelf.graphs.add(adding(*rim, edge("n03", "n04")))
        ids, after = [], None
        while page := await shelf.graphs.nodes(BOTH, after=after, limit=7):
            ids += [(node.id, node.graph.id) for node in page.nodes]
            if (after := page.next) is None:
                break
        assert ids == [(name, graph) for name in names for graph in BOTH]
        typed = await shelf.graphs.nodes([PEOPLE.id], type="4", limit=9)
        assert [node.id for node in typed.nodes] == ["n04", "n14", "n24"]
        first = await shelf.graphs.edges([PEOPLE.id], node="n00", limit=30)
        rest = await shelf.graphs.edges([PEOPLE.id], node="n00", after=first.next, limit=30)
        assert [*first.edges, *rest.edges] == rim
        assert [edge.type for edge in (await shelf.graphs.edges(BOTH, node="n04", limit=9)).edges] == [
            "t1",
            "t2",
            "knows",
        ]
        for read in (shelf.graphs.nodes, shelf.graphs.edges):
            with pytest.raises(InvalidInput):
                await read(BOTH, after="no cursor", limit=5)

    async def test_names_and_words_find_nodes(self, shelf: GraphShelf) -> None:
        """Whole ones only, of the graphs asked; those with most words first."""
        art, start = node("1", name="Art", aliases=("The Arts",)), node("2", name="start of art")
        await shelf.graphs.add(adding(art, start))
        await shelf.graphs.add(adding(node("1", graph=PLACES, name="Art")))
        matches = await shelf.graphs.nodes_by_name([PLACES.id, PEOPLE.id], ["art", "arts", "none"])
        assert [(key, match.graph.id) for key, match in matches] == [
            ("art", "people"),
            ("art", "places"),
            ("arts", "people"),
        ]
        assert [
            (match.id, count)
            for match, count in await shelf.graphs.nodes_by_terms([PEOPLE.id], ["art", "of"], limit=9)
        ] == [("2", 2), ("1", 1)]
        assert len(await shelf.graphs.nodes_by_terms(BOTH, ["art"], limit=2)) == 2
        assert await shelf.graphs.nodes_by_terms(BOTH, ["star"], limit=9) == []
        await shelf.graphs.add(adding(replace(art, name="Music", aliases=())))
        assert [match.id for _, match in await shelf.graphs.nodes_by_name([PEOPLE.id], ["art", "arts"])] == []

    async def test_a_single_fact_ends_the_one_before(self, shelf: GraphShelf) -> None:
        """It is not erased, and saying either again changes nothing."""
        await filled(shelf.graphs, "xprm")
        await shelf.graphs.add(adding(lives("p", 2000), edge("x", "m", type="likes")))
        written = await shelf.graphs.add(adding(lives("r", 2010), single=True))
        assert written[0].closed == (lives("p", 2000).id,)
        assert (await spans(shelf))["p"] == (2000, 2010, "r")
        assert (await spans(shelf))["m"] == (None, None, None)
        again = await shelf.graphs.add(adding(lives("p", 2000), lives("r", 2010), single=True))
        assert [(written.outcome, written.closed) for written in again] == [
            ("unchanged", ()),
            ("unchanged", ()),
        ]
        assert (await spans(shelf))["r"] == (2010, None, None)

    async def test_facts_may_come_in_any_order(self, shelf: GraphShelf) -> None:
        """A late one is put where it belongs: ended by the next, and ending the one before."""
        await filled(shelf.graphs, "xprmq")
        for town, since in (("m", 2020), ("p", 2000), ("q", 2030), ("r", 2010)):
            await shelf.graphs.add(adding(lives(town, since), single=True))
        assert await spans(shelf) == {
            "p": (2000, 2010, "r"),
            "r": (2010, 2020, "m"),
            "m": (2020, 2030, "q"),
            "q": (2030, None, None),
        }

    async def test_facts_of_one_go_end_each_other_too(self, shelf: GraphShelf) -> None:
        """With ends that were given, without beginnings, and with the same object again."""
        await filled(shelf.graphs, "xprm")
        facts = [
            lives("m", 2001, valid_until=year(2003)),
            lives("p", 2002),
            lives("p", 2004),
            lives("r", None),
        ]
        await shelf.graphs.add(adding(*facts, single=True))
        stored = await every_edge(shelf.graphs)
        assert [edge.valid_until for edge in stored] == [year(2003), NOON, NOON, None]
        await shelf.graphs.add(adding(replace(facts[0], valid_until=year(2002)), single=True))
        assert (await every_edge(shelf.graphs))[0].valid_until == year(2002)

    async def test_what_ended_a_fact_is_deleted_and_reopens_nothing(self, shelf: GraphShelf) -> None:
        """The older one stays ended; only saying so opens it again."""
        await shelf.write("d")
        await filled(shelf.graphs, "xpr")
        await shelf.graphs.add(adding(lives("p", 2000), lives("r", 2010, evidence="d"), single=True))
        await shelf.forget("d")
        assert await spans(shelf) == {"p": (2000, 2010, None)}
        outcomes = await shelf.graphs.add(adding(lives("p", 2000), single=True))
        assert outcomes[0].outcome == "updated"
        assert await spans(shelf) == {"p": (2000, None, None)}

    async def test_spellings_of_a_relation_are_one(self, shelf: GraphShelf) -> None:
        """They end each other and are traversed together; each keeps its text."""
        await filled(shelf.graphs, "xpr")
        await shelf.graphs.add(adding(lives("p", 2000), single=True))
        later = replace(lives("r", 2010), id="spelt", type="LIVES")
        assert (await shelf.graphs.add(adding(later, single=True)))[0].closed == (lives("p", 2000).id,)
        assert {edge.type for edge in await every_edge(shelf.graphs)} == {lives("p", 2000).type, "LIVES"}

    async def test_an_edge_keeps_the_id_of_its_spelling_where_it_has_one(self, shelf: GraphShelf) -> None:
        await filled(shelf.graphs, "xp")
        parts = (PEOPLE.id, "x", "p", "WORKS_AT", None)
        new = edge("x", "p", type="WORKS_AT")
        old, now = edge_id_as_spelled(*parts), edge_id(*parts)
        assert old != now == edge_id(PEOPLE.id, "x", "p", "works at", None)
        for id, outcome in ((old, "added"), (now, "unchanged")):
            [written] = await shelf.graphs.add(adding(replace(new, id=id)))
            assert (written.id, written.outcome) == (old, outcome)
        assert [edge.id for edge in await every_edge(shelf.graphs)] == [old]

    async def test_a_withdrawn_fact_ends_nothing(self, shelf: GraphShelf) -> None:
        """What it had ended is valid again, or until the next one begins."""
        await filled(shelf.graphs, "xprm")
        for town, since in (("p", 2000), ("r", 2010), ("m", 2020)):
            await shelf.graphs.add(adding(lives(town, since), single=True))
        changed = await shelf.graphs.withdraw(PEOPLE.id, lives("r", 2010).id, ends=year(2021))
        assert changed == [(lives("p", 2000).id, lives("m", 2020).id)]
        assert await spans(shelf) == {
            "p": (2000, 2020, "m"),
            "r": (2010, 2020, None),
            "m": (2020, None, None),
        }
        last = await shelf.graphs.withdraw(PEOPLE.id, lives("m", 2020).id, ends=None)
        assert last == [(lives("p", 2000).id, None)]
        assert (await spans(shelf))["p"] == (2000, None, None)
        assert await shelf.graphs.withdraw(PEOPLE.id, "missing", ends=None) == []

    async def test_edges_go_with_the_last_document_they_rest_on(self, shelf: GraphShelf) -> None:
        """One that was also given without any stays; so do nodes that are there by themselves."""
        await shelf.write("d", "e", "f")
        await filled(shelf.graphs, "ab")
        two = [edge("a", "b", evidence=name) for name in "de"]
        free = [edge("b", "a"), edge("b", "a", evidence="d")]
        outcomes = [written.outcome for written in await shelf.graphs.add(adding(*two, *free, two[1]))]
        assert outcomes == ["added", "updated", "added", "updated", "unchanged"]
        await shelf.forget("d")
        assert [edge.evidence for edge in await every_edge(shelf.graphs)] == ["e", None]
        await shelf.forget("e", "f")
        assert [edge.source for edge in await every_edge(shelf.graphs)] == ["b"]
        assert await every_id(shelf.graphs) == ["a", "b"]

    async def test_passing_nodes_go_with_their_last_edge(self, shelf: GraphShelf) -> None:
        """They change no node that is there, and one that is given by itself stays."""
        await shelf.write("d", "e")
        await shelf.graphs.add(adding(node("a", type="person")))
        for name, other in (("d", "b"), ("e", "c")):
            change = adding(node("a"), node(other), edge("a", other, evidence=name), passing=("a", other))
            assert await outcomes(shelf.graphs, change) == ["unchanged", "added", "added"]
        assert [person.type for person in await shelf.graphs.nodes_by_id([PEOPLE.id], ["a"])] == ["person"]
        await shelf.graphs.add(adding(node("c")))
        await shelf.forget("d", "e")
        assert await every_id(shelf.graphs) == ["a", "c"]

    async def test_deleting_takes_edges_along_and_counts(self, shelf: GraphShelf) -> None:
        """Unknown ids and those of other graphs count 0."""
        await filled(shelf.graphs, "abc", edge("a", "b"), edge("b", "c"), edge("c", "c"), edge("a", "c"))
        await shelf.graphs.add(adding(node("a", graph=PLACES)))
        assert await shelf.graphs.delete_edges(PLACES.id, [edge("a", "c").id]) == GraphReceipt()
        assert await shelf.graphs.delete_edges(PEOPLE.id, ["no", *2 * [edge("a", "c").id]]) == GraphReceipt(
            0, 1
        )
        assert await shelf.graphs.delete_nodes(PEOPLE.id, ["c", "c", "no"]) == GraphReceipt(1, 2)
        assert [edge.id for edge in await every_edge(shelf.graphs)] == [edge("a", "b").id]
        assert await every_id(shelf.graphs, *BOTH) == ["a", "a", "b"]
        await shelf.graphs.add(adding(node("c"), edge("c", "c")))
        assert await shelf.graphs.nodes_by_name([PEOPLE.id], ["c"]) != []

    async def test_a_graph_goes_with_all_that_is_in_it(self, shelf: GraphShelf) -> None:
        """And the other stays as it is."""
        await filled(shelf.graphs, "ab", edge("a", "b"))
        await shelf.graphs.add(adding(node("a", graph=PLACES, type="city")))
        summary = await shelf.graphs.summary(PEOPLE.id)
        assert (summary.source, summary.nodes, summary.edges) == (PEOPLE, 2, 1)
        assert (summary.types, summary.relations) == ({"entity": 2}, {"knows": 1})
        await shelf.drop(PEOPLE.id)
        assert await every_id(shelf.graphs, *BOTH) == ["a"]
        assert await every_edge(shelf.graphs, *BOTH) == []
        assert (await shelf.graphs.summary(PLACES.id)).types == {"city": 1}

    async def test_what_there_was_at_an_instant(self, shelf: GraphShelf) -> None:
        """Both ends of a span are included, open ones never end, and edges need both their ends."""
        await filled(shelf.graphs, "ab", edge("a", "b"))
        dated = node("c", valid_from=year(2000), valid_until=year(2010))
        link = edge("a", "c", valid_from=year(2005))
        await shelf.graphs.add(adding(dated, link, edge("c", "b")))
        years = {}
        for number in (1999, 2000, 2005, 2010, 2011):
            nodes, edges = await shelf.graphs.read_at(PEOPLE.id, year(number))
            years[number] = (len(nodes), len(edges))
        assert years == {1999: (2, 1), 2000: (3, 2), 2005: (3, 3), 2010: (3, 3), 2011: (2, 1)}
