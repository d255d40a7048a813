"""Filter terms: values of fields as the terms that adapters index and look up for a filter."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, get_args

from conspectus.model.filter import Field, FieldName, instant
from conspectus.model.index import IndexedChunk
from conspectus.text.times import to_microseconds

TEXTS: Final[tuple[FieldName, ...]] = ("source", "document", "kind", "author", "role", "thread", "parent")
NUMBERS: Final[tuple[FieldName, ...]] = ("sequence", "position", "recorded")
assert {*TEXTS, *NUMBERS, "occurred"} == set(get_args(FieldName))


def encoded(text: str) -> bytes:
    """A text as bytes that sort as its code points do; halves of surrogate pairs may be in it."""
    return text.encode("utf-8", "surrogatepass")


def exists(field: Field) -> int:
    """The fact that there is a value other than null; it also represents the path."""
    return _fact(field, "exists")


def is_value(field: Field, value: object) -> int:
    """The fact that a value is equal to this one."""
    return _fact(field, *_canonical(value))


def is_moment(field: Field, microsecond: int) -> int:
    """The fact that a value spells this moment."""
    return _fact(field, "instant", str(microsecond))


def equals(field: Field, value: object) -> int | None:
    """The fact that a value equals this one; None for what equals nothing."""
    if isinstance(value, datetime):
        moment = instant(value)
        return None if moment is None else is_moment(field, to_microseconds(moment))
    return None if _canonical(value)[0] == "other" else is_value(field, value)


def spelled_moment(value: object) -> int | None:
    """The microsecond that a text spells."""
    spelled = instant(value) if isinstance(value, str) and value[:1].isdigit() else None
    return None if spelled is None else to_microseconds(spelled)


def stand_in(value: object) -> object:
    """The value itself, or an empty one of its kind: what is in it has paths of its own."""
    if isinstance(value, Mapping):
        return {}
    return [] if isinstance(value, list | tuple) else value


def _fact(field: Field, tag: str, text: str = "") -> int:
    content = json.dumps([path_name(field), tag, text]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") >> 2


def _canonical(value: object) -> tuple[str, str]:
    """One spelling for all values that are equal, with a tag that keeps types apart."""
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
            return "text", value
        case _:
            return "other", json.dumps(stand_in(value))


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


def signed_checksum(chunk: IndexedChunk) -> int:
    """The same as a signed number, which databases can hold."""
    return content_checksum(chunk) >> 1
