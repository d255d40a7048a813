"""The two kinds of schema, types of their values, and bodies: queries, documents, chats and tasks."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from conspectus.deferred import dataclass
from conspectus.engine.search import SearchService
from conspectus.engine.tasks import TaskService
from conspectus.model import parameters
from conspectus.model.chat import Allocation, ChatRequest, Citations, ContextForm, Failure, Sources, Usage
from conspectus.model.filter import EVERYTHING, DocumentFilter
from conspectus.model.filter_json import filter_from_json
from conspectus.model.ids import EXAMPLE_ID
from conspectus.model.query import EVERYWHERE, QueryContext
from conspectus.model.records import Kind, NewDocument, Period, SourceKind, Syntax, TextPosition
from conspectus.model.results import Message
from conspectus.model.tasks import Attachment, Priority, Task, TaskResult, TaskStatus
from conspectus.model.trust import MinTrust, Origin, Trust
from conspectus.operations.declared import INT64, declared, facts_of

NUMBER = re.compile(r"\s*[-+]?[0-9.]+\s*")


def _no_number(value: object) -> object:
    """The value, unless the schema library would read it as seconds since 1970."""
    if isinstance(value, int | float) or (isinstance(value, str) and NUMBER.fullmatch(value)):
        raise ValueError("must be a date with a time and a zone, such as 2026-01-31T12:00:00Z")
    return value


Name = Annotated[str, Field(**facts_of(parameters.Name))]
Identifier = Annotated[str, Field(**facts_of(parameters.Identifier))]
Text = Annotated[str, Field(**facts_of(parameters.Text))]
Question = Annotated[str, Field(**facts_of(parameters.QueryText))]
Label = Annotated[str, Field(**facts_of(parameters.Label))]
Int64 = Annotated[int, Field(ge=-INT64, lt=INT64)]
Count = Annotated[int, Field(ge=0)]
MinConfidence = Annotated[float, Field(**facts_of(parameters.MinConfidence))]
MinSimilarity = Annotated[float, Field(**facts_of(parameters.MinSimilarity))]
Tokens = Annotated[int, Field(**facts_of(parameters.TokenLimit))]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Instant = Annotated[AwareDatetime, Strict(False), BeforeValidator(_no_number)]
Span = Annotated[tuple[Int64, Int64], Strict(False)]
JsonObject = dict[str, Any]
Where = Annotated[JsonObject, Field(**facts_of(DocumentFilter))]


class ResponseModel(BaseModel):
    """Something the engine says, read from the attributes of its own types."""

    model_config = ConfigDict(from_attributes=True)


class RequestModel(BaseModel):
    """Something a client says: no unknown fields, and no value of another type than the schema names."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QueryContextBody(RequestModel):
    """The place and time of a query; an instant has a zone, and the default is now."""

    channel: Annotated[str | None, declared(QueryContext, "channel")] = None
    thread: Annotated[str | None, declared(QueryContext, "thread")] = None
    at: Annotated[Instant | None, declared(QueryContext, "at")] = None
    profile: Annotated[str, declared(QueryContext, "profile")] = "default"

    def to_query_context(self) -> QueryContext:
        """As the engine takes it."""
        return QueryContext(self.channel, self.thread, self.at, self.profile)


MAX_CHUNKS = 1_000_000
"""Most ids of a list when it is parsed; the settings limit how many are accepted."""


class RerankBody(RequestModel):
    """Chunks found before, by their ids, to put into the order of a reranker."""

    query: Question
    chunks: list[Int64] = Field(
        max_length=MAX_CHUNKS, description="Ids of chunks, best first.", examples=[[17, 4]]
    )
    limit: Annotated[int, declared(SearchService.rerank, "limit")] = 5


class CollectionBody(RequestModel):
    """A collection to make; with `get`, the one of that name is returned if there is one."""

    name: Name = Field(description="Name of the collection.", examples=["notes"])
    embedder: Label | None = Field(None, description="As in the settings; `none`: words only.")
    dimensions: int | None = Field(
        None,
        ge=1,
        le=parameters.MAX_DIMENSIONS,
        description="Size of the vectors, if the embedder has several.",
    )
    language: Label | None = Field(None, description="A Snowball language, or `none`.", examples=["english"])
    description: str = Field("", max_length=10_000, description="What it holds.")
    get: bool = Field(False, description="Return the collection of that name if it exists already.")


class SourceBody(RequestModel):
    """A source to get, or to make if it is new; `metadata`, where given, replaces what it has."""

    name: Name = Field(description="Name of the source.", examples=["handbook"])
    metadata: JsonObject | None = Field(None, description="Metadata as JSON; replaces what is stored.")
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

    title: Annotated[str, declared(NewDocument, "title")] = ""
    kind: Annotated[Kind, declared(NewDocument, "kind")] = "page"
    metadata: Annotated[JsonObject, declared(NewDocument, "metadata")] = {}
    author: Annotated[str | None, declared(NewDocument, "author")] = None
    role: Annotated[str | None, declared(NewDocument, "role")] = None
    occurred: Annotated[
        PeriodBody | Annotated[str, Field(max_length=100)] | Finite | None, declared(NewDocument, "occurred")
    ] = None
    sequence: Annotated[Int64 | None, declared(NewDocument, "sequence")] = None
    parent: Annotated[str | None, declared(NewDocument, "parent")] = None
    thread: Annotated[str | None, declared(NewDocument, "thread")] = None
    syntax: Annotated[Syntax, declared(NewDocument, "syntax")] = "plain"
    places: Annotated[list[PlaceBody], declared(NewDocument, "places")] = []
    spans: Annotated[list[Span], declared(NewDocument, "spans")] = []
    vector: Annotated[list[Finite] | None, declared(NewDocument, "vector")] = None
    origin: Annotated[Origin | None, declared(NewDocument, "origin")] = None
    trust: Annotated[Trust | None, declared(NewDocument, "trust")] = None

    def named_fields(self) -> dict[str, Any]:
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

    text: Annotated[str, declared(NewDocument, "text")]
    key: Annotated[str | None, declared(NewDocument, "key")] = None
    if_match: Annotated[str | None, declared(NewDocument, "if_match")] = None

    def document(self) -> NewDocument:
        """The document as the engine takes it."""
        return NewDocument(**self.named_fields())


