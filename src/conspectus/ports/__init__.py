"""Ports: the protocols that adapters implement.

Imports model.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from conspectus.model.channels import ArchiveKind, ChatArchive
from conspectus.model.filter import Filter
from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId, UserId
from conspectus.model.index import (
    Disagreement,
    IndexedChunk,
    IndexStatus,
    PutChunks,
    TermStatistic,
    WriteResult,
)
from conspectus.model.records import (
    Change,
    Collection,
    Document,
    EmbeddingSpace,
    Metadata,
    NewDocument,
    PreparedDocument,
    Receipt,
    Source,
    StoredChunk,
    StoredThread,
)
from conspectus.ports.streams import Timelines

Floats: TypeAlias = NDArray[np.float64]
Vectors: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]

CountTokens: TypeAlias = Callable[[str], int]
Clock: TypeAlias = Callable[[], datetime]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the step, the amount done, and the total (0: unknown)."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A query to an index: a filter, words and/or a unit vector, and a limit per retriever.

    With `terms`, analyzed terms are searched instead of those of the words. With `sources`, BM25 weighs each
    term by the mean of its idf in the collection and in these sources together, whatever the filter, if they
    have at most `Bm25.most_in_sources` chunks.
    """

    filter: Filter
    words: str | None
    vector: Vectors | None
    limit: int
    terms: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of both retrievers, sorted by chunk id, with the raw scores of both.

    `words` is BM25 (0 if no term matches), `cosine` is NaN if the chunk has no vector or the probe had none.
    `terms` are the query's distinct terms in order of first appearance, `total` the number of live chunks in
    the index, and `threads` whether any of those is in a thread, whatever the filter. `exact` are the ids of
    chunks that contain a rare identifier of the query; an index leaves it empty.
    """

    ids: Ids
    words: Floats
    cosine: Floats
    terms: tuple[TermStatistic, ...]
    total: int
    threads: bool
    exact: Ids = field(default_factory=lambda: np.zeros(0, np.int64))


class Reader(Protocol):
    """The part of the records that an index reads: one collection, with the vectors of one model."""

    async def last_sequence(self) -> int:
        """Return the sequence of the newest committed change, 0 if there is none."""
        ...

    async def changes_since(self, sequence: int, *, limit: int) -> Sequence[Change]:
        """Return committed changes after `sequence`, oldest first, with complete transactions.

        A change may refer to no existing chunk: it only advances the index.
        """
        ...

    async def chunks(self, first: ChunkId, last: ChunkId) -> Sequence[IndexedChunk]:
        """Return the current live chunks with first ≤ id ≤ last, by id."""
        ...

    def scan(self, after: ChunkId | None = None) -> AsyncIterator[Sequence[IndexedChunk]]:
        """Yield all live chunks by id (those after `after`), in batches."""
        ...


class Index(Protocol):
    """A search index, derived from the records: a pure function of them up to `applied()`."""

    def applied(self) -> int:
        """The sequence number up to which queries see the records."""
        ...

    async def apply(self, changes: Sequence[Change], chunks: PutChunks | None = None) -> None:
        """Apply changes in order; they become visible to queries atomically. Idempotent.

        `chunks` are given only with changes that directly follow `applied()`; otherwise they are read.
        """
        ...

    async def search(self, probe: Probe) -> Candidates:
        """Return the best `limit` matching chunks of each retriever, as one union with both raw scores."""
        ...

    async def score(self, ids: Ids, probe: Probe) -> Candidates:
        """Return raw scores of the given chunks, without those that do not exist or match the filter."""
        ...

    async def check(self) -> Sequence[Disagreement]:
        """Return every difference from the records, at the sequence that the index has applied."""
        ...

    async def flush(self, *, least: int = 1) -> None:
        """Persist everything committed, if at least `least` chunks are in memory, for a fast opening.

        An index without files does nothing.
        """
        ...

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild everything from the records while queries use the old state."""
        ...

    async def purge(self) -> None:
        """Return when no file of the index contains removed chunks."""
        ...

    async def status(self) -> IndexStatus:
        """Return sizes and counts."""
        ...

    async def close(self) -> None:
        """Close files. What was applied and not persisted is read from the records at the next opening."""
        ...


class Embedder(Protocol):
    """Converts texts to unit vectors. Documents and queries may be embedded differently."""

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding model of all its vectors."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows of shape (len(texts), dimensions)."""
        ...

    async def embed_query(self, text: str) -> Vectors:
        """Return a unit vector of shape (dimensions,)."""
        ...

    async def close(self) -> None:
        """Close open resources."""
        ...


