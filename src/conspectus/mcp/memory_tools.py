"""Tools that write memories: remember, update_memory and forget."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from conspectus.errors import InvalidInput
from conspectus.mcp.arguments import (
    INSTANT_FORMAT,
    ArgumentModel,
    Identifier,
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
    MemoryReceipt,
    MemorySelection,
    NewMemory,
)
from conspectus.operations.declared import bounded
from conspectus.text.times import parse_instant

MAX_BATCH = 50
MAX_IDS = 200
MAX_LENGTH = 100_000
MAX_ENTITIES = 50
LongText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LENGTH)]


class FactPart(ArgumentModel):
    """The fact that a memory states, as an edge of the graph."""

    subject: Name
    predicate: Name
    object: Name
    single: bool = Field(True, description="A newer object ends this one.")


class MemoryPart(ArgumentModel):
    """A memory to store."""

    text: LongText = Field(description="Verbatim, self-contained.")
    kind: GivenKind = Field(
        "turn",
        description="note: a persistent preference or instruction.",
    )
    role: Name | None = Field(None, description="user, assistant.")
    speaker: Name | None = Field(None, description="Name of the speaker.")
    at: Instant | None = Field(None, description=f"{INSTANT_FORMAT}; none: now.")
    key: Name | None = Field(None, description="Your id; the same key replaces the memory.")
    pinned: bool = Field(False, description="Excluded from retention.")
    fact: FactPart | None = Field(None, description="The fact it states.")
    valid_from: Instant | None = Field(None, description="Start of the fact.")
    valid_until: Instant | None = Field(None, description="End of the fact.")
    entities: list[Name] = Field(
        default_factory=list,
        max_length=MAX_ENTITIES,
        description="Names it mentions.",
    )

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

    memory: Identifier = Field(description="Id of the memory.")
    text: LongText | None = Field(None, description="The whole new text.")
    kind: GivenKind | None = Field(None, description="turn or note.")
    pinned: bool | None = Field(None, description="Excluded from retention.")
    fact: FactPart | None = Field(None, description="The fact it states.")
    valid_from: Instant | None = Field(None, description="Start of the fact.")
    valid_until: Instant | None = Field(None, description="End of the fact.")

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

    ids: list[Identifier] = Field(
        default_factory=list, max_length=MAX_IDS, description="Ids of the memories to delete."
    )
    before: Instant | None = Field(
        None, description=f"Delete memories from before this time ({INSTANT_FORMAT})."
    )
    older_than_days: Annotated[
        float | None, bounded(parameters.KeptDays, "Delete memories older than this number of days.")
    ] = None
    everything: bool = Field(False, description="Delete all memories of the scope.")
    pinned: bool = Field(False, description="Also delete pinned memories.")
    confirm: bool = Field(False, description="Delete; false: only count.")

    def selection(self) -> MemorySelection:
        """Return the selection of memories to delete."""
        before = None if self.before is None else parse_instant(self.before)
        return MemorySelection(tuple(self.ids), before, self.older_than_days, self.everything, self.pinned)


@tool("adds")
async def remember(call: ToolCall, arguments: RememberArguments) -> str:
    """Store memories for later conversations: turns, facts, preferences. One memory for each thing."""
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
    receipt = await call.remembered(forgetting, MemoryReceipt(0, dry_run=dry_run))
    counts = {name: getattr(receipt, name) for name in COUNTED}
    following = {"next": "call again with confirm=true"} if dry_run and receipt.memories else {}
    return call.data("ids", receipt.ids, dry_run=dry_run, **counts, **following)


def fact_of(part: FactPart | None) -> Fact | None:
    """Return the fact of a memory."""
    return None if part is None else Fact(part.subject, part.predicate, part.object, part.single)
