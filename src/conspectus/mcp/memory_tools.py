"""Tools for memory: what is remembered, found again, listed and forgotten."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from conspectus.errors import InvalidInput
from conspectus.mcp.formatting import memory_lines, notices, recalled_lines
from conspectus.mcp.tool import (
    ISO,
    ArgumentModel,
    Identifier,
    Instant,
    MinConfidence,
    Name,
    Question,
    ResultPage,
    ScopedArguments,
    ToolCall,
    ToolResult,
    filled,
    tool,
)
from conspectus.model.graph import Fact, GraphExpansion
from conspectus.model.memory import (
    MemoryKind,
    MemoryPage,
    MemoryQueryOptions,
    MemoryReceipt,
    MemoryRetrieval,
    MemorySelection,
    MemoryWritten,
    NewMemory,
)
from conspectus.model.query import Budget
from conspectus.text.times import parse_instant

MAX_BATCH = 50
MAX_IDS = 200
MAX_LENGTH = 100_000
MAX_ENTITIES = 50

Said = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LENGTH)]


class FactPart(ArgumentModel):
    """What a memory states, as an edge of the graph."""

    subject: Name
    predicate: Name = Field(description="The relation, such as lives_in.")
    object: Name
    single: bool = Field(True, description="Whether a newer object ends this one.")


class MemoryPart(ArgumentModel):
    """Something to remember."""

    text: Said = Field(description="Word for word, understandable by itself.")
    kind: MemoryKind = Field(
        "turn",
        description="note: a standing preference or instruction.",
    )
    role: Name | None = Field(None, description="user, assistant, ...")
    speaker: Name | None = Field(None, description="Who spoke, by name.")
    at: Instant | None = Field(None, description=f"When it was said ({ISO}); left out: now.")
    key: Name | None = Field(None, description="Your id: the same key again replaces it.")
    pinned: bool = Field(False, description="Never expires.")
    fact: FactPart | None = Field(None, description="The fact that it states.")
    valid_from: Instant | None = Field(None, description="Start of the fact.")
    valid_until: Instant | None = Field(None, description="End of the fact.")
    entities: list[Name] = Field(
        default_factory=list,
        max_length=MAX_ENTITIES,
        description="Names that it mentions.",
    )

    def memory(self) -> NewMemory:
        """As the engine takes it."""
        given = self.model_dump(exclude={"fact", "entities"})
        return NewMemory(**given, fact=fact_of(self.fact), entities=tuple(self.entities))


class RememberArguments(ScopedArguments):
    """The arguments of remember."""

    memories: list[MemoryPart] = Field(
        min_length=1, max_length=MAX_BATCH, description="In the order they were said."
    )


class UpdateArguments(ScopedArguments):
    """The arguments of update_memory."""

    memory: Identifier = Field(description="Id of the memory.")
    text: Said | None = Field(None, description="The new text in full.")
    kind: MemoryKind | None = Field(None, description="turn or note.")
    pinned: bool | None = Field(None, description="Never expires.")
    fact: FactPart | None = Field(None, description="The fact that it states.")
    valid_from: Instant | None = Field(None, description="Start of the fact.")
    valid_until: Instant | None = Field(None, description="End of the fact.")

    def changes(self) -> dict[str, Any]:
        """What is to be changed. Raises InvalidInput for nothing."""
        names = ("text", "kind", "pinned", "valid_from", "valid_until")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.fact is not None:
            given["fact"] = fact_of(self.fact)
        if not given:
            raise InvalidInput("text", "give at least one thing to change")
        return given


class ForgetArguments(ScopedArguments):
    """The arguments of forget: which memories, in exactly one way."""

    ids: list[Identifier] = Field(
        default_factory=list, max_length=MAX_IDS, description="Ids of the memories to delete."
    )
    before: Instant | None = Field(None, description=f"Delete what was said before this time ({ISO}).")
    older_than_days: float | None = Field(None, ge=0, description="Delete what is older than so many days.")
    everything: bool = Field(False, description="Delete all in scope.")
    pinned: bool = Field(False, description="Delete pinned ones, too.")
    confirm: bool = Field(False, description="Delete for good; else only say what would be deleted.")

    def what(self) -> MemorySelection:
        """As the engine takes it."""
        before = None if self.before is None else parse_instant(self.before)
        return MemorySelection(tuple(self.ids), before, self.older_than_days, self.everything, self.pinned)


class RememberedRow(BaseModel):
    """A stored memory: `near` say nearly the same, the facts of `closed` it ended."""

    id: str
    outcome: Literal["added", "replaced", "updated", "unchanged"]
    near: list[str] | None = None
    closed: list[str] | None = None


class RememberedAnswer(BaseModel):
    """What was stored; `left_out` of the rows did not fit into max_tokens, and are stored all the same."""

    stored: int
    memories: list[RememberedRow]
    left_out: int


class UpdatedAnswer(BaseModel):
    """What became of a memory; its id is the same."""

    id: str
    outcome: Literal["added", "replaced", "updated", "unchanged"]


class ForgottenAnswer(BaseModel):
    """The receipt of a deletion, or with `dry_run` what one would delete; `left_out` ids did not fit."""

    dry_run: bool
    memories: int
    versions: int
    chunks: int
    vectors: int
    edges: int
    ids: list[str]
    left_out: int
    next: str | None = None


@tool("Remember", effect="adds", gives=RememberedAnswer, repeatable=False)
async def remember(call: ToolCall, given: RememberArguments) -> ToolResult:
    """Store in long-term memory what will matter later: turns, facts, preferences (kind note). One memory
    for each thing.
    """
    scope = given.scope(call.options.scope)
    stored = await call.engine.memory.add([each.memory() for each in given.memories], scope=scope)

    def made(kept: Sequence[MemoryWritten], left: int) -> RememberedAnswer:
        return RememberedAnswer(stored=len(stored), memories=[_row(each) for each in kept], left_out=left)

    return call.data(stored, made)


@tool("Update a memory", effect="changes", gives=UpdatedAnswer)
async def update_memory(call: ToolCall, given: UpdateArguments) -> ToolResult:
    """Correct a memory; it keeps its id and its earlier versions. If something has changed in the world,
    remember the new fact instead.
    """
    scope = given.scope(call.options.scope)
    written = await call.engine.memory.update(given.memory, scope=scope, **given.changes())
    return call.data((), lambda *_: UpdatedAnswer(id=str(written.id), outcome=written.outcome))


@tool("Forget", effect="deletes", gives=ForgottenAnswer)
async def forget(call: ToolCall, given: ForgetArguments) -> ToolResult:
    """Delete memories for good with confirm=true; without it, only say what would be deleted. Give exactly
    one of ids, before, older_than_days and everything.
    """
    scope = given.scope(call.options.scope)
    dry_run = not given.confirm
    asked = call.engine.memory.forget(given.what(), scope=scope, dry_run=dry_run)
    receipt = await call.remembered(asked, MemoryReceipt(0, dry_run=dry_run))
    return call.data(receipt.ids, lambda ids, left: _receipt(receipt, ids, left))


def fact_of(part: FactPart | None) -> Fact | None:
    """The fact, as the engine takes it."""
    return None if part is None else Fact(part.subject, part.predicate, part.object, part.single)


def _row(stored: MemoryWritten) -> RememberedRow:
    return RememberedRow(
        id=stored.id,
        outcome=stored.outcome,
        near=list(stored.near) or None,
        closed=list(stored.closed) or None,
    )


def _receipt(receipt: MemoryReceipt, ids: Sequence[str], left: int) -> ForgottenAnswer:
    counts = {name: getattr(receipt, name) for name in ("memories", "versions", "chunks", "vectors", "edges")}
    following = (
        "call again with confirm=true to delete them" if receipt.dry_run and receipt.memories else None
    )
    return ForgottenAnswer(
        dry_run=receipt.dry_run, ids=[str(each) for each in ids], left_out=left, next=following, **counts
    )


MAX_MEMORIES = 50
MAX_TURNS = 200
MAX_CURSOR_LENGTH = 2_000
NOTHING = "Nothing is remembered that is relevant."
FOOT_SHARE = 8
MAX_FOOTER_TOKENS = 100


class RecallArguments(ScopedArguments):
    """The arguments of recall."""

    query: Question = Field(description="What to recall.")
    limit: int = Field(10, ge=1, le=MAX_MEMORIES, description="Most memories.")
    as_of: Instant | None = Field(None, description=f"As known at this time ({ISO}).")
    graph_weight: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="Weight of the graph of remembered facts.",
    )
    min_confidence: MinConfidence = 0.0

    def search_options(self) -> MemoryQueryOptions:
        """As the engine takes them."""
        return {
            "limit": self.limit,
            "as_of": None if self.as_of is None else parse_instant(self.as_of),
            "graph": GraphExpansion(self.graph_weight) if self.graph_weight else None,
            "min_confidence": self.min_confidence,
        }


class WindowArguments(RecallArguments):
    """The arguments of memory_context."""

    turns: int | None = Field(
        None,
        ge=0,
        le=MAX_TURNS,
        description="Most of the last turns of the conversation.",
    )
    notes_share: float = Field(0.25, ge=0.0, le=1.0, description="Largest share of the budget for notes.")

    def search_options(self) -> MemoryQueryOptions:
        """As the engine takes them."""
        return {**super().search_options(), "recent": self.turns, "notes_share": self.notes_share}


class HistoryArguments(ScopedArguments):
    """The arguments of history."""

    limit: int = Field(20, ge=1, le=MAX_TURNS, description="Most memories.")
    kind: MemoryKind | None = Field(None, description="Only turns or only notes.")
    cursor: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_CURSOR_LENGTH,
        description="Cursor of the page before.",
    )


@tool("Recall memories")
async def recall(call: ToolCall, given: RecallArguments) -> ToolResult:
    """Find memories about something, best first, each with its id, time and speaker. Use it before asking
    the user again.
    """
    nothing = MemoryRetrieval("no_match", ())
    scope = given.scope(call.options.scope)
    search = call.engine.memory.recall(given.query, scope=scope, **given.search_options())
    found = await call.remembered(search, nothing)
    head = NOTHING if found.outcome == "no_match" else ""
    foot = "\n".join(filter(None, (notices(found.notices), _since(found))))
    return call.page(ResultPage(list(map(recalled_lines, found.memories)), head, foot, between="\n"))


@tool("Build context from memory")
async def memory_context(call: ToolCall, given: WindowArguments) -> ToolResult:
    """Build the context for the next turn from memory: notes, what is relevant to the query, and the last
    turns. Call it at the start of a turn.
    """
    told = min(call.room.tokens // FOOT_SHARE, MAX_FOOTER_TOKENS)
    budget = Budget(call.room.tokens - told, call.options.tokenizer)
    scope = given.scope(call.options.scope)
    window = call.engine.memory.window(given.query, budget, scope=scope, **given.search_options())
    made = await call.remembered(window, None)
    if made is None or not made.text:
        return ToolResult(NOTHING)
    return call.page(ResultPage((), made.text, notices(made.window.notices)))


@tool("Conversation history")
async def history(call: ToolCall, given: HistoryArguments) -> ToolResult:
    """Read what was said in order of time, the newest last, each with its id. The cursor leads to older
    ones.
    """
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
