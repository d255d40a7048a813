"""Field values as numbers, called facts, that adapters index and look up.

A fact is the hash of a path and a value. It says that a row has this value at this path, or, without a
value, that it has any.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, get_args

from conspectus.model.filter import Field, FieldName, Row, instant
from conspectus.model.filter_operands import compose_accents
from conspectus.model.index import IndexedChunk
from conspectus.text.times import to_microseconds

Entry = tuple[Field, object]

TEXTS: Final[tuple[FieldName, ...]] = (
    "source",
    "document",
    "kind",
    "author",
    "role",
    "thread",
    "parent",
    "trust",
)
NUMBERS: Final[tuple[FieldName, ...]] = ("sequence", "position", "recorded")
NAMES_IN_FACTS: Final[tuple[FieldName, ...]] = ("title", "key", "file", "folder")
"""Named fields that databases find by facts, as they do metadata: they have no column of their own."""
assert {*TEXTS, *NUMBERS, *NAMES_IN_FACTS, "occurred"} == set(get_args(FieldName))


def encode_text(text: str) -> bytes:
    """Encode a text so that bytes sort as its code points do. Lone surrogates are allowed."""
    return text.encode("utf-8", "surrogatepass")


def decode_text(encoded: bytes) -> str:
    """Return the text of `encode_text`."""
    return encoded.decode("utf-8", "surrogatepass")


def comparable(text: str) -> bytes:
    """Encode a text as filters compare it."""
    return encode_text(compose_accents(text))


def fact_entries(row: Row) -> Iterator[Entry]:
    """Yield every path and value of a row that has facts: its metadata, and names without a column."""
    yield from entries((), row["metadata"])
    for name in NAMES_IN_FACTS:
        yield from entries(name, row[name])


def exists(field: Field) -> int:
    """Return the fact that the path has a value other than null."""
    return _fact(field, "exists")


def is_value(field: Field, value: object) -> int:
    """Return the fact that the value is equal to this one."""
    return _fact(field, *_canonical(value))


def is_moment(field: Field, microsecond: int) -> int:
    """Return the fact that the value is this instant."""
    return _fact(field, "instant", str(microsecond))


def equals(field: Field, value: object) -> int | None:
    """Return the fact of equality with a value; None for values that equal nothing (NaN)."""
    if isinstance(value, datetime):
        moment = instant(value)
        return None if moment is None else is_moment(field, to_microseconds(moment))
    return None if _canonical(value)[0] == "other" else is_value(field, value)


def parse_moment(value: object) -> int | None:
    """Return the instant that a text spells, in microseconds; None for other values."""
    spelled = instant(value) if isinstance(value, str) and value[:1].isdigit() else None
    return None if spelled is None else to_microseconds(spelled)


def stand_in(value: object) -> object:
    """Return the value, or an empty container for a list or mapping, whose items have paths of their own."""
    if isinstance(value, Mapping):
        return {}
    return [] if isinstance(value, list | tuple) else value


def _fact(field: Field, tag: str, text: str = "") -> int:
    content = json.dumps([path_name(field), tag, text]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") >> 2


def _canonical(value: object) -> tuple[str, str]:
    """Return one spelling for all equal values, with a type tag."""
    match value:
        case bool():
            return "truth", str(value)
        case int():
            return "number", hex(value)
        case float() if value.is_integer():
            return "number", hex(int(value))
        case float() if value == value:
            return "number", repr(value)
        case str():
            return "text", compose_accents(value)
        case _:
            return "other", json.dumps(stand_in(value))


def path_name(field: Field) -> str:
    """Return the name of a field, or a metadata path as JSON, which begins with a bracket."""
    return field if isinstance(field, str) else json.dumps(field)


def entries(field: Field, value: object) -> Iterator[Entry]:
    """Yield every path and value that a filter can match at a field or below it; nothing for null."""
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
    """Return a checksum of everything that the index reads from the chunk."""
    parts = (
        chunk.chunk.content_hash,
        chunk.document.fingerprint,
        chunk.document.id,
        str(chunk.chunk.position),
    )
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8)
    digest.update(chunk.vector or b"")
    digest.update((chunk.chunk.unindexable or "").encode())
    digest.update((chunk.chunk.table_header or "").encode())
    return int.from_bytes(digest.digest(), "little")


def compute_signed_checksum(chunk: IndexedChunk) -> int:
    """Return the checksum as a signed 64-bit integer, as databases store it."""
    return content_checksum(chunk) >> 1
