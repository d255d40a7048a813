"""Tools that read what there is: collections with their sources, and documents piece by piece."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel, Field

from conspectus.errors import InvalidInput
from conspectus.mcp.arguments import Arguments, Identifier, Name
from conspectus.mcp.budget import LONGEST_TOKEN, ToolBudget
from conspectus.mcp.formatting import content, named
from conspectus.mcp.tool import ToolCall, ToolResult, ToolSpec, is_of_memory
from conspectus.memory.scopes import GRAPHS
from conspectus.model.records import Document, Source
from conspectus.text.clean import last_border

REMEMBERED = ("memory", "version")


class ReadArguments(Arguments):
    """The arguments of read_document."""

    document: Identifier = Field(description="Id of the document.")
    start: int = Field(0, ge=0, description="First character.")


class ListArguments(Arguments):
    """The arguments of list_collections."""

    collection: Name | None = Field(
        None,
        description="Also list its sources: channels, folders, streams, graphs.",
    )


class CollectionRow(BaseModel):
    """A collection that can be asked."""

    name: str
    description: str


class SourceRow(BaseModel):
    """A source of a collection."""

    name: str
    kind: str


class Listed(BaseModel):
    """What there is to ask; `left_out` rows did not fit."""

    collections: list[CollectionRow]
    sources: list[SourceRow]
    left_out: int


async def read_document(call: ToolCall, given: ReadArguments) -> ToolResult:
    """A piece of a document's text, as long as there is room for."""
    document = await known_document(call, given.document)
    text = await call.engine.documents.text(document.id)
    if given.start > len(text):
        raise InvalidInput("start", f"the document has {len(text)} characters")
    return ToolResult(piece(heading(document, text), text, given.start, call.room))


async def known_document(call: ToolCall, name: str) -> Document:
    """The document of that id, if what the server fixes lets the caller see it. Raises NotFound."""
    found = await call.engine.documents.get(name)
    if call.walled and found.kind in REMEMBERED:
        call.require_inside(await call.engine.collections.get_source(found.source))
    return found


def heading(document: Document, text: str) -> str:
    """What a document is, on one line."""
    return f"{named(document)} (document {document.id}, {document.kind}, {len(text)} characters)"


def piece(head: str, text: str, start: int, room: ToolBudget) -> str:
    """What of a text fits under a heading, and where to go on."""
    above = ToolBudget(room.tokens // 3, room.count).cut(head)
    low, high = start, min(len(text), start + room.tokens * LONGEST_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if room.holds(_piece(above, text, start, middle)) else (low, middle - 1)
    end = low
    if low < len(text):
        lines = text.rfind("\n", low - (low - start) // 4, low) + 1
        end = lines or max(last_border(text, low, start), start)
    return room.cut(_piece(above, text, start, end if end > start else low))


def _piece(head: str, text: str, start: int, end: int) -> str:
    from_ = f", from character {start} on" if start else ""
    rest = f"\n\n[goes on: read_document with start={end}]" if end < len(text) else ""
    return f"{head}{from_}\n\n{content(text[start:end])}{rest}"


async def list_collections(call: ToolCall, given: ListArguments) -> ToolResult:
    """What can be asked; sources of memories are not told of."""
    found = await call.engine.collections.list()
    rows: list[CollectionRow | SourceRow] = []
    if given.collection is not None:
        inside = await call.engine.collections.sources(collection=given.collection)
        rows += [SourceRow(name=_called(each), kind=each.kind) for each in inside if not is_of_memory(each)]
    rows += [CollectionRow(name=each.name, description=each.description) for each in found]

    def made(kept: Sequence[CollectionRow | SourceRow], left: int) -> Listed:
        return Listed(
            collections=[each for each in kept if isinstance(each, CollectionRow)],
            sources=[each for each in kept if isinstance(each, SourceRow)],
            left_out=left,
        )

    return call.data(rows, made)


def _called(source: Source) -> str:
    """What a source is called in a call: of a graph, its own name."""
    return unquote(source.name.removeprefix(f"{GRAPHS}/")) if source.kind == GRAPHS else source.name


OFFERS: tuple[ToolSpec[Any], ...] = (
    ToolSpec(
        name="read_document",
        title="Read a document",
        description=(
            "Read the text of a document by its id. Of a long one you get the piece that fits into "
            "max_tokens, and where to go on."
        ),
        arguments=ReadArguments,
        run=read_document,
    ),
    ToolSpec(
        name="list_collections",
        title="List collections",
        description=(
            "List the collections of documents that you can see. With collection, list its sources, too."
        ),
        arguments=ListArguments,
        run=list_collections,
        gives=Listed,
    ),
)
