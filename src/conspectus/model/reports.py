"""What the engine says about itself and about long work."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from conspectus.model.index import Disagreement, IndexStatus
from conspectus.model.records import Document
from conspectus.model.results import Similarity


@dataclass(frozen=True, slots=True)
class Page:
    """Documents in order of recording; `next` is the cursor of the page after this one, if any."""

    documents: tuple[Document, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One collection in numbers. `pending` chunks have no vector yet; `lag` is changes not indexed yet.

    `similarity` tells what similarities its embedding model gives; None where they were not measured.
    """

    name: str
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


@dataclass(frozen=True, slots=True)
class Status:
    """Where the data are, how much there is, and in which version."""

    path: str
    version: str
    bytes: int
    collections: tuple[CollectionStatus, ...]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Differences between records and index by collection, and what is wrong in the database beside."""

    records: tuple[str, ...]
    index: Mapping[str, tuple[Disagreement, ...]]

    @property
    def clean(self) -> bool:
        """Whether nothing at all was found."""
        return not self.records and not any(self.index.values())


@dataclass(frozen=True, slots=True)
class FileFailure:
    """A file that was not taken in; what was stored of it before is still there."""

    name: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class FilesReport:
    """What adding files did, by document, with every failure by name.

    `skipped` counts the files in folders that are of a kind that cannot be read, such as images.
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
