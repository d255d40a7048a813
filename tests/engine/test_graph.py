"""Graphs through the engine: what is refused, who may see and write what, and what evidence gives away."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import (
    Conflict,
    ConspectusError,
    DanglingEdges,
    InvalidInput,
    NotFound,
    PermissionDenied,
    TooLarge,
)
from conspectus.model.access import Person, Principal, Role
from conspectus.model.graph import NewEdge, NewNode, Traversal

SETTINGS = replace(
    Settings(), embedder="none", max_graph_batch=50, max_traversal_nodes=200, log_level="critical"
)
LONG = 1_001 * "x"
BAD_NODES: list[Callable[[], NewNode]] = [
    partial(NewNode, ""), partial(NewNode, " "), partial(NewNode, LONG),
    partial(NewNode, "a\x00"), partial(NewNode, "\ud800"), partial(NewNode, "a", type=""),
    partial(NewNode, "a", name="\x00"), partial(NewNode, "a", aliases=("",)),
    partial(NewNode, "a", aliases="ab"),
    partial(NewNode, "a", properties={"x": object()}), partial(NewNode, "a", properties={"x": float("nan")}),
    partial(NewNode, "a", properties={"x": 70_000 * "y"}), partial(NewNode, "a", valid_from="yesterday"),
    partial(NewNode, "a", valid_from="2024-01-02", valid_until="2024-01-01"),
    partial(NewNode, "a", valid_from=datetime(1, 1, 1, tzinfo=UTC), valid_until="0000"),
]  # fmt: skip
BAD_EDGES: list[Callable[[], NewEdge]] = [
    *(partial(NewEdge, "a", "b", weight=weight) for weight in (0, -1, 1.1, float("nan"), float("inf"), True)),
    partial(NewEdge, "a", "b", weight="1"),
    partial(NewEdge, "", "b"), partial(NewEdge, "a", LONG),
    partial(NewEdge, "a", "b", type="\x00"), partial(NewEdge, "a", "b", evidence=""),
    partial(NewEdge, "a", "b", valid_from="2024-01-02T00:00:01Z", valid_until="2024-01-02"),
]  # fmt: skip
BAD_WALKS: list[dict[str, Any]] = [
    {"hops": -1}, {"hops": 6}, {"direction": "up"}, {"min_weight": -0.1}, {"min_weight": 1.1},
    {"min_weight": float("nan")}, {"types": "x"}, {"types": ("",)}, {"offset": -1}, {"offset": 201},
    {"limit": 0}, {"limit": 1_001},
]  # fmt: skip


@dataclass
class SharedStore:
    """A store, its owner, and Ann, who may do what she was granted."""

    owner: Engine
    ann: Engine
    name: str

    async def grant(self, source: str, role: Role = "viewer") -> None:
        await self.owner.access.grant("default", Principal("user", self.name), role, source=source)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
async def store(engine: Engine) -> SharedStore:
    await engine.collections.get_or_create("default")
    user = await engine.people.create_user("ann")
    return SharedStore(engine, engine.as_person(Person("ann", id=user.id)), user.id)


async def add_linked_pair(engine: Engine, **fields: Any) -> str:
    """Two nodes with an edge between them; its id."""
    await engine.graph.add_nodes([NewNode("a"), NewNode("b")])
    return (await engine.graph.add_edges([NewEdge("a", "b", **fields)]))[0].id


async def test_the_case_of_the_published_design(engine: Engine) -> None:
    await engine.graph.add_nodes(NewNode(name) for name in "ABC")
    await engine.graph.add_edges([NewEdge("A", "B", "likes", 0.9), NewEdge("B", "C", "knows", 0.7)])
    b, c = await engine.graph.neighbors("A", Traversal(hops=2))
    assert (b.hop, b.decay, b.path) == (1, 0.9, ("A", "B"))
    assert (c.hop, round(c.decay, 9), c.path) == (2, 0.63, ("A", "B", "C"))
    for walk in (Traversal(), Traversal(hops=2, min_weight=0.8), Traversal(hops=2, types=("likes",))):
        assert [neighbor.node.id for neighbor in await engine.graph.neighbors("A", walk)] == ["B"]


@pytest.mark.parametrize("bad", BAD_NODES, ids=range(len(BAD_NODES)))
async def test_nodes_that_cannot_be_stored_are_refused_with_all_others(
    engine: Engine, bad: Callable[[], NewNode]
) -> None:
    await engine.graph.add_nodes([NewNode("first")])
    with pytest.raises(InvalidInput):
        await engine.graph.add_nodes([NewNode("good"), bad()])
    assert [node.id for node in (await engine.graph.list_nodes()).nodes] == ["first"]


@pytest.mark.parametrize("bad", BAD_EDGES, ids=range(len(BAD_EDGES)))
async def test_edges_that_cannot_be_stored_are_refused_with_all_others(
    engine: Engine, bad: Callable[[], NewEdge]
) -> None:
    await add_linked_pair(engine)
    with pytest.raises(InvalidInput):
        await engine.graph.add_edges([NewEdge("b", "a"), bad()])
    assert len((await engine.graph.list_edges()).edges) == 1


@pytest.mark.parametrize("bad", BAD_WALKS, ids=range(len(BAD_WALKS)))
async def test_walks_that_cannot_be_made_are_refused(engine: Engine, bad: dict[str, Any]) -> None:
    await add_linked_pair(engine)
    with pytest.raises(InvalidInput):
        await engine.graph.neighbors("a", replace(Traversal(), **bad))


async def test_no_more_than_the_settings_allow(engine: Engine) -> None:
    with pytest.raises(TooLarge):
        await engine.graph.add_nodes(NewNode(str(number)) for number in range(51))
    await engine.graph.add_nodes(NewNode(str(number)) for number in range(50))
    with pytest.raises(TooLarge):
        await engine.graph.add_edges(NewEdge("1", str(number % 50)) for number in range(51))
    with pytest.raises(TooLarge):
        await engine.graph.delete_nodes([str(number) for number in range(51)])
    with pytest.raises(InvalidInput):
        await engine.graph.delete_edges("one id")
    for limit in (0, 1_001):
        with pytest.raises(InvalidInput):
            await engine.graph.list_nodes(limit=limit)
        with pytest.raises(InvalidInput):
            await engine.graph.search_nodes("x", limit=limit)


async def test_what_is_not_there_is_said(engine: Engine) -> None:
    with pytest.raises(NotFound, match="graph"):
        await engine.graph.list_nodes(graph="none", collection=(await engine.collections.get_or_create()).id)
    await add_linked_pair(engine)
    for ask in (engine.graph.get_node, engine.graph.neighbors):
        with pytest.raises(NotFound, match="node"):
            await ask("none")
    with pytest.raises(NotFound, match="node"):
        await engine.graph.list_edges(node="none")
    with pytest.raises(NotFound, match="document"):
        await engine.graph.add_edges([NewEdge("a", "b", evidence="none")])
    with pytest.raises(DanglingEdges) as collect_errors:
        await engine.graph.add_edges([NewEdge("a", "x"), NewEdge("y", "b")])
    assert collect_errors.value.missing == ("x", "y")
    assert (await engine.graph.delete_nodes(["none"])).nodes == 0


async def test_graphs_and_other_sources_do_not_take_each_others_names(engine: Engine) -> None:
    await engine.add("a document", source="default")
    await add_linked_pair(engine)
    graph = await engine.graph.get_or_create()
    assert (graph.name, graph.kind) == ("graph/default", "graph")
    assert (
        await engine.graph.get_or_create(graph.id)
        == await engine.graph.get_or_create("graph/default")
        == graph
    )
    assert await engine.documents.count() == 1
    with pytest.raises(NotFound):
        await engine.graph.list_nodes(
            graph=(await engine.collections.get_source("default", collection="default")).id
        )
    await engine.collections.get_or_create_source("graph/taken")
    with pytest.raises(Conflict):
        await engine.graph.get_or_create("taken")
    odd = await engine.graph.get_or_create("a/b%🎉")
    assert [listed.source.name for listed in await engine.graph.list()] == [odd.name, "graph/default"]
    for bad in ("", 200 * "🎉"):
        with pytest.raises(InvalidInput):
            await engine.graph.get_or_create(bad)


async def test_words_are_found_whole_and_in_their_forms(engine: Engine) -> None:
    await engine.graph.add_nodes(
        [
            NewNode("1", name="start"),
            NewNode(
                "2", name="Art", aliases=("The Arts",), properties={"content": ["Painting", {"x": "walls"}]}
            ),
            NewNode("3", name="artist", properties={"content": "art on a wall", "n": 3}),
        ]
    )
    scores = {hit.node.id: hit.score for hit in await engine.graph.search_nodes("ART wall")}
    assert scores == {"2": 1.0, "3": 1.0}
    assert [hit.node.id for hit in await engine.graph.search_nodes("art")] == ["2", "3"]
    assert [(hit.node.id, hit.score) for hit in await engine.graph.search_nodes("the arts")] == [
        ("2", 1.0),
        ("3", 1.0),
    ]
    assert [hit.score for hit in await engine.graph.search_nodes("paints music")] == [0.5]
    assert await engine.graph.search_nodes("tar") == await engine.graph.search_nodes("?!") == []
    with pytest.raises(InvalidInput):
        await engine.graph.search_nodes(" ")
    with pytest.raises(TooLarge):
        await engine.graph.search_nodes(10_001 * "x")


async def test_who_sees_nothing_of_a_graph_is_told_that_there_is_none(store: SharedStore) -> None:
    edge = await add_linked_pair(store.owner)
    await store.owner.add("seen", source="seen")
    await store.grant("seen")
    graph = store.ann.graph
    for ask in (
        graph.list_nodes(), graph.list_edges(), graph.get_node("a"), graph.neighbors("a"),
        graph.search_nodes("a"),
        graph.export(), graph.delete("default"), graph.snapshot(datetime.now(UTC)),
        graph.delete_nodes(["a"]), graph.delete_edges([edge]),
    ):  # fmt: skip
        with pytest.raises(NotFound, match="graph"):
            await ask
    assert await store.ann.graph.list() == []
    with pytest.raises(PermissionDenied):
        await store.ann.graph.add_nodes([NewNode("c")])
    assert len((await store.owner.graph.list_nodes()).nodes) == 2


async def collect_errors(*questions: Any) -> list[type[ConspectusError] | None]:
    """The errors of questions that are put one after the other."""
    errors: list[type[ConspectusError] | None] = []
    for question in questions:
        try:
            await question
            errors.append(None)
        except ConspectusError as error:
            errors.append(type(error))
    return errors


@pytest.mark.parametrize(("role", "maximum"), [("viewer", 1), ("editor", 5), ("manager", 6)])
async def test_readers_see_editors_write_and_managers_delete(
    store: SharedStore, role: Role, maximum: int
) -> None:
    edge = await add_linked_pair(store.owner)
    await store.grant("graph/default", role)
    assert [graph.source.name for graph in await store.ann.graph.list()] == ["graph/default"]
    ann = store.ann
    errors = await collect_errors(
        ann.graph.list_nodes(),
        ann.graph.add_nodes([NewNode("c")]),
        ann.graph.add_edges([NewEdge("a", "c")]),
        ann.graph.delete_edges([edge]),
        ann.graph.delete_nodes(["a"]),
        ann.graph.delete("default"),
    )
    assert errors == [None] * maximum + [PermissionDenied] * (6 - maximum)


async def test_evidence_that_may_not_be_seen_is_not_revealed(store: SharedStore) -> None:
    secret = (await store.owner.add("a secret", source="secrets"))[0].id
    readable = (await store.owner.add("known", source="seen"))[0].id
    await add_linked_pair(store.owner, evidence=secret)
    await store.owner.graph.add_edges([NewEdge("b", "a", evidence=readable)])
    for source in ("graph/default", "seen"):
        await store.grant(source, "editor")
    assert [edge.evidence for edge in (await store.owner.graph.list_edges()).edges] == [secret, readable]
    assert [edge.evidence for edge in (await store.ann.graph.list_edges()).edges] == [None, readable]
    state = await store.ann.graph.snapshot(datetime.now(UTC))
    assert [edge.evidence for edge in state.edges] == [None, readable]
    for form in ("json", "graphml"):
        assert secret not in await store.ann.graph.export(form)
        assert secret in await store.owner.graph.export(form)
    for unseen in (secret, "none"):
        with pytest.raises(NotFound):
            await store.ann.graph.add_edges([NewEdge("a", "b", "says", evidence=unseen)])
    elsewhere = (await store.owner.add("far", collection="other"))[0].id
    with pytest.raises(NotFound):
        await store.owner.graph.add_edges([NewEdge("a", "b", "says", evidence=elsewhere)])


async def test_facts_go_with_the_documents_that_state_them(engine: Engine) -> None:
    documents = [
        written.id for written in await engine.add(["Ada lives in Rome.", "Ada lives in Rome, again."])
    ]
    ends = [NewNode("ada"), NewNode("rome")]
    for document in documents:
        fact = NewEdge("ada", "rome", "lives", valid_from="2020", evidence=document)
        [written] = await engine.graph._access.add_facts(ends, [fact], graph="default", collection="default")
        assert written.outcome == ("added" if document == documents[0] else "updated")
    await engine.documents.delete(documents[0])
    assert [edge.evidence for edge in (await engine.graph.list_edges()).edges] == [documents[1]]
    await engine.collections.delete_source("default", collection="default")
    assert (await engine.graph.list_nodes()).nodes == ()


async def test_two_graphs_of_a_collection_and_two_collections_do_not_mix(engine: Engine) -> None:
    await add_linked_pair(engine)
    await engine.graph.add_nodes([NewNode("a", type="other")], graph="second")
    await engine.graph.add_nodes([NewNode("a", type="far")], collection="elsewhere")
    assert (await engine.graph.get_node("a")).type == "entity"
    assert (await engine.graph.get_node("a", graph="second")).type == "other"
    assert (await engine.graph.get_node("a", collection="elsewhere")).type == "far"
    assert await engine.graph.neighbors("a", graph="second") == []
    receipt = await engine.graph.delete("default")
    assert (receipt.nodes, receipt.edges) == (2, 1)
    assert [graph.nodes for graph in await engine.graph.list()] == [1]
