"""Questions, and what comes back."""

from typing import Annotated, Any, Literal

from pydantic import Field

from conspectus.errors import InvalidInput
from conspectus.model.filter import filter_from_json
from conspectus.model.query import Arm, Budget, Query, QueryContext
from conspectus.model.results import Fate, Outcome
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
    Share,
    Where,
)
from conspectus.web.schemas.graphs import GraphAskBody
from conspectus.web.schemas.records import ChunkAnswer, DocumentAnswer

MOST_DIMENSIONS = 65_536
USUAL_HITS = 20
MOST_HITS = 100_000
MOST_TOKENS = 100_000_000
Floor = Annotated[Finite, Field(ge=-1.0, le=1.0, description="The least cosine similarity of a hit.")]


class SituationBody(RequestModel):
    """Where and when a question is asked; an instant has a zone, and without one it is now."""

    channel: Name | None = None
    thread: Name | None = None
    at: Instant | None = None
    profile: Name = "default"

    def situation(self) -> QueryContext:
        """As the engine takes it."""
        return QueryContext(self.channel, self.thread, self.at, self.profile)


class QueryBody(RequestModel):
    """A question to one collection, or to all that can be seen with `*`."""

    text: Question
    collection: Name = "default"
    where: Where | None = None
    limit: int | None = Field(None, ge=0, le=MOST_HITS, description="Most hits.")
    floor: Floor | None = None
    arms: list[Arm] | None = Field(None, max_length=2, description="The ways to look; by default both.")
    vector: list[Finite] | None = Field(None, min_length=1, max_length=MOST_DIMENSIONS)
    rerank: bool = Field(True, description="Let the reranker, if there is one, have the last word.")
    situation: SituationBody | None = None
    chain: int = Field(0, ge=0, le=MOST_HITS, description="Most messages of its thread along with a hit.")
    as_of: Instant | None = Field(None, description="Answer with what was known at that instant.")
    graph: GraphAskBody | None = None

    def fields(self) -> dict[str, Any]:
        """The parts of the question that the client named, as the engine takes them."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"text", "where"}}
        if self.situation is not None:
            given["situation"] = self.situation.situation()
        if self.graph is not None:
            given["graph"] = self.graph.asked()
        if self.where is not None:
            given["where"] = filter_from_json(self.where)
        for name in ("arms", "vector"):
            if given.get(name) is not None:
                given[name] = tuple(given[name])
        return {name: value for name, value in given.items() if value is not None}


class SearchBody(QueryBody):
    """A search for the best passages."""

    limit: int | None = Field(USUAL_HITS, ge=0, le=MOST_HITS, description="Most hits.")

    def query(self) -> Query:
        """The question as the engine takes it."""
        return Query(**{"text": self.text, "limit": USUAL_HITS, **self.fields()})


class BudgetBody(RequestModel):
    """How many tokens there are, who counts them, and what else they pay for."""

    tokens: int = Field(ge=0, le=MOST_TOKENS)
    tokenizer: str = Field("o200k_base", min_length=1, max_length=NAME)
    system: Question = ""
    question: Question = ""
    answer: int = Field(0, ge=0, le=MOST_TOKENS)


Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


def budget_of(given: int | BudgetBody) -> Budget:
    """The budget as the engine takes it. Raises InvalidInput for tokenizers that read server files."""
    if isinstance(given, int):
        return Budget(given)
    if given.tokenizer.startswith("hf:"):
        raise InvalidInput("tokenizer", "hf:PATH reads a file and cannot be used over HTTP")
    return Budget(**given.model_dump())


class BudgetedBody(RequestModel):
    """A question and the tokens for what answers it."""

    query: QueryBody
    budget: Tokens | BudgetBody = Field(description="Tokens counted with o200k_base, or a budget in full.")

    def allowed(self) -> Budget:
        """The budget as the engine takes it. Raises InvalidInput for tokenizers that read server files."""
        return budget_of(self.budget)


class ContextBody(BudgetedBody):
    """A context window to build."""

    renderer: Literal["text", "xml", "json", "messages", "guarded"] = "text"


class ExplainBody(BudgetedBody):
    """A context window to explain; with `document`, that document's chunks too, found or not."""

    document: Identifier | None = None


class AugmentBody(BudgetedBody):
    """A context window over everything that can be seen."""

    floor: Floor | None = Field(None, description="The least cosine similarity; by default 0.25.")


class RerankBody(RequestModel):
    """Passages found before, by the ids of their chunks, to put into the order of a reranker."""

    query: Question
    chunks: list[Int64] = Field(max_length=1_000, description="Ids of chunks, best first.")
    top_n: int = Field(5, ge=0, le=1_000)


class SearchAndRerankBody(RequestModel):
    """A broad search whose hits a reranker judges."""

    query: QueryBody
    search_limit: int = Field(50, ge=0, le=MOST_HITS)
    top_n: int = Field(5, ge=0, le=1_000)


class HitAnswer(ResponseModel):
    """One chunk found. `score` is the sum of `parts`; `words` is raw BM25, `similarity` the raw cosine.

    `through` are the names of a graph that led to it, in order.
    """

    chunk: ChunkAnswer
    document: DocumentAnswer
    score: float
    parts: dict[str, float]
    words: float | None
    similarity: float | None
    along_with: int | None
    through: list[str]


class ThreadSketchAnswer(ResponseModel):
    """A thread as far as it was read: how many of its documents stand before each, and how many there are."""

    source: str
    thread: str
    places: dict[str, Count]
    total: Count


class RetrievalAnswer(ResponseModel):
    """The hits, best first, and how they came about."""

    outcome: Outcome
    hits: list[HitAnswer]
    below_floor: list[HitAnswer]
    plan: dict[str, str]
    notices: list[str]
    timings: dict[str, float]
    threads: list[ThreadSketchAnswer]


class JudgedAnswer(ResponseModel):
    """A hit with how well it answers the question; null where no reranker judged it."""

    hit: HitAnswer
    relevance: Share | None


class RerankingAnswer(ResponseModel):
    """Hits in the order of a reranker's `model`, or with a notice in the order they had before."""

    results: list[JudgedAnswer]
    model: str | None
    notice: str | None


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
    fate: Fate
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
    allowed: int
    tokenizer: str
    citations: list[CitationAnswer]
    trace: list[TraceAnswer]
    messages: list[MessageAnswer]
    notices: list[str]
    timings: dict[str, float]