@runtime_checkable
class LanguageAware(Protocol):
    """An embedder that knows for which texts its vectors are meaningful."""

    def knows(self, text: str) -> bool:
        """Return whether the model was trained on the language of a text, judged by its script."""
        ...


class Records(Timelines, Protocol):
    """The system of record. Every method is one transaction; every write appends its change rows."""

    def visible_to(self, person: UserId) -> "Records":
        """Return the records as a person may read them, if the store has row security."""
        ...

    async def create_collection(self, collection: Collection) -> Collection:
        """Store a collection, or return the stored one of that name."""
        ...

    async def collection(self, name: str) -> Collection | None:
        """Return the collection of that name, else of that id."""
        ...

    async def change_collection(
        self, collection: CollectionId, *, name: str | None = None, description: str | None = None
    ) -> Collection:
        """Change the given fields. Raises NotFound, or Conflict if the name is taken."""
        ...

    async def collections(self) -> Sequence[Collection]:
        """Return all collections by name."""
        ...

    async def delete_collection(self, collection: CollectionId) -> Receipt:
        """Delete a collection with everything in it."""
        ...

    async def put_source(self, source: Source) -> Source:
        """Store a source, or replace the metadata of the one of that name in the collection."""
        ...

    async def change_source(
        self, source: SourceId, *, name: str | None = None, metadata: Metadata | None = None
    ) -> Source:
        """Change the given fields. Raises NotFound, or Conflict if the name is taken in its collection."""
        ...

    async def delete_source(self, source: SourceId) -> Receipt:
        """Delete a source with documents, chunks, vectors and grants in one transaction. Raises NotFound."""
        ...

    async def sources(
        self, collection: CollectionId, *, called: Sequence[str] | None = None
    ) -> Sequence[Source]:
        """Return the sources of a collection by name; with `called`, those with these ids or names."""
        ...

    async def find_with_sources(
        self, names: Sequence[str], called: str
    ) -> Sequence[tuple[Collection, Sequence[Source]]]:
        """Return the collections of these names or ids, each with its sources called so."""
        ...

    async def write(self, documents: Sequence[PreparedDocument]) -> WriteResult:
        """Add or replace documents with their chunks in one transaction, in order.

        A replaced document keeps its `recorded` time; its old chunks and vectors are deleted in the same
        transaction. If title, author, kind and chunks of a document are unchanged (by content hash, span,
        page and heading), it keeps its chunks and vectors, and only its other fields change. Raises NotFound
        for an unknown source, or a parent that is not in the same source; PreconditionFailed if a document
        does not match `if_match`.
        """
        ...

    async def documents(self, ids: Sequence[DocumentId]) -> Sequence[Document]:
        """Return the documents that exist, in the given order."""
        ...

    async def list(
        self, collection: CollectionId, where: Filter, *, after: str | None = None, limit: int = 100
    ) -> tuple[Sequence[Document], str | None]:
        """Return a page of matching documents in recording order, and the cursor of the next page.

        The filter is applied before the limit; `position` does not exist for a document.
        """
        ...

    async def count(self, collection: CollectionId, where: Filter) -> int:
        """Return the number of matching documents."""
        ...

    async def text(self, document: DocumentId) -> str:
        """Return the full text, joined from the chunks. Raises NotFound."""
        ...

    async def texts(self, documents: Sequence[DocumentId]) -> Mapping[DocumentId, str]:
        """Return the full texts of documents that exist, in one snapshot."""
        ...

    async def document_chunks(self, document: DocumentId) -> Sequence[StoredChunk]:
        """Return a document's chunks by position."""
        ...

    async def delete(self, ids: Sequence[DocumentId], *, now: datetime | None = None) -> Receipt:
        """Delete documents with children, chunks and vectors in one transaction. Unknown ids count 0.

        Of a memory, its id and the time of deletion are kept (`now`, None: the current time), but no text.
        """
        ...

    async def hydrate(self, ids: Sequence[ChunkId]) -> Sequence[StoredChunk]:
        """Return the chunks that exist, in the given order, with their neighbors.

        Neighbors are the chunks before and after in the order (sequence, occurred start, document, position)
        of the same source and thread; without a thread, in the same document.
        """
        ...

    async def thread(
        self, source: SourceId, thread: str, *, limit: int, around: Sequence[DocumentId] = ()
    ) -> StoredThread:
        """Return the documents of a thread that have text, in order.

        Of more than about `limit`, the first, the last, and those around the documents of `around` are
        returned in equal parts; those of `around` always.
        """
        ...

    async def latest(
        self,
        source: SourceId,
        *,
        limit: int,
        until: datetime | None = None,
        before: Document | None = None,
    ) -> Sequence[StoredChunk]:
        """Return the first chunk of each of the newest documents of a source by event time, newest first.

        Documents without text are skipped, and those without an event time, unless there are no others: then
        the order is that of sequences. Of equal times, the larger id comes first. With `until`, only those of
        that time or before; with `before`, a document of the source, only those that follow it in this order.
        """
        ...

    async def beginnings(self, documents: Sequence[DocumentId]) -> Sequence[StoredChunk]:
        """Return the first chunk of each document that exists and has text, in the given order."""
        ...

    async def state(self, collection: CollectionId) -> tuple[int, EmbeddingSpace | None]:
        """Return the newest change's sequence and the active embedding model, read consistently."""
        ...

    async def unembedded(
        self, collection: CollectionId, space: EmbeddingSpace, *, limit: int, among: range | None = None
    ) -> Sequence[IndexedChunk]:
        """Return chunks without a vector of the model, oldest first, of documents without an error.

        With `among`, only of documents whose last chunk's id it contains.
        """
        ...

    async def oldest_unembedded(
        self, collection: CollectionId, space: EmbeddingSpace, *, start: int
    ) -> ChunkId | None:
        """Return the last chunk's id of the oldest such document, from `start` on."""
        ...

    async def count_unembedded(self, collection: CollectionId, space: EmbeddingSpace) -> int:
        """Count the chunks without a vector of the model, without those of failed documents."""
        ...

    async def put_vectors(
        self, collection: CollectionId, space: EmbeddingSpace, vectors: Sequence[tuple[ChunkId, bytes]]
    ) -> int:
        """Store little-endian float16 vectors of chunks of a collection. Returns their number.

        Vectors of chunks that do not exist, or have one already, are ignored.
        """
        ...

    async def fail(self, document: DocumentId, error: str) -> None:
        """Mark a document as failed to embed. Keyword search still finds it."""
        ...

    async def switch_space(self, collection: CollectionId, space: EmbeddingSpace) -> int:
        """Activate the embedding model, and delete the vectors of all others. Returns their number."""
        ...

    def reader(self, collection: CollectionId, space: EmbeddingSpace | None) -> Reader:
        """Return the restricted interface for an index."""
        ...

    async def counts(self, collection: CollectionId) -> dict[str, int]:
        """Return counts: sources, documents, chunks, vectors, pending, error."""
        ...

    async def check(self) -> Sequence[str]:
        """Return the problems that the database finds in its files and references."""
        ...

    async def begin_purge(self, collection: CollectionId) -> None:
        """Record that content about to be deleted from the collection must be erased."""
        ...

    async def unfinished_purges(self) -> Mapping[str, CollectionId]:
        """Return the collections of unfinished purges by purge id."""
        ...

    async def purge(self, done: Sequence[str] = ()) -> None:
        """Return when no file of the store contains deleted content or stored responses with it.

        `done` are the purges that end with this one.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to add: its path, and its name relative to the folder that the user named.

    `is_named` means that the user named the file itself.
    """

    path: Path
    name: str
    size: int
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The documents of one file. `notice` is a warning for the user, e.g. of a guessed encoding."""

    documents: tuple[NewDocument, ...]
    encoding: str | None = None
    notice: str | None = None


class Archives(Protocol):
    """Reads exports of chat platforms."""

    def read(self, path: Path, *, kind: ArchiveKind | None = None) -> ChatArchive:
        """Return all channels of an export. Its platform is detected if `kind` is not given.

        Raises UnreadableFile, UnsupportedContent or TooLarge.
        """
        ...


class Files(Protocol):
    """Reads files and folders."""

    def discover(self, paths: Sequence[Path]) -> Iterator[FoundFile]:
        """Yield every file below the paths that can be added, by name. Link loops are entered once."""
        ...

    def parse(self, found: FoundFile) -> ParsedFile:
        """Return the file's documents. Raises UnreadableFile or TooLarge."""
        ...

    def parse_bytes(self, data: bytes, name: str, *, charset: str | None = None) -> ParsedFile:
        """Return the documents of a file in memory. `charset` is the encoding declared by its sender."""
        ...
