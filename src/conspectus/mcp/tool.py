"""What a tool is: its name, schema and arguments, the token budget of its result, and the lines of that."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Generic, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import to_jsonable_python

from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.memory.scopes import GRAPHS, MEMORIES, checked, holds, scope_of
from conspectus.model.graph import EdgeStep, Neighbor, Node
from conspectus.model.jobs import Job
from conspectus.model.memory import MEMORY, Memory, MemoryHit, Scope
from conspectus.model.records import Document, Source
from conspectus.model.results import Citation, Hit, TraceEntry
from conspectus.model.trust import MinTrust, level_mark
from conspectus.ports import CountTokens
from conspectus.text.clean import last_border, on_one_line
from conspectus.window.render import renderer_by_name

PATH = "/mcp"
"""The path of the HTTP endpoint."""
NAME = 500
IDENTIFIER = 200
QUESTION = 10_000
INSTANT = 100

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=IDENTIFIER)]
Question = Annotated[str, StringConstraints(min_length=1, max_length=QUESTION)]
Instant = Annotated[str, StringConstraints(min_length=1, max_length=INSTANT)]
ISO = "ISO 8601"
MinConfidence = Annotated[float, Field(ge=0.0, le=1.0, description="Minimum probability of an answer.")]
MinTrustArgument = Annotated[MinTrust | None, Field(description="Minimum trust.")]


class ArgumentModel(BaseModel):
    """A part of the arguments of a tool: no unknown names, no conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Arguments(ArgumentModel):
    """The arguments of a tool."""

    max_tokens: int | None = Field(None, description="Token limit of the result.")


class ScopedArguments(Arguments):
    """The arguments of a tool that works on memories; what the server fixes is not offered."""

    user: Name | None = Field(None, description="Memory scope; none: memories of no user.")
    agent: Name | None = Field(None, description="Memory scope; none: any agent.")
    conversation: Name | None = Field(None, description="Memory scope; none: any conversation.")

    def scope(self, fixed: Scope) -> Scope:
        """The memory scope of the call, where the server may fix some of it."""
        return Scope(
            fixed.user or self.user, fixed.agent or self.agent, fixed.conversation or self.conversation
        )


def fixed_names(fixed: Scope) -> frozenset[str]:
    """The arguments that the server fixes."""
    return frozenset(name for name in ("user", "agent", "conversation") if getattr(fixed, name) is not None)


