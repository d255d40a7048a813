"""Reports of the engine: pages of documents, numbers, checks and imports."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Final

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.index import Disagreement, IndexStatus
from conspectus.model.parameters import StoredCollection, StoredKey, StoredText, StoredTitle
from conspectus.model.records import Document, Kind, ReadBy
from conspectus.model.results import Similarity

READING: Final = "reading"
"""The work that `Progress` reports while files are read."""


@dataclass(frozen=True, slots=True)
class Page:
    """Documents in order; `next` is the cursor of the page after this one, if any."""

    documents: tuple[Document, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class DocumentExport:
    """Documents as lines of JSON, complete but for vectors of the embedder, and the cursor of the rest.

    `left_out` of the last page counts by name what no line contains.
    """

    lines: Annotated[
        tuple[str, ...],
        Example(['{"source": "handbook", "key": "backup.md", "text": "The backup runs at two."}']),
    ]
    next: str | None
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """Numbers of a collection. `pending` chunks have no vector yet; `lag` is changes not indexed yet.

    `unindexable` chunks could not be analyzed: keyword search does not find them. `fault` is why the index
    cannot be used now, whose numbers are 0 then.
    `erasures` are purges whose texts are deleted, and may still be in files. `similarity` are typical
    similarities of its embedding model; None if they were not measured.
    """

    name: StoredCollection
    space: str | None
    sources: int
    documents: int
    chunks: int
    vectors: int
    pending: int
    errors: int
    lag: int
    index: IndexStatus
    similarity: Similarity | None = None
    unindexable: int = 0
    fault: str | None = None
    erasures: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """Location, size and versions of a store."""

    path: Annotated[str, Example("/data/store")]
    version: Annotated[str, Example("0.1.0")]
    bytes: int
    collections: tuple[CollectionStatus, ...]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Differences between records and index by collection, other errors of the database and of settings."""

    records: tuple[str, ...]
    index: Annotated[Mapping[str, tuple[Disagreement, ...]], Example({"notes": []})]
    settings: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether no difference and no error was found."""
        return not self.records and not self.settings and not any(self.index.values())


@dataclass(frozen=True, slots=True)
class FileFailure:
    """A file that was not added; what was stored of it before remains."""

    name: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class FilesReport:
    """The outcomes of added files, with each failure by name.

    `pruned` counts deleted documents that their file no longer contains, or whose file is gone; `missing`
    counts stored documents of files that are gone or ignored now, which `prune` deletes.
    `skipped` counts files in folders whose format is not supported, such as images; `skipped_files` has the
    reason for each by name. `streams` are those made of subtitle files, with the number of their captions,
    which are among the numbers of outcomes.
    """

    added: int = 0
    replaced: int = 0
    updated: int = 0
    unchanged: int = 0
    pruned: int = 0
    skipped: int = 0
    chunks: int = 0
    failures: tuple[FileFailure, ...] = ()
    notices: Mapping[str, str] = field(default_factory=dict)
    skipped_files: Mapping[str, str] = field(default_factory=dict)
    streams: Mapping[str, int] = field(default_factory=dict)
    missing: int = 0


@dataclass(frozen=True, slots=True)
class ChunkPreview:
    """A chunk that a document would have: its text of the characters [start, end), and where it stands.

    `tokens` are those of o200k_base. A chunk in the middle of a table is indexed below its `table_header`.
    """

    position: int
    start: int
    end: int
    tokens: int
    page: int | None
    heading: StoredTitle | None
    text: StoredText = ""
    table_header: StoredText | None = None


@dataclass(frozen=True, slots=True)
class DocumentPreview:
    """A document that would be stored, with its first chunks, and the numbers of all its chunks and tokens.

    `quarantined` says why it would be in no result.
    """

    key: StoredKey
    title: StoredTitle
    kind: Kind
    characters: int
    chunks: tuple[ChunkPreview, ...]
    quarantined: str | None = None
    read_by: ReadBy = "text"
    chunk_count: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class FilesPreview:
    """What adding files would store. `failures`, `notices` and `skipped_files` are as in FilesReport."""

    documents: tuple[DocumentPreview, ...] = ()
    failures: tuple[FileFailure, ...] = ()
    notices: Mapping[str, str] = field(default_factory=dict)
    skipped_files: Mapping[str, str] = field(default_factory=dict)
