"""What a tool is: its name, arguments, function and effect, and one call of it."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Any, Generic, Literal, TypeVar, get_type_hints

from pydantic_core import to_jsonable_python

from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.mcp.arguments import Arguments, fixed_names
from conspectus.mcp.token_budget import MIN_TOKENS, ResultPage, ToolBudget, fill_page
from conspectus.memory.scopes import GRAPHS, MEMORIES, check_scope, includes_scope, scope_of
from conspectus.model.jobs import Job
from conspectus.model.memory import MEMORY, Scope
from conspectus.model.query import Budget
from conspectus.model.records import Source

HTTP_PATH = "/mcp"
"""The path of the HTTP endpoint."""
SEARCH_PATH = "/mcp/search"
"""The path of the HTTP endpoint with the tools search and fetch alone, as some clients expect them."""
HTTP_PATHS = frozenset({HTTP_PATH, SEARCH_PATH})
"""The paths of all HTTP endpoints."""
NAME_TOKENS_DIVISOR = 6
"""A budget divided by this is left for the names of documents, at most MAX_NAME_TOKENS."""
MAX_NAME_TOKENS = 400
MEMORY_GRAPH_SLASHES = 3
"""Slashes in the name of a graph of memories: before user, agent and conversation. Other names have one."""
Toolset = Literal["all", "search_and_fetch"]
Effect = Literal["reads", "adds", "changes", "deletes"]
A = TypeVar("A", bound=Arguments)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Options of a server that hold for every call.

    A result has at most `max_tokens`, counted with `tokenizer`. No call can change the names in `scope`.
    `operations` are offered beside those that every server offers. With the toolset `search_and_fetch` there
    are these two tools only, whose links begin with the `address` of the server.
    """

    max_tokens: int
    scope: Scope = field(default_factory=Scope)
    tokenizer: str = "o200k_base"
    operations: frozenset[str] = frozenset()
    toolset: Toolset = "all"
    address: str = ""

    def __post_init__(self) -> None:
        """Raise InvalidInput for options that no server can run with."""
        check_scope(self.scope)
        if self.max_tokens < MIN_TOKENS:
            raise InvalidInput("mcp_max_tokens", f"must be at least {MIN_TOKENS}, the size of a receipt")


def split_names(setting: str) -> frozenset[str]:
    """Return the names of a setting that separates them by commas."""
    return frozenset(name.strip() for name in setting.split(",") if name.strip())


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: the engine of its caller, the options of the server, and the token budget of the result."""

    engine: AnyEngine
    options: ToolOptions
    budget: ToolBudget
    view: dict[str, Any] = field(default_factory=dict)
    """What an MCP App shows beside the text; no model reads it."""
    jobs: list[Job] = field(default_factory=list)
    """The jobs that the call has started."""

    def text_budget(self) -> Budget:
        """Return the budget of the text, which leaves tokens for the names of its documents."""
        name_tokens = min(self.budget.tokens // NAME_TOKENS_DIVISOR, MAX_NAME_TOKENS)
        return Budget(self.budget.tokens - name_tokens, self.options.tokenizer)

    def page(self, page: ResultPage) -> str:
        """Return the text of a page with as many items as fit."""
        return fill_page(page, self.budget)[0]

    def data(self, name: str, items: Sequence[Any], /, **facts: Any) -> str:
        """Return facts and as many items as fit, as JSON; `left_out` is the number of the others."""
        members = _drop_empty_members(to_jsonable_python(facts))
        rows = _drop_empty_members(to_jsonable_python(items))
        for number in _list_decreasing_counts(len(items)):
            left = {"left_out": len(items) - number} if number < len(items) else {}
            text = _compact({**members, name: rows[:number], **left})
            if number == 0 or self.budget.holds(text):
                break
        return self.budget.cut(text)

    def is_inside(self, source: Source) -> bool:
        """Return whether a source has no memories or graph of memories outside the fixed scope."""
        is_fixed = self.has_fixed_scope and is_of_memory(source)
        return not is_fixed or _fits(self.options.scope, scope_of(source.name))

    def require_inside(self, source: Source, *, name: str) -> None:
        """Raise NotFound for a source outside of what the server fixes, by the name that was given."""
        if not self.is_inside(source):
            raise NotFound("source", name)

    async def answer_or(self, work: Awaitable[T], nothing: T) -> T:
        """Return the answer of a memory operation, or `nothing` if no memory was ever stored."""
        try:
            return await work
        except NotFound as fault:
            if (fault.kind, fault.name) != ("collection", MEMORY):
                raise
            return nothing

    @property
    def has_fixed_scope(self) -> bool:
        """Whether the server fixes some of the memory scope."""
        return bool(fixed_names(self.options.scope))


@dataclass(frozen=True, slots=True)
class ToolSpec(Generic[A]):
    """A tool: its name, description, arguments, function and effect."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[ToolCall, A], Awaitable[str]]
    effect: Effect = "reads"


def tool(
    effect: Effect = "reads",
) -> Callable[[Callable[[ToolCall, A], Awaitable[str]]], ToolSpec[A]]:
    """Make a tool of the function that runs it, whose docstring is its description."""

    def make_spec(run: Callable[[ToolCall, A], Awaitable[str]]) -> ToolSpec[A]:
        description = " ".join((run.__doc__ or "").split())
        arguments: type[A] = get_type_hints(run)["arguments"]
        return ToolSpec(run.__name__, description, arguments, run, effect)

    return make_spec


def is_of_memory(source: Source) -> bool:
    """Return whether a source holds memories, or is the graph of some."""
    return source.kind == MEMORIES or (
        source.kind == GRAPHS and source.name.count("/") == MEMORY_GRAPH_SLASHES
    )


def json_of(value: Any) -> str:
    """Return compact JSON of any value of the model, without empty members of objects."""
    return _compact(_drop_empty_members(to_jsonable_python(value)))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _drop_empty_members(value: Any) -> Any:
    if isinstance(value, list):
        return [_drop_empty_members(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _drop_empty_members(member)
        for name, member in value.items()
        if member not in (None, [], {}, "")
    }


def _fits(fixed: Scope, memory_scope: Scope) -> bool:
    """Return whether memories of a scope are inside the fixed one; without a fixed user, of any user."""
    user = memory_scope.user if fixed.user is None else fixed.user
    return includes_scope(Scope(user, fixed.agent, fixed.conversation), memory_scope)


def _list_decreasing_counts(number: int) -> list[int]:
    """Return a number, and numbers below it down to 0."""
    tried = [number]
    while tried[-1] > 0:
        tried.append(min(tried[-1] - 1, tried[-1] * 7 // 8))
    return tried
