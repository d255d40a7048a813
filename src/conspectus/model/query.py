"""Queries: their options, their context, and the token budget of a window."""

from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal, TypedDict, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length, NullIsDefault, Range
from conspectus.model.checks import Checked
from conspectus.model.filter import EVERYTHING, DocumentFilter, Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.parameters import (
    DEFAULT_HITS,
    MAX_KEY,
    MAX_QUERY,
    AsOf,
    ChannelName,
    CollectionName,
    HitLimit,
    LowestTrust,
    MinConfidence,
    MinSimilarity,
    Name,
    QueryText,
    ThreadMessages,
    Tokenizer,
    TokenLimit,
    Vector,
)
from conspectus.model.trust import MinTrust
from conspectus.model.validation import Validated

Retriever = Literal["keyword", "vector"]
WindowFormat = Literal["text", "xml", "json", "messages", "guarded"]
RETRIEVERS: tuple[Retriever, ...] = get_args(Retriever)

DEFAULT_WINDOW_TOKENS: Final = 2_000
"""Tokens of a window whose budget is not given."""
DEFAULT_MIN_SIMILARITY: Final = 0.25
"""Of windows: unrelated texts rarely have a higher one with the shipped model."""
EVERYWHERE = "*"
"""The name for all collections that the person may read at least in part."""


@dataclass(frozen=True, slots=True)
class QueryContext(Checked):
    """The channel, thread and time of a query, for scores that depend on them.

    `channel` is the id or name of a source and `thread` the name of a thread in it; `at` is an instant with a
    zone (None: now). `profile` names the weights of the parts of a score (`default` or `multiplicative`).
    """

    zoned: ClassVar = ("at",)
    channel: Annotated[ChannelName, "Channel of the query."] | None = None
    thread: Annotated[str, Length(1, MAX_KEY), "Thread of the query in its channel."] | None = None
    at: Annotated[datetime | None, "Time of the query; by default now."] = None
    profile: Annotated[Name, "Weights of the parts of a score: default or multiplicative."] = "default"


@dataclass(frozen=True, slots=True)
class Query(Validated):
    """A query to one collection, or to all with `*`.

    `query` is the text that is searched for and `vector` its embedding, where the caller has it already;
    `min_similarity` is the lowest raw cosine similarity of a hit (-1 to 1, None: no limit) and `limit` the
    maximum number of hits. There are no hits if the probability that they hold the answer is below
    `min_confidence` (0 to 1). `rerank` applies the reranker of the settings, if there is one. `query_context`
    adds the parts of a score that depend on where and when a query is asked; `thread_messages` is the maximum
    number of messages of its thread that are added to a hit. `as_of` asks for the state known at that instant
    (None: now). `graph` adds scores of entities in passages and of the graphs that connect them (None: none).
    `min_trust` is the lowest level of a hit (None: any). With `current`, no hit is of a document that another
    one supersedes.
    """

    zoned: ClassVar = ("as_of",)
    query: QueryText
    collection: Annotated[CollectionName, "Name or id of a collection; `*`: all that you may read."] = (
        "default"
    )
    filter: DocumentFilter = EVERYTHING
    limit: Annotated[HitLimit, NullIsDefault] = DEFAULT_HITS
    min_similarity: MinSimilarity | None = None
    min_confidence: MinConfidence = 0.0
    retrievers: Annotated[tuple[Retriever, ...], Length(0, 2), NullIsDefault, "Retrievers that are used."] = (
        "keyword",
        "vector",
    )
    vector: Annotated[Vector | None, "Embedding of the query, if the caller has it."] = None
    rerank: Annotated[bool, "Rerank the hits, where a reranker is set."] = True
    query_context: Annotated[QueryContext | None, "Channel, thread and time of the query."] = None
    thread_messages: ThreadMessages = 0
    as_of: AsOf | None = None
    graph: Annotated[GraphExpansion | None, "How graphs are used; none: not at all."] = None
    min_trust: LowestTrust | None = None
    current: Annotated[bool, "Leave out documents that others supersede."] = False


class QueryOptions(TypedDict, total=False):
    """The fields of a Query besides `query`, as keyword arguments."""

    collection: str
    filter: Filter
    limit: int
    min_similarity: float | None
    min_confidence: float
    retrievers: tuple[Retriever, ...]
    vector: tuple[float, ...] | None
    rerank: bool
    query_context: QueryContext | None
    thread_messages: int
    as_of: datetime | None
    graph: GraphExpansion | None
    min_trust: MinTrust | None
    current: bool


@dataclass(frozen=True, slots=True)
class WindowForm(Checked):
    """How a window is shown, and what it begins with.

    `format` is text, xml, json, messages or guarded. With `parts`, those of the window divide the whole
    budget. With `previous`, the `state` of an earlier window, it begins with what is still allowed of that
    window.
    """

    format: Annotated[WindowFormat, "Form of the window."] = "text"
    parts: Annotated[bool, "Divide the whole budget into the parts of the window."] = False
    previous: Annotated[str | None, "State of the window that this one begins with."] = None


class WindowFormOptions(TypedDict, total=False):
    """The fields of a WindowForm, as keyword arguments."""

    format: WindowFormat
    parts: bool
    previous: str | None


class QueryWindowOptions(QueryOptions, WindowFormOptions, total=False):
    """The options of a window of a query."""


@dataclass(frozen=True, slots=True)
class Budget(Checked):
    """The token limit of a window, its tokenizer, and what else the limit must cover.

    `system` and `query` are texts that stand beside the window in the same prompt; `reserved_tokens` is
    the number of tokens kept free for the model's reply. 0 tokens means none.
    """

    max_tokens: Annotated[TokenLimit, "Maximum number of tokens.", Example(1_000)]
    tokenizer: Tokenizer = "o200k_base"
    system: Annotated[str, Length(0, MAX_QUERY), "A system prompt that `max_tokens` must also cover."] = ""
    query: Annotated[str, Length(0, MAX_QUERY), "A user message that `max_tokens` must also cover."] = ""
    reserved_tokens: Annotated[TokenLimit, "Tokens kept free for the answer."] = 0


WindowTokens = Annotated[
    int | Budget,
    Range(0),
    "Tokens counted with o200k_base, or a budget.",
    Example(1_000),
]
