"""Questions, and what comes back."""

from typing import Annotated, Literal

from pydantic import Field

from conspectus.model.query import QueryContext
from conspectus.web.schemas.base import (
    Finite,
    Instant,
    Int64,
    Name,
    Question,
    RequestModel,
    Tokenizer,
)

MAX_DIMENSIONS = 65_536
MAX_HITS = 100_000
MAX_TOKENS = 100_000_000
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


class BudgetBody(RequestModel):
    """The token limit of a window, its tokenizer, and what else the limit must cover."""

    max_tokens: int = Field(ge=0, le=MAX_TOKENS)
    tokenizer: Tokenizer = "o200k_base"
    system: Question = ""
    query: Question = ""
    reserved_tokens: int = Field(0, ge=0, le=MAX_TOKENS)


Renderer = Literal["text", "xml", "json", "messages", "guarded"]
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class RerankBody(RequestModel):
    """Chunks found before, by their ids, to put into the order of a reranker."""

    query: Question
    chunks: list[Int64] = Field(max_length=1_000, description="Ids of chunks, best first.")
    limit: int = Field(5, ge=0, le=1_000)
