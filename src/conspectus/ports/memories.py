"""Storage of memories besides Records: their order, past versions, and retention."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from conspectus.deferred import dataclass
from conspectus.model.filter import Filter
from conspectus.model.ids import CollectionId, DocumentId, JobId, SourceId
from conspectus.model.memory import ChangesSince, MemoryReceipt, MemoryStats, Retention
from conspectus.model.records import Document, Source, SourceKind


@dataclass(frozen=True, slots=True)
class HomeSpan:
    """A source with memories: their number, and the times of the first and the last one."""

    source: SourceId
    memories: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class StoredRetention:
    """A retention with the beginning of the names of the sources that it is for."""

    id: str
    collection: CollectionId
    begins: str
    retention: Retention
    owner: str
    last_run: datetime | None = None


class Memories(Protocol):
    """A part of the system of record; every method is one transaction."""

    async def memory_sources(
        self, collection: CollectionId, *, begins: str, below: str, kind: SourceKind = "memory"
    ) -> Sequence[Source]:
        """The sources of memories, or their graphs, with begins ≤ name < below, by name."""

    async def newest(self, sources: Sequence[SourceId], *, limit: int) -> Sequence[tuple[Document, str]]:
        """The turns that were stored last, newest first, with their texts; no notes, no versions."""

    async def page(
        self,
        sources: Sequence[SourceId],
        *,
        where: Filter,
        after: str | None,
        limit: int,
        newest_first: bool = False,
    ) -> tuple[Sequence[tuple[Document, str]], str | None]:
        """Memories by event time, those of equal times in the order of storing, with their texts.

        The filter is applied before the limit. Raises InvalidInput for an unknown cursor.
        """

    async def count(self, sources: Sequence[SourceId], where: Filter) -> int:
        """How many memories match."""

    async def notes(self, sources: Sequence[SourceId], *, limit: int) -> Sequence[tuple[Document, str]]:
        """The notes that were stored last, newest first, with their texts."""

    async def oldest(
        self, source: SourceId, *, before: datetime | None, beyond: int | None, pinned: bool, limit: int
    ) -> Sequence[DocumentId]:
        """The turns of a source from before an instant, or not among its newest `beyond`.

        Oldest first; pinned ones only with `pinned`, and notes only with them.
        """

    async def totals(self, sources: Sequence[SourceId]) -> MemoryStats:
        """Numbers over sources, without conversations and entities."""

    async def versions(self, memory: DocumentId) -> Sequence[tuple[Document, str]]:
        """The earlier versions of a memory, oldest first, with their texts."""

    async def since(self, sources: Sequence[SourceId], instant: datetime) -> ChangesSince:
        """How many memories of these sources were recorded, changed and deleted after an instant."""

    async def has_versions(self, collection: CollectionId) -> bool:
        """Whether any document of the collection is an earlier version of another."""

    async def delete_empty(self, sources: Sequence[SourceId]) -> Sequence[SourceId]:
        """Delete those of the sources that hold nothing and are granted to nobody; return them."""

    async def forget(
        self,
        memories: Sequence[DocumentId],
        *,
        pinned: bool,
        now: datetime,
        dry_run: bool = False,
        job: JobId | None = None,
    ) -> MemoryReceipt:
        """Delete memories with their versions and all that hangs on them; unknown ids count 0.

        Pinned ones stay unless `pinned`. A dry run says the same and deletes nothing. What went is added to
        the result of the job, if one is given.
        """

    async def histories(
        self, memories: Sequence[DocumentId]
    ) -> Mapping[DocumentId, Sequence[tuple[Document, str]]]:
        """Those memories that exist, each behind its earlier versions, oldest first, with their texts."""

    async def spans(self, sources: Sequence[SourceId]) -> Sequence[HomeSpan]:
        """Those of these sources that have memories, in numbers."""

    async def names(self, sources: Sequence[SourceId]) -> int:
        """How many different names the memories of these sources mention, as far as they were looked for."""

    async def put_retention(self, rule: StoredRetention) -> None:
        """Keep it in the place of the one of that id."""

    async def drop_retention(self, id: str) -> bool:
        """Forget it; whether there was one."""

    async def retentions(self, collection: CollectionId | None = None) -> Sequence[StoredRetention]:
        """Those of a collection, or all, by what their names begin with."""

    async def ran(self, id: str, at: datetime) -> None:
        """Keep when a retention was carried out last."""
