"""The tools search and fetch alone, in the shapes that ChatGPT expects."""

import json
from dataclasses import replace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from conspectus.bootstrap import local_counter
from conspectus.engine import Engine
from conspectus.mcp.server import build_server
from conspectus.mcp.tool import ToolOptions
from conspectus.mcp.tool_list import list_tools
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.records import NewDocument
from mcp import Client
from tests.mcp.conftest import text_of

OPTIONS = ToolOptions(8_000, toolset="search_and_fetch", address="https://context.example.org")


def open_client(engine: Engine, **changes: Any) -> Client:
    return Client(build_server(lambda _context: engine, replace(OPTIONS, **changes)))


async def answer_json(session: Client, name: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(text_of(await session.call_tool(name, arguments)))
    return answer


async def read_refusal(session: Client, name: str, **arguments: Any) -> str:
    answer = await session.call_tool(name, arguments)
    assert answer.is_error
    return text_of(answer)


async def test_two_tools_are_listed_each_with_one_argument(engine: Engine) -> None:
    async with open_client(engine) as session:
        tools = (await session.list_tools()).tools
    assert {tool.name: list(tool.input_schema["properties"]) for tool in tools} == {
        "search": ["query"],
        "fetch": ["id"],
    }
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
    count = local_counter("o200k_base")
    listing = [tool.model_dump_json(exclude_none=True, by_alias=True) for tool in list_tools(OPTIONS)]
    assert sum(map(count, listing)) <= 400


async def test_what_search_finds_can_be_fetched(engine: Engine, shelf: dict[str, str]) -> None:
    async with open_client(engine) as session:
        rows = (await answer_json(session, "search", query="when do backups run?"))["results"]
        assert rows[0] == {
            "id": shelf["Backups"],
            "title": "Backups",
            "url": f"https://context.example.org/console/documents/{shelf['Backups']}",
        }
        document = await answer_json(session, "fetch", id=shelf["Backups"])
    assert document["metadata"] == {}
    assert document["text"].startswith("Backups run at two.")
    assert {name: document[name] for name in ("id", "title", "url")} == rows[0]


async def test_each_document_is_found_once_and_memories_are_not(engine: Engine) -> None:
    days = [f"The tide table of day {day} names the tide." + " Water." * 300 for day in range(9)]
    tides = NewDocument("\n\n".join(days), title="Tides", key="https://example.org/tides")
    await engine.add([tides], wait=True)
    await engine.memory.add([NewMemory("Ann reads the tide table.")], scope=Scope("ann"), wait=True)
    async with open_client(engine) as session:
        results = (await answer_json(session, "search", query="tide table"))["results"]
    assert [(row["title"], row["url"]) for row in results] == [("Tides", "https://example.org/tides")]


async def test_a_long_text_is_cut_to_the_tokens_of_the_server(engine: Engine) -> None:
    text = "\n".join(f'Line {number} is about "quotes" and <tags>.' for number in range(5_000))
    [written] = await engine.add([NewDocument(text, title="Long")], wait=True)
    async with open_client(engine, max_tokens=500) as session:
        answer = text_of(await session.call_tool("fetch", {"id": str(written.id)}))
    document = json.loads(answer)
    assert local_counter("o200k_base")(answer) <= 500
    assert document["metadata"]["truncated"].endswith(" characters")
    assert document["text"].startswith("Line 0 is about")


async def test_nothing_found_and_nothing_there(engine: Engine) -> None:
    async with open_client(engine) as session:
        assert await answer_json(session, "search", query="unicorns") == {"results": []}
        assert (await read_refusal(session, "fetch", id="unknown")).startswith("not_found")
        assert (await read_refusal(session, "fetch")).startswith("invalid_input")
        for name in ("context", "remember", "operations"):
            with pytest.raises(MCPError, match="unknown tool"):
                await session.call_tool(name, {"query": "x"})


async def test_a_person_finds_and_fetches_only_what_they_may_read(
    engine: Engine, shelf: dict[str, str]
) -> None:
    stranger = await engine.people.create_user("stranger")
    async with open_client(engine.as_person(stranger.person)) as session:
        assert await answer_json(session, "search", query="when do backups run?") == {"results": []}
        assert (await read_refusal(session, "fetch", id=shelf["Backups"])).startswith("not_found")
