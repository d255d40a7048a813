"""Changes to drafts: what has to be written is read and analysed before any lock is taken."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from conspectus.errors import InvalidInput
from conspectus.index.bm25 import Analyse
from conspectus.index.changes import merged, put_ranges, read, touched_ranges
from conspectus.index.pgvector.rows import Prepared, Preparing
from conspectus.index.pgvector.writes import PgvectorDraft
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change
from conspectus.ports import Reader

CHANGES = 5_000
_ATTEMPTS = 10


class Drafting:
    """Makes drafts from chunks."""

    def __init__(self, analyse: Analyse, dimensions: int) -> None:
        self._analyse = analyse
        self._dimensions = dimensions

    def prepared(self, chunks: Iterable[IndexedChunk]) -> dict[int, Prepared]:
        """Rows to write. Raises InvalidInput for a vector of another size."""
        preparing = Preparing(self._analyse)
        return {chunk.chunk.id: preparing.prepared(self._fitting(chunk)) for chunk in chunks}

    def draft(self, changes: Sequence[Change], chunks: Iterable[IndexedChunk]) -> PgvectorDraft:
        """A draft from chunks that were read together with the changes."""
        return PgvectorDraft(changes[-1].sequence, touched_ranges(changes), self.prepared(chunks))

    def _fitting(self, chunk: IndexedChunk) -> IndexedChunk:
        if not self._dimensions:
            return replace(chunk, vector=None)
        if chunk.vector is not None and len(chunk.vector) != 2 * self._dimensions:
            size = len(chunk.vector) // 2
            raise InvalidInput("vector", f"has {size} numbers, the index {self._dimensions}")
        return chunk


class PgvectorDrafting:
    """Has a reader tell what drafts are made of."""

    def __init__(self, reader: Reader, drafting: Drafting) -> None:
        self._reader = reader
        self._drafting = drafting

    async def draft(self, changes: Sequence[Change]) -> PgvectorDraft:
        """All that these changes ask for.

        Rows are read as they are now. What was replaced meanwhile they lack, and what came in its place: so
        later changes are taken in too, as long as something was removed.
        """
        draft = await self._read(changes)
        for _ in range(_ATTEMPTS):
            later = await self._reader.changes_since(draft.applied, limit=CHANGES)
            removed = any(change.operation == "remove" for change in later)
            if not removed or len(later) >= CHANGES:
                break
            draft = followed_by(draft, await self._read(later))
        return draft

    async def _read(self, changes: Sequence[Change]) -> PgvectorDraft:
        chunks = [each async for some in read(self._reader, put_ranges(changes)) for each in some]
        return await asyncio.to_thread(self._drafting.draft, changes, chunks)


def followed_by(draft: PgvectorDraft, later: PgvectorDraft) -> PgvectorDraft:
    """Both drafts as one."""
    kept = {
        number: row
        for number, row in draft.rows.items()
        if not any(first <= number <= last for first, last in later.ranges)
    }
    return PgvectorDraft(later.applied, merged([*draft.ranges, *later.ranges]), {**kept, **later.rows})
