"""Stored documents as they were given, to be written again."""

from collections.abc import Sequence
from dataclasses import replace

from conspectus.engine.context import Service
from conspectus.ingest.prepare import own_spans
from conspectus.ingest.quarantine import KEPT
from conspectus.model.records import Chunk, Document, DocumentChanges, NewDocument, Source, TextPosition


class DocumentInputs(Service, checked=False):
    """Reads stored documents as new ones."""

    async def read(
        self, stored: Document, source: Source, changes: DocumentChanges | None = None
    ) -> NewDocument:
        """Return a stored document as it was written; without its text if the changes replace it."""
        fields = {name: getattr(stored, name) for name in KEPT}
        if changes is not None and "text" in changes:
            return NewDocument(text="", **fields)
        new = NewDocument(text=await self._authorized.text(stored), **fields)
        chunks = [stored_chunk.chunk for stored_chunk in await self._authorized.chunks(stored)]
        has_pages = any(chunk.page is not None for chunk in chunks)
        # The headings of Markdown and reStructuredText are in the text.
        has_positions = has_pages or stored.syntax not in {"markdown", "rst"}
        spans = own_spans(chunks, new, self._context.preparation(source))
        return replace(new, places=_positions(chunks) if has_positions else (), spans=spans)


def _positions(chunks: Sequence[Chunk]) -> tuple[TextPosition, ...]:
    """Return the positions of pages and sections, as far as the chunks have them."""
    return tuple(
        TextPosition(chunk.start, chunk.page, (chunk.heading,) if chunk.heading else ())
        for chunk in chunks
        if chunk.page is not None or chunk.heading is not None
    )
