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
from tests.mcp.conftest import answer_data, answer_text, call_tool, client, refused

SECRET = "Zanzibar"
BOB = Scope("bob", "helper", "c9")
ANN = Scope("ann", "helper", "c1")
STRANGERS = [ANN, Scope("ann"), Scope(None, "other"), Scope(None, None, "c1")]


@pytest.fixture
async def secret(engine: Engine) -> str:
    """The id of what Bob has told in confidence; names are kept of all that is remembered."""
    fact = Fact("Bob", "hides_in", SECRET)
    memory = NewMemory(f"Bob hides in {SECRET}.", key=SECRET, fact=fact, entities=(SECRET,))
    (done,) = await engine.memory.add([memory], scope=BOB, wait=True)
    await engine.memory.add("Ann likes tea.", scope=ANN, wait=True)
    await engine.graph.set_entity_extraction(collection=MEMORY)
    await engine.graph.wait_until_extracted(collection=MEMORY)
    return done.id


FILES: dict[str, list[dict[str, Any]]] = {
    "list_files": [{"path": f"/{MEMORY}{path}"} for path in ("", f"/{quote(source_name(BOB), safe='')}")],
    "read_file": [{"path": f"/{MEMORY}/{quote(source_name(BOB), safe='')}/{SECRET}"}],
    "find_files": [{"path": "/"}, {"path": f"/{MEMORY}"}],
    "grep": [{"pattern": f"hides|{SECRET}"}, {"pattern": "hides", "path": f"/{MEMORY}"}],
}


def attempts(secret: str) -> dict[str, list[dict[str, Any]]]:
    """How each tool that reads might be asked for it."""
    graph = {"graph": graph_name(BOB), "collection": MEMORY}
    everywhere = [{"query": SECRET, "collection": collection} for collection in ("*", MEMORY)]
    return {
        "search": [*everywhere, {"query": SECRET, "filter": ["kind=memory"]}],
        "context": everywhere,
        "explain": [*everywhere, {"query": SECRET, "document": secret}],
        "search_streams": [
            {"query": SECRET, "collection": MEMORY, **streams}
            for streams in ({}, {"streams": [source_name(BOB)]})
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
    assert attempts("").keys() >= {name for name, spec in specs.items() if spec.effect == "reads"}


@pytest.mark.parametrize("fixed", STRANGERS, ids=str)
async def test_no_tool_reaches_what_lies_outside(engine: Engine, secret: str, fixed: Scope) -> None:
    async with client(engine, fixed) as session:
        for tool, ways in attempts(secret).items():
            for arguments in ways:
                result = await call_tool(session, tool, arguments)
                answer = json.dumps([content.model_dump() for content in result.content])
                assert "hides" not in answer and f"{SECRET} (" not in answer, (tool, arguments)
                is_named = "bob/helper" in answer or "bob%2Fhelper" in answer
                assert not is_named or result.is_error, (tool, arguments)


async def test_names_of_memories_are_not_told_where_there_is_a_wall(engine: Engine, secret: str) -> None:
    await engine.graph.get_or_create("plain", collection=MEMORY)
    arguments = {"query": SECRET, "graph": "plain", "collection": MEMORY}
    async with client(engine, ANN) as session:
        assert SECRET not in await answer_text(session, "graph", **arguments)
    async with client(engine) as session:
        assert SECRET.casefold() in (await answer_text(session, "graph", **arguments)).casefold()


async def test_no_way_through_a_graph_of_memories_is_told(engine: Engine) -> None:
    """Where memories are kept beside documents, their graph would connect what the documents do not."""
    texts = ["Bob wrote the plan.", f"The harbour of {SECRET} is deep.", "Ann likes tea."]
    await engine.add([NewDocument(text, title=text[:8]) for text in texts], collection=MEMORY, wait=True)
    memory = NewMemory(f"Bob hides in {SECRET}.", fact=Fact("Bob", "hides_in", SECRET))
    await engine.memory.add([memory], scope=BOB, wait=True)
    await engine.graph.set_entity_extraction(collection=MEMORY)
    await engine.graph.wait_until_extracted(collection=MEMORY)
    asked_for = {"query": "Where is Bob?", "collection": MEMORY, "graph_weight": 0.5}
    way = f"found through Bob \N{RIGHTWARDS ARROW} {SECRET}"
    async with client(engine) as open_to_all, client(engine, ANN) as walled:
        assert way in await answer_text(open_to_all, "search", **asked_for)
        assert way not in await answer_text(walled, "search", **asked_for)


@pytest.mark.parametrize("fixed", STRANGERS, ids=str)
async def test_nothing_outside_is_changed_or_deleted(engine: Engine, secret: str, fixed: Scope) -> None:
    async with client(engine, fixed) as session:
        assert (await refused(session, "update_memory", memory=secret, text="x")).startswith("not_found")
        assert (await answer_data(session, "forget", ids=[secret], confirm=True))["memories"] == 0
        await answer_data(session, "forget", everything=True, pinned=True, confirm=True)
        fact = {"subject": "bob", "predicate": "p", "object": "x"}
        address = {"graph": graph_name(BOB), "collection": MEMORY}
        assert (await refused(session, "add_facts", facts=[fact], **address)).startswith("invalid_input")
    assert (await engine.memory.get(secret, scope=BOB)).text == f"Bob hides in {SECRET}."


async def test_the_graph_of_another_is_not_written_by_its_id(engine: Engine, secret: str) -> None:
    graph = await engine.collections.get_source(graph_name(BOB), collection=MEMORY)
    fact = {"subject": "bob", "predicate": "p", "object": "x"}
    async with client(engine, ANN) as session:
        why = await refused(session, "add_facts", facts=[fact], graph=graph.id, collection=MEMORY)
        assert why.startswith(("not_found", "invalid_input"))
        assert (await refused(session, "graph", node="bob", graph=graph.id, collection=MEMORY)).startswith(
            "not_found"
        )


@pytest.mark.parametrize("name", ["user", "agent", "conversation"])
async def test_what_is_fixed_cannot_be_given(engine: Engine, name: str) -> None:
    async with client(engine, ANN) as session:
        for value in ("bob", getattr(ANN, name), None):
            why = await refused(session, "recall", query="x", **{name: value})
            assert why == f"invalid_input: {name}: is fixed by this server and cannot be given"


async def test_without_a_user_nobodys_memories_are_meant(engine: Engine, secret: str) -> None:
    async with client(engine) as session:
        assert SECRET not in await answer_text(session, "recall", query=SECRET)
        assert SECRET not in await answer_text(session, "recall", query=SECRET, user="ann")
        assert SECRET in await answer_text(session, "recall", query=SECRET, user="bob")


async def test_inside_of_what_is_fixed_everything_works(engine: Engine, secret: str) -> None:
    async with client(engine, Scope("bob")) as session:
        assert SECRET in await answer_text(session, "recall", query=SECRET)
        assert SECRET in await answer_text(session, "read_document", document=secret)
        assert SECRET in await answer_text(session, "graph", node="Bob", of_memory=True)
        assert "tea" not in await answer_text(session, "history")
