"""Chunks that cannot be analyzed: they are marked in the records, and left out of the index."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

from conspectus.errors import TEXT_FAULTS
from conspectus.ingest.open_index import MAX_CHANGES, OpenIndex
from conspectus.model.index import IndexedChunk
from conspectus.ports import Records, TextAnalysis

logger = logging.getLogger(__name__)


class UnindexableChunks:
    """Marks chunks that cannot be analyzed, even in a fresh process."""

    def __init__(self, records: Records, texts: TextAnalysis) -> None:
        self._records = records
        self._texts = texts

    async def mark(self, opened: OpenIndex, batches: AsyncIterator[Sequence[IndexedChunk]]) -> bool:
        """Mark the chunks that cannot be analyzed; return whether there are any that were not marked."""
        language = opened.collection.language
        suspects: list[IndexedChunk] = []
        async for batch in batches:
            suspects += await asyncio.to_thread(self._find_suspects, batch, language)
        faults = await self._texts.find_faults(language, [chunk.analyzed_text for chunk in suspects])
        reasons = {chunk.chunk.id: fault for chunk, fault in zip(suspects, faults, strict=True) if fault}
        if reasons:
            await self._records.mark_unindexable(opened.collection.id, reasons)
            logger.warning(
                "chunks_unindexable collection=%(collection)s chunks=%(chunks)s",
                {"collection": opened.collection.id, "chunks": reasons},
            )
        return bool(reasons)

    async def unmark(self, opened: OpenIndex) -> None:
        """Remove the marks of chunks that can be analyzed by now, as after an upgrade."""
        marked = await self._records.unindexable(opened.collection.id, limit=MAX_CHANGES)
        if not marked:
            return
        language = opened.collection.language
        faults = await self._texts.find_faults(language, [chunk.analyzed_text for chunk in marked])
        mended = {chunk.chunk.id: None for chunk, fault in zip(marked, faults, strict=True) if fault is None}
        if mended:
            await self._records.mark_unindexable(opened.collection.id, mended)
            opened.required = await opened.reader.last_sequence()

    def _find_suspects(self, batch: Sequence[IndexedChunk], language: str | None) -> list[IndexedChunk]:
        """Return the chunks that are not marked and cannot be analyzed in this process."""
        analyse = self._texts.analyzer(language)
        suspects = []
        for chunk in batch:
            try:
                analyse(chunk.term_text)
            except TEXT_FAULTS:
                suspects.append(chunk)
        return suspects
