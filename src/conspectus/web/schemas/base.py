"""The two kinds of schema, types of their values, and bodies: queries, documents, chats and tasks."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from conspectus.deferred import dataclass
from conspectus.model.chat import Allocation, ChatRequest, Citations, ContextForm, Failure, Sources, Usage
from conspectus.model.filter import EVERYTHING, filter_from_json
from conspectus.model.query import EVERYWHERE, QueryContext
from conspectus.model.records import Kind, NewDocument, Period, SourceKind, Syntax, TextPosition
from conspectus.model.results import Message
from conspectus.model.tasks import ID_LENGTH, TITLE_LENGTH, Attachment, Priority, Task, TaskResult, TaskStatus
from conspectus.model.trust import MinTrust, Origin, Trust
from conspectus.text.vectors import MAX_DIMENSIONS

NAME = 1_000
IDENTIFIER = 200
CURSOR = 1_000
MAX_IDS = 1_000
MAX_DESCRIPTION_LENGTH = 10_000
MAX_TEXT_LENGTH = 100_000_000
MAX_QUESTION_LENGTH = 1_000_000
INT64 = 2**63
NUMBER = re.compile(r"\s*[-+]?[0-9.]+\s*")


def _no_number(value: object) -> object:
    """The value, unless the schema library would read it as seconds since 1970."""
    if isinstance(value, int | float) or (isinstance(value, str) and NUMBER.fullmatch(value)):
        raise ValueError("must be a date with a time and a zone, such as 2026-01-31T12:00:00Z")
    return value


def _no_path(tokenizer: str) -> str:
    if tokenizer.startswith("hf:"):
        raise ValueError("hf:PATH reads a file and cannot be used over HTTP")
    return tokenizer


Name = Annotated[str, Field(min_length=1, max_length=NAME)]
Identifier = Annotated[str, Field(min_length=1, max_length=IDENTIFIER)]
Text = Annotated[str, Field(max_length=MAX_TEXT_LENGTH)]
Question = Annotated[str, Field(max_length=MAX_QUESTION_LENGTH, examples=["How do we restore a backup?"])]
Tokenizer = Annotated[Name, AfterValidator(_no_path)]
Label = Annotated[str, Field(max_length=NAME)]
Int64 = Annotated[int, Field(ge=-INT64, lt=INT64)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Instant = Annotated[AwareDatetime, Strict(False), BeforeValidator(_no_number)]
Span = Annotated[tuple[Int64, Int64], Strict(False)]
JsonObject = dict[str, Any]
Where = Annotated[
    JsonObject,
    Field(
        description="A filter: eq, in, from/to, exists on a field; overlaps; not, and, or.",
        examples=[{"field": "kind", "eq": "page"}],
    ),
]


class ResponseModel(BaseModel):
    """Something the engine says, read from the attributes of its own types."""

    model_config = ConfigDict(from_attributes=True)


class RequestModel(BaseModel):
    """Something a client says: no unknown fields, and no value of another type than the schema names."""

    model_config = ConfigDict(extra="forbid", strict=True)


MinSimilarity = Annotated[Finite, Field(ge=-1.0, le=1.0, description="Lowest cosine similarity of a hit.")]


class QueryContextBody(RequestModel):
    """The place and time of a query; an instant has a zone, and the default is now."""

    channel: Name | None = None
    thread: Name | None = None
    at: Instant | None = None
    profile: Name = "default"

    def taken(self) -> QueryContext:
        """As the engine takes it."""
        return QueryContext(self.channel, self.thread, self.at, self.profile)


Tokens = Annotated[int, Field(ge=0, lt=INT64)]
"""The settings bound it: the engine names the limit, and its setting, in the error."""


class BudgetBody(RequestModel):
    """The token limit of a window, its tokenizer, and what else the limit must cover."""

    max_tokens: Tokens
    tokenizer: Tokenizer = "o200k_base"
    system: Question = ""
    query: Question = ""
    reserved_tokens: Tokens = 0


Renderer = Literal["text", "xml", "json", "messages", "guarded"]


MAX_CHUNKS = 1_000_000
"""Most ids of a list when it is parsed; the settings limit how many are accepted."""


class RerankBody(RequestModel):
    """Chunks found before, by their ids, to put into the order of a reranker."""

    query: Question
    chunks: list[Int64] = Field(max_length=MAX_CHUNKS, description="Ids of chunks, best first.")
    limit: int = Field(5, ge=0, lt=INT64)


MAX_DOCUMENTS = 10_000
MAX_PLACES = 100_000


class CollectionBody(RequestModel):
    """A collection to make; with `get`, the one of that name is returned if there is one."""

    name: Name = Field(examples=["wiki"])
    embedder: Label | None = Field(None, description="As in the settings; `none`: words only.")
    dimensions: int | None = Field(None, ge=1, le=65_536)
    language: Label | None = Field(None, description="A Snowball language, or `none`.", examples=["english"])
    description: str = Field("", max_length=MAX_DESCRIPTION_LENGTH)
    get: bool = Field(False, description="Return the collection of that name if it exists already.")


class SourceBody(RequestModel):
    """A source to get, or to make if it is new; `metadata`, where given, replaces what it has."""

    name: Name = Field(examples=["handbook"])
    metadata: JsonObject | None = None
    kind: SourceKind = "manual"


class PeriodBody(RequestModel):
    """A half-open span of time."""

    start: Instant
    end: Instant


class PlaceBody(RequestModel):
    """The page and the headings (outermost first) of a text from character `start` on."""

    start: int = Field(ge=0, le=2**31)
    page: int | None = Field(None, ge=0, le=2**31)
    headings: list[Label] = Field(default=[], max_length=100)


class DocumentFields(RequestModel):
    """The fields of a document that can be changed later."""

    title: Text = ""
    kind: Kind = "page"
    metadata: JsonObject = Field(default={}, examples=[{"lang": "en"}])
    author: Label | None = None
    role: Label | None = None
    occurred: PeriodBody | Annotated[str, Field(max_length=100)] | Finite | None = Field(
        None, description="When it happened: a span, an ISO 8601 time, or seconds since 1970."
    )
    sequence: Int64 | None = None
    parent: Identifier | None = None
    thread: Label | None = None
    syntax: Syntax = "plain"
    places: list[PlaceBody] = Field(default=[], max_length=MAX_PLACES)
    spans: list[Span] = Field(
        default=[], max_length=MAX_PLACES, description="The chunks to cut the text into, without a gap."
    )
    vector: list[Finite] | None = Field(
        None,
        min_length=1,
        max_length=MAX_DIMENSIONS,
        description="A vector of the collection's space, if the client has one: it is not embedded then.",
    )

    origin: Origin | None = Field(None, description="Who wrote it; can only lower its level.")
    trust: Trust | None = Field(None, description="A lower level than that of its origin.")

    def given(self) -> dict[str, Any]:
        """The fields that the client named, as the engine takes them."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if isinstance(self.occurred, PeriodBody):
            fields["occurred"] = Period(self.occurred.start, self.occurred.end)
        if "places" in fields:
            fields["places"] = tuple(
                TextPosition(at.start, at.page, tuple(at.headings)) for at in self.places
            )
        if "spans" in fields:
            fields["spans"] = tuple(self.spans)
        if self.vector is not None:
            fields["vector"] = tuple(self.vector)
        return fields


