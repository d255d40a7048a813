"""Chats: requests, the tokens of their parts, and the events of an answer."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.checks import Checked
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.parameters import AskedQuery, StoredId, StoredKey, StoredSource, StoredText, StoredTitle
from conspectus.model.query import EVERYWHERE, QueryContext
from conspectus.model.results import Message
from conspectus.model.trust import MinTrust, Trust
from conspectus.model.validation import Validated

ContextForm = Literal["passages", "tasks"]
Looked = Literal["found", "no_match", "failed", "off"]


@dataclass(frozen=True, slots=True)
class Tool(Checked):
    """A tool that a model may call; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolCall(Checked):
    """A call of a tool that a model asks for; `arguments` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn(Message):
    """A message that calls tools, or with the role tool the result of the call that it `answers`."""

    calls: tuple[ToolCall, ...] = ()
    answers: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class CachedMessage(Message):
    """A message that a provider may cache up to each of these characters; they are where its context ends."""

    cached: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonForm(Checked):
    """An answer that is JSON, of a schema (None: any object)."""

    schema: Mapping[str, Any] | None = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class ModelOptions(Checked):
    """The tools that a model may call, whether it must, or `only` which, and the form of its answer."""

    tools: tuple[Tool, ...] = ()
    choice: Literal["auto", "none", "required"] = "auto"
    only: str | None = None
    form: JsonForm | None = None


@dataclass(frozen=True, slots=True)
class Allocation(Checked):
    """Tokens for each part of a prompt, and for the answer. 0 means none.

    `question` is reserved for the user's message; a longer message takes tokens from the history, then from
    the context, and is never cut. `history` is the limit of earlier turns.
    """

    system: int = 500
    context: int = 1_500
    question: int = 200
    answer: int = 800
    history: int = 2_000


@dataclass(frozen=True, slots=True)
class ChatRequest(Validated):
    """A message to a chat model, with earlier turns, oldest first (roles user and assistant).

    `use_context` says whether context is retrieved, and `format` is its format (None: as in the settings);
    `instructions` replace the default ones. `collection`, `filter`, `min_similarity`, `min_confidence`,
    `query_context` and `min_trust` are those of Query. `store_in` is a channel of the collection (for `*`, of
    the default collection), in which message and answer are stored when the answer is complete. `since` are
    the tool calls after the message with their results; the last one is to be answered. Messages of one
    `session`, an id of a conversation, begin with the same context for as long as it is allowed, and new
    passages follow.
    """

    message: str
    history: tuple[Message, ...] = ()
    collection: str = EVERYWHERE
    filter: Filter = EVERYTHING
    use_context: bool | None = None
    instructions: str | None = None
    allocation: Allocation = field(default_factory=Allocation)
    min_similarity: float | None = 0.25
    min_confidence: float = 0.0
    query_context: QueryContext | None = None
    format: ContextForm | None = None
    temperature: float | None = None
    store_in: str | None = None
    since: tuple[Turn, ...] = ()
    options: ModelOptions = field(default_factory=ModelOptions)
    session: str | None = None
    min_trust: MinTrust | None = None


@dataclass(frozen=True, slots=True)
class ChatSource:
    """A numbered part of the context that the model was given: characters [start, end) of a document.

    `snippet` is its beginning, at most 200 characters. `location` is the path that a page of a connection
    has now; of other documents it is the key.
    """

    number: int
    document: StoredId
    source: StoredSource
    key: StoredKey
    title: StoredTitle
    start: int
    end: int
    snippet: StoredText
    page: int | None = None
    heading: StoredTitle | None = None
    location: Annotated[str, Example("p. 3")] = ""
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class Sources:
    """The first event: the query, and the context that the model is given.

    `question` is the rewritten query; `notice` says why retrieval failed, if `outcome` is failed, or what the
    context does not cover. Of the context, the first `stable_tokens` are those of the last message of the
    session.
    """

    outcome: Looked
    sources: tuple[ChatSource, ...] = ()
    question: AskedQuery = ""
    tokens: int = 0
    notice: str | None = None
    stable_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Citations:
    """What the answer cites: sources that it was given, and `unknown` numbers that it was not given."""

    cited: tuple[ChatSource, ...]
    unknown: tuple[str, ...] = ()


FinishReason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model reports them, or our count (`exact` is False) if it does not.

    `finish` is why the model ended its answer, if it said so.
    """

    input: int
    output: int
    exact: bool = True
    finish: FinishReason | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that ended an answer: a stable code and a message without internals."""

    code: str
    message: AskedQuery


ChatEvent: TypeAlias = Sources | Delta | ToolCall | Citations | Usage | Failure
"""In this order: Sources, any number of Delta, of ToolCall, Citations, Usage; a Failure is the last."""
