"""Tools that write memories: remember, update_memory and forget."""

from typing import Annotated, Any

from pydantic import Field

from conspectus.errors import InvalidInput
from conspectus.mcp.arguments import (
    ArgumentModel,
    Instant,
    Name,
    ScopedArguments,
)
from conspectus.mcp.tool import ToolCall, json_of, tool
from conspectus.memory.retention import COUNTED
from conspectus.model import parameters
from conspectus.model.graph import (
    Fact,
)
from conspectus.model.memory import (
    GivenKind,
    MemoryChanges,
    MemoryReceipt,
    MemorySelection,
    NewMemory,
)
from conspectus.operations.declared import declared, facts_of
from conspectus.text.times import parse_instant

MAX_BATCH = 50
MAX_LENGTH = 100_000
"""Most characters of a memory that a model writes."""


class FactPart(ArgumentModel):
    """The fact that a memory states, as an edge of the graph."""

    subject: Annotated[str, declared(Fact, "subject")]
    predicate: Annotated[str, declared(Fact, "predicate")]
    object: Annotated[str, declared(Fact, "object")]
    single: Annotated[bool, declared(Fact, "single")] = True


class MemoryPart(ArgumentModel):
    """A memory to store."""

    text: Annotated[str, declared(NewMemory, "text", min_length=1, max_length=MAX_LENGTH)]
    kind: Annotated[GivenKind, declared(NewMemory, "kind")] = "turn"
    role: Annotated[str | None, declared(NewMemory, "role")] = None
    speaker: Annotated[str | None, declared(NewMemory, "speaker")] = None
    at: Annotated[Instant | None, declared(NewMemory, "at")] = None
    key: Annotated[str | None, declared(NewMemory, "key")] = None
    pinned: Annotated[bool, declared(NewMemory, "pinned")] = False
    fact: Annotated[FactPart | None, declared(NewMemory, "fact")] = None
    valid_from: Annotated[Instant | None, declared(NewMemory, "valid_from")] = None
    valid_until: Annotated[Instant | None, declared(NewMemory, "valid_until")] = None
    entities: Annotated[list[Name], declared(NewMemory, "entities")] = Field(default_factory=list)

    def memory(self) -> NewMemory:
        """Return the memory to add."""
        fields = self.model_dump(exclude={"fact", "entities"})
        entities = tuple(self.entities)
        return NewMemory(**fields, fact=fact_of(self.fact), entities=entities)


class RememberArguments(ScopedArguments):
    """The arguments of remember."""

    memories: list[MemoryPart] = Field(min_length=1, max_length=MAX_BATCH, description="In order of time.")


class UpdateArguments(ScopedArguments):
    """The arguments of update_memory."""

    memory: Annotated[str, Field(**facts_of(parameters.MemoryIdentifier))]
    text: Annotated[str | None, declared(MemoryChanges, "text", min_length=1, max_length=MAX_LENGTH)] = None
    kind: Annotated[GivenKind | None, declared(MemoryChanges, "kind")] = None
    pinned: Annotated[bool | None, declared(MemoryChanges, "pinned")] = None
    fact: Annotated[FactPart | None, declared(MemoryChanges, "fact")] = None
    valid_from: Annotated[Instant | None, declared(MemoryChanges, "valid_from")] = None
    valid_until: Annotated[Instant | None, declared(MemoryChanges, "valid_until")] = None

    def changes(self) -> dict[str, Any]:
        """Return the changed fields. Raises InvalidInput if there are none."""
        names = ("text", "kind", "pinned", "valid_from", "valid_until")
        changes: dict[str, Any] = {
            name: getattr(self, name) for name in names if getattr(self, name) is not None
        }
        if self.fact is not None:
            changes["fact"] = fact_of(self.fact)
        if not changes:
            raise InvalidInput("text", "give at least one thing to change")
        return changes


class ForgetArguments(ScopedArguments):
    """The arguments of forget: one of ids, before, older_than_days and everything."""

    ids: Annotated[list[Name], declared(MemorySelection, "ids")] = Field(default_factory=list)
    before: Annotated[Instant | None, declared(MemorySelection, "before")] = None
    older_than_days: Annotated[float | None, declared(MemorySelection, "older_than_days")] = None
    everything: Annotated[bool, declared(MemorySelection, "everything")] = False
    pinned: Annotated[bool, declared(MemorySelection, "pinned")] = False
    confirm: bool = Field(False, description="Delete; false: only count.")

    def selection(self) -> MemorySelection:
        """Return the selection of memories to delete."""
        before = None if self.before is None else parse_instant(self.before)
        return MemorySelection(tuple(self.ids), before, self.older_than_days, self.everything, self.pinned)


@tool("adds")
async def remember(call: ToolCall, arguments: RememberArguments) -> str:
    """Store memories verbatim for later conversations: turns, facts, preferences. One memory for each
    thing.
    """
    scope = arguments.scope(call.options.scope)
    stored = await call.engine.memory.add([memory.memory() for memory in arguments.memories], scope=scope)
    return call.data("memories", stored, stored=len(stored))


@tool("changes")
async def update_memory(call: ToolCall, arguments: UpdateArguments) -> str:
    """Correct a memory; it keeps its id and its earlier versions. To record a change, remember it."""
    scope = arguments.scope(call.options.scope)
    written = await call.engine.memory.update(arguments.memory, scope=scope, **arguments.changes())
    return json_of(written)


@tool("deletes")
async def forget(call: ToolCall, arguments: ForgetArguments) -> str:
    """Delete memories permanently with confirm=true; without it, count them. Give exactly one of ids,
    before, older_than_days and everything.
    """
    scope = arguments.scope(call.options.scope)
    dry_run = not arguments.confirm
    forgetting = call.engine.memory.forget(arguments.selection(), scope=scope, dry_run=dry_run)
    receipt = await call.answer_or(forgetting, MemoryReceipt(0, dry_run=dry_run))
    counts = {name: getattr(receipt, name) for name in COUNTED}
    following = {"next": "call again with confirm=true"} if dry_run and receipt.memories else {}
    return call.data("ids", receipt.ids, dry_run=dry_run, **counts, **following)


def fact_of(part: FactPart | None) -> Fact | None:
    """Return the fact of a memory."""
    return None if part is None else Fact(part.subject, part.predicate, part.object, part.single)
