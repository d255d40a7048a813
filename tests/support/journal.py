"""Records in memory, as an index sees them: put, replace and remove chunks, read the history."""

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Change, Chunk, Document, Json
from conspectus.ports import Vectors

RECORDED = datetime(2024, 5, 1, tzinfo=UTC)


def make_chunk(
    number: int,
    text: str,
    *,
    vector: Vectors | None = None,
    metadata: Mapping[str, Json] | None = None,
    position: int = 0,
    **fields: Any,
) -> IndexedChunk:
    """A chunk of a document that has its number; `fields` are further fields of the document."""
    digest = _digest(text)
    document = Document(
        id=DocumentId(f"document-{number}"),
        collection=CollectionId("collection"),
        source=SourceId("source"),
        kind="page",
        key=str(number),
        title="",
        content_hash=digest,
        fingerprint=_digest(repr((text, metadata, sorted(fields.items())))),
        recorded=RECORDED,
        updated=RECORDED,
        metadata=dict(metadata or {}),
    )
    chunk = Chunk(
        ChunkId(number), document.id, position, text, 0, len(text), tokens=len(text), content_hash=digest
    )
    stored = None if vector is None else vector.astype("<f2").tobytes()
    return IndexedChunk(chunk, replace(document, **fields), stored)


class Journal:
    """A `Reader` over chunks in memory. Every method that writes is one transaction."""

    def __init__(self, *, batch: int = 1_000) -> None:
        self._chunks: dict[ChunkId, IndexedChunk] = {}
        self._changes: list[Change] = []
        self._batch = batch

    def put(self, chunks: Iterable[IndexedChunk]) -> None:
        """Add or replace chunks."""
        self.replace((), chunks)

    def remove(self, ids: Iterable[int]) -> None:
        """Remove chunks; unknown ids are written to the history all the same."""
        self.replace(ids, ())

    def replace(self, removed: Iterable[int], chunks: Iterable[IndexedChunk]) -> None:
        """Remove some chunks and put others, at once."""
        sequence = self._changes[-1].sequence if self._changes else 0
        for number in removed:
            sequence += 1
            self._chunks.pop(ChunkId(number), None)
            self._changes.append(Change(sequence, "remove", ChunkId(number), ChunkId(number)))
        for chunk in chunks:
            sequence += 1
            self._chunks[chunk.chunk.id] = chunk
            self._changes.append(Change(sequence, "put", chunk.chunk.id, chunk.chunk.id))
        self._chunks = dict(sorted(self._chunks.items()))

    def corrupt(self, removed: Iterable[int], chunks: Iterable[IndexedChunk]) -> None:
        """Remove and put without a word in the history, as no sound store does."""
        for number in removed:
            self._chunks.pop(ChunkId(number), None)
        self._chunks |= {chunk.chunk.id: chunk for chunk in chunks}
        self._chunks = dict(sorted(self._chunks.items()))

    def live(self) -> Sequence[IndexedChunk]:
        """All chunks by id."""
        return list(self._chunks.values())

    async def last_sequence(self) -> int:
        """The sequence of the newest change."""
        return self._changes[-1].sequence if self._changes else 0

    async def changes_since(self, sequence: int, *, limit: int) -> Sequence[Change]:
        """Changes after `sequence`, oldest first."""
        return self._changes[sequence : sequence + limit]

    async def chunks(self, first: ChunkId, last: ChunkId) -> Sequence[IndexedChunk]:
        """The live chunks from `first` to `last`."""
        if last - first < len(self._chunks):
            stored = (self._chunks.get(ChunkId(number)) for number in range(first, last + 1))
            return [chunk for chunk in stored if chunk is not None]
        return [chunk for number, chunk in self._chunks.items() if first <= number <= last]

    async def scan(self, after: ChunkId | None = None) -> AsyncIterator[Sequence[IndexedChunk]]:
        """All live chunks, in batches."""
        chunks = [chunk for number, chunk in self._chunks.items() if after is None or number > after]
        for start in range(0, len(chunks), self._batch):
            yield chunks[start : start + self._batch]


def unit(vectors: NDArray[Any]) -> Vectors:
    """The rows divided by their lengths."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
