"""Walls: what a server fixes no call can pass, and what one user has no tool gives to another."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from conspectus.engine import Engine
from conspectus.mcp.operation_tools import TEXT_OPERATIONS
from conspectus.mcp.tool_list import TOOLS
from conspectus.memory.scopes import graph_name, source_name
from conspectus.model.graph import Fact
from conspectus.model.memory import MEMORY, NewMemory, Scope
from conspectus.model.records import NewDocument
from tests.mcp.conftest import called, client, refused, said, told

SECRET = "Zanzibar"
BOB = Scope("bob", "helper", "c9")
ANN = Scope("ann", "helper", "c1")
STRANGERS = [ANN, Scope("ann"), Scope(None, "other"), Scope(None, None, "c1")]


@pytest.fixture
async def secret(engine: Engine) -> str:
    """The id of what Bob has told in confidence; names are kept of all that is remembered."""
    fact = Fact("Bob", "hides_in", SECRET)
    told = NewMemory(f"Bob hides in {SECRET}.", key=SECRET, fact=fact, entities=(SECRET,))
    (done,) = await engine.memory.add([told], scope=BOB, wait=True)
    await engine.memory.add("Ann likes tea.", scope=ANN, wait=True)
    await engine.graph.set_entity_extraction(collection=MEMORY)
    await engine.graph.wait_until_extracted(collection=MEMORY)
    return done.id


FILES: dict[str, list[dict[str, Any]]] = {
    "list_files": [{"path": f"/{MEMORY}{each}"} for each in ("", f"/{quote(source_name(BOB), safe='')}")],
    "read_file": [{"path": f"/{MEMORY}/{quote(source_name(BOB), safe='')}/{SECRET}"}],
    "find_files": [{"path": "/"}, {"path": f"/{MEMORY}"}],
    "grep": [{"pattern": f"hides|{SECRET}"}, {"pattern": "hides", "path": f"/{MEMORY}"}],
}


def attempts(secret: str) -> dict[str, list[dict[str, Any]]]:
    """How each tool that reads might be asked for it."""
    graph = {"graph": graph_name(BOB), "collection": MEMORY}
    everywhere = [{"query": SECRET, "collection": each} for each in ("*", MEMORY)]
    return {
        "search": [*everywhere, {"query": SECRET, "filter": ["kind=memory"]}],
        "context": everywhere,
        "explain": [*everywhere, {"query": SECRET, "document": secret}],
        "search_streams": [
            {"query": SECRET, "collection": MEMORY, **each} for each in ({}, {"streams": [source_name(BOB)]})
        ],
        "channel_context": [{"query": SECRET, "collection": MEMORY, "channel": source_name(BOB)}],
        "search_tasks": [{"query": SECRET, "collection": MEMORY}],
        "read_document": [{"document": secret}],
        "list_collections": [{"collection": MEMORY}],
        **FILES,
        "recall": [
            {"query": SECRET},
            {"query": SECRET, "window": True},
            {"query": f"Bob hides in {SECRET}?"},
        ],
        "history": [{}],
        "graph": [
            *({"query": SECRET, **graph}, {"query": SECRET, "of_memory": True}),
            *({"node": "bob", **graph}, {"node": "bob", "of_memory": True}),
        ],
        **{key: [{"document": secret}] for key in ("get_text", "list_chunks", "get_reply_chain")},
        "list_captions": [{"stream": source_name(BOB), "collection": MEMORY}],
        "list_memories": [{"user": "bob"}, {"user": "bob", "agent": "helper", "conversation": "c9"}],
        "list_nodes": [graph],
    }


def test_every_tool_that_reads_is_tried() -> None:
    specs = {**TOOLS, **TEXT_OPERATIONS}
    assert attempts("").keys() >= {name for name, each in specs.items() if each.effect == "reads"}


@pytest.mark.parametrize("fixed", STRANGERS, ids=str)
async def test_no_tool_reaches_what_lies_outside(engine: Engine, secret: str, fixed: Scope) -> None:
    async with client(engine, fixed) as asked:
        for tool, ways in attempts(secret).items():
            for arguments in ways:
                result = await called(asked, tool, arguments)
                shown = json.dumps([each.model_dump() for each in result.content])
                assert "hides" not in shown and f"{SECRET} (" not in shown, (tool, arguments)
                told = "bob/helper" in shown or "bob%2Fhelper" in shown
                assert not told or result.is_error, (tool, arguments)


async def test_names_of_memories_are_not_told_where_there_is_a_wall(engine: Engine, secret: str) -> None:
    await engine.graph.get_or_create("plain", collection=MEMORY)
    place = {"query": SECRET, "graph": "plain", "collection": MEMORY}
    async with client(engine, ANN) as asked:
        assert SECRET not in await said(asked, "graph", **place)
    async with client(engine) as asked:
        assert SECRET.casefold() in (await said(asked, "graph", **place)).casefold()


async def test_no_way_through_a_graph_of_memories_is_told(engine: Engine) -> None:
    """Where memories are kept beside documents, their graph would connect what the documents do not."""
    texts = ["Bob wrote the plan.", f"The harbour of {SECRET} is deep.", "Ann likes tea."]
    await engine.add([NewDocument(each, title=each[:8]) for each in texts], collection=MEMORY, wait=True)
    memory = NewMemory(f"Bob hides in {SECRET}.", fact=Fact("Bob", "hides_in", SECRET))
    await engine.memory.add([memory], scope=BOB, wait=True)
    await engine.graph.set_entity_extraction(collection=MEMORY)
    await engine.graph.wait_until_extracted(collection=MEMORY)
    asked_for = {"query": "Where is Bob?", "collection": MEMORY, "graph_weight": 0.5}
    async with client(engine) as open_to_all, client(engine, ANN) as walled:
        assert "found through" in await said(open_to_all, "search", **asked_for)
        assert "found through" not in await said(walled, "search", **asked_for)


@pytest.mark.parametrize("fixed", STRANGERS, ids=str)
async def test_nothing_outside_is_changed_or_deleted(engine: Engine, secret: str, fixed: Scope) -> None:
    async with client(engine, fixed) as asked:
        assert (await refused(asked, "update_memory", memory=secret, text="x")).startswith("not_found")
        assert (await told(asked, "forget", ids=[secret], confirm=True))["memories"] == 0
        await told(asked, "forget", everything=True, pinned=True, confirm=True)
        own = {"subject": "bob", "predicate": "p", "object": "x"}
        place = {"graph": graph_name(BOB), "collection": MEMORY}
        assert (await refused(asked, "add_facts", facts=[own], **place)).startswith("invalid_input")
    assert (await engine.memory.get(secret, scope=BOB)).text == f"Bob hides in {SECRET}."


async def test_the_graph_of_another_is_not_written_by_its_id(engine: Engine, secret: str) -> None:
    graph = await engine.collections.get_source(graph_name(BOB), collection=MEMORY)
    fact = {"subject": "bob", "predicate": "p", "object": "x"}
    async with client(engine, ANN) as asked:
        why = await refused(asked, "add_facts", facts=[fact], graph=graph.id, collection=MEMORY)
        assert why.startswith(("not_found", "invalid_input"))
        assert (await refused(asked, "graph", node="bob", graph=graph.id, collection=MEMORY)).startswith(
            "not_found"
        )


@pytest.mark.parametrize("name", ["user", "agent", "conversation"])
async def test_what_is_fixed_cannot_be_given(engine: Engine, name: str) -> None:
    async with client(engine, ANN) as asked:
        for value in ("bob", getattr(ANN, name), None):
            why = await refused(asked, "recall", query="x", **{name: value})
            assert why == f"invalid_input: {name}: is fixed by this server and cannot be given"


async def test_without_a_user_nobodys_memories_are_meant(engine: Engine, secret: str) -> None:
    async with client(engine) as asked:
        assert SECRET not in await said(asked, "recall", query=SECRET)
        assert SECRET not in await said(asked, "recall", query=SECRET, user="ann")
        assert SECRET in await said(asked, "recall", query=SECRET, user="bob")


async def test_inside_of_what_is_fixed_everything_works(engine: Engine, secret: str) -> None:
    async with client(engine, Scope("bob")) as asked:
        assert SECRET in await said(asked, "recall", query=SECRET)
        assert SECRET in await said(asked, "read_document", document=secret)
        assert SECRET in await said(asked, "graph", node="Bob", of_memory=True)
        assert "tea" not in await said(asked, "history")
