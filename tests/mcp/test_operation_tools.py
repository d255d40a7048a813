"""What is outside of a fixed scope answers as what nobody has; and which operations models are offered."""

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from mcp.shared.exceptions import MCPError

from conspectus.engine import Engine
from conspectus.errors import InvalidInput
from conspectus.mcp.operation_tools import TABLE_OPERATIONS, TEXT_OPERATIONS
from conspectus.mcp.server import build_server
from conspectus.mcp.tool import ToolOptions, split_names
from conspectus.mcp.tool_list import TOOLS
from conspectus.memory.scopes import graph_name, source_name
from conspectus.model.graph import Fact
from conspectus.model.memory import MEMORY, NewMemory, Scope
from conspectus.operations.access import ACCESS_OPERATIONS
from conspectus.operations.keys import KEY_OPERATIONS
from conspectus.operations.people import PEOPLE_OPERATIONS
from conspectus.operations.table import OPERATIONS
from mcp import Client
from tests.mcp.conftest import answer_text, call_tool, client, refused

SECRET = "Zanzibar"
BOB = Scope("bob", "helper", "c9")
ANN = Scope("ann", "helper", "c1")
STRANGERS = [ANN, Scope("ann"), Scope(None, "other"), Scope(None, None, "c1")]


@pytest.fixture
async def secret(engine: Engine) -> str:
    """The id of what Bob has told in confidence."""
    memory = NewMemory(f"Bob hides in {SECRET}.", key=SECRET, fact=Fact("Bob", "hides_in", SECRET))
    (written,) = await engine.memory.add([memory], scope=BOB, wait=True)
    await engine.memory.add("Ann likes tea.", scope=ANN, wait=True)
    return written.id


NAMING = {
    "document",
    "stream",
    "streams",
    "channel",
    "graph",
    "memory",
    "ids",
    "source",
    "path",
    "thread",
    "after",
}
"""Arguments that name something which may be outside of what is fixed."""
REQUIRED_ARGUMENTS: dict[str, dict[str, Any]] = {
    "search": {"query": SECRET, "collection": MEMORY},
    "context": {"query": SECRET, "collection": MEMORY},
    "explain": {"query": SECRET, "collection": MEMORY},
    "search_streams": {"query": SECRET, "collection": MEMORY},
    "channel_context": {"query": SECRET, "collection": MEMORY, "channel": "{source}"},
    "graph": {"node": "bob", "collection": MEMORY},
    "add_facts": {
        "facts": [{"subject": "bob", "predicate": "p", "object": "x"}],
        "collection": MEMORY,
    },
    "update_memory": {"text": "x"},
    "forget": {"confirm": True},
    "grep": {"pattern": "hides"},
    "add_captions": {"captions": [{"text": "x", "start": 1}], "collection": MEMORY},
    "add_events": {"events": [{"type": "x", "start": 1}], "collection": MEMORY},
    "entity_timeline": {"entity": "x", "collection": MEMORY},
    "start_summary": {"collection": MEMORY},
    "set_live_summary": {"collection": MEMORY},
    "stop_live_summary": {"collection": MEMORY},
    "summarize": {"collection": MEMORY},
    "get_summary": {"collection": MEMORY},
    "list_captions": {"collection": MEMORY},
    "list_events": {"collection": MEMORY},
    "count_entities": {"collection": MEMORY},
    "get_stream": {"collection": MEMORY},
    "delete_stream": {"collection": MEMORY},
    "delete_captions": {"collection": MEMORY},
}
"""What else a call needs, so that it comes to the name."""
NAMES = {
    "document": ["{document}"],
    "memory": ["{document}"],
    "ids": [["{document}"]],
    "stream": ["{source}", "{source_id}"],
    "streams": [["{source}"], ["{source_id}"]],
    "channel": ["{source}", "{source_id}"],
    "source": ["{source}", "{source_id}"],
    "graph": ["{graph}", "{graph_id}"],
    "path": ["/memory/{path}", "/memory/{path}/{key}", "/memory/{source_id}"],
    "after": ["/memory/{path}"],
    "thread": ["{document}"],
}


def filled_in(value: Any, names: dict[str, str]) -> Any:
    """Arguments with the names for their placeholders."""
    text = json.dumps(value)
    for placeholder, name in names.items():
        text = text.replace(f"{{{placeholder}}}", name)
    return json.loads(text)


async def names_of_secret(engine: Engine, secret: str) -> tuple[dict[str, str], dict[str, str]]:
    """The names of what Bob keeps, and equally long ones of what nobody has."""
    source = await engine.collections.get_source(source_name(BOB), collection=MEMORY)
    graph = await engine.collections.get_source(graph_name(BOB), collection=MEMORY)
    hidden = {
        "document": secret,
        "source": source.name,
        "source_id": str(source.id),
        "graph": graph.name.partition("/")[2] if graph.name.startswith("graph/") else graph.name,
        "graph_id": str(graph.id),
        "path": quote(source.name, safe=""),
        "key": SECRET,
    }
    nobody = Scope("box", "helper", "c9")
    missing = {
        "document": f"{secret[:-1]}{'0' if secret[-1] != '0' else '1'}",
        "source": source_name(nobody),
        "source_id": f"{source.id[:-1]}{'0' if source.id[-1] != '0' else '1'}",
        "graph": hidden["graph"].replace("bob", "box"),
        "graph_id": f"{graph.id[:-1]}{'0' if graph.id[-1] != '0' else '1'}",
        "path": quote(source_name(nobody), safe=""),
        "key": "Zanzibax",
    }
    return hidden, missing


