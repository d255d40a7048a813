"""A graph of dictionaries: written, walked, dated, drawn, carried, linked to others."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.agent_stores import contents_of, store

from conspectus.errors import InvalidInput, NotFound
from conspectus.facades.agent import AgentContext, ContextGraph, ContextRetriever, EntityLinker
from conspectus.sync import BlockingEngine
from conspectus.text.name_keys import BASE, uri_of

PEOPLE = [
    {"id": "A", "type": "person", "properties": {"content": "Ada writes programs.", "weight": 1.0}},
    {"id": "B", "type": "person"},
    {"id": "C", "type": "concept"},
]
KNOWS = [
    {"source_id": "A", "target_id": "B", "type": "KNOWS", "weight": 0.9},
    {"source_id": "B", "target_id": "C", "type": "LIKES", "weight": 0.7},
]
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingEngine]:
    with store(tmp_path_factory.mktemp("agent")) as opened:
        yield opened


@pytest.fixture
def graph(engine: BlockingEngine, request: pytest.FixtureRequest) -> ContextGraph:
    """A graph of its own for each test."""
    return ContextGraph(engine, name=request.node.name)


@pytest.fixture
def people(graph: ContextGraph) -> ContextGraph:
    """Three nodes in a row."""
    assert (graph.add_nodes(PEOPLE), graph.add_edges(KNOWS)) == (3, 2)
    return graph


def test_adding_twice_is_adding_once(people: ContextGraph) -> None:
    assert (people.add_nodes(PEOPLE), people.add_edges(KNOWS)) == (0, 0)
    assert people.add_nodes([{"id": "C", "type": "idea"}]) == 1
    numbers = people.stats()
    assert (numbers["node_count"], numbers["edge_count"]) == (3, 2)
    assert numbers["node_types"] == {"person": 2, "idea": 1}
    assert numbers["edge_types"] == {"KNOWS": 1, "LIKES": 1}


def test_neighbors_have_hop_decay_and_path(people: ContextGraph) -> None:
    near, far = people.get_neighbors("A", 2)
    assert (near["id"], near["hop"], near["decay"], near["path"]) == ("B", 1, 0.9, ["A", "B"])
    assert (far["id"], far["hop"], far["path"]) == ("C", 2, ["A", "B", "C"])
    assert far["decay"] == pytest.approx(0.63)
    assert (far["relationship"], far["weight"]) == ("LIKES", 0.7)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"hops": 1}, ["B"]),
        ({"hops": 2, "min_weight": 0.8}, ["B"]),
        ({"hops": 2, "relationship_types": ["KNOWS"]}, ["B"]),
        ({"hops": 2, "relationship_types": ["LIKES"]}, []),
        ({"hops": 2, "direction": "in"}, []),
        ({"hops": 2, "skip": 1}, ["C"]),
        ({"hops": 2, "limit": 1}, ["B"]),
    ],
)
def test_neighbors_are_chosen(people: ContextGraph, options: dict[str, object], expected: list[str]) -> None:
    assert [neighbor["id"] for neighbor in people.get_neighbors("A", **options)] == expected


def test_edges_are_walked_both_ways(people: ContextGraph) -> None:
    assert [neighbor["id"] for neighbor in people.get_neighbors("C", 2)] == ["B", "A"]
    assert people.get_neighbors("C", 2, direction="out") == []
    with pytest.raises(NotFound):
        people.get_neighbors("nobody")
    with pytest.raises(TypeError):
        people.get_neighbors("A", types=["KNOWS"])


def test_edges_may_come_before_their_nodes(people: ContextGraph) -> None:
    edges = [{"source_id": "A", "target_id": "C"}, {"source_id": "A", "target_id": "ghost"}]
    assert people.add_edges(edges) == 2
    assert people.get_node("ghost")["name"] == "ghost"
    people.add_nodes([{"id": "ghost", "type": "spirit", "properties": {"content": "a ghost"}}])
    [ghost] = [node for node in people.get_neighbors("A") if node["id"] == "ghost"]
    assert (ghost["type"], ghost["content"]) == ("spirit", "a ghost")
    assert people.add_edges(edges) == 0


@pytest.mark.parametrize(
    "node", [{}, {"id": 3}, {"id": "x", "colour": "red"}, {"id": "x", "properties": "none"}, "x"]
)
def test_odd_nodes_are_refused(graph: ContextGraph, node: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        graph.add_nodes([{"id": "fine"}, node])
    assert graph.get_nodes() == []


@pytest.mark.parametrize("edge", [{"source_id": "A"}, {"weight": "heavy"}, {"weight": 0.0}, {"weight": True}])
def test_odd_edges_are_refused(people: ContextGraph, edge: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        people.add_edges([{"source_id": "A", "target_id": "C"} | edge if "weight" in edge else edge])
    assert len(people.get_edges()) == 2


def test_what_is_read_is_a_copy(people: ContextGraph) -> None:
    people.get_nodes()[0]["properties"]["content"] = "changed"
    people.get_node("A")["type"] = "changed"
    people.get_edges()[0]["weight"] = 0.1
    assert people.get_node("A")["properties"] == {"content": "Ada writes programs.", "weight": 1.0}
    assert people.get_node("A")["type"] == "person"
    assert [edge["weight"] for edge in people.get_edges("A")] == [0.9]
    assert (people.get_node("nobody"), [node["id"] for node in people.get_nodes("concept")]) == (None, ["C"])


def test_questions_match_whole_words(graph: ContextGraph) -> None:
    graph.add_nodes([{"id": "1", "name": "Start of race"}, {"id": "2", "content": "Modern art and paint"}])
    assert [hit["node"]["id"] for hit in graph.query("art")] == ["2"]
    best = graph.query("modern art")[0]
    assert (best["content"], best["score"]) == ("Modern art and paint", 1.0)
    assert graph.query("tar") == []
    with pytest.raises(InvalidInput):
        graph.query("")


def test_things_are_there_in_their_time_only(graph: ContextGraph) -> None:
    graph.add_nodes(
        [
            {"id": "always"},
            {"id": "past", "valid_until": NEW_YEAR},
            {"id": "future", "valid_from": datetime(2026, 6, 1)},
        ]
    )
    graph.add_edges([{"source_id": "always", "target_id": target} for target in ("past", "future")])
    seen = {day: graph.state_at(f"2026-{day}") for day in ("01-01", "01-02", "06-01")}
    names = {day: [node["id"] for node in state["nodes"]] for day, state in seen.items()}
    assert names == {"01-01": ["always", "past"], "01-02": ["always"], "06-01": ["always", "future"]}
    assert [len(state["edges"]) for state in seen.values()] == [1, 0, 1]
    assert len(graph.get_nodes()) == 3
    assert [neighbor["id"] for neighbor in graph.get_neighbors("always", at="2026-03-01")] == []


def test_retrieval_is_of_a_time_if_one_is_named(engine: BlockingEngine) -> None:
    graph = ContextGraph(engine, name="timely")
    spans = {"open": {}, "past": {"valid_until": NEW_YEAR}, "future": {"valid_from": datetime(2026, 6, 1)}}
    graph.add_nodes([{"id": name, "content": f"A {name} offer.", **span} for name, span in spans.items()])
    graph.add_edges([{"source_id": "open", "target_id": target} for target in ("past", "future")])

    def scores_by_id(retriever: ContextRetriever, **asking: object) -> dict[str, float]:
        return {memory["id"]: memory["score"] for memory in retriever.retrieve("open offer", 9, **asking)}

    always = scores_by_id(ContextRetriever(engine, graph))
    assert (
        set(always) == {"open", "past", "future"} and scores_by_id(ContextRetriever(engine, graph)) == always
    )
    timely = ContextRetriever(engine, graph, as_of="2026-01-01")
    assert set(scores_by_id(timely)) == {"open", "past"}
    assert scores_by_id(timely)["open"] == always["open"]
    assert set(scores_by_id(timely, as_of="2026-01-02")) == {"open"}
    assert set(scores_by_id(timely, as_of=datetime(2026, 6, 1))) == {"open", "future"}
    assert scores_by_id(timely, as_of=None) == always


def test_a_saved_graph_is_the_same_again(
    people: ContextGraph, engine: BlockingEngine, tmp_path: Path
) -> None:
    people.add_nodes([{"id": "Ü \u2028 <&>", "aliases": ["x"], "valid_from": "2020-01-01"}])
    people.save(tmp_path / "graph.json")
    again = ContextGraph(engine, name="again")
    assert again.load(tmp_path / "graph.json") == {"nodes": 4, "edges": 2, "links": 0}
    assert again.load(tmp_path / "graph.json") == {"nodes": 0, "edges": 0, "links": 0}
    assert again.get_nodes() == people.get_nodes()
    assert [{**edge, "id": ""} for edge in again.get_edges()] == [{**e, "id": ""} for e in people.get_edges()]
    for odd in ("[]", "{", '{"nodes": [3]}'):
        (tmp_path / "odd.json").write_text(odd)
        with pytest.raises(InvalidInput):
            again.load(tmp_path / "odd.json")


def test_other_programs_can_read_it(people: ContextGraph) -> None:
    drawn, listed = ElementTree.fromstring(people.to_svg()), ElementTree.fromstring(people.to_graphml())
    assert drawn.tag.endswith("svg") and listed.tag.endswith("graphml")
    assert {node["id"] for node in json.loads(people.to_json())["nodes"]} == {"A", "B", "C"}


def test_what_is_removed_takes_its_edges_along(people: ContextGraph) -> None:
    assert people.remove_nodes(["B", "nobody"]) == 1
    assert (people.get_edges(), people.remove_edges(["nothing"])) == ([], 0)
    assert (people.clear(), people.get_nodes(), people.add_nodes(PEOPLE)) == (2, [], 3)


def test_links_lead_from_graph_to_graph(people: ContextGraph, engine: BlockingEngine, tmp_path: Path) -> None:
    other = ContextGraph(engine, name="other side")
    other.add_nodes([{"id": "Z"}])
    link = people.link_graph(other, "A", "Z")
    assert people.link_graph(other, "A", "Z") == link
    there, node = people.navigate_to(link)
    assert (there.name, node, there.get_node(node)["id"]) == ("other side", "Z", "Z")
    for wrong in (("nobody", "Z"), ("A", "nobody")):
        with pytest.raises(KeyError):
            people.link_graph(other, *wrong)
    with pytest.raises(KeyError):
        people.navigate_to("nothing")
    people.add_nodes(PEOPLE)
    people.save(tmp_path / "linked.json")
    with store(tmp_path / "elsewhere") as second:
        moved = ContextGraph(second, name="moved")
        assert moved.load(tmp_path / "linked.json")["links"] == 1
        with pytest.raises(KeyError, match="other side"):
            moved.navigate_to(link)
        assert (moved.resolve_links([]), moved.resolve_links({"other side": other})) == (0, 1)
        assert moved.navigate_to(link)[0].get_node("Z")["id"] == "Z"
    assert people.clear() == 3 and people.links() == []


def test_addresses_are_the_same_for_the_same(people: ContextGraph) -> None:
    assert uri_of("Test Entity", "TEST") == f"{BASE}test_entity#test"
    assert uri_of("test  entity!", "test") == f"{BASE}test_entity#test"
    linker = EntityLinker(people, base_uri="https://example.org/")
    first = linker.assign_uri("n1", "Test Entity", "TEST")
    assert first == "https://example.org/test_entity#test" == linker.assign_uri("n1", "Another", "TEST")
    second = linker.assign_uri("n2", "Test Entity", "TEST")
    assert (
        second.startswith("https://example.org/") and second.endswith("/test_entity#test") and second != first
    )
    assert linker.assign_uri("n2") == second
    assert people.get_node("n1")["name"] == "Test Entity"
    with pytest.raises(InvalidInput):
        EntityLinker(people, similarity_threshold=2)


def test_entities_are_linked_both_ways(people: ContextGraph) -> None:
    assert EntityLinker(people).link_entities("A", "C", confidence=0.95) == 2
    both = {
        (edge["source_id"], edge["target_id"]) for edge in people.get_edges() if edge["type"] == "same_as"
    }
    assert both == {("A", "C"), ("C", "A")}


def test_a_context_speaks_of_its_graph(engine: BlockingEngine) -> None:
    context = AgentContext(engine, user_id="speaker")
    counts = context.build_graph(PEOPLE, KNOWS)
    assert counts == {"nodes": 3, "edges": 2}
    assert [neighbor["id"] for neighbor in context.get_neighbors("A")] == ["B"]
    context.store("B plays chess.")
    memories = context.retrieve("Ada")
    assert memories[0]["content"] == "Ada writes programs."
    assert (memories[0]["source"], memories[0]["through"]) == ("graph", ["A"])
    assert "Ada writes programs." not in contents_of(context.retrieve("Ada", use_graph=False))
