"""Queries: their options, their context, and the token budget of a window."""

from datetime import datetime
from typing import ClassVar, Literal, TypedDict, get_args

from conspectus.deferred import dataclass
from conspectus.model.checks import Checked
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.trust import MinTrust
from conspectus.model.validation import Validated

Retriever = Literal["keyword", "vector"]
RETRIEVERS: tuple[Retriever, ...] = get_args(Retriever)

EVERYWHERE = "*"
"""The name for all collections that the person may read at least in part."""


@dataclass(frozen=True, slots=True)
class QueryContext(Checked):
    """The channel, thread and time of a query, for scores that depend on them.

    `channel` is the id or name of a source and `thread` the name of a thread in it; `at` is an instant with a
    zone (None: now). `profile` names the weights of the parts of a score (`default` or `multiplicative`).
    """

    zoned: ClassVar = ("at",)
    channel: str | None = None
    thread: str | None = None
    at: datetime | None = None
    profile: str = "default"


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
    `min_trust` is the lowest level of a hit (None: any).
    """

    zoned: ClassVar = ("as_of",)
    query: str
    collection: str = "default"
    filter: Filter = EVERYTHING
    limit: int = 10
    min_similarity: float | None = None
    min_confidence: float = 0.0
    retrievers: tuple[Retriever, ...] = ("keyword", "vector")
    vector: tuple[float, ...] | None = None
    rerank: bool = True
    query_context: QueryContext | None = None
    thread_messages: int = 0
    as_of: datetime | None = None
    graph: GraphExpansion | None = None
    min_trust: MinTrust | None = None


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


@dataclass(frozen=True, slots=True)
class WindowForm(Checked):
    """How a window is shown, and what it begins with.

    `format` is text, xml, json, messages or guarded. With `parts`, those of the window divide the whole
    budget. With `previous`, the `state` of an earlier window, it begins with what is still allowed of that
    window.
    """

    format: str = "text"
    parts: bool = False
    previous: str | None = None


class WindowFormOptions(TypedDict, total=False):
    """The fields of a WindowForm, as keyword arguments."""

    format: str
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

    max_tokens: int
    tokenizer: str = "o200k_base"
    system: str = ""
    query: str = ""
    reserved_tokens: int = 0
