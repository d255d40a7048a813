"""Reports of the engine: pages of documents, numbers, checks and imports."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.index import Disagreement, IndexStatus
from conspectus.model.parameters import PersonName, StoredCollection, StoredKey, StoredText, StoredTitle
from conspectus.model.records import Document, Kind, Metadata
from conspectus.model.results import Similarity
from conspectus.model.trust import Origin, Trust


@dataclass(frozen=True, slots=True)
class Page:
    """Documents in order of recording; `next` is the cursor of the page after this one, if any."""

    documents: tuple[Document, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A quarantined document as it was given, and the attack pattern that it matches.

    `pattern` is `by_writer` if the writer asked for it. `trust` is the level that it has once it is released.
    """

    id: DocumentId
    source: SourceId
    pattern: str
    kind: Kind
    key: StoredKey
    title: StoredTitle
    text: StoredText
    author: PersonName | None
    origin: Origin
    trust: Trust
    recorded: datetime
    metadata: Annotated[Metadata, Example({"lang": "en"})]


QUARANTINE = "quarantine"
"""Metadata of a quarantined document: the pattern, and what was given."""


def quarantine_notice(pattern: str) -> str:
    """Return what a writer is told of a text that is quarantined."""
    return f"quarantined, as it matches the pattern {pattern}"


def quarantine_pattern(document: Document) -> str | None:
    """Return the pattern of a quarantined document."""
    quarantine: Any = document.metadata.get(QUARANTINE)
    return str(quarantine["pattern"]) if document.kind == "quarantined" else None


def as_given(document: Document) -> Document:
    """Return a quarantined document with the fields that it has once it is released; another one as it is."""
    if document.kind != "quarantined":
        return document
    quarantine: Any = document.metadata[QUARANTINE]
    return replace(document, **{name: quarantine["given"][name] for name in ("kind", "metadata", "trust")})


@dataclass(frozen=True, slots=True)
class QuarantinePage:
    """Quarantined documents in order of recording; `next` is the cursor of the next page, if any."""

    documents: tuple[Quarantined, ...]
    next: str | None


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
    """Differences between records and index by collection, and other errors of the database."""

    records: tuple[str, ...]
    index: Annotated[Mapping[str, tuple[Disagreement, ...]], Example({"notes": []})]

    @property
    def clean(self) -> bool:
        """Whether no difference and no error was found."""
        return not self.records and not any(self.index.values())


@dataclass(frozen=True, slots=True)
class FileFailure:
    """A file that was not added; what was stored of it before remains."""

    name: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class FilesReport:
    """The outcomes of added files, with each failure by name.

    `skipped` counts files in folders whose format is not supported, such as images.
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


SensitiveCategory = Literal["secrets", "cards", "accounts", "emails", "phones"]
CATEGORIES: tuple[SensitiveCategory, ...] = get_args(SensitiveCategory)


@dataclass(frozen=True, slots=True)
class SensitivePlace:
    """Characters [start, end) of a stored text with a secret or personal data, which it does not repeat.

    `kind` is the kind of secret. `column` is the table and column of the text, `chunks.text` for the text of
    a document, and `row` the id of its row. `document` and `title` are empty for rows of other tables.
    """

    document: DocumentId
    title: StoredTitle
    category: SensitiveCategory
    kind: str
    start: int
    end: int
    column: str = "chunks.text"
    row: str = ""


Reach = Literal["source", "collection", "store"]
"""What the rows of a table belong to."""


class ColumnText(NamedTuple):
    """A text of a row, in `table.column`."""

    column: str
    row: str
    text: str


@dataclass(frozen=True, slots=True)
class SensitiveReport:
    """How many documents were read, in how many of them each category was found, and how often in all texts.

    `places` are the first ones, at most as many as were asked for.
    """

    scanned: int
    documents: Mapping[SensitiveCategory, int]
    found: Mapping[SensitiveCategory, int]
    places: tuple[SensitivePlace, ...] = ()
