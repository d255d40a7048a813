"""What comes back: hits with their reasons, and windows with their trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from conspectus.model.records import Chunk, Document, EmbeddingSpace

Outcome = Literal["found", "no_match"]
TraceStatus = Literal["included", "truncated", "duplicate", "below_min_similarity", "over_budget"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk found. `score` is the sum of `parts`; `bm25` is raw BM25, `similarity` the raw cosine.

    `bm25` is None where no word of the query occurs, `similarity` where there is no vector. `along_with`
    is the chunk of the hit that brought this one along as a part of its chain; `through` are the names that
    led to it in the graph, in order.
    """

    chunk: Chunk
    document: Document
    score: float
    parts: Mapping[str, float]
    bm25: float | None
    similarity: float | None
    along_with: int | None = None
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadOutline:
    """A thread as far as it was read: how many of its documents stand before each, and how many there are."""

    source: str
    thread: str
    places: Mapping[str, int]
    total: int


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The distinct terms of a query in the language of a collection, with their idf in BM25.

    `vector` is the query's own in the `space` of the collection, where there is one.
    """

    language: str | None
    idf: Mapping[str, float]
    space: EmbeddingSpace | None = None
    vector: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The hits, best first, and how they came about.

    `below_min_similarity` are candidates that the minimum similarity excludes; `plan` names what was decided
    before searching; `notices` say what the answer could not take into account (for instance texts not
    embedded yet); `timings` are milliseconds per step; `threads` are those that messages were added from;
    `terms` are those of the query, by the ids of collections; `nearest` are the similarities of the
    sentences of chunks to it.
    """

    outcome: Outcome
    hits: tuple[Hit, ...]
    below_min_similarity: tuple[Hit, ...] = ()
    plan: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    threads: tuple[ThreadOutline, ...] = ()
    terms: Mapping[str, QueryTerms] = field(default_factory=dict, compare=False, repr=False)
    nearest: Mapping[int, tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit with how well it answers the question (0 to 1); None where no reranker judged it."""

    hit: Hit
    relevance: float | None


@dataclass(frozen=True, slots=True)
class Reranking:
    """Hits in the order of a reranker's `model`, or with a notice in the order they had before."""

    results: tuple[RankedHit, ...]
    model: str | None = None
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a numbered part of the window comes from: characters [start, end) of the document.

    `location` is the path that a page of a connection has now; of other documents it is the key.
    """

    number: int
    document: str
    source: str
    key: str
    title: str
    start: int
    end: int
    chunks: tuple[int, ...]
    page: int | None = None
    heading: str | None = None
    location: str = ""


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One candidate's way: its rank, its score by parts, and why it is in or out.

    `tokens` is about what it adds to the window: 0 where it is out, and where it replaces a mark of messages
    left out that costs as much.
    """

    rank: int
    chunk: int
    document: str
    title: str
    score: float
    parts: Mapping[str, float]
    status: TraceStatus
    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message of a rendered window."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Rendered context that costs exactly `tokens` ≤ `max_tokens`, with its citations and its trace.

    `messages` is filled by the chat renderer only; `text` is what was counted in every other form.
    """

    outcome: Outcome
    text: str
    tokens: int
    max_tokens: int
    tokenizer: str
    citations: tuple[Citation, ...]
    trace: tuple[TraceEntry, ...]
    messages: tuple[Message, ...] = ()
    notices: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The 5th, 50th and 95th percentile of cosine similarities."""

    p5: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Similarity:
    """Similarities of a query and a text that answers it, and of a query and a random other text."""

    related: Percentiles
    unrelated: Percentiles


MINILM = Similarity(related=Percentiles(0.23, 0.55, 0.77), unrelated=Percentiles(-0.07, 0.11, 0.35))
"""All nine sets of docs/models.md together, by `conspectus eval similarity`."""


def measured(space: EmbeddingSpace | None) -> Similarity | None:
    """What was measured for the embedding model of a space; None for all but the shipped one."""
    return MINILM if space is not None and space.model == "all-MiniLM-L6-v2" else None