TACIT = [("minLength", 1), ("default", []), ("default", False), ("additionalProperties", True)]
TACIT += [("maxLength", each) for each in (NAME, IDENTIFIER, INSTANT, QUESTION)]


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model in few tokens: no references, null alternatives, titles or usual bounds."""
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
        name: {key: _simple(one, known) for key, one in each.items()}
        if name == "properties"
        else _simple(each, known)
        for name, each in schema.items()
        if name not in {"$defs", "title"} and (name, each) not in TACIT
    }


MIN_TOKENS = 200
"""The smallest token limit of a result: the size of a receipt or an error."""
MARK = " […]"
MAX_TOKEN_LENGTH = 16
"""At most this number of characters for each token is examined."""
WORTH_CUTTING = 24


def left_out(number: int) -> str:
    """The line that stands for items that did not fit."""
    return f"[{number} more left out: raise max_tokens, or ask for less]"


@dataclass(frozen=True, slots=True)
class ToolBudget:
    """A token limit with its tokenizer."""

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
    """Items between a head and a foot.

    With `upwards` the first item stands last, as the newest of a conversation does.
    """

    items: Sequence[str]
    head: str = ""
    foot: str = ""
    between: str = "\n\n"
    rest: Callable[[int], str] = left_out
    upwards: bool = False

    def shown(self, items: Sequence[str]) -> str:
        """The page with only these items."""
        missing = len(self.items) - len(items)
        told = [self.rest(missing)] if missing else []
        inner = [*told, *reversed(items)] if self.upwards else [*items, *told]
        return self.between.join(filter(None, (self.head, *inner, self.foot)))


def filled(page: ResultPage, room: ToolBudget) -> tuple[str, int]:
    """The page with as many of its first items as fit, and their number; a single item may be cut."""
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
"""Slashes in the name of a graph of memories: before user, agent and conversation. Other names have one."""

Effect = Literal["reads", "adds", "changes", "deletes"]
A = TypeVar("A", bound=Arguments)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Options of a server that hold for every call.

    A result has at most `max_tokens`, counted with `tokenizer`. No call can change the names in `scope`.
    `operations` are offered beside those that every server offers.
    """

    max_tokens: int
    scope: Scope = field(default_factory=Scope)
    tokenizer: str = "o200k_base"
    operations: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise InvalidInput for options that no server can run with."""
        checked(self.scope)
        if self.max_tokens < MIN_TOKENS:
            raise InvalidInput("mcp_max_tokens", f"must be at least {MIN_TOKENS}, the size of a receipt")


def listed_names(setting: str) -> frozenset[str]:
    """Return the names of a setting that separates them by commas."""
    return frozenset(name.strip() for name in setting.split(",") if name.strip())


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: the engine of its caller, the options of the server, and the token budget of the result."""

    engine: AnyEngine
    options: ToolOptions
    room: ToolBudget
    view: dict[str, Any] = field(default_factory=dict)
    """What an MCP App shows beside the text; no model reads it."""
    jobs: list[Job] = field(default_factory=list)
    """The jobs that the call has started."""

    def page(self, page: ResultPage) -> str:
        """As many items as fit."""
        return filled(page, self.room)[0]

    def data(self, name: str, items: Sequence[Any], /, **facts: Any) -> str:
        """Facts and as many items as fit, as JSON; `left_out` is the number of the others."""
        told, rows = _filled_members(to_jsonable_python(facts)), _filled_members(to_jsonable_python(items))
        for number in _fewer(len(items)):
            left = {"left_out": len(items) - number} if number < len(items) else {}
            text = _compact({**told, name: rows[:number], **left})
            if number == 0 or self.room.holds(text):
                break
        return self.room.cut(text)

    def is_inside(self, source: Source) -> bool:
        """Whether a source has no memories, and no graph of some, outside of what the server fixes."""
        is_fixed = self.has_fixed_scope and is_of_memory(source)
        return not is_fixed or _fits(self.options.scope, scope_of(source.name))

    def require_inside(self, source: Source, *, name: str) -> None:
        """Raise NotFound for a source outside of what the server fixes, by the name that was given."""
        if not self.is_inside(source):
            raise NotFound("source", name)

    async def remembered(self, work: Awaitable[T], nothing: T) -> T:
        """The answer of a memory operation, or `nothing` where no memory was ever stored."""
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

    def made(run: Callable[[ToolCall, A], Awaitable[str]]) -> ToolSpec[A]:
        description = " ".join((run.__doc__ or "").split())
        arguments: type[A] = get_type_hints(run)["given"]
        return ToolSpec(run.__name__, description, arguments, run, effect)

    return made


def is_of_memory(source: Source) -> bool:
    """Whether a source holds memories, or is the graph of some."""
    return source.kind == MEMORIES or (source.kind == GRAPHS and source.name.count("/") == PARTS)


