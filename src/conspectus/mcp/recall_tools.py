"""Tools that read memories: recall and history."""

from typing import Annotated, Any

from pydantic import Field

from conspectus.engine.memory import MemoryService
from conspectus.mcp.arguments import (
    AsOf,
    MinConfidence,
    MinTrustArgument,
    Question,
    ScopedArguments,
)
from conspectus.mcp.lines import format_recalled, memory_lines, notice_lines
from conspectus.mcp.token_budget import ResultPage, fill_page
from conspectus.mcp.tool import ToolCall, tool
from conspectus.model import parameters
from conspectus.model.graph import (
    GraphExpansion,
)
from conspectus.model.memory import (
    MemoryKind,
    MemoryListOptions,
    MemoryPage,
    MemoryQuery,
    MemoryQueryOptions,
    MemoryRetrieval,
)
from conspectus.model.query import Budget
from conspectus.operations.declared import declared, facts_of
from conspectus.text.times import parse_instant

NO_MEMORY = "No relevant memory was found."
FOOTER_TOKENS_DIVISOR = 8
MAX_FOOTER_TOKENS = 100
DEFAULT_GRAPH_WEIGHT = 0.5


class RecallArguments(ScopedArguments):
    """The arguments of recall."""

    query: Question
    limit: Annotated[int, declared(MemoryQuery, "limit", ge=1)] = 10
    as_of: AsOf = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustArgument = None
    window: bool = Field(
        False, description="Context for the next turn: notes, relevant memories, last turns."
    )
    turns: Annotated[int | None, declared(MemoryQuery, "recent")] = None

    def search_options(self) -> MemoryQueryOptions:
        """Return the options of the query."""
        return {
            "limit": self.limit,
            "as_of": None if self.as_of is None else parse_instant(self.as_of),
            "graph": GraphExpansion(DEFAULT_GRAPH_WEIGHT),
            "min_confidence": self.min_confidence,
            "min_trust": self.min_trust,
        }


class HistoryArguments(ScopedArguments):
    """The arguments of history."""

    limit: Annotated[int, declared(MemoryListOptions, "limit")] = 20
    kind: Annotated[MemoryKind | None, declared(MemoryService.list, "kind")] = None
    cursor: Annotated[str | None, Field(**facts_of(parameters.Cursor))] = None


@tool()
async def recall(call: ToolCall, arguments: RecallArguments) -> str:
    """Find memories, best first, with id, time and speaker; or with window a context."""
    if arguments.window:
        return await _window(call, arguments)
    nothing = MemoryRetrieval("no_match", ())
    scope = arguments.scope(call.options.scope)
    search = call.engine.memory.recall(arguments.query, scope=scope, **arguments.search_options())
    retrieval = await call.answer_or(search, nothing)
    head = NO_MEMORY if retrieval.outcome == "no_match" else ""
    foot = "\n".join(filter(None, (notice_lines(retrieval.notices), _changes_line(retrieval))))
    return call.page(ResultPage(list(map(format_recalled, retrieval.memories)), head, foot, between="\n"))


async def _window(call: ToolCall, arguments: RecallArguments) -> str:
    footer_tokens = min(call.budget.tokens // FOOTER_TOKENS_DIVISOR, MAX_FOOTER_TOKENS)
    budget = Budget(call.budget.tokens - footer_tokens, call.options.tokenizer)
    options: MemoryQueryOptions = {**arguments.search_options(), "recent": arguments.turns}
    window = call.engine.memory.window(
        arguments.query, budget, scope=arguments.scope(call.options.scope), **options
    )
    memory_window = await call.answer_or(window, None)
    if memory_window is None or not memory_window.text:
        return NO_MEMORY
    return call.page(ResultPage((), memory_window.text, notice_lines(memory_window.window.notices)))


@tool()
async def history(call: ToolCall, arguments: HistoryArguments) -> str:
    """List memories in order of time, newest last, with their ids; the cursor leads to older ones."""
    fields: dict[str, Any] = {"scope": arguments.scope(call.options.scope), "kind": arguments.kind}
    limit = arguments.limit
    while True:
        listing = call.engine.memory.list(after=arguments.cursor, limit=limit, newest_first=True, **fields)
        page = await call.answer_or(listing, MemoryPage((), None))
        older = f"[older: history with cursor={page.next}]" if page.next else ""
        lines = list(map(memory_lines, page.memories))
        head = older or ("" if lines else "No memories.")
        text, shown_count = fill_page(ResultPage(lines, head, between="\n", upwards=True), call.budget)
        if shown_count >= len(lines) or shown_count == 0:
            return text
        limit = shown_count


def _changes_line(retrieval: MemoryRetrieval) -> str:
    """Return the numbers of changes after the time of the query."""
    if retrieval.since is None:
        return ""
    since = retrieval.since
    return f"Since then: {since.recorded} recorded, {since.changed} changed, {since.deleted} deleted."
