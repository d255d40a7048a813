"""What a tool is: its name and schema, its arguments, and the tokens that an answer may have."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Generic, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.memory.scopes import GRAPHS, MEMORIES, checked, holds, scope_of
from conspectus.model.memory import MEMORY, Scope
from conspectus.model.records import Source
from conspectus.ports import CountTokens
from conspectus.text.clean import last_border

PATH = "/mcp"
"""Where a server answers messages over HTTP."""
NAME = 500
IDENTIFIER = 200
QUESTION = 10_000
INSTANT = 100

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=IDENTIFIER)]
Question = Annotated[str, StringConstraints(min_length=1, max_length=QUESTION)]
Instant = Annotated[str, StringConstraints(min_length=1, max_length=INSTANT)]
ISO = "ISO 8601, with a zone"
MinConfidence = Annotated[float, Field(ge=0.0, le=1.0, description="Least probability of an answer.")]


class ArgumentModel(BaseModel):
    """A part of the arguments of a tool: no unknown names, and values of the type that the schema names."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Arguments(ArgumentModel):
    """The arguments of a tool."""

    max_tokens: int | None = Field(
        None,
        description="Most tokens of the result.",
    )


class ScopedArguments(Arguments):
    """The arguments of a tool that works on memories; what the server fixes is not offered."""

    user: Name | None = Field(None, description="Whose memories; left out: those of no user.")
    agent: Name | None = Field(None, description="Of which agent; left out: any, in writes none.")
    conversation: Name | None = Field(
        None, description="Of which conversation; left out: any, in writes none."
    )

    def scope(self, fixed: Scope) -> Scope:
        """Whose memories are meant, where the server fixes some of it."""
        return Scope(
            fixed.user or self.user, fixed.agent or self.agent, fixed.conversation or self.conversation
        )


def fixed_names(fixed: Scope) -> frozenset[str]:
    """The arguments that no call can give."""
    return frozenset(name for name in ("user", "agent", "conversation") if getattr(fixed, name) is not None)


TACIT = [("minLength", 1), ("default", []), ("default", False)]
TACIT += [("maxLength", each) for each in (NAME, IDENTIFIER, INSTANT)]


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model for clients that pay for it by the token.

    It has no references, no alternatives of null, no titles, and no bounds that everybody expects.
    """
    whole = model.model_json_schema()
    simple: dict[str, Any] = _simple(whole, whole.get("$defs", {}))
    return {name: each for name, each in simple.items() if name != "description"}


def _simple(schema: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_simple(each, known) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = known[schema["$ref"].rsplit("/", 1)[-1]]
        schema = {**named, **{name: each for name, each in schema.items() if name != "$ref"}}
    options = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(options) == 1:
        rest = {name: each for name, each in schema.items() if name not in {"anyOf", "default"}}
        return _simple({**options[0], **rest}, known)
    return {
        name: _properties(each, known) if name == "properties" else _simple(each, known)
        for name, each in schema.items()
        if name not in {"$defs", "title"} and (name, each) not in TACIT
    }


def _properties(properties: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _simple(each, known) for name, each in properties.items()}


MIN_TOKENS = 200
"""The fewest tokens that a result may be allowed: what a receipt or an error takes."""
MARK = " […]"
MAX_TOKEN_LENGTH = 16
"""No more characters than so many for each token are looked at."""
WORTH_CUTTING = 24


def left_out(number: int) -> str:
    """The line that stands for items that did not fit."""
    return f"[{number} more left out: raise max_tokens, or ask for less]"


@dataclass(frozen=True, slots=True)
class ToolBudget:
    """So many tokens, and who counts them."""

    tokens: int
    count: CountTokens

    def holds(self, text: str) -> bool:
        """Whether a text is within it."""
        return len(text) <= self.tokens * MAX_TOKEN_LENGTH and self.count(text) <= self.tokens

    def cut(self, text: str) -> str:
        """The text, or as much of its beginning as fits together with a mark."""
        if self.holds(text):
            return text
        low, high = 0, min(len(text), self.tokens * MAX_TOKEN_LENGTH - len(MARK))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.holds(_marked(text, middle)) else (low, middle - 1)
        end = last_border(text, low)
        while end > 0 and not self.holds(_marked(text, end)):
            end = last_border(text, end - 1)
        return _marked(text, end)


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Items between what stands above and below them.

    With `upwards` the first item stands last, as the newest of a conversation does.
    """

    items: Sequence[str]
    head: str = ""
    foot: str = ""
    between: str = "\n\n"
    rest: Callable[[int], str] = left_out
    upwards: bool = False

    def shown(self, items: Sequence[str]) -> str:
        """The whole with only these items."""
        missing = len(self.items) - len(items)
        told = [self.rest(missing)] if missing else []
        inner = [*told, *reversed(items)] if self.upwards else [*items, *told]
        return self.between.join(filter(None, (self.head, *inner, self.foot)))


def filled(page: ResultPage, room: ToolBudget) -> tuple[str, int]:
    """The page with as many of its first items as fit, and how many those are; one alone may be cut."""
    low, high = 0, len(page.items)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if room.holds(page.shown(page.items[:middle])) else (low, middle - 1)
    if low or not page.items:
        return room.cut(page.shown(page.items[:low])), low
    spare = room.tokens - room.count(page.shown([""]))
    while spare >= WORTH_CUTTING:
        first = page.shown([ToolBudget(spare, room.count).cut(page.items[0])])
        if room.holds(first):
            return first, 1
        spare -= WORTH_CUTTING // 2
    return room.cut(page.shown([])), 0


def _marked(text: str, end: int) -> str:
    return text[:end].rstrip() + MARK


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
        if self.most_tokens < MIN_TOKENS:
            raise InvalidInput("mcp_max_tokens", f"must be at least {MIN_TOKENS}, the size of a receipt")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back: text, and data where it has an output schema."""

    text: str
    data: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: the engine of its caller, the options of the server, and the token budget of the result."""

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
        if (
            self.has_fixed_scope
            and is_of_memory(source)
            and not _fits(self.options.scope, scope_of(source.name))
        ):
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
    def has_fixed_scope(self) -> bool:
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


def tool(
    title: str, *, effect: Effect = "reads", gives: type[BaseModel] | None = None, repeatable: bool = True
) -> Callable[[Callable[[ToolCall, A], Awaitable[ToolResult]]], ToolSpec[A]]:
    """Make a tool of the function that runs it, whose docstring is what the tool says of itself."""

    def made(run: Callable[[ToolCall, A], Awaitable[ToolResult]]) -> ToolSpec[A]:
        description = " ".join((run.__doc__ or "").split())
        arguments: type[A] = get_type_hints(run)["given"]
        return ToolSpec(run.__name__, title, description, arguments, run, effect, gives, repeatable)

    return made


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