class DocumentsBody(RequestModel):
    """Documents to store in one source, in order."""

    documents: list[DocumentBody] = Field(max_length=parameters.MAX_LIST, description="Documents to store.")
    source: Name = Field("default", description="The source, made if it is new.")
    wait: Annotated[bool, Field(**facts_of(parameters.Wait))] = False


class DocumentsOfSource(RequestModel):
    """Documents to store in the source of the path, in order."""

    documents: list[DocumentBody] = Field(max_length=parameters.MAX_LIST, description="Documents to store.")
    wait: Annotated[bool, Field(**facts_of(parameters.Wait))] = False


class DocumentChange(DocumentFields):
    """The fields of a document to change; those that are not named stay. Metadata are replaced whole."""

    text: Annotated[str, declared(NewDocument, "text")] = ""


class DeletionBody(RequestModel):
    """Documents of a collection to delete: by `ids`, or all that match `filter`; exactly one of the two."""

    ids: list[Identifier] | None = Field(
        None, max_length=1_000, description="Ids of documents.", examples=[[EXAMPLE_ID]]
    )
    filter: Where | None = None
    purge: Annotated[bool, Field(**facts_of(parameters.Purge))] = False


MAX_TURNS = 10_000
MAX_CONTEXT = 5_000
DEFAULT_ALLOCATION = Allocation()
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

    system: Tokens = DEFAULT_ALLOCATION.system
    context: ContextTokens = DEFAULT_ALLOCATION.context
    question: Tokens = DEFAULT_ALLOCATION.question
    answer: Tokens = DEFAULT_ALLOCATION.answer
    history: Tokens = DEFAULT_ALLOCATION.history


class ChatBody(RequestModel):
    """A message with the earlier turns, oldest first, and what may be looked at for an answer."""

    message: str = Field(
        min_length=1,
        max_length=parameters.MAX_QUERY,
        description="Message to answer.",
        examples=["When does the backup run?"],
    )
    history: list[TurnBody] = Field(default_factory=list, max_length=MAX_TURNS)
    collection: Name = EVERYWHERE
    filter: Where | None = None
    use_context: bool | None = Field(None, description="Look for context; by default as the server is set.")
    instructions: Question | None = Field(None, description="What the model is told instead of the usual.")
    budget: AllocationBody = Field(default_factory=AllocationBody)
    min_similarity: MinSimilarity | None = 0.25
    min_confidence: MinConfidence = 0.0
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
            query_context=None if self.query_context is None else self.query_context.to_query_context(),
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


class TaskFields(RequestModel):
    """Changes of a task. Metadata are replaced as a whole."""

    description: Annotated[str, declared(Task, "description")] = ""
    tags: Annotated[list[Name], declared(Task, "tags")] = []
    status: Annotated[TaskStatus, declared(Task, "status")] = "pending"
    priority: Annotated[Priority | None, declared(Task, "priority")] = None
    metadata: Annotated[JsonObject, declared(Task, "metadata")] = {}

    def named_fields(self) -> dict[str, Any]:
        """The fields that the client named, as the face takes them."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: tuple(content) if name == "tags" else content for name, content in fields.items()}


class TaskBody(TaskFields):
    """A task to store under the id in the path."""

    title: Annotated[str, declared(Task, "title")]


class IdentifiedTaskBody(TaskBody):
    """A task to store under its id."""

    id: Annotated[str, declared(Task, "id")]

    def task(self) -> Task:
        """The task as the face takes it."""
        return Task(**self.named_fields())


class TaskChange(TaskFields):
    """The fields of a task to change; those that are not named stay."""

    title: Annotated[str, declared(Task, "title")] = ""


class TasksBody(RequestModel):
    """Tasks to store, in order; of two with one id, the last stays."""

    tasks: list[IdentifiedTaskBody] = Field(max_length=MAX_TASKS)


class AttachmentBody(RequestModel):
    """An attachment to store: a text, a title, or both."""

    text: Annotated[str, declared(Attachment, "text")] = ""
    title: Annotated[str, declared(Attachment, "title")] = ""
    metadata: Annotated[JsonObject, declared(Attachment, "metadata")] = {}

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
    min_similarity: Annotated[float, declared(TaskService.search, "min_similarity")] = 0.0
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
    min_similarity: Annotated[float, declared(TaskService.search, "min_similarity")] = 0.0
    min_trust: MinTrust | None = None
    collection: Name = "tasks"
