"""The tools that a server offers, with their schemas."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from mcp_types import (
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel

from conspectus.mcp import fetch_tools
from conspectus.mcp.arguments import compact_schema, fixed_names
from conspectus.mcp.graph_tools import graph
from conspectus.mcp.memory_tools import remember
from conspectus.mcp.operation_tools import (
    operations,
)
from conspectus.mcp.recall_tools import recall
from conspectus.mcp.search_tools import context, search
from conspectus.mcp.token_budget import MIN_TOKENS
from conspectus.mcp.tool import ToolOptions, ToolSpec

TOOLS: Mapping[str, ToolSpec[Any]] = {
    spec.name: spec for spec in (search, context, remember, recall, graph, operations)
}
SEARCH_AND_FETCH: Mapping[str, ToolSpec[Any]] = {
    spec.name: spec for spec in (fetch_tools.search, fetch_tools.fetch)
}
APP_URI = "ui://conspectus/window.html"
"""The MCP App that shows the window of `context` with its parts."""
APP_TYPE = "text/html;profile=mcp-app"
APP_PAGE = files("conspectus.mcp") / "window.html"
"""Built with the console; where it was not, the tools have no app."""


def list_tools(options: ToolOptions) -> list[Tool]:
    """Return the tools with their schemas."""
    return [_tool(spec, options) for spec in tools_of(options).values()]


def tools_of(options: ToolOptions) -> Mapping[str, ToolSpec[Any]]:
    """Return the tools of a server with these options by name."""
    return TOOLS if options.toolset == "all" else SEARCH_AND_FETCH


def input_schema(spec: ToolSpec[Any], options: ToolOptions) -> dict[str, Any]:
    """Return the schema of a tool's arguments on a server with these options."""
    arguments: type[BaseModel] = spec.arguments
    schema = compact_schema(arguments)
    properties = {
        name: property_schema
        for name, property_schema in schema["properties"].items()
        if name not in fixed_names(options.scope)
    }
    if options.toolset == "search_and_fetch":
        properties.pop("max_tokens")
        return {**schema, "properties": properties}
    limits = {"minimum": MIN_TOKENS, "maximum": options.max_tokens}
    properties["max_tokens"] = {**properties.pop("max_tokens"), **limits}
    return {**schema, "properties": properties}


def _tool(spec: ToolSpec[Any], options: ToolOptions) -> Tool:
    reads = spec.effect == "reads"
    hints = ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=None if reads else spec.effect != "adds",
        open_world_hint=False,
    )
    return Tool(
        name=spec.name,
        description=spec.description,
        input_schema=input_schema(spec, options),
        annotations=hints,
        _meta={"ui": {"resourceUri": APP_URI}} if spec is context and APP_PAGE.is_file() else None,
    )
