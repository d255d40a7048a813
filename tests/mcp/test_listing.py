"""What a server says of itself: tools with schemas that hold, and what a fixed scope takes out of them."""

import re
from pathlib import Path

import jsonschema_rs
import pytest
from mcp_types import Tool

from conspectus.bootstrap import local_counter
from conspectus.engine import Engine
from conspectus.errors import InvalidInput
from conspectus.mcp.operation_tools import TABLE_OPERATIONS
from conspectus.mcp.tool import ToolOptions
from conspectus.mcp.tool_list import TOOLS as SPECS
from conspectus.mcp.tool_list import list_tools
from conspectus.model.memory import Scope
from tests.mcp.conftest import answer_text, client, refused

TOOLS = list_tools(ToolOptions(8_000))
WRITES = {"remember", "operations"}
DOCS = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "mcp.md").read_text(encoding="utf-8")


async def test_a_client_sees_every_tool_in_both_versions_of_the_protocol(engine: Engine) -> None:
    for mode in ("auto", "legacy"):
        async with client(engine, mode=mode) as session:
            tools = (await session.list_tools()).tools
            assert [tool.name for tool in tools] == list(SPECS)
            assert "never an instruction" in (session.instructions or "")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_schemas_are_schemas_without_references(tool: Tool) -> None:
    for schema in filter(None, (tool.input_schema, tool.output_schema)):
        jsonschema_rs.Draft202012Validator(schema)
        assert schema["type"] == "object"
        assert "$ref" not in str(schema) and "'null'" not in str(schema)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_is_described_and_bounded(tool: Tool) -> None:
    assert len(tool.description or "") > 50
    for name, schema in tool.input_schema["properties"].items():
        assert "description" in schema, name
        bounds = {
            "array": {"maxItems"},
            "integer": {"minimum"},
            "number": {"minimum"},
        }
        assert "enum" in schema or bounds.get(schema["type"], set()) <= schema.keys(), name


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_tools_say_what_they_do(tool: Tool) -> None:
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint == (tool.name not in WRITES)
    assert bool(tool.annotations.destructive_hint) == (tool.name in WRITES - {"remember"})
    assert tool.annotations.open_world_hint is False


def test_the_budget_is_that_of_the_server() -> None:
    for tool in list_tools(ToolOptions(900)):
        budget = tool.input_schema["properties"]["max_tokens"]
        assert (budget["minimum"], budget["maximum"]) == (200, 900)


def test_what_is_fixed_is_not_offered() -> None:
    for tool in list_tools(ToolOptions(8_000, Scope("ann", None, "c"))):
        assert not {"user", "conversation"} & tool.input_schema["properties"].keys()


def test_a_server_that_cannot_keep_its_word_is_not_made() -> None:
    with pytest.raises(InvalidInput, match="mcp_max_tokens"):
        ToolOptions(199)
    with pytest.raises(InvalidInput, match="user"):
        ToolOptions(8_000, Scope(" "))


def test_the_documents_name_every_tool_and_no_other() -> None:
    assert re.findall(r"^\| `(\w+)` \|", DOCS, re.MULTILINE) == list(SPECS)


def test_six_tools_cost_at_most_two_thousand_tokens() -> None:
    count = local_counter("o200k_base")
    schemas = [tool.model_dump_json(exclude_none=True, by_alias=True) for tool in TOOLS]
    assert len(schemas) <= 6
    assert sum(map(count, schemas)) <= 2_000


def test_no_operation_gives_rights_or_contacts_an_address() -> None:
    refused_names = {"create_key", "put_grant", "revoke_grant", "create_user", "put_alert", "ingest_url"}
    assert not refused_names & TABLE_OPERATIONS.keys()
    assert {"list_captions", "add_messages", "list_documents", "whoami"} <= TABLE_OPERATIONS.keys()


async def test_operations_are_found_by_a_word_described_and_called(engine: Engine) -> None:
    async with client(engine) as session:
        answer = await answer_text(session, "operations", name="caption")
        assert {"add_captions", "list_captions"} <= {line.partition(":")[0] for line in answer.splitlines()}
        description = await answer_text(session, "operations", name="add_captions")
        assert (
            "stream: str. Name or id of a stream.\n" in description and "captions: [{text: str" in description
        )
        captions = [{"text": "A red car stops.", "start": 5}]
        await answer_text(session, "add_captions", stream="gate", captions=captions)
        assert "A red car stops." in await answer_text(session, "list_captions", stream="gate")
        why = await refused(session, "list_captions", stream="gate", surprise=1)
        assert why.startswith("invalid_input: surprise: unknown argument; expected: ")
        assert (await refused(session, "list_captions")).startswith("invalid_input: stream: is required")
