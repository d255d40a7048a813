"""Tools that search documents: search, context and explain."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints
from pydantic_core import to_jsonable_python

from conspectus.engine.search import SearchService
from conspectus.errors import InvalidInput
from conspectus.mcp.arguments import (
    Arguments,
    AsOf,
    Instant,
    MinConfidence,
    MinTrustArgument,
    Name,
    Question,
)
from conspectus.mcp.document_tools import MEMORY_KINDS, get_document_inside
from conspectus.mcp.lines import hit_lines, notice_lines, source_lines, trace_line
from conspectus.mcp.token_budget import ResultPage
from conspectus.mcp.tool import ToolCall, is_of_memory, tool
from conspectus.model.filter import And, Eq, Filter, In, Not, Overlaps
from conspectus.model.filter_json import MAX_FILTER_LENGTH, parse_filters
from conspectus.model.graph import GraphExpansion
from conspectus.model.parameters import DEFAULT_HITS
from conspectus.model.query import EVERYWHERE, Budget, Query, WindowForm
from conspectus.model.results import ContextWindow, Retrieval
from conspectus.operations.declared import declared
from conspectus.text.counts import format_count
from conspectus.text.times import parse_instant

MAX_FILTERS = 20
DEFAULT_EXPLAINED_TOKENS = 2_048
NO_MATCH = "Nothing relevant was found."
Condition = Annotated[str, StringConstraints(min_length=1, max_length=MAX_FILTER_LENGTH)]


class QueryArguments(Arguments):
    """A query over documents."""

    query: Question
    collection: Annotated[str, declared(Query, "collection")] = EVERYWHERE
    source: Annotated[Name | None, Field(description="Name or id; needs collection.")] = None
    since: Instant | None = Field(None, description="Earliest event time (ISO 8601).")
    until: Instant | None = Field(None, description="Event time before this.")
    filter: list[Condition] = Field(
        default_factory=list,
        max_length=MAX_FILTERS,
        description="field=value (kind, author, thread, metadata.KEY) or a JSON filter.",
    )
    as_of: AsOf = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustArgument = None
    graph_weight: Annotated[float | None, declared(GraphExpansion, "alpha")] = None

    async def query_fields(self, call: ToolCall) -> dict[str, Any]:
        """Return the fields of the query except its text."""
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
        """Return the graphs to traverse; with a fixed scope none of memories."""
        if not call.has_fixed_scope:
            return None
        if self.collection == EVERYWHERE:
            return ()
        inside = await call.engine.collections.list_sources(collection=self.collection)
        return tuple(
            str(source.id) for source in inside if source.kind == "graph" and not is_of_memory(source)
        )

    async def _where(self, call: ToolCall) -> Filter:
        parts: list[Filter] = [Not(In("kind", MEMORY_KINDS)), parse_filters(self.filter)]
        if self.source is not None:
            if self.collection == EVERYWHERE:
                raise InvalidInput("source", "needs the collection that it is in")
            source = await call.engine.collections.get_source(self.source, collection=self.collection)
            call.require_inside(source, name=self.source)
            parts.append(Eq("source", str(source.id)))
        if self.since is not None or self.until is not None:
            bounds = (None if bound is None else parse_instant(bound) for bound in (self.since, self.until))
            parts.append(Overlaps(*bounds))
        return And(tuple(parts))


class SearchArguments(QueryArguments):
    """The arguments of search."""

    limit: Annotated[int, declared(Query, "limit", ge=1)] = DEFAULT_HITS


class ContextArguments(QueryArguments):
    """The arguments of context."""

    format: Annotated[Literal["text", "xml", "guarded"], declared(WindowForm, "format")] = "text"


class ExplainArguments(QueryArguments):
    """The arguments of explain."""

    document: Annotated[str | None, declared(SearchService.explain, "document")] = None
    context_max_tokens: Annotated[int, declared(Budget, "max_tokens")] = DEFAULT_EXPLAINED_TOKENS


@tool()
async def search(call: ToolCall, arguments: SearchArguments) -> str:
    """Find passages of documents, with scores and document ids."""
    retrieval = await call.engine.search.retrieve(
        arguments.query, limit=arguments.limit, **await arguments.query_fields(call)
    )
    lines = [hit_lines(number, hit) for number, hit in enumerate(retrieval.hits, 1)]
    return call.page(ResultPage(lines, head=_no_match_line(retrieval), foot=notice_lines(retrieval.notices)))


def anatomy(window: ContextWindow) -> dict[str, Any]:
    """Return the parts and citations of a window, and the candidates in it, without its text."""
    inside = [candidate for candidate in window.trace if candidate.status in {"included", "truncated"}]
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
async def context(call: ToolCall, arguments: ContextArguments) -> str:
    """Build the context for an answer from documents: passages within max_tokens, numbered to cite as [1]."""
    window = await call.engine.search.window(
        arguments.query,
        call.text_budget(),
        format=arguments.format,
        parts=True,
        **await arguments.query_fields(call),
    )
    call.view.update(anatomy(window))
    head = window.text or _no_match_line(window)
    foot = notice_lines(window.notices)
    return call.page(
        ResultPage(
            source_lines(window.citations),
            head,
            foot,
            between="\n",
            rest="[{} more documents not named]".format,
        )
    )


@tool()
async def explain(call: ToolCall, arguments: ExplainArguments) -> str:
    """Show the rank, score parts and status of every candidate of a context."""
    if arguments.document is not None:
        await get_document_inside(call, arguments.document)
    budget = Budget(arguments.context_max_tokens, call.options.tokenizer)
    fields = await arguments.query_fields(call)
    window = await call.engine.search.explain(arguments.query, budget, document=arguments.document, **fields)
    ordered = sorted(window.trace, key=lambda candidate: candidate.document != arguments.document)
    passages = format_count(len(window.citations), "passage")
    head = f"{passages} in {window.tokens:,} of {window.max_tokens:,} tokens."
    if arguments.document is not None and all(
        candidate.document != arguments.document for candidate in window.trace
    ):
        head += f"\nDocument {arguments.document} is no candidate."
    return call.page(
        ResultPage(list(map(trace_line, ordered)), head, notice_lines(window.notices), between="\n")
    )


def _no_match_line(answer: Retrieval | ContextWindow) -> str:
    return NO_MATCH if answer.outcome == "no_match" else ""
