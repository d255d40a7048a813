"""A chat: what is asked, how many tokens each part may cost, and what is told while the answer is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from conspectus.model.checks import Checked
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.query import EVERYWHERE, QueryContext
from conspectus.model.results import Message
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

    `question` is what is kept free for the user's message; a longer one takes its tokens from the history,
    then from the context, and is never cut. `history` is the most that earlier turns may cost.
    """

    system: int = 500
    context: int = 1_500
    question: int = 200
    answer: int = 800
    history: int = 2_000


@dataclass(frozen=True, slots=True)
class ChatRequest(Validated):
    """A message to a chat model, with earlier turns, oldest first (roles user and assistant).

    `use_context` says whether context is looked for, and `format` how it is written (None: as the settings
    say); `instructions` replace the usual ones. `collection`, `filter`, `min_similarity` and `query_context`
    are those of Query.
    `store_in` is a channel of the collection (for `*`, of the settings' one), in which message and answer are
    stored once it is whole.
    `since` are the calls of tools after the message with their results, the last of which is to be answered.
    """

    message: str
    history: tuple[Message, ...] = ()
    collection: str = EVERYWHERE
    filter: Filter = EVERYTHING
    use_context: bool | None = None
    instructions: str | None = None
    allocation: Allocation = field(default_factory=Allocation)
    min_similarity: float | None = 0.25
    query_context: QueryContext | None = None
    format: ContextForm | None = None
    temperature: float | None = None
    store_in: str | None = None
    since: tuple[Turn, ...] = ()
    options: ModelOptions = field(default_factory=ModelOptions)


@dataclass(frozen=True, slots=True)
class ChatSource:
    """A numbered part of the context that the model was given: characters [start, end) of a document.

    `snippet` is its beginning, at most 200 characters. `location` is the path that a page of a connection
    has now; of other documents it is the key.
    """

    number: int
    document: str
    source: str
    key: str
    title: str
    start: int
    end: int
    snippet: str
    page: int | None = None
    heading: str | None = None
    location: str = ""


@dataclass(frozen=True, slots=True)
class Sources:
    """The first event: what was looked for and what the model is given.

    `question` is what was searched for, the message made to stand alone; `notice` says why nothing could
    be looked for, where `outcome` is failed, or what the answer could not take into account.
    """

    outcome: Looked
    sources: tuple[ChatSource, ...] = ()
    question: str = ""
    tokens: int = 0
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """Some more of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Citations:
    """What the answer cites: sources that it was given, and `invented` numbers that it was not given."""

    cited: tuple[ChatSource, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model counts them, or as we do (`exact` is False) where it does not say."""

    input: int
    output: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer, or no more of it: a stable code and a message without internals."""

    code: str
    message: str


ChatEvent: TypeAlias = Sources | Delta | ToolCall | Citations | Usage | Failure
"""In this order: Sources, any number of Delta, of ToolCall, Citations, Usage; a Failure is the last."""