class DocumentBody(DocumentFields):
    """A document to store. With a `key`, it replaces the stored one of that key in its source."""

    text: Text = Field(examples=["The backup runs every night at two."])
    key: Label | None = None
    if_match: Label | None = Field(
        None, description="The fingerprint that was read; if it is another one by now, nothing is written."
    )

    def document(self) -> NewDocument:
        """The document as the engine takes it."""
        return NewDocument(**self.given())


class DocumentsBody(RequestModel):
    """Documents to store in one source, in order."""

    documents: list[DocumentBody] = Field(max_length=MAX_DOCUMENTS)
    source: Name = Field("default", description="The source, made if it is new.")
    wait: bool = Field(False, description="Answer when everything is found by meaning too.")


class DocumentsOfSource(RequestModel):
    """Documents to store in the source of the path, in order."""

    documents: list[DocumentBody] = Field(max_length=MAX_DOCUMENTS)
    wait: bool = Field(False, description="Answer when everything is found by meaning too.")


class DocumentChange(DocumentFields):
    """The fields of a document to change; those that are not named stay. Metadata are replaced whole."""

    text: Text = ""


class DeletionBody(RequestModel):
    """Documents of a collection to delete: by `ids`, or all that match `filter`; exactly one of the two."""

    ids: list[Identifier] | None = Field(None, max_length=MAX_IDS)
    filter: Where | None = None
    purge: bool = Field(False, description="Answer when no file holds them any more.")


MAX_TURNS = 10_000
MAX_CONTEXT = 5_000
USUAL = Allocation()
ContextTokens = Annotated[int, Field(ge=0, le=MAX_CONTEXT)]
ChatEvents = Literal["all", "text"]
Temperature = Annotated[Finite, Field(ge=0.0, le=2.0)]
_NOT_AS_GIVEN = frozenset({"history", "filter", "budget", "query_context", "stream", "events"})
"""Fields that a request has in another form, or not at all."""


