"""Engines with something in them, and the official client on each transport."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.engine.any_engine import AnyEngine
from conspectus.mcp.server import build_server
from conspectus.mcp.tool import ToolOptions, split_names
from conspectus.mcp.tool_list import TOOLS
from conspectus.model.memory import Scope
from conspectus.model.records import NewDocument
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder
from mcp import Client

SETTINGS = Settings(embedder="none")
BACKUPS = "Backups run at two. The tapes leave the house on Friday.\n" * 6
FERRY = "The ferry leaves at noon and comes back with the tide."


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with bootstrap.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


@pytest.fixture
async def shelf(engine: Engine) -> dict[str, str]:
    """Two documents; their ids by title."""
    documents = [NewDocument(BACKUPS, title="Backups", key="b"), NewDocument(FERRY, title="Ferry", key="f")]
    written = await engine.add(documents, source="handbook", wait=True)
    return {new.title: str(done.id) for new, done in zip(documents, written, strict=True)}


def client(
    engine: AnyEngine,
    scope: Scope | None = None,
    *,
    maximum: int = 8_000,
    mode: Any = "auto",
    operations: str = "",
) -> Client:
    """A client whose server answers with this engine, and offers these operations too."""
    added = split_names(operations)
    options = ToolOptions(maximum, Scope() if scope is None else scope, operations=added)
    return Client(build_server(lambda _context: engine, options), mode=mode)


def text_of(result: CallToolResult) -> str:
    """The one text of a result."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def call_tool(session: Client, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """The result of a tool, or of an operation through the tool for these."""
    if name in TOOLS:
        return await session.call_tool(name, arguments)
    budget = {"max_tokens": arguments["max_tokens"]} if "max_tokens" in arguments else {}
    rest = {name: value for name, value in arguments.items() if name != "max_tokens"}
    return await session.call_tool("operations", {"name": name, "arguments": rest, **budget})


async def answer_text(session: Client, tool: str, **arguments: Any) -> str:
    """What a tool says, which has to be no error."""
    result = await call_tool(session, tool, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def refused(session: Client, tool: str, **arguments: Any) -> str:
    """Why a tool refuses."""
    result = await call_tool(session, tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


async def answer_data(session: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The data of a tool that gives some."""
    data: dict[str, Any] = json.loads(await answer_text(session, tool, **arguments))
    return data


async def remember_texts(session: Client, *texts: str, **scope: str) -> list[str]:
    """Memories that were stored; their ids."""
    data = await answer_data(session, "remember", memories=[{"text": text} for text in texts], **scope)
    return [memory["id"] for memory in data["memories"]]
