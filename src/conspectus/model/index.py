"""What an index takes in and what it says of itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from conspectus.model.filter import Row, document_row
from conspectus.model.ids import ChunkId
from conspectus.model.records import Change, Chunk, Collection, Document, Kind, Written

SPOKEN: frozenset[Kind] = frozenset({"message", "memory"})


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk as an index takes it in: words come from title and text, filters read the document."""

    chunk: Chunk
    document: Document
    vector: bytes | None = None

    @property
    def passage(self) -> str:
        """What is searched for this chunk, by words and by meaning: the text with what makes it understood.

        A page's title gives each of its chunks a subject; who says it is a part of what is said.
        """
        return passage(self.document, self.chunk.text)

    def row(self) -> Row:
        """The chunk as `matches` sees it."""
        return document_row(self.document, self.chunk.position)


PutChunks: TypeAlias = Callable[[], Sequence[IndexedChunk]]
"""The chunks that changes put, by id, exactly as those changes left them."""


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """What one write did to a collection; an index that has applied `before` needs nothing else.

    `collection` is as the write left it. `chunks` is None where they have to be read.
    """

    collection: Collection
    before: int
    changes: Sequence[Change]
    chunks: PutChunks | None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did to each document in turn, and to their collection if they have one in common.

    `lacks_vectors` says whether any text of that collection waits for a vector, None if nobody looked.
    """

    written: Sequence[Written]
    update: IndexUpdate | None = None
    lacks_vectors: bool | None = None


@dataclass(frozen=True, slots=True)
class TermStatistic:
    """One distinct term of a question: in how many chunks it occurs, and its BM25 idf."""

    term: str
    documents: int
    idf: float


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One difference between records and index that `check` found."""

    chunk: ChunkId
    problem: Literal["missing", "ghost", "stale", "damaged"]
    detail: str


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """Size of an index: live rows, rows with a vector, bytes on disk, and how the rows are cut."""

    chunks: int
    vectors: int
    bytes: int
    segments: int
    applied: int
    details: Mapping[str, str] = field(default_factory=dict)


def passage(document: Document, text: str) -> str:
    """A piece of a document with its title and, where it is speech, with who says it."""
    if document.author is not None and document.kind in SPOKEN:
        text = f"{document.author}: {text}"
    return f"{document.title}\n{text}" if document.title else text