class TurnBody(RequestModel):
    """An earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    content: Question


class AllocationBody(RequestModel):
    """Tokens for each part of the prompt, and for the answer."""

    system: Tokens = USUAL.system
    context: ContextTokens = USUAL.context
    question: Tokens = USUAL.question
    answer: Tokens = USUAL.answer
    history: Tokens = USUAL.history


class ChatBody(RequestModel):
    """A message with the earlier turns, oldest first, and what may be looked at for an answer."""

    message: str = Field(
        min_length=1, max_length=MAX_QUESTION_LENGTH, examples=["How do we restore a backup?"]
    )
    history: list[TurnBody] = Field(default_factory=list, max_length=MAX_TURNS)
    collection: Name = EVERYWHERE
    filter: Where | None = None
    use_context: bool | None = Field(None, description="Look for context; by default as the server is set.")
    instructions: Question | None = Field(None, description="What the model is told instead of the usual.")
    budget: AllocationBody = Field(default_factory=AllocationBody)
    min_similarity: MinSimilarity | None = 0.25
    min_confidence: Share = 0.0
    min_trust: MinTrust | None = None
    query_context: QueryContextBody | None = None
    format: ContextForm | None = Field(
        None, description="How context is written; by default as the server is set."
    )
    temperature: Temperature | None = None
    store_in: Name | None = Field(None, description="A channel to store message and answer in.")
    session: Name | None = Field(
        None,
        description="An id of the conversation, whose messages begin with the same context.",
    )
    stream: bool = Field(True, description="Answer with events as they come, not with one object at the end.")
    events: ChatEvents | None = Field(
        None, description="`text`: events with text only, and `[DONE]`; by default as the server is set."
    )

    def request(self) -> ChatRequest:
        """As the engine takes it."""
        named = {name: getattr(self, name) for name in type(self).model_fields if name not in _NOT_AS_GIVEN}
        return ChatRequest(
            **named,
            history=tuple(Message(turn.role, turn.content) for turn in self.history),
            filter=EVERYTHING if self.filter is None else filter_from_json(self.filter),
            allocation=Allocation(**self.budget.model_dump()),
            query_context=None if self.query_context is None else self.query_context.taken(),
        )


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A whole answer; `failure` says what went wrong after it, as that it could not be kept."""

    answer: str
    sources: Sources
    citations: Citations
    usage: Usage | None
    failure: Failure | None


MAX_TASKS = 10_000
MAX_TAGS = 1_000
Title = Annotated[str, Field(min_length=1, max_length=TITLE_LENGTH, examples=["Fix login"])]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=NAME)]], Field(max_length=MAX_TAGS)]


class TaskFields(RequestModel):
    """Changes of a task. Metadata are replaced as a whole."""

    description: Text = ""
    tags: Tags = Field(default=[])
    status: TaskStatus = "pending"
    priority: Priority | None = None
    metadata: JsonObject = Field(default={})

    def given(self) -> dict[str, Any]:
        """The fields that the client named, as the face takes them."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: tuple(each) if name == "tags" else each for name, each in fields.items()}


class TaskBody(TaskFields):
    """A task to store under the id in the path."""

    title: Title


class IdentifiedTaskBody(TaskBody):
    """A task to store under its id."""

    id: str = Field(min_length=1, max_length=ID_LENGTH, examples=["auth-1"])

    def task(self) -> Task:
        """The task as the face takes it."""
        return Task(**self.given())


class TaskChange(TaskFields):
    """The fields of a task to change; those that are not named stay."""

    title: Title = ""


class TasksBody(RequestModel):
    """Tasks to store, in order; of two with one id, the last stays."""

    tasks: list[IdentifiedTaskBody] = Field(max_length=MAX_TASKS)


class AttachmentBody(RequestModel):
    """An attachment to store: a text, a title, or both."""

    text: Text = Field("", examples=["The log of the failed login."])
    title: str = Field("", max_length=TITLE_LENGTH)
    metadata: JsonObject = Field(default={})

    def attachment(self, name: str) -> Attachment:
        """The attachment as the face takes it."""
        return Attachment(name, self.text, self.title, self.metadata)


class SemanticSearchQuery(RequestModel):
    """The parameters of a vector search."""

    model_config = ConfigDict(strict=False)

    q: str = Field(min_length=1, max_length=500, description="What to look for.", examples=["login issues"])
    status: TaskStatus | None = None
    priority: Priority | None = None
    n: int = Field(5, ge=1, le=20, description="Most results.")
    min_similarity: Share = Field(0.0, description="Leave out what is less similar than this.")
    min_trust: MinTrust | None = Field(None, description="Lowest trust level of a result.")
    collection: Name = "tasks"


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """The filters that were asked for."""

    status: TaskStatus | None
    priority: Priority | None


@dataclass(frozen=True, slots=True)
class SemanticSearch:
    """Results, the most similar first; `total` is their number."""

    results: Sequence[TaskResult]
    total: int
    query: str
    filters: SearchFilters


class TaskContextBody(RequestModel):
    """A context of the nearest tasks; `max_tokens` counts o200k_base, null means no limit."""

    query: str = Field(min_length=1, max_length=10_000, examples=["What is to do about the login?"])
    n_results: int = Field(3, ge=1, le=10)
    include_metadata: bool = True
    max_tokens: int | None = Field(1_500, ge=100, le=5_000)
    min_similarity: Share = 0.0
    min_trust: MinTrust | None = None
    collection: Name = "tasks"
