"""Chats: requests, the tokens of their parts, and the events of an answer."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Final, Literal, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.checks import Checked
from conspectus.model.filter import EVERYTHING, DocumentFilter
from conspectus.model.parameters import (
    MAX_QUERY,
    AskedQuery,
    ChannelName,
    CollectionName,
    LowestTrust,
    MinConfidence,
    MinSimilarity,
    Name,
    StoredId,
    StoredKey,
    StoredSource,
    StoredText,
    StoredTitle,
    TokenLimit,
)
from conspectus.model.query import EVERYWHERE, QueryContext
from conspectus.model.records import ReadBy
from conspectus.model.results import Message
from conspectus.model.trust import Trust
from conspectus.model.validation import Validated

ContextForm = Literal["passages", "tasks"]
MAX_TURNS: Final = 10_000
"""Most earlier turns of a request."""
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

    system: Annotated[TokenLimit, "Tokens of the instructions."] = 500
    context: Annotated[int, Range(0, 100_000), "Tokens of the context."] = 1_500
    question: Annotated[TokenLimit, "Tokens reserved for the message."] = 200
    answer: Annotated[TokenLimit, "Most tokens of the answer."] = 800
    history: Annotated[TokenLimit, "Most tokens of earlier turns."] = 2_000


@dataclass(frozen=True, slots=True)
class ChatRequest(Validated):
    """A message to a chat model, with earlier turns, oldest first (roles user and assistant).

    `use_context` says whether context is retrieved, and `format` is its format (None: as in the settings);
    `instructions` replace the default ones. `collection`, `filter`, `min_similarity`, `min_confidence`,
    `query_context` and `min_trust` are those of Query; the default `min_similarity` is that of the settings,
    or 0.25 for passages and none for tasks, and none with a filter that names documents or threads.
    `store_in` is a channel of the collection (for `*`, of the default collection), in which message and
    answer are stored when the answer is complete. `since` are the tool calls after the message with their
    results; the last one is to be answered. Messages of one `session`, an id of a conversation, begin with
    the same context for as long as it is allowed, and new passages follow.
    """

    message: Annotated[str, Length(1, MAX_QUERY), "Message to answer.", Example("When does the backup run?")]
    history: Annotated[tuple[Message, ...], Length(0, MAX_TURNS), "Earlier turns, oldest first."] = ()
    collection: CollectionName = EVERYWHERE
    filter: DocumentFilter = EVERYTHING
    use_context: Annotated[bool | None, "Look for context; by default as the server is set."] = None
    instructions: Annotated[str, Length(0, MAX_QUERY), "Instructions instead of the default ones."] | None = (
        None
    )
    allocation: Annotated[Allocation, "Tokens for each part of the prompt, and for the answer."] = field(
        default_factory=Allocation
    )
    min_similarity: MinSimilarity | Literal["default"] | None = "default"
    min_confidence: MinConfidence = 0.0
    query_context: Annotated[QueryContext | None, "The channel, thread and time of the message."] = None
    format: Annotated[ContextForm | None, "How context is written; by default as the server is set."] = None
    temperature: Annotated[float, Range(0, 2), "Randomness of the answer."] | None = None
    store_in: Annotated[ChannelName, "A channel to store message and answer in."] | None = None
    since: tuple[Turn, ...] = ()
    options: ModelOptions = field(default_factory=ModelOptions)
    session: (
        Annotated[Name, "An id of the conversation, whose messages begin with the same context."] | None
    ) = None
    min_trust: LowestTrust | None = None


@dataclass(frozen=True, slots=True)
class ChatSource:
    """A numbered part of the context that the model was given: characters [start, end) of a document.

    `snippet` is its beginning, at most 200 characters. `location` is the path that a page of a connection
    has now; of other documents it is the key. `read_by` is how its text was read. `table_header` is that of
    the table that the characters are in the middle of, in Markdown.
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
    read_by: ReadBy = "text"
    table_header: StoredText | None = None


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
    """What the answer cites: sources that it was given, and `unknown` numbers that it was not given.

    `answer` is the id of the answer record, if one is kept.
    """

    cited: tuple[ChatSource, ...]
    unknown: tuple[str, ...] = ()
    answer: str = ""


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
