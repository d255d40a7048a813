"""The stages of a document in a write: its stored version, planned, numbered and inserted."""

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import repeat
from typing import Literal

from conspectus.deferred import dataclass
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.model.quarantine import as_given
from conspectus.model.records import Chunk, Collection, Document, EmbeddingSpace, PreparedDocument, Written
from conspectus.model.trust import Origin, Trust
from conspectus.records.core.changes import ChangeRange
from conspectus.records.core.embeddings import ClientVector
from conspectus.records.core.levels import level_of_quarantined
from conspectus.records.core.rows import DOCUMENT_COLUMNS, to_document
from conspectus.records.core.statements import PreparedStatement

Span = tuple[int, int, str, int | None, str | None, str | None, str | None]
"""Start, end, content hash, page, heading, table header and box of a chunk."""
CollectionsById = Mapping[CollectionId, Collection]


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """The stored state of a document before it is written again."""

    number: int
    collection: CollectionId
    fingerprint: str
    status: str
    error: str | None
    chunks: int
    last_chunk: int | None
    title: str
    author: str | None
    kind: str
    recorded: int
    stored_trust: Trust
    origin: Origin
    quarantine: str | None
    """The metadata of a quarantined document."""

    @property
    def trust(self) -> Trust:
        """The level, of a quarantined document the one that it has once it is released."""
        return self.stored_trust if self.quarantine is None else level_of_quarantined(self.quarantine)

    def same_search_context(self, document: Document) -> bool:
        """Return whether the document's metadata that affects search is unchanged."""
        before = (self.title, self.author, self.kind)
        return before == (document.title, document.author, document.kind)

    def chunk_changes(self, operation: Literal["put", "remove"]) -> Iterator[ChangeRange]:
        """Yield the change of its chunks, if it has any."""
        if self.last_chunk is not None:
            yield ChangeRange(self.collection, operation, self.last_chunk - self.chunks + 1, self.last_chunk)


@dataclass(frozen=True, slots=True)
class BatchCollections:
    """The collections that a batch is written to."""

    collections: CollectionsById
    lacking: Set[CollectionId]
    """The collections with a chunk that lacks a vector."""
    last_mentioned: Mapping[CollectionId, int]
    """Of collections with entity extraction, the last chunk up to which all have their mentions."""


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One document of a batch with the operation to perform."""

    prepared: PreparedDocument
    stored: StoredVersion | None
    outcome: Literal["added", "replaced", "updated", "unchanged"]

    def to_written(self) -> Written:
        """Return the outcome for the caller."""
        return Written(self.prepared.document.id, self.outcome, len(self.prepared.chunks))

    @property
    def outdates_facts(self) -> bool:
        """Return whether facts that were extracted from it no longer hold its text or its trust."""
        stored = self.stored
        if stored is None or stored.kind != "memory":
            return False
        return self.outcome == "replaced" or stored.stored_trust != self.prepared.document.trust

    @property
    def has_another_level(self) -> bool:
        """Return whether a stored document gets another origin or level."""
        new, stored = self.prepared.document, self.stored
        return stored is not None and (stored.origin, stored.trust) != (new.origin, as_given(new).trust)

    def client_vector(self, space: EmbeddingSpace | None) -> ClientVector | None:
        """Return the vector that an update gave for unchanged chunks."""
        vector, stored = self.prepared.vector, self.stored
        if space is None or vector is None or stored is None or stored.last_chunk is None:
            return None
        return ClientVector(stored.last_chunk - stored.chunks + 1, stored.last_chunk, space.name, vector)

    def progress(self, space: EmbeddingSpace | None, client_vector: ClientVector | None) -> dict[str, object]:
        """Return the columns about embedding of an updated document; a failed one is retried."""
        if client_vector is not None:
            return {"status": "embedded", "error": None, "embedded_in": client_vector.space}
        status = "embedded" if self.stored is None else self.stored.status
        if status == "error":
            status = "embedded" if space is None else "pending"
        return {"status": status, "error": None}


@dataclass(frozen=True, slots=True)
class NumberedDocument:
    """A document with its number and that of its first chunk."""

    prepared: PreparedDocument
    number: int
    first: int
    stored: StoredVersion | None

    @property
    def document(self) -> Document:
        """Return the document."""
        return self.prepared.document

    @property
    def last(self) -> int:
        """The number of the last chunk."""
        return self.first + len(self.prepared.chunks) - 1

    def progress(self, space: EmbeddingSpace | None) -> dict[str, object]:
        """Return the columns about chunks and embedding of an inserted document."""
        chunks = len(self.prepared.chunks)
        has_vectors = bool(self.vectors(space))
        return {
            "status": "pending" if chunks and space is not None and not has_vectors else "embedded",
            "error": None,
            "chunks": chunks,
            "last_chunk": self.last if chunks else None,
            "embedded_in": space.name if space is not None and has_vectors else None,
            "unindexable": None,
        }

    def vectors(self, space: EmbeddingSpace | None) -> Sequence[bytes]:
        """Return the given vectors of its chunks in order; empty for another embedding model."""
        if space is None:
            return ()
        if self.prepared.vector is not None:
            return [self.prepared.vector] * len(self.prepared.chunks)
        name, vectors = self.prepared.embedded or ("", ())
        return vectors if name == space.name else ()


@dataclass(frozen=True, slots=True)
class InsertedDocument:
    """An inserted document with the columns of its row."""

    numbered: NumberedDocument
    row: Mapping[str, object]

    def chunks(self, space: EmbeddingSpace | None) -> Iterator[IndexedChunk]:
        """Return its chunks as they are read back."""
        stored = self.numbered.stored
        recorded = {} if stored is None else {"recorded": stored.recorded}
        values = {**self.row, **recorded, "number": self.numbered.number}
        document = to_document([values[column.key] for column in DOCUMENT_COLUMNS])
        vectors = self.numbered.vectors(space) or repeat(None)
        for chunk, vector in zip(self.numbered.prepared.chunks, vectors, strict=False):
            inserted = Chunk(
                id=ChunkId(self.numbered.first + chunk.position),
                document=document.id,
                position=chunk.position,
                text=chunk.text,
                start=chunk.start,
                end=chunk.end,
                tokens=chunk.tokens,
                content_hash=chunk.content_hash,
                page=chunk.page,
                heading=chunk.heading,
                table_header=chunk.table_header,
                box=chunk.box,
            )
            yield IndexedChunk(inserted, document, vector)


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """The result of a plan: the changes for the log, and what the index can take over without reading."""

    collections: CollectionsById
    """The collections as they were before."""
    steps: Sequence[ChangeRange]
    inserted: Sequence[InsertedDocument]
    partial: Set[CollectionId]
    """The collections of which chunks were written that are not in `inserted`."""
    change_numbers: Mapping[CollectionId, int]
    """The sequence number of the change of each collection, if it was allocated."""
    last_mentioned: Mapping[CollectionId, int]
    """The last chunk of each collection whose chunks have all their mentions now."""
    pending_inserts: Sequence[PreparedStatement]
    lacking: Set[CollectionId] | None = None
    """The collections in which an earlier chunk lacks a vector, if known."""
