"""The two kinds of schema, the types of values that many of them have, and parts of queries."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from conspectus.model.query import QueryContext

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
