"""Questions, and what comes back."""

from typing import Annotated, Any, Literal

from pydantic import Field

from conspectus.errors import InvalidInput
from conspectus.model.filter import filter_from_json
from conspectus.model.query import Budget, Query, QueryContext, Retriever
from conspectus.model.results import Outcome, TraceStatus
from conspectus.web.schemas.base import (
    NAME,
    Count,
    Finite,
    Identifier,
    Instant,
    Int64,
    Name,
    Question,
    RequestModel,
    ResponseModel,
    Where,
)
from conspectus.web.schemas.graphs import GraphAskBody

MOST_DIMENSIONS = 65_536
USUAL_HITS = 20
MOST_HITS = 100_000
MOST_TOKENS = 100_000_000
MinSimilarity = Annotated[Finite, Field(ge=-1.0, le=1.0, description="Lowest cosine similarity of a hit.")]


class QueryContextBody(RequestModel):
    """Where and when a question is asked; an instant has a zone, and without one it is now."""

    channel: Name | None = None
    thread: Name | None = None
    at: Instant | None = None
    profile: Name = "default"

    def taken(self) -> QueryContext:
        """As the engine takes it."""
        return QueryContext(self.channel, self.thread, self.at, self.profile)


class QueryBody(RequestModel):
    """A query to one collection, or to all that can be seen with `*`."""

    query: Question
    collection: Name = "default"
    filter: Where | None = None
    limit: int | None = Field(None, ge=0, le=MOST_HITS, description="Maximum number of hits.")
    min_similarity: MinSimilarity | None = None
    retrievers: list[Retriever] | None = Field(None, max_length=2, description="By default both.")
    vector: list[Finite] | None = Field(None, min_length=1, max_length=MOST_DIMENSIONS)
    rerank: bool = Field(True, description="Rerank the hits, where a reranker is set.")
    query_context: QueryContextBody | None = None
    thread_messages: int = Field(
        0, ge=0, le=MOST_HITS, description="Maximum number of messages of its thread added to a hit."
    )
    as_of: Instant | None = Field(None, description="Answer with the state known at that instant.")
    graph: GraphAskBody | None = None

    def fields(self) -> dict[str, Any]:
        """The parts of the query that the client named, as the engine takes them."""
        given = {name: getattr(self, name) for name in self.model_fields_set & FIELDS}
        if self.query_context is not None:
            given["query_context"] = self.query_context.taken()
        if self.graph is not None:
            given["graph"] = self.graph.asked()
        if self.filter is not None:
            given["filter"] = filter_from_json(self.filter)
        for name in ("retrievers", "vector"):
            if given.get(name) is not None:
                given[name] = tuple(given[name])
        return {name: value for name, value in given.items() if value is not None}


FIELDS = QueryBody.model_fields.keys() - {"query"}


class SearchBody(QueryBody):
    """A search for the best passages."""

    limit: int | None = Field(USUAL_HITS, ge=0, le=MOST_HITS, description="Maximum number of hits.")

    def taken(self) -> Query:
        """The query as the engine takes it."""
        return Query(**{"text": self.query, "limit": USUAL_HITS, **self.fields()})


class BudgetBody(RequestModel):
    """The token limit of a window, its tokenizer, and what else the limit must cover."""

    max_tokens: int = Field(ge=0, le=MOST_TOKENS)
    tokenizer: str = Field("o200k_base", min_length=1, max_length=NAME)
    system: Question = ""
    query: Question = ""
    reserved_tokens: int = Field(0, ge=0, le=MOST_TOKENS)


Renderer = Literal["text", "xml", "json", "messages", "guarded"]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


def budget_of(given: int | BudgetBody) -> Budget:
    """The budget as the engine takes it."""
    if isinstance(given, int):
        return Budget(given)
    return _checked(Budget(**given.model_dump()))


def _checked(budget: Budget) -> Budget:
    if budget.tokenizer.startswith("hf:"):
        raise InvalidInput("tokenizer", "hf:PATH reads a file and cannot be used over HTTP")
    return budget


class BudgetedBody(QueryBody):
    """A query and the token limit of the window that answers it."""

    max_tokens: int = Field(ge=0, le=MOST_TOKENS)
    tokenizer: str = Field("o200k_base", min_length=1, max_length=NAME)
    system: Question = Field("", description="A system prompt that `max_tokens` must also cover.")
    budget_query: Question = Field("", description="A user message that `max_tokens` must also cover.")
    reserved_tokens: int = Field(0, ge=0, le=MOST_TOKENS, description="Tokens kept free for the answer.")

    def budget(self) -> Budget:
        """The budget as the engine takes it. Raises InvalidInput for tokenizers that read server files."""
        return _checked(
            Budget(self.max_tokens, self.tokenizer, self.system, self.budget_query, self.reserved_tokens)
        )


class ContextBody(BudgetedBody):
    """A context window to build."""

    format: Renderer = "text"


class ExplainBody(BudgetedBody):
    """A context window to explain; with `document`, that document's chunks too, found or not."""

    document: Identifier | None = None


class AugmentBody(BudgetedBody):
    """A context window over everything that can be seen."""

    min_similarity: MinSimilarity | None = Field(None, description="Lowest similarity; by default 0.25.")


class RerankBody(RequestModel):
    """Chunks found before, by their ids, to put into the order of a reranker."""

    query: Question
    chunks: list[Int64] = Field(max_length=1_000, description="Ids of chunks, best first.")
    limit: int = Field(5, ge=0, le=1_000)


class SearchAndRerankBody(QueryBody):
    """A broad search for `candidates`, of which a reranker chooses `limit`."""

    candidates: int = Field(50, ge=0, le=MOST_HITS)
    limit: int | None = Field(5, ge=0, le=1_000)


class CitationAnswer(ResponseModel):
    """Where a numbered part of the window comes from: characters [start, end) of the document."""

    number: int
    document: str
    source: str
    key: str
    title: str
    start: Count
    end: Count
    chunks: list[int]
    page: int | None
    heading: str | None
    location: str


class TraceAnswer(ResponseModel):
    """One candidate's way: its rank, its score by parts, and why it is in or out."""

    rank: int
    chunk: int
    document: str
    title: str
    score: float
    parts: dict[str, float]
    status: TraceStatus
    reason: str
    tokens: Count


class MessageAnswer(ResponseModel):
    """One chat message of a rendered window."""

    role: str
    content: str


class WindowAnswer(ResponseModel):
    """Rendered context that costs exactly `tokens`, with its citations and its trace."""

    outcome: Outcome
    text: str
    tokens: Count
    max_tokens: int
    tokenizer: str
    citations: list[CitationAnswer]
    trace: list[TraceAnswer]
    messages: list[MessageAnswer]
    notices: list[str]
    timings: dict[str, float]
