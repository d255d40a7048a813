"""Tools that read memories: recall, memory_context, history."""

from typing import Any

from pydantic import Field

from conspectus.mcp.arguments import ISO, Instant, Question, ScopedArguments
from conspectus.mcp.budget import ResultPage, filled
from conspectus.mcp.formatting import memory_lines, notices, recalled_lines
from conspectus.mcp.tool import ToolCall, ToolResult, ToolSpec
from conspectus.model.graph import GraphExpansion
from conspectus.model.memory import MemoryClass, MemoryPage, MemoryQuery, MemoryRetrieval
from conspectus.model.query import Budget
from conspectus.text.times import parse_instant

MOST_MEMORIES = 50
MOST_TURNS = 200
LONGEST_CURSOR = 2_000
NOTHING = "Nothing is remembered that is relevant."
FOOT_SHARE = 8
FOOT_MOST = 100


class RecallArguments(ScopedArguments):
    """The arguments of recall."""

    query: Question = Field(description="What to recall.")
    limit: int = Field(10, ge=1, le=MOST_MEMORIES, description="Most memories.")
    as_of: Instant | None = Field(None, description=f"As known at this time ({ISO}).")
    graph_weight: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="Weight of the graph of remembered facts.",
    )

    def question(self, call: ToolCall) -> MemoryQuery:
        """As the engine takes it."""
        as_of = None if self.as_of is None else parse_instant(self.as_of)
        graph = GraphExpansion(self.graph_weight) if self.graph_weight else None
        scope = self.scope(call.options.scope)
        return MemoryQuery(self.query, scope, limit=self.limit, as_of=as_of, graph=graph)


class WindowArguments(RecallArguments):
    """The arguments of memory_context."""

    turns: int | None = Field(
        None,
        ge=0,
        le=MOST_TURNS,
        description="Most of the last turns of the conversation.",
    )
    notes_share: float = Field(0.25, ge=0.0, le=1.0, description="Largest share of the budget for notes.")

    def question(self, call: ToolCall) -> MemoryQuery:
        """As the engine takes it."""
        asked = super().question(call)
        return MemoryQuery(
            asked.text,
            asked.scope,
            limit=asked.limit,
            as_of=asked.as_of,
            recent=self.turns,
            notes_share=self.notes_share,
            graph=asked.graph,
        )


class HistoryArguments(ScopedArguments):
    """The arguments of history."""

    limit: int = Field(20, ge=1, le=MOST_TURNS, description="Most memories.")
    kind: MemoryClass | None = Field(None, description="Only turns or only notes.")
    cursor: str | None = Field(
        None,
        min_length=1,
        max_length=LONGEST_CURSOR,
        description="Cursor of the page before.",
    )


async def recall(call: ToolCall, given: RecallArguments) -> ToolResult:
    """The memories that answer, best first."""
    nothing = MemoryRetrieval("nothing_relevant", ())
    found = await call.remembered(call.engine.memory.recall(given.question(call)), nothing)
    head = NOTHING if found.outcome == "nothing_relevant" else ""
    foot = "\n".join(filter(None, (notices(found.notices), _since(found))))
    return call.page(ResultPage(list(map(recalled_lines, found.memories)), head, foot, between="\n"))


async def memory_context(call: ToolCall, given: WindowArguments) -> ToolResult:
    """Standing notes, what is recalled and the last turns, within the budget."""
    told = min(call.room.tokens // FOOT_SHARE, FOOT_MOST)
    budget = Budget(call.room.tokens - told, call.options.tokenizer)
    asked = call.engine.memory.window(given.question(call), budget)
    made = await call.remembered(asked, None)
    if made is None or not made.text:
        return ToolResult(NOTHING)
    return call.page(ResultPage((), made.text, notices(made.window.notices)))


async def history(call: ToolCall, given: HistoryArguments) -> ToolResult:
    """The newest memories in the order of time, and the cursor of those before them."""
    fields: dict[str, Any] = {"scope": given.scope(call.options.scope), "kind": given.kind}
    limit = given.limit
    while True:
        asked = call.engine.memory.list(after=given.cursor, limit=limit, newest_first=True, **fields)
        page = await call.remembered(asked, MemoryPage((), None))
        older = f"[older: history with cursor={page.next}]" if page.next else ""
        lines = list(map(memory_lines, page.memories))
        text, kept = filled(_turns(lines, older), call.room)
        if kept >= len(lines) or kept == 0:
            return ToolResult(text)
        limit = kept


def _turns(lines: list[str], older: str) -> ResultPage:
    return ResultPage(lines, older or ("" if lines else "Nothing is remembered."), between="\n", upwards=True)


def _since(found: MemoryRetrieval) -> str:
    """What became of the memories after the time that was asked for."""
    if found.since is None:
        return ""
    since = found.since
    return f"Since then: {since.recorded} recorded, {since.changed} changed, {since.deleted} deleted."


OFFERS: tuple[ToolSpec[Any], ...] = (
    ToolSpec(
        name="recall",
        title="Recall memories",
        description=(
            "Find memories about something, best first, each with its id, time and speaker. Use it before "
            "asking the user again."
        ),
        arguments=RecallArguments,
        run=recall,
    ),
    ToolSpec(
        name="memory_context",
        title="Build context from memory",
        description=(
            "Build the context for the next turn from memory: notes, what is relevant to the query, and "
            "the last turns. Call it at the start of a turn."
        ),
        arguments=WindowArguments,
        run=memory_context,
    ),
    ToolSpec(
        name="history",
        title="Conversation history",
        description=(
            "Read what was said in order of time, the newest last, each with its id. The cursor leads to "
            "older ones."
        ),
        arguments=HistoryArguments,
        run=history,
    ),
)
