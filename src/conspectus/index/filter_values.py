"""What an index takes from a chunk: the values that filters can meet, and a number for all of it."""

import hashlib
import json
from collections.abc import Iterator, Mapping

from conspectus.model.filter import Field
from conspectus.model.index import IndexedChunk

Entry = tuple[Field, object]


def path_name(field: Field) -> str:
    """A field's own name, or a metadata path as JSON, which begins with a bracket."""
    return field if isinstance(field, str) else json.dumps(field)


def entries(field: Field, value: object) -> Iterator[Entry]:
    """Every value that a filter can meet at a field or below it; nothing for null."""
    if value is None:
        return
    if isinstance(value, list | tuple):
        elements = [entry for element in value for entry in _elements(field, element)]
        yield from elements or [(field, value)]
        return
    yield field, value
    if isinstance(value, Mapping) and not isinstance(field, str):
        for name, inner in value.items():
            yield from entries((*field, name), inner)


def _elements(field: Field, value: object) -> Iterator[Entry]:
    if isinstance(value, list | tuple):
        for element in value:
            yield from _elements(field, element)
    elif value is not None:
        yield field, value


def content_checksum(chunk: IndexedChunk) -> int:
    """A number that changes with anything that the index takes from the chunk."""
    parts = (
        chunk.chunk.content_hash,
        chunk.document.fingerprint,
        chunk.document.id,
        str(chunk.chunk.position),
    )
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8)
    digest.update(chunk.vector or b"")
    return int.from_bytes(digest.digest(), "little")
