"""Tools that ask what documents say: search, context, explain."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from conspectus.errors import InvalidInput
from conspectus.mcp.arguments import ISO, Arguments, Identifier, Instant, Name, Question
from conspectus.mcp.budget import ResultPage
from conspectus.mcp.document_tools import REMEMBERED, known_document
from conspectus.mcp.formatting import hit_lines, notices, sources, trace_line
from conspectus.mcp.tool import ToolCall, ToolResult, ToolSpec, is_of_memory
from conspectus.model.filter import And, Eq, Filter, In, Not, Overlaps
from conspectus.model.filter_json import parse_filters
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import EVERYWHERE, Budget
from conspectus.model.results import ContextWindow, Retrieval
from conspectus.text.times import parse_instant

MOST_HITS = 50
MOST_FILTERS = 20
LONGEST_FILTER = 10_000
EXPLAINED = 2_048
NAMING_SHARE = 6
NAMING_MOST = 400
NOTHING = "Nothing relevant was found."

Condition = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_FILTER)]


class QueryArguments(Arguments):
    """A question to documents."""

    query: Question = Field(description="The question; names, numbers and codes as they are written.")
    collection: Name = Field(EVERYWHERE, description="Name of a collection; *: all.")
    source: Name | None = Field(None, description="Only of this source (name or id) of the collection.")
    since: Instant | None = Field(None, description=f"Only what happened at or after this time ({ISO}).")
    until: Instant | None = Field(None, description="Only what happened before this time.")
    where: list[Condition] = Field(
        default_factory=list,
        max_length=MOST_FILTERS,
        description="More conditions: field=value (kind, author, thread, metadata.KEY) or a JSON filter.",
    )
    as_of: Instant | None = Field(None, description="As known at this time.")
    graph_weight: float | None = Field(
        None,
        ge=0.0,
        le=1.0,
        description="Weight of names that connect passages of several documents.",
    )

    async def asked(self, call: ToolCall) -> dict[str, Any]:
        """What the engine is asked, beside the question itself."""
        fields: dict[str, Any] = {"collection": self.collection, "where": await self._where(call)}
        if self.as_of is not None:
            fields["as_of"] = parse_instant(self.as_of)
        if self.graph_weight is not None:
            fields["graph"] = GraphExpansion(self.graph_weight, graphs=await self._graphs(call))
        return fields

    async def _graphs(self, call: ToolCall) -> tuple[str, ...] | None:
        """The graphs that may be walked: all, or where there is a wall none of memories."""
        if not call.walled:
            return None
        if self.collection == EVERYWHERE:
            return ()
        inside = await call.engine.collections.sources(collection=self.collection)
        return tuple(str(each.id) for each in inside if each.kind == "graph" and not is_of_memory(each))

    async def _where(self, call: ToolCall) -> Filter:
        parts: list[Filter] = [Not(In("kind", REMEMBERED)), parse_filters(self.where)]
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

    limit: int = Field(10, ge=1, le=MOST_HITS, description="Most passages.")


class ContextArguments(QueryArguments):
    """The arguments of context."""

    form: Literal["text", "xml", "guarded"] = Field(
        "text",
        description="guarded also disarms instructions in documents.",
    )


class ExplainArguments(QueryArguments):
    """The arguments of explain."""

    document: Identifier | None = Field(
        None, description="Id of a document: why it is in the context, or why not."
    )
    budget: int = Field(EXPLAINED, ge=0, le=100_000, description="Tokens of the explained context.")


async def search(call: ToolCall, given: SearchArguments) -> ToolResult:
    """The best passages."""
    found = await call.engine.search.retrieve(given.query, limit=given.limit, **await given.asked(call))
    lines = [hit_lines(number, hit) for number, hit in enumerate(found.hits, 1)]
    return call.page(ResultPage(lines, head=_head(found), foot=notices(found.notices)))


async def context(call: ToolCall, given: ContextArguments) -> ToolResult:
    """What fits into the budget, with the ids of what it is from."""
    told = min(call.room.tokens // NAMING_SHARE, NAMING_MOST)
    budget = Budget(call.room.tokens - told, call.options.tokenizer)
    window = await call.engine.search.window(
        given.query, budget, renderer=given.form, **await given.asked(call)
    )
    head = window.text or _head(window)
    foot = notices(window.notices)
    return call.page(ResultPage(sources(window.citations), head, foot, between="\n", rest=_unnamed))


async def explain(call: ToolCall, given: ExplainArguments) -> ToolResult:
    """Every candidate with its score and its fate; those of the document in question first."""
    if given.document is not None:
        await known_document(call, given.document)
    budget = Budget(given.budget, call.options.tokenizer)
    fields = await given.asked(call)
    window = await call.engine.search.explain(given.query, budget, document=given.document, **fields)
    ordered = sorted(window.trace, key=lambda each: each.document != given.document)
    head = f"{window.tokens} of {window.allowed} tokens are used by {len(window.citations)} passages."
    if given.document is not None and all(each.document != given.document for each in window.trace):
        head += f"\nDocument {given.document} is no candidate."
    return call.page(ResultPage(list(map(trace_line, ordered)), head, notices(window.notices), between="\n"))


def _head(found: Retrieval | ContextWindow) -> str:
    return NOTHING if found.outcome == "nothing_relevant" else ""


def _unnamed(number: int) -> str:
    return f"[{number} more documents not named]"


OFFERS: tuple[ToolSpec[Any], ...] = (
    ToolSpec(
        name="search",
        title="Search documents",
        description=(
            "Find the passages of documents that answer a question best, each with its score and document "
            "id. To answer from documents, use context."
        ),
        arguments=SearchArguments,
        run=search,
    ),
    ToolSpec(
        name="context",
        title="Build context",
        description=(
            "Build the context for answering a question: the right passages of documents within "
            "max_tokens, numbered for citation as [1]. The first step before answering from documents."
        ),
        arguments=ContextArguments,
        run=context,
    ),
    ToolSpec(
        name="explain",
        title="Explain a result",
        description=(
            "Say why passages, or those of one document, are in the context for a question or not: each "
            "candidate's rank, score parts and status."
        ),
        arguments=ExplainArguments,
        run=explain,
    ),
)
