"""Storage of memories besides Records: order, versions, and retention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from conspectus.model.filter import Filter
from conspectus.model.ids import CollectionId, DocumentId, JobId, SourceId
from conspectus.model.memory import ChangesSince, MemoryReceipt, Retention
from conspectus.model.records import Document, Source, SourceKind


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over sources of memories."""

    memories: int
    notes: int
    pinned: int
    facts: int
    versions: int
    tokens: int
    pending: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class HomeSpan:
    """A source with memories: their number, and the times of the first and the last one."""

    source: SourceId
    memories: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class StoredRetention:
    """A retention rule with the name prefix of the sources that it applies to."""

    id: str
    collection: CollectionId
    begins: str
    retention: Retention
    owner: str
    last_run: datetime | None = None


class Memories(Protocol):
    """A part of the system of record. Every method is one transaction."""

    async def homes(
        self, collection: CollectionId, *, begins: str, below: str, kind: SourceKind = "memory"
    ) -> Sequence[Source]:
        """Return the sources of memories, or their graphs, with begins ≤ name < below, by name."""
        ...

    async def newest(self, sources: Sequence[SourceId], *, limit: int) -> Sequence[tuple[Document, str]]:
        """Return the last stored turns, newest first, with their texts; no notes, no versions."""
        ...

    async def page(
        self,
        sources: Sequence[SourceId],
        *,
        where: Filter,
        after: str | None,
        limit: int,
        newest_first: bool = False,
    ) -> tuple[Sequence[tuple[Document, str]], str | None]:
        """Return memories by event time, then by recording, with their texts.

        The filter is applied before the limit. Raises InvalidInput for an invalid cursor.
        """
        ...

    async def count(self, sources: Sequence[SourceId], where: Filter) -> int:
        """Return the number of matching memories."""
        ...

    async def notes(self, sources: Sequence[SourceId], *, limit: int) -> Sequence[tuple[Document, str]]:
        """Return the last stored notes, newest first, with their texts."""
        ...

    async def oldest(
        self, source: SourceId, *, before: datetime | None, beyond: int | None, pinned: bool, limit: int
    ) -> Sequence[DocumentId]:
        """Return the turns of a source from before an instant, or not among its newest `beyond`.

        Oldest first; pinned ones only with `pinned`, and notes only with them.
        """
        ...

    async def totals(self, sources: Sequence[SourceId]) -> Totals:
        """Return counts over sources."""
        ...

    async def versions(self, memory: DocumentId) -> Sequence[tuple[Document, str]]:
        """Return the earlier versions of a memory, oldest first, with their texts."""
        ...

    async def since(self, sources: Sequence[SourceId], instant: datetime) -> ChangesSince:
        """Return how many memories of these sources were added, changed and deleted after an instant."""
        ...

    async def has_versions(self, collection: CollectionId) -> bool:
        """Return whether the collection contains an earlier version of any document."""
        ...

    async def forget(
        self,
        memories: Sequence[DocumentId],
        *,
        pinned: bool,
        now: datetime,
        dry_run: bool = False,
        job: JobId | None = None,
    ) -> MemoryReceipt:
        """Delete memories with versions and everything that depends on them. Unknown ids count 0.

        Pinned ones stay unless `pinned`. A dry run returns the same and deletes nothing. Counts are added to
        the result of the job, if one is given.
        """
        ...

    async def histories(
        self, memories: Sequence[DocumentId]
    ) -> Mapping[DocumentId, Sequence[tuple[Document, str]]]:
        """Return the memories that exist, each after its earlier versions, oldest first, with their texts."""
        ...

    async def spans(self, sources: Sequence[SourceId]) -> Sequence[HomeSpan]:
        """Return the counts of those of these sources that have memories."""
        ...

    async def names(self, sources: Sequence[SourceId]) -> int:
        """Return the number of distinct entities that the memories of these sources mention."""
        ...

    async def put_retention(self, kept: StoredRetention) -> None:
        """Store a retention rule, replacing the one of that id."""
        ...

    async def drop_retention(self, id: str) -> bool:
        """Delete a retention rule. Returns whether it existed."""
        ...

    async def retentions(self, collection: CollectionId | None = None) -> Sequence[StoredRetention]:
        """Return the rules of a collection, or all, by name prefix."""
        ...

    async def ran(self, id: str, at: datetime) -> None:
        """Record when a retention rule was last applied."""
        ...
