"""Collections, sources, documents, chunks and results of the knowledge base."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.model import records
from conspectus.model.results import Hit, RankedHit

CHUNKS: Final = "knowledge_chunks"
"""Metadata of a document with the positions and the metadata of chunks that a caller made."""


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of a user. `embedding_dimensions` is None if it has only keyword search."""

    id: str
    name: str
    description: str
    embedding_dimensions: int | None
    user_id: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Source:
    """Documents of one origin, such as a web domain or a wiki space."""

    id: str
    collection_id: str
    name: str
    source_type: str
    metadata: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Document:
    """A document; `content_hash` is the SHA-256 of its content, None without content.

    `status` is "pending", "embedded" or "error"; without chunks it is "pending". `source` is set in search
    results, and `content` where one document is created or read.
    """

    id: str
    source_id: str
    collection_id: str
    title: str
    metadata: Mapping[str, object]
    status: str
    content_hash: str | None
    chunk_count: int
    error_message: str | None
    source: Source | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a document; `metadata` has its own, and `page` and `heading` if they are known."""

    id: int
    document_id: str
    content: str
    position: int
    token_count: int
    content_hash: str
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A chunk with its cosine distance, 0 (same direction) to 2 (opposite). `hit` is the engine's hit."""

    chunk: Chunk
    document: Document
    distance: float
    hit: Hit = field(repr=False)


@dataclass(frozen=True, slots=True)
class RankedResult:
    """A chunk with its relevance; None without a reranker, for the reason in `notice`."""

    chunk: Chunk
    document: Document
    relevance_score: float | None
    notice: str | None = None


def to_collection(stored: records.Collection) -> Collection:
    """Convert a collection, under the name that its owner gave it."""
    _, _, name = stored.name.rpartition("/")
    dimensions = stored.space.dimensions if stored.space else None
    return Collection(stored.id, name, stored.description, dimensions, stored.owner, stored.created)


def to_source(stored: records.Source) -> Source:
    """Convert a source."""
    return Source(stored.id, stored.collection, stored.name, stored.kind, stored.metadata)


def to_document(
    stored: records.Document, source: Source | None = None, *, content: str | None = None
) -> Document:
    """Convert a document, by default without its content."""
    empty = stored.status == "embedded" and not stored.chunks
    return Document(
        id=stored.id,
        source_id=stored.source,
        collection_id=stored.collection,
        title=stored.title,
        metadata={name: value for name, value in stored.metadata.items() if name != CHUNKS},
        status="pending" if empty else stored.status,
        content_hash=stored.content_hash if stored.characters else None,
        chunk_count=stored.chunks,
        error_message=stored.error,
        source=source,
        content=content,
    )


def chunk_facts(chunks: Sequence[Mapping[str, Any]]) -> records.Metadata:
    """Return the metadata of a document that keep the positions and the metadata of its chunks, if needed."""
    positions = [int(chunk["position"]) for chunk in chunks]
    metadata = [dict(chunk.get("metadata") or {}) for chunk in chunks]
    if positions == list(range(len(chunks))) and not any(metadata):
        return {}
    return {CHUNKS: [[position, facts] for position, facts in zip(positions, metadata, strict=True)]}


def to_chunk(stored: records.Chunk, document: records.Document) -> Chunk:
    """Convert a chunk of a document, with the position and the metadata that it was given."""
    position: int = stored.position
    metadata: Mapping[str, object] = {}
    positions_and_metadata: Any = document.metadata.get(CHUNKS)
    if positions_and_metadata is not None and stored.position < len(positions_and_metadata):
        position, metadata = positions_and_metadata[stored.position]
    facts = {"page": stored.page, "heading": stored.heading}
    return Chunk(
        id=stored.id,
        document_id=stored.document,
        content=stored.text,
        position=position,
        token_count=stored.tokens,
        content_hash=stored.content_hash,
        metadata={**{name: fact for name, fact in facts.items() if fact is not None}, **metadata},
    )


def to_result(hit: Hit, source: Source | None) -> SearchResult:
    """Convert a hit of a vector search."""
    distance = 1.0 - (hit.similarity if hit.similarity is not None else 0.0)
    return SearchResult(to_chunk(hit.chunk, hit.document), to_document(hit.document, source), distance, hit)


def to_ranked(judged: RankedHit, notice: str | None, source: Source | None) -> RankedResult:
    """Convert a hit of a reranker."""
    hit = judged.hit
    return RankedResult(
        to_chunk(hit.chunk, hit.document), to_document(hit.document, source), judged.relevance, notice
    )
