"""Ports: the protocols that adapters implement.

Imports model.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError
from conspectus.model.channels import ArchiveKind, ChatArchive
from conspectus.model.filter import EVERYTHING, Filter
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
    DocumentSort,
    EmbeddingSpace,
    Metadata,
    NewDocument,
    PreparedDocument,
    Receipt,
    Source,
    Status,
    StoredChunk,
    StoredThread,
)
from conspectus.model.relations import RelationRows, Statement
from conspectus.model.results import Feedback, FeedbackPage
from conspectus.model.sensitive_reports import ColumnText, Reach
from conspectus.ports.streams import Timelines

Floats: TypeAlias = NDArray[np.float64]
Vectors: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]

CountTokens: TypeAlias = Callable[[str], int]
Clock: TypeAlias = Callable[[], datetime]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: not known)."""


@dataclass(frozen=True, slots=True)
class TextAnalysis:
    """The analysis of texts for keyword search.

    `analyzer` returns what gives the terms of a text in a language. `find_faults` analyzes texts in a process
    of its own, and returns for each the name of the error that it raises, None for none.
    """

    analyzer: Callable[[str | None], Callable[[str], Sequence[str]]]
    find_faults: Callable[[str | None, Sequence[str]], Awaitable[Sequence[str | None]]]


@dataclass(frozen=True, slots=True)
class Probe:
    """A query to an index: a filter, words and/or a unit vector of its space, and a limit per retriever.

    With `terms`, analyzed terms are searched instead of those of the words. With `sources`, BM25 weighs each
    term by its idf in these sources as a whole, whatever the filter, if they have at most
    `Bm25.max_source_chunks` chunks together.
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

    `words` is BM25 (0 where no term matches), `cosine` is NaN where the chunk has no vector or the probe had
    none. `terms` are the query's distinct terms in order of first appearance, `total` the number of live
    chunks in the index, and `threads` whether any of those is in a thread, whatever the filter. `least` is
    what a term of weight 1 adds to `words` at least, if the text is no more than twice as long as the query.
    `exact` are the ids of chunks that hold a rare identifier of the query; an index leaves it empty.
    """

    ids: Ids
    words: Floats
    cosine: Floats
    terms: tuple[TermStatistic, ...]
    total: int
    threads: bool
    least: float
    exact: Ids = field(default_factory=lambda: np.zeros(0, np.int64))


class Reader(Protocol):
    """All of Records that an index may see: one collection, with the vectors of one space."""

    async def last_sequence(self) -> int:
        """The sequence of the newest committed change, 0 if there is none."""

    async def changes_since(self, sequence: int, *, limit: int) -> Sequence[Change]:
        """Committed changes after `sequence`, oldest first; never ends inside a transaction's changes.

        A change may name no chunk that exists: it only takes the index further.
        """

    async def chunks(self, first: ChunkId, last: ChunkId) -> Sequence[IndexedChunk]:
        """The live chunks with first ≤ id ≤ last, by id, as they are now."""

    def scan(self, after: ChunkId | None = None) -> AsyncIterator[Sequence[IndexedChunk]]:
        """All live chunks by id (those after `after`), in batches."""


