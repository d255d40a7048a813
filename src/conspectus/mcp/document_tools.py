"""Tools that read documents and list collections."""

from typing import Annotated
from urllib.parse import unquote

from pydantic import Field

from conspectus.engine.files import FileService
from conspectus.errors import InvalidInput, NotFound
from conspectus.mcp.arguments import (
    Arguments,
    Collection,
)
from conspectus.mcp.lines import document_name, escape_content
from conspectus.mcp.token_budget import MAX_TOKEN_CHARACTERS, ToolBudget
from conspectus.mcp.tool import ToolCall, is_of_memory, tool
from conspectus.memory.scopes import GRAPHS
from conspectus.model import parameters
from conspectus.model.records import Document, Source
from conspectus.model.trust import level_mark
from conspectus.operations.declared import declared, facts_of
from conspectus.text.counts import format_count
from conspectus.text.graphemes import last_border

MEMORY_KINDS = ("memory", "version")


class ReadArguments(Arguments):
    """The arguments of read_document."""

    document: Annotated[str, Field(**facts_of(parameters.DocumentIdentifier))]
    start: Annotated[int, declared(FileService.read, "start")] = 0


class ListArguments(Arguments):
    """The arguments of list_collections."""

    collection: Collection | None = Field(None, description="List the sources of this collection.")


@tool()
async def read_document(call: ToolCall, arguments: ReadArguments) -> str:
    """Read the text of a document, from start on, as much as fits into max_tokens."""
    document = await get_document_inside(call, arguments.document)
    text = await call.engine.documents.get_text(document.id)
    if arguments.start > len(text):
        raise InvalidInput("start", f"the document has {format_count(len(text), 'character')}")
    return document_part(document_heading(document, text), text, arguments.start, call.budget)


async def get_document_inside(call: ToolCall, name: str) -> Document:
    """Return a document of the scope that the server fixes. Raises NotFound."""
    document = await call.engine.documents.get(name)
    is_memory = document.kind in MEMORY_KINDS
    if is_memory and not call.is_inside(await call.engine.collections.get_source(document.source)):
        raise NotFound("document", name)
    return document


def document_heading(document: Document, text: str) -> str:
    """Describe a document on one line."""
    facts = f"document {document.id}, {document.kind}, {format_count(len(text), 'character')}"
    return f"{document_name(document)}{level_mark(document.trust)} ({facts})"


def document_part(head: str, text: str, start: int, budget: ToolBudget) -> str:
    """Return the part of a text that fits under a heading, and where to continue."""
    above = ToolBudget(budget.tokens // 3, budget.count).cut(head)
    low, high = start, min(len(text), start + budget.tokens * MAX_TOKEN_CHARACTERS)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if budget.holds(_part_between(above, text, start, middle)) else (low, middle - 1)
        )
    end = low
    if low < len(text):
        lines = text.rfind("\n", low - (low - start) // 4, low) + 1
        end = lines or max(last_border(text, low, start), start)
    return budget.cut(_part_between(above, text, start, end if end > start else low))


def _part_between(head: str, text: str, start: int, end: int) -> str:
    from_ = f", from character {start} on" if start else ""
    rest = f"\n\n[goes on: read_document with start={end}]" if end < len(text) else ""
    return f"{head}{from_}\n\n{escape_content(text[start:end])}{rest}"


@tool()
async def list_collections(call: ToolCall, arguments: ListArguments) -> str:
    """List the collections of documents, or the sources of one: channels, folders, streams, graphs."""
    if arguments.collection is None:
        collections = await call.engine.collections.list()
        return call.data(
            "collections",
            [{"name": collection.name, "description": collection.description} for collection in collections],
        )
    inside = await call.engine.collections.list_sources(collection=arguments.collection)
    rows = [
        {"name": _call_name(source), "kind": source.kind} for source in inside if not is_of_memory(source)
    ]
    return call.data("sources", rows)


def _call_name(source: Source) -> str:
    """Return the name of a source in calls; a graph is called by its own name."""
    return unquote(source.name.removeprefix(f"{GRAPHS}/")) if source.kind == GRAPHS else source.name
