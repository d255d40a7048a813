"""Small collections and documents to write into a store under test."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import (
    Collection,
    Document,
    EmbeddingSpace,
    PreparedChunk,
    PreparedDocument,
    Source,
)
from conspectus.text.hashing import content_hash

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
SPACE = EmbeddingSpace("sample", 4)
OTHER_SPACE = EmbeddingSpace("sample", 4, "2")
SHELF = CollectionId("shelf")
NOTES = SourceId("notes")


def shelf(name: str = SHELF, space: EmbeddingSpace | None = SPACE) -> Collection:
    """A collection whose id is its name."""
    return Collection(CollectionId(name), name, space, "english", NOON)


def notes(name: str = NOTES, collection: CollectionId = SHELF) -> Source:
    """A source whose id is its name."""
    return Source(SourceId(name), collection, name)


def pieces(texts: Sequence[str]) -> tuple[PreparedChunk, ...]:
    """Chunks that follow each other without a gap."""
    chunks, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        chunks.append(PreparedChunk(position, text, start, end, len(text.split()), content_hash(text)))
        start = end
    return tuple(chunks)


def prepared(key: str, *texts: str, **fields: Any) -> PreparedDocument:
    """A document of these chunks whose id is its key; `fields` are any fields of Document."""
    text = "".join(texts)
    plain = Document(
        id=DocumentId(key),
        collection=SHELF,
        source=NOTES,
        kind="page",
        key=key,
        title=f"About {key}",
        content_hash=content_hash(text),
        fingerprint="",
        recorded=NOON,
        updated=NOON,
        characters=len(text),
    )
    document = replace(plain, **fields)
    fingerprint = content_hash(repr(replace(document, recorded=NOON, updated=NOON)))
    return PreparedDocument(replace(document, fingerprint=fingerprint), pieces(texts))


def vector(*numbers: float, dimensions: int = 4) -> bytes:
    """A stored vector that begins with these numbers."""
    padded = np.zeros(dimensions, dtype="<f2")
    padded[: len(numbers)] = numbers
    return padded.tobytes()
