import asyncio
from dataclasses import replace

import pytest

from conspectus import bootstrap
from conspectus.errors import Conflict, InvalidInput, NotFound, PermissionDenied, TooLarge
from conspectus.model.access import Principal
from conspectus.model.graph import NewEdge, NewNode
from conspectus.settings import Settings

SETTINGS = Settings(embedder="none")
NODES = [
    NewNode("ann", "person", "Ann Smith"),
    NewNode("joanna", "person", "Joanna Smith"),
    NewNode("uk", "place", "London", properties={"content": "the capital on the Thames"}),
    NewNode("ca", "place", "London"),
    NewNode("ontario", "place", "Ontario"),
    NewNode("art", "concept", "art"),
]


@pytest.fixture
async def engine(tmp_path):
    async with bootstrap.open(tmp_path, settings=SETTINGS) as engine:
        await engine.graph.add_nodes(NODES)
        await engine.graph.add_edges([NewEdge("ca", "ontario", "in")])
        yield engine


def map_node_ids(linked):
    return {link.mention.text: link.node.id if link.node else None for link in linked}


async def test_names_of_nodes_are_found_beside_those_of_their_form(engine):
    mentions = await engine.graph.extract_entities("At the start ann smith liked art in Paris.")
    assert [(mention.text, mention.type) for mention in mentions] == [
        ("ann smith", "person"), ("art", "concept"), ("Paris", "entity"),
    ]  # fmt: skip
    assert await engine.graph.extract_entities("") == []


async def test_mentions_are_linked_by_what_stands_around_them(engine):
    assert map_node_ids(await engine.graph.link_entities("Ann Smith lives in London in Ontario")) == {
        "Ann Smith": "ann", "London": "ca", "Ontario": "ontario",
    }  # fmt: skip
    assert map_node_ids(await engine.graph.link_entities("London by the Thames"))["London"] == "uk"
    assert map_node_ids(await engine.graph.link_entities("in London"))["London"] is None


async def test_people_are_not_linked_by_parts_of_their_names(engine):
    assert map_node_ids(await engine.graph.link_entities("Ann and Joanna and Smith")) == {
        "Ann": None,
        "Joanna": None,
        "Smith": None,
    }
    assert (
        map_node_ids(await engine.graph.link_entities("Ann Smith said. Then Smith left."))["Smith"] == "ann"
    )


async def test_a_mention_may_be_pointed_at_and_comes_with_its_candidates(engine):
    (linked,) = await engine.graph.link_entities("I love smart art", mention=(13, 16))
    assert (linked.mention.text, linked.node.id) == ("art", "art")
    assert linked.candidates[0].uri.endswith("art#concept")
    assert sum(linked.candidates[0].parts.values()) == pytest.approx(linked.candidates[0].score)


@pytest.mark.parametrize("mention", [(-1, 2), (3, 3), (2, 1), (0, 99), (1, 2)])
async def test_a_mention_has_to_be_in_the_text(engine, mention):
    with pytest.raises(InvalidInput):
        await engine.graph.link_entities("a  b", mention=mention)


async def test_limits_and_names_that_are_not_there_are_said(engine):
    with pytest.raises(TooLarge):
        await engine.graph.extract_entities("x" * (SETTINGS.max_query_characters + 1))
    with pytest.raises(InvalidInput):
        await engine.graph.link_entities("x", min_score=1.5)
    with pytest.raises(NotFound):
        await engine.graph.link_entities("x", graph="no such graph")


async def test_the_threshold_is_that_of_the_settings(tmp_path):
    async with bootstrap.open(tmp_path, settings=replace(SETTINGS, entity_link_min_percent=99)) as engine:
        await engine.graph.add_nodes(NODES)
        assert map_node_ids(await engine.graph.link_entities("art"))["art"] is None
        assert map_node_ids(await engine.graph.link_entities("art", min_score=0.8))["art"] == "art"


async def test_a_merge_keeps_names_and_edges_and_a_split_brings_all_back(engine):
    merged = await engine.graph.merge_nodes("uk", ["ca", "ca", "uk"], reason="one place")
    assert (merged.id, "London" in (merged.name, *merged.aliases)) == ("uk", True)
    assert [neighbor.node.id for neighbor in await engine.graph.neighbors("uk")] == ["ontario"]
    (event,) = await engine.graph.list_merges()
    assert (event.kind, event.before, event.after, event.reason) == (
        "merge",
        ("uk", "ca"),
        ("uk",),
        "one place",
    )
    nodes = await engine.graph.undo_merge(event.number)
    assert {node.id for node in nodes} == {"uk", "ca"}
    assert [neighbor.node.id for neighbor in await engine.graph.neighbors("ca")] == ["ontario"]
    assert [merge.kind for merge in await engine.graph.list_merges("ca")] == ["merge", "split"]


async def test_merges_and_splits_that_cannot_be_change_nothing(engine):
    for others, error in (([], InvalidInput), (["uk"], InvalidInput), (["nobody"], NotFound)):
        with pytest.raises(error):
            await engine.graph.merge_nodes("uk", others)
    for number, error in ((0, NotFound), (1, NotFound), (2**40, NotFound), (-1, InvalidInput)):
        with pytest.raises(error):
            await engine.graph.undo_merge(number)
    assert await engine.graph.list_merges() == []


async def test_a_merge_is_taken_back_once(engine):
    await engine.graph.merge_nodes("uk", ["ca"])
    outcomes = await asyncio.gather(
        engine.graph.undo_merge(1), engine.graph.undo_merge(1), return_exceptions=True
    )
    assert sorted(isinstance(outcome, Conflict | NotFound) for outcome in outcomes) == [False, True]


async def test_only_who_may_write_merges_and_who_sees_nothing_links_nothing(engine):
    await engine.people.create_user("bob")
    key = await engine.keys.create("bob")
    bob = engine.as_person(await engine.keys.authenticate(key.secret))
    for refused in (
        bob.graph.merge_nodes("uk", ["ca"]),
        bob.graph.undo_merge(1),
        bob.graph.list_merges(),
        bob.graph.link_entities("London"),
    ):
        with pytest.raises(NotFound):
            await refused
    await engine.access.grant("default", Principal("user", "bob"), "viewer")
    assert map_node_ids(await bob.graph.link_entities("art"))["art"] == "art"
    for refused in (bob.graph.merge_nodes("uk", ["ca"]), bob.graph.undo_merge(1)):
        with pytest.raises(PermissionDenied):
            await refused
