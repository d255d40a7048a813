"""A tool as it is offered, and what one call of it has to work with."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.mcp.arguments import Arguments, fixed_names
from conspectus.mcp.budget import LEAST, ResultPage, ToolBudget, filled
from conspectus.memory.scopes import GRAPHS, MEMORIES, checked, holds, scope_of
from conspectus.model.memory import MEMORY, Scope
from conspectus.model.records import Source

PARTS = 3
"""Between so many slashes stand user, agent and conversation; plain graphs have names with one."""

Effect = Literal["reads", "adds", "changes", "deletes"]
A = TypeVar("A", bound=Arguments)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What a server fixes for all who call it.

    A result costs at most `most_tokens`, counted as `tokenizer` does. The names in `scope` are those that no
    call can change.
    """

    most_tokens: int
    scope: Scope = field(default_factory=Scope)
    tokenizer: str = "o200k_base"

    def __post_init__(self) -> None:
        """Raise InvalidInput for what no server can be run with."""
        checked(self.scope)
        if self.most_tokens < LEAST:
            raise InvalidInput("mcp_max_tokens", f"must be at least {LEAST}, which is what a receipt takes")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back: text, and data where it has an output schema."""

    text: str
    data: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: the engine of whoever makes it, what the server fixes, and the room for the result."""

    engine: AnyEngine
    options: ToolOptions
    room: ToolBudget

    def page(self, page: ResultPage) -> ToolResult:
        """As many items as there is room for."""
        return ToolResult(filled(page, self.room)[0])

    def data(self, items: Sequence[Any], made: Callable[[Sequence[Any], int], BaseModel]) -> ToolResult:
        """As many items as there is room for twice, as text and as data, and how many are left out."""
        for number in _fewer(len(items)):
            data = made(items[:number], len(items) - number).model_dump(mode="json", exclude_none=True)
            text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
            if number == 0 or 2 * self.room.count(text) <= self.room.tokens:
                break
        return ToolResult(text, data)

    def require_inside(self, source: Source) -> None:
        """Raise NotFound for memories, and graphs of memories, outside of what the server fixes."""
        if self.walled and is_of_memory(source) and not _fits(self.options.scope, scope_of(source.name)):
            raise NotFound("source", source.name)

    async def remembered(self, work: Awaitable[T], nothing: T) -> T:
        """What is asked of memory, or `nothing` where nothing was ever remembered."""
        try:
            return await work
        except NotFound as fault:
            if (fault.kind, fault.name) != ("collection", MEMORY):
                raise
            return nothing

    @property
    def walled(self) -> bool:
        """Whether the server fixes whose memories it works on."""
        return bool(fixed_names(self.options.scope))


@dataclass(frozen=True, slots=True)
class ToolSpec(Generic[A]):
    """A tool: what it is called, what it says of itself, what it takes, gives and does."""

    name: str
    title: str
    description: str
    arguments: type[A]
    run: Callable[[ToolCall, A], Awaitable[ToolResult]]
    effect: Effect = "reads"
    gives: type[BaseModel] | None = None
    repeatable: bool = True


def is_of_memory(source: Source) -> bool:
    """Whether a source holds memories, or is the graph of some."""
    return source.kind == MEMORIES or (source.kind == GRAPHS and source.name.count("/") == PARTS)


def _fits(fixed: Scope, home: Scope) -> bool:
    """Whether memories of a scope are inside of what is fixed; where no user is, they may be of any."""
    user = home.user if fixed.user is None else fixed.user
    return holds(Scope(user, fixed.agent, fixed.conversation), home)


def _fewer(number: int) -> list[int]:
    """That number, and numbers below it down to none."""
    tried = [number]
    while tried[-1] > 0:
        tried.append(min(tried[-1] - 1, tried[-1] * 7 // 8))
    return tried