def with_placeholders(text: str, names: dict[str, str]) -> str:
    for placeholder, name in sorted(names.items(), key=lambda pair: -len(pair[1])):
        text = text.replace(name, f"{{{placeholder}}}")
    return text


def naming_calls(offered: dict[str, set[str]]) -> list[tuple[str, dict[str, Any]]]:
    """A call for each name that an argument of a tool may have."""
    return [
        (tool, {**REQUIRED_ARGUMENTS.get(tool, {}), argument: value})
        for tool, arguments in offered.items()
        for argument in sorted(NAMING & arguments)
        for value in NAMES[argument]
    ]


def offered_arguments() -> dict[str, set[str]]:
    """The arguments of each tool and operation, also of those that a setting adds."""
    tools = {name: set(spec.arguments.model_fields) for name, spec in {**TOOLS, **TEXT_OPERATIONS}.items()}
    for name, operation in TABLE_OPERATIONS.items():
        if {"stream", "document"} & set(re.findall(r"\{(\w+)", operation.path)):
            tools[name] = {leaf.name for parameter in operation.parameters for leaf in parameter.leaves}
    return tools


async def answer(session: Client, call: tuple[str, Any], names: dict[str, str]) -> str:
    """The answer to a call, with placeholders for the names."""
    tool, arguments = call
    if tool != "resource":
        result = await call_tool(session, tool, filled_in(arguments, names))
        return with_placeholders(result.model_dump_json(), names)
    with pytest.raises(MCPError) as refusal:
        await session.read_resource(filled_in(arguments, names))
    return with_placeholders(f"{refusal.value} {refusal.value.error}", names)


@pytest.mark.parametrize("fixed", STRANGERS, ids=str)
async def test_what_is_hidden_answers_as_what_is_missing(engine: Engine, secret: str, fixed: Scope) -> None:
    hidden, missing = await names_of_secret(engine, secret)
    options = ToolOptions(8_000, fixed, operations=frozenset(TABLE_OPERATIONS))
    calls: list[tuple[str, Any]] = [*naming_calls(offered_arguments())]
    calls += [
        ("resource", "conspectus://document/{document}"),
        ("resource", "conspectus://collection/{source}"),
    ]
    assert len(calls) > 60
    async with Client(build_server(lambda _context: engine, options)) as session:
        answers = [
            (call, [await answer(session, call, names) for names in (hidden, missing)]) for call in calls
        ]
    different = [(call, pair) for call, pair in answers if pair[0] != pair[1]]
    assert different == []
    assert (await engine.memory.get(secret, scope=BOB)).text == f"Bob hides in {SECRET}."


def test_operations_that_delete_or_are_for_people_are_not_offered() -> None:
    offered = {name for name, operation in TABLE_OPERATIONS.items() if operation.for_models == "offered"}
    assert not offered & {"explain_as", "add_feedback", "import_memories", "delete_collection"}
    for operation in OPERATIONS.values():
        if operation.verb == "DELETE" or operation.method.__name__.startswith("delete"):
            assert operation.name not in offered or operation.name == "stop_live_summary", operation.name
    accounts = {operation.name for operation in (*PEOPLE_OPERATIONS, *KEY_OPERATIONS, *ACCESS_OPERATIONS)} - {
        "whoami"
    }
    assert not accounts & TABLE_OPERATIONS.keys()


async def test_an_operation_is_offered_where_the_setting_names_it(engine: Engine) -> None:
    await engine.collections.create("old")
    async with client(engine) as session:
        why = await refused(session, "delete_collection", collection="old")
        assert why.startswith("invalid_input: name: unknown operation")
        assert "delete_collection" not in await answer_text(session, "operations", name="collection")
    options = ToolOptions(8_000, operations=split_names("delete_collection, add_feedback"))
    async with Client(build_server(lambda _context: engine, options)) as session:
        assert "delete_collection" in await answer_text(session, "operations", name="collection")
        await answer_text(session, "delete_collection", collection="old")
    assert [collection.name for collection in await engine.collections.list()] == []


@pytest.mark.parametrize("name", ["create_key", "put_grant", "release_quarantined", "ingest_url", "nothing"])
def test_no_setting_offers_what_gives_rights(engine: Engine, name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        build_server(lambda _context: engine, ToolOptions(8_000, operations=frozenset({name})))


BUDGET = {"max_tokens": 9, "tokenizer": "hf:/etc/passwd"}


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("list_recent_memories", {"tokenizer": "hf:/etc/passwd"}),
        ("memory_context", {"query": "tea", "max_tokens": BUDGET}),
    ],
)
async def test_a_model_cannot_name_a_file_of_the_server(
    engine: Engine, operation: str, arguments: dict[str, Any]
) -> None:
    async with client(engine) as session:
        answer = await refused(session, "operations", name=operation, arguments={"user": "ann", **arguments})
    assert answer.startswith("invalid_input: tokenizer: hf:PATH reads a file")
