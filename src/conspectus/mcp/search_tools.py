"""Tools that search documents, streams, channels and tasks, and read documents."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal
from urllib.parse import unquote

from pydantic import Field, StringConstraints
from pydantic_core import to_jsonable_python

from conspectus.errors import InvalidInput, NotFound
from conspectus.mcp.tool import (
    ISO,
    MAX_TOKEN_LENGTH,
    Arguments,
    Identifier,
    Instant,
    MinConfidence,
    MinTrustArgument,
    Name,
    Question,
    ResultPage,
    ToolBudget,
    ToolCall,
    content,
    hit_lines,
    is_of_memory,
    named,
    notices,
    short,
    sources,
    tool,
    trace_line,
)
from conspectus.memory.scopes import GRAPHS
from conspectus.model.files import MAX_PATH, FileEntry, parsed_path
from conspectus.model.filter import And, Eq, Filter, In, Not, Overlaps, parse_filters
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import EVERYWHERE, Budget
from conspectus.model.records import Document, Source
from conspectus.model.results import ContextWindow, Retrieval
from conspectus.model.streams import CaptionRange, Moment
from conspectus.model.tasks import Priority, TaskResult, TaskStatus
from conspectus.model.trust import level_mark
from conspectus.text.clean import last_border
from conspectus.text.times import parse_instant

REMEMBERED = ("memory", "version")


PATH: Final = "/collection/source/key"
MAX_FILES: Final = 200
Path = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATH)]
Glob = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]


class ReadArguments(Arguments):
    """The arguments of read_document."""

    document: Identifier = Field(description="Id of the document.")
    start: int = Field(0, ge=0, description="First character.")


class ListArguments(Arguments):
    """The arguments of list_collections."""

    collection: Name | None = Field(None, description="List the sources of this collection.")


@tool()
async def read_document(call: ToolCall, given: ReadArguments) -> str:
    """Read the text of a document, from start on, as much as fits into max_tokens."""
    document = await known_document(call, given.document)
    text = await call.engine.documents.get_text(document.id)
    if given.start > len(text):
        raise InvalidInput("start", f"the document has {len(text)} characters")
    return piece(heading(document, text), text, given.start, call.room)


async def known_document(call: ToolCall, name: str) -> Document:
    """The document, if it is inside of the scope that the server fixes. Raises NotFound."""
    document = await call.engine.documents.get(name)
    is_memory = document.kind in REMEMBERED
    if is_memory and not call.is_inside(await call.engine.collections.get_source(document.source)):
        raise NotFound("document", name)
    return document


def heading(document: Document, text: str) -> str:
    """A document described on one line."""
    place = f"document {document.id}, {document.kind}, {len(text)} characters"
    return f"{named(document)}{level_mark(document.trust)} ({place})"


def piece(head: str, text: str, start: int, room: ToolBudget) -> str:
    """The part of a text that fits under a heading, and where to continue."""
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


class FolderArguments(Arguments):
    """The arguments of list_files."""

    path: Path = Field("/", description=PATH)
    after: Path | None = Field(None, description="Go on after this path.")


class FileArguments(Arguments):
    """The arguments of read_file."""

    path: Path = Field(description=PATH)
    first_line: int = Field(1, ge=1)
    last_line: int | None = Field(None, ge=1)
    start: int = Field(0, ge=0, description="First character.")


class FindArguments(FolderArguments):
    """The arguments of find_files."""

    name: Glob | None = Field(None, description="Glob of the name (*.md), or of the key (docs/*).")


class GrepArguments(Arguments):
    """The arguments of grep."""

    pattern: Glob = Field(description="Regular expression (RE2).")
    path: Path = Field("/", description=PATH)
    literal: bool = Field(False, description="The pattern is a text.")
    ignore_case: bool = False
    context: int = Field(0, ge=0, le=20, description="Lines around a match.")
    name: Glob | None = Field(None, description="Glob of the file's name.")


@tool()
async def list_files(call: ToolCall, given: FolderArguments) -> str:
    """List files and folders at a path, as ls does: /collection/source/key."""
    await _require_path_inside(call, given.path)
    page = await call.engine.files.list(given.path, after=given.after, limit=MAX_FILES)
    kinds = (*REMEMBERED, GRAPHS) if call.has_fixed_scope else ()
    return _files(call, [each for each in page.entries if each.kind not in kinds], page.next)


@tool()
async def find_files(call: ToolCall, given: FindArguments) -> str:
    """Find files below a path by name, as find does."""
    await _require_path_inside(call, given.path)
    page = await call.engine.files.find(
        given.path, name=given.name, filter=Not(In("kind", REMEMBERED)), after=given.after, limit=MAX_FILES
    )
    return _files(call, page.entries, page.next)


@tool()
async def read_file(call: ToolCall, given: FileArguments) -> str:
    """Read lines of a file, as cat and head do, as much as fits into max_tokens."""
    await _require_path_inside(call, given.path)
    told = min(call.room.tokens // NAMING_SHARE, MAX_NAME_TOKENS)
    found = await call.engine.files.read(
        **given.model_dump(exclude={"max_tokens"}), max_tokens=call.room.tokens - told
    )
    document = await known_document(call, found.document)
    lines = f"lines {found.first_line} to {found.last_line} of {found.lines}"
    place = f"document {found.document}, characters {found.start} to {found.end} of {found.characters}"
    rest = f"\n\n[goes on: read_file with start={found.next}]" if found.next is not None else ""
    head = f"{named(document)}{level_mark(document.trust)} ({lines}; {place})"
    return call.room.cut(f"{head}\n\n{content(found.text)}{rest}")


@tool()
async def grep(call: ToolCall, given: GrepArguments) -> str:
    """Find lines that match a pattern, as grep -rn does. A line 12: matches, a line 11- is beside one."""
    await _require_path_inside(call, given.path)
    found = await call.engine.files.grep(
        **given.model_dump(exclude={"max_tokens"}),
        filter=Not(In("kind", REMEMBERED)),
        max_tokens=call.room.tokens * 7 // 8,
    )
    return call.room.cut("\n".join(filter(None, (found.text or "No line matches.", notices(found.notices)))))


async def _require_path_inside(call: ToolCall, path: str) -> None:
    """Raise NotFound for a path in a source outside of what the server fixes; a missing one is left."""
    parts = parsed_path(path)
    if not (call.has_fixed_scope and parts.source):
        return
    try:
        source = await call.engine.collections.get_source(parts.source, collection=parts.collection)
    except NotFound:
        return
    if not call.is_inside(source):
        raise NotFound("file", path)


def _files(call: ToolCall, entries: Sequence[FileEntry], after: str | None) -> str:
    marked = [(f"{entry.path}{level_mark(entry.trust)}", short(entry.title)) for entry in entries]
    lines = [f"{path} ({title})" if title else path for path, title in marked]
    foot = f"[goes on: after={after}]" if after is not None else ""
    return call.page(ResultPage(lines, "" if lines else "No files.", foot, between="\n"))


@tool()
async def list_collections(call: ToolCall, given: ListArguments) -> str:
    """List the collections of documents, or the sources of one: channels, folders, streams, graphs."""
    if given.collection is None:
        found = await call.engine.collections.list()
        return call.data(
            "collections", [{"name": each.name, "description": each.description} for each in found]
        )
    inside = await call.engine.collections.list_sources(collection=given.collection)
    rows = [{"name": _called(each), "kind": each.kind} for each in inside if not is_of_memory(each)]
    return call.data("sources", rows)


def _called(source: Source) -> str:
    """The name of a source in a call: of a graph, its own name."""
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
    """A query over documents."""

    query: Question = Field(description="Names, numbers and codes verbatim.")
    collection: Name = Field(EVERYWHERE, description="*: all.")
    source: Name | None = Field(None, description="Name or id; needs collection.")
    since: Instant | None = Field(None, description=f"Earliest event time ({ISO}).")
    until: Instant | None = Field(None, description="Event time before this.")
    filter: list[Condition] = Field(
        default_factory=list,
        max_length=MAX_FILTERS,
        description="field=value (kind, author, thread, metadata.KEY) or a JSON filter.",
    )
    as_of: Instant | None = Field(None, description="State known at this time.")
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustArgument = None
    graph_weight: float | None = Field(
        None,
        ge=0.0,
        le=1.0,
        description="Weight of entities that connect documents.",
    )

    async def asked(self, call: ToolCall) -> dict[str, Any]:
        """The fields of the query except its text."""
        fields: dict[str, Any] = {"collection": self.collection, "filter": await self._where(call)}
        if self.min_confidence:
            fields["min_confidence"] = self.min_confidence
        if self.min_trust is not None:
            fields["min_trust"] = self.min_trust
        if self.as_of is not None:
            fields["as_of"] = parse_instant(self.as_of)
        if self.graph_weight is not None:
            fields["graph"] = GraphExpansion(self.graph_weight, graphs=await self._graphs(call))
        return fields

    async def _graphs(self, call: ToolCall) -> tuple[str, ...] | None:
        """The graphs that may be traversed; with a fixed scope none of memories."""
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
            source = await call.engine.collections.get_source(self.source, collection=self.collection)
            call.require_inside(source, name=self.source)
            parts.append(Eq("source", str(source.id)))
        if self.since is not None or self.until is not None:
            bounds = (None if each is None else parse_instant(each) for each in (self.since, self.until))
            parts.append(Overlaps(*bounds))
        return And(tuple(parts))


class SearchArguments(QueryArguments):
    """The arguments of search."""

    limit: int = Field(10, ge=1, le=MAX_HITS, description="Maximum passages.")


class ContextArguments(QueryArguments):
    """The arguments of context."""

    format: Literal["text", "xml", "guarded"] = Field(
        "text",
        description="guarded neutralizes instructions in documents.",
    )


class ExplainArguments(QueryArguments):
    """The arguments of explain."""

    document: Identifier | None = Field(None, description="Id of a document to list first.")
    context_max_tokens: int = Field(
        EXPLAINED, ge=0, le=100_000, description="Token limit of the explained context."
    )


@tool()
async def search(call: ToolCall, given: SearchArguments) -> str:
    """Find passages of documents, with scores and document ids."""
    found = await call.engine.search.retrieve(given.query, limit=given.limit, **await given.asked(call))
    lines = [hit_lines(number, hit) for number, hit in enumerate(found.hits, 1)]
    return call.page(ResultPage(lines, head=_head(found), foot=notices(found.notices)))


def anatomy(window: ContextWindow) -> dict[str, Any]:
    """What a window is made of: parts, citations and the candidates in it. Its text is in the result."""
    inside = [each for each in window.trace if each.status in {"included", "truncated"}]
    view: dict[str, Any] = to_jsonable_python(
        {
            "tokens": window.tokens,
            "max_tokens": window.max_tokens,
            "parts": window.parts,
            "citations": window.citations,
            "trace": inside,
            "candidates": len(window.trace),
        }
    )
    return view


@tool()
async def context(call: ToolCall, given: ContextArguments) -> str:
    """Build the context for an answer from documents: passages within max_tokens, numbered to cite as [1]."""
    told = min(call.room.tokens // NAMING_SHARE, MAX_NAME_TOKENS)
    budget = Budget(call.room.tokens - told, call.options.tokenizer)
    window = await call.engine.search.window(
        given.query, budget, format=given.format, parts=True, **await given.asked(call)
    )
    call.view.update(anatomy(window))
    head = window.text or _head(window)
    foot = notices(window.notices)
    return call.page(
        ResultPage(
            sources(window.citations), head, foot, between="\n", rest="[{} more documents not named]".format
        )
    )


@tool()
async def explain(call: ToolCall, given: ExplainArguments) -> str:
    """Show the rank, score parts and status of every candidate of a context."""
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


MAX_FOUND = 20
MAX_STREAMS = 20


class MomentArguments(Arguments):
    """The arguments of search_streams."""

    query: Question = Field(description="May name a time.")
    streams: list[Name] = Field(default_factory=list, max_length=MAX_STREAMS, description="None: all.")
    collection: Name = Field("default", description="Collection of the streams.")
    start: Instant | None = Field(None, description=f"Start of the range (0:30, or {ISO}).")
    end: Instant | None = Field(None, description="End of the range.")
    limit: int = Field(5, ge=1, le=MAX_FOUND, description="Maximum moments.")
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustArgument = None


class ChannelArguments(Arguments):
    """The arguments of channel_context."""

    query: Question = Field(description="The query.")
    channel: Name = Field(description="Name or id of the channel.")
    collection: Name = Field("default", description="Collection of the channel.")
    thread: Name | None = Field(None, description="Thread of the query.")
    at: Instant | None = Field(None, description=f"Time of the query ({ISO}); none: now.")
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustArgument = None


class TaskArguments(Arguments):
    """The arguments of search_tasks."""

    query: Question = Field(description="Subject of the tasks.")
    status: TaskStatus | None = Field(None, description="Only with this status.")
    priority: Priority | None = Field(None, description="Only with this priority.")
    collection: Name = Field("tasks", description="Collection of the tasks.")
    limit: int = Field(5, ge=1, le=MAX_FOUND, description="Maximum tasks.")
    min_trust: MinTrustArgument = None


@tool()
async def search_streams(call: ToolCall, given: MomentArguments) -> str:
    """Find moments of streams and videos, with their captions."""
    for stream in given.streams:
        source = await call.engine.collections.get_source(stream, collection=given.collection)
        call.require_inside(source, name=stream)
    found = await call.engine.streams.search(
        given.query,
        streams=tuple(given.streams),
        collection=given.collection,
        range=CaptionRange(given.start, given.end),
        limit=given.limit,
        min_confidence=given.min_confidence,
        min_trust=given.min_trust,
    )
    head = "" if found.moments else NOTHING
    return call.page(ResultPage(list(map(_moment, found.moments)), head, notices(found.notices)))


@tool()
async def channel_context(call: ToolCall, given: ChannelArguments) -> str:
    """Build the context for a question in a channel: messages, reply chains, threads."""
    source = await call.engine.collections.get_source(given.channel, collection=given.collection)
    call.require_inside(source, name=given.channel)
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
        min_trust=given.min_trust,
    )
    window = found.window
    return call.page(
        ResultPage(sources(window.citations), window.text or NOTHING, notices(window.notices), between="\n")
    )


@tool()
async def search_tasks(call: ToolCall, given: TaskArguments) -> str:
    """Find tasks and their attachments by subject, with status."""
    tasks = call.engine.tasks.using(collection=given.collection)
    found = await tasks.search(
        given.query, given.limit, status=given.status, priority=given.priority, min_trust=given.min_trust
    )
    return call.page(ResultPage(list(map(_task, found)), "" if found else NOTHING))


def _moment(moment: Moment) -> str:
    times = f"{moment.start_text} to {moment.end_text}"
    head = f"{short(moment.stream.name)}, {times} (score {moment.score:.3g})"
    captions = (
        f"{level_mark(caption.document.trust)} {content(caption.text)}".lstrip()
        for caption in moment.captions
    )
    return "\n".join((head, *captions))


def _task(found: TaskResult) -> str:
    facts = [found.status, *filter(None, (found.priority,))]
    named = f"attachment {short(found.attachment_id)} of " if found.attachment_id else ""
    mark = level_mark(found.trust)
    head = f"{named}task {short(found.task_id)}{mark}: {short(found.title)} ({', '.join(facts)})"
    return f"{head}\n{content(found.document)}"
