"""The data that an index stores, and its status."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Literal, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.filter import Row, document_row
from conspectus.model.ids import ChunkId
from conspectus.model.records import Change, Chunk, Collection, Document, Kind, Written

ANALYZED_TEXT = "with places"
"""The definition of `analyzed_text`. An index made under another one is rebuilt when it is opened."""
MAX_PLACE_PARTS = 4
"""Most parts of a path that are searched: the name of the file and its nearest folders."""
AUTHORED: frozenset[Kind] = frozenset({"message", "memory"})


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk as it is indexed: terms come from title and text; filters read the document."""

    chunk: Chunk
    document: Document
    vector: bytes | None = None

    @property
    def passage(self) -> str:
        """Return the indexed text: with the title of the document, author of a message, header of a table."""
        return passage(self.document, self.chunk.text_with_header)

    @property
    def analyzed_text(self) -> str:
        """Return the text whose terms are indexed: the passage, and the place of a file."""
        return analyzed_text(self.document, self.chunk.text_with_header)

    @property
    def term_text(self) -> str:
        """Return the analyzed text; of a chunk that cannot be analyzed, the empty text."""
        return self.analyzed_text if self.chunk.unindexable is None else ""

    def row(self) -> Row:
        """The chunk as `matches` sees it."""
        return document_row(self.document, self.chunk.position)


PutChunks: TypeAlias = Callable[[], Sequence[IndexedChunk]]
"""The written chunks, by id, in the state of those changes."""


@dataclass(slots=True, eq=False)
class IndexUpdate:
    """The effect of one write on a collection; an index that has applied `before` needs nothing else.

    `collection` is its state after the write. `chunks` is None if they must be read. `indexed` says that the
    index was updated by the same transaction.
    """

    collection: Collection
    before: int
    changes: Sequence[Change]
    chunks: PutChunks | None
    indexed: bool = False


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome for each document, and the update of their collection if they have one in common.

    `lacks_vectors` says whether any text of the collection is pending; None if it was not checked.
    `has_mentions` says that each text of the collection has its mentions.
    """

    written: Sequence[Written]
    update: IndexUpdate | None = None
    lacks_vectors: bool | None = None
    has_mentions: bool = False


@dataclass(frozen=True, slots=True)
class TermStatistic:
    """One distinct term of a query: how many chunks have it, its BM25 idf, and how often the query has it.

    `source_idf` is its idf in the sources that the query names, None without them.
    """

    term: str
    documents: int
    idf: float
    count: int = 1
    source_idf: float | None = None

    @property
    def weight(self) -> float:
        """The idf in the named sources, or else in the collection.

        A term that the query repeats weighs up to twice as much: BM25's k3 (Robertson) of 1.
        """
        idf = self.idf if self.source_idf is None else self.source_idf
        return idf * 2.0 * self.count / (1.0 + self.count)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference between records and index."""

    chunk: ChunkId
    problem: Literal["missing", "ghost", "stale", "damaged", "unindexable"]
    detail: Annotated[str, Example("collection 'notes' not found")]


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """Size of an index: live rows, rows with a vector, bytes on disk, and segments."""

    chunks: int
    vectors: int
    bytes: int
    segments: int
    applied: int
    details: Mapping[str, str] = field(default_factory=dict)


def passage(document: Document, text: str) -> str:
    """A chunk of a document with the title, and for messages with the author."""
    if document.author is not None and document.kind in AUTHORED:
        text = f"{document.author}: {text}"
    return f"{document.title}\n{text}" if document.title else text


def analyzed_text(document: Document, text: str) -> str:
    """Return the text whose terms are indexed of a chunk: its passage, and the place of a file."""
    place = place_words(document)
    return f"{place}\n{passage(document, text)}" if place else passage(document, text)


def place_words(document: Document) -> str:
    """Return the name of a document's file and its nearest folders, but not what the title says already.

    An archive is a folder. Empty for a document that was no file, and for captions, which are short and have
    the name of their file as title.
    """
    path = document.metadata.get("path")
    if not isinstance(path, str) or document.kind == "caption":
        return ""
    parts = [part for part in path.split("/") if part][-MAX_PLACE_PARTS:]
    return " ".join(part for part in parts if part not in document.title)
