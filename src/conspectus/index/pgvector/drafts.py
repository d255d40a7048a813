"""Drafts of the pgvector index: the rows of changes, prepared for one write."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Analyse
from conspectus.index.changes import (
    CHANGES,
    Range,
    find_obsolete_ranges,
    merge_ranges,
    put_ranges,
    read,
    with_vector_of,
)
from conspectus.index.pgvector.rows import Prepared, Preparing
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change
from conspectus.ports import Reader

_ATTEMPTS = 10


@dataclass(slots=True)
class PgvectorDraft:
    """A planned write: rows that replace all rows in certain ranges, up to a change."""

    applied: int
    ranges: Sequence[Range] = ()
    rows: dict[int, Prepared] = field(default_factory=dict)


class Drafting:
    """Makes drafts from chunks."""

    def __init__(self, analyse: Analyse, dimensions: int) -> None:
        self._analyse = analyse
        self._dimensions = dimensions

    def prepare(self, chunks: Iterable[IndexedChunk]) -> dict[int, Prepared]:
        """Return rows to write. Raises InvalidInput for a vector of another size."""
        preparing = Preparing(self._analyse)
        return {
            chunk.chunk.id: preparing.prepare(with_vector_of(self._dimensions, chunk)) for chunk in chunks
        }

    def draft(
        self, changes: Sequence[Change], chunks: Iterable[IndexedChunk], *, fresh: bool = False
    ) -> PgvectorDraft:
        """Return a draft from chunks in the state of the changes; no index has those that are `fresh`."""
        old = [change for change in changes if change.operation == "remove" or not fresh]
        return PgvectorDraft(changes[-1].sequence, find_obsolete_ranges(old), self.prepare(chunks))


class PgvectorDrafting:
    """Makes drafts by reading the chunks of changes from the records."""

    def __init__(self, reader: Reader, drafting: Drafting) -> None:
        self._reader = reader
        self._drafting = drafting

    async def draft(self, changes: Sequence[Change]) -> PgvectorDraft:
        """Return the current rows of the changed chunks.

        Rows that were replaced meanwhile, and their replacements, are missing. So later changes are added
        too, as long as rows were removed.
        """
        draft = await self._read(changes)
        for _ in range(_ATTEMPTS):
            later = await self._reader.changes_since(draft.applied, limit=CHANGES)
            removed = any(change.operation == "remove" for change in later)
            if not removed or len(later) >= CHANGES:
                break
            draft = combine_drafts(draft, await self._read(later))
        return draft

    async def _read(self, changes: Sequence[Change]) -> PgvectorDraft:
        chunks = [chunk async for batch in read(self._reader, put_ranges(changes)) for chunk in batch]
        return await asyncio.to_thread(self._drafting.draft, changes, chunks)


def combine_drafts(draft: PgvectorDraft, later: PgvectorDraft) -> PgvectorDraft:
    """Combine two drafts, the second after the first."""
    earlier = {
        number: row
        for number, row in draft.rows.items()
        if not any(first <= number <= last for first, last in later.ranges)
    }
    return PgvectorDraft(
        later.applied, merge_ranges([*draft.ranges, *later.ranges]), {**earlier, **later.rows}
    )
