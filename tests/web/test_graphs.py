"""Graphs over HTTP: names that hold anything, pictures that do nothing, and edges that lead nowhere."""

import json
from typing import Any

import httpx
import pytest
from lxml import etree

from tests.web.conftest import People

EVIL = "</text><script>alert(1)</script>\u202e\"'&<!--"
GRAPHS = ("default", "team/one", "a%2Fb?c#d", "..", "nodes", "röhre 🎉", "graph/ann%20lee//")


def graph_path(name: str) -> str:
    """The path of a graph."""
    quoted = "".join(
        character if character.isalnum() and character.isascii() else _escaped(character)
        for character in name
    )
    return f"/graphs/{quoted}"


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


async def draw_graph(api: httpx.AsyncClient, name: str = "default", **nodes: str) -> None:
    """A graph of two nodes and an edge."""
    named = nodes or {"ann": "Ann Lee", "bo": "Bo"}
    body = {"nodes": [{"id": node, "name": node_name} for node, node_name in named.items()]}
    added = await api.post(f"{graph_path(name)}/nodes", json=body)
    assert added.status_code == 201, added.text
    first, second = named
    edges = {"edges": [{"source": first, "target": second, "type": "knows", "weight": 0.5}]}
    assert (await api.post(f"{graph_path(name)}/edges", json=edges)).status_code == 201


@pytest.mark.parametrize("name", GRAPHS)
async def test_a_name_may_hold_anything(api: httpx.AsyncClient, name: str) -> None:
    await draw_graph(api, name)
    [summary] = (await api.get("/graphs")).json()
    assert (summary["nodes"], summary["edges"]) == (2, 1)
    neighbors = (await api.get(f"{graph_path(name)}/neighbors", params={"node": "ann"})).json()
    assert [(neighbor["node"]["id"], neighbor["decay"]) for neighbor in neighbors] == [("bo", 0.5)]
    by_id = await api.get(f"/graphs/{summary['source']['id']}/node", params={"node": "ann"})
    assert by_id.json()["name"] == "Ann Lee"
    assert (await api.delete(graph_path(name))).json() == {"nodes": 2, "edges": 1}


@pytest.mark.parametrize("node", ["http://x.example/a?b=c&d#e", "a/nodes/b", " ", "🎉", "%2F", "x" * 500])
async def test_a_node_may_be_called_anything(api: httpx.AsyncClient, node: str) -> None:
    added = await api.post("/graphs/default/nodes", json={"nodes": [{"id": node}]})
    if added.status_code == 422:
        assert not node.strip()
        return
    answer = await api.get("/graphs/default/node", params={"node": node})
    assert (answer.status_code, answer.json()["id"]) == (200, node)


@pytest.mark.parametrize(
    ("form", "kind"),
    [("json", "application/json"), ("graphml", "application/graphml+xml"), ("svg", "image/svg+xml")],
)
async def test_no_script_in_a_graph_is_ever_run(api: httpx.AsyncClient, form: str, kind: str) -> None:
    await draw_graph(api, ann=EVIL, bo="Bo")
    answer = await api.get("/graphs/default/export", params={"format": form})
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, kind)
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    if form == "json":
        assert EVIL in {node["name"] for node in json.loads(answer.content)["nodes"]}
    else:
        tags = {
            etree.QName(element).localname for element in etree.fromstring(answer.content).iter(etree.Element)
        }
        assert "script" not in tags


async def test_edges_that_lead_nowhere_are_named(api: httpx.AsyncClient) -> None:
    await draw_graph(api)
    edges = [{"source": "ann", "target": "bo", "type": "likes"}, {"source": "ann", "target": "eve"}]
    answer = await api.post("/graphs/default/edges", json={"edges": edges})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["missing"]) == (422, "dangling_edges", ["eve"])
    assert len((await api.get("/graphs/default/edges")).json()["edges"]) == 1


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("nodes", {"nodes": [{"id": "a", "colour": "red"}]}, "nodes.0.colour"),
        ("nodes", {"nodes": [{"id": "a", "properties": []}]}, "nodes.0.properties"),
        ("edges", {"edges": [{"source": "a"}]}, "edges.0.target"),
        ("link", {"text": "x", "mention": [1]}, "mention.1"),
        ("merge", {"into": "a"}, "nodes"),
    ],
)
async def test_what_is_not_understood_is_refused(
    api: httpx.AsyncClient, path: str, body: Any, field: str
) -> None:
    answer = await api.post(f"/graphs/default/{path}", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_who_may_only_look_changes_nothing(people: People) -> None:
    await people.owner.post("/collections", json={"name": "wiki"})
    params = {"collection": "wiki"}
    nodes = {"nodes": [{"id": "ann"}]}
    await people.owner.post("/graphs/people/nodes", params=params, json=nodes)
    assert (await people.alice.get("/graphs/people/nodes", params=params)).status_code == 404
    grant = {"grantee": {"kind": "user", "id": "alice"}, "role": "viewer"}
    await people.owner.put("/collections/wiki/grants", json=grant)
    assert len((await people.alice.get("/graphs/people/nodes", params=params)).json()["nodes"]) == 1
    for path, body in (
        ("nodes", nodes),
        ("edges", {"edges": [{"source": "ann", "target": "ann"}]}),
        ("nodes/delete", {"nodes": ["ann"]}),
        ("merge", {"into": "ann", "nodes": ["bo"]}),
    ):
        refused = await people.alice.post(f"/graphs/people/{path}", params=params, json=body)
        assert (path, refused.status_code) == (path, 403)
    assert (await people.alice.delete("/graphs/people", params=params)).status_code == 403
    assert (await people.alice.put("/collections/wiki/entities", json={"enabled": True})).status_code == 403
    assert (await people.bob.get("/graphs", params=params)).status_code == 404
