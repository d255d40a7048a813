"""Results of searches: hits with the parts of their scores, and windows with their trace."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal

from conspectus.deferred import dataclass
from conspectus.model.access import Role
from conspectus.model.annotations import Example
from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId, UserId
from conspectus.model.parameters import AskedQuery, StoredId, StoredKey, StoredSource, StoredText, StoredTitle
from conspectus.model.records import (
    Box,
    Chunk,
    Document,
    EmbeddingSpace,
    ReadBy,
)
from conspectus.model.relations import Successor
from conspectus.model.trust import Origin, Trust

Outcome = Literal["found", "no_match"]
TraceStatus = Literal[
    "included",
    "truncated",
    "duplicate",
    "near_duplicate",
    "below_min_similarity",
    "below_min_confidence",
    "below_min_trust",
    "over_budget",
]


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved chunk. `score` is the sum of `parts`; `bm25` is raw BM25, `similarity` the raw cosine.

    `bm25` is None if no term of the query occurs, `similarity` if there is no vector. `along_with` is the
    chunk of the hit to whose reply chain this one belongs, or whose document its own supersedes; `through`
    are the entities that led to it in the graph, in order. `superseded_by` are the current documents that
    supersede its document. `relations` say how its document is related to others, also by claims without
    effect.
    """

    chunk: Chunk
    document: Document
    score: float
    parts: Mapping[str, float]
    bm25: float | None
    similarity: float | None
    along_with: int | None = None
    through: tuple[str, ...] = ()
    superseded_by: tuple[Successor, ...] = ()
    relations: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of the chunk."""
        return self.chunk.text


@dataclass(frozen=True, slots=True)
class ThreadOutline:
    """The messages of a thread that were read: their positions, and the size of the thread."""

    source: StoredSource
    thread: StoredId
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
    """The hits, best first, and how they were found.

    `below_min_similarity` are candidates that the minimum similarity excludes, `below_min_confidence` all
    others if the minimum confidence does; `below_min_trust`, set by `explain`, those that the minimum level
    does; `plan` are decisions made before the search; `notices` name what
    the result does not cover (for instance texts not embedded yet); `timings` are milliseconds per step;
    `threads` are those that messages were added from; `terms` are those of the query, by the ids of
    collections; `nearest` are the similarities of the sentences of chunks to it.
    `confidence` is the probability (0 to 1) that the hits hold the answer, and `signals` are what it follows
    from; with a minimum confidence above it there are no hits.
    """

    outcome: Outcome
    hits: tuple[Hit, ...]
    below_min_similarity: tuple[Hit, ...] = ()
    below_min_confidence: tuple[Hit, ...] = ()
    below_min_trust: tuple[Hit, ...] = ()
    plan: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    threads: tuple[ThreadOutline, ...] = ()
    confidence: float = 0.0
    signals: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, QueryTerms] = field(default_factory=dict, compare=False, repr=False)
    nearest: Mapping[int, tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __iter__(self) -> Iterator[Hit]:
        """Iterate over the hits, best first."""
        return iter(self.hits)


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit with its relevance to the query (0 to 1); None if it was not reranked."""

    hit: Hit
    relevance: float | None


@dataclass(frozen=True, slots=True)
class Reranking:
    """Hits in the order of a reranker's `model`, or with a notice in the order they had before."""

    results: tuple[RankedHit, ...]
    model: Annotated[str | None, Example("gpt-5-mini")] = None
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a numbered part of the window comes from: characters [start, end) of the document.

    `location` is the path that a page of a connection has now; of other documents it is the key. `trust` is
    the level of the document, `read_by` how its text was read. `box` is the part of the page that a
    recognized text was read from, in thousandths of its width and height: left, top, right, bottom. The
    `table_header` is that of the table that the characters are in the middle of, in Markdown.
    """

    number: int
    document: StoredId
    source: StoredSource
    key: StoredKey
    title: StoredTitle
    start: int
    end: int
    chunks: tuple[int, ...]
    page: int | None = None
    heading: StoredTitle | None = None
    location: Annotated[str, Example("p. 3")] = ""
    trust: Trust = "trusted"
    read_by: ReadBy = "text"
    box: Box | None = None
    table_header: StoredText | None = None


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """The status of a candidate, with its rank, the parts of its score, and its place in its document.

    `tokens` is about what it adds to the window: 0 if it is not included, or replaces a mark of omitted
    messages of the same size. `fits_from`, set by `explain` on request, is a larger `max_tokens` with which
    the whole candidate is in the window, while with one token less it is not. It is found by trying: what is
    in a window of some size need not be in every larger one, nor in none between. If the time for that is
    over, or the largest window does not hold it, `fits_above` is a `max_tokens` with which it is not whole,
    and larger ones were not tried. `origin` and `trust` are those of the document.
    """

    rank: int
    chunk: int
    document: StoredId
    title: StoredTitle
    score: float
    parts: Mapping[str, float]
    status: TraceStatus
    reason: Annotated[str, Example("Both mean the nightly backup.")]
    tokens: int
    source: StoredSource = ""
    key: StoredKey = ""
    heading: StoredTitle | None = None
    start: int = 0
    end: int = 0
    fits_from: int | None = None
    fits_above: int | None = None
    origin: Origin = "user"
    trust: Trust = "trusted"


PartKind = Literal["system", "query", "frame", "header", "passage", "free", "reserved"]


@dataclass(frozen=True, slots=True)
class WindowPart:
    """A part of a budget and its tokens. `start` and `end` are its characters in the text of the window.

    `system` and `query` stand beside the window in the prompt. The window is made of the `header` and the
    text of each `passage` (with its number) and the `frame` around them. `free` tokens are left, `reserved`
    tokens are kept for the answer.
    """

    kind: PartKind
    tokens: int
    number: int | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message of a rendered window."""

    role: Annotated[str, Example("system")]
    content: AskedQuery


