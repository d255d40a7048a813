"""Tools that search documents, streams, channels and tasks, and that read and list documents."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import BaseModel, Field, StringConstraints

from conspectus.errors import InvalidInput
from conspectus.mcp.formatting import content, hit_lines, named, notices, short, sources, trace_line
from conspectus.mcp.tool import (
    ISO,
    MAX_TOKEN_LENGTH,
    Arguments,
    Identifier,
    Instant,
    MinConfidence,
    Name,
    Question,
    ResultPage,
    ToolBudget,
    ToolCall,
    ToolResult,
    is_of_memory,
    tool,
)
from conspectus.memory.scopes import GRAPHS
from conspectus.model.filter import And, Eq, Filter, In, Not, Overlaps, parse_filters
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import EVERYWHERE, Budget
from conspectus.model.records import Document, Source
from conspectus.model.results import ContextWindow, Retrieval
from conspectus.model.streams import CaptionRange, Moment
from conspectus.model.tasks import Priority, TaskResult, TaskStatus
from conspectus.text.clean import last_border
from conspectus.text.times import parse_instant

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


@tool("Read a document")
async def read_document(call: ToolCall, given: ReadArguments) -> ToolResult:
    """Read the text of a document by its id. Of a long one you get the piece that fits into max_tokens, and
    where to go on.
    """
    document = await known_document(call, given.document)
    text = await call.engine.documents.get_text(document.id)
    if given.start > len(text):
        raise InvalidInput("start", f"the document has {len(text)} characters")
    return ToolResult(piece(heading(document, text), text, given.start, call.room))


async def known_document(call: ToolCall, name: str) -> Document:
    """The document of that id, if what the server fixes lets the caller see it. Raises NotFound."""
    found = await call.engine.documents.get(name)
    if call.has_fixed_scope and found.kind in REMEMBERED:
        call.require_inside(await call.engine.collections.get_source(found.source))
    return found


def heading(document: Document, text: str) -> str:
    """What a document is, on one line."""
    return f"{named(document)} (document {document.id}, {document.kind}, {len(text)} characters)"


def piece(head: str, text: str, start: int, room: ToolBudget) -> str:
    """What of a text fits under a heading, and where to go on."""
    above = ToolBudget(room.tokens // 3, room.count).cut(head)
    low, high = start, min(len(text), start + room.tokens * MAX_TOKEN_LENGTH)
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


@tool("List collections", gives=Listed)
async def list_collections(call: ToolCall, given: ListArguments) -> ToolResult:
    """List the collections of documents that you can see. With collection, list its sources, too."""
    found = await call.engine.collections.list()
    rows: list[CollectionRow | SourceRow] = []
    if given.collection is not None:
        inside = await call.engine.collections.list_sources(collection=given.collection)
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


MAX_HITS = 50
MAX_FILTERS = 20
MAX_FILTER_LENGTH = 10_000
EXPLAINED = 2_048
NAMING_SHARE = 6
MAX_NAME_TOKENS = 400
NOTHING = "Nothing relevant was found."

Condition = Annotated[str, StringConstraints(min_length=1, max_length=MAX_FILTER_LENGTH)]


class QueryArguments(Arguments):
    """A question to documents."""

    query: Question = Field(description="The question; names, numbers and codes as they are written.")
    collection: Name = Field(EVERYWHERE, description="Name of a collection; *: all.")
    source: Name | None = Field(None, description="Only of this source (name or id) of the collection.")
    since: Instant | None = Field(None, description=f"Only what happened at or after this time ({ISO}).")
    until: Instant | None = Field(None, description="Only what happened before this time.")
    filter: list[Condition] = Field(
        default_factory=list,
        max_length=MAX_FILTERS,
        description="More conditions: field=value (kind, author, thread, metadata.KEY) or a JSON filter.",
    )
    as_of: Instant | None = Field(None, description="As known at this time.")
    min_confidence: MinConfidence = 0.0
    graph_weight: float | None = Field(
        None,
        ge=0.0,
        le=1.0,
        description="Weight of names that connect passages of several documents.",
    )

    async def asked(self, call: ToolCall) -> dict[str, Any]:
        """What the engine is asked, beside the question itself."""
        fields: dict[str, Any] = {"collection": self.collection, "filter": await self._where(call)}
        if self.min_confidence:
            fields["min_confidence"] = self.min_confidence
        if self.as_of is not None:
            fields["as_of"] = parse_instant(self.as_of)
        if self.graph_weight is not None:
            fields["graph"] = GraphExpansion(self.graph_weight, graphs=await self._graphs(call))
        return fields

    async def _graphs(self, call: ToolCall) -> tuple[str, ...] | None:
        """The graphs that may be walked: all, or where there is a wall none of memories."""
        if not call.has_fixed_scope:
            return None
        if self.collection == EVERYWHERE:
            return ()
        inside = await call.engine.collections.list_sources(collection=self.collection)
        return tuple(str(each.id) for each in inside if each.kind == "graph" and not is_of_memory(each))

    async def _where(self, call: ToolCall) -> Filter:
        parts: list[Filter] = [Not(In("kind", REMEMBERED)), parse_filters(self.filter)]
        if self.source is not None:
            if self.collection == EVERYWHERE:
                raise InvalidInput("source", "needs the collection that it is in")
            found = await call.engine.collections.get_source(self.source, collection=self.collection)
            parts.append(Eq("source", str(found.id)))
        if self.since is not None or self.until is not None:
            bounds = (None if each is None else parse_instant(each) for each in (self.since, self.until))
            parts.append(Overlaps(*bounds))
        return And(tuple(parts))


class SearchArguments(QueryArguments):
    """The arguments of search."""

    limit: int = Field(10, ge=1, le=MAX_HITS, description="Most passages.")


class ContextArguments(QueryArguments):
    """The arguments of context."""

    format: Literal["text", "xml", "guarded"] = Field(
        "text",
        description="guarded also disarms instructions in documents.",
    )


class ExplainArguments(QueryArguments):
    """The arguments of explain."""

    document: Identifier | None = Field(
        None, description="Id of a document: why it is in the context, or why not."
    )
    context_max_tokens: int = Field(
        EXPLAINED, ge=0, le=100_000, description="max_tokens of the explained context."
    )


@tool("Search documents")
async def search(call: ToolCall, given: SearchArguments) -> ToolResult:
    """Find the passages of documents that answer a question best, each with its score and document id. To
    answer from documents, use context.
    """
    found = await call.engine.search.retrieve(given.query, limit=given.limit, **await given.asked(call))
    lines = [hit_lines(number, hit) for number, hit in enumerate(found.hits, 1)]
    return call.page(ResultPage(lines, head=_head(found), foot=notices(found.notices)))


@tool("Build context")
async def context(call: ToolCall, given: ContextArguments) -> ToolResult:
    """Build the context for answering a question: the right passages of documents within max_tokens,
    numbered for citation as [1]. The first step before answering from documents.
    """
    told = min(call.room.tokens // NAMING_SHARE, MAX_NAME_TOKENS)
    budget = Budget(call.room.tokens - told, call.options.tokenizer)
    window = await call.engine.search.window(
        given.query, budget, format=given.format, **await given.asked(call)
    )
    head = window.text or _head(window)
    foot = notices(window.notices)
    return call.page(ResultPage(sources(window.citations), head, foot, between="\n", rest=_unnamed))


@tool("Explain a result")
async def explain(call: ToolCall, given: ExplainArguments) -> ToolResult:
    """Say why passages, or those of one document, are in the context for a question or not: each
    candidate's rank, score parts and status.
    """
    if given.document is not None:
        await known_document(call, given.document)
    budget = Budget(given.context_max_tokens, call.options.tokenizer)
    fields = await given.asked(call)
    window = await call.engine.search.explain(given.query, budget, document=given.document, **fields)
    ordered = sorted(window.trace, key=lambda each: each.document != given.document)
    head = f"{window.tokens} of {window.max_tokens} tokens are used by {len(window.citations)} passages."
    if given.document is not None and all(each.document != given.document for each in window.trace):
        head += f"\nDocument {given.document} is no candidate."
    return call.page(ResultPage(list(map(trace_line, ordered)), head, notices(window.notices), between="\n"))


def _head(found: Retrieval | ContextWindow) -> str:
    return NOTHING if found.outcome == "no_match" else ""


def _unnamed(number: int) -> str:
    return f"[{number} more documents not named]"


MAX_FOUND = 20
MAX_STREAMS = 20


class MomentArguments(Arguments):
    """The arguments of search_streams."""

    query: Question = Field(description="The question; it may name a time.")
    streams: list[Name] = Field(
        default_factory=list, max_length=MAX_STREAMS, description="Only in these streams; left out: all."
    )
    collection: Name = Field("default", description="The collection of the streams.")
    start: Instant | None = Field(None, description=f"From this time on (0:30, or {ISO}).")
    end: Instant | None = Field(None, description="Before this time.")
    limit: int = Field(5, ge=1, le=MAX_FOUND, description="Most moments.")
    min_confidence: MinConfidence = 0.0


class ChannelArguments(Arguments):
    """The arguments of channel_context."""

    query: Question = Field(description="The question.")
    channel: Name = Field(description="Name or id of the channel in which it is asked.")
    collection: Name = Field("default", description="The collection of the channel.")
    thread: Name | None = Field(None, description="The thread in which it is asked.")
    at: Instant | None = Field(None, description=f"When it is asked ({ISO}); left out: now.")
    min_confidence: MinConfidence = 0.0


class TaskArguments(Arguments):
    """The arguments of search_tasks."""

    query: Question = Field(description="What the tasks are about.")
    status: TaskStatus | None = Field(None, description="Only with this status.")
    priority: Priority | None = Field(None, description="Only with this priority.")
    collection: Name = Field("tasks", description="The collection of the tasks.")
    limit: int = Field(5, ge=1, le=MAX_FOUND, description="Most tasks.")


@tool("Find moments in streams")
async def search_streams(call: ToolCall, given: MomentArguments) -> ToolResult:
    """Find the moments of videos and streams that answer a question, with their captions."""
    for stream in given.streams:
        call.require_inside(await call.engine.collections.get_source(stream, collection=given.collection))
    found = await call.engine.streams.search(
        given.query,
        streams=tuple(given.streams),
        collection=given.collection,
        range=CaptionRange(given.start, given.end),
        limit=given.limit,
        min_confidence=given.min_confidence,
    )
    head = "" if found.moments else NOTHING
    return call.page(ResultPage(list(map(_moment, found.moments)), head, notices(found.notices)))


@tool("Build context from a channel")
async def channel_context(call: ToolCall, given: ChannelArguments) -> ToolResult:
    """Build the context for a question asked in a channel: messages, reply chains, threads."""
    call.require_inside(await call.engine.collections.get_source(given.channel, collection=given.collection))
    told = min(call.room.tokens // NAMING_SHARE, MAX_NAME_TOKENS)
    at = None if given.at is None else parse_instant(given.at)
    found = await call.engine.channels.window(
        given.query,
        Budget(call.room.tokens - told, call.options.tokenizer),
        channel=given.channel,
        collection=given.collection,
        thread=given.thread,
        at=at,
        min_confidence=given.min_confidence,
    )
    window = found.window
    return call.page(
        ResultPage(sources(window.citations), window.text or NOTHING, notices(window.notices), between="\n")
    )


@tool("Find tasks")
async def search_tasks(call: ToolCall, given: TaskArguments) -> ToolResult:
    """Find the tasks, and their attachments, that are about something, with status."""
    tasks = call.engine.tasks.using(collection=given.collection)
    found = await tasks.search(given.query, given.limit, status=given.status, priority=given.priority)
    return call.page(ResultPage(list(map(_task, found)), "" if found else NOTHING))


def _moment(moment: Moment) -> str:
    times = f"{moment.start_text} to {moment.end_text}"
    head = f"{short(moment.stream.name)}, {times} (score {moment.score:.3g})"
    return "\n".join((head, *(content(each.text) for each in moment.captions)))


def _task(found: TaskResult) -> str:
    facts = [found.status, *filter(None, (found.priority,))]
    named = f"attachment {short(found.attachment_id)} of " if found.attachment_id else ""
    head = f"{named}task {short(found.task_id)}: {short(found.title)} ({', '.join(facts)})"
    return f"{head}\n{content(found.document)}"