class Index(Protocol):
    """Which chunks, how similar. Derived from Records: a pure function of them up to `applied_sequence()`."""

    def applied_sequence(self) -> int:
        """The sequence number up to which queries see the records."""

    async def apply(self, changes: Sequence[Change], chunks: PutChunks | None = None) -> None:
        """Apply changes in order; visible to the next query all at once. Applying twice is harmless.

        `chunks` are given only with changes that follow right after `applied_sequence()`; else they are read.
        """

    async def search(self, probe: Probe) -> Candidates:
        """The best `limit` chunks of each arm under the filter, as one union with both raw scores."""

    async def score(self, ids: Ids, probe: Probe) -> Candidates:
        """Raw scores of the given chunks; those that do not exist or fail the filter are left out."""

    async def check(self) -> Sequence[Disagreement]:
        """Every difference from the records, at the sequence that the index has applied."""

    async def flush(self, *, least: int = 1, merge: bool = False) -> None:
        """Write down all that is committed, if at least `least` chunks wait, so that openings are quick.

        With `merge`, small parts become one if this process wrote some, so that searches are quick.
        An index that writes nothing down does nothing.
        """

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild everything from the records while queries use the old state."""

    async def purge(self) -> None:
        """Return only when no file of the index holds anything of removed chunks."""

    async def status(self) -> IndexStatus:
        """Sizes and counts."""

    async def close(self) -> None:
        """Release files; what was applied but not written down is read from Records at the next opening."""


class Embedder(Protocol):
    """Texts to unit vectors of one space. Documents and queries may be embedded differently.

    An optional method `knows(text)` says whether the model was trained on the language of a text.
    """

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all vectors this embedder makes."""

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows of shape (len(texts), dimensions)."""

    async def embed_query(self, text: str) -> Vectors:
        """A unit vector of shape (dimensions,)."""

    async def close(self) -> None:
        """Release what the embedder holds."""


class Records(Timelines, Protocol):
    """The system of record. Every method is one transaction; every write appends its change rows."""

    def visible_to(self, person: UserId) -> "Records":
        """The same records for a person's reads, of which a store with a second wall shows no others."""

    def one_snapshot(self) -> AbstractContextManager[None]:
        """Save round trips: the reads of this task may be one transaction, until it writes or the block ends.

        Reads of the index are part of it, if it is in the same database. It holds a connection.
        """

    async def create_collection(self, collection: Collection) -> Collection:
        """Store it, or return the stored one of that name."""

    async def collection(self, name: str) -> Collection | None:
        """The collection of that name, else of that id."""

    async def change_collection(
        self, collection: CollectionId, *, name: str | None = None, description: str | None = None
    ) -> Collection:
        """Change what is given. Raises NotFound, or Conflict if the name is taken."""

    async def collections(self) -> Sequence[Collection]:
        """All collections by name."""

    async def delete_collection(self, collection: CollectionId) -> Receipt:
        """Delete it with everything in it."""

    async def put_source(self, source: Source) -> Source:
        """Store it, or replace the metadata of the stored one of that name in that collection."""

    async def change_source(
        self, source: SourceId, *, name: str | None = None, metadata: Metadata | None = None
    ) -> Source:
        """Change the given fields. Raises NotFound, or Conflict if the name is taken in its collection."""

    async def delete_source(self, source: SourceId) -> Receipt:
        """Delete it with its documents, chunks, vectors and grants in one transaction. Raises NotFound."""

    async def sources(
        self, collection: CollectionId, *, names: Sequence[str] | None = None
    ) -> Sequence[Source]:
        """All sources of a collection by name; with `names` those that have one of these ids or names."""

    async def find_with_sources(
        self, names: Sequence[str], source: str
    ) -> Sequence[tuple[Collection, Sequence[Source]]]:
        """The collections that have one of these names or ids, each with its sources of that name or id."""

    async def write(self, documents: Sequence[PreparedDocument]) -> WriteResult:
        """Add or replace documents with their chunks, all in one transaction, in the order given.

        A replaced document keeps its `recorded` time; its old chunks and vectors go in the same commit.
        A document whose title, author, kind and chunks are the stored ones (by content hash, span, page
        and heading) keeps its chunks and vectors, and only its other fields change. Given mentions are stored
        if the collection has entity extraction and all of its earlier chunks have theirs. Raises NotFound for
        an unknown source, or a parent that is not in the same source; PreconditionFailed where a document is
        not `if_match`.
        """

    async def documents(self, ids: Sequence[DocumentId]) -> Sequence[Document]:
        """Those documents that exist, in the order asked."""

    async def list(
        self,
        collection: CollectionId,
        where: Filter,
        *,
        after: str | None = None,
        limit: int = 100,
        status: Status | None = None,
        sort: DocumentSort = "added",
    ) -> tuple[Sequence[Document], str | None]:
        """A page of documents that match, in order, and the cursor of the next page.

        Equal ones are in the order of their ids, and `-` reverses all. The title, or else the key, sorts by
        its first 100 code points, without the case of ASCII letters. The filter and the status are applied
        before the limit; `position` does not exist for a document.
        """

    async def list_by_key(
        self, source: SourceId, *, start: str = "", end: str | None = None, limit: int
    ) -> Sequence[Document]:
        """The first documents of a source with start ≤ key < end, by key in the order of code points."""

    async def has_statements(self, collection: CollectionId) -> bool:
        """Whether any document of the collection states anything about another."""

    async def read_relations(
        self, collection: CollectionId, ids: Sequence[DocumentId] | None = None
    ) -> RelationRows:
        """The statements by and about these documents, with the documents that they name; None: all of them.

        A document is named by its id too. Nothing is left out for the rights of anybody.
        """

    async def set_relation(self, document: DocumentId, statement: Statement, editable: Sequence[str]) -> None:
        """Store a relation that a person sets, in place of the same one. Raises NotFound."""

    async def delete_relation(self, document: DocumentId, statement: Statement) -> int:
        """Delete a relation that a person set; return how many there were. Raises NotFound."""

    async def count(self, collection: CollectionId, where: Filter, *, status: Status | None = None) -> int:
        """How many documents match."""

    async def text(self, document: DocumentId) -> str:
        """The full text, put together from the chunks. Raises NotFound."""

    async def texts(self, documents: Sequence[DocumentId]) -> Mapping[DocumentId, str]:
        """The full texts of those that exist, as they are at one time."""

    async def column_texts(
        self,
        collection: CollectionId,
        *,
        reach: Reach,
        sources: Sequence[SourceId] | None = None,
        after: str | None = None,
        limit: int,
    ) -> tuple[Sequence[ColumnText], str | None]:
        """A page of the texts that people wrote, except in documents, and the cursor of the next page.

        They are those of the collection's sources (all, or these), of the collection itself, or of the store.
        """

    async def document_chunks(self, document: DocumentId) -> Sequence[StoredChunk]:
        """A document's chunks by position."""

    async def delete(self, ids: Sequence[DocumentId], *, now: datetime | None = None) -> Receipt:
        """Delete documents with children, chunks and vectors in one transaction; unknown ids count 0.

        Of a memory its id and the time are kept (`now`, None: the present), but none of its text.
        """

    async def hydrate(self, ids: Sequence[ChunkId]) -> Sequence[StoredChunk]:
        """Those chunks that exist, in the order asked, with their neighbors.

        Neighbors are the chunks before and after in the order (sequence, occurred start, document,
        position) of the same source and thread; without a thread, in the same document.
        """

    async def thread(
        self, source: SourceId, thread: str, *, limit: int, around: Sequence[DocumentId] = ()
    ) -> StoredThread:
        """The documents of a thread that have text, in its order.

        Of more than about `limit`, the first, the last, and those around the documents of `around`, in equal
        shares; those of `around` in any case.
        """

    async def latest(
        self,
        source: SourceId,
        *,
        limit: int,
        until: datetime | None = None,
        before: Document | None = None,
    ) -> Sequence[StoredChunk]:
        """The first chunk of each of the newest documents of a source by event time, newest first.

        Documents without an event time follow all others, the highest sequence first. Of equal times or
        sequences, the one stored later comes first. Documents without text are left out. With `until` only
        those with a time, of that time or before; with `before`, a document of the source, only those that
        follow it in this order.
        """

    async def beginnings(self, documents: Sequence[DocumentId]) -> Sequence[StoredChunk]:
        """The first chunk of each of those documents that exist and have text, in the order asked."""

    async def state(self, collection: CollectionId) -> tuple[int, EmbeddingSpace | None]:
        """The newest change's sequence and the space that answers, read in one go."""

    async def list_unembedded(
        self, collection: CollectionId, space: EmbeddingSpace, *, limit: int, among: range | None = None
    ) -> Sequence[IndexedChunk]:
        """Chunks without a vector in the space, oldest first, of documents that are not in error.

        With `among` only of documents whose last chunk's id it holds.
        """

    async def oldest_unembedded(
        self, collection: CollectionId, space: EmbeddingSpace, *, start: int
    ) -> ChunkId | None:
        """The id of the last chunk of the oldest document of those, none before `start`."""

    async def count_unembedded(self, collection: CollectionId, space: EmbeddingSpace) -> int:
        """How many chunks have no vector in the space, documents in error left out."""

    async def put_vectors(
        self, collection: CollectionId, space: EmbeddingSpace, vectors: Sequence[tuple[ChunkId, bytes]]
    ) -> int:
        """Store little-endian float16 vectors of chunks of a collection and say how many.

        Vectors of chunks that do not exist, or have one already, are ignored.
        """

    async def fail(self, document: DocumentId, error: str) -> None:
        """Mark a document as impossible to embed; its words stay searchable."""

    async def has_pending(self, collection: CollectionId, where: Filter = EVERYTHING) -> bool:
        """Whether a matching document has chunks that may lack a vector."""

    async def has_failed(
        self, collection: CollectionId, where: Filter = EVERYTHING, *, refused: bool
    ) -> bool:
        """Whether `retry_failed` would mark a matching document as pending."""

    async def retry_failed(self, collection: CollectionId, *, refused: bool) -> int:
        """Mark failed documents as pending, those with a refused text only if asked for; say how many."""

    async def list_pending_collections(self) -> Set[CollectionId]:
        """The collections with a document whose chunks may lack a vector."""

    async def unindexable(self, collection: CollectionId, *, limit: int) -> Sequence[IndexedChunk]:
        """The first chunks of a collection that are marked as impossible to analyze, without vectors."""

    async def mark_unindexable(self, collection: CollectionId, reasons: Mapping[ChunkId, str | None]) -> None:
        """Store why chunks cannot be analyzed, None for those that can; indexes read them again."""

    async def switch_space(self, collection: CollectionId, space: EmbeddingSpace) -> int:
        """Let the space answer from now on and delete the vectors of all others; returns how many went."""

    def reader(
        self, collection: CollectionId, space: EmbeddingSpace | None, created: datetime | None = None
    ) -> Reader:
        """The narrow view an index gets.

        With the time when the collection was `created`, a later collection of the same name is another one,
        and `last_sequence` raises NotFound.
        """

    async def counts(self, collection: CollectionId) -> dict[str, int]:
        """Numbers for status: sources, documents, chunks, vectors, pending, error, unindexable."""

    async def check(self) -> Sequence[str]:
        """The problems that the database finds in its files and references; empty if there are none."""

    async def begin_purge(self, collection: CollectionId) -> None:
        """Note that what is about to be deleted from the collection must be erased."""

    async def list_unfinished_purges(self) -> Mapping[str, CollectionId]:
        """The collections of purges that were begun and did not end, by the ids of the purges."""

    async def purge(self, done: Sequence[str] = (), *, waits: bool = True) -> None:
        """Return only when no file of the store holds deleted content, nor an answer that repeats it.

        `done` are the purges that end with this one. Raises StorageBusy while somebody may still read what
        was deleted: after a timeout, or soon unless it waits.
        """

    async def close(self) -> None:
        """Release connections."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to add: its path, and its name relative to the folder that the user named.

    `is_named` says that the user named the file itself.
    """

    path: Path
    name: str
    size: int
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The documents of one file; `notice` says what a reader should know, e.g. a guessed encoding.

    `members` are the files inside an archive, a mailbox or a message, at any depth; `may_have_members` says
    that the file is one of these. The documents of a file that is attached to a message have the key of the
    message as `parent`. A file with captions, or a recording, has no documents: it
    becomes a stream.
    """

    documents: tuple[NewDocument, ...]
    encoding: str | None = None
    notice: str | None = None
    members: "tuple[ParsedMember, ...]" = ()
    has_captions: bool = False
    may_have_members: bool = False


@dataclass(frozen=True, slots=True)
class ParsedMember:
    """A file inside another, with what was read of it, or the fault. Its name begins with that of the other.

    UnsupportedContent is the fault of a member that is skipped. `subtitles` are the bytes of a file of
    captions or a recording, which becomes a stream.
    """

    name: str
    file: ParsedFile | None = None
    fault: ConspectusError | None = None
    subtitles: bytes | None = None


@dataclass(frozen=True, slots=True)
class Judgment:
    """Feedback for ranking. `vector` is that of the query (float16) in the embedding model `space`."""

    chunk: ChunkId
    user: UserId
    query: str
    used: bool
    space: str | None = None
    vector: bytes | None = None


class FeedbackStore(Protocol):
    """Judgments of chunks for queries. They end with the chunk, the collection or the user.

    Adding and deleting is a change of the collection: its `sequence` grows.
    """

    async def add(
        self, feedback: Sequence[Feedback], *, space: str | None = None, vector: bytes | None = None
    ) -> None:
        """Store feedback on one query in one collection, in place of feedback with the same ids.

        Raises NotFound for a chunk that the collection does not have.
        """

    async def get(self, feedback: str) -> Feedback | None:
        """The feedback of that id."""

    async def list(
        self,
        collection: CollectionId,
        *,
        user: UserId | None,
        sources: Sequence[SourceId] | None,
        after: str | None,
        limit: int,
    ) -> FeedbackPage:
        """A page, newest first, of one user or of all, and of some sources or of all.

        Raises InvalidInput for a broken cursor.
        """

    async def count(self, sources: Sequence[SourceId]) -> int:
        """The number of judgments of chunks of these sources."""

    async def delete(self, feedback: str) -> bool:
        """Delete it; whether it existed."""

    async def judgments(self, collection: CollectionId, *, limit: int) -> Sequence[Judgment]:
        """The newest feedback of a collection, newest first."""


class Archives(Protocol):
    """Exports of chat platforms to channels."""

    def read(self, path: Path, *, kind: ArchiveKind | None = None) -> ChatArchive:
        """All channels of an export; which platform's is found out where `kind` does not say.

        Raises UnreadableFile, UnsupportedContent or TooLarge.
        """


class Files(Protocol):
    """Files and folders to documents."""

    def discover(self, paths: Sequence[Path]) -> Iterator[FoundFile]:
        """Every file below the paths that can be added, by name; link loops are entered once."""

    def parse(self, file: FoundFile) -> ParsedFile:
        """The file's documents. Raises UnreadableFile or TooLarge."""

    def parse_bytes(self, data: bytes, name: str, *, charset: str | None = None) -> ParsedFile:
        """The documents of a file that is not on disk; `charset` is the encoding that its sender gives."""

    def problems(self) -> Sequence[str]:
        """Problems of the settings that files of some formats would fail for."""