BreakReason = Literal["not_found", "filtered", "changed", "stale"]


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """A chunk of the previous window that does not stand at its place any more, and why.

    `not_found`: it was deleted, or you may not read it any more. `filtered`: the query does not allow it.
    `changed`: its header or the text beside it differs. `stale`: the query does not need it, and its tokens
    were needed.
    """

    chunk: int
    reason: BreakReason


@dataclass(frozen=True, slots=True)
class CachePlan:
    """How much of the previous window stands byte for byte at the beginning of this one, and what does not.

    `stable_bytes` are the UTF-8 bytes of that beginning, `stable_characters` its characters in the text of
    the window, `stable_tokens` its tokens. `breaks` are in the order of the previous window.
    """

    stable_bytes: int
    stable_characters: int
    stable_tokens: int
    breaks: tuple[CacheBreak, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Rendered context of exactly `tokens` ≤ `max_tokens` tokens, with its citations and its trace.

    `messages` is set by the format `messages` only; in all other formats, `tokens` are those of `text`.
    `parts`, set by `explain` and on request, divide the whole budget: their tokens add up to it.
    `confidence` is the probability (0 to 1) that the best hits hold the answer, `signals` what it follows
    from. `state` names the chunks of the window and no text: given as `previous`, the next window begins with
    them. Such a window has a `cache_plan`. `query` is the text that was searched for. `answer` is the id of
    its answer record, if one is kept.
    """

    outcome: Outcome
    text: StoredText
    tokens: int
    max_tokens: int
    tokenizer: Annotated[str, Example("o200k_base")]
    citations: tuple[Citation, ...]
    trace: tuple[TraceEntry, ...]
    messages: tuple[Message, ...] = ()
    notices: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    confidence: float = 0.0
    signals: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[WindowPart, ...] = ()
    state: str = ""
    cache_plan: CachePlan | None = None
    query: AskedQuery = ""
    answer: str = ""

    def __str__(self) -> str:
        """Return the text, as a prompt has it."""
        return self.text


@dataclass(frozen=True, slots=True)
class MissingGrant:
    """A grant that a user lacks: a role on a source.

    `candidates` are the entries of a trace that it would let the user see, `passages` those of them that are
    in the window. If a connection mirrors the source and the user is none of its viewers, `viewers` are the
    people and groups that the remote lets read it: a role alone does not help then.
    """

    source: SourceId
    source_name: StoredSource
    role: Role
    candidates: int
    passages: int
    viewers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ExplanationAs:
    """The window of another user for a query, your own, and the grants for what only you can see.

    The scores of the two windows are not to be compared.
    """

    user: UserId
    window: ContextWindow
    own: ContextWindow
    missing_grants: tuple[MissingGrant, ...]


@dataclass(frozen=True, slots=True)
class Feedback:
    """The judgment of a user whether a chunk answers a query: it was `used` for the answer, or is wrong."""

    id: StoredId
    collection: CollectionId
    source: SourceId
    document: DocumentId
    chunk: ChunkId
    user: UserId
    query: AskedQuery
    used: bool
    created: datetime


@dataclass(frozen=True, slots=True)
class FeedbackPage:
    """Feedback, newest first; `next` is the cursor of the page after this one, if any."""

    feedback: tuple[Feedback, ...]
    next: str | None


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
"""All nine sets of docs/benchmarks/evidence.md together, by `conspectus eval similarity`."""


def has_measured_similarity(space: EmbeddingSpace | None) -> Similarity | None:
    """Return the measured similarities of an embedding model; None for all but the included one."""
    return MINILM if space is not None and space.model == "all-MiniLM-L6-v2" else None
