"""Graphs written down and drawn: complete, and whatever ids and texts are made of."""

import io
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.graph_samples import edge, node, year

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import InvalidInput
from conspectus.graph.export import to_json
from conspectus.graph.graphml import to_graphml
from conspectus.graph.layout import compute_positions
from conspectus.graph.svg import MAX_NODES, to_svg
from conspectus.model.graph import GRAPH_FORMS, NewEdge, NewNode
from conspectus.text.clean import clean

HOSTILE = [
    'a"b', "a'b", "<&>", "]]>", "\u2028", "\x01", "\\u0001", "\\", "\\\\", "\t", "\n", "\r\n", "\x7f", "\x85",
    "\ufffe", "\ufffd", "😀", "\u202e", "&amp;", "<!--", " ", "A", "a",
]  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    settings = replace(Settings(), embedder="none", max_limit=10)
    async with conspectus.open(tmp_path / "data", settings=settings) as opened:
        yield opened


def read_graphml(graphml: str) -> networkx.MultiDiGraph:
    return networkx.read_graphml(io.BytesIO(graphml.encode()), force_multigraph=True)


async def test_everything_is_exported_beyond_any_page(engine: Engine) -> None:
    names = [f"n{number:02}" for number in range(37)]
    await engine.graph.add_nodes(map(NewNode, names))
    await engine.graph.add_edges(NewEdge(a, b) for a in names[:5] for b in names)
    exported = json.loads(await engine.graph.export())
    assert [node["id"] for node in exported["nodes"]] == names
    assert [(edge["source_id"], edge["target_id"]) for edge in exported["edges"]] == [
        (a, b) for a in names[:5] for b in names
    ]
    graph = read_graphml(await engine.graph.export("graphml"))
    assert (len(graph), graph.size()) == (37, 185)


async def test_an_instant_is_exported_as_it_was(engine: Engine) -> None:
    await engine.graph.add_nodes([NewNode("a"), NewNode("b", valid_until="2010")])
    await engine.graph.add_edges([NewEdge("a", "b"), NewEdge("a", "a", valid_from="2000")])
    for form, old, new in (("json", '"b"', '"b"'), ("graphml", 'id="b"', 'id="b"'), ("svg", ">b<", ">b<")):
        assert old in await engine.graph.export(form, at=year(2010))
        assert new not in await engine.graph.export(form, at=year(2011))
    assert json.loads(await engine.graph.export(at=year(1990)))["edges"][0]["target_id"] == "b"
    with pytest.raises(InvalidInput):
        await engine.graph.export("png")


async def test_an_empty_graph_is_exported_in_every_form(engine: Engine) -> None:
    await engine.graph.get_or_create()
    for form in GRAPH_FORMS:
        assert "graph/default" in await engine.graph.export(form)


def test_json_has_the_words_of_the_published_design_and_the_dates() -> None:
    there = node("a", type="concept", properties={"content": "x", "weight": 1.0}, valid_from=year(2000))
    link = edge("a", "a", weight=0.8, type="related_to", valid_until=year(2001))
    exported = json.loads(to_json("g", [there], [link]))
    assert (
        exported["nodes"][0].items() >= {"id": "a", "type": "concept", "properties": there.properties}.items()
    )
    expected = {"source_id": "a", "target_id": "a", "type": "related_to", "weight": 0.8}
    assert exported["edges"][0].items() >= expected.items()
    assert exported["nodes"][0]["valid_from"] == "2000-01-01T00:00:00.000000Z"
    assert exported["edges"][0]["valid_until"] == "2001-01-01T00:00:00.000000Z"


def test_graphml_tells_every_hostile_id_apart() -> None:
    nodes = [node(name, type=name, aliases=(name,), properties={name: name}) for name in HOSTILE]
    edges = [edge(name, HOSTILE[0], type=name, weight=0.5, properties={name: [name]}) for name in HOSTILE]
    graph = read_graphml(to_graphml("".join(HOSTILE), nodes, edges))
    assert (len(graph), graph.size()) == (len(HOSTILE), len(HOSTILE))
    assert {'a"b', "<&>", "\t", "\\u0001".replace("\\", "\\\\"), "\\u0001"} <= set(graph)
    assert graph.nodes["<&>"] == {
        "label": "<&>",
        "type": "<&>",
        "aliases": '["<&>"]',
        "properties": '{"<&>": "<&>"}',
        "origin": "user",
        "trust": "trusted",
    }
    assert {attributes["weight"] for _, _, attributes in graph.edges(data=True)} == {0.5}


NAMES = st.lists(st.text(min_size=1).map(clean), min_size=1, max_size=5, unique=True)


@given(NAMES)
def test_any_text_is_well_formed_in_every_form(names: list[str]) -> None:
    nodes = [node(name, type=name, name=name) for name in names]
    edges = [edge(names[0], name, type=name) for name in names]
    assert len(read_graphml(to_graphml(names[0], nodes, edges))) == len(names)
    picture = ElementTree.fromstring(to_svg(names[0], nodes, edges))
    assert len(picture.findall(f"{SVG}path")) == len(names)
    assert [exported["id"] for exported in json.loads(to_json(names[0], nodes, edges))["nodes"]] == names


def test_a_picture_is_the_same_each_time_and_needs_nothing_else() -> None:
    nodes = [node(name, type=name.upper()) for name in "abcdefghijk"]
    edges = [edge(a, b) for a, b in ("ab", "ba", "bc", "cc", "cc", "de")]
    svg = to_svg("g", nodes, edges)
    assert svg == to_svg("g", nodes, edges)
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in svg
    assert "prefers-color-scheme: dark" in svg
    picture = ElementTree.fromstring(svg)
    titles = [circle.findtext(f"{SVG}title") for circle in picture.findall(f"{SVG}circle")]
    assert titles[:11] == [f"{name} ({name.upper()})" for name in "bcadefghijk"] or len(titles) >= 11
    assert "other" in [label.text for label in picture.findall(f"{SVG}text")]


def test_of_a_large_graph_the_best_linked_nodes_are_drawn_and_the_rest_is_counted() -> None:
    nodes = [node(f"n{number:03}") for number in range(MAX_NODES + 50)]
    edges = [edge("n000", target.id) for target in nodes[1:]]
    picture = ElementTree.fromstring(to_svg("g", nodes, edges))
    titles = [circle.findtext(f"{SVG}title") for circle in picture.findall(f"{SVG}circle")]
    assert len([title for title in titles if title]) == MAX_NODES
    assert titles[0] == "n000 (entity)"
    last = [label.text for label in picture.findall(f"{SVG}text")][-1]
    assert last == "50 more nodes and 50 more edges are not in this picture"


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_nodes_have_places_of_their_own_on_the_page(count: int) -> None:
    points = compute_positions(count, [(number, number // 2, 0.5) for number in range(count)])
    assert points.shape == (count, 2)
    assert ((points >= 0) & (points <= 1)).all()
    assert len({(round(float(x), 4), round(float(y), 4)) for x, y in points}) == count
