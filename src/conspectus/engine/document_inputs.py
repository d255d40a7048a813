"""Reads stored documents back in the form in which they were written, so that they can be written again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conspectus.engine.service import Service
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.prepare import describe, own_spans
from conspectus.ingest.quarantine import KEPT
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import (
    Chunk,
    Document,
    DocumentChanges,
    EmbeddingSpace,
    NewDocument,
    Source,
    TextPosition,
)
from conspectus.text.vectors import unpack_row


class DocumentInputs(Service, checked=False):
    """Reads stored documents back as the NewDocument that was written."""

    async def read(
        self,
        stored: Document,
        source: Source,
        space: EmbeddingSpace | None,
        changes: DocumentChanges | None = None,
    ) -> NewDocument:
        """Return a stored document as it was written; without its text if the changes replace it.

        `space` is that of its collection. A vector that the writer gave is among the fields.
        """
        fields = {name: getattr(stored, name) for name in KEPT}
        if changes is not None and "text" in changes:
            return NewDocument(text="", **fields)
        new = NewDocument(text=await self._authorized.text(stored), **fields)
        chunks = [stored_chunk.chunk for stored_chunk in await self._authorized.chunks(stored)]
        has_pages = any(chunk.page is not None for chunk in chunks)
        # The headings of Markdown and reStructuredText are in the text.
        has_positions = has_pages or stored.syntax not in {"markdown", "rst"}
        preparation = self._context.preparation(source)
        spans = own_spans(chunks, new, preparation)
        new = replace(new, places=_positions(chunks) if has_positions else (), spans=spans)
        return replace(new, vector=await self._read_given_vector(stored, new, space, preparation))

    async def read_given_vectors(
        self,
        stored_texts: Sequence[tuple[Document, str]],
        sources: Mapping[SourceId, Source],
        space: EmbeddingSpace | None,
    ) -> dict[DocumentId, tuple[float, ...]]:
        """Return the vectors that writers gave with short texts, such as memories, by document.

        Texts for which the embedder made the vector cost no query.
        """
        if space is None:
            return {}
        unlike = {
            stored.id: new
            for stored, new in (
                (stored, NewDocument(text=text, **{name: getattr(stored, name) for name in KEPT}))
                for stored, text in stored_texts
            )
            if self._fingerprint(new, self._context.preparation(sources[stored.source])) != stored.fingerprint
        }
        rows = await self._parts.summaries.vectors(sorted(unlike), space) if unlike else {}
        vectors: dict[DocumentId, tuple[float, ...]] = {}
        for stored, _ in stored_texts:
            if stored.id in unlike and stored.id in rows:
                vector = unpack_row(rows[stored.id])
                with_vector = replace(unlike[stored.id], vector=vector)
                preparation = self._context.preparation(sources[stored.source])
                if space.is_of_callers or self._fingerprint(with_vector, preparation) == stored.fingerprint:
                    vectors[stored.id] = vector
        return vectors

    async def _read_given_vector(
        self, stored: Document, new: NewDocument, space: EmbeddingSpace | None, preparation: Preparation
    ) -> tuple[float, ...] | None:
        """Return the vector that the writer gave with a document; None for one that an embedder made.

        In a collection with an embedder, the fingerprint decides: it covers a given vector only.
        """
        if space is None or not stored.chunks or self._fingerprint(new, preparation) == stored.fingerprint:
            return None
        rows = await self._parts.summaries.vectors([stored.id], space)
        if stored.id not in rows:
            return None
        vector = unpack_row(rows[stored.id])
        if space.is_of_callers:
            return vector
        with_vector = replace(new, vector=vector)
        return vector if self._fingerprint(with_vector, preparation) == stored.fingerprint else None

    def _fingerprint(self, new: NewDocument, preparation: Preparation) -> str:
        return describe(new, preparation)[0].fingerprint


def _positions(chunks: Sequence[Chunk]) -> tuple[TextPosition, ...]:
    """Return the positions of pages and sections, as far as the chunks have them."""
    return tuple(
        TextPosition(chunk.start, chunk.page, (chunk.heading,) if chunk.heading else (), chunk.box)
        for chunk in chunks
        if chunk.page is not None or chunk.heading is not None
    )