def json_of(value: Any) -> str:
    """Compact JSON of any value of the model, without empty members of objects."""
    return _compact(_filled_members(to_jsonable_python(value)))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _filled_members(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled_members(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _filled_members(each) for name, each in value.items() if each not in (None, [], {}, "")}


def _fits(fixed: Scope, memory_scope: Scope) -> bool:
    """Whether memories of a scope are inside of what is fixed; where no user is, they may be of any."""
    user = memory_scope.user if fixed.user is None else fixed.user
    return holds(Scope(user, fixed.agent, fixed.conversation), memory_scope)


def _fewer(number: int) -> list[int]:
    """That number, and numbers below it down to none."""
    tried = [number]
    while tried[-1] > 0:
        tried.append(min(tried[-1] - 1, tried[-1] * 7 // 8))
    return tried


MAX_NAME_LENGTH = 200
MAX_NOTICE_LENGTH = 300
MAX_NOTICES = 3


def content(text: str) -> str:
    """A text that cannot be mistaken for a line of the tool."""
    return renderer_by_name("text").show(text)


def short(text: str) -> str:
    """A name on one line, shortened if it is long."""
    line = on_one_line(text)
    return line if len(line) <= MAX_NAME_LENGTH else line[: MAX_NAME_LENGTH - 1] + "…"


def instant(at: datetime) -> str:
    """A time in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def notices(told: Iterable[str]) -> str:
    """The notices of a result, a line each."""
    return "\n".join(f"Note: {on_one_line(each)[:MAX_NOTICE_LENGTH]}" for each in list(told)[:MAX_NOTICES])


def named(document: Document) -> str:
    """The name that a document is shown with."""
    return short(document.title or (document.kind if document.kind == "memory" else document.location))


def hit_lines(number: int, hit: Hit) -> str:
    """A passage with its citation and its text."""
    chunk, document = hit.chunk, hit.document
    said = [named(document)]
    said += [f"p. {chunk.page}"] if chunk.page is not None else []
    said += [short(chunk.heading)] if chunk.heading else []
    said += [instant(document.occurred.start)] if document.occurred is not None else []
    said += [short(document.author)] if document.author else []
    place = f"document {document.id}, characters {chunk.start} to {chunk.end} of {document.characters}"
    mark = level_mark(document.trust)
    lines = [f"[{number}]{mark} {', '.join(said)} ({place}; score {hit.score:.3g})"]
    lines += [f"found through {way(hit.through)}"] if hit.through else []
    return "\n".join((*lines, content(chunk.text)))


def way(names: Iterable[str]) -> str:
    """A path of entity names."""
    return " → ".join(short(each) for each in names)


def sources(citations: Iterable[Citation]) -> list[str]:
    """For each document of a window the numbers of its passages and its id."""
    numbers: dict[str, list[str]] = {}
    for each in citations:
        numbers.setdefault(each.document, []).append(f"[{each.number}]")
    return [f"{''.join(passages)} document {document}" for document, passages in numbers.items()]


def trace_line(entry: TraceEntry) -> str:
    """A candidate: its status with the reason, and its score with the parts."""
    why = on_one_line(entry.reason) or entry.status
    fate = why if why.startswith(entry.status) else f"{entry.status}: {why}"
    where = f"document {entry.document}, chunk {entry.chunk}, {entry.tokens} tokens"
    score = f"score {entry.score:.3g}{summed(entry.parts)}"
    return f"{entry.rank}. {fate} —{level_mark(entry.trust)} {short(entry.title)} ({where}; {score})"


def summed(parts: Mapping[str, float]) -> str:
    """The parts of a score."""
    told = " + ".join(f"{name} {part:.3g}" for name, part in parts.items())
    return f" = {told}" if told else ""


def memory_lines(memory: Memory, about: Iterable[str] = ()) -> str:
    """A memory with its id, time and speaker, and further facts about it."""
    document = memory.document
    said = document.occurred.start if document.occurred is not None else memory.known_from
    who = " ".join(short(each) for each in (document.role, document.author) if each)
    told = [*_facts(memory), *about]
    head = " ".join(filter(None, (f"[{memory.id}]{level_mark(document.trust)}", instant(said), who)))
    known = f" ({'; '.join(told)})" if told else ""
    return f"{head}{known}: {content(memory.text)}"


def recalled_lines(recalled: MemoryHit) -> str:
    """A memory that was found, with the reasons."""
    through = [f"found through {way(recalled.through)}"] if recalled.through else []
    why = [on_one_line(each)[:MAX_NOTICE_LENGTH] for each in recalled.why]
    return memory_lines(recalled.memory, (f"score {recalled.score:.3g}", *through, *why))


def node_line(node: Node, score: float | None = None) -> str:
    """A node of a graph."""
    told = [short(node.type)]
    told += [f"also {', '.join(short(each) for each in node.aliases[:5])}"] if node.aliases else []
    told += _times(node.valid_from, node.valid_until)
    told += [f"score {score:.3g}"] if score is not None else []
    name = "" if node.name == node.id else f" “{short(node.name)}”"
    return f"{short(node.id)}{name}{level_mark(node.trust)} ({'; '.join(told)})"


def neighbor_line(neighbor: Neighbor) -> str:
    """A neighbor with the path to it."""
    steps = ", ".join(map(_step, neighbor.steps))
    return f"hop {neighbor.hop}, decay {neighbor.decay:.3g}: {node_line(neighbor.node)} by {steps}"


def _step(step: EdgeStep) -> str:
    source, target = short(step.source), short(step.target)
    mark = level_mark(step.trust)
    if step.backwards:
        return f"{source} ←{short(step.type)}— {target}{mark}"
    return f"{source} —{short(step.type)}→ {target}{mark}"


def _facts(memory: Memory) -> list[str]:
    told: list[str] = [] if memory.kind == "turn" else [memory.kind]
    told += [f"from {memory.cites.memory}"] if memory.cites is not None else []
    told += ["pinned"] if memory.pinned else []
    told += _times(memory.valid_from, memory.valid_until)
    told += [f"ended by {memory.closed_by}"] if memory.closed_by else []
    told += [f"replaced {instant(memory.known_until)}"] if memory.known_until else []
    return told


def _times(start: datetime | None, end: datetime | None) -> list[str]:
    told = [f"true from {instant(start)}"] if start else []
    return told + ([f"true until {instant(end)}"] if end else [])
